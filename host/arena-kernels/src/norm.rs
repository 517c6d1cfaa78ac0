//! Root-mean-square normalisation.
//!
//! Not here: the same by vectors (`rows`).

// Threads write different rows of the same output.
#![allow(unsafe_code)]

use crate::context::{Context, row_parts};
use crate::reduction::{PARTIALS, sum_squares_from};
use crate::rows::RmsNorm;
use crate::shared::SharedMut;
use crate::simd;

/// Writes `out[i] = x[i] * scale * weight[i]`, where `scale = 1 / sqrt(mean(x^2) + epsilon)`, for
/// every row. Shapes: `x` and `out` are `[m, weight.len()]`.
///
/// Source: Zhang and Sennrich 2019, equation 4, with the epsilon of Llama.
///
/// # Panics
/// If `x` is no whole number of rows, or `out` has another length.
pub fn rms_norm(context: &Context, x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    let n = weight.len();
    assert!(n > 0, "rows without elements");
    assert!(x.len().is_multiple_of(n), "{} elements in rows of {n}", x.len());
    assert!(x.len() == out.len(), "{} elements in, {} out", x.len(), out.len());
    let parts = row_parts(x.len() / n, n);
    let out = SharedMut::new(out);
    context.run(parts.len(), &|part| {
        for row in parts.rows(part) {
            let x = &x[row * n..][..n];
            // SAFETY: every row is of one part, and `out` outlives the region.
            let out = unsafe { out.elements(row * n, n) };
            let kernel = RmsNorm { x, weight, epsilon, out };
            simd::run(context.isa(), kernel, |row| {
                let squares = sum_squares_from([0.0; PARTIALS], row.x);
                scale_plainly(row.x, row.weight, scale(squares, n, epsilon), row.out);
            });
        }
    });
}

#[inline(always)]
pub(crate) fn scale(squares: f32, n: usize, epsilon: f32) -> f32 {
    1.0 / (squares / n as f32 + epsilon).sqrt()
}

#[inline(always)]
pub(crate) fn scale_plainly(x: &[f32], weight: &[f32], scale: f32, out: &mut [f32]) {
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = x * scale * weight;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::isa::Isa;

    #[test]
    fn every_instruction_set_normalises_to_the_same_bits() {
        for n in [1, 15, 16, 64, 100, 577] {
            let x: Vec<f32> = (0..3 * n).map(|i| (i * 7919 % 1009) as f32 / 500.0 - 1.0).collect();
            let weight: Vec<f32> = (0..n).map(|i| 1.0 + i as f32 / 64.0).collect();
            let norm = |isa| {
                let context = Context::new(NonZeroUsize::MIN, isa).expect("available");
                let mut out = vec![0.0; x.len()];
                rms_norm(&context, &x, &weight, 1e-5, &mut out);
                out
            };
            let plain = norm(Isa::Portable);
            for isa in Isa::available() {
                assert_eq!(norm(isa), plain, "{}, {n}", isa.name());
            }
            let squares: f64 = x[..n].iter().map(|x| f64::from(*x).powi(2)).sum();
            let first = f64::from(x[0]) / (squares / n as f64 + 1e-5).sqrt();
            assert!((f64::from(plain[0]) - first).abs() < 1e-5, "{} is not {first}", plain[0]);
        }
    }
}
