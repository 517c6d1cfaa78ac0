//! The dense feed-forward part.

use burn::module::Module;
use burn::tensor::{Tensor, activation};

use crate::transformer::linear::{Linear, Projection, RowAdapter};

/// A feed-forward part with a gate (Shazeer 2020, "GLU Variants Improve Transformer", SwiGLU).
#[derive(Module, Debug)]
pub struct Mlp {
    /// `[hidden, ffn]`
    pub gate: Linear,
    /// `[hidden, ffn]`
    pub up: Linear,
    /// `[ffn, hidden]`
    pub down: Linear,
}

impl Mlp {
    /// Returns `(silu(x Wgate) * (x Wup)) Wdown`, `[rows, hidden]` to the same shape, where
    /// `silu(z) = z / (1 + e^-z)`.
    pub fn forward(&self, x: Tensor<2>, adapters: &[RowAdapter<'_>]) -> Tensor<2> {
        let gate = self.gate.forward_rows(x.clone(), Projection::Gate, adapters);
        let up = self.up.forward_rows(x, Projection::Up, adapters);
        self.down.forward_rows(activation::silu(gate) * up, Projection::Down, adapters)
    }
}
