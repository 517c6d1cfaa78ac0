//! Makes what a seat's model read and wrote into sequences to learn from.
//!
//! Calls of one dialogue become one sequence as long as each prompt begins with all of the last
//! prompt and reply, token for token; a call that does not starts a sequence of its own, in which
//! what was said before is context and is not learned from again. Only tokens that the trained
//! model wrote in the trained seat are scored.
//!
//! A record is hostile: bounds are checked before a prompt is put together.
//!
//! Not here: what the sequences are worth (`reward`, `advantage`), the loss (`objective`).

use std::fmt;

use arena_core::dialogue;
use arena_core::seat::{CallTokens, ModelCall, Usage};
use arena_model::learner::Sequence;

use crate::reward::MICRO;

/// The weight of a reply about which the guest said nothing, in thousandths.
pub const WEIGHT_MILLI_DEFAULT: u32 = 1_000;

/// Highest weight of a reply, in thousandths. A larger one would let one reply outvote a batch.
pub const WEIGHT_MILLI_MAX: u32 = 1_000_000;

/// What is learned from, and what fits.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The name of the model that is trained.
    pub model: &'a str,
    /// Most tokens of a sequence.
    pub context_tokens: usize,
    /// Rows of the model's embedding: no token's number reaches it.
    pub vocabulary: u32,
    /// What the sequences are for.
    pub purpose: Purpose,
}

/// What sequences are for, and so what they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Policy gradients: replies were drawn from the model's whole distribution at some temperature
    /// above 0. `allow_cuts` also takes replies from a part of it (top-k, top-p, min-p, grammar).
    /// Their sampling probabilities are then not the model's, so ratios are biased by what was
    /// cut off (huggingface/trl 6789); [`Example::is_cut`] says so.
    Reinforce {
        /// Whether replies from a part of the distribution are taken.
        allow_cuts: bool,
    },
    /// Imitation: it does not matter how the replies came about. They are scored at temperature 1.
    Imitate,
}

/// One sequence to learn from. The lists run along the sequence's scored places.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Tokens, scored places, temperature.
    pub sequence: Sequence,
    /// Natural logarithms of the probabilities that the tokens were sampled with.
    pub sampled_logprobs: Vec<f64>,
    /// How much is learned from each, in thousandths; above 0.
    pub weights_milli: Vec<u32>,
    /// Whether a reply in it was drawn from a part of the distribution.
    pub is_cut: bool,
}

impl Example {
    /// Returns the sum of the weights, in thousandths.
    pub fn weight_milli(&self) -> u64 {
        self.weights_milli.iter().map(|weight| u64::from(*weight)).sum()
    }
}

/// Returns what can be learned from a seat's calls, in their order. Empty where the model wrote
/// nothing, or nothing with a weight.
///
/// # Errors
/// A call of the model cannot be learned from on these terms; see [`ExampleError`].
pub fn examples(usage: &Usage, terms: &Terms<'_>) -> Result<Vec<Example>, ExampleError> {
    let mut found: Vec<Example> = Vec::new();
    for (number, call) in usage.model_calls.iter().enumerate() {
        if call.model != terms.model {
            continue;
        }
        let tokens =
            check_call(call, terms).map_err(|reason| ExampleError { call: number, reason })?;
        let length = tokens.reused as usize + tokens.prompt.len() + tokens.output.len();
        let spoken = dialogue::spoken(&usage.model_calls, number)
            .ok_or(ExampleError { call: number, reason: Unlearnable::Reuse { found: length } })?;
        let temperature = temperature(call, terms.purpose);
        let open = found.last_mut().filter(|last| {
            let known = &last.sequence.tokens;
            let start = spoken.len() - tokens.output.len();
            known.len() <= start
                && spoken.starts_with(known)
                && last.sequence.temperature == temperature
        });
        match open {
            Some(example) => extend(example, call, tokens, spoken),
            None => {
                let sequence =
                    Sequence { tokens: Vec::new(), scored: Vec::new(), temperature, experts: None };
                let mut example = Example {
                    sequence,
                    sampled_logprobs: Vec::new(),
                    weights_milli: Vec::new(),
                    is_cut: false,
                };
                extend(&mut example, call, tokens, spoken);
                found.push(example);
            }
        }
    }
    found.retain(|example| !example.sequence.scored.is_empty());
    Ok(found)
}

/// Takes a call's tokens into an example whose own tokens `spoken` begins with.
fn extend(example: &mut Example, call: &ModelCall, tokens: &CallTokens, spoken: Vec<u32>) {
    let start = spoken.len() - tokens.output.len();
    example.sequence.tokens = spoken;
    let weight = call.weight_milli.unwrap_or(WEIGHT_MILLI_DEFAULT);
    if weight == 0 || tokens.output.is_empty() {
        return;
    }
    example.is_cut |= is_cut(call);
    for (offset, token) in tokens.output.iter().enumerate() {
        let place = u32::try_from(start + offset).expect("a context is far shorter than 2^32");
        example.sequence.scored.push(place);
        example.sampled_logprobs.push(f64::from(token.sampled_logprob_micro) / MICRO);
        example.weights_milli.push(weight);
    }
}

