//! Language models, as a tournament file describes them.
//!
//! Not here: loading them. Names, paths and addresses stay text.

/// Most dialogues that an engine continues in one step.
pub const SLOTS_MAX: u32 = 1_024;
/// The same where the file says nothing.
pub const SLOTS: u32 = 64;
/// Largest cache of attention keys and values, in MiB.
pub const CACHE_MIB_MAX: u32 = 1 << 20;
/// The same where the file says nothing.
pub const CACHE_MIB: u32 = 1_024;
/// Fewest tokens of a prompt and its reply together that a model can be given.
pub const CONTEXT_TOKENS_MIN: u32 = 64;
/// Most of them.
pub const CONTEXT_TOKENS_MAX: u32 = 1 << 20;
/// The same where the file says nothing; with weights at most what they were trained for.
pub const CONTEXT_TOKENS: u32 = 4_096;
/// Longest wait for a server's answer, in seconds.
pub const TIMEOUT_SECONDS_MAX: u32 = 3_600;
/// The same where the file says nothing.
pub const TIMEOUT_SECONDS: u32 = 120;
/// Most further tries of a request that a server failed at.
pub const REMOTE_RETRIES_MAX: u32 = 16;
/// The same where the file says nothing.
pub const REMOTE_RETRIES: u32 = 3;
/// Most requests that a server is sent at the same time.
pub const CONCURRENCY_MAX: u32 = 1_024;
/// The same where the file says nothing.
pub const CONCURRENCY: u32 = 16;
/// Longest address of a server, in bytes.
pub const URL_BYTES_MAX: usize = 1_024;
/// Longest name under which a server knows a model, in bytes.
pub const REMOTE_MODEL_BYTES_MAX: usize = 256;
/// Longest name of an environment variable, in bytes.
pub const VARIABLE_BYTES_MAX: usize = 128;

/// A language model that agents can be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// The name that guests ask for.
    pub name: String,
    /// What answers.
    pub source: ModelSource,
}

/// What answers in a model's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// Replies from a table: deterministic, for tests and dry runs. The path of the script, as the
    /// file gives it.
    Script(String),
    /// Weights that this program computes with.
    Weights(WeightsConfig),
    /// A server that speaks OpenAI's protocol.
    Remote(RemoteConfig),
}

/// A model that this program computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsConfig {
    /// Where the weights are.
    pub weights: WeightsSource,
    /// What computes.
    pub device: Device,
    /// Folder or file of a low-rank adapter, as the file gives it.
    pub adapter: Option<String>,
    /// Tokens of a prompt and its reply together, where the file says it: from
    /// [`CONTEXT_TOKENS_MIN`] to [`CONTEXT_TOKENS_MAX`].
    pub context_tokens: Option<u32>,
    /// Most memory of attention keys and values, in MiB.
    pub cache_mib: u32,
    /// Most dialogues that are continued in one step.
    pub slots: u32,
    /// The SHA-256 that the weights' manifest must have.
    pub sha256: Option<[u8; 32]>,
}

/// Where weights are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightsSource {
    /// A model of the store: `arena model list`.
    Named(String),
    /// A GGUF file or a folder, as the tournament file gives it.
    Path(String),
}

impl WeightsSource {
    /// Tells a path from a name of the store: it has a slash in it or ends in `.gguf`.
    pub fn parse(text: &str) -> WeightsSource {
        match text.contains('/') || text.ends_with(".gguf") {
            true => WeightsSource::Path(text.to_owned()),
            false => WeightsSource::Named(text.to_owned()),
        }
    }
}

/// What computes a model's replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// The processor, by this program's own arithmetic, which is the same on every machine.
    #[default]
    Cpu,
    /// The processor, by burn's backend `flex`.
    Flex,
    /// A graphics processor, through wgpu.
    Wgpu,
    /// A graphics processor, through CUDA.
    Cuda,
}

impl Device {
    /// Every device, in the order in which they are listed.
    pub const ALL: [Device; 4] = [Device::Cpu, Device::Flex, Device::Wgpu, Device::Cuda];

    /// Returns the name that files and the command line use.
    pub fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Flex => "flex",
            Device::Wgpu => "wgpu",
            Device::Cuda => "cuda",
        }
    }
}

/// A model behind a server that speaks OpenAI's protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// The server's address, with the version: `http://127.0.0.1:8080/v1`.
    pub url: String,
    /// What the server calls the model.
    pub remote_model: String,
    /// Which fields beyond OpenAI's the server takes and gives.
    pub server: ServerKind,
    /// The environment variable that holds the key. The key itself would end up in the log.
    pub key_env: Option<String>,
    /// Longest wait for an answer, in seconds.
    pub timeout_seconds: u32,
    /// Further tries of a request that the server failed at.
    pub retries: u32,
    /// Most requests at the same time.
    pub concurrency: u32,
    /// Tokens of a prompt and its reply together.
    pub context_tokens: u32,
}

/// Which fields beyond OpenAI's a server takes and gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerKind {
    /// None: no top-k, min-p and grammar, at most four stop texts, and replies are recorded
    /// without their tokens.
    #[default]
    OpenAi,
    /// vLLM's: everything. A grammar needs a server whose structured outputs are `guidance`'s.
    Vllm,
    /// Those of llama.cpp's `llama-server`: everything. A grammar needs a build with
    /// `LLAMA_LLGUIDANCE`.
    LlamaServer,
}

impl ServerKind {
    /// Every kind, in the order in which they are listed.
    pub const ALL: [ServerKind; 3] =
        [ServerKind::OpenAi, ServerKind::Vllm, ServerKind::LlamaServer];

    /// Returns the name that files use.
    pub fn name(self) -> &'static str {
        match self {
            ServerKind::OpenAi => "openai",
            ServerKind::Vllm => "vllm",
            ServerKind::LlamaServer => "llama-server",
        }
    }
}
