//! Attention with shared keys and values, over a whole sequence or over what a cache holds.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData, activation};

use crate::transformer::linear::{Linear, Projection, RowAdapter, Which};
use crate::transformer::norm::RmsNorm;
use crate::transformer::rotation::Rotation;

/// What is added to a score that must not count. Not infinity: shader languages allow compilers to
/// assume that there is none. Its exponential is zero beside any score of a finite model.
pub const MASKED: f32 = -1.0e30;

/// The learnt part of attention (Ainslie et al. 2023, "GQA": query head `h` reads the keys and
/// values of head `h / (heads / kv_heads)`).
#[derive(Module, Debug)]
pub struct Attention {
    /// `[hidden, heads * head_dim]`
    pub query: Linear,
    /// `[hidden, kv_heads * head_dim]`
    pub key: Linear,
    /// `[hidden, kv_heads * head_dim]`
    pub value: Linear,
    /// `[heads * head_dim, hidden]`
    pub output: Linear,
    /// Over each head of the queries, before the rotation (Qwen3).
    pub query_norm: Option<RmsNorm>,
    /// Over each head of the keys, before the rotation (Qwen3).
    pub key_norm: Option<RmsNorm>,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head; even.
    pub head_dim: usize,
}

/// Queries, keys and values of some rows.
#[derive(Clone, Debug)]
pub struct Heads {
    /// `[rows, heads, head_dim]`
    pub queries: Tensor<3>,
    /// `[rows, kv_heads, head_dim]`
    pub keys: Tensor<3>,
    /// `[rows, kv_heads, head_dim]`
    pub values: Tensor<3>,
}

impl Attention {
    /// Returns `rotate(norm(x Wq))`, `rotate(norm(x Wk))` and `x Wv` of rows `[rows, hidden]`, cut
    /// into heads.
    pub fn heads(&self, x: Tensor<2>, rotation: &Rotation, adapters: &[RowAdapter<'_>]) -> Heads {
        let [rows, _] = x.dims();
        let cut = |layer: &Linear, projection, heads: usize| {
            layer.forward_rows(x.clone(), Which::Dense(projection), adapters).reshape([
                rows,
                heads,
                self.head_dim,
            ])
        };
        let mut queries = cut(&self.query, Projection::Query, self.heads);
        let mut keys = cut(&self.key, Projection::Key, self.kv_heads);
        let values = cut(&self.value, Projection::Value, self.kv_heads);
        if let Some(norm) = &self.query_norm {
            queries = norm.forward(queries);
        }
        if let Some(norm) = &self.key_norm {
            keys = norm.forward(keys);
        }
        Heads { queries: rotation.forward(queries), keys: rotation.forward(keys), values }
    }

    /// Returns `x Wo`, `[rows, heads * head_dim]` to `[rows, hidden]`.
    pub fn output(&self, x: Tensor<2>, adapters: &[RowAdapter<'_>]) -> Tensor<2> {
        self.output.forward_rows(x, Which::Dense(Projection::Output), adapters)
    }
}

impl Heads {
    /// Lets each row attend to its own sequence, of which there are `batch` of equal length, one
    /// after the other. `bias` is `[1, tokens, tokens]`; the result `[rows, heads * head_dim]`.
    pub fn dense(self, batch: usize, bias: Tensor<3>) -> Tensor<2> {
        let [rows, heads, head_dim] = self.queries.dims();
        let [_, kv_heads, _] = self.keys.dims();
        let tokens = rows / batch;
        attend(
            self.queries.reshape([batch, tokens, heads, head_dim]),
            self.keys.reshape([batch, tokens, kv_heads, head_dim]),
            self.values.reshape([batch, tokens, kv_heads, head_dim]),
            bias,
        )
    }
}

/// Returns `softmax(q k^T / sqrt(head_dim) + bias) v` (Vaswani et al. 2017, equation 1), with the
/// softmax over the context.
///
/// `queries` is `[batch, tokens, heads, head_dim]`, `keys` and `values` are
/// `[batch, context, kv_heads, head_dim]`, `bias` is `[batch or 1, tokens, context]`, the result
/// `[batch * tokens, heads * head_dim]`.
pub fn attend(
    queries: Tensor<4>,
    keys: Tensor<4>,
    values: Tensor<4>,
    bias: Tensor<3>,
) -> Tensor<2> {
    let [batch, tokens, heads, head_dim] = queries.dims();
    let [_, context, kv_heads, _] = keys.dims();
    let group = heads / kv_heads;
    // Query heads that share keys become rows of one product: keys are never repeated.
    let q = queries
        .reshape([batch, tokens, kv_heads, group, head_dim])
        .permute([0, 2, 3, 1, 4])
        .reshape([batch, kv_heads, group * tokens, head_dim]);
    let scores = q.matmul(keys.permute([0, 2, 3, 1])) * (1.0 / (head_dim as f64).sqrt());
    let scores = scores.reshape([batch, kv_heads, group, tokens, context])
        + bias.unsqueeze_dims::<5>(&[1, 2]);
    let weights =
        activation::softmax(scores, 4).reshape([batch, kv_heads, group * tokens, context]);
    weights
        .matmul(values.permute([0, 2, 1, 3]))
        .reshape([batch, kv_heads, group, tokens, head_dim])
        .permute([0, 3, 1, 2, 4])
        .reshape([batch * tokens, heads * head_dim])
}

/// Returns the bias, `[1, tokens, tokens]`, under which no token sees a later one.
pub fn causal_bias(tokens: usize, device: &Device) -> Tensor<3> {
    let bias: Vec<f32> = (0..tokens)
        .flat_map(|query| (0..tokens).map(move |key| if key <= query { 0.0 } else { MASKED }))
        .collect();
    Tensor::from_data(TensorData::new(bias, [1, tokens, tokens]), device)
}
