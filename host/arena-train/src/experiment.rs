//! An experiment file: TOML text becomes checked values, and these the tournaments of a run.
//!
//! [`Experiment::parse`] accepts a file or says where and what is wrong; nothing is ignored. The
//! text of every step's tournament file is a pure function of the experiment, the step and the
//! policy's hash, so that whoever holds the file knows what had to be played.
//!
//! Not here: opening files. Paths stay text. What the keys mean: `EXPERIMENTS.md`.

mod check;
mod parse;
mod places;
mod tournament;

pub use tournament::Occasion;

use arena_core::config::models::Device;
use arena_core::scenario::Role;
use toml::Table;

use crate::advantage::Baseline;
use crate::objective::Loss;
use crate::optimiser::{AdamW, Schedule};
use crate::reward::RewardKind;
use crate::trainer::Routing;

/// Longest experiment file in bytes.
pub const EXPERIMENT_BYTES_MAX: usize = 256 << 10;
/// Longest name of an experiment in bytes: tournaments add to it.
pub const EXPERIMENT_NAME_BYTES_MAX: usize = 40;
/// Most layers of a new model.
pub const LAYERS_MAX: u32 = 64;
/// Widest vector of a new model.
pub const WIDTH_MAX: u32 = 4_096;
/// Most weights of a new model.
pub const WEIGHTS_MAX: u64 = 1 << 28;
/// Most episodes of a group.
pub const GROUP_SIZE_MAX: u32 = 1_024;
/// Most passes over the same examples.
pub const EPOCHS_MAX: u32 = 64;
/// Most parts into which a step's examples are divided.
pub const MINIBATCHES_MAX: u32 = 64;
/// Most tokens that are computed together.
pub const MICRO_BATCH_TOKENS_MAX: usize = 1 << 20;
/// Most fields of an evaluation.
pub const FIELDS_MAX: usize = 32;

/// The name of the trained agent in every tournament of a run.
pub const LEARNER: &str = "learner";
/// The name of the trained model in every tournament of a run.
pub const POLICY: &str = "policy";

/// A checked experiment file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Letters, digits, `-`, `_`, `.`; at most [`EXPERIMENT_NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// Where every draw comes from, below 2^63.
    pub seed: u64,
    /// What computes and trains the policy.
    pub device: Device,
    /// What is trained.
    pub policy: PolicyConfig,
    /// Who asks the policy.
    pub learner: LearnerConfig,
    /// Whom the learner meets.
    pub opponents: Vec<AgentConfig>,
    /// Who plays the learner's part for comparison.
    pub baselines: Vec<AgentConfig>,
    /// What comes before the first step.
    pub warm_start: Option<WarmStartConfig>,
    /// What a step does.
    pub train: TrainConfig,
    /// How progress is measured.
    pub evaluate: Option<EvaluateConfig>,
    /// Steps between two checkpoints that are kept.
    pub checkpoint_every: u32,
    tables: Tables,
}

/// What goes into every tournament file as it is. A tournament file checks it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tables {
    rules: Option<Table>,
    catalog: Table,
    limits: Option<Table>,
    models: Vec<Table>,
}

/// What is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyConfig {
    /// What training begins with.
    pub source: PolicySource,
    /// The adapter that is trained; `None` trains every weight.
    pub adapter: Option<AdapterConfig>,
    /// Tokens of a prompt and its reply together.
    pub context_tokens: Option<u32>,
    /// Most memory of attention keys and values, in MiB.
    pub cache_mib: u32,
    /// Most dialogues that are continued in one step of the engine.
    pub slots: u32,
}

/// What training begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// A new model over the compact vocabulary.
    Compact(Shape),
    /// A model of the store, or a path.
    Weights(String),
}

/// The shape of a new model, in Llama's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks of attention and feed-forward.
    pub layers: u32,
    /// Numbers of a token's vector.
    pub width: u32,
    /// Heads of queries; `width` is a multiple of them.
    pub heads: u32,
    /// Heads of keys and values; `heads` is a multiple of them.
    pub kv_heads: u32,
    /// Numbers between the two halves of a feed-forward block.
    pub feed_forward: u32,
    /// Tokens of a dialogue.
    pub context_tokens: u32,
}

/// A low-rank adapter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdapterConfig {
    /// Width of the bottleneck.
    pub rank: u32,
    /// The numerator of the scale.
    pub alpha: f32,
}

/// Who asks the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnerConfig {
    /// Where the component comes from, as a tournament file says it.
    pub component: String,
    /// Which side it plays.
    pub role: Role,
    /// Parameters while it trains.
    pub params: String,
    /// Parameters of greedy evaluations.
    pub greedy: Option<String>,
}

/// Another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Unique in the file.
    pub name: String,
    /// Where the component comes from, as a tournament file says it.
    pub component: String,
    /// Parameters.
    pub params: String,
    /// Models of the file that it may ask.
    pub models: Vec<String>,
}

/// Learning from a teacher.
#[derive(Clone, Debug, PartialEq)]
pub struct WarmStartConfig {
    /// Items of the demonstrations.
    pub items: u32,
    /// Demonstrations over each item against each opponent.
    pub repetitions: u32,
    /// How often each is learned from.
    pub epochs: u32,
    /// Sequences of one update.
    pub batch: u32,
    /// Of AdamW.
    pub learning_rate: f64,
    /// Updates over which it rises.
    pub warm_up: u32,
    /// Offers of the teacher that carry an argument, in thousandths; `None` leaves it its habit.
    pub argue_milli: Option<u32>,
    /// Turns in which the teacher draws anything at all, in thousandths.
    pub explore_milli: Option<u32>,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainConfig {
    /// How many steps there are.
    pub steps: u32,
    /// Items of a step.
    pub items: u32,
    /// Episodes that are compared with each other, at least 2.
    pub group_size: u32,
    /// Places in [`Experiment::opponents`], ascending.
    pub opponents: Vec<usize>,
    /// What an episode is worth.
    pub reward: RewardKind,
    /// What an episode's reward is compared with.
    pub baseline: Baseline,
    /// What is minimised.
    pub loss: Loss,
    /// The optimiser.
    pub adam: AdamW,
    /// The learning rate of every step.
    pub schedule: Schedule,
    /// Tokens that are computed together.
    pub micro_batch_tokens: usize,
    /// Passes over a step's examples.
    pub epochs: u32,
    /// Parts of a pass, each of which makes an update.
    pub minibatches: u32,
    /// What chooses a mixture's experts after the first of several updates.
    pub routing: Routing,
    /// Whether replies are taken that were sampled from a part of the distribution.
    pub allow_cuts: bool,
    /// Whether advantages are given to the wrong episodes.
    pub shuffle_advantages: bool,
}

/// How progress is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluateConfig {
    /// Steps between two evaluations.
    pub every: u32,
    /// Items, the same every time.
    pub items: u32,
    /// Matches over each item against each opponent.
    pub repetitions: u32,
    /// How the policy answers.
    pub modes: Vec<Mode>,
    /// Whom it meets.
    pub fields: Vec<FieldConfig>,
}

/// How a policy answers in an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// With the likeliest token.
    Greedy,
    /// As in training.
    Sampled,
}

impl Mode {
    /// Both, in the order in which they are listed.
    pub const ALL: [Mode; 2] = [Mode::Greedy, Mode::Sampled];

    /// Returns the name that files use.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Greedy => "greedy",
            Mode::Sampled => "sampled",
        }
    }
}

/// Opponents that are reported together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConfig {
    /// The field's name.
    pub name: String,
    /// Places in [`Experiment::opponents`].
    pub opponents: Vec<usize>,
}
