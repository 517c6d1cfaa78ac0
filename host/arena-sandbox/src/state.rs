//! What the host keeps for one seat while its guest lives, and the price of a host call.
//!
//! Every import begins with [`enter`]: it counts the call, charges fuel for it before any
//! work is done, and ends the guest where a limit is reached.
//!
//! Not here: what the imports do (`imports`, `wasi`).

use std::fmt;
use std::sync::Arc;

use arena_core::config::Limits;
use arena_core::fault::{Fault, SeatError, VoidReason};
use arena_core::seat::Usage;
use arena_core::seed::{Root, Stream};
use arena_llm::allowance::Allowance;
use arena_llm::model::LanguageModel;
use wasmtime::StoreContextMut;

use crate::inference::Chat;
use crate::meter::Meter;

/// Fuel of any host call, whatever it does. A guest operation costs about one.
pub(crate) const CALL_FUEL: u64 = 1_000;

/// Fuel for each byte that a host call reads or returns.
pub(crate) const BYTE_FUEL: u64 = 1;

/// Whether and how an agent takes part in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainingMode {
    /// Metrics are recorded; weights are ignored.
    Evaluate,
    /// Metrics and weights are recorded.
    Train,
}

/// What a seat is given beyond the rules: without a grant the interfaces are there and empty.
#[derive(Clone, Default)]
pub struct Grants {
    /// The models that it may ask.
    pub models: Vec<Arc<dyn LanguageModel>>,
    /// Its part in training. Without it, `training.get-mode` says `evaluate`, and `weigh` and
    /// `metric` do nothing.
    pub training: Option<TrainingMode>,
}

/// The host's side of one guest.
pub(crate) struct SeatState {
    pub meter: Meter,
    pub usage: Usage,
    pub allowance: Allowance,
    pub grants: Grants,
    pub chats: Vec<Option<Chat>>,
    /// Requests to models that were turned away in this turn.
    pub turned_away: u32,
    pub seed: u64,
    /// How often `act` was called.
    pub act_count: u32,
    /// Whether `finish` is running, which may not ask models any more.
    pub finishing: bool,
    pub trace_bytes_left: u32,
    pub handles_max: u32,
    pub deadline_ticks: u64,
    calls_left: u32,
    random: Option<Stream>,
}

impl SeatState {
    pub(crate) fn new(
        limits: &Limits,
        grants: &Grants,
        seed: u64,
        deadline_ticks: u64,
    ) -> SeatState {
        SeatState {
            meter: Meter::new(limits.memory_bytes_max, limits.table_elements_max),
            usage: Usage::default(),
            allowance: Allowance::new(limits),
            grants: grants.clone(),
            chats: Vec::new(),
            turned_away: 0,
            seed,
            act_count: 0,
            finishing: false,
            trace_bytes_left: limits.trace_bytes_max,
            handles_max: limits.handles_max,
            deadline_ticks,
            calls_left: limits.host_calls_max,
            random: None,
        }
    }

    /// Begins a turn. What `begin` used of models is of the first one.
    pub(crate) fn begin_turn(&mut self) {
        if self.act_count > 0 {
            self.allowance.begin_turn();
            self.turned_away = 0;
        }
        self.act_count = self.act_count.saturating_add(1);
    }

    /// Returns the seat's stream for `wasi:random`, which depends on the seat's seed alone.
    pub(crate) fn random(&mut self) -> &mut Stream {
        let seed = self.seed;
        self.random.get_or_insert_with(|| Stream::derive(Root::Seed(seed), "wasi-random", &[]))
    }
}

/// Ends a guest from inside a host call. It passes through the engine as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop(pub SeatError);

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SeatError::Fault(fault) => write!(f, "guest stopped for fault `{fault}`"),
            SeatError::Void { detail, .. } => write!(f, "guest stopped: {detail}"),
        }
    }
}

impl std::error::Error for Stop {}

impl Stop {
    /// Ends the guest for its own fault.
    pub(crate) fn fault(fault: Fault) -> wasmtime::Error {
        wasmtime::Error::from(Stop(SeatError::Fault(fault)))
    }

    /// Ends the guest for nobody's fault.
    pub(crate) fn void(reason: VoidReason, detail: String) -> wasmtime::Error {
        wasmtime::Error::from(Stop(SeatError::Void { reason, detail }))
    }
}

/// Counts a host call and charges for it and for `bytes` that it reads.
///
/// # Errors
/// [`Stop`] with `Protocol` when the match's host calls are used up, with `Fuel` when the call
/// cannot be paid.
pub(crate) fn enter(
    ctx: &mut StoreContextMut<'_, SeatState>,
    bytes: usize,
) -> wasmtime::Result<()> {
    let state = ctx.data_mut();
    match state.calls_left.checked_sub(1) {
        Some(left) => state.calls_left = left,
        None => return Err(Stop::fault(Fault::Protocol)),
    }
    charge(ctx, CALL_FUEL)?;
    charge_bytes(ctx, bytes as u64)
}

/// Charges for bytes that a host call reads or returns.
///
/// # Errors
/// [`Stop`] with `Fuel` when they cannot be paid.
pub(crate) fn charge_bytes(
    ctx: &mut StoreContextMut<'_, SeatState>,
    bytes: u64,
) -> wasmtime::Result<()> {
    charge(ctx, bytes.saturating_mul(BYTE_FUEL))
}

fn charge(ctx: &mut StoreContextMut<'_, SeatState>, fuel: u64) -> wasmtime::Result<()> {
    match ctx.get_fuel()?.checked_sub(fuel) {
        Some(left) => ctx.set_fuel(left),
        // The guest would run on to its next check, so the host ends it here.
        None => Err(Stop::fault(Fault::Fuel)),
    }
}
