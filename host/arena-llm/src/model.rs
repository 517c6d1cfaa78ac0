//! What a language model is to the rest of arena.

use std::fmt;

use arena_core::seat::SampledToken;

use crate::request::Request;

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
    /// See [`ModelError`]; the first two are the caller's, the last is the model's.
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
    /// The text, without the stop text that ended it.
    pub text: String,
    /// Why generation ended.
    pub finish_reason: FinishReason,
    /// Tokens of the prompt.
    pub input_tokens: u32,
    /// Tokens of the reply, at most the request's `max_tokens`.
    pub output_tokens: u32,
    /// The tokens themselves, where the model says them.
    pub tokens: Option<ReplyTokens>,
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
