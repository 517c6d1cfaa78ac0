//! Losses of policy gradients, and how they change with each token's probability.
//!
//! A learner says the log-probabilities of scored tokens; this says the loss and its slopes; the
//! learner goes backward from there. What normalises a loss is handed in, so a token's slope is the
//! same bits in whatever micro-batch it comes, and losses add up in the order of the sequences.
//!
//! Notation: of a token, ℓ its log-probability under the learner, a the one it is compared with,
//! r = exp(ℓ - a), w its weight; of a sequence, A its advantage, W the weight of its tokens, Wₑ
//! that of its whole episode (one sequence, unless a prompt broke off); of the step, E the
//! episodes and Wₛ the weight of all tokens. Formulas below are to be minimised and are summed
//! over tokens or sequences.
//!
//! Not here: models and their gradients (`arena_model::learner`), advantages (`advantage`).

use std::fmt;

use arena_model::learner::{Scores, Slopes};
use libm::exp;
use serde::{Deserialize, Serialize};

pub mod statistics;
mod surrogate;

use statistics::Statistics;
use surrogate::{Compared, Cut, Graded, Surrogate, clamp, k3};

/// The largest difference of log-probabilities that is exponentiated. Beyond it the ratio stays
/// as it is there, and the token has no slope from it.
pub const LOG_RATIO_MAX: f64 = 20.0;

/// How far a ratio may go before it stops to pay, below and above 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Clip {
    /// Ratios below 1 - `low` are cut; 0 to 1.
    pub low: f64,
    /// Ratios above 1 + `high` are cut; at least 0.
    pub high: f64,
}

impl Clip {
    /// DAPO's, arXiv 2503.14476, section 3.1.
    pub const DAPO: Clip = Clip { low: 0.2, high: 0.28 };
    /// GSPO's, arXiv 2507.18071, section 5.1.
    pub const GSPO: Clip = Clip { low: 3e-4, high: 4e-4 };

    fn cut(self, ratio: f64) -> f64 {
        ratio.clamp(1.0 - self.low, 1.0 + self.high)
    }
}

/// A loss. Below, clipped(r) stands for min(r A, cut(r) A).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Objective {
    /// Each episode counts alike: -w clipped(r) / (E Wₑ). arXiv 2402.03300, equation 3.
    Grpo {
        /// Where ratios are cut.
        clip: Clip,
    },
    /// Each token counts alike: -w clipped(r) / Wₛ. arXiv 2503.14476, equation 12.
    Dapo {
        /// Where ratios are cut.
        clip: Clip,
    },
    /// Each token counts alike and short episodes are not favoured: -w clipped(r) / (E `length`).
    /// arXiv 2503.20783, section 3.2.
    DrGrpo {
        /// Where ratios are cut.
        clip: Clip,
        /// Tokens that stand for an episode's; the most that it may have.
        length: u32,
    },
    /// One ratio for a sequence, its tokens' geometric mean: -(W/Wₑ) clipped(s) / E with
    /// s = exp(Σ w (ℓ - a) / W). arXiv 2507.18071, equations 5 to 7.
    Gspo {
        /// Where ratios are cut.
        clip: Clip,
    },
    /// A sequence is one action: -clipped(s) / E with s = exp(Σ w (ℓ - a)). With the leave-one-out
    /// advantage this is RLOO, arXiv 2402.14740, equation 6, as TRL computes it.
    Rloo {
        /// Where ratios are cut.
        clip: Clip,
    },
    /// -w A ℓ / E. Williams 1992.
    Reinforce,
    /// The ratio weighs the token and is itself not learned: -w cut(r) A ℓ / Wₛ with r held
    /// constant, so that no token drops out. arXiv 2506.13585, equations 4 and 5.
    Cispo {
        /// Where ratios are cut.
        clip: Clip,
    },
    /// Imitation: -w ℓ / Wₛ. The advantage has no part in it.
    CrossEntropy,
}

