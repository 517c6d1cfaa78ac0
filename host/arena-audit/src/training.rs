//! Recomputes what a training run learned from: its ledger, and the log of every step.
//!
//! A ledger says of each step which matches were learned from, what they were worth, and which
//! policy came of them. The matches lie in logs of their own, which are audited like any
//! tournament's. What the experiment determines (the tournament of a step, rewards, advantages) is
//! computed by whoever calls, from the experiment file; here it is held against what is written.
//! Every byte of a run is taken for an attacker's. Memory grows with the steps and with the matches
//! of one step, not with those of all.
//!
//! Not here: what an experiment says (`arena-train`), and repeating the updates.

mod ledger;
mod lessons;

use std::path::{Path, PathBuf};

use arena_core::catalog::Catalog;
use arena_core::ledger::{LedgerOpening, RunId};
use arena_core::record::MatchRecord;
use arena_log::policy::{Opened, Policy};

use crate::verdict::{self, Step, StepTable, Verdict, Verdicts, not_checked, settle};
use ledger::Read;
use lessons::Lessons;

/// What no audit of a training run, offline, can show. For whoever reads one.
pub const LIMITS: &[&str] = &[
    "Whether others were shown another ledger under the same key, and whether the run is the best \
     of several: compare heads, or ask for the cosignatures of witnesses.",
    "Whether the policies that are named by hash came of what was learned from: repeat the updates, \
     which on the CPU give the same bits.",
    "Whether the policy gave the recorded replies: score their tokens again with it. Whether the \
     opponents played so: run the agents of a step's log again.",
    "Whether the program that audits is sound: build it yourself, or use another reader of the \
     format.",
];

/// What an audit of a run goes by.
#[derive(Clone, Copy)]
pub struct RunAuditOptions<'a> {
    /// The ledger's folder.
    pub ledger: &'a Path,
    /// Which ledger and which witnesses are believed. The steps' logs are signed with its key.
    pub policy: &'a Policy,
    /// Signed heads of the ledger that the auditor kept from earlier, or has from others.
    pub held: &'a [Vec<u8>],
    /// The whole source of the items, where it is not generated; as for a tournament's audit.
    pub catalog: Option<&'a Catalog>,
    /// What the experiment file says of the run.
    pub experiment: &'a ExperimentFacts,
    /// What the experiment file determines for each step.
    pub course: &'a Course<'a>,
}

/// What an experiment file says of a run as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentFacts {
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// The experiment's name.
    pub name: String,
    /// The name of the reward.
    pub reward: String,
    /// The name of the objective.
    pub objective: String,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// How many steps there are.
    pub step_count: u32,
    /// Names the policy before the first step, where the auditor knows it.
    pub policy_sha256: Option<[u8; 32]>,
}

/// What an experiment file determines for each step. Steps count from 1.
#[derive(Clone, Copy)]
pub struct Course<'a> {
    /// Returns the folder of a step's log, whether or not it is there.
    pub log: &'a dyn Fn(u32) -> PathBuf,
    /// Returns the text of a step's tournament file, played with the policy of this hash.
    pub tournament: &'a dyn Fn(u32, [u8; 32]) -> String,
    /// The name of the trained model in these files.
    pub model: &'a str,
    /// Returns what a match is worth to the policy, in millionths, or why that cannot be said here.
    pub reward: &'a dyn Fn(&MatchRecord) -> Result<i32, String>,
    /// Returns what is learned from a step's matches, which come in the order of its log, or why
    /// that cannot be said here.
    pub lesson: &'a LessonSource<'a>,
}

/// Says what is learned from the matches of a step.
pub type LessonSource<'a> = dyn Fn(u32, &[Rewarded]) -> Result<Lesson, String> + 'a;

/// A match of a step, as far as advantages follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewarded {
    /// The pair's place in the schedule.
    pub pair_index: u64,
    /// Agents by their place in the announcement: buyer, seller.
    pub agents: [u16; 2],
    /// The item by its place in the catalog.
    pub item_index: u32,
    /// Which repetition this is, from 0.
    pub repetition: u32,
    /// What it was worth, recomputed, in millionths.
    pub reward_micro: i32,
}

/// What is learned from a step's matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// The advantage of each match; `None` where nothing is learned from it.
    pub advantages: Vec<Option<f64>>,
    /// Groups that nothing is learned from.
    pub dropped_groups: u32,
    /// The learning rate of the update.
    pub learning_rate: f64,
}