fn check_call<'a>(call: &'a ModelCall, terms: &Terms<'_>) -> Result<&'a CallTokens, Unlearnable> {
    let tokens = call.tokens.as_ref().ok_or(Unlearnable::NoTokens)?;
    let prompt = tokens.reused as usize + tokens.prompt.len();
    let length = prompt + tokens.output.len();
    if length > terms.context_tokens {
        return Err(Unlearnable::TooLong { found: length, most: terms.context_tokens });
    }
    if prompt == 0 {
        return Err(Unlearnable::NoPrompt);
    }
    let written = tokens.output.iter().map(|token| token.id);
    let mut ids = tokens.prompt.iter().copied().chain(written);
    if let Some(found) = ids.find(|id| *id >= terms.vocabulary) {
        return Err(Unlearnable::Token { found, vocabulary: terms.vocabulary });
    }
    let weight = call.weight_milli.unwrap_or(WEIGHT_MILLI_DEFAULT);
    if weight > WEIGHT_MILLI_MAX {
        return Err(Unlearnable::Weight { found: weight });
    }
    match terms.purpose {
        Purpose::Reinforce { .. } if weight > 0 && call.sampling.temperature_milli == 0 => {
            Err(Unlearnable::Greedy)
        }
        Purpose::Reinforce { allow_cuts: false } if weight > 0 && is_cut(call) => {
            Err(Unlearnable::Cut)
        }
        Purpose::Reinforce { .. } | Purpose::Imitate => Ok(tokens),
    }
}

/// Says whether a reply was drawn from a part of the model's distribution.
fn is_cut(call: &ModelCall) -> bool {
    let sampling = call.sampling;
    let is_whole =
        sampling.top_k == 0 && sampling.top_p_milli == 1_000 && sampling.min_p_milli == 0;
    call.is_grammar_bound || !is_whole
}

fn temperature(call: &ModelCall, purpose: Purpose) -> f32 {
    match purpose {
        // A greedy call that nothing is learned from is context, at any temperature.
        Purpose::Reinforce { .. } if call.sampling.temperature_milli > 0 => {
            call.sampling.temperature_milli as f32 / 1_000.0
        }
        Purpose::Reinforce { .. } | Purpose::Imitate => 1.0,
    }
}

/// A call that cannot be learned from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleError {
    /// The seat's model call, from 0.
    pub call: usize,
    /// Why not.
    pub reason: Unlearnable,
}

/// Why a call cannot be learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlearnable {
    /// Its tokens were not recorded.
    NoTokens,
    /// It has no prompt, so that its first token has no probability.
    NoPrompt,
    /// It says that it reuses tokens that are not there.
    Reuse {
        /// How many tokens it claims.
        found: usize,
    },
    /// It is longer than the context.
    TooLong {
        /// Its tokens, of prompt and reply.
        found: usize,
        /// The context.
        most: usize,
    },
    /// A token that the model does not have.
    Token {
        /// The token.
        found: u32,
        /// How many there are.
        vocabulary: u32,
    },
    /// A weight above [`WEIGHT_MILLI_MAX`].
    Weight {
        /// In thousandths.
        found: u32,
    },
    /// It took the likeliest token: there was no distribution to sample from.
    Greedy,
    /// It was drawn from a part of the distribution.
    Cut,
}

impl fmt::Display for ExampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot learn from model call `{}`: {}", self.call, self.reason)
    }
}

impl fmt::Display for Unlearnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unlearnable::NoTokens => write!(f, "its tokens were not recorded"),
            Unlearnable::NoPrompt => write!(f, "it has no prompt"),
            Unlearnable::Reuse { found } => {
                write!(f, "it says `{found}` tokens, of which some are not there")
            }
            Unlearnable::TooLong { found, most } => {
                write!(f, "it has `{found}` tokens, the context `{most}`")
            }
            Unlearnable::Token { found, vocabulary } => {
                write!(f, "it holds token `{found}`, the vocabulary has `{vocabulary}`")
            }
            Unlearnable::Weight { found } => {
                write!(f, "its weight is `{found}` thousandths, at most `{WEIGHT_MILLI_MAX}`")
            }
            Unlearnable::Greedy => write!(f, "it was not sampled but took the likeliest tokens"),
            Unlearnable::Cut => write!(
                f,
                "it was sampled from a part of the distribution (top-k, top-p, min-p or grammar)"
            ),
        }
    }
}

impl std::error::Error for ExampleError {}

#[cfg(test)]
mod tests;