impl Objective {
    fn clip(self) -> Option<Clip> {
        match self {
            Objective::Grpo { clip }
            | Objective::Dapo { clip }
            | Objective::DrGrpo { clip, .. }
            | Objective::Gspo { clip }
            | Objective::Rloo { clip }
            | Objective::Cispo { clip } => Some(clip),
            Objective::Reinforce | Objective::CrossEntropy => None,
        }
    }

    /// Returns what a token's weight is multiplied with to give its part of the step, for the
    /// policy terms of single tokens and for the two terms beside them.
    fn token_norm(self, normaliser: Normaliser, episode_weight_milli: u64) -> f64 {
        let episodes = f64::from(normaliser.episodes);
        match self {
            Objective::Grpo { .. } | Objective::Gspo { .. } => {
                1.0 / (episodes * weight(episode_weight_milli))
            }
            Objective::DrGrpo { length, .. } => 1.0 / (episodes * f64::from(length)),
            Objective::Rloo { .. } | Objective::Reinforce => 1.0 / episodes,
            Objective::Dapo { .. } | Objective::Cispo { .. } | Objective::CrossEntropy => {
                1.0 / weight(normaliser.weight_milli)
            }
        }
    }
}

/// The loss of a training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// What is learned from advantages.
    pub objective: Objective,
    /// Weight of the divergence from a reference model, w k₃ per token, summed as the
    /// objective's tokens are: k₃ = exp(ρ - ℓ) - (ρ - ℓ) - 1 with ρ the reference's
    /// log-probability (arXiv 2402.03300, equation 4). At least 0; 0 needs no reference.
    pub kl: f64,
    /// What a nat of entropy pays per token, summed as the objective's tokens are; at least 0.
    pub entropy: f64,
    /// Truncated importance sampling, where the trainer computes other probabilities than the
    /// sampler did: terms of the policy are multiplied by min(exp(b - q), cap), b the trainer's
    /// log-probability before the step's first update and q the sampler's; of a sequence with one
    /// ratio, b - q is summed as ℓ - a is. At least 1.
    pub importance_cap: Option<f64>,
}

/// What a step's losses are divided by. Of the whole step, not of the micro-batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normaliser {
    /// Weight of all scored tokens, in thousandths; at least 1.
    pub weight_milli: u64,
    /// Episodes that are learned from; at least 1.
    pub episodes: u32,
}

/// What is known of one sequence, beside its scores. Lists run along its scored places.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Natural logarithms of the probabilities that the tokens were sampled with.
    pub sampled: Vec<f64>,
    /// What the trainer said of them before the step's first update, where a step has several
    /// updates or the trainer computes otherwise than the sampler. If there, ratios are taken to
    /// it; else to `sampled`, or with an importance cap to the scores themselves.
    pub before: Option<Vec<f32>>,
    /// What a reference model says of them.
    pub reference: Option<Vec<f32>>,
    /// How much is learned from each, in thousandths.
    pub weights_milli: Vec<u32>,
    /// How much better than expected the episode was.
    pub advantage: f64,
    /// Weight of all scored tokens of the episode, in thousandths: of this sequence's, where the
    /// episode has no other.
    pub episode_weight_milli: u64,
}

impl Loss {
    /// Checks the numbers of a loss.
    ///
    /// # Errors
    /// The first that is out of bounds.
    pub fn check(&self) -> Result<(), ObjectiveError> {
        let within = |name, found: f64, least: f64, most: f64| match (least..=most).contains(&found)
        {
            true => Ok(()),
            false => Err(ObjectiveError::Value { name, found, least, most }),
        };
        if let Some(clip) = self.objective.clip() {
            within("clip.low", clip.low, 0.0, 1.0)?;
            within("clip.high", clip.high, 0.0, f64::MAX)?;
        }
        if let Objective::DrGrpo { length, .. } = self.objective {
            within("length", f64::from(length), 1.0, f64::from(u32::MAX))?;
        }
        within("kl", self.kl, 0.0, f64::MAX)?;
        within("entropy", self.entropy, 0.0, f64::MAX)?;
        if let Some(cap) = self.importance_cap {
            within("importance-cap", cap, 1.0, f64::MAX)?;
            if self.objective == Objective::CrossEntropy {
                return Err(ObjectiveError::ImportanceOfImitation { cap });
            }
        }
        Ok(())
    }

