//! What a model is made of: the numbers that its tensors must agree with.
//!
//! Not here: where the numbers are read from (`gguf`, `folder`), the tensors (`layout`).

use std::path::Path;

use crate::error::WeightsError;

/// The most transformer layers.
pub const LAYERS_MAX: usize = 1024;
/// The largest width of anything but the embedding's rows.
pub const WIDTH_MAX: usize = 1 << 20;
/// The most heads, of queries or of keys.
pub const HEADS_MAX: usize = 1024;
/// The most experts of a layer.
pub const EXPERTS_MAX: usize = 1024;
/// The most rows of the embedding.
pub const VOCAB_MAX: usize = 1 << 20;
/// The longest context.
pub const CONTEXT_TOKENS_MAX: usize = 1 << 24;

/// The architectures that are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Llama: dense, no norms on queries and keys.
    Llama,
    /// Qwen3: dense, queries and keys are normalised per head.
    Qwen3,
    /// Qwen3 with a mixture of experts in every layer.
    Qwen3Moe,
}

impl Architecture {
    /// Returns the name that GGUF files use, such as `qwen3moe`.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Qwen3 => "qwen3",
            Architecture::Qwen3Moe => "qwen3moe",
        }
    }

    /// Says whether queries and keys are normalised per head before they are rotated.
    pub fn has_head_norms(self) -> bool {
        self != Architecture::Llama
    }
}

/// The numbers of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Which formulas apply.
    pub architecture: Architecture,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Transformer layers.
    pub layers: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head; even.
    pub head_dim: usize,
    /// Width of the dense feed-forward layer; 0 where every layer is a mixture.
    pub ffn: usize,
    /// Rows of the embedding. Not less than the tokenizer's tokens, sometimes more.
    pub vocab: usize,
    /// The most tokens of a context that the model was made for.
    pub context_tokens: usize,
    /// Base of the rotary position angles.
    pub rope_theta: f32,
    /// What RMS norms add under the root.
    pub rms_eps: f32,
    /// Whether the output head is the embedding; then there is no `lm_head.weight`.
    pub tied_embeddings: bool,
    /// The mixture of experts, if there is one.
    pub moe: Option<Moe>,
    /// The token that a text begins with, where the file names one.
    pub bos: Option<u32>,
    /// The tokens that end a turn or a text. The first is the file's own end token.
    pub eos: Vec<u32>,
}

/// A mixture of experts, the same in every layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moe {
    /// Experts of a layer.
    pub experts: usize,
    /// Experts that each token uses.
    pub experts_per_token: usize,
    /// Width of one expert.
    pub ffn: usize,
    /// Whether the chosen experts' weights are divided by their sum.
    pub normalise: bool,
}

impl ModelConfig {
    /// Checks that every number is in range and agrees with the others. `path` is whose they
    /// are.
    pub(crate) fn check(&self, path: &Path) -> Result<(), WeightsError> {
        let mut numbers = vec![
            ("width of the model", self.hidden, WIDTH_MAX),
            ("number of layers", self.layers, LAYERS_MAX),
            ("number of heads", self.heads, HEADS_MAX),
            ("number of key heads", self.kv_heads, HEADS_MAX),
            ("width of a head", self.head_dim, WIDTH_MAX),
            ("number of tokens", self.vocab, VOCAB_MAX),
            ("length of the context", self.context_tokens, CONTEXT_TOKENS_MAX),
        ];
        match self.moe {
            None => numbers.push(("width of the feed-forward layer", self.ffn, WIDTH_MAX)),
            Some(moe) => numbers.extend([
                ("number of experts", moe.experts, EXPERTS_MAX),
                ("number of experts of a token", moe.experts_per_token, moe.experts),
                ("width of an expert", moe.ffn, WIDTH_MAX),
            ]),
        }
        for (place, value, most) in numbers {
            if value == 0 {
                return Err(WeightsError::malformed(path, place, "is 0"));
            }
            if value > most {
                let (place, value, most) = (place.to_string(), value as u64, most as u64);
                return Err(WeightsError::Limit { path: path.into(), place, value, most });
            }
        }
        self.check_agreement()
            .map_err(|(place, detail)| WeightsError::malformed(path, place, detail))
    }

    fn check_agreement(&self) -> Result<(), (&'static str, String)> {
        let ModelConfig { heads, kv_heads, head_dim, vocab, .. } = *self;
        if !heads.is_multiple_of(kv_heads) {
            return Err(("heads", format!("{heads} are no multiple of {kv_heads} key heads")));
        }
        if !head_dim.is_multiple_of(2) {
            return Err(("width of a head", format!("{head_dim} is odd")));
        }
        if !(self.rope_theta.is_finite() && self.rope_theta >= 1.0) {
            return Err(("base of positions", format!("{} is not 1 or more", self.rope_theta)));
        }
        if !(self.rms_eps > 0.0 && self.rms_eps < 1.0) {
            return Err(("epsilon of norms", format!("{} is not between 0 and 1", self.rms_eps)));
        }
        for &token in self.bos.iter().chain(&self.eos) {
            if token as usize >= vocab {
                return Err(("first or end token", format!("{token} is not one of {vocab}")));
            }
        }
        Ok(())
    }
}
