//! A mixture of experts: each row goes through the few experts that its router likes best.
//!
//! Shapes: router `[experts, hidden]`. With `p = softmax(router(x))`, the experts with the largest
//! `p` are taken, ties to the lower id, their `p` is divided by their sum if the model says so,
//! and the result is the sum of `p * expert(x)` by ascending expert.
//! Source: `transformers`, `Qwen3MoeSparseMoeBlock`.
//!
//! Rows of an expert are computed together; which they are changes nothing, since each row is a
//! computation of its own and its sum is taken in the experts' order.

use arena_kernels::activation::swiglu;
use arena_kernels::choice::top_k;
use arena_kernels::context::Context;
use arena_kernels::error::KernelsError;
use arena_kernels::matrix::Matrix;
use arena_kernels::reduction::softmax;
use arena_weights::config::{ModelConfig, Moe};

use crate::error::EngineError;
use crate::executor::ExecutorError;

use super::layer::{Dense, cut};
use super::network::Source;
use super::scratch::sized;

/// The experts of one layer and their router.
pub(super) struct Experts {
    router: Matrix,
    experts: Vec<Dense>,
    shape: Moe,
}

/// Buffers of a mixture, kept from one step to the next.
#[derive(Default)]
pub(super) struct ExpertScratch {
    probabilities: Vec<f32>,
    /// For every expert the rows that use it, ascending, with their weights.
    rows: Vec<Vec<(usize, f32)>>,
    x: Vec<f32>,
    gate_up: Vec<f32>,
    gated: Vec<f32>,
    y: Vec<f32>,
}

impl Experts {
    pub fn read(
        source: &mut Source<'_>,
        config: &ModelConfig,
        moe: Moe,
        index: usize,
    ) -> Result<Experts, EngineError> {
        let name = |part: &str| format!("model.layers.{index}.mlp.{part}.weight");
        let router = source.matrix(&[(name("gate"), moe.experts)], config.hidden)?;
        let gate = source.tensor(&name("experts.gate_proj"))?;
        let up = source.tensor(&name("experts.up_proj"))?;
        let down = source.tensor(&name("experts.down_proj"))?;
        let gates = cut(&gate.name, &gate.bytes, moe.experts)?;
        let ups = cut(&up.name, &up.bytes, moe.experts)?;
        let downs = cut(&down.name, &down.bytes, moe.experts)?;
        let named = |tensor: &str, error: KernelsError| ExecutorError::Tensor {
            tensor: tensor.to_owned(),
            detail: error.to_string(),
        };
        let mut experts = Vec::new();
        for expert in 0..moe.experts {
            let parts = [(gate.format, moe.ffn, gates[expert]), (up.format, moe.ffn, ups[expert])];
            let gate_up = Matrix::new(&parts, config.hidden).map_err(|e| named(&gate.name, e))?;
            let part = [(down.format, config.hidden, downs[expert])];
            let down = Matrix::new(&part, moe.ffn).map_err(|e| named(&down.name, e))?;
            experts.push(Dense { gate_up, down });
        }
        Ok(Experts { router, experts, shape: moe })
    }

    /// Writes the mixture's result for every row. Shapes: `x` and `out` are `[m, hidden]`.
    pub fn forward(
        &self,
        context: &Context,
        x: &[f32],
        out: &mut [f32],
        scratch: &mut ExpertScratch,
    ) {
        let hidden = self.router.columns();
        self.route(context, x, scratch);
        out.fill(0.0);
        for (expert, rows) in self.experts.iter().zip(&scratch.rows) {
            if rows.is_empty() {
                continue;
            }
            let own = sized(&mut scratch.x, rows.len() * hidden);
            for (own, &(row, _)) in own.chunks_exact_mut(hidden).zip(rows) {
                own.copy_from_slice(&x[row * hidden..][..hidden]);
            }
            let gate_up = sized(&mut scratch.gate_up, rows.len() * 2 * self.shape.ffn);
            expert.gate_up.multiply(context, own, gate_up);
            let gated = sized(&mut scratch.gated, rows.len() * self.shape.ffn);
            swiglu(context, self.shape.ffn, gate_up, gated);
            let y = sized(&mut scratch.y, rows.len() * hidden);
            expert.down.multiply(context, gated, y);
            for (y, &(row, weight)) in y.chunks_exact(hidden).zip(rows) {
                for (out, y) in out[row * hidden..][..hidden].iter_mut().zip(y) {
                    *out += weight * y;
                }
            }
        }
    }

    /// Says for every expert which rows use it.
    fn route(&self, context: &Context, x: &[f32], scratch: &mut ExpertScratch) {
        let row_count = x.len() / self.router.columns();
        let probabilities = sized(&mut scratch.probabilities, row_count * self.shape.experts);
        self.router.multiply(context, x, probabilities);
        scratch.rows.resize(self.shape.experts, Vec::new());
        scratch.rows.iter_mut().for_each(Vec::clear);
        for (row, probabilities) in probabilities.chunks_exact_mut(self.shape.experts).enumerate() {
            softmax(probabilities);
            let chosen = top_k(probabilities, self.shape.experts_per_token);
            let sum: f32 = chosen.iter().map(|&(_, probability)| probability).sum();
            for (expert, probability) in chosen {
                let weight = if self.shape.normalise { probability / sum } else { probability };
                scratch.rows[expert as usize].push((row, weight));
            }
        }
    }
}
