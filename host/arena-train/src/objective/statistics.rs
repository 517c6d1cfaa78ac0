//! What is to be said of a step's tokens beside the loss.
//!
//! Sums, to which sequences are added one by one: micro-batches that come in order give the same
//! bits as the whole batch.

use libm::exp;

use super::surrogate::{Cut, Graded, k3};
use super::{LOG_RATIO_MAX, Target};

/// Sums over the scored tokens of a step, each token counting once whatever its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    loss: f64,
    token_count: u64,
    sequence_count: u64,
    ratios: f64,
    ratio_squares: f64,
    log_ratio_max: f64,
    sampler_gap_max: f64,
    sampler_divergence: f64,
    reference_divergence: f64,
    reference_count: u64,
    entropy: f64,
    cut_low: u64,
    cut_high: u64,
}

impl Statistics {
    /// Adds a sequence.
    pub(super) fn add(
        &mut self,
        target: &Target,
        logprobs: &[f64],
        entropies: &[f64],
        graded: &Graded,
    ) {
        self.loss += graded.loss;
        self.sequence_count += 1;
        for (place, logprob) in logprobs.iter().enumerate() {
            let log_ratio = logprob - target.sampled[place];
            let ratio = exp(log_ratio.clamp(-LOG_RATIO_MAX, LOG_RATIO_MAX));
            let before = target.before.as_ref().map_or(*logprob, |list| f64::from(list[place]));
            self.token_count += 1;
            self.ratios += ratio;
            self.ratio_squares += ratio * ratio;
            self.log_ratio_max = self.log_ratio_max.max(log_ratio.abs());
            self.sampler_gap_max = self.sampler_gap_max.max((before - target.sampled[place]).abs());
            self.sampler_divergence += k3(log_ratio).0;
            self.entropy += entropies[place];
            if let Some(reference) = &target.reference {
                self.reference_divergence += k3(f64::from(reference[place]) - logprob).0;
                self.reference_count += 1;
            }
            match graded.cuts[place] {
                Cut::No => {}
                Cut::Low => self.cut_low += 1,
                Cut::High => self.cut_high += 1,
            }
        }
    }

    /// Returns the loss of what was added: of the step, once all of it is.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// Returns how many scored tokens were added.
    pub fn token_count(&self) -> u64 {
        self.token_count
    }

    /// Returns how many sequences were added.
    pub fn sequence_count(&self) -> u64 {
        self.sequence_count
    }

    /// Returns the share of tokens whose ratio was cut below 1.
    pub fn clip_fraction_low(&self) -> Option<f64> {
        self.per_token(self.cut_low as f64)
    }

    /// Returns the share of tokens whose ratio was cut above 1.
    pub fn clip_fraction_high(&self) -> Option<f64> {
        self.per_token(self.cut_high as f64)
    }

    /// Returns the mean of p/q, the learner's probability over the sampler's.
    pub fn mean_ratio(&self) -> Option<f64> {
        self.per_token(self.ratios)
    }

    /// Returns the largest |ln p/q|.
    pub fn log_ratio_max(&self) -> f64 {
        self.log_ratio_max
    }

    /// Returns the largest |ln p/q| before the step's first update: what trainer and sampler
    /// compute differently. Equal engines differ by no more than half a millionth, the record's
    /// rounding.
    pub fn sampler_gap_max(&self) -> f64 {
        self.sampler_gap_max
    }

    /// Returns the estimate of KL(q ‖ p) in nats per token: the mean of p/q - ln p/q - 1. Schulman
    /// 2020, "Approximating KL divergence", k3.
    pub fn sampler_divergence(&self) -> Option<f64> {
        self.per_token(self.sampler_divergence)
    }

    /// Returns the estimate of KL(p ‖ reference) in nats per token; `None` without a reference.
    pub fn reference_divergence(&self) -> Option<f64> {
        let count = self.reference_count;
        (count > 0).then(|| self.reference_divergence / count as f64)
    }

    /// Returns the mean entropy in nats.
    pub fn mean_entropy(&self) -> Option<f64> {
        self.per_token(self.entropy)
    }

    /// Returns the effective sample size as a share of the tokens, (Σ r)² / (n Σ r²); 1 on policy.
    pub fn effective_share(&self) -> Option<f64> {
        self.per_token(self.ratios * self.ratios / self.ratio_squares)
    }

    fn per_token(&self, sum: f64) -> Option<f64> {
        (self.token_count > 0).then(|| sum / self.token_count as f64)
    }
}
