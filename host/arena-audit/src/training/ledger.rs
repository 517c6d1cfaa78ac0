//! The ledger itself: its head, its tree, its files, and what its entries say of each other.
//!
//! Not here: the matches that its steps name (`lessons`).

use std::path::Path;

use arena_core::hexadecimal::hex;
use arena_core::ledger::{
    LedgerClose, LedgerEntry, LedgerOpening, RunId, STEP_MATCHES_BYTES_MAX, STEPS_MAX, StepEntry,
    StepMatches,
};
use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::policy::Opened;
use arena_log::reader::{Access, LogReader};
use arena_log::tile;
use arena_log::tree::Frontier;

use super::{ExperimentFacts, RunAuditOptions};
use crate::files;
use crate::heads::{Heads, SignedSizes};
use crate::steps::{self, Log};
use crate::verdict::{Finding, Findings, Verdict, Verdicts, count};

/// Most entries of a ledger: an opening, every step, a close.
const ENTRIES_MAX: u64 = STEPS_MAX as u64 + 2;

/// A ledger that was read.
pub(super) struct Read {
    pub opened: Opened,
    pub run: Option<RunId>,
    pub opening: Option<LedgerOpening>,
    /// The steps, in the order of their entries.
    pub steps: Vec<StepEntry>,
}

/// Reads a ledger and says what it says of itself; `None` where nothing else can be looked at.
pub(super) fn read(options: &RunAuditOptions<'_>, verdicts: &mut Verdicts) -> Option<Read> {
    let log = match Log::open(options.ledger, options.policy) {
        Ok(log) => log,
        Err(finding) => {
            verdicts.insert("checkpoint", failed(finding));
            return None;
        }
    };
    verdicts.insert("checkpoint", steps::checkpoint(&log.opened));
    let mut heads = match steps::heads(&log, options.held) {
        Ok(heads) => heads,
        Err(finding) => {
            verdicts.insert("tree", failed(finding));
            return None;
        }
    };
    let mut order = Order::default();
    let tree = read_entries(&log, &mut order, &mut heads);
    let is_whole = tree.is_ok();
    let (size, root) = (log.head().size, log.head().root);
    verdicts.insert(
        "tree",
        match tree {
            Ok(()) => {
                let entries = count(size, "entry", "entries");
                Verdict::Verified { detail: format!("{entries}, root {root}") }
            }
            Err(finding) => failed(finding),
        },
    );
    // Every entry is signed for: a step's policy may be handed on as soon as it is there.
    let signed = SignedSizes { every: 1, opening: 1, closed: None, revealed: None };
    verdicts.insert("held-heads", heads.conclude(is_whole.then_some(&signed)));
    if !is_whole {
        return None;
    }
    let read = finish(&log, options, order, verdicts);
    Some(read)
}

fn failed(finding: Finding) -> Verdict {
    let mut found = Findings::default();
    found.add(finding);
    found.or_verified("")
}

/// Reads every entry once: tree, heads, order.
fn read_entries(log: &Log<'_>, order: &mut Order, heads: &mut Heads<'_>) -> Result<(), Finding> {
    let said = |error: LogError| log.folder.finding(&error);
    let size = log.head().size;
    if size == 0 || size > ENTRIES_MAX {
        let wanted = format!("1 to {ENTRIES_MAX}");
        return Err(Finding::new("the entries of the ledger", size, wanted));
    }
    let mut reader = LogReader::open(log.path, Access::Public).map_err(said)?;
    if reader.checkpoint_bytes() != log.reader.checkpoint_bytes() {
        let wanted = "the one that was read first";
        return Err(Finding::new("the head", "another one", wanted).within(tile::CHECKPOINT));
    }
    let mut check = reader.tree_check().map_err(said)?;
    let mut frontier = Frontier::new();
    while let Some(record) = reader.next_record().map_err(said)? {
        frontier.append(check.push(&record).map_err(said)?.leaf);
        let index = record.index;
        if record.attachment.is_none_or(|attachment| !attachment.is_empty()) {
            let found = if record.attachment.is_some() { "something" } else { "withheld" };
            let finding = Finding::new("what lies beside the entry", found, "nothing");
            order.found.add(finding.at(index));
        }
        order.take(index, record.entry);
        if heads.has(index + 1) {
            heads.compare(&log.folder, index + 1, frontier.root());
        }
    }
    let root = log.head().root;
    if (frontier.size(), frontier.root()) != (size, root) {
        let what = format!("the root of {size} entries");
        let finding = Finding::new(what, root, format!("{}, which they give", frontier.root()));
        return Err(finding.within(tile::CHECKPOINT));
    }
    check.finish().map_err(said)
}

