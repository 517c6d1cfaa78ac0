//! One request on its way through the engine.
//!
//! Not here: when it gets rows and blocks (`schedule`), threads (`worker`).

use std::sync::mpsc::SyncSender;

use arena_core::seat::{SampledToken, Sampling};
use arena_core::seed::{Root, Stream};
use arena_llm::model::{FinishReason, ModelError};
use arena_llm::request::CallKey;

use crate::cache::Lease;
use crate::executor::AdapterId;
use crate::grammar::Grammar;
use crate::sampler::{NoDistribution, Pick, Row, sample};
use crate::text::{ReplyText, TextEnd};
use crate::vocabulary::Vocabulary;

/// Which weights a sequence is computed with, from its first step to its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    /// Names the version; 0 is the model without an adapter.
    pub number: u64,
    /// Where its adapter is.
    pub slot: Option<AdapterId>,
}

/// A sequence of tokens and what is wanted of it.
pub(crate) struct Sequence {
    /// Prompt, and reply as far as it is known.
    pub tokens: Vec<u32>,
    pub prompt_count: usize,
    /// Tokens whose keys and values are in the blocks.
    pub computed: usize,
    /// What it holds of the pool, while it runs.
    pub lease: Option<Lease>,
    /// The newest when it was taken in.
    pub version: Version,
    pub sampling: Sampling,
    pub grammar: Option<Grammar>,
    pub output: Vec<SampledToken>,
    pub work: Work,
}

pub(crate) enum Work {
    Generate(Generation),
    /// The reply is known and is to be scored.
    Score {
        reply: SyncSender<Result<Vec<SampledToken>, ModelError>>,
    },
}

pub(crate) struct Generation {
    pub key: CallKey,
    /// Most tokens of the reply.
    pub output_max: usize,
    pub text: ReplyText,
    /// Whether an end of turn is a token like others, so that replies have a known length.
    pub ignores_end: bool,
    pub reply: SyncSender<Result<Reply, ModelError>>,
}

/// What was generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub text: String,
    pub finish_reason: FinishReason,
    pub output: Vec<SampledToken>,
}

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoToken {
    Logits,
    Grammar(String),
}

impl From<NoToken> for ModelError {
    fn from(fault: NoToken) -> ModelError {
        match fault {
            NoToken::Logits => {
                ModelError::Unavailable("the model's logits are not finite".to_owned())
            }
            NoToken::Grammar(detail) => ModelError::InvalidInput(format!("`grammar`: {detail}")),
        }
    }
}

impl Sequence {
    pub fn is_score(&self) -> bool {
        matches!(self.work, Work::Score { .. })
    }

    /// How many tokens must be computed now: of a known reply, nothing follows the last.
    pub fn target(&self) -> usize {
        self.tokens.len() - usize::from(self.is_score())
    }

    /// The first position whose logits are wanted.
    pub fn wanted_from(&self) -> usize {
        self.prompt_count - 1 + self.output.len()
    }

    /// Picks the next tokens from rows of logits, one behind the other.
    pub fn pick(&mut self, logits: &[f32], vocabulary: &Vocabulary) -> Result<(), NoToken> {
        for logits in logits.chunks_exact(vocabulary.rows()) {
            let mask = match &mut self.grammar {
                Some(grammar) => Some(grammar.mask().map_err(NoToken::Grammar)?),
                None => None,
            };
            let token_count = vocabulary.token_count();
            let row = Row { logits, token_count, mask: mask.as_deref() };
            let token = sample(row, self.sampling, self.choose())
                .map_err(|NoDistribution| NoToken::Logits)?;
            let goes_on = !vocabulary.is_end(token.id);
            if let Some(grammar) = self.grammar.as_mut().filter(|_| goes_on) {
                grammar.advance(token.id).map_err(NoToken::Grammar)?;
            }
            self.output.push(token);
        }
        Ok(())
    }

    fn choose(&self) -> Pick {
        let index = self.output.len();
        match &self.work {
            Work::Score { .. } => Pick::Forced(self.tokens[self.prompt_count + index]),
            Work::Generate(generation) => {
                let CallKey { seat_seed, call_index } = generation.key;
                let address = [u64::from(call_index), index as u64];
                let root = Root::Seed(seat_seed);
                Pick::Draw(Stream::derive(root, "model-sample", &address).bits())
            }
        }
    }
}

impl Generation {
    /// Takes the newest token of a reply into its text. Returns whether the reply ends with it.
    pub fn take(&mut self, id: u32, count: usize, vocabulary: &Vocabulary) -> Option<FinishReason> {
        if vocabulary.is_end(id) && !self.ignores_end {
            return Some(FinishReason::Stop);
        }
        match self.text.push(vocabulary.text(id)) {
            Some(TextEnd::Stop) => Some(FinishReason::Stop),
            Some(TextEnd::Full) => Some(FinishReason::Length),
            None => (count >= self.output_max).then_some(FinishReason::Length),
        }
    }
}