    /// Returns how the loss changes with each score of `targets`, and adds what is to be said of
    /// them to `statistics`. Slopes for entropies are empty where entropy pays nothing.
    ///
    /// # Errors
    /// The scores are not the targets', are not finite, or lack the reference. Statistics may
    /// then hold a part of the targets.
    pub fn grade(
        &self,
        normaliser: Normaliser,
        targets: &[Target],
        scores: &Scores,
        statistics: &mut Statistics,
    ) -> Result<Slopes, ObjectiveError> {
        self.check_scores(normaliser, targets, scores)?;
        let mut slopes = Slopes::default();
        let mut start = 0;
        for target in targets {
            let range = start..start + target.sampled.len();
            start = range.end;
            let widen = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect();
            let logprobs: Vec<f64> = widen(&scores.logprobs[range.clone()]);
            let entropies: Vec<f64> = widen(&scores.entropies[range]);
            let graded = self.grade_sequence(normaliser, target, &logprobs, &entropies);
            statistics.add(target, &logprobs, &entropies, &graded);
            slopes.logprobs.extend(graded.slopes.iter().map(|slope| *slope as f32));
            if self.entropy > 0.0 {
                let norms = graded.norms.iter();
                slopes.entropies.extend(norms.map(|norm| (-self.entropy * norm) as f32));
            }
        }
        Ok(slopes)
    }

    fn check_scores(
        &self,
        normaliser: Normaliser,
        targets: &[Target],
        scores: &Scores,
    ) -> Result<(), ObjectiveError> {
        if normaliser.weight_milli == 0 || normaliser.episodes == 0 {
            return Err(ObjectiveError::NothingToLearn);
        }
        let expected = targets.iter().map(|target| target.sampled.len()).sum();
        let lengths =
            [("log-probabilities", scores.logprobs.len()), ("entropies", scores.entropies.len())];
        for (what, found) in lengths {
            same_length(what, found, expected)?;
        }
        for (sequence, target) in targets.iter().enumerate() {
            let length = target.sampled.len();
            same_length("weights", target.weights_milli.len(), length)?;
            for (what, given) in [("earlier", &target.before), ("reference's", &target.reference)] {
                let found = given.as_ref().map_or(length, Vec::len);
                same_length(what, found, length)?;
            }
            let own = target.weights_milli.iter().map(|weight| u64::from(*weight)).sum::<u64>();
            if own == 0 || target.episode_weight_milli < own {
                let found = target.episode_weight_milli;
                return Err(ObjectiveError::Weight { sequence, found, least: own.max(1) });
            }
            if self.kl > 0.0 && target.reference.is_none() {
                return Err(ObjectiveError::NoReference { sequence });
            }
            if !target.advantage.is_finite() {
                return Err(ObjectiveError::Advantage { sequence, found: target.advantage });
            }
        }
        check_finite(targets, scores)
    }

    /// Computes one sequence. Everything is in f64 and in the order of the tokens.
    fn grade_sequence(
        &self,
        normaliser: Normaliser,
        target: &Target,
        logprobs: &[f64],
        entropies: &[f64],
    ) -> Graded {
        let norm = self.objective.token_norm(normaliser, target.episode_weight_milli);
        let weights = target.weights_milli.iter().map(|milli| weight(u64::from(*milli)));
        let norms: Vec<f64> = weights.map(|weight| weight * norm).collect();
        let mut graded = self.policy(normaliser, target, logprobs, norms);
        for place in 0..logprobs.len() {
            let norm = graded.norms[place];
            if let (true, Some(reference)) = (self.kl > 0.0, &target.reference) {
                let (value, slope) = k3(f64::from(reference[place]) - logprobs[place]);
                graded.loss += self.kl * norm * value;
                graded.slopes[place] -= self.kl * norm * slope;
            }
            if self.entropy > 0.0 {
                graded.loss -= self.entropy * norm * entropies[place];
            }
        }
        graded
    }

