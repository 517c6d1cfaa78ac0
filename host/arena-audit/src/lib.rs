//! Recomputes a published tournament from its log, or a training run from its ledger and the logs
//! of its steps, offline, and says what holds.
//!
//! An audit needs the log's folder and, from another channel, the key of the log or a policy. It
//! says of each step whether it is verified, failed or not checked, and never says verified over
//! something that it passed over. Every byte of the folder is taken for an attacker's.
//!
//! Not here: running the agents again, printing, and fetching anything from anywhere.

mod verdict;
mod folder;
mod files;
mod heads;
mod sightings;
mod announcement;
mod submissions;
mod draws;
pub mod beacon;
mod schedule;
mod matches;
mod usage;
pub mod results;
mod components;
mod walk;
mod steps;
pub mod receipt;
pub mod diff;
pub mod sample;
pub mod compare;
pub mod rescore;
pub mod training;

use std::path::Path;

use arena_core::announcement::Announcement;
use arena_core::catalog::Catalog;
use arena_core::entry::TournamentId;
use arena_core::report::Report;
use arena_log::checkpoint::Head;
use arena_log::note::Vkey;
use arena_log::policy::{Opened, Policy};

pub use verdict::{FINDINGS_MAX, Finding, Step, Verdict};

/// What no audit of one folder, offline, can show. For whoever reads an audit.
pub const LIMITS: &[&str] = &[
    "Whether others were shown another log under the same key. Compare heads with them, or ask \
     for the cosignatures of witnesses that you trust.",
    "Whether the organiser ran the tournament several times and published the best: ask for the \
     signed announcement, or a witness's cosignature on it, from before the beacon's round or the \
     first match.",
    "Whether pairs were voided because of how they went: a void names a reason that nobody can \
     check. The audit says whose pairs were voided most often.",
    "Whether a tournament that is not revealed yet was given up, and when anything happened: \
     times are claims of whoever states them.",
    "Whether two entrants are one person, or a key is whose its name says.",
    "Whether a match was played when it is said to have been: of a deterministic agent, a \
     transcript that comes out again is as good as a run.",
    "Whether a language model gave the recorded replies, and whether it was asked only once: they \
     are bound by hash and answer the same requests, no more. Whether they can be what the model \
     says is shown by scoring their tokens again with the model, where they are recorded.",
    "Whether the program that audits is sound: build it yourself, or use another reader of the \
     format.",
];

/// What an audit goes by.
#[derive(Clone, Copy, Debug)]
pub struct AuditOptions<'a> {
    /// Which log and which witnesses are believed.
    pub policy: &'a Policy,
    /// Signed heads that the auditor kept from earlier, or has from others.
    pub held: &'a [Vec<u8>],
    /// The keys of authors that the auditor knows, by agent.
    pub authors: &'a [(String, Vkey)],
    /// The whole source of the items, imported anew, where the tournament file names one that
    /// is not generated.
    pub catalog: Option<&'a Catalog>,
}

/// How far an audit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Entries that were looked at.
    pub entries_done: u64,
    /// Entries of the log.
    pub entry_count: u64,
}

/// What an audit says.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Every step, in order.
    pub steps: Vec<Step>,
    /// The newest head, if it is one to believe.
    pub opened: Option<Opened>,
    /// The tournament.
    pub tournament: Option<TournamentId>,
    /// What was announced, as far as it can be read.
    pub announcement: Option<Announcement>,
    /// How often each agent's pairs were voided, in the order of the announcement, as far as the
    /// entries were read. Empty without an announcement.
    pub voids: Vec<AgentVoids>,
    /// The tables, recomputed, where all transcripts are public.
    pub report: Option<Report>,
    /// What no audit shows.
    pub limits: &'static [&'static str],
}

/// How often the pairs of an agent were voided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentVoids {
    /// Its name.
    pub agent: String,
    /// Pairs in which it sits that were begun: voided or played.
    pub pair_count: u64,
    /// Those that were voided at least once.
    pub voided_count: u64,
}

impl AgentVoids {
    /// Returns the share of the pairs that were voided; `None` where none was begun.
    pub fn rate(&self) -> Option<f64> {
        (self.pair_count > 0).then(|| self.voided_count as f64 / self.pair_count as f64)
    }
}

impl Audit {
    /// Returns the newest head, if it is one to believe.
    pub fn head(&self) -> Option<&Head> {
        self.opened.as_ref().map(|opened| &opened.head)
    }

    /// Returns a step by its short name.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Returns whether every step is verified but those named, which may also be unchecked. A
    /// step that failed is never forgiven.
    pub fn is_verified_without(&self, unasked: &[&str]) -> bool {
        verdict::all_verified_without(&self.steps, unasked)
    }

    /// Enters what came of running the agents again. It stands on the other steps: where they
    /// are not verified, this one is not checked.
    pub fn conclude_reexecution(&mut self, verdict: Verdict) {
        verdict::conclude(verdict::STEPS, &mut self.steps, verdict::REEXECUTION, verdict);
    }
}

/// Audits the log in a folder.
pub fn audit(
    folder: &Path,
    options: &AuditOptions<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Audit {
    steps::audit(folder, options, progress)
}
