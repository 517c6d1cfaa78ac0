//! A tournament file: TOML text becomes checked values.
//!
//! Not here: opening files. Paths stay text; whoever opens them resolves them against the
//! tournament file's folder.

use crate::scenario::{Regulation, RuleSet};

/// A checked tournament file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TournamentConfig {
    /// Letters, digits, `-`, `_`, `.`; at most 64 bytes.
    pub name: String,
    /// The root seed of every draw.
    pub seed: u64,
    /// Who meets whom.
    pub schedule: ScheduleKind,
    /// Whether an agent also meets itself.
    pub self_play: bool,
    /// Pairs per pairing and item, at least 1.
    pub repetitions: u32,
    /// The rules of play.
    pub rules: RulesConfig,
    /// Where the items come from.
    pub catalog: CatalogConfig,
    /// What a seat may use.
    pub limits: Limits,
    /// Scripted language models that agents may be granted.
    pub models: Vec<ModelConfig>,
    /// Who plays, in announcement order.
    pub agents: Vec<AgentConfig>,
}

/// Who meets whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// Everyone meets everyone.
    RoundRobin,
    /// Candidates meet the field; neither side meets its own.
    Gauntlet,
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
        /// Lowest reserve in cents.
        low: u32,
        /// Highest reserve in cents, also the list price.
        high: u32,
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

/// What a seat may use. Every limit is enforced by the sandbox or the referee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Fuel for start-up (instantiation), spent before the first call and never recorded.
    pub fuel_start_max: u64,
    /// Fuel for each call of `begin`, `act` and `finish`.
    pub fuel_turn_max: u64,
    /// Fuel for all calls of one match together.
    pub fuel_match_max: u64,
    /// Bytes of all linear memories of a seat together.
    pub memory_bytes_max: u64,
    /// Elements of all tables of a seat together.
    pub table_elements_max: u32,
    /// Bytes of talk in one turn.
    pub talk_bytes_max: u32,
    /// Bytes of private notes in one match; what is beyond is dropped and marked.
    pub trace_bytes_max: u32,
    /// Host calls in one match (inference, training, trace, WASI together).
    pub host_calls_max: u32,
    /// Live resource handles of one seat.
    pub handles_max: u32,
    /// Bytes that one host call or result may carry from the guest.
    pub lifted_bytes_max: u32,
    /// Calls of language models in one match.
    pub model_calls_max: u32,
    /// Prompt tokens in one match.
    pub model_input_tokens_max: u32,
    /// Generated tokens in one match.
    pub model_output_tokens_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            fuel_start_max: 50_000_000,
            fuel_turn_max: 20_000_000,
            fuel_match_max: 200_000_000,
            memory_bytes_max: 64 << 20,
            table_elements_max: 20_000,
            talk_bytes_max: 1_024,
            trace_bytes_max: 16_384,
            host_calls_max: 10_000,
            handles_max: 64,
            lifted_bytes_max: 256 << 10,
            model_calls_max: 64,
            model_input_tokens_max: 100_000,
            model_output_tokens_max: 10_000,
        }
    }
}

/// A language model that replies from a table: deterministic, for tests and dry runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// The name that guests ask for.
    pub name: String,
    /// Path of the script, as the file gives it.
    pub script: String,
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
    /// Whether the agent is given the training interface.
    pub training: bool,
}

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentSource {
    /// One of the embedded agents: `builtin:NAME`.
    Builtin(String),
    /// A file, as the tournament file gives it.
    File(String),
}
