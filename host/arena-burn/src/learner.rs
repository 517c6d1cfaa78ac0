//! Trains a model with burn: the oracle of other learners' gradients, and the way to a GPU.
//!
//! What it says of a sequence depends on the rest of a batch only in rounding. Frozen weights
//! never get on the tape that gradients are computed on.
//!
//! Not here: objectives and optimisers (`arena-train`), what training takes (`memory`).

mod checks;
mod head;
mod places;
mod rows;
mod start;
mod tape;

use arena_model::cpu::learner::Start;
use arena_model::executor::ExecutorError;
use arena_model::learner::{Learner, Parameter, Scores, Sequence, Slopes, Trained};
use arena_weights::config::ModelConfig;
use arena_weights::weights::Weights;
use burn::module::Param;
use burn::tensor::{Device, IndexingUpdateOp, Tensor};

use crate::cache::indices;
use crate::device::{self, BurnDevice};
use crate::error::BurnError;
use crate::executor::BURN_VERSION;
use crate::learner::head::{HeadShape, Return};
use crate::learner::places::{Found, Part, Place, find_linear, places};
use crate::learner::rows::{Rows, experts_of};
use crate::learner::tape::Leaf;
use crate::loading;
use crate::memory::{Activations, LOGITS_MAX};
use crate::transformer::linear::{Linear, Lora};
use crate::transformer::{Layer, Transformer};

/// The most rows that are computed together where no gradient is asked for, if there is more than
/// one sequence.
const SCORE_ROWS_MAX: usize = 8_192;

/// A model on a burn device, some of it trained.
pub struct BurnLearner {
    config: ModelConfig,
    token_count: usize,
    named: BurnDevice,
    device: Device,
    /// On the plain device.
    model: Transformer,
    trained: Trained,
    activations: Activations,
    /// Where each parameter is.
    places: Vec<Place>,
    parameters: Vec<Parameter>,
}

/// A model that is on a device already, and not on its autodiff twin.
#[derive(Clone, Debug)]
pub struct LearnerParts {
    /// Its numbers.
    pub config: ModelConfig,
    /// How many of its vocabulary are tokens of the tokenizer: the rest is never sampled.
    pub token_count: usize,
    /// Its weights.
    pub model: Transformer,
}

/// What a forward pass leaves for the backward one.
enum Passed {
    /// The result of the last layer, `[rows, hidden]`, on the tape of these leaves.
    OnTape { output: Tensor<2>, leaves: Vec<Leaf> },
    /// What went into every layer, `[rows, hidden]`, and through which experts.
    Inputs { inputs: Vec<Tensor<2>>, experts: Vec<Vec<u16>>, output: Tensor<2> },
}

impl LearnerParts {
    /// Returns the parts of a model whose weights are on a device.
    ///
    /// # Errors
    /// The tokenizer is malformed or not supported.
    pub fn new(weights: &Weights, model: Transformer) -> Result<LearnerParts, BurnError> {
        let config = weights.config().clone();
        let tokenizer = weights.tokenizer().map_err(ExecutorError::from)?;
        let token_count = tokenizer.vocab().min(config.vocab);
        Ok(LearnerParts { config, token_count, model })
    }
}

impl BurnLearner {
    /// Brings a model onto a device, in `f32`, and begins.
    ///
    /// # Errors
    /// The device is not compiled in or not there, the files cannot be used, the adapter does not
    /// fit.
    pub fn load(
        weights: &Weights,
        named: BurnDevice,
        start: Start<'_>,
        activations: Activations,
    ) -> Result<BurnLearner, BurnError> {
        let model = loading::load(weights, &named.open()?)?;
        BurnLearner::new(LearnerParts::new(weights, model)?, named, start, activations)
    }

