//! Why an engine cannot be started.

use std::fmt;

use arena_kernels::error::KernelsError;
use arena_weights::error::WeightsError;

use crate::executor::ExecutorError;

/// Why an engine cannot be started, or changed.
#[derive(Debug)]
pub enum EngineError {
    /// The executor cannot be made or failed.
    Executor(ExecutorError),
    /// The model's files cannot be used.
    Weights(WeightsError),
    /// The kernels' threads cannot be started.
    Kernels(KernelsError),
    /// The context is longer than the model's, or too short for a prompt and a reply.
    Context {
        /// Tokens that were asked for.
        asked: u32,
        /// Tokens that the model was made for.
        model: u32,
    },
    /// The cache cannot hold one context.
    Cache {
        /// Blocks that there are.
        blocks: usize,
        /// Blocks that one context takes, with one to spare.
        needed: usize,
    },
    /// An option is out of its bounds.
    Option {
        /// Its name.
        name: &'static str,
        /// What it was set to.
        value: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// The tokenizer does not fit the model.
    Vocabulary {
        /// Tokens of the tokenizer.
        words: usize,
        /// Logits of the model.
        rows: usize,
        /// Tokens of the tokenizer that end a turn.
        ends: usize,
    },
    /// No chat can be rendered: every request would be refused, which is nobody's move.
    Template(String),
    /// The thread cannot be started.
    Thread(std::io::Error),
    /// The engine has failed before.
    Failed(String),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Executor(error) => write!(f, "{error}"),
            EngineError::Weights(error) => write!(f, "{error}"),
            EngineError::Kernels(error) => write!(f, "{error}"),
            EngineError::Context { asked, model } => {
                write!(f, "context is {asked} tokens, allowed are 2 to the model's {model}")
            }
            EngineError::Cache { blocks, needed } => {
                write!(f, "cache has {blocks} blocks, one context takes {needed}")
            }
            EngineError::Option { name, value, least, most } => {
                write!(f, "`{name}` is {value}, allowed are {least} to {most}")
            }
            EngineError::Vocabulary { words, rows, ends } => write!(
                f,
                "tokenizer has {words} tokens of which {ends} end a turn, model has {rows} logits"
            ),
            EngineError::Template(detail) => {
                write!(f, "the chat template cannot render a plain chat: {detail}")
            }
            EngineError::Thread(error) => write!(f, "cannot start the engine's thread: {error}"),
            EngineError::Failed(detail) => write!(f, "engine has failed: {detail}"),
        }
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            EngineError::Executor(error) => Some(error),
            EngineError::Weights(error) => Some(error),
            EngineError::Kernels(error) => Some(error),
            EngineError::Thread(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ExecutorError> for EngineError {
    fn from(error: ExecutorError) -> EngineError {
        EngineError::Executor(error)
    }
}

impl From<WeightsError> for EngineError {
    fn from(error: WeightsError) -> EngineError {
        EngineError::Weights(error)
    }
}

impl From<KernelsError> for EngineError {
    fn from(error: KernelsError) -> EngineError {
        EngineError::Kernels(error)
    }
}
