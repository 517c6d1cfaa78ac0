//! Keys and values of every token that is remembered, on the device.
//!
//! A slot is one token's place; [`BLOCK_TOKENS`] slots in a row are a block. Slots are written over
//! in place, and read by copying those of a sequence together: burn has no attention over pages.
//!
//! Not here: who owns which block (`arena_model`), which slots belong together (`plan`).

use arena_model::executor::BLOCK_TOKENS;
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};

use crate::transformer::attention::Heads;

/// The cache of all layers.
#[derive(Debug)]
pub struct Cache {
    layers: Vec<LayerCache>,
    blocks: usize,
}

/// One layer's cache.
#[derive(Debug)]
struct LayerCache {
    /// `[blocks * BLOCK_TOKENS, kv_heads * head_dim]`
    keys: InPlace,
    /// `[blocks * BLOCK_TOKENS, kv_heads * head_dim]`
    values: InPlace,
}

/// A tensor that is written over where it lies. burn does that if nobody else holds it, so it is
/// taken out while it is being written.
#[derive(Debug)]
struct InPlace(Option<Tensor<2>>);

impl InPlace {
    fn get(&self) -> Tensor<2> {
        self.0.clone().expect("every change puts it back")
    }

    fn change(&mut self, change: impl FnOnce(Tensor<2>) -> Tensor<2>) {
        self.0 = self.0.take().map(change);
    }
}

impl Cache {
    /// Returns the bytes that a block takes in all layers.
    pub fn block_bytes(layers: usize, kv_width: usize) -> u64 {
        (layers * 2 * BLOCK_TOKENS * kv_width * size_of::<f32>()) as u64
    }

    /// Returns a cache of zeros. `kv_width` is `kv_heads * head_dim`.
    pub fn new(layers: usize, blocks: usize, kv_width: usize, device: &Device) -> Cache {
        let zeros = || InPlace(Some(Tensor::zeros([blocks * BLOCK_TOKENS, kv_width], device)));
        let layer = |_| LayerCache { keys: zeros(), values: zeros() };
        Cache { layers: (0..layers).map(layer).collect(), blocks }
    }

    /// Returns how many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Writes keys and values of rows to their slots, `[rows]`, all different.
    pub fn write(&mut self, layer: usize, slots: &Tensor<1, Int>, heads: &Heads) {
        let [rows, kv_heads, head_dim] = heads.keys.dims();
        let LayerCache { keys, values } = &mut self.layers[layer];
        for (cache, rows_of) in [(keys, &heads.keys), (values, &heads.values)] {
            let rows_of = rows_of.clone().reshape([rows, kv_heads * head_dim]);
            cache.change(|cache| {
                cache.select_assign(0, slots.clone(), rows_of, IndexingUpdateOp::Assign)
            });
        }
    }

    /// Returns keys and values at slots, `[slots, kv_heads * head_dim]` each.
    pub fn read(&self, layer: usize, slots: &Tensor<1, Int>) -> (Tensor<2>, Tensor<2>) {
        let LayerCache { keys, values } = &self.layers[layer];
        (keys.get().select(0, slots.clone()), values.get().select(0, slots.clone()))
    }

    /// Copies the first `rows` slots of block `from` to block `to`, in all layers.
    pub fn copy_rows(&mut self, from: usize, to: usize, rows: usize) {
        let place = |block: usize| block * BLOCK_TOKENS..block * BLOCK_TOKENS + rows;
        for layer in &mut self.layers {
            for cache in [&mut layer.keys, &mut layer.values] {
                // A copy, where a slice may be a view that keeps the cache from being written in
                // place.
                let copy = cache.get().select(0, indices(place(from), &cache.get().device()));
                cache.change(|cache| cache.slice_assign(place(to), copy));
            }
        }
    }
}

/// Returns numbers of rows or slots as a tensor, `[count]`.
pub fn indices(numbers: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let numbers: Vec<i32> = numbers
        .map(|number| i32::try_from(number).expect("a cache has fewer slots than 2^31"))
        .collect();
    let count = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [count]), device)
}
