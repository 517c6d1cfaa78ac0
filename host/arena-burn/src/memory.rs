//! What training a model takes: bytes, and operations of every token.
//!
//! Pure: numbers of the model in, numbers out. Bytes of weights and of the optimiser are counted;
//! those of activations are what products, norms and softmaxes keep for the way back, to which a
//! device adds what it needs in passing and what its allocator leaves unused. Operations are those
//! of the products, two for each multiplication with its addition.
//!
//! Not here: measuring.

use std::fmt;

use arena_model::learner::Trained;
use arena_weights::config::ModelConfig;

/// The most logits that are computed at once, 64 MiB of `f32`, if they are not one row's.
pub const LOGITS_MAX: usize = 1 << 24;
/// Bytes of a number.
const F32: u64 = 4;
/// Bytes of a number in half precision.
const BF16: u64 = 2;
/// Tensors of a chunk of logits that are there at once: logits, their softmax's logarithm, its
/// exponential, and a gradient.
const LOGITS_TENSORS: u64 = 4;

/// What the way back finds of the way forth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activations {
    /// Everything that it needs.
    Kept,
    /// What went into every layer, of which one at a time is computed again: a third more
    /// operations, for a small part of the memory.
    Recomputed,
}

impl fmt::Display for Activations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Activations::Kept => "kept",
            Activations::Recomputed => "recomputed",
        })
    }
}

/// What is learned from at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Sequences that one pass is made of.
    pub sequences: u64,
    /// Tokens of each.
    pub tokens_each: u64,
    /// How many of them are scored.
    pub scored_each: u64,
    /// What is kept.
    pub activations: Activations,
}

/// What training takes, in bytes if nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// How many weights the model has, an adapter excepted.
    pub weight_count: u64,
    /// How many of them a token is multiplied with, the embedding excepted.
    pub active_count: u64,
    /// All weights as `bf16`.
    pub weights_bf16: u64,
    /// All weights as `f32`.
    pub weights_f32: u64,
    /// What weights kept as `bf16` take besides while a pass goes back, widened: one layer's, or
    /// all layers' if activations are kept.
    pub widened: u64,
    /// How many numbers are trained.
    pub trained_count: u64,
    /// An adapter, on the device; 0 where there is none.
    pub adapter: u64,
    /// Gradients of what is trained, as the caller accumulates them.
    pub gradients: u64,
    /// AdamW's two moments of what is trained.
    pub optimiser: u64,
    /// What each token of a pass leaves on the device for the way back, in all layers.
    pub activations_per_token: u64,
    /// What a whole pass leaves there at most, and the chunks of logits.
    pub activations: u64,
    /// Keys and values of one token in all layers, as an engine caches them in `f32`.
    pub cache_per_token: u64,
    /// Operations of sampling a token, its own share of attention included.
    pub forward_flops_per_token: u64,
    /// Operations of learning from a token: forth, back, and forth again where layers are
    /// recomputed.
    pub training_flops_per_token: u64,
}

impl Estimate {
    /// Returns the bytes on the device while a pass goes back, with weights in `f32`.
    pub fn device_f32(&self) -> u64 {
        self.weights_f32 + self.adapter + self.activations
    }

    /// Returns them with frozen weights as they are stored, in `bf16`.
    pub fn device_bf16(&self) -> u64 {
        self.weights_bf16 + self.widened + self.adapter + self.activations
    }

    /// Returns the bytes beside the device: values, gradients and moments of what is trained.
    pub fn host(&self) -> u64 {
        F32 * self.trained_count + self.gradients + self.optimiser
    }
}

