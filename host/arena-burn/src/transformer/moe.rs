//! A mixture of experts: each row goes through the few experts that the router likes best.
//!
//! The choice is made on the host, ties to the lower index, so that it does not depend on how a
//! device sorts. What a chosen expert weighs is computed on the device, and differentiable.

use burn::module::Module;
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData, activation};

use crate::cache::indices;
use crate::transformer::attention::MASKED;
use crate::transformer::linear::{LayerAdapter, Linear, Projection, RowAdapter, Which};
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
    /// Returns `sum over chosen e of w_e expert_e(x)`, `[rows, hidden]` to the same shape, and the
    /// chosen, `[rows, experts_per_token]`.
    ///
    /// They are the `experts_per_token` greatest of `p = softmax(x Wrouter)`, or those of
    /// `replayed`, laid out like the chosen, each an expert and those of a row all different.
    /// `w` is `p`, divided by the sum of the chosen if `normalise` says so.
    /// `adapters` change experts, and never the router.
    pub fn forward(
        &self,
        x: Tensor<2>,
        replayed: Option<&[u16]>,
        adapters: &[RowAdapter<'_>],
    ) -> (Tensor<2>, Vec<u16>) {
        let [rows, _] = x.dims();
        let logits = self.router.forward(x.clone());
        let chosen = match replayed {
            Some(replayed) => replayed.to_vec(),
            None => self.choose(&activation::softmax(logits.clone(), 1)),
        };
        assert_eq!(chosen.len(), rows * self.experts_per_token, "every row has its experts");
        let weights = self.weights(logits, &chosen);
        let mut y = x.zeros_like();
        for (index, (expert, rows)) in self.experts.iter().zip(self.rows_of(&chosen)).enumerate() {
            if rows.is_empty() {
                continue;
            }
            let adapted = adapted_rows(&rows, index, adapters, &x.device());
            let adapters: Vec<RowAdapter<'_>> = adapted.iter().map(AdaptedRows::lend).collect();
            let rows = indices(rows.into_iter(), &x.device());
            let weight = weights.clone().narrow(1, index, 1).select(0, rows.clone());
            let which = |projection| Which::Expert(index, projection);
            let out = expert.forward(x.clone().select(0, rows.clone()), which, &adapters) * weight;
            y = y.select_assign(0, rows, out, IndexingUpdateOp::Add);
        }
        (y, chosen)
    }

    /// Returns the experts that each row likes best, `[rows, experts_per_token]`, best first.
    fn choose(&self, likelihoods: &Tensor<2>) -> Vec<u16> {
        let data = likelihoods.to_data();
        let likelihoods = data.as_slice::<f32>().expect("the model is made of f32");
        let mut chosen = Vec::new();
        for likelihoods in likelihoods.chunks_exact(self.experts.len()) {
            let mut order: Vec<u16> = (0..self.experts.len() as u16).collect();
            // A stable sort, so that ties go to the lower index.
            order.sort_by(|&a, &b| {
                likelihoods[usize::from(b)].total_cmp(&likelihoods[usize::from(a)])
            });
            chosen.extend(&order[..self.experts_per_token]);
        }
        chosen
    }

    /// Returns the rows that go through each expert, ascending.
    fn rows_of(&self, chosen: &[u16]) -> Vec<Vec<usize>> {
        let mut rows_of = vec![Vec::new(); self.experts.len()];
        for (row, chosen) in chosen.chunks_exact(self.experts_per_token).enumerate() {
            for &expert in chosen {
                rows_of[usize::from(expert)].push(row);
            }
        }
        rows_of
    }

    /// Returns what each expert weighs for each row, `[rows, experts]`, right where it was chosen.
    fn weights(&self, logits: Tensor<2>, chosen: &[u16]) -> Tensor<2> {
        if !self.normalise {
            return activation::softmax(logits, 1);
        }
        // The softmax over the chosen alone is theirs over all, divided by its sum; but it is
        // sound also where replayed experts have become so unlikely that the sum would be zero.
        let [rows, experts] = logits.dims();
        let mut bias = vec![MASKED; rows * experts];
        for (row, chosen) in chosen.chunks_exact(self.experts_per_token).enumerate() {
            for &expert in chosen {
                bias[row * experts + usize::from(expert)] = 0.0;
            }
        }
        let bias = Tensor::from_data(TensorData::new(bias, [rows, experts]), &logits.device());
        activation::softmax(logits + bias, 1)
    }
}

/// Which of the rows that go through an expert an adapter applies to.
struct AdaptedRows<'a> {
    rows: Tensor<1, Int>,
    indices: Vec<usize>,
    layer: &'a LayerAdapter,
}

impl AdaptedRows<'_> {
    fn lend(&self) -> RowAdapter<'_> {
        RowAdapter { rows: &self.rows, indices: &self.indices, layer: self.layer }
    }
}

/// Returns where among the rows of an expert those are that adapters of it apply to.
fn adapted_rows<'a>(
    rows: &[usize],
    expert: usize,
    adapters: &[RowAdapter<'a>],
    device: &Device,
) -> Vec<AdaptedRows<'a>> {
    let parts = [Projection::Gate, Projection::Up, Projection::Down];
    let mut adapted = Vec::new();
    for adapter in adapters {
        if !parts.iter().any(|part| adapter.layer.contains_key(&Which::Expert(expert, *part))) {
            continue;
        }
        let is_adapted = |row: &usize| adapter.indices.binary_search(row).is_ok();
        let among: Vec<usize> = (0..rows.len()).filter(|&at| is_adapted(&rows[at])).collect();
        if !among.is_empty() {
            let rows = indices(among.iter().copied(), device);
            adapted.push(AdaptedRows { rows, indices: among, layer: adapter.layer });
        }
    }
    adapted
}