/// How far an audit of a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// Steps that were looked at.
    pub steps_done: u32,
    /// Steps of the ledger.
    pub step_count: u32,
}

/// What an audit of a run says.
#[derive(Clone, Debug)]
pub struct RunAudit {
    /// Every step of the audit, in order.
    pub steps: Vec<Step>,
    /// The ledger's newest head, if it is one to believe.
    pub opened: Option<Opened>,
    /// The run.
    pub run: Option<RunId>,
    /// What the ledger opens with.
    pub opening: Option<LedgerOpening>,
    /// Steps of the ledger.
    pub step_count: u32,
    /// Matches whose rewards were recomputed.
    pub match_count: u64,
    /// What no audit of a run shows.
    pub limits: &'static [&'static str],
}

/// The step that is concluded by whoever repeats the updates.
const UPDATES: &str = "updates";

/// The steps of a run's audit.
const STEPS: &StepTable = &[
    ("checkpoint", "the ledger's head is signed by the expected key and enough witnesses", &[]),
    ("tree", "every entry and every hash on disk gives the signed root", &["checkpoint"]),
    (
        "held-heads",
        "the ledger continues every head that it signed or that the auditor holds",
        &["checkpoint", "tree"],
    ),
    ("files", "the ledger's folder holds its files and what its steps name", &["tree"]),
    ("entries", "every entry is canonical, in order and of this run", &["tree"]),
    ("experiment", "the run is that of the experiment file", &["entries"]),
    ("policies", "each step goes on from the policy that the last one left", &["entries"]),
    ("end", "the ledger is closed and holds every step", &["entries"]),
    (
        "logs",
        "each step's log passes its own audit and is the one that the ledger names",
        &["entries"],
    ),
    (
        "tournaments",
        "each step played what the experiment determines, with the policy before it",
        &["experiment", "logs"],
    ),
    ("rewards", "every reward is what its match was worth", &["experiment", "files", "logs"]),
    ("advantages", "every advantage follows from the rewards", &["rewards", "tournaments"]),
    (
        UPDATES,
        "each policy comes of the last one and what was learned from",
        &["advantages", "policies"],
    ),
];

impl RunAudit {
    /// Returns a step of the audit by its short name.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Returns whether every step is verified but those named, which may also be unchecked. A
    /// step that failed is never forgiven.
    pub fn is_verified_without(&self, unasked: &[&str]) -> bool {
        verdict::all_verified_without(&self.steps, unasked)
    }

    /// Enters what came of repeating the updates. It stands on the other steps: where they are not
    /// verified, this one is not checked.
    pub fn conclude_updates(&mut self, verdict: Verdict) {
        verdict::conclude(STEPS, &mut self.steps, UPDATES, verdict);
    }
}

/// Audits a run.
pub fn audit(options: &RunAuditOptions<'_>, progress: &mut dyn FnMut(RunProgress)) -> RunAudit {
    let mut verdicts = Verdicts::new();
    let read = ledger::read(options, &mut verdicts);
    let mut audit = RunAudit {
        steps: Vec::new(),
        opened: None,
        run: None,
        opening: None,
        step_count: 0,
        match_count: 0,
        limits: LIMITS,
    };
    if let Some(read) = &read {
        audit.match_count = steps(options, read, progress, &mut verdicts);
    }
    if let Some(Read { opened, run, opening, steps, .. }) = read {
        audit.step_count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        (audit.opened, audit.run, audit.opening) = (Some(opened), run, opening);
    }
    verdicts.insert(UPDATES, not_checked("it was not asked for"));
    audit.steps = settle(STEPS, verdicts);
    audit
}

/// Looks at every step's log. Returns how many matches there are.
fn steps(
    options: &RunAuditOptions<'_>,
    read: &Read,
    progress: &mut dyn FnMut(RunProgress),
    verdicts: &mut Verdicts,
) -> u64 {
    let step_count = u32::try_from(read.steps.len()).unwrap_or(u32::MAX);
    let mut lessons = Lessons::new(options, read);
    for (steps_done, step) in (1..).zip(&read.steps) {
        lessons.take(step);
        progress(RunProgress { steps_done, step_count });
    }
    lessons.conclude(verdicts)
}
