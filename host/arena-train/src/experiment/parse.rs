//! The shape of an experiment file, before its values are checked.
//!
//! Every key that exists is a field here, and nothing else is accepted. What every tournament
//! file takes over stays a table.

use serde::Deserialize;
use toml::{Spanned, Table};

use crate::advantage::Baseline;
use crate::optimiser::Decay;
use crate::reward::RewardKind;

/// A value and its place in the text, if the key is there.
pub(super) type Given<T> = Option<Spanned<T>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExperiment {
    pub(super) name: Spanned<String>,
    pub(super) seed: Spanned<i128>,
    pub(super) device: Given<String>,
    pub(super) policy: Spanned<RawPolicy>,
    pub(super) learner: RawLearner,
    pub(super) opponents: Spanned<Vec<RawAgent>>,
    #[serde(default)]
    pub(super) baselines: Vec<RawAgent>,
    pub(super) rules: Option<Table>,
    pub(super) catalog: Spanned<Table>,
    pub(super) limits: Option<Table>,
    #[serde(default)]
    pub(super) models: Vec<Spanned<Table>>,
    pub(super) warm_start: Option<RawWarmStart>,
    pub(super) train: RawTrain,
    pub(super) evaluate: Option<RawEvaluate>,
    pub(super) checkpoints: Option<RawCheckpoints>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawPolicy {
    pub(super) kind: Given<String>,
    pub(super) layers: Given<i128>,
    pub(super) width: Given<i128>,
    pub(super) heads: Given<i128>,
    pub(super) kv_heads: Given<i128>,
    pub(super) feed_forward: Given<i128>,
    pub(super) weights: Given<String>,
    pub(super) adapter: Given<RawAdapter>,
    pub(super) context: Given<i128>,
    pub(super) cache_mib: Given<i128>,
    pub(super) slots: Given<i128>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { rank = 16 }")]
pub(super) struct RawAdapter {
    pub(super) rank: Spanned<i128>,
    pub(super) alpha: Given<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLearner {
    pub(super) component: Spanned<String>,
    pub(super) role: Given<String>,
    pub(super) params: Given<String>,
    pub(super) greedy: Given<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawAgent {
    pub(super) name: Spanned<String>,
    pub(super) component: Spanned<String>,
    pub(super) params: Given<String>,
    #[serde(default)]
    pub(super) models: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawWarmStart {
    pub(super) items: Given<i128>,
    pub(super) repetitions: Given<i128>,
    pub(super) epochs: Given<i128>,
    pub(super) batch: Given<i128>,
    pub(super) learning_rate: Given<f64>,
    pub(super) warm_up: Given<i128>,
    pub(super) argue: Given<f64>,
    pub(super) explore: Given<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawTrain {
    pub(super) steps: Spanned<i128>,
    pub(super) items: Given<i128>,
    pub(super) group_size: Given<i128>,
    pub(super) opponents: Given<Vec<Spanned<String>>>,
    pub(super) reward: Given<RewardKind>,
    pub(super) advantage: Option<Baseline>,
    pub(super) objective: Given<String>,
    pub(super) length: Given<i128>,
    pub(super) clip_low: Given<f64>,
    pub(super) clip_high: Given<f64>,
    pub(super) kl: Given<f64>,
    pub(super) entropy_bonus: Given<f64>,
    pub(super) importance_cap: Given<f64>,
    pub(super) allow_cuts: Option<bool>,
    pub(super) learning_rate: Spanned<f64>,
    pub(super) warm_up: Given<i128>,
    pub(super) schedule: Option<Decay>,
    pub(super) weight_decay: Given<f64>,
    pub(super) gradient_clip: Given<f64>,
    pub(super) micro_batch_tokens: Given<i128>,
    pub(super) epochs: Given<i128>,
    pub(super) minibatches: Given<i128>,
    pub(super) routing: Given<String>,
    pub(super) shuffle_advantages: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawEvaluate {
    pub(super) every: Given<i128>,
    pub(super) items: Given<i128>,
    pub(super) repetitions: Given<i128>,
    pub(super) modes: Given<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) fields: Vec<RawField>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawField {
    pub(super) name: Spanned<String>,
    pub(super) opponents: Spanned<Vec<Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawCheckpoints {
    pub(super) every: Given<i128>,
}
