//! From model files to a transformer on a device.
//!
//! Weights become `f32`, or stay `bf16` where they are stored so, and linear layers `[in, out]`.
//! Tensors are read one at a time, so that beside the model itself at most one of them is in
//! memory.

use arena_kernels::format::Format;
use arena_model::executor::ExecutorError;
use arena_weights::config::{Architecture, ModelConfig};
use arena_weights::weights::Weights;
use burn::module::Param;
use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::transformer::attention::Attention;
use crate::transformer::embedding::Embedding;
use crate::transformer::linear::Linear;
use crate::transformer::mlp::Mlp;
use crate::transformer::moe::Moe;
use crate::transformer::norm::RmsNorm;
use crate::transformer::{FeedForward, Layer, Transformer};

/// Side of the square tiles in which a matrix is transposed: two tiles fit the nearest cache.
const TILE: usize = 32;

/// Returns the model of some files on a device.
///
/// # Errors
/// [`ExecutorError`] names the tensor that is missing or unsound.
pub fn load(weights: &Weights, device: &Device) -> Result<Transformer, ExecutorError> {
    build(weights.config(), device, &|name, expected| {
        Ok(read(weights, name, expected)?.to_f32().into())
    })
}

/// Does what `load` does, but keeps matrices in `bf16` that are stored so: half the memory. They
/// are widened where they are used, so that every result is the same, and takes longer.
///
/// # Errors
/// As `load`; or the device has no `bf16`.
pub fn load_as_stored(weights: &Weights, device: &Device) -> Result<Transformer, ExecutorError> {
    if !device.supports_dtype(DType::BF16) {
        return Err(ExecutorError::Device("it has no numbers of `bf16`".to_string()));
    }
    build(weights.config(), device, &|name, expected| {
        let tensor = read(weights, name, expected)?;
        let dtype = if tensor.format == Format::Bf16 { DType::BF16 } else { DType::F32 };
        Ok(Stored { values: tensor.to_f32(), dtype })
    })
}

fn read(
    weights: &Weights,
    name: &str,
    expected: &[usize],
) -> Result<arena_weights::tensor::Tensor, ExecutorError> {
    let tensor = weights.tensor(name)?;
    if tensor.shape != expected {
        let found = &tensor.shape;
        let detail = format!("shape is {found:?}, the model's numbers make it {expected:?}");
        return Err(ExecutorError::Tensor { tensor: name.to_string(), detail });
    }
    Ok(tensor)
}

/// The weights of a tensor.
pub struct Stored {
    /// In storage order.
    pub values: Vec<f32>,
    /// What a matrix of them is kept in, which holds every value exactly.
    pub dtype: DType,
}

impl From<Vec<f32>> for Stored {
    fn from(values: Vec<f32>) -> Stored {
        Stored { values, dtype: DType::F32 }
    }
}

/// Gives the weights of a tensor, by its canonical name and shape, outermost first.
pub type Read<'a> = dyn Fn(&str, &[usize]) -> Result<Stored, ExecutorError> + 'a;

/// Returns a model of this shape on a device, its weights from wherever `read` has them.
///
/// # Errors
/// Those of `read`.
///
/// # Panics
/// If `read` gives another number of weights than the shape has.
pub fn build(
    config: &ModelConfig,
    device: &Device,
    read: &Read<'_>,
) -> Result<Transformer, ExecutorError> {
    let source = Source { config, device, read };
    let (hidden, vocab) = (config.hidden, config.vocab);
    let embedding = source.transposed("model.embed_tokens.weight", hidden, vocab)?;
    let head = match config.tied_embeddings {
        true => None,
        false => Some(source.linear("lm_head.weight", hidden, vocab)?),
    };
    Ok(Transformer {
        embedding: Embedding { weight: Param::from_tensor(embedding) },
        layers: (0..config.layers).map(|layer| source.layer(layer)).collect::<Result<_, _>>()?,
        norm: source.norm("model.norm.weight", hidden)?,
        head,
        rope_theta: f64::from(config.rope_theta),
    })
}

/// Where tensors come from, and where they go.
struct Source<'a> {
    config: &'a ModelConfig,
    device: &'a Device,
    read: &'a Read<'a>,
}

