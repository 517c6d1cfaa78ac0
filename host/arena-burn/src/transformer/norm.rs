//! Root-mean-square norm.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// Scales rows to a mean square of one, then each column by a learnt gain (Zhang and Sennrich
/// 2019, "Root Mean Square Layer Normalization", equation 4).
#[derive(Module, Debug)]
pub struct RmsNorm {
    /// `[columns]`
    pub gain: Param<Tensor<1>>,
    /// Added under the root.
    pub epsilon: f64,
}

impl RmsNorm {
    /// Returns `x / sqrt(mean(x^2) + epsilon) * gain` over the last dimension, `[.., columns]` to
    /// the same shape.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let mean = x.clone().square().mean_dim(D - 1);
        x / (mean + self.epsilon).sqrt() * self.gain.val().unsqueeze()
    }
}