/// Returns what training a model takes, whose numbers were checked against its tensors.
pub fn memory_estimate(config: &ModelConfig, trained: &Trained, load: &Load) -> Estimate {
    let counts = Counts::new(config, trained);
    let weight_count = counts.weights(config);
    let adapter_count = counts.layers * counts.rank * counts.widths(counts.parts);
    let trained_count = match trained {
        Trained::Full => weight_count,
        Trained::Adapter { .. } => adapter_count,
    };
    let of_layer = F32 * counts.kept_of_layer(config, load.tokens_each);
    let (activations_per_token, besides, layers_widened) = match load.activations {
        Activations::Kept => (counts.layers * of_layer, 0, counts.layers),
        Activations::Recomputed => (counts.layers * F32 * counts.hidden, of_layer, 1),
    };
    let logits = counts.vocab * (load.sequences * load.scored_each).min(head_rows(counts.vocab));
    Estimate {
        weight_count,
        active_count: counts.layers * counts.active_of_layer() + counts.head(),
        weights_bf16: BF16 * weight_count,
        weights_f32: F32 * weight_count,
        widened: F32 * layers_widened * counts.matrices_of_layer(),
        trained_count,
        adapter: F32 * adapter_count,
        gradients: F32 * trained_count,
        optimiser: 2 * F32 * trained_count,
        activations_per_token,
        activations: load.sequences * load.tokens_each * (activations_per_token + besides)
            + LOGITS_TENSORS * F32 * logits,
        cache_per_token: 2 * F32 * counts.layers * counts.keys,
        forward_flops_per_token: counts.forward_flops(load.tokens_each),
        training_flops_per_token: counts.training_flops(trained, load),
    }
}

/// Returns the rows of a chunk of logits.
fn head_rows(vocab: u64) -> u64 {
    (LOGITS_MAX as u64 / vocab).max(1)
}

/// A model's numbers, for multiplying.
struct Counts {
    layers: u64,
    hidden: u64,
    vocab: u64,
    heads: u64,
    /// Width of all heads of queries.
    queries: u64,
    /// Width of all heads of keys.
    keys: u64,
    /// Width of a feed-forward part.
    ffn: u64,
    /// Feed-forward parts of a layer.
    parts: u64,
    /// How many of them a token goes through.
    parts_per_token: u64,
    /// What a router chooses from; 0 where there is none.
    experts: u64,
    /// Width of an adapter's bottleneck; 0 where there is none.
    rank: u64,
}

impl Counts {
    fn new(config: &ModelConfig, trained: &Trained) -> Counts {
        let (ffn, parts, parts_per_token, experts) = match config.moe {
            None => (config.ffn, 1, 1, 0),
            Some(moe) => (moe.ffn, moe.experts, moe.experts_per_token, moe.experts),
        };
        let rank = match *trained {
            Trained::Full => 0,
            Trained::Adapter { rank, .. } => rank,
        };
        Counts {
            layers: config.layers as u64,
            hidden: config.hidden as u64,
            vocab: config.vocab as u64,
            heads: config.heads as u64,
            queries: (config.heads * config.head_dim) as u64,
            keys: (config.kv_heads * config.head_dim) as u64,
            ffn: ffn as u64,
            parts: parts as u64,
            parts_per_token: parts_per_token as u64,
            experts: experts as u64,
            rank: rank as u64,
        }
    }

    /// Weights of attention's products and the router's.
    fn mixing(&self) -> u64 {
        self.hidden * (2 * self.queries + 2 * self.keys + self.experts)
    }

    /// Weights of a layer that a token is multiplied with.
    fn active_of_layer(&self) -> u64 {
        self.mixing() + self.parts_per_token * 3 * self.hidden * self.ffn
    }

    fn matrices_of_layer(&self) -> u64 {
        self.mixing() + self.parts * 3 * self.hidden * self.ffn
    }

    fn head(&self) -> u64 {
        self.vocab * self.hidden
    }

    fn weights(&self, config: &ModelConfig) -> u64 {
        let head_norms = if config.architecture.has_head_norms() { 2 * config.head_dim } else { 0 };
        let norms = 2 * self.hidden + head_norms as u64;
        let layer = self.matrices_of_layer() + norms;
        let ends = if config.tied_embeddings { self.head() } else { 2 * self.head() };
        ends + self.layers * layer + self.hidden
    }

    /// Inputs and outputs of a layer's adapted products, with so many feed-forward parts.
    fn widths(&self, parts: u64) -> u64 {
        let attention = 4 * self.hidden + 2 * self.queries + 2 * self.keys;
        attention + parts * 3 * (self.hidden + self.ffn)
    }

    /// Numbers that a layer keeps of each token of sequences of this length.
    fn kept_of_layer(&self, config: &ModelConfig, tokens_each: u64) -> u64 {
        let Counts { hidden, queries, keys, ffn, .. } = *self;
        // What goes into both norms, and what leaves them.
        let norms = 4 * hidden;
        // Rotated queries and keys, and those that their norms got.
        let heads = (queries + keys) * if config.architecture.has_head_norms() { 2 } else { 1 };
        // Values, the softmax over all tokens and its exponentials, what leaves the heads.
        let attention = heads + keys + 2 * self.heads * tokens_each + queries;
        // Of each part gate, its sigmoid and activation, up, and the product of the two; of a
        // mixture also the row that went in and the one that came out.
        let around = if self.experts > 0 { 2 * hidden } else { 0 };
        let parts = self.experts + self.parts_per_token * (around + 5 * ffn);
        norms + attention + parts + self.rank * (4 + 3 * self.parts_per_token)
    }

