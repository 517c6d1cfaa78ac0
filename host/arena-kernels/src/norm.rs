//! Root-mean-square normalisation.

use crate::context::Context;
use crate::reduction::sum_squares;

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
    let _ = context;
    for (x, out) in x.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        let scale = 1.0 / (sum_squares(x) / n as f32 + epsilon).sqrt();
        for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
            *out = x * scale * weight;
        }
    }
}
