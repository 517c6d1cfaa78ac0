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

/// One call of a language model, enough to answer it again without the model.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ModelCall {
    /// The number of the seat's `act` call during which it was made, from 0.
    pub act_index: u32,
    /// The model's name.
    pub model: String,
    /// SHA-256 of the canonical request.
    pub request_sha256: [u8; 32],
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
}