    /// Computes the term of the policy.
    fn policy(
        &self,
        normaliser: Normaliser,
        target: &Target,
        logprobs: &[f64],
        norms: Vec<f64>,
    ) -> Graded {
        let compared: Vec<Compared> =
            (0..logprobs.len()).map(|place| self.compare(target, logprobs, place)).collect();
        let advantage = target.advantage;
        let weights = target.weights_milli.iter().map(|milli| weight(u64::from(*milli)));
        match self.objective {
            Objective::Grpo { clip }
            | Objective::Dapo { clip }
            | Objective::DrGrpo { clip, .. } => {
                let surrogates = compared.iter().map(|token| {
                    Surrogate::new(clip, advantage, token.log_ratio, self.truncated(token.log_gap))
                });
                Graded::of_tokens(norms, surrogates)
            }
            Objective::Cispo { clip } => {
                let surrogates = compared.iter().zip(logprobs).map(|(token, logprob)| {
                    let ratio = exp(clamp(token.log_ratio).0);
                    let pull = clip.cut(ratio) * self.truncated(token.log_gap) * advantage;
                    let cut = Cut::of(clip, ratio, None);
                    Surrogate { value: pull * logprob, slope: pull, cut }
                });
                Graded::of_tokens(norms, surrogates)
            }
            Objective::Reinforce => {
                let surrogates = compared.iter().zip(logprobs).map(|(token, logprob)| {
                    let pull = self.truncated(token.log_gap) * advantage;
                    Surrogate { value: pull * logprob, slope: pull, cut: Cut::No }
                });
                Graded::of_tokens(norms, surrogates)
            }
            Objective::CrossEntropy => {
                let imitate =
                    |logprob: &f64| Surrogate { value: *logprob, slope: 1.0, cut: Cut::No };
                Graded::of_tokens(norms, logprobs.iter().map(imitate))
            }
            Objective::Gspo { clip } => {
                let own: u64 = target.weights_milli.iter().map(|milli| u64::from(*milli)).sum();
                let shares = weights.map(|part| part / weight(own)).collect();
                let part = own as f64 / target.episode_weight_milli as f64;
                let norm = part / f64::from(normaliser.episodes);
                self.whole_sequence(clip, advantage, &compared, norm, shares, norms)
            }
            Objective::Rloo { clip } => {
                let norm = 1.0 / f64::from(normaliser.episodes);
                self.whole_sequence(clip, advantage, &compared, norm, weights.collect(), norms)
            }
        }
    }

    /// Computes a term of one ratio, exp(Σ share (ℓ - a)).
    fn whole_sequence(
        &self,
        clip: Clip,
        advantage: f64,
        compared: &[Compared],
        norm: f64,
        shares: Vec<f64>,
        norms: Vec<f64>,
    ) -> Graded {
        let total = |part: fn(&Compared) -> f64| {
            compared.iter().zip(&shares).fold(0.0, |sum, (token, share)| sum + share * part(token))
        };
        let importance = self.truncated(total(|token| token.log_gap));
        let surrogate = Surrogate::new(clip, advantage, total(|token| token.log_ratio), importance);
        let slopes = shares.iter().map(|share| -norm * surrogate.slope * share).collect();
        let cuts = vec![surrogate.cut; compared.len()];
        Graded { loss: -norm * surrogate.value, slopes, norms, cuts }
    }

    fn compare(&self, target: &Target, logprobs: &[f64], place: usize) -> Compared {
        let sampled = target.sampled[place];
        let before = target.before.as_ref().map(|before| f64::from(before[place]));
        let anchor = match (before, self.importance_cap) {
            (Some(before), _) => before,
            (None, Some(_)) => logprobs[place],
            (None, None) => sampled,
        };
        Compared {
            log_ratio: logprobs[place] - anchor,
            log_gap: before.unwrap_or(logprobs[place]) - sampled,
        }
    }

