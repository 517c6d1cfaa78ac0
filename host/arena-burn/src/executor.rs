//! Computes the engine's batches with burn.
//!
//! Not here: the arithmetic (`transformer`), how a batch is cut (`plan`), where keys and values
//! lie (`cache`).

use std::collections::BTreeMap;

use arena_model::executor::{
    ADAPTER_SLOTS, AdapterId, BATCH_ROWS_MAX, BLOCK_TOKENS, Batch, BlockId, Executor, ExecutorError,
};
use arena_weights::adapter::Adapter;
use arena_weights::config::ModelConfig;
use arena_weights::weights::Weights;
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::adapter;
use crate::cache::{Cache, indices};
use crate::device::{self, BurnDevice};
use crate::error::BurnError;
use crate::loading;
use crate::plan::{GROUP_ELEMENTS_MAX, Group, SequencePlan, Widths, groups};
use crate::transformer::Transformer;
use crate::transformer::attention::{Heads, attend};
use crate::transformer::linear::{LayerAdapter, RowAdapter};
use crate::transformer::rotation::Rotation;

/// The version of burn, as the workspace pins it.
pub(crate) const BURN_VERSION: &str = "0.22.1";

/// The most blocks of a cache: slots are counted in 31 bits on the device.
const BLOCKS_MAX: u64 = (1 << 31) / BLOCK_TOKENS as u64 - 1;

/// A model on a burn device, with its cache.
pub struct BurnExecutor {
    config: ModelConfig,
    named: BurnDevice,
    device: Device,
    model: Transformer,
    cache: Cache,
    /// For every slot the changes of every layer.
    adapters: [Option<Vec<LayerAdapter>>; ADAPTER_SLOTS],
}

/// A batch, on the device.
struct Rows {
    /// `[rows]`
    tokens: Tensor<1, Int>,
    rotation: Rotation,
    /// The slot of every row, `[rows]`.
    slots: Tensor<1, Int>,
    groups: Vec<RowGroup>,
    /// Where each row is among those of all groups, one after the other, `[rows]`.
    order: Tensor<1, Int>,
}

/// Rows that an adapter applies to.
struct Adapted<'a> {
    /// `[count]`
    rows: Tensor<1, Int>,
    /// The same, ascending.
    indices: Vec<usize>,
    /// Its changes of every layer.
    layers: &'a [LayerAdapter],
}

/// Rows that attend together, on the device.
struct RowGroup {
    /// `[sequences * rows of one]`
    rows: Tensor<1, Int>,
    /// `[sequences * context]`
    slots: Tensor<1, Int>,
    /// `[sequences, rows of one, context]`
    bias: Tensor<3>,
}

impl BurnExecutor {
    /// Brings a model onto a device, with as many blocks of cache as `cache_bytes_max` holds.
    ///
    /// # Errors
    /// The device is not compiled in or not there, a tensor is missing or unsound, or the cache
    /// holds no block.
    pub fn load(
        weights: &Weights,
        named: BurnDevice,
        cache_bytes_max: u64,
    ) -> Result<BurnExecutor, BurnError> {
        let model = loading::load(weights, &named.open()?)?;
        BurnExecutor::new(weights.config().clone(), model, named, cache_bytes_max)
    }

    /// Serves a model that is on the device already, and not on its autodiff twin.
    ///
    /// # Errors
    /// The device is not compiled in or not there, or the cache holds no block.
    pub fn new(
        config: ModelConfig,
        model: Transformer,
        named: BurnDevice,
        cache_bytes_max: u64,
    ) -> Result<BurnExecutor, BurnError> {
        let device = named.open()?;
        let kv_width = config.kv_heads * config.head_dim;
        let block_bytes = Cache::block_bytes(config.layers, kv_width);
        let blocks = (cache_bytes_max / block_bytes).min(BLOCKS_MAX) as usize;
        if blocks == 0 {
            let cache_bytes = cache_bytes_max;
            return Err(ExecutorError::CacheTooSmall { cache_bytes, block_bytes }.into());
        }
        let cache = Cache::new(config.layers, blocks, kv_width, &device);
        device.sync().map_err(device_failed)?;
        let adapters = std::array::from_fn(|_| None);
        Ok(BurnExecutor { config, named, device, model, cache, adapters })
    }

