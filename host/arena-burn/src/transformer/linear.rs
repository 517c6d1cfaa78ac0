//! Linear layers, and low-rank adapters on them.
//!
//! An adapter's change is computed as `(x A) B`, never as a full matrix `A B`: that would cost as
//! much memory as the weight itself, and its gradient as much again.

use std::collections::BTreeMap;

use burn::module::{Module, Param};
use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor};

/// A linear layer without bias, with a low-rank adapter of its own where one is trained.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[in, out]`, contiguous: burn multiplies a transposed view several times slower. `f32`, or
    /// narrower where it is not trained.
    pub weight: Param<Tensor<2>>,
    /// Applies to every row.
    pub lora: Option<Lora>,
}

/// A low-rank change of a linear layer (Hu et al. 2021, "LoRA", section 4.1).
#[derive(Module, Debug)]
pub struct Lora {
    /// `[in, rank]`
    pub a: Param<Tensor<2>>,
    /// `[rank, out]`
    pub b: Param<Tensor<2>>,
    /// `alpha / rank`
    pub scale: f64,
}

/// Which linear layer of a transformer's layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Projection {
    /// To the queries of attention.
    Query,
    /// To its keys.
    Key,
    /// To its values.
    Value,
    /// From its heads.
    Output,
    /// To what the feed-forward part's activation is taken of.
    Gate,
    /// To what that is multiplied with.
    Up,
    /// From their product.
    Down,
}

/// A linear layer of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// Of attention, or of the dense feed-forward part.
    Dense(Projection),
    /// What chooses experts.
    Router,
    /// Of an expert, by its index.
    Expert(usize, Projection),
}

/// The changes of one layer.
pub type LayerAdapter = BTreeMap<Which, Lora>;

/// An adapter's part for one layer, and the rows of a batch that it applies to.
#[derive(Clone, Copy)]
pub struct RowAdapter<'a> {
    /// Different rows, `[count]`.
    pub rows: &'a Tensor<1, Int>,
    /// The same, ascending.
    pub indices: &'a [usize],
    /// What changes for them.
    pub layer: &'a LayerAdapter,
}

/// Returns a tensor as `f32`, in which rows are.
pub fn widened(tensor: Tensor<2>) -> Tensor<2> {
    match tensor.dtype() {
        DType::F32 => tensor,
        _ => tensor.cast(DType::F32),
    }
}

impl Lora {
    /// Returns `scale (x A) B`, from `[rows, in]` to `[rows, out]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.a.val()).matmul(self.b.val()) * self.scale
    }
}

impl Linear {
    /// Returns a layer with this weight, `[in, out]`, and no adapter.
    pub fn new(weight: Tensor<2>) -> Linear {
        Linear { weight: Param::from_tensor(weight), lora: None }
    }

    /// Returns `x W + scale (x A) B`, from `[rows, in]` to `[rows, out]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let weight = widened(self.weight.val());
        let Some(lora) = &self.lora else { return x.matmul(weight) };
        x.clone().matmul(weight) + lora.forward(x)
    }

    /// Returns what `forward` does, plus `scale (x A) B` for the rows of every adapter that
    /// changes this layer; `[rows, in]` to `[rows, out]`.
    pub fn forward_rows(
        &self,
        x: Tensor<2>,
        which: Which,
        adapters: &[RowAdapter<'_>],
    ) -> Tensor<2> {
        let mut y = self.forward(x.clone());
        for adapter in adapters {
            let Some(lora) = adapter.layer.get(&which) else { continue };
            let change = lora.forward(x.clone().select(0, adapter.rows.clone()));
            y = y.select_assign(0, adapter.rows.clone(), change, IndexingUpdateOp::Add);
        }
        y
    }
}
