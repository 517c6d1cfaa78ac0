//! A mixture of experts: each row goes through the few experts that the router likes best.
//!
//! The choice is made on the host, ties to the lower index, so that it does not depend on how a
//! device sorts. What a chosen expert weighs is computed on the device, and differentiable.

use burn::module::Module;
use burn::tensor::{IndexingUpdateOp, Int, Tensor, TensorData, activation};

use crate::transformer::linear::Linear;
use crate::transformer::mlp::Mlp;

/// A mixture of experts, as Qwen3's (Shazeer et al. 2017, "Outrageously Large Neural Networks",
/// with the softmax taken before the choice).
#[derive(Module, Debug)]
pub struct Moe {
    /// `[hidden, experts]`
    pub router: Linear,
    /// Each an own feed-forward part.
    pub experts: Vec<Mlp>,
    /// How many of them a row goes through.
    pub experts_per_token: usize,
    /// Whether the chosen experts' weights are divided by their sum.
    pub normalise: bool,
}

impl Moe {
    /// Returns `sum over chosen e of w_e expert_e(x)`, where `w = softmax(x Wrouter)`, the chosen
    /// are the `experts_per_token` greatest, and `w` is divided by the sum of the chosen if
    /// `normalise` says so; `[rows, hidden]` to the same shape.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let [rows, _] = x.dims();
        let likelihoods = activation::softmax(self.router.forward(x.clone()), 1);
        let rows_of = self.choose(&likelihoods);
        let weights = self.weights(likelihoods, &rows_of, rows);
        let mut y = x.zeros_like();
        for (index, (expert, chosen)) in self.experts.iter().zip(rows_of).enumerate() {
            if chosen.is_empty() {
                continue;
            }
            let count = chosen.len();
            let chosen: Tensor<1, Int> =
                Tensor::from_data(TensorData::new(chosen, [count]), &x.device());
            let weight = weights.clone().narrow(1, index, 1).select(0, chosen.clone());
            let out = expert.forward(x.clone().select(0, chosen.clone()), &[]) * weight;
            y = y.select_assign(0, chosen, out, IndexingUpdateOp::Add);
        }
        y
    }

    /// Returns the rows that go through each expert, ascending.
    fn choose(&self, likelihoods: &Tensor<2>) -> Vec<Vec<i32>> {
        let experts = self.experts.len();
        let data = likelihoods.to_data();
        let likelihoods = data.as_slice::<f32>().expect("the model is made of f32");
        let mut rows_of = vec![Vec::new(); experts];
        for (row, likelihoods) in likelihoods.chunks_exact(experts).enumerate() {
            let mut order: Vec<usize> = (0..experts).collect();
            // A stable sort, so that ties go to the lower index.
            order.sort_by(|&a, &b| likelihoods[b].total_cmp(&likelihoods[a]));
            for &expert in order.iter().take(self.experts_per_token) {
                rows_of[expert].push(row as i32);
            }
        }
        rows_of
    }

    /// Returns what each expert weighs for each row, `[rows, experts]`, right where it was chosen.
    fn weights(&self, likelihoods: Tensor<2>, rows_of: &[Vec<i32>], rows: usize) -> Tensor<2> {
        if !self.normalise {
            return likelihoods;
        }
        let experts = rows_of.len();
        let mut chosen = vec![0.0f32; rows * experts];
        for (expert, rows) in rows_of.iter().enumerate() {
            for &row in rows {
                chosen[row as usize * experts + expert] = 1.0;
            }
        }
        let chosen =
            Tensor::from_data(TensorData::new(chosen, [rows, experts]), &likelihoods.device());
        let sum = (likelihoods.clone() * chosen).sum_dim(1);
        likelihoods / sum
    }
}
