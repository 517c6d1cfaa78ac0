//! From token ids to rows, and from rows to logits where the two are tied.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor};

use crate::transformer::linear::widened;

/// The table of tokens.
#[derive(Module, Debug)]
pub struct Embedding {
    /// `[hidden, vocab]`: one column for each token. As the output head, which is multiplied with
    /// in full for every token, it must be contiguous this way round; looking a column up is
    /// cheap either way.
    pub weight: Param<Tensor<2>>,
}

impl Embedding {
    /// Returns the columns of these tokens as rows, `[rows]` to `[rows, hidden]`.
    pub fn forward(&self, tokens: Tensor<1, Int>) -> Tensor<2> {
        widened(self.weight.val().select(1, tokens)).transpose()
    }

    /// Returns `x W`, `[rows, hidden]` to `[rows, vocab]`.
    pub fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(widened(self.weight.val()))
    }
}
