//! The transformer: Llama, Qwen3 and Qwen3 with a mixture of experts.
//!
//! Every layer takes rows, `[rows, hidden]`, and does not know how the rows lie in sequences; only
//! attention does, and that is handed in. So one model serves a batch out of a paged cache
//! (`executor`) and trains on dense `[batch, tokens]`, with the same arithmetic. Everything is
//! computed in `f32`. Every weight is a burn parameter: on an autodiff device, `forward` is
//! differentiable in all of them.
//!
//! Not here: where weights come from (`loading`), the cache (`cache`).

pub mod attention;
pub mod embedding;
pub mod linear;
pub mod mlp;
pub mod moe;
pub mod norm;
pub mod rotation;

use std::collections::BTreeSet;
use std::slice;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};

use crate::transformer::attention::{Attention, Heads, causal_bias};
use crate::transformer::embedding::Embedding;
use crate::transformer::linear::{Linear, Projection, RowAdapter, Which};
use crate::transformer::mlp::Mlp;
use crate::transformer::moe::Moe;
use crate::transformer::norm::RmsNorm;
use crate::transformer::rotation::Rotation;

/// A language model: from token ids to logits.
#[derive(Module, Debug)]
pub struct Transformer {
    /// From ids to rows, and back where `head` is absent.
    pub embedding: Embedding,
    /// In the order in which they are applied.
    pub layers: Vec<Layer>,
    /// Before the output head.
    pub norm: RmsNorm,
    /// `[hidden, vocab]`; absent where the embedding is the output head (tied).
    pub head: Option<Linear>,
    /// Base of the rotary position angles.
    pub rope_theta: f64,
}

/// One layer: attention, then a feed-forward part, each on a normalised copy of the rows and
/// added to them.
#[derive(Module, Debug)]
pub struct Layer {
    /// Before attention.
    pub attention_norm: RmsNorm,
    /// Mixes rows of one sequence.
    pub attention: Attention,
    /// Before the feed-forward part.
    pub feed_forward_norm: RmsNorm,
    /// Changes every row by itself.
    pub feed_forward: FeedForward,
}

/// The part of a layer that changes every row by itself.
// The two differ in size by a few hundred bytes, and there is one for each layer.
#[expect(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum FeedForward {
    /// One for all rows.
    Dense(Mlp),
    /// A few of many, chosen for each row.
    Experts(Moe),
}

