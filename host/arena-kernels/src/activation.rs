//! Functions of single elements: the gate of the feed-forward network, and addition.

use crate::context::Context;
use crate::reduction::exp;

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
    let _ = context;
    for (gate_up, out) in gate_up.chunks_exact(2 * n).zip(out.chunks_exact_mut(n)) {
        let (gates, ups) = gate_up.split_at(n);
        for ((out, gate), up) in out.iter_mut().zip(gates).zip(ups) {
            *out = gate / (1.0 + exp(-gate)) * up;
        }
    }
}

/// Adds `y` to `x`.
///
/// # Panics
/// If the lengths differ.
pub fn add(x: &mut [f32], y: &[f32]) {
    assert!(x.len() == y.len(), "{} elements and {}", x.len(), y.len());
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}
