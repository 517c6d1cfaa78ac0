//! Each step of a run: the log of its matches, what they are worth, and what is learned from them.
//!
//! A step's log is audited first, and read a second time for its matches; both times it must be the
//! one whose root the ledger names. A reward is compared only where the log holds.
//!
//! Not here: the ledger's own form (`ledger`).

use arena_core::announcement::Announcement;
use arena_core::entry::Entry;
use arena_core::hexadecimal::hex;
use arena_core::ledger::{StepEntry, StepMatch, StepMatches};
use arena_core::record::MatchRecord;
use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::key::PublicKey;
use arena_log::note::{KeyKind, Vkey};
use arena_log::policy::Policy;
use arena_log::reader::{Access, LogReader};
use arena_log::tree::Frontier;

use super::ledger::{self, Read};
use super::{Lesson, Rewarded, RunAuditOptions};
use crate::folder::Folder;
use crate::matches;
use crate::verdict::{Finding, Findings, Verdict, Verdicts, count};
use crate::{Audit, AuditOptions};

/// Steps of a tournament's audit that a step of a run can do without: its tables are published
/// nowhere, and its agents are run again only where that is asked for.
const UNASKED: [&str; 2] = ["results", "re-execution"];

/// What is found out of the steps, one after the other.
pub(super) struct Lessons<'a> {
    options: &'a RunAuditOptions<'a>,
    key: PublicKey,
    logs: Finds,
    tournaments: Finds,
    rewards: Finds,
    advantages: Finds,
    steps_done: u64,
    match_count: u64,
    learned_count: u64,
    dropped_count: u64,
}

/// What one check finds, and why it could not be made everywhere.
#[derive(Default)]
struct Finds {
    found: Findings,
    unchecked: Option<String>,
    unchecked_count: u64,
}

impl Finds {
    fn skip(&mut self, reason: impl FnOnce() -> String) {
        self.unchecked_count += 1;
        self.unchecked.get_or_insert_with(reason);
    }

    fn conclude(self, noun: [&str; 2], detail: String) -> Verdict {
        match self.unchecked {
            None => self.found.or_verified(detail),
            Some(reason) => {
                let others = match self.unchecked_count - 1 {
                    0 => String::new(),
                    others => format!(", and {}", count(others, noun[0], noun[1])),
                };
                self.found.or_not_checked(format!("{reason}{others}"))
            }
        }
    }
}

