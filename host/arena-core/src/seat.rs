//! The seam between the referee and whatever plays: a sandboxed guest, a native strategy, a
//! script.

use crate::fault::SeatError;
use crate::scenario::Brief;
use crate::turn::{End, Event, Reply};

use borsh::{BorshDeserialize, BorshSerialize};

/// One agent in play, on one side of one match.
///
/// The referee calls [`Seat::begin`] once, then [`Seat::act`] for each of the seat's turns,
/// then [`Seat::finish`] once unless the seat faulted or the match was voided.
pub trait Seat {
    /// Tells the seat what it plays.
    ///
    /// # Errors
    /// The seat misbehaved or could not be run.
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError>;

    /// Asks for the seat's next move, given the events since its last one.
    ///
    /// # Errors
    /// The seat misbehaved or could not be run.
    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError>;

    /// Tells the seat how the match ended. A failure here cannot change the outcome.
    fn finish(&mut self, end: &End);

    /// Hands over what the seat used and noted, once, after the match.
    fn take_usage(&mut self) -> Usage;
}

/// What one seat used and noted during a match. All of it is deterministic.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Usage {
    /// Fuel of each `act` that returned normally, in call order (refused moves included).
    /// Fuel of a call that trapped is not recorded: the engine's counter is stale then.
    pub fuel_per_act: Vec<u64>,
    /// Private notes, in order, each cut at the trace limit.
    pub trace: Vec<String>,
    /// Whether notes were dropped because the trace limit was reached.
    pub trace_cut: bool,
    /// Calls of language models that were answered, in order. What else a guest asked was
    /// refused, and all refusals of a kind read the same.
    pub model_calls: Vec<ModelCall>,
    /// What the guest reported through `training.metric`: name and thousandths.
    pub metrics: Vec<(String, i32)>,
}

/// One call of a language model: enough to answer it again without the model, and to score the
/// reply again with it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ModelCall {
    /// The number of the seat's `act` call during which it was made, from 0.
    pub act_index: u32,
    /// The model's name.
    pub model: String,
    /// SHA-256 of the canonical request.
    pub request_sha256: [u8; 32],
    /// How the reply was sampled.
    pub sampling: Sampling,
    /// Whether a grammar bound the reply, so that the likeliest token may not have been allowed.
    pub is_grammar_bound: bool,
    /// The reply text.
    pub text: String,
    /// Why generation ended: 0 stop, 1 length, 2 budget.
    pub finish_reason: u8,
    /// Tokens of the prompt.
    pub input_tokens: u32,
    /// Tokens of the reply.
    pub output_tokens: u32,
    /// What the guest asked the trainer to learn from this reply, in thousandths.
    pub weight_milli: Option<u32>,
    /// The tokens themselves; `None` where the model does not say them, so that nothing can be
    /// said about its reply.
    pub tokens: Option<CallTokens>,
}

/// How a token is drawn from the model's distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Sampling {
    /// Temperature in thousandths, at most [`TEMPERATURE_MILLI_MAX`]; 0 takes the likeliest token.
    pub temperature_milli: u32,
    /// How many of the likeliest tokens are sampled from, at most [`TOP_K_MAX`]; 0 leaves none out.
    pub top_k: u32,
    /// Share of the distribution that is sampled from, in thousandths, 1 to
    /// [`TOP_P_MILLI_MAX`]; 1000 leaves nothing out.
    pub top_p_milli: u32,
    /// Least probability of a token, in thousandths of the likeliest one's, at most
    /// [`MIN_P_MILLI_MAX`]; 0 leaves none out.
    pub min_p_milli: u32,
}

/// Highest sampling temperature, in thousandths.
pub const TEMPERATURE_MILLI_MAX: u32 = 2_000;
/// Most tokens of a cut by number, which no vocabulary reaches.
pub const TOP_K_MAX: u32 = 1_000_000;
/// Highest nucleus, in thousandths: the whole distribution.
pub const TOP_P_MILLI_MAX: u32 = 1_000;
/// Highest least probability, in thousandths: the likeliest token alone.
pub const MIN_P_MILLI_MAX: u32 = 1_000;
/// Most tokens whose scores are kept beside the one that was sampled.
pub const TOP_TOKENS_MAX: usize = 5;

impl Sampling {
    /// Takes the likeliest token, always.
    pub const GREEDY: Sampling =
        Sampling { temperature_milli: 0, top_k: 0, top_p_milli: 1_000, min_p_milli: 0 };

    /// Returns each value with its name and what is allowed, in the order of the fields.
    pub fn bounds(&self) -> [(&'static str, u32, std::ops::RangeInclusive<u32>); 4] {
        [
            ("temperature-milli", self.temperature_milli, 0..=TEMPERATURE_MILLI_MAX),
            ("top-k", self.top_k, 0..=TOP_K_MAX),
            ("top-p-milli", self.top_p_milli, 1..=TOP_P_MILLI_MAX),
            ("min-p-milli", self.min_p_milli, 0..=MIN_P_MILLI_MAX),
        ]
    }
}

/// The tokens of one call, as the model read and wrote them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CallTokens {
    /// How many tokens at the prompt's beginning are those of the seat's previous recorded call of
    /// the same model that holds tokens, its prompt and its output together: as many as are equal.
    pub reused: u32,
    /// The rest of the prompt.
    pub prompt: Vec<u32>,
    /// The reply, with the token that ended the turn if the model wrote it, and with those of a
    /// stop text.
    pub output: Vec<SampledToken>,
}

/// One token of a reply.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SampledToken {
    /// The token.
    pub id: u32,
    /// The natural logarithm of its probability in millionths, under the model's own distribution:
    /// temperature 1, nothing cut.
    pub logprob_micro: i32,
    /// The same under the distribution that it was sampled from.
    pub sampled_logprob_micro: i32,
    /// The likeliest tokens under the model's own distribution, likeliest first, at most
    /// [`TOP_TOKENS_MAX`].
    pub top: Vec<TokenScore>,
}

/// A token and how likely it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TokenScore {
    /// The token.
    pub id: u32,
    /// The natural logarithm of its probability in millionths, under the model's own distribution.
    pub logprob_micro: i32,
}
