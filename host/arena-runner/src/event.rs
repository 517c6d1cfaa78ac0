//! What a run tells while it goes on, and what it says in the end.
//!
//! Not here: rates and times left, which belong to whoever shows them.

use arena_core::fault::{Fault, VoidReason};
use arena_core::record::Outcome;

/// News of a run. There are only a few per second, however fast matches are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The log is open.
    Started {
        /// Pairs that it holds already.
        pairs_done: u64,
        /// Pairs that are scheduled.
        pair_count: u64,
        /// Matches that it holds already.
        matches_done: u64,
    },
    /// More was written.
    Progress {
        /// What the log holds.
        counts: Counts,
        /// Pairs that are scheduled.
        pair_count: u64,
    },
    /// A pair does not count and is played again. When many fail at once, only some are told.
    Voided(Voiding),
    /// The run is over, finished or interrupted.
    Finished(Summary),
}

/// One voided pair, with what the record does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voiding {
    /// The pair's place in the schedule.
    pub pair_index: u64,
    /// How many times it had been voided before.
    pub attempt: u32,
    /// The class that is recorded.
    pub reason: VoidReason,
    /// What happened, for the operator.
    pub detail: String,
}

/// What a log holds, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs of which all legs are written.
    pub pairs_done: u64,
    /// Matches.
    pub match_count: u64,
    /// Voided pairs.
    pub void_count: u64,
    /// Matches that ended in a fault, in the order of [`Fault::ALL`].
    pub faults: [u64; Fault::ALL.len()],
}

impl Counts {
    /// Returns how many matches ended in any fault.
    pub fn fault_count(&self) -> u64 {
        self.faults.iter().sum()
    }

    pub(crate) fn add_match(&mut self, outcome: Outcome) {
        self.match_count += 1;
        if let Outcome::Faulted { fault, .. } = outcome {
            let place = Fault::ALL.iter().position(|class| *class == fault);
            self.faults[place.expect("the list of faults is complete")] += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        self.pairs_done += other.pairs_done;
        self.match_count += other.match_count;
        self.void_count += other.void_count;
        for (sum, more) in self.faults.iter_mut().zip(other.faults) {
            *sum += more;
        }
    }
}

/// How a run ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Whether it is complete.
    pub status: RunStatus,
    /// What the log holds now.
    pub counts: Counts,
    /// Pairs that are scheduled.
    pub pair_count: u64,
    /// Pairs that the log held when the run started.
    pub pairs_resumed: u64,
}

/// Whether a run is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// Every pair is written, and the log is closed, published and revealed.
    Finished,
    /// It was told to stop. The same call goes on.
    Interrupted,
}
