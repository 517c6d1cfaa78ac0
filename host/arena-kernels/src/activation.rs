//! Functions of single elements: the gate of the feed-forward network, and addition.
//!
//! Not here: the same by vectors (`rows`).

// Threads write different rows of the same output.
#![allow(unsafe_code)]

use crate::context::{Context, row_parts};
use crate::reduction::exp;
use crate::rows::Swiglu;
use crate::shared::SharedMut;
use crate::simd;

/// Writes `silu(gate) * up`, where `silu(x) = x / (1 + exp(-x))`. Shapes: `gate_up` is
/// `[m, 2 * n]`, each row the gate and then the up projection; `out` is `[m, n]`.
///
/// Source: Shazeer 2020, equation 6 (SwiGLU).
///
/// # Panics
/// If the lengths do not fit.
pub fn swiglu(context: &Context, n: usize, gate_up: &[f32], out: &mut [f32]) {
    assert!(n > 0, "rows without elements");
    assert!(out.len().is_multiple_of(n), "{} elements in rows of {n}", out.len());
    assert!(gate_up.len() == 2 * out.len(), "{} in, {} out", gate_up.len(), out.len());
    // An exponential costs some ten elements of anything else.
    let parts = row_parts(out.len() / n, 10 * n);
    let out = SharedMut::new(out);
    context.run(parts.len(), &|part| {
        for row in parts.rows(part) {
            let (gates, ups) = gate_up[row * 2 * n..][..2 * n].split_at(n);
            // SAFETY: every row is of one part, and `out` outlives the region.
            let out = unsafe { out.elements(row * n, n) };
            let kernel = Swiglu { gates, ups, out };
            simd::run(context.isa(), kernel, |row| swiglu_plainly(row.gates, row.ups, row.out));
        }
    });
}

#[inline(always)]
pub(crate) fn swiglu_plainly(gates: &[f32], ups: &[f32], out: &mut [f32]) {
    for ((out, gate), up) in out.iter_mut().zip(gates).zip(ups) {
        *out = gate / (1.0 + exp(-gate)) * up;
    }
}

/// Adds `y` to `x`.
///
/// # Panics
/// If the lengths differ.
pub fn add(context: &Context, x: &mut [f32], y: &[f32]) {
    assert!(x.len() == y.len(), "{} elements and {}", x.len(), y.len());
    let parts = row_parts(x.len(), 1);
    let x = SharedMut::new(x);
    context.run(parts.len(), &|part| {
        let part = parts.rows(part);
        // SAFETY: every element is of one part, and `x` outlives the region.
        let x = unsafe { x.elements(part.start, part.len()) };
        for (x, y) in x.iter_mut().zip(&y[part]) {
            *x += y;
        }
    });
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::isa::Isa;

    #[test]
    fn every_instruction_set_gates_to_the_same_bits() {
        for n in [1, 16, 37, 576] {
            let x: Vec<f32> = (0..10 * n).map(|i| (i * 7919 % 1009) as f32 / 9.0 - 50.0).collect();
            let gate = |threads, isa| {
                let context = Context::new(threads, isa).expect("available");
                let mut out = vec![0.0; 5 * n];
                swiglu(&context, n, &x, &mut out);
                out
            };
            let plain = gate(NonZeroUsize::MIN, Isa::Portable);
            for isa in Isa::available() {
                let two = NonZeroUsize::new(2).expect("two");
                assert_eq!(gate(two, isa), plain, "{}, {n}", isa.name());
            }
            let (g, up) = (f64::from(x[0]), f64::from(x[n]));
            let exact = g / (1.0 + (-g).exp()) * up;
            assert!((f64::from(plain[0]) - exact).abs() <= exact.abs() * 1e-6);
        }
    }
}
