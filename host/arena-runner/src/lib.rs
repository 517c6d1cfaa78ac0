//! Turns a schedule into a log: plays pairs on several threads and writes them in order.
//!
//! The bytes of the log depend on the job alone: not on the number of workers, on timing, or
//! on how often the run was stopped or killed and started again (pairs voided by a failing
//! host aside, which are on the record). Memory grows with workers, not with matches.
//!
//! Nothing private is public before the close is signed: transcripts, components and the
//! catalog lie in the log's private folder until then, and the secret is revealed last.
//!
//! Not here: what a seat is made of (a closure brings them), the signature of a beacon's
//! round, scores, and screens.

mod board;
mod difference;
mod dispatcher;
pub mod error;
pub mod event;
mod identity;
mod opening;
mod resume;
mod worker;
pub mod reexecution;
pub mod ledger;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arena_core::announcement::Announcement;
use arena_core::catalog::Catalog;
use arena_core::config::TournamentConfig;
use arena_core::entry::{AnnouncementEntry, DrawEntry, TournamentId};
use arena_core::fault::SeatError;
use arena_core::rules::Rules;
use arena_core::scenario::Role;
use arena_core::schedule::Schedule;
use arena_core::seat::Seat;
use arena_log::checkpoint::Head;
use arena_log::disk::Disk;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::storage::Storage;

use crate::error::RunError;
use crate::event::{RunEvent, Summary};
use crate::identity::Identity;

/// Most worker threads.
pub const WORKERS_MAX: usize = 1_024;

/// How often a run plays a pair that keeps being voided before it stops.
pub const VOID_ATTEMPTS_MAX: u32 = 3;

/// A tournament to be played, or to be gone on with.
#[derive(Clone, Copy)]
pub struct Job<'a, 's> {
    /// Everything that is fixed before the first match. A public blob of the log.
    pub announcement: &'a Announcement,
    /// The log's first entry, which binds the announcement and names the log and its key. Its
    /// hash is the tournament's id.
    pub opening: &'a AnnouncementEntry,
    /// The second entry, where the announced draws need one.
    pub draw: Option<&'a DrawEntry>,
    /// What the announcement's commitment opens to, revealed after the close; `None` for a
    /// public seed.
    pub secret: Option<[u8; 32]>,
    /// Signs the log's heads; the opening has its public half.
    pub key: &'a SigningKey,
    /// What the announcement names by hash: components and the catalog. Private until the
    /// close is signed.
    pub blobs: &'a [&'a [u8]],
    /// The rules of play.
    pub rules: &'a Rules,
    /// Who meets whom; `schedule.pair_count()` is what the announcement says.
    pub schedule: &'a Schedule,
    /// The items that are played; the announcement has its hash.
    pub catalog: &'a Catalog,
    /// The tournament file, from which scenarios are drawn.
    pub config: &'a TournamentConfig,
    /// The folder of the log. Where there is none yet, nothing else is in it but what the
    /// caller keeps in its private folder.
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
    /// 0, or 1 with the roles swapped where a pair has two legs.
    pub leg: u8,
    /// Seeds the seat's own randomness.
    pub seed: u64,
}

/// Returns the id of the tournament whose log opens with this entry.
pub fn tournament_id(opening: &AnnouncementEntry) -> TournamentId {
    identity::tournament_id(opening)
}

/// Signs the announcement, and plays nothing: for draws that are still to be opened. Returns
/// the log's newest signed head, which is of size 1 unless the log has gone on since.
///
/// # Errors
/// The log cannot be written or belongs to another job, or the secret is not the announced one.
///
/// # Panics
/// If announcement, opening, key, schedule and file do not belong together.
pub fn announce(job: &Job<'_, '_>) -> Result<Head, RunError> {
    check(job)?;
    opening::announce(job, &disk(job)?)
}

/// Plays what the log in `job.out_dir` does not hold yet, closes the log, publishes what was
/// private, and reveals the secret.
///
/// Once `stop` is true, no seat is asked any more: matches in play are given up and left to be
/// played again, what is in order is written and synced, and the same call goes on later. A model
/// that is being asked is waited for, unless the caller ends it. A finished log is left alone, and
/// one that was left in the middle of its end is finished. `events` is called on this thread, a few
/// times per second.
///
/// # Errors
/// The log cannot be written or belongs to another job, the draws are not open or not what was
/// announced, a pair was voided [`VOID_ATTEMPTS_MAX`] times, or a worker panicked. What was
/// written before can be gone on with.
///
/// # Panics
/// If announcement, opening, key, schedule and file do not belong together.
pub fn run(
    job: &Job<'_, '_>,
    stop: &AtomicBool,
    events: &mut dyn FnMut(RunEvent),
) -> Result<Summary, RunError> {
    check(job)?;
    // Whatever is wrong with the job, it is wrong before there is a folder.
    let identity = Identity::of(job)?;
    dispatcher::run(job, &identity, &disk(job)?, stop, events)
}

/// Does what [`run`] does on any storage, in place of `job.out_dir`.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_on(
    job: &Job<'_, '_>,
    storage: &Arc<dyn Storage>,
    stop: &AtomicBool,
    events: &mut dyn FnMut(RunEvent),
) -> Result<Summary, RunError> {
    check(job)?;
    dispatcher::run(job, &Identity::of(job)?, storage, stop, events)
}

fn disk(job: &Job<'_, '_>) -> Result<Arc<dyn Storage>, RunError> {
    Ok(Arc::new(Disk::create(job.out_dir)?))
}

fn check(job: &Job<'_, '_>) -> Result<(), RunError> {
    let Job { announcement, opening, .. } = job;
    assert_eq!(announcement.pair_count, job.schedule.pair_count(), "pairs are announced");
    assert_eq!(announcement.agents.len(), job.config.agents.len(), "agents are announced");
    let hash = Hash::of(&announcement.encode()).0;
    assert_eq!(opening.announcement_sha256, hash, "the opening binds the announcement");
    assert_eq!(opening.log_key, job.key.public().to_bytes(), "the opening names the key");
    identity::check_secret(announcement, job.secret.as_ref())
}
