//! A tournament file: TOML text becomes checked values.
//!
//! [`TournamentConfig::parse`] accepts a file or says where and what is wrong: a value of these
//! types that came out of it keeps every bound named here. An unknown key, a key without
//! effect and a value out of range are errors; nothing is ignored.
//!
//! Not here: opening files. Paths stay text; whoever opens them resolves them against the
//! tournament file's folder.

mod check;
mod check_agents;
mod check_catalog;
mod check_models;
pub mod error;
pub mod limits;
pub mod models;
mod parse;
mod values;

pub use error::ConfigError;
pub use limits::Limits;
pub use models::{ModelConfig, ModelSource};
pub use values::{is_name, is_origin};

use crate::price::Price;
use crate::scenario::{Regulation, Role, RuleSet};

/// Largest tournament file in bytes. It is kept whole in the log's first entry.
pub const CONFIG_BYTES_MAX: usize = 1 << 20;
/// Longest name of a tournament, a model or an agent, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Longest path in bytes.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Most agents of a tournament.
pub const AGENTS_MAX: usize = 1_000;
/// Most language models of a tournament.
pub const MODELS_MAX: usize = 64;
/// Most pairs per pairing and item.
pub const REPETITIONS_MAX: u32 = 1_000_000;
/// Most further moves of a refused seat within one turn.
pub const RETRIES_MAX: u32 = 16;
/// Highest budget factor, in thousandths.
pub const BUDGET_FACTOR_MILLI_MAX: u32 = 2_000;
/// Turns of the rule set `amazon-history-price`: six of each side.
pub const AMAZON_TURNS: u32 = 12;

/// A checked tournament file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TournamentConfig {
    /// Letters, digits, `-`, `_`, `.`; at most 64 bytes.
    pub name: String,
    /// The public seed of every draw; without one, draws come from a secret that is shown after
    /// the close.
    pub seed: Option<u64>,
    /// A round of the drand chain `quicknet` that is mixed into the draws. Only without a seed.
    pub beacon_round: Option<u64>,
    /// How the log is signed.
    pub log: LogConfig,
    /// Who meets whom.
    pub schedule: ScheduleKind,
    /// Who buys and who sells. One-sided only in a gauntlet without self-play.
    pub roles: Roles,
    /// Whether an agent also meets itself.
    pub self_play: bool,
    /// Pairs per pairing and item, at least 1.
    pub repetitions: u32,
    /// So many repetitions, one after the other, have the same scenario: at least 1, and a divisor
    /// of `repetitions`.
    pub scenario_group: u32,
    /// The rules of play.
    pub rules: RulesConfig,
    /// Where the items come from.
    pub catalog: CatalogConfig,
    /// What a seat may use.
    pub limits: Limits,
    /// Language models that agents may be granted.
    pub models: Vec<ModelConfig>,
    /// Who plays, in announcement order.
    pub agents: Vec<AgentConfig>,
}

/// How the log is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// The name under which the log's heads are signed, by custom a URL without its scheme.
    pub origin: Option<String>,
    /// The head is signed at every multiple of this many entries: a multiple of
    /// [`CHECKPOINT_STEP`].
    pub checkpoint_every: u32,
}

/// Heads are signed at multiples of this, the width of a tile, so that few tiles are partial.
pub const CHECKPOINT_STEP: u32 = 256;
/// Most entries between two signed heads.
pub const CHECKPOINT_EVERY_MAX: u32 = 1 << 20;
/// Entries between two signed heads where the file says nothing.
pub const CHECKPOINT_EVERY: u32 = 4_096;

/// Who meets whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// Everyone meets everyone.
    RoundRobin,
    /// Candidates meet the field; neither side meets its own.
    Gauntlet,
}

/// Who buys and who sells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roles {
    /// Everybody does both: a pair is two matches, with the roles swapped.
    Both,
    /// Candidates buy from the field: a pair is one match.
    CandidatesBuy,
    /// Candidates sell to the field: a pair is one match.
    CandidatesSell,
}

impl Roles {
    /// Returns how many matches a pair has.
    pub fn leg_count(self) -> u8 {
        match self {
            Roles::Both => 2,
            Roles::CandidatesBuy | Roles::CandidatesSell => 1,
        }
    }

