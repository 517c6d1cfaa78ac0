//! What an audit says of each step: verified, failed, or not checked.
//!
//! A step is verified only where everything it covers was looked at and nothing was found. A
//! step that stands on another one is not checked where that one failed: what it would say
//! means nothing then.
//!
//! Not here: the checks themselves.

use std::fmt;

/// Most findings of one step that are kept. All of them are counted.
pub const FINDINGS_MAX: usize = 20;

/// Longest value in a finding, in characters: values are strangers' and may be whole files.
const VALUE_CHARS_MAX: usize = 300;

/// One step of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// A short name, for programs.
    pub id: &'static str,
    /// What is checked, for people.
    pub title: &'static str,
    /// What came out.
    pub verdict: Verdict,
}

/// What came out of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was checked and holds.
    Verified {
        /// What that was, with its numbers.
        detail: String,
    },
    /// Something does not hold.
    Failed {
        /// The first ones, at most [`FINDINGS_MAX`].
        findings: Vec<Finding>,
        /// How many there are in all.
        finding_count: u64,
    },
    /// It was not checked, or not all of it.
    NotChecked {
        /// Why not.
        reason: String,
    },
}

/// One thing that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The entry, counted from 0.
    pub entry: Option<u64>,
    /// The file, relative to the log's folder.
    pub file: Option<String>,
    /// What was looked at.
    pub what: String,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub wanted: String,
}

impl Verdict {
    /// Returns whether the step is verified.
    pub fn is_verified(&self) -> bool {
        matches!(self, Verdict::Verified { .. })
    }

    /// Returns whether the step failed.
    pub fn is_failed(&self) -> bool {
        matches!(self, Verdict::Failed { .. })
    }
}

impl Finding {
    /// Says that `what` is one thing and should be another.
    pub fn new(
        what: impl Into<String>,
        found: impl fmt::Display,
        wanted: impl fmt::Display,
    ) -> Finding {
        let (found, wanted) = (shorten(&found.to_string()), shorten(&wanted.to_string()));
        // Names of strangers are in it, too.
        let what = shorten(&what.into());
        Finding { entry: None, file: None, what, found, wanted }
    }

    /// Names the entry.
    pub fn at(mut self, entry: u64) -> Finding {
        self.entry = Some(entry);
        self
    }

    /// Names the file.
    pub fn within(mut self, file: impl Into<String>) -> Finding {
        self.file = Some(file.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        if let Some(file) = &self.file {
            write!(f, "`{file}`: ")?;
        }
        write!(f, "{}: found {}, expected {}", self.what, self.found, self.wanted)
    }
}

/// Puts a count before its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Cuts what may be a whole file.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Gathers what a step finds, however much that is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    count: u64,
}

impl Findings {
    /// Takes up a finding.
    pub fn add(&mut self, finding: Finding) {
        self.count += 1;
        if self.kept.len() < FINDINGS_MAX {
            self.kept.push(finding);
        }
    }

    /// Takes up a finding if there is one.
    pub fn check(&mut self, result: Result<(), Finding>) {
        if let Err(finding) = result {
            self.add(finding);
        }
    }

    /// Takes up what another check found.
    pub fn merge(&mut self, other: Findings) {
        self.count += other.count;
        let room = FINDINGS_MAX - self.kept.len();
        self.kept.extend(other.kept.into_iter().take(room));
    }

    /// Returns whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Ends the step: `detail` says what was checked.
    pub fn or_verified(self, detail: impl Into<String>) -> Verdict {
        if self.is_empty() { Verdict::Verified { detail: detail.into() } } else { self.failed() }
    }

    /// Ends a step of which something could not be checked.
    pub fn or_not_checked(self, reason: impl Into<String>) -> Verdict {
        if self.is_empty() { not_checked(reason) } else { self.failed() }
    }

    fn failed(self) -> Verdict {
        Verdict::Failed { findings: self.kept, finding_count: self.count }
    }
}

/// A verdict on what was not looked at.
pub(crate) fn not_checked(reason: impl Into<String>) -> Verdict {
    Verdict::NotChecked { reason: reason.into() }
}

/// The steps of an audit in their order: of each its name, its title, and those that it stands on.
pub(crate) type StepTable = [(&'static str, &'static str, &'static [&'static str])];

