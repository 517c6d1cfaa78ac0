//! The terms that losses are made of: clipped ratios, and what a sequence's terms add up to.
//!
//! Not here: which loss has which terms, and how they are normalised.

use libm::exp;

use super::{Clip, LOG_RATIO_MAX};

/// A token's two differences of log-probabilities.
pub struct Compared {
    /// ℓ - a.
    pub log_ratio: f64,
    /// b - q: trainer and sampler before the first update.
    pub log_gap: f64,
}

/// What a sequence adds to a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Graded {
    /// Its part of the loss.
    pub loss: f64,
    /// d loss / d log-probability of each token.
    pub slopes: Vec<f64>,
    /// Weight of each token in sums over tokens, normalised.
    pub norms: Vec<f64>,
    /// Which tokens were cut off.
    pub cuts: Vec<Cut>,
}

impl Graded {
    /// Sums terms of single tokens.
    pub fn of_tokens(norms: Vec<f64>, surrogates: impl Iterator<Item = Surrogate>) -> Graded {
        let mut graded = Graded { loss: 0.0, slopes: Vec::new(), norms, cuts: Vec::new() };
        for (surrogate, norm) in surrogates.zip(&graded.norms) {
            graded.loss -= norm * surrogate.value;
            graded.slopes.push(-norm * surrogate.slope);
            graded.cuts.push(surrogate.cut);
        }
        graded
    }
}

/// Whether a ratio was cut, and on which side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It was not.
    No,
    /// It was below 1 - low.
    Low,
    /// It was above 1 + high.
    High,
}

impl Cut {
    /// Says where a ratio is cut: for an advantage only on the side where it stops to pay.
    pub fn of(clip: Clip, ratio: f64, advantage: Option<f64>) -> Cut {
        let pays = |sign: f64| advantage.is_none_or(|advantage| advantage * sign > 0.0);
        if ratio < 1.0 - clip.low && pays(-1.0) {
            Cut::Low
        } else if ratio > 1.0 + clip.high && pays(1.0) {
            Cut::High
        } else {
            Cut::No
        }
    }
}

/// One term that is maximised.
pub struct Surrogate {
    /// What is maximised.
    pub value: f64,
    /// How it changes with the log-ratio.
    pub slope: f64,
    /// Whether the ratio was cut.
    pub cut: Cut,
}

impl Surrogate {
    /// min(r A, cut(r) A) times the importance.
    pub fn new(clip: Clip, advantage: f64, log_ratio: f64, importance: f64) -> Surrogate {
        let (clamped, is_clamped) = clamp(log_ratio);
        let ratio = exp(clamped);
        let cut = Cut::of(clip, ratio, Some(advantage));
        let value = (ratio * advantage).min(clip.cut(ratio) * advantage) * importance;
        let is_flat = cut != Cut::No || is_clamped;
        let slope = if is_flat { 0.0 } else { ratio * advantage * importance };
        Surrogate { value, slope, cut }
    }
}

/// Cuts a log-ratio to what is exponentiated, and says whether it had to.
pub fn clamp(log_ratio: f64) -> (f64, bool) {
    (log_ratio.clamp(-LOG_RATIO_MAX, LOG_RATIO_MAX), log_ratio.abs() > LOG_RATIO_MAX)
}

/// Returns exp(x) - x - 1, at least 0, and its slope in x, with x clamped.
pub fn k3(difference: f64) -> (f64, f64) {
    let (x, is_clamped) = clamp(difference);
    let grown = exp(x);
    (grown - x - 1.0, if is_clamped { 0.0 } else { grown - 1.0 })
}