    /// Begins with a model that is on the device. Frozen weights are shared with whoever else has
    /// the model, such as an executor that was made from a clone of it.
    ///
    /// # Errors
    /// As [`BurnLearner::load`]; or all of the model is to be trained and it is not in `f32`.
    ///
    /// # Panics
    /// If the model has another number of layers than its numbers say.
    pub fn new(
        parts: LearnerParts,
        named: BurnDevice,
        start: Start<'_>,
        activations: Activations,
    ) -> Result<BurnLearner, BurnError> {
        let LearnerParts { config, token_count, mut model } = parts;
        assert_eq!(model.layers.len(), config.layers, "the numbers are the model's own");
        let device = named.open()?;
        let (trained, scale) = start::trained(&start)?;
        if trained == Trained::Full && model.formats() != "f32" {
            return Err(BurnError::Narrow { formats: model.formats() });
        }
        let (places, parameters): (Vec<_>, Vec<_>) = places(&config, &trained).into_iter().unzip();
        if let Trained::Adapter { rank, .. } = trained {
            for place in &places {
                if let Place::Layer(layer, Part::A(which)) = place {
                    let linear = find_linear(&mut model.layers[*layer], *which);
                    add_adapter(linear, rank, f64::from(scale), &device);
                }
            }
        }
        let first = start::first_values(start, &places, &parameters)?;
        let mut learner = BurnLearner {
            config,
            token_count,
            named,
            device,
            model,
            trained,
            activations,
            places,
            parameters,
        };
        if let Some(first) = first {
            learner.set_values(&first)?;
        }
        Ok(learner)
    }

    /// Returns the model as it is now, its adapter in its layers. An executor that is made of a
    /// clone samples from what is trained, mixtures of experts included, and shares the weights.
    pub fn model(&self) -> &Transformer {
        &self.model
    }

    /// Returns the trained tensors outside of layers, or those of one layer, with their indices.
    fn of(&self, layer: Option<usize>) -> impl Iterator<Item = (usize, Place)> {
        let inside = move |place: Place| match place {
            Place::Layer(index, _) => Some(index),
            Place::Embedding | Place::Norm | Place::Head => None,
        };
        let places = self.places.iter().copied().enumerate();
        places.filter(move |(_, place)| inside(*place) == layer)
    }

    /// Returns a layer with what is trained of it on a tape.
    fn lifted(&self, index: usize) -> (Layer, Vec<Leaf>) {
        let mut layer = self.model.layers[index].clone();
        let mut leaves = Vec::new();
        for (at, place) in self.of(Some(index)) {
            if let Place::Layer(_, part) = place {
                leaves.push(part.find(&mut layer).lift(at));
            }
        }
        (layer, leaves)
    }

    /// Returns a model without layers, with what is trained of it on a tape.
    fn lifted_ends(&self) -> (Transformer, Vec<Leaf>) {
        let mut ends = self.ends();
        let leaves = self.of(None).map(|(at, place)| find_end(place, &mut ends).lift(at));
        let leaves = leaves.collect();
        (ends, leaves)
    }

    /// Returns the model without its layers.
    fn ends(&self) -> Transformer {
        let Transformer { embedding, norm, head, rope_theta, .. } = &self.model;
        Transformer {
            embedding: embedding.clone(),
            layers: Vec::new(),
            norm: norm.clone(),
            head: head.clone(),
            rope_theta: *rope_theta,
        }
    }

    fn shape_of_head(&self) -> HeadShape {
        let rows_max = (LOGITS_MAX / self.config.vocab).max(1);
        HeadShape { rows_max, token_count: self.token_count }
    }

    fn check(&self, batch: &[Sequence]) -> Result<(), ExecutorError> {
        checks::batch(batch, &self.config, self.token_count)
    }

    /// Returns what leaves the last layer, `[rows, hidden]`, and the experts of every layer.
    fn forward(&self, rows: &Rows) -> (Tensor<2>, Vec<Vec<u16>>) {
        let mut x = self.model.embedding.forward(rows.tokens.clone());
        let mut experts = Vec::new();
        for (index, layer) in self.model.layers.iter().enumerate() {
            let (next, chosen) = through(layer, x, rows, rows.experts(index));
            x = next;
            experts.push(chosen);
        }
        (x, experts)
    }

    /// Does what `forward` does, and keeps what the way back needs.
    fn forward_to_return(&self, rows: &Rows) -> Passed {
        match self.activations {
            Activations::Kept => {
                let (ends, mut leaves) = self.lifted_ends();
                let mut x = ends.embedding.forward(rows.tokens.clone());
                for index in 0..self.model.layers.len() {
                    let (layer, of_layer) = self.lifted(index);
                    leaves.extend(of_layer);
                    x = through(&layer, x, rows, rows.experts(index)).0;
                }
                Passed::OnTape { output: x, leaves }
            }
            Activations::Recomputed => {
                let mut x = self.model.embedding.forward(rows.tokens.clone());
                let (mut inputs, mut experts) = (Vec::new(), Vec::new());
                for (index, layer) in self.model.layers.iter().enumerate() {
                    inputs.push(x.clone());
                    let (next, chosen) = through(layer, x, rows, rows.experts(index));
                    x = next;
                    experts.push(chosen);
                }
                Passed::Inputs { inputs, experts, output: x }
            }
        }
    }