impl Source<'_> {
    fn layer(&self, layer: usize) -> Result<Layer, ExecutorError> {
        let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
        let hidden = self.config.hidden;
        let feed_forward = match self.config.moe {
            None => FeedForward::Dense(self.mlp(layer)?),
            Some(_) => FeedForward::Experts(self.moe(layer)?),
        };
        Ok(Layer {
            attention_norm: self.norm(&name("input_layernorm"), hidden)?,
            attention: self.attention(layer)?,
            feed_forward_norm: self.norm(&name("post_attention_layernorm"), hidden)?,
            feed_forward,
        })
    }

    fn attention(&self, layer: usize) -> Result<Attention, ExecutorError> {
        let ModelConfig { hidden, heads, kv_heads, head_dim, .. } = *self.config;
        let name = |part: &str| format!("model.layers.{layer}.self_attn.{part}.weight");
        let norm = |part: &str| match self.config.architecture {
            Architecture::Llama => Ok(None),
            Architecture::Qwen3 | Architecture::Qwen3Moe => {
                self.norm(&name(part), head_dim).map(Some)
            }
        };
        Ok(Attention {
            query: self.linear(&name("q_proj"), hidden, heads * head_dim)?,
            key: self.linear(&name("k_proj"), hidden, kv_heads * head_dim)?,
            value: self.linear(&name("v_proj"), hidden, kv_heads * head_dim)?,
            output: self.linear(&name("o_proj"), heads * head_dim, hidden)?,
            query_norm: norm("q_norm")?,
            key_norm: norm("k_norm")?,
            heads,
            kv_heads,
            head_dim,
        })
    }

    fn mlp(&self, layer: usize) -> Result<Mlp, ExecutorError> {
        let ModelConfig { hidden, ffn, .. } = *self.config;
        let name = |part: &str| format!("model.layers.{layer}.mlp.{part}.weight");
        Ok(Mlp {
            gate: self.linear(&name("gate_proj"), hidden, ffn)?,
            up: self.linear(&name("up_proj"), hidden, ffn)?,
            down: self.linear(&name("down_proj"), ffn, hidden)?,
        })
    }

    fn moe(&self, layer: usize) -> Result<Moe, ExecutorError> {
        let hidden = self.config.hidden;
        let moe = self.config.moe.expect("a mixture is asked for where there is one");
        let name = |part: &str| format!("model.layers.{layer}.mlp.{part}.weight");
        let gate = self.stack(&name("experts.gate_proj"), moe.experts, hidden, moe.ffn)?;
        let up = self.stack(&name("experts.up_proj"), moe.experts, hidden, moe.ffn)?;
        let down = self.stack(&name("experts.down_proj"), moe.experts, moe.ffn, hidden)?;
        let experts = gate.into_iter().zip(up).zip(down);
        Ok(Moe {
            router: self.linear(&name("gate"), hidden, moe.experts)?,
            experts: experts.map(|((gate, up), down)| Mlp { gate, up, down }).collect(),
            experts_per_token: moe.experts_per_token,
            normalise: moe.normalise,
        })
    }

    fn norm(&self, name: &str, columns: usize) -> Result<RmsNorm, ExecutorError> {
        let gain = self.read(name, &[columns])?.values;
        let gain = Tensor::from_data(TensorData::new(gain, [columns]), self.device);
        Ok(RmsNorm { gain: Param::from_tensor(gain), epsilon: f64::from(self.config.rms_eps) })
    }

    fn linear(&self, name: &str, inputs: usize, outputs: usize) -> Result<Linear, ExecutorError> {
        self.transposed(name, inputs, outputs).map(Linear::new)
    }

    /// Reads `[experts, out, in]` as one layer for each expert.
    fn stack(
        &self,
        name: &str,
        experts: usize,
        inputs: usize,
        outputs: usize,
    ) -> Result<Vec<Linear>, ExecutorError> {
        let stack = self.read(name, &[experts, outputs, inputs])?;
        let layer = |expert: &[f32]| Linear::new(self.matrix(expert, stack.dtype, inputs, outputs));
        Ok(stack.values.chunks_exact(inputs * outputs).map(layer).collect())
    }

    /// Reads `[out, in]` as `[in, out]`.
    fn transposed(
        &self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Tensor<2>, ExecutorError> {
        let stored = self.read(name, &[outputs, inputs])?;
        Ok(self.matrix(&stored.values, stored.dtype, inputs, outputs))
    }

    fn matrix(&self, values: &[f32], dtype: DType, inputs: usize, outputs: usize) -> Tensor<2> {
        let data = TensorData::new(transpose(values, inputs, outputs), [inputs, outputs]);
        Tensor::from_data(data.convert_dtype(dtype), (self.device, dtype))
    }

    fn read(&self, name: &str, shape: &[usize]) -> Result<Stored, ExecutorError> {
        let stored = (self.read)(name, shape)?;
        assert_eq!(stored.values.len(), shape.iter().product::<usize>(), "`{name}` is {shape:?}");
        Ok(stored)
    }
}

/// Returns row-major `[out, in]` as a contiguous tensor `[in, out]`.
///
/// # Panics
/// If `values` has not `inputs * outputs` elements.
pub fn matrix(values: &[f32], inputs: usize, outputs: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(
        TensorData::new(transpose(values, inputs, outputs), [inputs, outputs]),
        device,
    )
}

/// Returns row-major `[outputs, inputs]` as row-major `[inputs, outputs]`.
pub(crate) fn transpose(values: &[f32], inputs: usize, outputs: usize) -> Vec<f32> {
    assert_eq!(values.len(), inputs * outputs, "a matrix of {inputs} by {outputs}");
    let mut transposed = vec![0.0; values.len()];
    for outputs_from in (0..outputs).step_by(TILE) {
        for inputs_from in (0..inputs).step_by(TILE) {
            for output in outputs_from..usize::min(outputs_from + TILE, outputs) {
                for input in inputs_from..usize::min(inputs_from + TILE, inputs) {
                    transposed[input * outputs + output] = values[output * inputs + input];
                }
            }
        }
    }
    transposed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_matrix_has_its_rows_as_columns() {
        let (inputs, outputs) = (TILE + 3, 2 * TILE + 1);
        let values: Vec<f32> = (0..inputs * outputs).map(|index| index as f32).collect();
        let transposed = transpose(&values, inputs, outputs);
        assert_eq!(transposed[5 * outputs + 40], values[40 * inputs + 5]);
        assert_eq!(transpose(&transposed, outputs, inputs), values);
    }
}