    /// Returns the only role that candidates take; `None` where everybody takes both.
    pub fn of_candidates(self) -> Option<Role> {
        match self {
            Roles::Both => None,
            Roles::CandidatesBuy => Some(Role::Buyer),
            Roles::CandidatesSell => Some(Role::Seller),
        }
    }
}

/// The rules of play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesConfig {
    /// The rule set.
    pub set: RuleSet,
    /// What happens to a move beyond the own reserve: buyer, seller.
    pub regulation: [Regulation; 2],
    /// How often a refused seat may move again within one turn.
    pub retries: u32,
    /// Who makes the first turn.
    pub opener: OpenerConfig,
    /// When a match ends without a deal.
    pub horizon: HorizonConfig,
}

/// Who makes the first turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenerConfig {
    /// Always the buyer. The pair balances agents, since each buys once.
    Buyer,
    /// Always the seller.
    Seller,
    /// Drawn per scenario, the same for both legs of a pair.
    Drawn,
}

/// When a match ends without a deal, in turns of both sides together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HorizonConfig {
    /// Always after this many turns, known to both.
    Fixed {
        /// Turns, from 1 to [`TURN_LIMIT_MAX`].
        turns: u32,
    },
    /// Drawn per scenario and hidden: after each turn the match ends with probability
    /// 1/`mean_turns`, and surely after `max_turns`.
    Geometric {
        /// Mean number of turns before the cap, at least 2.
        mean_turns: u32,
        /// The cap, at most [`TURN_LIMIT_MAX`].
        max_turns: u32,
    },
}

/// Longest negotiation that can be configured, in turns of both sides together.
pub const TURN_LIMIT_MAX: u32 = 1_000;

/// Where the items come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogConfig {
    /// The source.
    pub kind: CatalogKind,
    /// Which part of the source, by hash of the item id.
    pub split: Split,
    /// Play only this many items, drawn from the root seed; `None` plays all.
    pub sample: Option<u32>,
}

/// The source of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogKind {
    /// Generated, fitted to published price statistics.
    Synthetic {
        /// How many items to generate.
        items: u32,
        /// Share of items without a possible deal, in thousandths.
        infeasible_milli: u32,
    },
    /// Budget and cost drawn independently and uniformly: theory lines are exact here.
    Uniform {
        /// How many items to generate.
        items: u32,
        /// Lowest reserve.
        low: Price,
        /// Highest reserve, also the list price.
        high: Price,
    },
    /// The AmazonHistoryPrice JSON folder.
    AmazonHistoryPrice {
        /// The folder, as the file gives it.
        folder: String,
        /// Budget as a share of the shown price, in thousandths: lowest and highest; drawn
        /// uniformly per scenario when they differ.
        budget_factor_milli: [u32; 2],
    },
}

/// Which part of a catalog is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Every item.
    All,
    /// The training part.
    Train,
    /// The test part.
    Test,
}

impl TournamentConfig {
    /// Returns whether an agent buys and whether it sells.
    pub fn roles_of(&self, agent: &AgentConfig) -> [bool; 2] {
        match self.roles.of_candidates() {
            None => [true; 2],
            Some(role) => {
                let own = if agent.candidate { role } else { role.other() };
                Role::BOTH.map(|role| role == own)
            }
        }
    }
}

/// One agent of a tournament file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Unique in the file. Letters, digits, `-`, `_`, `.`; at most 64 bytes.
    pub name: String,
    /// Where the component comes from.
    pub component: ComponentSource,
    /// Parameters, handed to the guest as they are.
    pub params: String,
    /// In a gauntlet: whether it is a candidate rather than of the field.
    pub candidate: bool,
    /// Models that the agent may ask, by name.
    pub models: Vec<String>,
    /// What the agent is given of the training interface.
    pub training: Training,
    /// The author's signed statement: a file, as the tournament file gives it.
    pub submission: Option<String>,
}

/// What an agent is given of the training interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Training {
    /// Nothing.
    None,
    /// It may report metrics, and is told that nothing is learned from the match.
    Evaluate,
    /// It may also weigh its model's replies, and is told that they are learned from.
    Train,
}

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentSource {
    /// One of the embedded agents: `builtin:NAME`.
    Builtin(String),
    /// A file, as the tournament file gives it.
    File(String),
}
