//! What trains the model: sequences go in, log-probabilities come out, gradients go back.
//!
//! A learner owns the weights and knows nothing of rewards or optimisers. It promises that what
//! it says of a sequence depends on that sequence and its weights alone, not on the batch; and
//! the one on the CPU says, to the bit, what the engine says that samples.
//!
//! Not here: the learner on the CPU kernels (`cpu`), burn's (`arena-burn`), objectives and
//! optimisers (`arena-train`).

use arena_weights::config::{ModelConfig, Moe};

use crate::executor::ExecutorError;

/// Most tokens of all sequences of a batch.
pub const BATCH_TOKENS_MAX: usize = 1 << 20;

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
    /// The experts that every token goes through, `[tokens, layers, experts_per_token]`, those of
    /// a layer all different: as they were chosen when it was sampled, so that what is trained is
    /// the model that was sampled from ("rollout routing replay", arXiv 2510.11370). What they
    /// weigh is computed anew. Without them, tokens are routed anew; a dense model has none.
    pub experts: Option<Vec<u16>>,
}

impl Sequence {
    /// Checks that a model can score the sequence.
    ///
    /// # Errors
    /// Says what does not fit.
    pub fn check(&self, config: &ModelConfig) -> Result<(), String> {
        let ModelConfig { vocab, context_tokens, .. } = *config;
        let count = self.tokens.len();
        if count == 0 || count > context_tokens {
            return Err(format!("{count} tokens, the model takes 1 to {context_tokens}"));
        }
        if let Some(token) = self.tokens.iter().find(|&&token| token as usize >= vocab) {
            return Err(format!("token {token} is not one of {vocab}"));
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err(format!("temperature {} is not above 0", self.temperature));
        }
        let mut least = 1;
        for &place in &self.scored {
            if place < least || place as usize >= count {
                return Err(format!("scored place {place} is not one of {least} to {}", count - 1));
            }
            least = place + 1;
        }
        match (&self.experts, config.moe) {
            (None, _) => Ok(()),
            (Some(_), None) => Err("experts are given, the model is dense".to_string()),
            (Some(experts), Some(moe)) => self.check_experts(experts, config.layers, moe),
        }
    }

    fn check_experts(&self, experts: &[u16], layers: usize, moe: Moe) -> Result<(), String> {
        let (found, each) = (experts.len(), moe.experts_per_token);
        let expected = self.tokens.len() * layers * each;
        if found != expected {
            return Err(format!("{found} experts are given, its tokens use {expected}"));
        }
        for (at, chosen) in experts.chunks_exact(each).enumerate() {
            for (before, &expert) in chosen.iter().enumerate() {
                if usize::from(expert) >= moe.experts || chosen[..before].contains(&expert) {
                    let (token, layer) = (at / layers, at % layers);
                    return Err(format!(
                        "expert {expert} of token {token} in layer {layer} is not one of {} or \
                         is there twice",
                        moe.experts
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Checks that a model can score a batch.
///
/// # Errors
/// [`ExecutorError::Sequence`] says which sequence does not fit, and why.
pub fn check(batch: &[Sequence], config: &ModelConfig) -> Result<(), ExecutorError> {
    let mut tokens = 0;
    for (index, sequence) in batch.iter().enumerate() {
        let refuse = |detail| ExecutorError::Sequence { index, detail };
        sequence.check(config).map_err(refuse)?;
        tokens += sequence.tokens.len();
        if tokens > BATCH_TOKENS_MAX {
            let detail = format!("the batch has more than {BATCH_TOKENS_MAX} tokens");
            return Err(refuse(detail));
        }
    }
    Ok(())
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

    /// Returns the experts that the tokens of each sequence go through, as
    /// [`Sequence::experts`]; none of a dense model.
    ///
    /// # Errors
    /// As [`Learner::score`]; or this learner cannot say.
    fn route(&mut self, batch: &[Sequence]) -> Result<Vec<Vec<u16>>, ExecutorError> {
        check(batch, self.shape())?;
        match self.shape().moe {
            None => Ok(vec![Vec::new(); batch.len()]),
            Some(_) => Err(ExecutorError::Device("it does not say how it routes".to_string())),
        }
    }

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

#[cfg(test)]
mod tests {
    use arena_weights::config::Architecture;

    use super::*;

    fn mixture() -> ModelConfig {
        ModelConfig {
            architecture: Architecture::Qwen3Moe,
            hidden: 4,
            layers: 2,
            heads: 1,
            kv_heads: 1,
            head_dim: 4,
            ffn: 0,
            vocab: 10,
            context_tokens: 4,
            rope_theta: 10_000.0,
            rms_eps: 1.0e-5,
            tied_embeddings: true,
            moe: Some(Moe { experts: 3, experts_per_token: 2, ffn: 4, normalise: true }),
            bos: None,
            eos: Vec::new(),
        }
    }

    fn sound() -> Sequence {
        let (tokens, scored) = (vec![1, 9, 0], vec![1, 2]);
        let experts = Some(vec![0, 1, 2, 0, 1, 2, 0, 2, 1, 0, 2, 1]);
        Sequence { tokens, scored, temperature: 0.7, experts }
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Sequence), expected: &str) {
        let mut sequence = sound();
        change(&mut sequence);
        let error = check(&[sound(), sequence], &mixture()).expect_err("it does not fit");
        assert_eq!(error.to_string(), format!("sequence 1: {expected}"));
    }

    #[test]
    fn sequences_that_do_not_fit_are_refused_with_the_value() {
        assert!(check(&[sound(), Sequence { experts: None, ..sound() }], &mixture()).is_ok());
        refused(|it| it.tokens.clear(), "0 tokens, the model takes 1 to 4");
        refused(|it| it.tokens.extend([1, 1]), "5 tokens, the model takes 1 to 4");
        refused(|it| it.tokens[1] = 10, "token 10 is not one of 10");
        refused(|it| it.temperature = 0.0, "temperature 0 is not above 0");
        refused(|it| it.temperature = f32::NAN, "temperature NaN is not above 0");
        refused(|it| it.scored[0] = 0, "scored place 0 is not one of 1 to 2");
        refused(|it| it.scored[1] = 3, "scored place 3 is not one of 2 to 2");
        refused(|it| it.scored[1] = 1, "scored place 1 is not one of 2 to 2");
        let short = |it: &mut Sequence| it.experts = Some(vec![0; 11]);
        refused(short, "11 experts are given, its tokens use 12");
        let wrong = "expert 2 of token 1 in layer 1 is not one of 3 or is there twice";
        refused(|it| it.experts.as_mut().expect("they are given")[6] = 2, wrong);
        let wrong = "expert 3 of token 0 in layer 1 is not one of 3 or is there twice";
        refused(|it| it.experts.as_mut().expect("they are given")[2] = 3, wrong);
    }

    #[test]
    fn a_dense_model_takes_no_experts() {
        let dense = ModelConfig { architecture: Architecture::Llama, moe: None, ..mixture() };
        let error = sound().check(&dense).expect_err("it has none");
        assert_eq!(error, "experts are given, the model is dense");
    }
}
