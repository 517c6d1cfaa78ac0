//! What an episode was worth to the seat that is trained, from its record alone.
//!
//! A reward is a pure function of a record, and of a judge's words where a judge is asked: whoever
//! holds a run's logs computes every reward that was learned from. Rewards are whole millionths.
//! No guest has a say in them.
//!
//! Not here: asking a judge (`judge`), comparing episodes (`advantage`).

use std::fmt;

use arena_core::record::{MatchRecord, Outcome};
use arena_core::scenario::Role;
use arena_core::score::{measure, reward};
use arena_core::seat::SampledToken;
use libm::{exp, log};
use serde::{Deserialize, Serialize};

use crate::judge::{self, Verdict};

/// Millionths in one.
pub const MICRO: f64 = 1e6;

/// The least mass of the tokens that a record does not list: what its rounding to millionths lets
/// appear as none.
const REST_MASS_MIN: f64 = 1e-6;

/// A reward in millionths.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RewardMicro(pub i32);

impl RewardMicro {
    /// The reward of misbehaving: -1.
    pub const LEAST: RewardMicro = RewardMicro(-1_000_000);

    /// Returns the reward as a number, in ones.
    pub fn value(self) -> f64 {
        f64::from(self.0) / MICRO
    }
}

/// Rounds to the nearest millionth, halves away from zero: the one rounding of rewards and
/// advantages. `None` where 32 bits cannot hold it.
pub fn millionths(value: f64) -> Option<i32> {
    let micro = (value * MICRO).round();
    let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
    range.contains(&micro).then_some(micro as i32)
}

/// One match as its trained seat's reward sees it.
#[derive(Clone, Copy, Debug)]
pub struct Episode<'a> {
    /// What happened.
    pub record: &'a MatchRecord,
    /// Where the trained seat sits.
    pub role: Role,
    /// The name of the model that is trained.
    pub model: &'a str,
    /// Rows of that model's embedding.
    pub vocabulary: u32,
    /// What a judge said, for rewards that ask one.
    pub verdict: Option<&'a Verdict>,
}

/// Says what an episode was worth.
pub trait Reward {
    /// Returns the name used in experiment files and ledgers.
    fn name(&self) -> &'static str;

    /// Returns the reward of an episode.
    ///
    /// # Errors
    /// The episode does not hold what the reward is computed from.
    fn of(&self, episode: &Episode<'_>) -> Result<RewardMicro, RewardError>;
}

/// The rewards that an experiment chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardKind {
    /// [`Surplus`].
    Surplus,
    /// [`SurplusUnpunished`].
    SurplusUnpunished,
    /// [`SelfCertainty`].
    SelfCertainty,
    /// [`Judged`].
    Judge,
}

impl RewardKind {
    /// Every reward.
    pub const ALL: [RewardKind; 4] = [
        RewardKind::Surplus,
        RewardKind::SurplusUnpunished,
        RewardKind::SelfCertainty,
        RewardKind::Judge,
    ];

    /// Returns what computes it.
    pub fn reward(self) -> &'static dyn Reward {
        match self {
            RewardKind::Surplus => &Surplus,
            RewardKind::SurplusUnpunished => &SurplusUnpunished,
            RewardKind::SelfCertainty => &SelfCertainty,
            RewardKind::Judge => &Judged,
        }
    }
}

/// The reward of arXiv 2604.09855 and its mirror for sellers.
///
/// clip((B - p)/Z, -1, 1) of a deal at p, and for sellers with p - C; -1 where the trained seat
/// offered or accepted beyond its own reserve, whatever the regulation did about it, and where it
/// ended the match by a fault; else 0, also where the opponent misbehaved. Z = |B - C|, at least a
/// dollar. Where regulation penalises, this is what tables call reward.
#[derive(Clone, Copy, Debug)]
pub struct Surplus;

impl Reward for Surplus {
    fn name(&self) -> &'static str {
        "surplus"
    }

    fn of(&self, episode: &Episode<'_>) -> Result<RewardMicro, RewardError> {
        let (record, role) = (episode.record, episode.role);
        if measure(record)[role.index()].attempts.total() > 0 {
            return Ok(RewardMicro::LEAST);
        }
        Ok(RewardMicro(millionths(reward(record, role)).expect("a reward lies in -1 to 1")))
    }
}

/// A control without a penalty for breaking the reserve: as [`Surplus`], but what breaks the
/// reserve counts as no deal does, 0. Faults still cost 1.
#[derive(Clone, Copy, Debug)]
pub struct SurplusUnpunished;

impl Reward for SurplusUnpunished {
    fn name(&self) -> &'static str {
        "surplus-unpunished"
    }

    fn of(&self, episode: &Episode<'_>) -> Result<RewardMicro, RewardError> {
        let (record, role) = (episode.record, episode.role);
        let gain = match record.outcome {
            Outcome::Deal { .. } => reward(record, role).max(0.0),
            Outcome::Violated { .. } => 0.0,
            _ => reward(record, role),
        };
        Ok(RewardMicro(millionths(gain).expect("a reward lies in -1 to 1")))
    }
}

/// An intrinsic reward without a verifier: how far from even the model's distributions were, in
/// nats: the mean over its reply tokens of KL(U ‖ p) = -ln V - 1/V Σ ln pⱼ (self-certainty, arXiv
/// 2505.19590, equation 2).
///
/// A record holds the five likeliest tokens and the one that was sampled. What is left is taken
/// as spread evenly over the other tokens, which makes this the least self-certainty that agrees
/// with the record (ln is concave), up to its rounding. Tokens that the guest gave a weight of 0
/// are left out.
#[derive(Clone, Copy, Debug)]
pub struct SelfCertainty;

