//! The dense feed-forward part.

use burn::module::Module;
use burn::tensor::{Tensor, activation};

use crate::transformer::linear::{Linear, Projection, RowAdapter, Which};

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
    /// `silu(z) = z / (1 + e^-z)`. `which` says what adapters call each of the three.
    pub fn forward(
        &self,
        x: Tensor<2>,
        which: impl Fn(Projection) -> Which,
        adapters: &[RowAdapter<'_>],
    ) -> Tensor<2> {
        let gate = self.gate.forward_rows(x.clone(), which(Projection::Gate), adapters);
        let up = self.up.forward_rows(x, which(Projection::Up), adapters);
        self.down.forward_rows(activation::silu(gate) * up, which(Projection::Down), adapters)
    }

    /// Returns one of the three.
    pub fn linear(&self, projection: Projection) -> Option<&Linear> {
        match projection {
            Projection::Gate => Some(&self.gate),
            Projection::Up => Some(&self.up),
            Projection::Down => Some(&self.down),
            _ => None,
        }
    }
}
