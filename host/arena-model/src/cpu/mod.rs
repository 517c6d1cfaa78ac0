//! The executor on the CPU kernels: Llama, Qwen3, and Qwen3 with experts.
//!
//! Weights stay in the formats of their file. Everything that a step needs besides is kept from
//! one step to the next. The kernels promise that a row's numbers do not depend on other rows,
//! and nothing here adds across rows: so batches, chunks and threads change no bit.
//!
//! Not here: the arithmetic (`arena_kernels`).

mod adapter;
mod experts;
mod forward;
mod layer;
pub mod learner;
mod network;
mod scratch;

use std::num::NonZeroUsize;
use std::sync::Arc;

use arena_kernels::attention::{AttentionShape, KvBlocks};
use arena_kernels::context::Context;
use arena_kernels::isa::Isa;
use arena_kernels::rope::RopeTable;
use arena_weights::adapter::Adapter;
use arena_weights::config::ModelConfig;
use arena_weights::error::WeightsError;
use arena_weights::tensor::Tensor;
use arena_weights::weights::Weights;

use crate::error::EngineError;
use crate::executor::{
    ADAPTER_SLOTS, AdapterId, BLOCK_TOKENS, Batch, BlockId, Executor, ExecutorError,
};

use self::adapter::AdapterMatrices;
use self::network::Network;
use self::scratch::Scratch;

/// What the numbers of a reply depend on besides the weights. It changes when they do.
const ARITHMETIC: &str = "f32-chains-1";

/// Runs a model on the CPU.
pub struct CpuExecutor {
    config: ModelConfig,
    context: Arc<Context>,
    network: Network,
    rope: RopeTable,
    attention: AttentionShape,
    block_count: usize,
    /// One for each layer.
    cache: Vec<KvBlocks>,
    adapters: [Option<AdapterMatrices>; ADAPTER_SLOTS],
    scratch: Scratch,
}

impl CpuExecutor {
    /// Reads a model's weights. The cache takes at most `cache_bytes_max` bytes; memory is taken
    /// when a block is first used.
    ///
    /// # Errors
    /// The files cannot be used, the threads cannot be started, the cache is too small.
    pub fn load(
        weights: &Weights,
        threads: NonZeroUsize,
        cache_bytes_max: u64,
    ) -> Result<CpuExecutor, EngineError> {
        let context = Arc::new(Context::new(threads, Isa::best())?);
        let read = &mut |name: &str| weights.tensor(name);
        CpuExecutor::from_tensors(weights.config(), read, context, cache_bytes_max)
    }

    /// Makes an executor of tensors that `read` returns by their canonical names.
    ///
    /// # Errors
    /// As [`CpuExecutor::load`].
    pub fn from_tensors(
        config: &ModelConfig,
        read: &mut dyn FnMut(&str) -> Result<Tensor, WeightsError>,
        context: Arc<Context>,
        cache_bytes_max: u64,
    ) -> Result<CpuExecutor, EngineError> {
        let config = config.clone();
        let block_bytes =
            (config.layers * KvBlocks::block_bytes(config.kv_heads, config.head_dim)) as u64;
        let block_count = (cache_bytes_max / block_bytes).min(u64::from(u32::MAX)) as usize;
        if block_count == 0 {
            let cache_bytes = cache_bytes_max;
            return Err(ExecutorError::CacheTooSmall { cache_bytes, block_bytes }.into());
        }
        let network = Network::read(&config, read)?;
        // No position is beyond the pool, so a file's number cannot make the table larger.
        let positions = config.context_tokens.min(block_count.saturating_mul(BLOCK_TOKENS));
        let blocks = || KvBlocks::new(block_count, config.kv_heads, config.head_dim);
        Ok(CpuExecutor {
            rope: RopeTable::new(config.head_dim, f64::from(config.rope_theta), positions),
            attention: AttentionShape {
                heads: config.heads,
                kv_heads: config.kv_heads,
                head_dim: config.head_dim,
            },
            cache: (0..config.layers).map(|_| blocks()).collect(),
            adapters: std::array::from_fn(|_| None),
            scratch: Scratch::default(),
            config,
            context,
            network,
            block_count,
        })
    }
}

impl Executor for CpuExecutor {
    fn shape(&self) -> &ModelConfig {
        &self.config
    }

    fn description(&self) -> String {
        [
            "device=cpu".to_owned(),
            format!("arithmetic={ARITHMETIC}"),
            format!("architecture={}", self.config.architecture.name()),
            format!("weights={}", self.network.formats()),
            "cache=f32".to_owned(),
            format!("block-tokens={BLOCK_TOKENS}"),
        ]
        .join("\n")
    }

    fn block_count(&self) -> usize {
        self.block_count
    }

    fn context(&self) -> Option<Arc<Context>> {
        Some(Arc::clone(&self.context))
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ExecutorError> {
        self.compute(batch, logits);
        Ok(())
    }

    fn copy_rows(&mut self, from: BlockId, to: BlockId, rows: usize) -> Result<(), ExecutorError> {
        for blocks in &mut self.cache {
            blocks.copy_rows(from.0, to.0, rows);
        }
        Ok(())
    }

    fn set_adapter(
        &mut self,
        slot: AdapterId,
        adapter: Option<&Adapter>,
    ) -> Result<(), ExecutorError> {
        let place = &mut self.adapters[slot.0 as usize];
        *place = None;
        if let Some(adapter) = adapter {
            *place = Some(AdapterMatrices::new(adapter, &self.config)?);
        }
        Ok(())
    }
}
