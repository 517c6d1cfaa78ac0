//! What a seat may use in a match, and how large a record that allows.
//!
//! Not here: enforcement. The sandbox holds seats to everything but talk, the referee to talk.

use std::ops::RangeInclusive;

use crate::config::{HorizonConfig, RulesConfig};
use crate::seat::TOP_TOKENS_MAX;

/// Largest transcript of a match in bytes, with its header. Settings under which a match
/// could be larger are refused.
pub const MATCH_BYTES_MAX: u64 = 8 << 20;
/// Longest reply of a language model in bytes, whatever its number of tokens.
pub const MODEL_REPLY_BYTES_MAX: u64 = 16 << 10;
/// Most values that an agent with the training interface may report in one match.
pub const METRICS_MAX: u64 = 1_024;
/// Longest name of a reported value in bytes.
pub const METRIC_NAME_BYTES_MAX: u64 = 64;
/// Bytes of a reply besides its talk, rounded up, as the sandbox counts lifted bytes.
pub const REPLY_FRAME_BYTES: u32 = 64;

/// What may be configured as fuel, for starting, a turn or a match.
pub const FUEL: RangeInclusive<u64> = 1..=1_000_000_000_000;
/// What may be configured as memory: one page to one gibibyte.
pub const MEMORY: RangeInclusive<u64> = 65_536..=1 << 30;
/// What may be configured as elements of tables.
pub const TABLE_ELEMENTS: RangeInclusive<u32> = 1..=1_000_000;
/// What may be configured as bytes of talk. 0: silent agents only.
pub const TALK: RangeInclusive<u32> = 0..=65_536;
/// What may be configured as bytes of private notes. 0: none are kept.
pub const TRACE: RangeInclusive<u32> = 0..=1 << 20;
/// What may be configured as host calls of a match.
pub const HOST_CALLS: RangeInclusive<u32> = 0..=1_000_000;
/// What may be configured as live handles.
pub const HANDLES: RangeInclusive<u32> = 1..=65_536;
/// What may be configured as bytes that one host call or result carries.
pub const LIFTED: RangeInclusive<u32> = 64..=16 << 20;
/// What may be configured as calls of language models in a match.
pub const MODEL_CALLS: RangeInclusive<u32> = 0..=1_000;
/// What may be configured as tokens, read or generated, in a match.
pub const MODEL_TOKENS: RangeInclusive<u32> = 0..=100_000_000;

/// What a seat may use. Every limit is enforced by the sandbox or the referee. In a
/// tournament file, keys are these names without `_max`.
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
    /// Calls of language models in one turn. `begin` belongs to the seat's first turn.
    pub model_calls_turn_max: u32,
    /// Generated tokens in one turn.
    pub model_output_tokens_turn_max: u32,
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
            model_calls_turn_max: 64,
            model_output_tokens_turn_max: 10_000,
        }
    }
}

/// What the largest match of a tournament holds besides its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchShape {
    /// Most turns of both sides together.
    pub turn_limit: u32,
    /// Most further moves within one turn.
    pub retries: u32,
    /// Whether any agent is granted a language model.
    pub models: bool,
    /// Whether any agent is granted the training interface.
    pub training: bool,
}

impl MatchShape {
    /// Returns the shape of matches under some rules.
    pub fn new(rules: &RulesConfig, models: bool, training: bool) -> MatchShape {
        let turn_limit = match rules.horizon {
            HorizonConfig::Fixed { turns } => turns,
            HorizonConfig::Geometric { max_turns, .. } => max_turns,
        };
        MatchShape { turn_limit, retries: rules.retries, models, training }
    }
}

/// Bytes of a transcript that no setting changes, rounded up.
const FIXED_BYTES: u64 = 256;
/// Bytes of a turn besides its talk and its refused moves, rounded up.
const TURN_BYTES: u64 = 32;
/// Bytes of the longest encoded move.
const MOVE_BYTES: u64 = 6;
/// Bytes of a recorded fuel figure.
const FUEL_BYTES: u64 = 8;
/// Bytes of one model call besides its text and its tokens, rounded up.
const MODEL_CALL_BYTES: u64 = 160;
/// Bytes of a prompt's token.
const INPUT_TOKEN_BYTES: u64 = 4;
/// Bytes of a reply's token with its scores and those of the likeliest tokens.
const OUTPUT_TOKEN_BYTES: u64 = 16 + 8 * TOP_TOKENS_MAX as u64;
/// Bytes before any list or text.
const LENGTH_BYTES: u64 = 4;

impl Limits {
    /// Returns a bound on the bytes of one match's transcript.
    pub fn match_bytes_bound(&self, shape: MatchShape) -> u64 {
        let attempts = u64::from(shape.retries) + 1;
        let turn =
            TURN_BYTES + u64::from(self.talk_bytes_max) + attempts * (MOVE_BYTES + FUEL_BYTES);
        // Each note costs a host call, and its length even where it is empty.
        let notes = u64::from(self.trace_bytes_max) + u64::from(self.host_calls_max) * LENGTH_BYTES;
        let models = if shape.models { self.model_bytes_bound() } else { 0 };
        let metric = METRIC_NAME_BYTES_MAX + 2 * LENGTH_BYTES;
        let metrics = if shape.training { METRICS_MAX * metric } else { 0 };
        // A fault can leave one unfinished turn more than are delivered.
        FIXED_BYTES + (u64::from(shape.turn_limit) + 1) * turn + 2 * (notes + models + metrics)
    }

    /// Returns a bound on the bytes of one seat's model calls. A prompt that repeats nothing of the
    /// one before is written down whole.
    fn model_bytes_bound(&self) -> u64 {
        if self.model_calls_max == 0 {
            return 0;
        }
        u64::from(self.model_calls_max) * (MODEL_CALL_BYTES + MODEL_REPLY_BYTES_MAX)
            + u64::from(self.model_input_tokens_max) * INPUT_TOKEN_BYTES
            + u64::from(self.model_output_tokens_max) * OUTPUT_TOKEN_BYTES
    }
}