    /// Operations of attending to so many tokens, in all layers.
    fn attention_flops(&self, tokens: u64) -> u64 {
        self.layers * 4 * tokens * self.queries
    }

    /// Operations of the adapter on a token, in all layers.
    fn adapter_flops(&self) -> u64 {
        self.layers * 2 * self.rank * self.widths(self.parts_per_token)
    }

    fn forward_flops(&self, tokens: u64) -> u64 {
        let weights = 2 * (self.layers * self.active_of_layer() + self.head());
        weights + self.attention_flops(tokens) + self.adapter_flops()
    }

    fn training_flops(&self, trained: &Trained, load: &Load) -> u64 {
        let again = match load.activations {
            Activations::Kept => 0,
            Activations::Recomputed => 1,
        };
        // A frozen product goes back to its input only; any other goes back to both factors.
        let back = match trained {
            Trained::Full => 2,
            Trained::Adapter { .. } => 1,
        };
        let weights = (1 + back + again) * 2 * self.layers * self.active_of_layer();
        let between = self.attention_flops(load.tokens_each) + self.adapter_flops();
        // The head is computed again for its way back, and on scored tokens only.
        let head = (2 + back) * 2 * self.head() * load.scored_each / load.tokens_each.max(1);
        weights + (3 + again) * between + head
    }
}

#[cfg(test)]
mod tests {
    use arena_weights::config::{Architecture, Moe};

    use super::*;

    /// Source of the numbers: `config.json` of `Qwen/Qwen3-30B-A3B-Instruct-2507`.
    fn qwen3_30b_a3b() -> ModelConfig {
        let moe = Moe { experts: 128, experts_per_token: 8, ffn: 768, normalise: true };
        ModelConfig {
            architecture: Architecture::Qwen3Moe,
            hidden: 2048,
            layers: 48,
            heads: 32,
            kv_heads: 4,
            head_dim: 128,
            ffn: 0,
            vocab: 151_936,
            context_tokens: 262_144,
            rope_theta: 10_000_000.0,
            rms_eps: 1.0e-6,
            tied_embeddings: false,
            moe: Some(moe),
            bos: None,
            eos: Vec::new(),
        }
    }

    #[test]
    fn the_30b_configuration_takes_what_is_computed_by_hand() {
        let load = Load {
            sequences: 2,
            tokens_each: 1024,
            scored_each: 256,
            activations: Activations::Recomputed,
        };
        let trained = Trained::Adapter { rank: 16, alpha: 32.0 };
        let found = memory_estimate(&qwen3_30b_a3b(), &trained, &load);
        // A layer: attention 18,874,368, router 262,144, norms 4,352, experts 128 * 4,718,592.
        // Bottlenecks: 16 * 48 layers * (17,408 of attention + 128 * 8,448).
        // A layer keeps 8,192 of norms, 13,824 of heads and 2 * 32,768 of their softmax, 128 and
        // 8 * 7,936 of experts, 448 of bottlenecks: 151,616 numbers of a token.
        let adapter = 843_841_536;
        let expected = Estimate {
            weight_count: 30_532_122_624,
            active_count: 3_041_656_832,
            weights_bf16: 61_064_245_248,
            weights_f32: 122_128_490_496,
            widened: 4 * 623_116_288,
            trained_count: adapter,
            adapter: 4 * adapter,
            gradients: 4 * adapter,
            optimiser: 8 * adapter,
            activations_per_token: 48 * 2048 * 4,
            // 110 rows of logits at a time.
            activations: 2048 * (393_216 + 606_464) + 4 * 4 * 110 * 151_936,
            cache_per_token: 196_608,
            forward_flops_per_token: 6_083_313_664 + 805_306_368 + 130_547_712,
            training_flops_per_token: 3 * 5_460_983_808
                + 4 * (805_306_368 + 130_547_712)
                + 3 * 622_329_856 / 4,
        };
        assert_eq!(found, expected);
        assert_eq!(found.host(), 16 * adapter);
        // 128 GB, of which a GPU of 141 GB has too little left for a cache; or 69 GB.
        assert_eq!(found.device_f32(), 127_818_608_640);
        assert_eq!(found.device_bf16(), 69_246_828_544);
    }