/// Says what the entries say of each other, and reads what they bind.
fn finish(
    log: &Log<'_>,
    options: &RunAuditOptions<'_>,
    order: Order,
    verdicts: &mut Verdicts,
) -> Read {
    let Order { run, opening, steps, close, mut found, .. } = order;
    check_key(&mut found, opening.as_ref(), &log.opened);
    verdicts.insert("policies", policies(opening.as_ref(), &steps, close.as_ref()));
    verdicts.insert("experiment", experiment(opening.as_ref(), options.experiment));
    verdicts.insert("end", end(options, steps.len(), close.as_ref()));
    verdicts.insert("files", blobs(log, &steps, &mut found));
    let detail = format!(
        "{}, {}",
        count(log.head().size, "entry", "entries"),
        count(steps.len() as u64, "step", "steps")
    );
    verdicts.insert("entries", found.or_verified(detail));
    Read { opened: log.opened.clone(), run, opening, steps }
}

/// Follows the entries.
#[derive(Default)]
struct Order {
    run: Option<RunId>,
    opening: Option<LedgerOpening>,
    steps: Vec<StepEntry>,
    close: Option<(u64, LedgerClose)>,
    found: Findings,
}

impl Order {
    fn take(&mut self, index: u64, bytes: &[u8]) {
        if index == 0 {
            self.run = Some(RunId::of_first_entry(bytes));
        }
        let entry = match LedgerEntry::decode(bytes) {
            Ok(entry) => entry,
            Err(error) => {
                let wanted = "an entry of a ledger in canonical form";
                return self.found.add(Finding::new("the entry", error, wanted).at(index));
            }
        };
        if let (Some(of), Some(run)) = (entry.run(), self.run)
            && of != run
        {
            self.found.add(Finding::new("the run", of, run).at(index));
        }
        let found = entry.describe();
        match entry {
            LedgerEntry::Opening(opening) if index == 0 => self.opening = Some(opening),
            LedgerEntry::Step(step)
                if index > 0 && self.close.is_none() && u64::from(step.step) == index =>
            {
                self.steps.push(step);
            }
            LedgerEntry::Close(close)
                if index > 0
                    && self.close.is_none()
                    && u64::from(close.step_count) + 1 == index =>
            {
                self.close = Some((index, close));
            }
            _ => {
                let wanted = match (index, &self.close) {
                    (0, _) => "the opening".to_owned(),
                    (_, Some(_)) => "nothing more".to_owned(),
                    (index, None) => format!("step {index}, or the close of {} steps", index - 1),
                };
                self.found.add(Finding::new("the entry", found, wanted).at(index));
            }
        }
    }
}

/// Holds the opening against the key and the origin under which the ledger is signed.
fn check_key(found: &mut Findings, opening: Option<&LedgerOpening>, opened: &Opened) {
    let Some(opening) = opening else { return };
    if opening.origin != opened.log.name() {
        let finding = Finding::new("the ledger's origin", &opening.origin, opened.log.name());
        found.add(finding.at(0));
    }
    let (announced, signing) = (hex(&opening.log_key), hex(&opened.log.key().to_bytes()));
    if announced != signing {
        found.add(Finding::new("the ledger's key", announced, signing).at(0));
    }
}

/// Follows the policies from the opening to the close.
fn policies(
    opening: Option<&LedgerOpening>,
    steps: &[StepEntry],
    close: Option<&(u64, LedgerClose)>,
) -> Verdict {
    let mut found = Findings::default();
    let mut policy = opening.map(|opening| opening.policy_sha256);
    let mut changes = 0_u64;
    for step in steps {
        if let Some(policy) = policy.filter(|policy| *policy != step.policy_before) {
            let what = format!("the policy before step {}", step.step);
            let finding = Finding::new(what, hex(&step.policy_before), hex(&policy));
            found.add(finding.at(step.step.into()));
        }
        changes += u64::from(step.policy_before != step.policy_after);
        policy = Some(step.policy_after);
    }
    if let (Some(policy), Some((index, close))) = (policy, close)
        && close.policy_sha256 != policy
    {
        let finding = Finding::new("the last policy", hex(&close.policy_sha256), hex(&policy));
        found.add(finding.at(*index));
    }
    let last = policy.map_or_else(|| "none".to_owned(), |policy| hex(&policy));
    found.or_verified(format!("{}, the last is {last}", count(changes, "update", "updates")))
}

