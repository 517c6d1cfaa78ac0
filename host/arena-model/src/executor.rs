//! What computes the model: a batch of rows goes in, logits come out.
//!
//! An executor owns the weights and a pool of KV blocks, and knows nothing else: which sequence
//! has which block, what is cached and what is sampled is decided above it. It promises that the
//! logits of a row depend only on the tokens before it (and the adapter), never on what else is
//! in the batch, on how a prompt was cut into batches, or on which blocks it was given.
//!
//! Not here: the one that runs on the CPU kernels (`cpu`), burn's (`arena-burn`).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arena_kernels::context::Context;
use arena_weights::adapter::Adapter;
use arena_weights::config::ModelConfig;
use arena_weights::error::WeightsError;

/// Tokens of one KV block.
pub const BLOCK_TOKENS: usize = 16;
/// Adapters that an executor holds at once.
pub const ADAPTER_SLOTS: usize = 4;
/// Most rows of one batch.
pub const BATCH_ROWS_MAX: usize = 8_192;

/// One block of the executor's pool, from 0 to [`Executor::block_count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// One place for an adapter, from 0 to [`ADAPTER_SLOTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdapterId(pub u32);

/// Rows to be computed together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// One token for each row, at most [`BATCH_ROWS_MAX`].
    pub tokens: Vec<u32>,
    /// Whose rows they are: every row belongs to exactly one, in order.
    pub sequences: Vec<SequenceRows>,
    /// The rows whose logits are wanted, ascending.
    pub logits_of: Vec<usize>,
}

/// The rows of one sequence in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceRows {
    /// Which rows of the batch.
    pub rows: Range<usize>,
    /// The position of the first row in its context, from 0. What is before it is in the blocks.
    pub start_position: u32,
    /// The blocks of the context, oldest first: position `p` is in `blocks[p / BLOCK_TOKENS]`.
    /// They reach at least to the last row's position; there may be more.
    ///
    /// Blocks before the first row's may belong to several sequences. They may even be filled by
    /// another sequence of the same batch, an earlier one: so in every layer an executor writes
    /// the keys and values of all rows before any row attends to them.
    pub blocks: Vec<BlockId>,
    /// The adapter that applies to the rows.
    pub adapter: Option<AdapterId>,
}

/// Computes the model.
pub trait Executor: Send {
    /// Returns the numbers of the model.
    fn shape(&self) -> &ModelConfig;

    /// Returns what computes, as `key=value` lines: device, kernels, data types of weights and
    /// cache. The same on every machine on which the results are the same.
    fn description(&self) -> String;

    /// Returns the number of KV blocks in the pool.
    fn block_count(&self) -> usize;

    /// Returns the threads that also sample, if the executor has a set of its own.
    fn context(&self) -> Option<Arc<Context>> {
        None
    }

    /// Computes a batch: writes the keys and values of every row into its sequence's blocks, and
    /// the logits of the rows that are asked for, `[logits_of.len(), vocab]`, into `logits`,
    /// which is resized.
    ///
    /// # Errors
    /// The device failed. Nothing of the cache can be relied upon then.
    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ExecutorError>;

    /// Copies the keys and values of a block's first `rows` tokens, in all layers.
    ///
    /// # Errors
    /// As [`Executor::forward`].
    fn copy_rows(&mut self, from: BlockId, to: BlockId, rows: usize) -> Result<(), ExecutorError>;

    /// Puts an adapter into a slot, or empties it. No sequence of a batch uses the slot meanwhile.
    ///
    /// # Errors
    /// The adapter does not fit the model; the slot is empty then.
    fn set_adapter(
        &mut self,
        slot: AdapterId,
        adapter: Option<&Adapter>,
    ) -> Result<(), ExecutorError>;
}

/// Why an executor cannot be made, or failed.
#[derive(Debug)]
pub enum ExecutorError {
    /// The model's files cannot be used.
    Weights(WeightsError),
    /// The cache has no place for a single block.
    CacheTooSmall {
        /// Bytes that were given.
        cache_bytes: u64,
        /// Bytes of one block in all layers.
        block_bytes: u64,
    },
    /// A tensor is stored in a way, or has a width, that the device cannot use.
    Tensor {
        /// Its name.
        tensor: String,
        /// What does not fit.
        detail: String,
    },
    /// An adapter does not fit the model.
    Adapter {
        /// The weight that it adapts.
        tensor: String,
        /// What does not fit.
        detail: String,
    },
    /// A sequence that is to be learnt from does not fit the model.
    Sequence {
        /// Which of the batch, from 0.
        index: usize,
        /// What does not fit.
        detail: String,
    },
    /// A learner does not train models of this architecture.
    Untrained {
        /// The architecture's name.
        architecture: &'static str,
    },
    /// What says how a loss changes does not say it of every score.
    Slopes {
        /// Slopes of log-probabilities.
        logprobs: usize,
        /// Slopes of entropies.
        entropies: usize,
        /// Scored tokens.
        scores: usize,
    },
    /// The device failed.
    Device(String),
}

impl fmt::Display for ExecutorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecutorError::Weights(error) => write!(f, "{error}"),
            ExecutorError::CacheTooSmall { cache_bytes, block_bytes } => write!(
                f,
                "a cache of {cache_bytes} bytes has no place for a block of {block_bytes} bytes"
            ),
            ExecutorError::Tensor { tensor, detail } => write!(f, "tensor `{tensor}`: {detail}"),
            ExecutorError::Adapter { tensor, detail } => {
                write!(f, "adapter of `{tensor}`: {detail}")
            }
            ExecutorError::Sequence { index, detail } => write!(f, "sequence {index}: {detail}"),
            ExecutorError::Untrained { architecture } => {
                write!(f, "`{architecture}` is not trained on the CPU, but with burn")
            }
            ExecutorError::Slopes { logprobs, entropies, scores } => write!(
                f,
                "{scores} scores have {logprobs} slopes of log-probabilities and {entropies} of \
                 entropies"
            ),
            ExecutorError::Device(detail) => write!(f, "device failed: {detail}"),
        }
    }
}

impl std::error::Error for ExecutorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ExecutorError::Weights(error) => Some(error),
            _ => None,
        }
    }
}

impl From<WeightsError> for ExecutorError {
    fn from(error: WeightsError) -> ExecutorError {
        ExecutorError::Weights(error)
    }
}