    /// What `tournaments/experiments/qwen3-30b-a3b.toml` says in its first lines.
    #[test]
    fn the_experiment_with_30b_says_what_it_takes() {
        let text = include_str!("../../../tournaments/experiments/qwen3-30b-a3b.toml");
        let load = Load {
            sequences: 1,
            tokens_each: 4096,
            scored_each: 1800,
            activations: Activations::Recomputed,
        };
        let trained = Trained::Adapter { rank: 16, alpha: 32.0 };
        let found = memory_estimate(&qwen3_30b_a3b(), &trained, &load);
        let giga = |number: u64| number as f64 / 1e9;
        // A policy and a seller that answer, and the learner.
        let all = 2 * found.weights_f32 + found.device_f32();
        let tokens = 64 * 8 * load.tokens_each;
        let operations = tokens * (found.forward_flops_per_token + found.training_flops_per_token);
        let minutes = operations as f64 / 20e12 / 60.0;
        let (f32, bf16) = (giga(found.weights_f32), giga(found.weights_bf16));
        let (learner_f32, learner_bf16) = (giga(found.device_f32()), giga(found.device_bf16()));
        let said = [
            format!("{f32:.1} GB in f32, {bf16:.1} GB in bf16"),
            format!("{learner_f32:.1} GB in f32, {learner_bf16:.1} GB in bf16"),
            format!("{:.1} GB beside the device", giga(found.host())),
            format!("{:.3} MB a token", found.cache_per_token as f64 / 1e6),
            format!("{:.1} GB a dialogue", giga(4096 * found.cache_per_token)),
            format!("{:.1} billion operations", giga(found.forward_flops_per_token)),
            format!("{:.1} billion operations", giga(found.training_flops_per_token)),
            format!("{:.1} GB and the caches", giga(all)),
            format!(
                "{:.1} million tokens: {:.0} quadrillion",
                tokens as f64 / 1e6,
                operations as f64 / 1e15
            ),
            format!("{minutes:.0} minutes"),
        ];
        let text = text.replace("\n#", "");
        for line in said {
            assert!(text.contains(&line), "the file does not say `{line}`");
        }
        assert_eq!((60.0 * minutes / 60.0 / 24.0).round(), 3.0);
    }

    #[test]
    fn keeping_everything_takes_every_layers_activations() {
        let load = Load {
            sequences: 1,
            tokens_each: 1024,
            scored_each: 0,
            activations: Activations::Kept,
        };
        let trained = Trained::Adapter { rank: 16, alpha: 32.0 };
        let found = memory_estimate(&qwen3_30b_a3b(), &trained, &load);
        assert_eq!(found.activations_per_token, 48 * 606_464);
        assert_eq!(found.activations, 1024 * 48 * 606_464);
    }

    #[test]
    fn a_dense_model_is_counted_like_its_files() {
        // SmolLM2-135M: 134,515,008 weights, the embedding tied.
        let config = ModelConfig {
            architecture: Architecture::Llama,
            hidden: 576,
            layers: 30,
            heads: 9,
            kv_heads: 3,
            head_dim: 64,
            ffn: 1536,
            vocab: 49_152,
            tied_embeddings: true,
            moe: None,
            ..qwen3_30b_a3b()
        };
        let load = Load {
            sequences: 8,
            tokens_each: 256,
            scored_each: 128,
            activations: Activations::Kept,
        };
        let found = memory_estimate(&config, &Trained::Full, &load);
        assert_eq!(found.weight_count, 134_515_008);
        assert_eq!(found.active_count, 134_515_008 - 61 * 576);
        assert_eq!((found.adapter, found.gradients), (0, 4 * 134_515_008));
        // Norms 2,304; heads 768, values 192, softmax 2 * 2,304, leaving 576; 5 * 1,536.
        assert_eq!(found.activations_per_token, 30 * 16_128 * 4);
        // Forth and back thrice the layers' 106,168,320 and attention's 17,694,720; the head for
        // half of the tokens, four times.
        let layers = 3 * 2 * 106_168_320 + 3 * 17_694_720;
        assert_eq!(found.training_flops_per_token, layers + 2 * 2 * 28_311_552);
    }
}