    /// Goes back from how a loss changes with what leaves the last layer, `[rows, hidden]`.
    fn backward(
        &self,
        rows: &Rows,
        passed: Passed,
        slope: Tensor<2>,
        gradients: &mut [Vec<f32>],
    ) -> Result<(), ExecutorError> {
        let (mut inputs, mut experts) = match passed {
            Passed::OnTape { output, leaves } => {
                let mut found = (output * slope).sum().backward();
                return leaves.iter().try_for_each(|leaf| leaf.add(&mut found, gradients));
            }
            Passed::Inputs { inputs, experts, .. } => (inputs, experts),
        };
        let mut slope = slope;
        for index in (0..self.model.layers.len()).rev() {
            let input = inputs.pop().expect("every layer had an input").autodiff().require_grad();
            let chosen = experts.pop().expect("every layer says its experts");
            let (layer, leaves) = self.lifted(index);
            // The same experts again: rounding must not choose others.
            let replayed = self.config.moe.map(|_| chosen.as_slice());
            let (output, _) = through(&layer, input.clone(), rows, replayed);
            let mut found = (output * slope).sum().backward();
            slope = input.grad_remove(&mut found).expect("a layer adds to its input");
            leaves.iter().try_for_each(|leaf| leaf.add(&mut found, gradients))?;
        }
        if self.places.contains(&Place::Embedding) {
            let (ends, leaves) = self.lifted_ends();
            let output = ends.embedding.forward(rows.tokens.clone());
            let mut found = (output * slope).sum().backward();
            leaves.iter().try_for_each(|leaf| leaf.add(&mut found, gradients))?;
        }
        Ok(())
    }
}

impl Passed {
    /// Returns what left the last layer, `[rows, hidden]`, off the tape.
    fn output(&self) -> Tensor<2> {
        match self {
            Passed::OnTape { output, .. } | Passed::Inputs { output, .. } => output.clone().inner(),
        }
    }
}

/// Gives a linear layer an adapter of zeros.
fn add_adapter(linear: &mut Linear, rank: usize, scale: f64, device: &Device) {
    let [inputs, outputs] = linear.weight.dims();
    let zeros = |shape| Param::from_tensor(Tensor::zeros(shape, device));
    let (a, b) = (zeros([inputs, rank]), zeros([rank, outputs]));
    linear.lora = Some(Lora { a, b, scale });
}

/// Computes a layer, `[rows, hidden]` to the same shape; and returns the experts of every row.
fn through(
    layer: &Layer,
    x: Tensor<2>,
    rows: &Rows,
    replayed: Option<&[u16]>,
) -> (Tensor<2>, Vec<u16>) {
    layer.forward_routed(x, rows.rotation(), &[], replayed, |heads| rows.attend(&heads))
}

/// Returns a tensor of a model that is in no layer.
fn find_end(place: Place, model: &mut Transformer) -> Found<'_> {
    match place {
        Place::Embedding => Found::Matrix(&mut model.embedding.weight),
        Place::Norm => Found::Gain(&mut model.norm.gain),
        Place::Head => {
            let head = model.head.as_mut().expect("a head is trained where there is one");
            Found::Matrix(&mut head.weight)
        }
        Place::Layer(..) => unreachable!("it is in a layer"),
    }
}

/// Cuts a batch where it has too many rows to be computed together.
fn parts(batch: &[Sequence]) -> Vec<&[Sequence]> {
    let mut parts = Vec::new();
    let (mut start, mut rows) = (0, 0);
    for (at, sequence) in batch.iter().enumerate() {
        let more = sequence.tokens.len();
        if at > start && rows + more > SCORE_ROWS_MAX {
            parts.push(&batch[start..at]);
            (start, rows) = (at, 0);
        }
        rows += more;
    }
    if start < batch.len() {
        parts.push(&batch[start..]);
    }
    parts
}

impl Learner for BurnLearner {
    fn shape(&self) -> &ModelConfig {
        &self.config
    }

