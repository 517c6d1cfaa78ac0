//! What a model is made of: the numbers that its tensors must agree with.
//!
//! Not here: where the numbers are read from (`gguf`, `folder`).

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
