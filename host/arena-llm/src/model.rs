//! What a language model is to the rest of arena.

use std::fmt;

use arena_core::config::limits::MODEL_REPLY_BYTES_MAX;
use arena_core::dialogue;
use arena_core::seat::SampledToken;

use crate::request::Request;

/// Longest reply in bytes, whatever its number of tokens. A model ends a longer one there, with
/// [`FinishReason::Length`].
pub const REPLY_BYTES_MAX: usize = MODEL_REPLY_BYTES_MAX as usize;

/// Something that continues a conversation.
///
/// Seats of many matches share one model, so it is called from several threads at once. A
/// reply may depend on the request alone, never on other requests or on their order.
pub trait LanguageModel: Send + Sync {
    /// Returns what the model says about itself. Constant over the model's life.
    fn info(&self) -> ModelInfo;

    /// Counts the tokens of a request's prompt without answering it: what a completion would
    /// report as `input_tokens`. `None` where only an answer tells.
    ///
    /// # Errors
    /// As [`LanguageModel::complete`].
    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError>;

    /// Answers a request.
    ///
    /// # Errors
    /// See [`ModelError`]; the first two are the caller's, the last is the model's. A model that
    /// waits for something has a time-out of its own, since nobody else ends the call.
    fn complete(&self, request: &Request) -> Result<Completion, ModelError>;
}

/// What a model says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name that agents ask for.
    pub name: String,
    /// Tokens of a prompt and its reply together.
    pub context_tokens: u32,
    /// The model's identity: SHA-256 of its manifest, of a scripted model its script.
    pub sha256: [u8; 32],
    /// What computes the replies, one `key=value` per line: device, kernels, data types of weights
    /// and cache, version. It is announced.
    pub engine: String,
}

/// A model's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The text, without the stop text that ended it: at most [`REPLY_BYTES_MAX`] bytes.
    pub text: String,
    /// Why generation ended.
    pub finish_reason: FinishReason,
    /// Tokens of the prompt, at least 1.
    pub input_tokens: u32,
    /// Tokens of the reply, at most the request's `max_tokens`.
    pub output_tokens: u32,
    /// The tokens themselves, where the model says them.
    pub tokens: Option<ReplyTokens>,
}

impl Completion {
    /// Checks what holds of any model's reply. Models are not trusted: they may be servers of
    /// others. Every reply that can reach a record is checked here and nowhere else.
    ///
    /// # Errors
    /// What is wrong, for the operator.
    pub fn check(&self, request: &Request) -> Result<(), String> {
        let bytes = self.text.len();
        if bytes > REPLY_BYTES_MAX {
            return Err(format!("replied with {bytes} bytes, at most {REPLY_BYTES_MAX} are kept"));
        }
        let (found, asked) = (self.output_tokens, request.max_tokens);
        if found > asked {
            return Err(format!("replied with {found} tokens, was asked for at most {asked}"));
        }
        if found == 0 && !self.text.trim_ascii().is_empty() {
            return Err(format!("replied with {bytes} bytes and counts no tokens of them"));
        }
        if self.input_tokens == 0 {
            return Err("counts no tokens of the prompt".to_owned());
        }
        if self.finish_reason == FinishReason::Budget {
            return Err("gives a budget that it cannot know as the end of its reply".to_owned());
        }
        self.tokens.as_ref().map_or(Ok(()), |tokens| self.check_tokens(tokens))
    }

    fn check_tokens(&self, tokens: &ReplyTokens) -> Result<(), String> {
        let counts = [
            ("prompt", self.input_tokens, tokens.prompt.len()),
            ("reply", self.output_tokens, tokens.output.len()),
        ];
        for (what, counted, listed) in counts {
            if counted as usize != listed {
                return Err(format!("counts {counted} tokens of its {what} and lists {listed}"));
            }
        }
        dialogue::check_scores(&tokens.output).map_err(|fault| fault.to_string())
    }
}

/// The tokens of a prompt and its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTokens {
    /// The whole prompt: as many as `input_tokens`.
    pub prompt: Vec<u32>,
    /// The reply, as many as `output_tokens`: with the token that ended the turn if the model
    /// wrote it, and with those of a stop text that ended it.
    pub output: Vec<SampledToken>,
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model was done, or wrote a stop text.
    Stop,
    /// The request's `max_tokens`, or the model's context, was reached.
    Length,
    /// The seat's allowance was reached. Models do not return it; an
    /// [`crate::allowance::Allowance`] puts it in the place of `Length`.
    Budget,
}

impl FinishReason {
    /// Returns the number that stands for it in a record.
    pub fn code(self) -> u8 {
        match self {
            FinishReason::Stop => 0,
            FinishReason::Length => 1,
            FinishReason::Budget => 2,
        }
    }
}

/// Why there is no completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// The model asked for is not the one that was called, or is not known at all.
    NotSupported,
    /// The request cannot be answered as it stands; the text says why.
    InvalidInput(String),
    /// The model or its provider failed; the text is for the operator. Never a seat's fault.
    Unavailable(String),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::NotSupported => write!(f, "model is not supported"),
            ModelError::InvalidInput(detail) => write!(f, "invalid input: {detail}"),
            ModelError::Unavailable(detail) => write!(f, "model is unavailable: {detail}"),
        }
    }
}

impl std::error::Error for ModelError {}
