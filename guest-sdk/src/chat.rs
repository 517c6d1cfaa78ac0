//! Language models that the host lends, as a conversation that the host holds.
//!
//! Messages are appended and never taken back, so the host keeps the tokens and can reuse
//! them. Natively there is no host: every call answers [`ChatError::Unavailable`].

use std::fmt;

/// Who speaks in a conversation with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatRole {
    /// Instructions.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
}

/// How to sample a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Most tokens of the reply.
    pub max_tokens: u32,
    /// Temperature in thousandths; 0 always takes the likeliest token.
    pub temperature_milli: u32,
    /// How many of the likeliest tokens are sampled from; 0 leaves none out.
    pub top_k: u32,
    /// Nucleus size in thousandths; 1000 leaves nothing out.
    pub top_p_milli: u32,
    /// Least probability of a token, in thousandths of the likeliest one's; 0 leaves none out.
    pub min_p_milli: u32,
    /// The reply ends before any of these.
    pub stop: Vec<String>,
    /// What the reply must be, in Lark as `llguidance` reads it: at most 4,096 bytes. A model
    /// that cannot be held to a grammar refuses it.
    pub grammar: Option<String>,
}

impl Default for Sampling {
    /// Temperature 0.7, nothing cut, at most 300 tokens.
    fn default() -> Sampling {
        Sampling {
            max_tokens: 300,
            temperature_milli: 700,
            top_k: 0,
            top_p_milli: 1_000,
            min_p_milli: 0,
            stop: Vec::new(),
            grammar: None,
        }
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done, or met a stop text.
    Stop,
    /// The reply reached `max_tokens`.
    Length,
    /// The seat's budget ran out on the way.
    Budget,
}

/// A model's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Names this completion to the training interface.
    pub index: u32,
    /// The text.
    pub text: String,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// Tokens that were read.
    pub input_tokens: u32,
    /// Tokens that were written.
    pub output_tokens: u32,
}

/// A model that this seat may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its name.
    pub name: String,
    /// Most tokens of a conversation.
    pub context_tokens: u32,
}

/// What is left to this seat now: the less of what the turn and the match leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Completions.
    pub calls: u32,
    /// Tokens to read.
    pub input_tokens: u32,
    /// Tokens to write.
    pub output_tokens: u32,
}

/// Why a model gave no reply. A value, never a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatError {
    /// This seat was not granted a model of that name.
    ModelNotSupported,
    /// The request cannot be served as it stands, for example because the conversation has more
    /// tokens than are left.
    InvalidInput(String),
    /// Nothing is left for this turn or this match.
    BudgetExhausted,
    /// There is no host, or its provider is down.
    Unavailable,
}

impl fmt::Display for ChatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChatError::ModelNotSupported => f.write_str("no such model was granted to this seat"),
            ChatError::InvalidInput(reason) => write!(f, "the model refused the input: {reason}"),
            ChatError::BudgetExhausted => f.write_str("the seat's model budget is spent"),
            ChatError::Unavailable => f.write_str("no model is available"),
        }
    }
}

impl std::error::Error for ChatError {}

#[cfg(target_arch = "wasm32")]
pub use hosted::{Chat, models, remaining};
#[cfg(not(target_arch = "wasm32"))]
pub use unhosted::{Chat, models, remaining};

#[cfg(target_arch = "wasm32")]
mod hosted {
    use super::{ChatError, ChatRole, Completion, FinishReason, ModelInfo, Remaining, Sampling};
    use crate::component::bindings::arena::negotiation::inference as wire;

    /// A conversation with one model.
    pub struct Chat(wire::Chat);

    impl Chat {
        /// Opens an empty conversation.
        ///
        /// # Errors
        /// The model was not granted.
        pub fn open(model: &str) -> Result<Chat, ChatError> {
            wire::Chat::open(model).map(Chat).map_err(error)
        }

        /// Appends a message.
        ///
        /// # Errors
        /// The conversation would be too long.
        pub fn add(&self, role: ChatRole, text: &str) -> Result<(), ChatError> {
            let role = match role {
                ChatRole::System => wire::ChatRole::System,
                ChatRole::User => wire::ChatRole::User,
                ChatRole::Assistant => wire::ChatRole::Assistant,
            };
            self.0.add(role, text).map_err(error)
        }

        /// Asks for a reply, which is also appended.
        ///
        /// # Errors
        /// No budget, no provider, or a conversation that cannot be continued.
        pub fn complete(&self, sampling: &Sampling) -> Result<Completion, ChatError> {
            let params = wire::Params {
                max_tokens: sampling.max_tokens,
                temperature_milli: sampling.temperature_milli,
                top_k: sampling.top_k,
                top_p_milli: sampling.top_p_milli,
                min_p_milli: sampling.min_p_milli,
                stop: sampling.stop.clone(),
                grammar: sampling.grammar.clone(),
            };
            let completion = self.0.complete(&params).map_err(error)?;
            Ok(Completion {
                index: completion.index,
                text: completion.text,
                finish_reason: match completion.finish_reason {
                    wire::FinishReason::Stop => FinishReason::Stop,
                    wire::FinishReason::Length => FinishReason::Length,
                    wire::FinishReason::Budget => FinishReason::Budget,
                },
                input_tokens: completion.usage.input_tokens,
                output_tokens: completion.usage.output_tokens,
            })
        }
    }

    /// Lists the models that this seat may ask.
    pub fn models() -> Vec<ModelInfo> {
        let models = wire::models().into_iter();
        models
            .map(|model| ModelInfo { name: model.name, context_tokens: model.context_tokens })
            .collect()
    }

    /// Returns what is left to this seat.
    pub fn remaining() -> Remaining {
        let left = wire::remaining();
        Remaining {
            calls: left.calls,
            input_tokens: left.input_tokens,
            output_tokens: left.output_tokens,
        }
    }

    fn error(error: wire::Error) -> ChatError {
        match error {
            wire::Error::ModelNotSupported => ChatError::ModelNotSupported,
            wire::Error::InvalidInput(reason) => ChatError::InvalidInput(reason),
            wire::Error::BudgetExhausted => ChatError::BudgetExhausted,
            wire::Error::Unavailable => ChatError::Unavailable,
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod unhosted {
    use super::{ChatError, ChatRole, Completion, ModelInfo, Remaining, Sampling};

    /// A conversation with one model; natively it can never be opened.
    pub struct Chat(std::convert::Infallible);

    impl Chat {
        /// Opens an empty conversation.
        ///
        /// # Errors
        /// Always: there is no host.
        pub fn open(_model: &str) -> Result<Chat, ChatError> {
            Err(ChatError::Unavailable)
        }

        /// Appends a message.
        ///
        /// # Errors
        /// None: there is no conversation to append to.
        pub fn add(&self, _role: ChatRole, _text: &str) -> Result<(), ChatError> {
            match self.0 {}
        }

        /// Asks for a reply.
        ///
        /// # Errors
        /// None: there is no conversation to ask in.
        pub fn complete(&self, _sampling: &Sampling) -> Result<Completion, ChatError> {
            match self.0 {}
        }
    }

    /// Lists the models that this seat may ask: none.
    pub fn models() -> Vec<ModelInfo> {
        Vec::new()
    }

    /// Returns what is left to this seat: nothing.
    pub fn remaining() -> Remaining {
        Remaining { calls: 0, input_tokens: 0, output_tokens: 0 }
    }
}