impl Layer {
    /// Returns the first that `forward_routed` does, routed anew.
    pub fn forward(
        &self,
        x: Tensor<2>,
        rotation: &Rotation,
        adapters: &[RowAdapter<'_>],
        attend: impl FnOnce(Heads) -> Tensor<2>,
    ) -> Tensor<2> {
        self.forward_routed(x, rotation, adapters, None, attend).0
    }

    /// Returns `h = x + attention(norm(x))`, then `h + feed_forward(norm(h))`; and the experts
    /// that each row went through, `[rows, experts_per_token]`, none of a dense layer.
    ///
    /// `x` and the result are `[rows, hidden]`. `attend` gets rotated queries
    /// `[rows, heads, head_dim]` with keys and values `[rows, kv_heads, head_dim]`, and returns
    /// what each row attends to, `[rows, heads * head_dim]`. `replayed` are the experts that rows
    /// have to go through.
    pub fn forward_routed(
        &self,
        x: Tensor<2>,
        rotation: &Rotation,
        adapters: &[RowAdapter<'_>],
        replayed: Option<&[u16]>,
        attend: impl FnOnce(Heads) -> Tensor<2>,
    ) -> (Tensor<2>, Vec<u16>) {
        let normal = self.attention_norm.forward(x.clone());
        let mixed = attend(self.attention.heads(normal, rotation, adapters));
        let h = x + self.attention.output(mixed, adapters);
        let normal = self.feed_forward_norm.forward(h.clone());
        let (change, experts) = match &self.feed_forward {
            FeedForward::Dense(mlp) => (mlp.forward(normal, Which::Dense, adapters), Vec::new()),
            FeedForward::Experts(moe) => moe.forward(normal, replayed, adapters),
        };
        (h + change, experts)
    }

    /// Returns every linear layer, those of all experts included.
    fn linears(&self) -> Vec<&Linear> {
        let Attention { query, key, value, output, .. } = &self.attention;
        let mut linears = vec![query, key, value, output];
        let parts = match &self.feed_forward {
            FeedForward::Dense(mlp) => slice::from_ref(mlp),
            FeedForward::Experts(moe) => {
                linears.push(&moe.router);
                &moe.experts
            }
        };
        linears.extend(parts.iter().flat_map(|mlp| [&mlp.gate, &mlp.up, &mlp.down]));
        linears
    }

    /// Returns a linear layer, if the layer has it.
    pub fn linear(&self, which: Which) -> Option<&Linear> {
        let attention = &self.attention;
        match (which, &self.feed_forward) {
            (Which::Dense(Projection::Query), _) => Some(&attention.query),
            (Which::Dense(Projection::Key), _) => Some(&attention.key),
            (Which::Dense(Projection::Value), _) => Some(&attention.value),
            (Which::Dense(Projection::Output), _) => Some(&attention.output),
            (Which::Dense(projection), FeedForward::Dense(mlp)) => mlp.linear(projection),
            (Which::Router, FeedForward::Experts(moe)) => Some(&moe.router),
            (Which::Expert(expert, projection), FeedForward::Experts(moe)) => {
                moe.experts.get(expert)?.linear(projection)
            }
            _ => None,
        }
    }
}

impl Transformer {
    /// Returns what the matrices of weights are kept in, such as `f32` or `bf16+f32`.
    pub fn formats(&self) -> String {
        let linears = self.layers.iter().flat_map(Layer::linears).chain(&self.head);
        let matrices = linears.map(|linear| &linear.weight).chain([&self.embedding.weight]);
        let formats: BTreeSet<&str> = matrices.map(|weight| weight.val().dtype().name()).collect();
        formats.into_iter().collect::<Vec<_>>().join("+")
    }

    /// Returns logits, `[batch, tokens, vocab]`, of dense token ids, `[batch, tokens]`: those at
    /// `[b, t]` are for the token that follows `tokens[b, ..=t]`. Every sequence starts at
    /// position 0; one that is shorter is filled up on the right with any id.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [batch, count] = tokens.dims();
        let logits = self.logits(self.hidden(tokens));
        let [_, vocab] = logits.dims();
        logits.reshape([batch, count, vocab])
    }

    /// Returns the rows before the output head, `[batch * tokens, hidden]`, of dense token ids,
    /// `[batch, tokens]`. The head is the dearest single product: give `logits` only the rows
    /// whose logits matter.
    pub fn hidden(&self, tokens: Tensor<2, Int>) -> Tensor<2> {
        let [batch, count] = tokens.dims();
        let device = tokens.device();
        let positions: Vec<u32> = (0..batch).flat_map(|_| 0..count as u32).collect();
        let rotation = self.rotation(&positions, &device);
        let bias = causal_bias(count, &device);
        let mut x = self.embedding.forward(tokens.reshape([batch * count]));
        for layer in &self.layers {
            x = layer.forward(x, &rotation, &[], |heads| heads.dense(batch, bias.clone()));
        }
        x
    }

    /// Returns `norm(x) W`, `[rows, vocab]`, of rows that left the last layer, `[rows, hidden]`.
    /// `W` is the head, or the embedding where they are tied.
    pub fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        let normal = self.norm.forward(x);
        match &self.head {
            Some(head) => head.forward(normal),
            None => self.embedding.logits(normal),
        }
    }

    /// Returns the rotations of rows at these positions.
    pub fn rotation(&self, positions: &[u32], device: &Device) -> Rotation {
        let head_dim = self.layers.first().map_or(2, |layer| layer.attention.head_dim);
        Rotation::new(positions, head_dim, self.rope_theta, device)
    }
}