/// The steps of a tournament's audit.
pub(crate) const STEPS: &StepTable = &[
    ("checkpoint", "the head is signed by the expected log and enough witnesses", &[]),
    ("tree", "every entry and every hash on disk gives the signed root", &["checkpoint"]),
    (
        "held-heads",
        "the log continues every head that it signed or that the auditor holds",
        &["checkpoint", "tree"],
    ),
    ("files", "the folder holds the files of this log and no others", &["checkpoint", "tree"]),
    ("entries", "every entry is canonical, known, in order and of this tournament", &["tree"]),
    ("announcement", "what was announced fits together", &["entries"]),
    ("submissions", "the authors' statements are signed and about these agents", &["announcement"]),
    ("draws", "secret, contributions and beacon are those that were announced", &["announcement"]),
    ("catalog", "the items are those that the tournament file leads to", &["draws"]),
    ("schedule", "every scheduled match has exactly one record, in order", &["announcement"]),
    ("counts", "the log is closed and revealed, and counts what is there", &["schedule"]),
    ("transcripts", "every transcript is the one that its entry binds", &["announcement"]),
    (
        "scenarios",
        "budgets, costs, openers, horizons, seeds and nonces follow from the draws",
        &["draws", "schedule", "transcripts"],
    ),
    ("rules", "every move is what the rules allow", &["transcripts"]),
    ("usage", "every seat stayed within its limits", &["transcripts"]),
    (
        "results",
        "rewards, metrics and ratings are those that were published",
        &["counts", "scenarios", "rules", "usage"],
    ),
    ("components", "the agents' components are published", &["announcement"]),
    (REEXECUTION, "the agents, run again, play the same", &["scenarios", "components"]),
];

/// The step that is concluded by whoever runs the agents again.
pub(crate) const REEXECUTION: &str = "re-execution";

/// Returns the steps that a step stands on.
fn grounds(table: &StepTable, id: &str) -> &'static [&'static str] {
    let step = table.iter().find(|(name, _, _)| *name == id);
    step.map_or(&[], |(_, _, grounds)| grounds)
}

/// The verdicts of an audit as they come, by the step's short name.
pub(crate) type Verdicts = std::collections::BTreeMap<&'static str, Verdict>;

/// Puts the steps in order and takes back what stands on a step that is not verified.
///
/// A step that nothing came to is not checked.
pub(crate) fn settle(table: &StepTable, mut verdicts: Verdicts) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(table.len());
    for &(id, title, _) in table {
        let own = verdicts.remove(id).unwrap_or_else(|| not_checked("it was not come to"));
        let verdict = stand(table, own, id, &steps);
        steps.push(Step { id, title, verdict });
    }
    steps
}

/// Enters the verdict of a step that is concluded later. It stands on the other steps: where they
/// are not verified, this one is not checked.
pub(crate) fn conclude(table: &StepTable, steps: &mut [Step], id: &'static str, verdict: Verdict) {
    let Some(place) = steps.iter().position(|step| step.id == id) else {
        return;
    };
    let (earlier, rest) = steps.split_at_mut(place);
    rest[0].verdict = stand(table, verdict, id, earlier);
}

/// Returns whether every step is verified but those named, which may also be unchecked. A step that
/// failed is never forgiven.
pub(crate) fn all_verified_without(steps: &[Step], unasked: &[&str]) -> bool {
    steps.iter().all(|step| match step.verdict {
        Verdict::Verified { .. } => true,
        Verdict::Failed { .. } => false,
        Verdict::NotChecked { .. } => unasked.contains(&step.id),
    })
}

/// Returns the verdict of a step that stands on some of the earlier ones.
fn stand(table: &StepTable, own: Verdict, id: &str, earlier: &[Step]) -> Verdict {
    let grounds = grounds(table, id);
    if let Some(failed) = grounds.iter().find_map(|id| failed_under(table, id, earlier)) {
        return not_checked(format!("step `{failed}` failed"));
    }
    let mut standing = earlier.iter().filter(|step| grounds.contains(&step.id));
    match standing.find(|step| !step.verdict.is_verified()) {
        // What is not whole can still be wrong.
        Some(step) if own.is_verified() => {
            not_checked(format!("step `{}` was not checked", step.id))
        }
        _ => own,
    }
}

/// Returns the failed step because of which a step says nothing: itself or one below it.
fn failed_under(table: &StepTable, id: &'static str, steps: &[Step]) -> Option<&'static str> {
    let step = steps.iter().find(|step| step.id == id)?;
    match step.verdict {
        Verdict::Failed { .. } => Some(id),
        Verdict::Verified { .. } => None,
        Verdict::NotChecked { .. } => {
            grounds(table, id).iter().find_map(|below| failed_under(table, below, steps))
        }
    }
}
