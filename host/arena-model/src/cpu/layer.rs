//! The weights of one layer.

use arena_kernels::matrix::Matrix;
use arena_weights::config::ModelConfig;

use crate::error::EngineError;
use crate::executor::ExecutorError;

use super::experts::Experts;
use super::network::Source;

/// One transformer layer.
pub(super) struct Layer {
    pub attention_norm: Vec<f32>,
    /// Queries, keys and values, one below the other.
    pub queries_keys_values: Matrix,
    /// Norms of each head's queries and keys, if the architecture has them.
    pub head_norms: Option<HeadNorms>,
    pub output: Matrix,
    pub feed_forward_norm: Vec<f32>,
    pub feed_forward: FeedForward,
}

pub(super) struct HeadNorms {
    pub queries: Vec<f32>,
    pub keys: Vec<f32>,
}

pub(super) enum FeedForward {
    Dense(Dense),
    Experts(Experts),
}

/// `down(silu(gate(x)) * up(x))`.
pub(super) struct Dense {
    /// Gate and up, one below the other.
    pub gate_up: Matrix,
    pub down: Matrix,
}

impl Layer {
    pub fn read(
        source: &mut Source<'_>,
        config: &ModelConfig,
        index: usize,
    ) -> Result<Layer, EngineError> {
        let name = |part: &str| format!("model.layers.{index}.{part}.weight");
        let (hidden, head_dim) = (config.hidden, config.head_dim);
        let (query_rows, key_rows) = (config.heads * head_dim, config.kv_heads * head_dim);
        let parts = [
            (name("self_attn.q_proj"), query_rows),
            (name("self_attn.k_proj"), key_rows),
            (name("self_attn.v_proj"), key_rows),
        ];
        let head_norms = match config.architecture.has_head_norms() {
            true => Some(HeadNorms {
                queries: source.vector(&name("self_attn.q_norm"), head_dim)?,
                keys: source.vector(&name("self_attn.k_norm"), head_dim)?,
            }),
            false => None,
        };
        let feed_forward = match config.moe {
            Some(moe) => FeedForward::Experts(Experts::read(source, config, moe, index)?),
            None => FeedForward::Dense(Dense {
                gate_up: source.matrix(
                    &[(name("mlp.gate_proj"), config.ffn), (name("mlp.up_proj"), config.ffn)],
                    hidden,
                )?,
                down: source.matrix(&[(name("mlp.down_proj"), hidden)], config.ffn)?,
            }),
        };
        Ok(Layer {
            attention_norm: source.vector(&name("input_layernorm"), hidden)?,
            queries_keys_values: source.matrix(&parts, hidden)?,
            head_norms,
            output: source.matrix(&[(name("self_attn.o_proj"), hidden)], query_rows)?,
            feed_forward_norm: source.vector(&name("post_attention_layernorm"), hidden)?,
            feed_forward,
        })
    }
}

/// Cuts the bytes of `count` equally large matrices that lie one behind the other.
pub(super) fn cut<'a>(
    name: &str,
    bytes: &'a [u8],
    count: usize,
) -> Result<Vec<&'a [u8]>, ExecutorError> {
    if count == 0 || bytes.is_empty() || !bytes.len().is_multiple_of(count) {
        let detail = format!("{} bytes are not {count} equal matrices", bytes.len());
        return Err(ExecutorError::Tensor { tensor: name.to_owned(), detail });
    }
    Ok(bytes.chunks(bytes.len() / count).collect())
}
