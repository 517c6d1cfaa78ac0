//! The shape of a tournament file, before its values are checked.
//!
//! Every key that exists is a field here, and nothing else is accepted.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use toml::Spanned;

use crate::scenario::{Regulation, RuleSet};

use super::{OpenerConfig, Roles, ScheduleKind, Split, Training};

/// A value and its place in the text, if the key is there.
pub(super) type Given<T> = Option<Spanned<T>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    pub(super) name: Spanned<String>,
    pub(super) seed: Given<i128>,
    pub(super) schedule: Option<RawSchedule>,
    pub(super) roles: Given<RawRoles>,
    pub(super) self_play: Option<bool>,
    pub(super) repetitions: Given<i128>,
    pub(super) scenario_group: Given<i128>,
    pub(super) rules: Option<RawRules>,
    pub(super) catalog: Spanned<RawCatalog>,
    pub(super) limits: Given<RawLimits>,
    pub(super) draws: Option<RawDraws>,
    pub(super) log: Option<RawLog>,
    #[serde(default)]
    pub(super) models: Vec<Spanned<RawModel>>,
    pub(super) agents: Spanned<Vec<Spanned<RawAgent>>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawSchedule {
    RoundRobin,
    Gauntlet,
}

impl From<RawSchedule> for ScheduleKind {
    fn from(raw: RawSchedule) -> ScheduleKind {
        match raw {
            RawSchedule::RoundRobin => ScheduleKind::RoundRobin,
            RawSchedule::Gauntlet => ScheduleKind::Gauntlet,
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawRoles {
    Both,
    CandidatesBuy,
    CandidatesSell,
}

impl From<RawRoles> for Roles {
    fn from(raw: RawRoles) -> Roles {
        match raw {
            RawRoles::Both => Roles::Both,
            RawRoles::CandidatesBuy => Roles::CandidatesBuy,
            RawRoles::CandidatesSell => Roles::CandidatesSell,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawRules {
    pub(super) set: Option<RuleSet>,
    pub(super) regulation: Option<RawRegulation>,
    pub(super) retries: Given<i128>,
    pub(super) opener: Given<RawOpener>,
    pub(super) horizon: Given<RawHorizon>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { buyer = \"refuse\" }")]
pub(super) struct RawRegulation {
    pub(super) buyer: Option<Regulation>,
    pub(super) seller: Option<Regulation>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawOpener {
    Buyer,
    Seller,
    Drawn,
}

impl From<RawOpener> for OpenerConfig {
    fn from(raw: RawOpener) -> OpenerConfig {
        match raw {
            RawOpener::Buyer => OpenerConfig::Buyer,
            RawOpener::Seller => OpenerConfig::Seller,
            RawOpener::Drawn => OpenerConfig::Drawn,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { turns = 20 }")]
pub(super) struct RawHorizon {
    pub(super) turns: Given<i128>,
    pub(super) mean_turns: Given<i128>,
    pub(super) max_turns: Given<i128>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawCatalog {
    pub(super) kind: RawCatalogKind,
    pub(super) items: Given<i128>,
    pub(super) infeasible_share: Given<Decimal>,
    pub(super) low: Given<String>,
    pub(super) high: Given<String>,
    pub(super) folder: Given<String>,
    pub(super) budget_factor: Given<Factor>,
    pub(super) split: Option<RawSplit>,
    pub(super) sample: Given<i128>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawCatalogKind {
    Synthetic,
    Uniform,
    AmazonHistoryPrice,
}

impl RawCatalogKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            RawCatalogKind::Synthetic => "synthetic",
            RawCatalogKind::Uniform => "uniform",
            RawCatalogKind::AmazonHistoryPrice => "amazon-history-price",
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawSplit {
    All,
    Train,
    Test,
}

impl From<RawSplit> for Split {
    fn from(raw: RawSplit) -> Split {
        match raw {
            RawSplit::All => Split::All,
            RawSplit::Train => Split::Train,
            RawSplit::Test => Split::Test,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLimits {
    pub(super) fuel_start: Given<i128>,
    pub(super) fuel_turn: Given<i128>,
    pub(super) fuel_match: Given<i128>,
    pub(super) memory_bytes: Given<i128>,
    pub(super) table_elements: Given<i128>,
    pub(super) talk_bytes: Given<i128>,
    pub(super) trace_bytes: Given<i128>,
    pub(super) host_calls: Given<i128>,
    pub(super) handles: Given<i128>,
    pub(super) lifted_bytes: Given<i128>,
    pub(super) model_calls: Given<i128>,
    pub(super) model_input_tokens: Given<i128>,
    pub(super) model_output_tokens: Given<i128>,
    pub(super) model_calls_turn: Given<i128>,
    pub(super) model_output_tokens_turn: Given<i128>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawDraws {
    pub(super) beacon_round: Given<i128>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLog {
    pub(super) origin: Given<String>,
    pub(super) checkpoint_every: Given<i128>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawModel {
    pub(super) name: Spanned<String>,
    pub(super) script: Given<String>,
    pub(super) weights: Given<String>,
    pub(super) device: Given<String>,
    pub(super) adapter: Given<String>,
    pub(super) context: Given<i128>,
    pub(super) cache_mib: Given<i128>,
    pub(super) slots: Given<i128>,
    pub(super) sha256: Given<String>,
    pub(super) url: Given<String>,
    pub(super) remote_model: Given<String>,
    pub(super) server: Given<String>,
    pub(super) key_env: Given<String>,
    pub(super) timeout_seconds: Given<i128>,
    pub(super) retries: Given<i128>,
    pub(super) concurrency: Given<i128>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawAgent {
    pub(super) name: Spanned<String>,
    pub(super) component: Spanned<String>,
    pub(super) params: Given<String>,
    pub(super) candidate: Given<bool>,
    #[serde(default)]
    pub(super) models: Vec<Spanned<String>>,
    pub(super) training: Option<RawTraining>,
    pub(super) submission: Given<String>,
}

/// `true`, `false` or `"train"`.
#[derive(Clone, Copy)]
pub(super) struct RawTraining(pub(super) Training);

impl<'de> Deserialize<'de> for RawTraining {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawTraining, D::Error> {
        struct TrainingVisitor;
        impl Visitor<'_> for TrainingVisitor {
            type Value = RawTraining;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "true, false or \"train\"")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<RawTraining, E> {
                Ok(RawTraining(if value { Training::Evaluate } else { Training::None }))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<RawTraining, E> {
                match value {
                    "train" => Ok(RawTraining(Training::Train)),
                    other => Err(E::unknown_variant(other, &["train"])),
                }
            }
        }
        deserializer.deserialize_any(TrainingVisitor)
    }
}

/// A number that may be written with or without a decimal point. Only [`Decimal::milli`]
/// looks at it, so the float goes no further than this file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal(f64);

impl Decimal {
    /// Returns the number in thousandths if it is one of `0..=max` thousandths exactly.
    pub(super) fn milli(self, max: u32) -> Option<u32> {
        let scaled = (self.0 * 1_000.0).round();
        if !(0.0..=f64::from(max)).contains(&scaled) {
            return None;
        }
        // Reading a decimal and dividing both round to the nearest float, so a decimal of at
        // most three places equals its quotient exactly.
        (scaled / 1_000.0 == self.0).then_some(scaled as u32)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
        struct DecimalVisitor;
        impl Visitor<'_> for DecimalVisitor {
            type Value = Decimal;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number such as 0.15")
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Decimal, E> {
                Ok(Decimal(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Decimal, E> {
                Ok(Decimal(value as f64))
            }
        }
        deserializer.deserialize_any(DecimalVisitor)
    }
}

/// A budget factor: one number, or the lowest and the highest of a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    pub(super) low: Decimal,
    pub(super) high: Decimal,
}

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Factor, D::Error> {
        struct FactorVisitor;
        impl<'de> Visitor<'de> for FactorVisitor {
            type Value = Factor;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number such as 0.8 or a range such as [0.4, 1.0]")
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Factor, E> {
                Ok(Factor { low: Decimal(value), high: Decimal(value) })
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Factor, E> {
                self.visit_f64(value as f64)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Factor, A::Error> {
                let wrong = || A::Error::custom("a range is its lowest and its highest factor");
                let low = seq.next_element()?.ok_or_else(wrong)?;
                let high = seq.next_element()?.ok_or_else(wrong)?;
                if seq.next_element::<Decimal>()?.is_some() {
                    return Err(wrong());
                }
                Ok(Factor { low, high })
            }
        }
        deserializer.deserialize_any(FactorVisitor)
    }
}