impl<'a> Lessons<'a> {
    pub fn new(options: &'a RunAuditOptions<'a>, read: &Read) -> Lessons<'a> {
        Lessons {
            options,
            key: *read.opened.log.key(),
            logs: Finds::default(),
            tournaments: Finds::default(),
            rewards: Finds::default(),
            advantages: Finds::default(),
            steps_done: 0,
            match_count: 0,
            learned_count: 0,
            dropped_count: 0,
        }
    }

    /// Takes the next step.
    pub fn take(&mut self, step: &StepEntry) {
        self.steps_done += 1;
        let number = step.step;
        let audit = match self.audit(step) {
            Ok(audit) => audit,
            Err(finding) => return self.logs.found.add(finding.at(number.into())),
        };
        if !self.hold(step, &audit) {
            let reason = || format!("the log of step {number} is not verified");
            self.tournaments.skip(reason);
            self.rewards.skip(reason);
            return;
        }
        if let Some(announcement) = &audit.announcement {
            self.check_tournament(step, announcement);
        }
        self.check_matches(step);
    }

    /// Audits the log of a step's matches, which the ledger's key must have signed.
    fn audit(&self, step: &StepEntry) -> Result<Audit, Finding> {
        let path = (self.options.course.log)(step.step);
        let what = || format!("the log of step {}", step.step);
        let shown = path.display();
        let reader = LogReader::open(&path, Access::Public).map_err(|error| {
            Finding::new(what(), error, format!("one in `{shown}` with a signed head"))
        })?;
        // Its name is nobody's proof; its key is the ledger's, and its root the ledger names.
        let policy = Vkey::new(&reader.head().origin, KeyKind::Log, self.key)
            .and_then(Policy::of_vkey)
            .map_err(|error| Finding::new(what(), error, "one under the name of a log"))?;
        let catalog = self.options.catalog;
        let options = AuditOptions { policy: &policy, held: &[], authors: &[], catalog };
        Ok(crate::audit(&path, &options, &mut |_| {}))
    }

    /// Says whether the log of a step holds and is the one that the ledger names.
    fn hold(&mut self, step: &StepEntry, audit: &Audit) -> bool {
        let number = step.step;
        let mut is_held = true;
        for part in &audit.steps {
            match &part.verdict {
                Verdict::Verified { .. } => {}
                Verdict::NotChecked { .. } if UNASKED.contains(&part.id) => {}
                Verdict::NotChecked { reason } => {
                    is_held = false;
                    let (id, reason) = (part.id, reason.clone());
                    self.logs.skip(|| format!("step {number}: `{id}` of its log: {reason}"));
                }
                Verdict::Failed { findings, .. } => {
                    is_held = false;
                    for finding in findings {
                        let at = finding.entry.map_or(String::new(), |at| format!(", entry {at}"));
                        let what = format!("step {number}: its log{at}: {}", finding.what);
                        let told = Finding { entry: None, what, ..finding.clone() };
                        self.logs.found.add(told.at(number.into()));
                    }
                }
            }
        }
        let named = [
            ("tournament", audit.tournament.map(|id| id.to_string()), step.tournament.to_string()),
            ("size", audit.head().map(|head| head.size.to_string()), step.log_size.to_string()),
            ("root", audit.head().map(|head| head.root.to_string()), hex(&step.log_root)),
        ];
        for (what, is, should) in named {
            if let Some(is) = is.filter(|is| *is != should) {
                is_held = false;
                let what = format!("step {number}: the {what} of its log");
                let wanted = format!("{should}, as the ledger says");
                self.logs.found.add(Finding::new(what, is, wanted).at(number.into()));
            }
        }
        is_held
    }

    /// Checks that a step's tournament is the one that the experiment determines, and that the
    /// policy before the step played in it.
    fn check_tournament(&mut self, step: &StepEntry, announcement: &Announcement) {
        let number = step.step;
        let course = self.options.course;
        let wanted = (course.tournament)(number, step.policy_before);
        let found = &mut self.tournaments.found;
        if let Some((line, is, should)) = difference(&announcement.config_toml, &wanted) {
            let what = format!("step {number}: line {line} of its tournament file");
            found.add(Finding::new(what, is, should).at(number.into()));
        }
        let model = announcement.models.iter().find(|model| model.name == course.model);
        let is = model.map_or_else(|| "none".to_owned(), |model| hex(&model.sha256));
        let should = hex(&step.policy_before);
        if is != should {
            let what = format!("step {number}: the policy that played");
            found.add(Finding::new(what, is, should).at(number.into()));
        }
    }

    /// Recomputes what a step's matches are worth and what is learned from them.
    fn check_matches(&mut self, step: &StepEntry) {
        let number = step.step;
        let ledger = LogReader::open(self.options.ledger, Access::Public).ok();
        let written = ledger.and_then(|ledger| ledger::matches(&ledger, step).ok());
        let Some(StepMatches { matches: written, .. }) = written else {
            // Why it is not at hand is a finding of the ledger's own steps.
            let reason = || format!("what step {number} learned from is not at hand");
            self.rewards.skip(reason);
            return self.advantages.skip(reason);
        };
        let rewarded = match self.rewarded(step, &written) {
            Ok(Some(rewarded)) => rewarded,
            Ok(None) => {
                return self
                    .advantages
                    .skip(|| format!("step {number}: not every reward is known"));
            }
            Err(finding) => return self.logs.found.add(finding.at(number.into())),
        };
        match (self.options.course.lesson)(number, &rewarded) {
            Ok(lesson) => self.check_lesson(step, &written, &rewarded, &lesson),
            Err(reason) => self.advantages.skip(|| format!("step {number}: {reason}")),
        }
    }

    /// Reads a step's log once more and recomputes the reward of every match; `None` where one
    /// cannot be said.
    ///
    /// # Errors
    /// It is not the log that was audited.
    fn rewarded(
        &mut self,
        step: &StepEntry,
        written: &[StepMatch],
    ) -> Result<Option<Vec<Rewarded>>, Finding> {
        let path = (self.options.course.log)(step.step);
        let changed = |error: LogError| {
            Finding::new(format!("step {}: its log", step.step), error, "the one that was audited")
        };
        let folder = Folder::open(&path).map_err(changed)?;
        let said = |error: LogError| folder.finding(&error);
        let mut reader = LogReader::open(&path, Access::Public).map_err(changed)?;
        let mut tree = Frontier::new();
        let mut rewarded = Vec::with_capacity(written.len());
        let mut is_whole = true;
        while let Some(record) = reader.next_record().map_err(said)? {
            tree.append(Hash::leaf(record.entry));
            let entry = Entry::decode(record.entry);
            let (Ok(Entry::Match(entry)), Some(bytes)) = (entry, record.attachment) else {
                continue;
            };
            let transcript = matches::transcript(&entry, bytes)?;
            let place = rewarded.len();
            let said = self.reward(step, place, written.get(place), &transcript.record);
            is_whole &= said.is_some();
            rewarded.push(Rewarded {
                pair_index: entry.pair_index,
                agents: entry.agents,
                item_index: entry.item_index,
                repetition: entry.repetition,
                reward_micro: said.unwrap_or_default(),
            });
            if rewarded.len() > written.len() {
                break;
            }
        }
        if rewarded.len() != written.len() {
            let what = format!("the matches of step {}", step.step);
            let found = format!("{} in the ledger", written.len());
            let more = if rewarded.len() > written.len() { "more" } else { "fewer" };
            let finding =
                Finding::new(what, found, format!("as many as in its log, which has {more}"));
            self.rewards.found.add(finding.at(step.step.into()));
            return Ok(None);
        }
        if (tree.size(), tree.root()) != (step.log_size, Hash(step.log_root)) {
            let what = format!("step {}: the root of its log", step.step);
            return Err(Finding::new(what, tree.root(), "the one that was audited"));
        }
        Ok(is_whole.then_some(rewarded))
    }

    /// Recomputes one reward and compares it.
    fn reward(
        &mut self,
        step: &StepEntry,
        place: usize,
        written: Option<&StepMatch>,
        record: &MatchRecord,
    ) -> Option<i32> {
        let number = step.step;
        match (self.options.course.reward)(record) {
            Ok(reward) => {
                self.match_count += 1;
                if let Some(written) = written.filter(|written| written.reward_micro != reward) {
                    let what = format!("step {number}: the reward of match {place}{}", of(record));
                    let finding = Finding::new(what, written.reward_micro, reward);
                    self.rewards.found.add(finding.at(number.into()));
                }
                Some(reward)
            }
            Err(reason) => {
                self.rewards.skip(|| format!("step {number}: match {place}: {reason}"));
                None
            }
        }
    }

    fn check_lesson(
        &mut self,
        step: &StepEntry,
        written: &[StepMatch],
        rewarded: &[Rewarded],
        lesson: &Lesson,
    ) {
        let number = step.step;
        let found = &mut self.advantages.found;
        let mut differs = |what: String, is: String, should: String| {
            if is != should {
                let what = format!("step {number}: {what}");
                found.add(Finding::new(what, is, should).at(number.into()));
            }
        };
        assert_eq!(lesson.advantages.len(), written.len(), "every match has an advantage or none");
        for (place, (written, wanted)) in written.iter().zip(&lesson.advantages).enumerate() {
            let wanted_bits = wanted.map(f64::to_bits);
            if written.advantage_bits != wanted_bits {
                let pair = rewarded[place].pair_index;
                let what = format!("the advantage of match {place} (pair {pair})");
                differs(what, advantage(written.advantage()), advantage(*wanted));
            }
            self.learned_count += u64::from(written.advantage_bits.is_some());
        }
        let dropped = (step.dropped_groups.to_string(), lesson.dropped_groups.to_string());
        differs("the dropped groups".to_owned(), dropped.0, dropped.1);
        if step.learning_rate_bits != lesson.learning_rate.to_bits() {
            let rate = |rate: f64| format!("{rate:?} ({:016x})", rate.to_bits());
            let (is, should) = (rate(step.learning_rate()), rate(lesson.learning_rate));
            differs("the learning rate".to_owned(), is, should);
        }
        self.dropped_count += u64::from(step.dropped_groups);
    }

    /// Says what came of all steps. Returns how many rewards were recomputed.
    pub fn conclude(self, verdicts: &mut Verdicts) -> u64 {
        let steps = ["more step", "more steps"];
        let all = count(self.steps_done, "step", "steps");
        let matches = count(self.match_count, "match", "matches");
        let logs = format!("{all}, {matches}");
        verdicts.insert("logs", self.logs.conclude(steps, logs));
        let played = format!("{all} as the experiment determines");
        verdicts.insert("tournaments", self.tournaments.conclude(steps, played));
        let rewards =
            self.rewards.conclude(["more place", "more places"], format!("{matches} recomputed"));
        verdicts.insert("rewards", rewards);
        let learned = format!(
            "{} learned from, {} dropped",
            count(self.learned_count, "match", "matches"),
            count(self.dropped_count, "group", "groups")
        );
        verdicts.insert("advantages", self.advantages.conclude(steps, learned));
        self.match_count
    }
}

fn of(record: &MatchRecord) -> String {
    format!(" (pair {}, leg {})", record.pair_index, record.leg)
}

fn advantage(value: Option<f64>) -> String {
    match value {
        None => "none".to_owned(),
        Some(value) => format!("{value:?} ({:016x})", value.to_bits()),
    }
}

/// Returns the first line in which two texts differ, from 1, and what either says.
fn difference(found: &str, wanted: &str) -> Option<(u64, String, String)> {
    if found == wanted {
        return None;
    }
    let (mut found, mut wanted) = (found.split('\n'), wanted.split('\n'));
    let mut line = 0;
    // Texts that differ do so in a line, at the latest in the one that only the longer has.
    loop {
        line += 1;
        let (is, should) = (found.next(), wanted.next());
        if is != should {
            let shown = |text: Option<&str>| match text {
                Some(text) => format!("`{text}`"),
                None => "no such line".to_owned(),
            };
            return Some((line, shown(is), shown(should)));
        }
    }
}