    /// Computes all layers, and returns what leaves the last, `[rows, hidden]`.
    fn hidden(&mut self, batch: &Batch) -> Tensor<2> {
        let rows = Rows::new(batch, &self.config, self.cache.blocks(), &self.device);
        let adapted = adapted_rows(batch, &self.adapters, &self.device);
        let mut x = self.model.embedding.forward(rows.tokens);
        for (index, layer) in self.model.layers.iter().enumerate() {
            let adapters: Vec<RowAdapter<'_>> = adapted
                .iter()
                .map(|of| RowAdapter {
                    rows: &of.rows,
                    indices: &of.indices,
                    layer: &of.layers[index],
                })
                .collect();
            x = layer.forward(x, &rows.rotation, &adapters, |heads| {
                // Every row is written before any attends: one may read what another wrote.
                self.cache.write(index, &rows.slots, &heads);
                let out = rows.groups.iter().map(|group| group.attend(&self.cache, index, &heads));
                Tensor::cat(out.collect(), 0).select(0, rows.order.clone())
            });
        }
        x
    }
}

impl Rows {
    fn new(batch: &Batch, config: &ModelConfig, blocks: usize, device: &Device) -> Rows {
        let plans = plans(batch, blocks);
        let positions: Vec<u32> =
            plans.iter().flat_map(|plan| plan.start as u32..plan.slots.len() as u32).collect();
        let written = plans.iter().flat_map(|plan| plan.slots[plan.start..].iter().copied());
        let widths = Widths { heads: config.heads, kv_width: config.kv_heads * config.head_dim };
        let groups = groups(&plans, widths);
        let mut order = vec![0; batch.tokens.len()];
        for (place, row) in groups.iter().flat_map(|group| &group.rows).enumerate() {
            order[*row] = place;
        }
        let token = |&token: &u32| {
            assert!((token as usize) < config.vocab, "token {token} of {}", config.vocab);
            token as usize
        };
        let theta = f64::from(config.rope_theta);
        Rows {
            tokens: indices(batch.tokens.iter().map(token), device),
            rotation: Rotation::new(&positions, config.head_dim, theta, device),
            slots: indices(written, device),
            groups: groups.into_iter().map(|group| RowGroup::new(group, device)).collect(),
            order: indices(order.into_iter(), device),
        }
    }
}

impl RowGroup {
    fn new(group: Group, device: &Device) -> RowGroup {
        let shape = [group.sequences, group.rows.len() / group.sequences, group.context];
        RowGroup {
            rows: indices(group.rows.into_iter(), device),
            slots: indices(group.slots.into_iter(), device),
            bias: Tensor::from_data(TensorData::new(group.bias, shape), device),
        }
    }

    /// Returns what the group's rows attend to in a layer's cache,
    /// `[sequences * rows of one, heads * head_dim]`. `heads` are those of all rows of the batch.
    fn attend(&self, cache: &Cache, layer: usize, heads: &Heads) -> Tensor<2> {
        let [sequences, tokens, context] = self.bias.dims();
        let [_, query_heads, head_dim] = heads.queries.dims();
        let [_, kv_heads, _] = heads.keys.dims();
        let queries = heads.queries.clone().select(0, self.rows.clone());
        let (keys, values) = cache.read(layer, &self.slots);
        let cut = |slots: Tensor<2>| slots.reshape([sequences, context, kv_heads, head_dim]);
        attend(
            queries.reshape([sequences, tokens, query_heads, head_dim]),
            cut(keys),
            cut(values),
            self.bias.clone(),
        )
    }
}

