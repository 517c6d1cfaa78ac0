//! Gradient of the gate of the feed-forward network.

// Threads write different rows of the same output.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]

use crate::context::{Context, row_parts};
use crate::reduction;
use crate::rows::exp;
use crate::shared::SharedMut;
use crate::simd::{self, Kernel, Simd};

/// Writes the gradient of the inputs of `activation::swiglu` from that of its outputs, `dout`. With
/// `s = 1 / (1 + exp(-gate))`: `dgate = dout * up * s * (1 + gate * (1 - s))`, and
/// `dup = dout * gate * s`. Shapes: `gate_up` and `dgate_up` are `[m, 2 * n]`, `dout` is `[m, n]`.
///
/// Source: derived from Shazeer 2020, equation 6.
///
/// # Panics
/// If the lengths do not fit.
pub fn swiglu_gradient(
    context: &Context,
    n: usize,
    gate_up: &[f32],
    dout: &[f32],
    dgate_up: &mut [f32],
) {
    assert!(n > 0 && dout.len().is_multiple_of(n), "{} elements in rows of {n}", dout.len());
    let lens = (gate_up.len(), dgate_up.len());
    assert!(lens == (2 * dout.len(), 2 * dout.len()), "{lens:?}, {} outputs", dout.len());
    let parts = row_parts(dout.len() / n, 16 * n);
    let shared = SharedMut::new(dgate_up);
    context.run(parts.len(), &|part| {
        for row in parts.rows(part) {
            let (gates, ups) = gate_up[row * 2 * n..][..2 * n].split_at(n);
            // SAFETY: every row is of one part, and `dgate_up` outlives the region.
            let out = unsafe { shared.elements(row * 2 * n, 2 * n) };
            let (dgates, dups) = out.split_at_mut(n);
            let kernel = Row { gates, ups, dout: &dout[row * n..][..n], dgates, dups };
            simd::run(context.isa(), kernel, plain_row);
        }
    });
}

struct Row<'a> {
    gates: &'a [f32],
    ups: &'a [f32],
    dout: &'a [f32],
    dgates: &'a mut [f32],
    dups: &'a mut [f32],
}

impl Kernel for Row<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let n = self.dout.len();
        let one = S::splat(1.0);
        let mut at = 0;
        while at + S::LANES <= n {
            let gate = S::load(self.gates.as_ptr().add(at));
            let s = S::div(one, S::add(one, exp::<S>(S::sub(S::splat(0.0), gate))));
            let dout = S::mul(S::load(self.dout.as_ptr().add(at)), s);
            let slope = S::fma(gate, S::sub(one, s), one);
            let up = S::load(self.ups.as_ptr().add(at));
            S::store(self.dgates.as_mut_ptr().add(at), S::mul(S::mul(dout, up), slope));
            S::store(self.dups.as_mut_ptr().add(at), S::mul(dout, gate));
            at += S::LANES;
        }
        plain_row(Row {
            gates: &self.gates[at..],
            ups: &self.ups[at..],
            dout: &self.dout[at..],
            dgates: &mut self.dgates[at..],
            dups: &mut self.dups[at..],
        });
    }
}

#[inline(always)]
fn plain_row(row: Row<'_>) {
    for (at, dout) in row.dout.iter().enumerate() {
        let gate = row.gates[at];
        let s = 1.0 / (1.0 + reduction::exp(0.0 - gate));
        let dout = dout * s;
        row.dgates[at] = dout * row.ups[at] * gate.mul_add(1.0 - s, 1.0);
        row.dups[at] = dout * gate;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::isa::Isa;

    #[test]
    fn every_instruction_set_gives_the_same_bits_and_the_right_slope() {
        for n in [1, 16, 37, 128] {
            let numbers = |count: usize, by: f32| -> Vec<f32> {
                (0..count).map(|i| ((i * 7919) % 1_009) as f32 / by - 504.0 / by).collect()
            };
            let (gate_up, dout) = (numbers(6 * n, 60.0), numbers(3 * n, 250.0));
            let compute = |threads, isa| {
                let context = Context::new(threads, isa).expect("available");
                let mut out = vec![0.0; 6 * n];
                swiglu_gradient(&context, n, &gate_up, &dout, &mut out);
                out
            };
            let plain = compute(NonZeroUsize::MIN, Isa::Portable);
            for isa in Isa::available() {
                let two = NonZeroUsize::new(2).expect("two");
                assert_eq!(compute(two, isa), plain, "{} {n}", isa.name());
            }
            for row in 0..3 {
                let (g, u) = (f64::from(gate_up[row * 2 * n]), f64::from(gate_up[row * 2 * n + n]));
                let gated = |g: f64, u: f64| g / (1.0 + (-g).exp()) * u;
                let d = f64::from(dout[row * n]);
                let slope = (gated(g + 1e-5, u) - gated(g - 1e-5, u)) / 2e-5 * d;
                assert!((slope - f64::from(plain[row * 2 * n])).abs() < 1e-4, "{row} {n}");
                let slope = gated(g, 1.0) * d;
                assert!((slope - f64::from(plain[row * 2 * n + n])).abs() < 1e-4, "{row} {n}");
            }
        }
    }
}
