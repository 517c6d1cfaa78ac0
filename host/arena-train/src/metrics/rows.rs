//! The rows that a run writes: one for every step, one for every evaluation.
//!
//! A row is one JSON object on a line, flat, so that any tool makes a table of it. Keys are only
//! ever added.
//!
//! Not here: files.

use serde::{Deserialize, Serialize};

use super::PlayMetrics;
use super::evaluation::Evaluation;
use crate::objective::statistics::Statistics;
use crate::phase::CurveStep;

/// What is said of a step: `steps.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// Which step, from 1.
    pub step: u32,
    /// What was played.
    #[serde(flatten)]
    pub play: PlayMetrics,
    /// What was learned.
    #[serde(flatten)]
    pub learning: LearningMetrics,
    /// How long it took.
    #[serde(flatten)]
    pub pace: PaceMetrics,
}

/// What is said of an update. The names that end in `_max` are maxima, `None` where nothing was
/// learned from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearningMetrics {
    /// Groups of episodes.
    pub groups: u64,
    /// Share of groups whose rewards were all equal.
    pub level_group_share: Option<f64>,
    /// Sequences that were learned from.
    pub trained_sequences: u64,
    /// Scored tokens that were learned from.
    pub trained_tokens: u64,
    /// The loss.
    pub loss: Option<f64>,
    /// Mean entropy of scored tokens, in nats.
    pub entropy: Option<f64>,
    /// Share of tokens whose ratio was cut below 1.
    pub clip_fraction_low: Option<f64>,
    /// Share of tokens whose ratio was cut above 1.
    pub clip_fraction_high: Option<f64>,
    /// Mean probability over that of the sampler.
    pub mean_ratio: Option<f64>,
    /// Largest |ln ratio|.
    pub log_ratio_max: Option<f64>,
    /// Largest difference of log-probabilities between trainer and sampler before the update.
    pub sampler_gap_max: Option<f64>,
    /// KL from the sampler, in nats per token.
    pub sampler_divergence: Option<f64>,
    /// KL to the reference, in nats per token.
    pub reference_divergence: Option<f64>,
    /// Effective sample size as a share of the tokens.
    pub effective_share: Option<f64>,
    /// Norm of all gradients together, before it was shortened.
    pub gradient_norm: Option<f64>,
    /// Learning rate.
    pub learning_rate: Option<f64>,
}

impl LearningMetrics {
    /// Takes over what is known of a step's tokens.
    pub fn take(&mut self, statistics: &Statistics) {
        let is_there = statistics.token_count() > 0;
        self.trained_sequences = statistics.sequence_count();
        self.trained_tokens = statistics.token_count();
        self.loss = is_there.then(|| statistics.loss());
        self.entropy = statistics.mean_entropy();
        self.clip_fraction_low = statistics.clip_fraction_low();
        self.clip_fraction_high = statistics.clip_fraction_high();
        self.mean_ratio = statistics.mean_ratio();
        self.log_ratio_max = is_there.then(|| statistics.log_ratio_max());
        self.sampler_gap_max = is_there.then(|| statistics.sampler_gap_max());
        self.sampler_divergence = statistics.sampler_divergence();
        self.reference_divergence = statistics.reference_divergence();
        self.effective_share = statistics.effective_share();
    }
}

/// How long a step took. What a clock says is in no record and decides nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PaceMetrics {
    /// The whole step.
    pub seconds: Option<f64>,
    /// Playing.
    pub rollout_seconds: Option<f64>,
    /// Learning.
    pub update_seconds: Option<f64>,
    /// Tokens of prompts and replies that went through the model forward and backward, over the
    /// whole step's time.
    pub tokens_per_second: Option<f64>,
}

impl StepRow {
    /// Returns what the detector of phases looks at.
    pub fn curve_step(&self) -> CurveStep {
        CurveStep {
            opening: self.play.opening_ratio,
            deal_rate: self.play.deal_rate.unwrap_or(0.0),
            surplus: self.play.bargained_ratio,
            lift: self.play.argument_lift,
        }
    }

    /// Returns every number with its name, in the order of the keys: what goes into other formats.
    pub fn scalars(&self) -> Vec<(String, f64)> {
        let value = serde_json::to_value(self).expect("a row is plain numbers");
        let fields = value.as_object().into_iter().flatten();
        let named = fields.filter(|(name, _)| *name != "step");
        named.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
    }
}

/// What is said of an evaluation of one policy against one field: `evaluations.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRow {
    /// The steps that had been made, 0 before the first.
    pub step: u32,
    /// Whose play it is: the trained agent's, or a baseline's.
    pub agent: String,
    /// The name of the field that it met.
    pub field: String,
    /// How it answered: `greedy` or `sampled`.
    pub mode: String,
    /// What is measured.
    #[serde(flatten)]
    pub measures: Evaluation,
    /// The mean reward minus that of the first evaluation against the field in this mode, over the
    /// same items; `None` for the first one.
    pub improvement: Option<super::evaluation::Interval>,
}
