//! Models of a few thousand random weights, the same in every run.

use std::io::Write as _;

use arena_burn::device::BurnDevice;
use arena_burn::executor::BurnExecutor;
use arena_burn::loading;
use arena_burn::transformer::Transformer;
use arena_model::executor::{AdapterId, Batch, BlockId, Executor, SequenceRows};
use arena_weights::adapter::{Adapter, AdapterLayer};
use arena_weights::config::{Architecture, ModelConfig, Moe};
use arena_weights::manifest::Manifest;
use burn::tensor::Device;

/// Every architecture.
pub const ARCHITECTURES: [Architecture; 3] =
    [Architecture::Llama, Architecture::Qwen3, Architecture::Qwen3Moe];

/// How far two ways of computing the same logits may be apart: they are of the order of 1, and
/// `f32` has seven digits.
pub const TOLERANCE: f32 = 2.0e-4;

/// Blocks of a tiny executor's cache.
pub const BLOCKS: u64 = 12;

/// Returns the devices to test on, and says which are left out.
pub fn devices() -> Vec<BurnDevice> {
    let all = [BurnDevice::Flex, BurnDevice::Wgpu, BurnDevice::Cuda];
    all.into_iter().filter(|device| is_here(*device)).collect()
}

/// Says whether this program can test on a device, aloud if it was built for it and cannot.
pub fn is_here(device: BurnDevice) -> bool {
    let compiled = match device {
        BurnDevice::Flex => true,
        BurnDevice::Wgpu => cfg!(feature = "wgpu"),
        BurnDevice::Cuda => cfg!(feature = "cuda"),
    };
    match device.open() {
        Ok(_) => return true,
        Err(error) if compiled => skipped(&format!("tests on `{device}`: {error}")),
        Err(_) => {}
    }
    false
}

/// Says that something is not tested, past the test harness, which would hide it.
pub fn skipped(what: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}").expect("stderr can be written to");
}

/// Returns the numbers of a tiny model. Widths are no multiples of anything that matters.
pub fn config(architecture: Architecture) -> ModelConfig {
    let moe = Moe { experts: 6, experts_per_token: 2, ffn: 20, normalise: true };
    ModelConfig {
        architecture,
        hidden: 36,
        layers: 2,
        heads: 6,
        kv_heads: 2,
        head_dim: 10,
        ffn: 44,
        vocab: 91,
        context_tokens: 256,
        rope_theta: 10_000.0,
        rms_eps: 1.0e-5,
        tied_embeddings: architecture == Architecture::Llama,
        moe: (architecture == Architecture::Qwen3Moe).then_some(moe),
        bos: None,
        eos: vec![0],
    }
}

/// Numbers without pattern, by their seed (Steele et al. 2014, "SplitMix").
pub struct Random(pub u64);

impl Random {
    /// Returns the next number below `below`.
    pub fn below(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(below)) as u32
    }

    /// Returns numbers between -1 and 1.
    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    /// Returns token ids of a tiny model.
    pub fn tokens(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.below(91)).collect()
    }
}

/// Returns the weights of a tensor: norms around 1, matrices so that rows keep their size.
pub fn tensor(name: &str, shape: &[usize]) -> Vec<f32> {
    let seed = name.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
    let values = Random(seed).floats(shape.iter().product());
    match shape {
        [_] => values.iter().map(|value| 1.0 + 0.3 * value).collect(),
        [.., inputs] => {
            let scale = 2.0 / (*inputs as f32).sqrt();
            values.iter().map(|value| scale * value).collect()
        }
        [] => values,
    }
}

/// Returns a tiny model on a device.
pub fn model(architecture: Architecture, device: &Device) -> Transformer {
    loading::build(&config(architecture), device, &|name, shape| Ok(tensor(name, shape).into()))
        .expect("every tensor is there")
}

/// Returns an executor of a tiny model.
pub fn executor(architecture: Architecture, device: BurnDevice) -> BurnExecutor {
    let model = model(architecture, &device.open().expect("the device is there"));
    serve(model, architecture, device)
}

/// Returns an executor of a model with a tiny model's numbers.
pub fn serve(model: Transformer, architecture: Architecture, device: BurnDevice) -> BurnExecutor {
    let config = config(architecture);
    let block_bytes = (config.layers * 2 * 16 * config.kv_heads * config.head_dim * 4) as u64;
    let executor = BurnExecutor::new(config, model, device, BLOCKS * block_bytes + 1)
        .expect("the device is there");
    assert_eq!(executor.block_count() as u64, BLOCKS);
    executor
}

/// Returns an adapter of rank 3 that changes these weights.
pub fn adapter(config: &ModelConfig, names: &[&str]) -> Adapter {
    let mut random = Random(7);
    let (hidden, ffn, heads) = (config.hidden, config.ffn, config.heads * config.head_dim);
    let layer = |name: &str| {
        let (rows, columns) = match name {
            name if name.contains("q_proj") => (heads, hidden),
            name if name.contains("o_proj") => (hidden, heads),
            name if name.contains("down_proj") => (hidden, ffn),
            _ => (ffn, hidden),
        };
        let (a, b) = (random.floats(3 * columns), random.floats(rows * 3));
        (name.to_string(), AdapterLayer { columns, rows, a, b })
    };
    let layers = names.iter().copied().map(layer).collect();
    Adapter { rank: 3, scale: 0.5, layers, manifest: Manifest { files: Vec::new() } }
}

/// One sequence's rows of a batch.
#[derive(Clone)]
pub struct Piece {
    /// Position of the first.
    pub start: usize,
    /// The rows' tokens.
    pub tokens: Vec<u32>,
    /// The sequence's blocks.
    pub blocks: Vec<u32>,
    /// What applies to them.
    pub adapter: Option<AdapterId>,
}

/// Returns rows with no adapter.
pub fn piece(start: usize, tokens: &[u32], blocks: &[u32]) -> Piece {
    Piece { start, tokens: tokens.to_vec(), blocks: blocks.to_vec(), adapter: None }
}

/// Returns a batch that asks for the logits of every row.
pub fn batch(pieces: &[Piece]) -> Batch {
    let mut batch = Batch::default();
    for piece in pieces {
        let first = batch.tokens.len();
        batch.tokens.extend(&piece.tokens);
        batch.sequences.push(SequenceRows {
            rows: first..batch.tokens.len(),
            start_position: piece.start as u32,
            blocks: piece.blocks.iter().copied().map(BlockId).collect(),
            adapter: piece.adapter,
        });
    }
    batch.logits_of = (0..batch.tokens.len()).collect();
    batch
}

/// Computes some sequences' rows together, and returns the logits of every row.
pub fn run(executor: &mut dyn Executor, pieces: &[Piece]) -> Vec<f32> {
    let mut logits = Vec::new();
    executor.forward(&batch(pieces), &mut logits).expect("the device works");
    logits
}

/// Holds logits against those of another way to compute them.
#[track_caller]
pub fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let difference = |(a, b): (&f32, &f32)| (a - b).abs();
    let greatest = found.iter().zip(expected).map(difference).fold(0.0, f32::max);
    assert!(greatest <= TOLERANCE, "{what}: {greatest} apart");
    assert!(found.iter().chain(expected).all(|logit| logit.is_finite()), "{what}");
    let spread = expected.iter().fold(0.0, |most: f32, logit| most.max(logit.abs()));
    assert!(spread > 0.1, "{what}: logits are all within {spread}, and say nothing");
}