/// Returns where the rows of every sequence lie in the cache.
fn plans(batch: &Batch, blocks: usize) -> Vec<SequencePlan> {
    let mut next = 0;
    let mut plans = Vec::with_capacity(batch.sequences.len());
    for sequence in &batch.sequences {
        assert_eq!(sequence.rows.start, next, "every row belongs to one sequence, in order");
        next = sequence.rows.end;
        let block = |block: &BlockId| {
            let block = block.0 as usize;
            assert!(block < blocks, "block {block} of {blocks}");
            block
        };
        let of_sequence: Vec<usize> = sequence.blocks.iter().map(block).collect();
        let start = sequence.start_position as usize;
        plans.push(SequencePlan::new(sequence.rows.clone(), start, &of_sequence));
    }
    assert_eq!(next, batch.tokens.len(), "every row belongs to a sequence");
    plans
}

/// Returns the rows that each adapter of a batch applies to, with its changes of all layers.
fn adapted_rows<'a>(
    batch: &Batch,
    adapters: &'a [Option<Vec<LayerAdapter>>],
    device: &Device,
) -> Vec<Adapted<'a>> {
    let mut rows: BTreeMap<AdapterId, Vec<usize>> = BTreeMap::new();
    for sequence in &batch.sequences {
        if let Some(slot) = sequence.adapter {
            rows.entry(slot).or_default().extend(sequence.rows.clone());
        }
    }
    let found = |(slot, rows): (AdapterId, Vec<usize>)| {
        let layers = adapters[slot.0 as usize].as_deref();
        let layers = layers.expect("a slot is filled before it is used");
        Adapted { rows: indices(rows.iter().copied(), device), indices: rows, layers }
    };
    rows.into_iter().map(found).collect()
}

fn device_failed(error: impl std::fmt::Display) -> ExecutorError {
    ExecutorError::Device(error.to_string())
}

impl Executor for BurnExecutor {
    fn shape(&self) -> &ModelConfig {
        &self.config
    }

    fn description(&self) -> String {
        let adapter = device::adapter(&self.device);
        let adapter = adapter.map_or(String::new(), |name| format!("adapter={name}\n"));
        format!(
            "device={}\n{adapter}kernels=burn {BURN_VERSION}\nweights={}\ncache=f32\n",
            self.named,
            self.model.formats()
        )
    }

    fn block_count(&self) -> usize {
        self.cache.blocks()
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ExecutorError> {
        assert!(batch.tokens.len() <= BATCH_ROWS_MAX, "{} rows", batch.tokens.len());
        logits.clear();
        if batch.tokens.is_empty() {
            return Ok(());
        }
        let hidden = self.hidden(batch);
        let rows_max = (GROUP_ELEMENTS_MAX / self.config.vocab).max(1);
        for rows in batch.logits_of.chunks(rows_max) {
            let rows = indices(rows.iter().copied(), &self.device);
            let wanted = self.model.logits(hidden.clone().select(0, rows));
            let data = wanted.try_into_data().map_err(device_failed)?;
            logits.extend_from_slice(data.as_slice::<f32>().map_err(|error| {
                ExecutorError::Device(format!("logits are not of f32: {error:?}"))
            })?);
        }
        Ok(())
    }

    fn copy_rows(&mut self, from: BlockId, to: BlockId, rows: usize) -> Result<(), ExecutorError> {
        assert!(rows <= BLOCK_TOKENS, "{rows} rows of a block of {BLOCK_TOKENS}");
        let blocks = self.cache.blocks();
        let (from, to) = (from.0 as usize, to.0 as usize);
        assert!(from < blocks && to < blocks, "blocks {from} and {to} of {blocks}");
        self.cache.copy_rows(from, to, rows);
        Ok(())
    }

    fn set_adapter(
        &mut self,
        slot: AdapterId,
        adapter: Option<&Adapter>,
    ) -> Result<(), ExecutorError> {
        let slot = slot.0 as usize;
        self.adapters[slot] = None;
        if let Some(adapter) = adapter {
            self.adapters[slot] = Some(adapter::load(adapter, &self.model, &self.device)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_version_is_the_pinned_one() {
        let workspace = include_str!("../../../Cargo.toml");
        assert!(workspace.contains(&format!("burn = {{ version = \"={BURN_VERSION}\"")));
    }
}