    fn description(&self) -> String {
        let adapter = device::adapter(&self.device);
        let adapter = adapter.map_or(String::new(), |name| format!("adapter={name}\n"));
        let trained = match self.trained {
            Trained::Full => "full".to_string(),
            Trained::Adapter { rank, alpha } => format!("adapter of rank {rank}, alpha {alpha}"),
        };
        format!(
            "device={}\n{adapter}kernels=burn {BURN_VERSION}\nweights={}\ntrained={trained}\n\
             activations={}\n",
            self.named,
            self.model.formats(),
            self.activations
        )
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn values(&self) -> Result<Vec<Vec<f32>>, ExecutorError> {
        let mut values = vec![Vec::new(); self.places.len()];
        let mut ends = self.ends();
        for (at, place) in self.of(None) {
            values[at] = find_end(place, &mut ends).values()?;
        }
        for (index, layer) in self.model.layers.iter().enumerate() {
            let mut layer = layer.clone();
            for (at, place) in self.of(Some(index)) {
                if let Place::Layer(_, part) = place {
                    values[at] = part.find(&mut layer).values()?;
                }
            }
        }
        Ok(values)
    }

    fn set_values(&mut self, values: &[Vec<f32>]) -> Result<(), ExecutorError> {
        checks::sizes(values, &self.parameters)?;
        for (place, values) in self.places.iter().zip(values) {
            let found = match *place {
                Place::Layer(layer, part) => part.find(&mut self.model.layers[layer]),
                end => find_end(end, &mut self.model),
            };
            found.set_values(values, &self.device);
        }
        Ok(())
    }

    fn score(&mut self, batch: &[Sequence]) -> Result<Scores, ExecutorError> {
        self.check(batch)?;
        let mut scores = Scores::default();
        for part in parts(batch) {
            let rows = Rows::new(part, &self.config, &self.device);
            if rows.scored.rows.is_empty() {
                continue;
            }
            let scored = indices(rows.scored.rows.iter().copied(), &self.device);
            let hidden = self.forward(&rows).0.select(0, scored);
            let of_part = head::score(&self.model, &hidden, &rows.scored, self.shape_of_head())?;
            scores.logprobs.extend(of_part.logprobs);
            scores.entropies.extend(of_part.entropies);
        }
        Ok(scores)
    }

    fn route(&mut self, batch: &[Sequence]) -> Result<Vec<Vec<u16>>, ExecutorError> {
        self.check(batch)?;
        let Some(moe) = self.config.moe else { return Ok(vec![Vec::new(); batch.len()]) };
        let mut experts = Vec::with_capacity(batch.len());
        for part in parts(batch) {
            let rows = Rows::new(part, &self.config, &self.device);
            experts.extend(experts_of(part, &self.forward(&rows).1, moe.experts_per_token));
        }
        Ok(experts)
    }

    fn accumulate(
        &mut self,
        batch: &[Sequence],
        slopes: &mut dyn FnMut(&Scores) -> Slopes,
        gradients: &mut [Vec<f32>],
    ) -> Result<Scores, ExecutorError> {
        self.check(batch)?;
        checks::sizes(gradients, &self.parameters)?;
        if batch.iter().all(|sequence| sequence.scored.is_empty()) {
            let scores = Scores::default();
            checks::slopes(&slopes(&scores), 0)?;
            return Ok(scores);
        }
        let rows = Rows::new(batch, &self.config, &self.device);
        let scored = indices(rows.scored.rows.iter().copied(), &self.device);
        let passed = self.forward_to_return(&rows);
        let output = passed.output();
        let hidden = output.clone().select(0, scored.clone());
        let scores = head::score(&self.model, &hidden, &rows.scored, self.shape_of_head())?;
        let slopes = slopes(&scores);
        checks::slopes(&slopes, scores.logprobs.len())?;
        let (ends, leaves) = self.lifted_ends();
        let of = Return {
            model: &ends,
            leaves: &leaves,
            rows: &hidden,
            scored: &rows.scored,
            slopes: &slopes,
        };
        let slope = head::backward(&of, self.shape_of_head(), gradients)?;
        let all = output.zeros_like().select_assign(0, scored, slope, IndexingUpdateOp::Add);
        self.backward(&rows, passed, all, gradients)?;
        Ok(scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_cut_between_sequences_where_it_has_too_many_rows() {
        let sequence = |count: usize| Sequence {
            tokens: vec![0; count],
            scored: Vec::new(),
            temperature: 1.0,
            experts: None,
        };
        let lengths = [9_000, 4_000, 4_192, 1, 8_191, 8_193];
        let batch: Vec<Sequence> = lengths.into_iter().map(sequence).collect();
        let found: Vec<usize> = parts(&batch).iter().map(|part| part.len()).collect();
        assert_eq!(found, [1, 2, 2, 1]);
        assert!(parts(&[]).is_empty());
    }
}
