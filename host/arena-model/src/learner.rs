//! What trains the model: sequences go in, log-probabilities come out, gradients go back.
//!
//! A learner owns the weights and knows nothing of rewards or optimisers. It promises that what
//! it says of a sequence depends on that sequence and its weights alone, not on the batch; and
//! the one on the CPU says, to the bit, what the engine says that samples.
//!
//! Not here: the learner on the CPU kernels (`cpu`), burn's (`arena-burn`), objectives and
//! optimisers (`arena-train`).

use arena_weights::config::ModelConfig;

use crate::executor::ExecutorError;

/// What is trained.
#[derive(Clone, Debug, PartialEq)]
pub enum Trained {
    /// Every weight.
    Full,
    /// A low-rank adapter on every linear layer of every layer, the head excepted (LoRA, arXiv
    /// 2106.09685): `y += (alpha / rank) B (A x)`.
    Adapter {
        /// Width of the bottleneck.
        rank: usize,
        /// The numerator of the scale.
        alpha: f32,
    },
}

/// One trained tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Hugging Face's name of the weight; of an adapter's two PEFT's, as in its files.
    pub name: String,
    /// Outermost first, `[out, in]`.
    pub shape: Vec<usize>,
}

/// One sequence of tokens, some of which are scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// At most the model's context.
    pub tokens: Vec<u32>,
    /// Places of the tokens that are scored, ascending, from 1: that of `p` is
    /// `log p(tokens[p] | tokens[..p])`.
    pub scored: Vec<u32>,
    /// Divides the logits before the softmax; above 0. What sampling at another temperature than
    /// 1 drew from.
    pub temperature: f32,
}

/// What a learner says of scored tokens: of each sequence in order, of each of its places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Natural logarithms of their probabilities.
    pub logprobs: Vec<f32>,
    /// Entropies of the distributions that they come from, in nats.
    pub entropies: Vec<f32>,
}

/// How a loss changes with each scored token, in the order of [`Scores`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slopes {
    /// d loss / d log p.
    pub logprobs: Vec<f32>,
    /// d loss / d entropy; empty where the loss has no such term.
    pub entropies: Vec<f32>,
}

/// Computes a model and its gradients.
pub trait Learner: Send {
    /// Returns the numbers of the model.
    fn shape(&self) -> &ModelConfig;

    /// Returns what computes, as `key=value` lines: device, kernels, data types.
    fn description(&self) -> String;

    /// Returns what is trained, always in the same order.
    fn parameters(&self) -> &[Parameter];

    /// Returns the values of all parameters, row-major, in their order.
    ///
    /// # Errors
    /// The device failed.
    fn values(&self) -> Result<Vec<Vec<f32>>, ExecutorError>;

    /// Takes other values for all parameters.
    ///
    /// # Errors
    /// They do not fit, or the device failed.
    fn set_values(&mut self, values: &[Vec<f32>]) -> Result<(), ExecutorError>;

    /// Scores sequences.
    ///
    /// # Errors
    /// A sequence does not fit the model, or the device failed.
    fn score(&mut self, batch: &[Sequence]) -> Result<Scores, ExecutorError>;

    /// Scores sequences, asks `slopes` how the loss changes with the scores, and adds the loss's
    /// gradients to `gradients`, which are laid out as [`Learner::values`].
    ///
    /// # Errors
    /// As [`Learner::score`].
    fn accumulate(
        &mut self,
        batch: &[Sequence],
        slopes: &mut dyn FnMut(&Scores) -> Slopes,
        gradients: &mut [Vec<f32>],
    ) -> Result<Scores, ExecutorError>;
}