impl Reward for SelfCertainty {
    fn name(&self) -> &'static str {
        "self-certainty"
    }

    fn of(&self, episode: &Episode<'_>) -> Result<RewardMicro, RewardError> {
        let calls = &episode.record.usage[episode.role.index()].model_calls;
        let (mut sum, mut count) = (0.0, 0_u32);
        for (call, made) in calls.iter().enumerate() {
            if made.model != episode.model || made.weight_milli == Some(0) {
                continue;
            }
            let tokens = made.tokens.as_ref().ok_or(RewardError::NoTokens { call })?;
            for (place, token) in tokens.output.iter().enumerate() {
                let vocabulary = episode.vocabulary;
                let certainty = self_certainty(token, vocabulary);
                sum += certainty.ok_or(RewardError::NoScores { call, place, vocabulary })?;
                count += 1;
            }
        }
        if count == 0 {
            return Err(RewardError::Speechless { model: episode.model.to_owned() });
        }
        let mean = sum / f64::from(count);
        millionths(mean).map(RewardMicro).ok_or(RewardError::TooLarge { found: mean })
    }
}

/// Returns the least KL(U ‖ p) in nats that a token's scores allow, at least 0; `None` without
/// scores, or with more of them than the vocabulary has tokens.
fn self_certainty(token: &SampledToken, vocabulary: u32) -> Option<f64> {
    if token.top.is_empty() {
        return None;
    }
    let is_listed = token.top.iter().any(|score| score.id == token.id);
    let sampled = (!is_listed).then_some(token.logprob_micro);
    let (mut logarithms, mut mass, mut known) = (0.0, 0.0, 0_u32);
    for micro in token.top.iter().map(|score| score.logprob_micro).chain(sampled) {
        let logarithm = f64::from(micro) / MICRO;
        logarithms += logarithm;
        mass += exp(logarithm);
        known += 1;
    }
    let others = f64::from(vocabulary.checked_sub(known)?);
    if others > 0.0 {
        logarithms += others * log((1.0 - mass).max(REST_MASS_MIN) / others);
    }
    let vocabulary = f64::from(vocabulary);
    Some((-log(vocabulary) - logarithms / vocabulary).max(0.0))
}

/// A judge's mark, as a share: see [`judge`] for the question. For comparison with rewards that
/// can be verified: this one can only be repeated by whoever has the judge.
#[derive(Clone, Copy, Debug)]
pub struct Judged;

impl Reward for Judged {
    fn name(&self) -> &'static str {
        "judge"
    }

    fn of(&self, episode: &Episode<'_>) -> Result<RewardMicro, RewardError> {
        let verdict = episode.verdict.ok_or(RewardError::NoVerdict)?;
        judge::mark(episode.record, episode.role, verdict)
    }
}

/// Why an episode has no reward.
#[derive(Clone, Debug, PartialEq)]
pub enum RewardError {
    /// A reply was recorded without its tokens.
    NoTokens {
        /// The seat's model call, from 0.
        call: usize,
    },
    /// A token was recorded without the likeliest ones, or with more than there are.
    NoScores {
        /// The seat's model call, from 0.
        call: usize,
        /// The token's place in the reply, from 0.
        place: usize,
        /// How many tokens there are.
        vocabulary: u32,
    },
    /// The model wrote nothing that counts.
    Speechless {
        /// The model.
        model: String,
    },
    /// The reward does not fit into 32 bits.
    TooLarge {
        /// In ones.
        found: f64,
    },
    /// A judge's reward without a judge's words.
    NoVerdict,
    /// A judge's words on another match, or to another question.
    OtherQuestion {
        /// The hash of the request that the words answer.
        found: [u8; 32],
        /// The hash of the request that belongs to the record.
        expected: [u8; 32],
    },
    /// A judge's words that are no mark.
    NoMark {
        /// What it said, cut short.
        text: String,
    },
    /// The question cannot be asked.
    Question {
        /// Why.
        detail: String,
    },
    /// The judge did not answer.
    Judge {
        /// Why.
        detail: String,
    },
}

impl fmt::Display for RewardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RewardError::NoTokens { call } => {
                write!(f, "model call `{call}` was recorded without its tokens")
            }
            RewardError::NoScores { call, place, vocabulary } => write!(
                f,
                "reply token `{place}` of model call `{call}` has no scores of likeliest tokens \
                 that a vocabulary of `{vocabulary}` could give"
            ),
            RewardError::Speechless { model } => {
                write!(f, "model `{}` wrote nothing to learn from", model.escape_debug())
            }
            RewardError::TooLarge { found } => {
                write!(f, "a reward of `{found}` does not fit into 32 bits of millionths")
            }
            RewardError::NoVerdict => write!(f, "no judge was asked about this match"),
            RewardError::OtherQuestion { found, expected } => {
                use arena_core::hexadecimal::hex;
                let [found, expected] = [found, expected].map(|hash| hex(hash));
                write!(f, "the verdict answers request `{found}`, the record asks `{expected}`")
            }
            RewardError::NoMark { text } => write!(
                f,
                "the judge said `{}`, not a whole number from 0 to {}",
                text.escape_debug(),
                judge::MARK_MAX
            ),
            RewardError::Question { detail } => write!(f, "cannot ask the judge: {detail}"),
            RewardError::Judge { detail } => write!(f, "the judge failed: {detail}"),
        }
    }
}

impl std::error::Error for RewardError {}

#[cfg(test)]
mod tests;