/// Holds the opening against the experiment file.
fn experiment(opening: Option<&LedgerOpening>, wanted: &ExperimentFacts) -> Verdict {
    let mut found = Findings::default();
    let Some(opening) = opening else {
        return found.or_not_checked("there is no opening");
    };
    let mut fields = vec![
        ("the hash of the experiment", hex(&opening.experiment_sha256), hex(&wanted.sha256)),
        ("the experiment's name", opening.name.clone(), wanted.name.clone()),
        ("the reward", opening.reward.clone(), wanted.reward.clone()),
        ("the objective", opening.objective.clone(), wanted.objective.clone()),
        ("the seed", opening.seed.to_string(), wanted.seed.to_string()),
    ];
    if let Some(policy) = &wanted.policy_sha256 {
        fields.push(("the first policy", hex(&opening.policy_sha256), hex(policy)));
    }
    for (what, is, should) in fields {
        if is != should {
            found.add(Finding::new(what, format!("`{is}`"), format!("`{should}`")).at(0));
        }
    }
    let first = match wanted.policy_sha256 {
        Some(_) => "",
        None => "; that its first policy is the right one is not shown",
    };
    let LedgerOpening { name, reward, objective, seed, .. } = opening;
    found.or_verified(format!("`{name}`, reward `{reward}`, `{objective}`, seed {seed}{first}"))
}

/// Says whether the ledger is whole.
fn end(
    options: &RunAuditOptions<'_>,
    step_count: usize,
    close: Option<&(u64, LedgerClose)>,
) -> Verdict {
    let mut found = Findings::default();
    let wanted = options.experiment.step_count;
    let step_count = u32::try_from(step_count).unwrap_or(u32::MAX);
    let steps = count(step_count.into(), "step", "steps");
    if step_count > wanted {
        let finding = Finding::new("the steps of the ledger", step_count, wanted);
        found.add(finding.at(u64::from(wanted) + 1));
    }
    let Some((index, _)) = close else {
        return found.or_not_checked(format!(
            "the ledger is not closed: {steps} of {wanted} are there. Its end is cut off, or the \
             run goes on"
        ));
    };
    if step_count < wanted {
        found.add(Finding::new("the steps of the ledger", step_count, wanted).at(*index));
    }
    let beyond = (options.course.log)(step_count + 1);
    if exists(&beyond) {
        let what = format!("the log of step {}", u64::from(step_count) + 1);
        let finding = Finding::new(what, "one", "none: the ledger is closed before it");
        found.add(finding.within(beyond.display().to_string()));
    }
    found.or_verified(format!("closed after {steps}"))
}

fn exists(path: &Path) -> bool {
    // A link that leads nowhere is there, too.
    std::fs::symlink_metadata(path).is_ok()
}

/// Reads what the steps bind, and looks through the folder.
fn blobs(log: &Log<'_>, steps: &[StepEntry], entries: &mut Findings) -> Verdict {
    let most = STEP_MATCHES_BYTES_MAX as u64;
    let known: Vec<(Hash, u64)> =
        steps.iter().map(|step| (Hash(step.matches_sha256), most)).collect();
    let mut found = log.witness_findings.clone();
    let others = files::check_ledger(&mut found, &log.folder, &log.opened.log, &known, most);
    for entry in steps {
        match matches(&log.reader, entry) {
            Ok(_) => {}
            Err(Unread::File(error)) => found.add(log.folder.finding(&error)),
            Err(Unread::Missing(finding)) => found.add(finding),
            Err(Unread::Entry(finding)) => entries.add(finding.at(entry.step.into())),
        }
    }
    let left = match others {
        0 => String::new(),
        others => {
            format!("; {} that no step names, as a crash leaves it", count(others, "blob", "blobs"))
        }
    };
    let blobs = count(steps.len() as u64, "blob", "blobs");
    found.or_verified(format!("{blobs} of steps, none missing{left}"))
}

/// Why what a step binds is not at hand.
pub(super) enum Unread {
    /// Its file cannot be read.
    File(LogError),
    /// Its file is not there.
    Missing(Finding),
    /// It is not what such an entry binds.
    Entry(Finding),
}

/// Reads what a step was learned from.
pub(super) fn matches(ledger: &LogReader, entry: &StepEntry) -> Result<StepMatches, Unread> {
    let hash = Hash(entry.matches_sha256);
    let step = entry.step;
    let what = |what: &str| format!("{what} of step {step}");
    let bytes = ledger.blob(&hash, STEP_MATCHES_BYTES_MAX as u64).map_err(Unread::File)?;
    let bytes = bytes.ok_or_else(|| {
        let finding = Finding::new(what("the matches"), "none", "one blob");
        Unread::Missing(finding.within(tile::blob(&hash)))
    })?;
    let matches = StepMatches::decode(&bytes).map_err(|error| {
        Unread::Entry(Finding::new(what("the matches"), error, "matches in canonical form"))
    })?;
    let of = [
        (what("the run of the matches"), matches.run.to_string(), entry.run.to_string()),
        (what("the step of the matches"), matches.step.to_string(), step.to_string()),
        (
            what("the number of matches"),
            matches.matches.len().to_string(),
            entry.match_count.to_string(),
        ),
    ];
    match of.into_iter().find(|(_, is, should)| is != should) {
        Some((what, is, should)) => Err(Unread::Entry(Finding::new(what, is, should))),
        None => Ok(matches),
    }
}