    /// Returns the factor against the difference of trainer and sampler; 1 without a cap.
    fn truncated(&self, log_gap: f64) -> f64 {
        self.importance_cap.map_or(1.0, |cap| exp(clamp(log_gap).0).min(cap))
    }
}

/// Returns thousandths as a number, in ones.
fn weight(milli: u64) -> f64 {
    milli as f64 / 1_000.0
}

fn check_finite(targets: &[Target], scores: &Scores) -> Result<(), ObjectiveError> {
    let mut start = 0;
    for (sequence, target) in targets.iter().enumerate() {
        let range = start..start + target.sampled.len();
        start = range.end;
        let learned = [&scores.logprobs[range.clone()], &scores.entropies[range]];
        let known = [&target.before, &target.reference].map(|list| list.as_deref().unwrap_or(&[]));
        let values = learned.into_iter().chain(known).flatten().map(|value| f64::from(*value));
        let mut all = values.chain(target.sampled.iter().copied());
        if let Some(found) = all.find(|value| !value.is_finite()) {
            return Err(ObjectiveError::NotFinite { sequence, found });
        }
    }
    Ok(())
}

fn same_length(what: &'static str, found: usize, expected: usize) -> Result<(), ObjectiveError> {
    match found == expected {
        true => Ok(()),
        false => Err(ObjectiveError::Length { what, found, expected }),
    }
}

/// A loss that cannot be computed.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectiveError {
    /// A number of the loss is out of bounds.
    Value {
        /// Its key.
        name: &'static str,
        /// What it is.
        found: f64,
        /// The least.
        least: f64,
        /// The most.
        most: f64,
    },
    /// An importance cap with imitation, which has no sampler.
    ImportanceOfImitation {
        /// The cap.
        cap: f64,
    },
    /// A normaliser of 0.
    NothingToLearn,
    /// Lists that should be equally long.
    Length {
        /// What is listed.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// An episode that weighs less than one of its sequences, or a sequence that weighs nothing.
    Weight {
        /// Its number in the batch.
        sequence: usize,
        /// The episode's weight in thousandths.
        found: u64,
        /// The least.
        least: u64,
    },
    /// A divergence without a reference.
    NoReference {
        /// Its number in the batch.
        sequence: usize,
    },
    /// An advantage that is no number.
    Advantage {
        /// Its number in the batch.
        sequence: usize,
        /// What it is.
        found: f64,
    },
    /// A log-probability or an entropy that is no number.
    NotFinite {
        /// Its number in the batch.
        sequence: usize,
        /// What it is.
        found: f64,
    },
}

impl fmt::Display for ObjectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectiveError::Value { name, found, least, most } => {
                write!(f, "`{name}` is `{found}`, allowed are `{least}` to `{most:e}`")
            }
            ObjectiveError::ImportanceOfImitation { cap } => {
                write!(f, "`importance-cap` is `{cap}`, but imitation knows no sampler")
            }
            ObjectiveError::NothingToLearn => write!(f, "no token to learn from"),
            ObjectiveError::Length { what, found, expected } => {
                write!(f, "`{found}` {what} for `{expected}` scored tokens")
            }
            ObjectiveError::Weight { sequence, found, least } => write!(
                f,
                "the episode of sequence `{sequence}` weighs `{found}` thousandths, at least \
                 `{least}`"
            ),
            ObjectiveError::NoReference { sequence } => {
                write!(f, "sequence `{sequence}` has no reference to diverge from")
            }
            ObjectiveError::Advantage { sequence, found } => {
                write!(f, "the advantage of sequence `{sequence}` is `{found}`")
            }
            ObjectiveError::NotFinite { sequence, found } => {
                write!(f, "a score of sequence `{sequence}` is `{found}`")
            }
        }
    }
}

impl std::error::Error for ObjectiveError {}

#[cfg(test)]
mod tests;
