//! Turns a schedule into a log: plays pairs on several threads and writes them in order.
//!
//! The bytes of the log depend on the job alone: not on the number of workers, on timing, or
//! on how often the run was stopped or killed and started again (pairs voided by a failing
//! host aside, which are on the record). Memory grows with workers, not with matches.
//!
//! Not here: what a seat is made of (a closure brings them), scores, and screens.

mod board;
mod dispatcher;
pub mod error;
pub mod event;
mod resume;
mod worker;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use arena_core::catalog::Catalog;
use arena_core::config::TournamentConfig;
use arena_core::entry::Announcement;
use arena_core::fault::SeatError;
use arena_core::rules::Rules;
use arena_core::scenario::Role;
use arena_core::schedule::Schedule;
use arena_core::seat::Seat;

use crate::error::RunError;
use crate::event::{RunEvent, Summary};

/// Most worker threads.
pub const WORKERS_MAX: usize = 1_024;

/// How often a run plays a pair that keeps being voided before it stops.
pub const VOID_ATTEMPTS_MAX: u32 = 3;

/// A tournament to be played, or to be gone on with.
#[derive(Clone, Copy)]
pub struct Job<'a, 's> {
    /// What the log opens with. Its seed is the root of every draw.
    pub announcement: &'a Announcement,
    /// The rules of play.
    pub rules: &'a Rules,
    /// Who meets whom; `schedule.pair_count()` is what the announcement says.
    pub schedule: &'a Schedule,
    /// The items that are played; the announcement has its hash.
    pub catalog: &'a Catalog,
    /// The tournament file, from which scenarios are drawn.
    pub config: &'a TournamentConfig,
    /// The folder that holds the log, and nothing else when the run starts.
    pub out_dir: &'a Path,
    /// How many threads play; at most [`WORKERS_MAX`] are used.
    pub workers: NonZeroUsize,
    /// Makes seats.
    pub seats: &'a SeatSource<'a, 's>,
}

/// Makes the seat of an agent for one match, on the thread that will play it.
///
/// `'a` is what the closure borrows, `'s` what its seats borrow. A `Fault` costs the agent the
/// match as if it came at the first turn; a `Void` voids the pair.
pub type SeatSource<'a, 's> =
    dyn Fn(SeatRequest) -> Result<Box<dyn Seat + 's>, SeatError> + Sync + 'a;

/// Which seat is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatRequest {
    /// The agent by its place in the announcement.
    pub agent: u16,
    /// The side it plays.
    pub role: Role,
    /// The pair's place in the schedule.
    pub pair_index: u64,
    /// 0, or 1 with the roles swapped.
    pub leg: u8,
    /// Seeds the seat's own randomness.
    pub seed: u64,
}

/// Plays what the log in `job.out_dir` does not hold yet, and closes the log.
///
/// Once `stop` is true, matches in play end, what is in order is written and synced, and the
/// same call goes on later. A log that is closed already is left alone. `events` is called on
/// this thread, a few times per second.
///
/// # Errors
/// The log cannot be written or belongs to another job, a pair was voided
/// [`VOID_ATTEMPTS_MAX`] times, or a worker panicked. What was written before can be gone on
/// with.
///
/// # Panics
/// If the announcement counts other pairs or agents than the schedule and the file have.
pub fn run(
    job: &Job<'_, '_>,
    stop: &AtomicBool,
    events: &mut dyn FnMut(RunEvent),
) -> Result<Summary, RunError> {
    assert_eq!(job.announcement.pair_count, job.schedule.pair_count(), "pairs are announced");
    assert_eq!(job.announcement.agents.len(), job.config.agents.len(), "agents are announced");
    dispatcher::run(job, stop, events)
}
