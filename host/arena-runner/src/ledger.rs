//! Writes the ledger of a training run, and goes on with one that was left behind.
//!
//! A step is durable and signed before [`Ledger::append`] returns. What a step learned from is on
//! the disk before its entry is, so that no entry names a blob that is not there; a step that a
//! crash took leaves at most such a blob, which the same step writes again.
//!
//! Not here: what the steps are (`arena-train`), and checking them (`arena-audit`).

use std::path::Path;
use std::sync::Arc;

use arena_core::entry::TournamentId;
use arena_core::hexadecimal::hex;
use arena_core::ledger::{
    LedgerClose, LedgerEntry, LedgerOpening, RunId, STEP_MATCHES_BYTES_MAX, STEPS_MAX, StepEntry,
    StepMatch, StepMatches,
};
use arena_log::blobs::Visibility;
use arena_log::checkpoint::Head;
use arena_log::disk::Disk;
use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};
use arena_log::recovery::Reopened;
use arena_log::storage::Storage;
use arena_log::writer::{LogSettings, LogWriter, Record};

use crate::error::RunError;

/// Heads are signed after every entry; this is only the most that a log may wait.
const CHECKPOINT_EVERY: u64 = 256;

/// The end of a ledger, held exclusively.
#[derive(Debug)]
pub struct Ledger {
    writer: LogWriter,
    run: RunId,
    last: Option<StepEntry>,
    policy: [u8; 32],
    is_closed: bool,
}

/// A step that was done.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<'a> {
    /// The tournament of its matches.
    pub tournament: TournamentId,
    /// The newest head of that tournament's log, which is closed and revealed.
    pub head: &'a Head,
    /// Names the policy that came of it.
    pub policy_after: [u8; 32],
    /// Every match of the tournament, in the order of its log.
    pub matches: Vec<StepMatch>,
    /// Groups of matches that nothing was learned from.
    pub dropped_groups: u32,
    /// The learning rate of the update, which is finite.
    pub learning_rate: f64,
}

impl Ledger {
    /// Goes on with the ledger in `folder`, or starts one.
    ///
    /// # Errors
    /// It cannot be read or written, is damaged, or is another run's.
    ///
    /// # Panics
    /// If the opening does not name the key, or is out of its bounds.
    pub fn open(
        folder: &Path,
        opening: &LedgerOpening,
        key: &SigningKey,
    ) -> Result<Ledger, RunError> {
        assert_eq!(opening.log_key, key.public().to_bytes(), "the opening names the key");
        let bytes = LedgerEntry::Opening(opening.clone()).encode();
        let settings = || LogSettings {
            origin: opening.origin.clone(),
            key: key.clone(),
            checkpoint_every: CHECKPOINT_EVERY,
        };
        let storage: Arc<dyn Storage> = Arc::new(Disk::create(folder)?);
        match LogWriter::open_on(Arc::clone(&storage), settings()) {
            Ok(reopened) => Ledger::take_up(reopened, opening, &bytes),
            Err(LogError::Missing { .. }) => {
                Ledger::start(LogWriter::create_on(storage, settings())?, opening, &bytes)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn start(writer: LogWriter, opening: &LedgerOpening, bytes: &[u8]) -> Result<Ledger, RunError> {
        let run = RunId::of_first_entry(bytes);
        let policy = opening.policy_sha256;
        let mut ledger = Ledger { writer, run, last: None, policy, is_closed: false };
        ledger.sign(bytes)?;
        ledger.writer.publish()?;
        Ok(ledger)
    }

    fn take_up(
        reopened: Reopened,
        opening: &LedgerOpening,
        bytes: &[u8],
    ) -> Result<Ledger, RunError> {
        let size = reopened.size();
        if size == 0 {
            return Ledger::start(reopened.resume_at(0)?, opening, bytes);
        }
        let run = RunId::of_first_entry(bytes);
        let mut records = reopened.records()?;
        let (mut last, mut is_closed) = (None, false);
        let mut policy = opening.policy_sha256;
        while let Some(record) = records.next_record()? {
            let index = record.index;
            let entry = LedgerEntry::decode(record.entry)
                .map_err(|source| RunError::LedgerEntry { entry_index: index, source })?;
            match follows(index, &entry, opening, run, policy, is_closed)? {
                Next::Opening => {}
                Next::Step(step) => {
                    policy = step.policy_after;
                    last = Some(step.clone());
                }
                Next::Close => is_closed = true,
            }
        }
        let writer = reopened.resume_at(size)?;
        let mut ledger = Ledger { writer, run, last, policy, is_closed };
        // What was appended and not signed is whole: only its head is missing.
        ledger.writer.checkpoint()?;
        ledger.writer.publish()?;
        Ok(ledger)
    }

    /// Returns the id of the run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Returns how many steps are done.
    pub fn step_count(&self) -> u32 {
        self.last.as_ref().map_or(0, |step| step.step)
    }

    /// Returns the last step, if there is one.
    pub fn last(&self) -> Option<&StepEntry> {
        self.last.as_ref()
    }

    /// Returns the name of the policy that came of all steps so far.
    pub fn policy(&self) -> [u8; 32] {
        self.policy
    }

    /// Returns whether the run is over.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the newest head.
    pub fn head(&self) -> Option<&Head> {
        self.writer.signed()
    }

    /// Writes down the next step, durably and signed.
    ///
    /// # Errors
    /// The run is over, or the disk failed; then this handle takes no more steps.
    ///
    /// # Panics
    /// If a field of the step is out of its bounds, or there are more steps than
    /// [`STEPS_MAX`].
    pub fn append(&mut self, step: Step<'_>) -> Result<&StepEntry, RunError> {
        self.refuse_if_closed()?;
        let number = self.step_count() + 1;
        assert!(number <= STEPS_MAX, "a run has at most {STEPS_MAX} steps");
        let match_count = u32::try_from(step.matches.len()).unwrap_or(u32::MAX);
        let matches = StepMatches { run: self.run, step: number, matches: step.matches }.encode();
        let entry = StepEntry {
            run: self.run,
            step: number,
            tournament: step.tournament,
            log_size: step.head.size,
            log_root: step.head.root.0,
            policy_before: self.policy,
            policy_after: step.policy_after,
            match_count,
            matches_sha256: StepMatches::sha256(&matches),
            dropped_groups: step.dropped_groups,
            learning_rate_bits: step.learning_rate.to_bits(),
        };
        let bytes = LedgerEntry::Step(entry.clone()).encode();
        self.writer.put_blob(&matches, Visibility::Public)?;
        self.sign(&bytes)?;
        self.policy = entry.policy_after;
        Ok(self.last.insert(entry))
    }

    /// Says that the run is over. No step follows.
    ///
    /// # Errors
    /// It was closed before, or the disk failed.
    pub fn close(&mut self) -> Result<(), RunError> {
        self.refuse_if_closed()?;
        let (step_count, policy_sha256) = (self.step_count(), self.policy);
        let close = LedgerClose { run: self.run, step_count, policy_sha256 };
        self.sign(&LedgerEntry::Close(close).encode())?;
        self.is_closed = true;
        Ok(())
    }

    /// Reads what a step learned from, if its blob is there.
    ///
    /// # Errors
    /// It cannot be read, or is not what the entry binds.
    pub fn matches(&self, step: &StepEntry) -> Result<Option<StepMatches>, RunError> {
        let hash = Hash(step.matches_sha256);
        let most = STEP_MATCHES_BYTES_MAX as u64;
        let reader = LogReader::open(self.writer.folder(), Access::Public)?;
        let decode = |bytes: Vec<u8>| {
            let index = u64::from(step.step);
            StepMatches::decode(&bytes)
                .map_err(|source| RunError::LedgerEntry { entry_index: index, source })
        };
        reader.blob(&hash, most)?.map(decode).transpose()
    }

    fn refuse_if_closed(&self) -> Result<(), RunError> {
        if !self.is_closed {
            return Ok(());
        }
        Err(RunError::LedgerClosed { step_count: self.step_count() })
    }

    fn sign(&mut self, entry: &[u8]) -> Result<(), RunError> {
        self.writer.append_all(&[Record { entry, attachment: &[] }])?;
        self.writer.checkpoint()?;
        Ok(())
    }
}

/// An entry that stands where it may stand.
enum Next<'a> {
    Opening,
    Step(&'a StepEntry),
    Close,
}

/// Checks that an entry is the one that follows.
fn follows<'a>(
    index: u64,
    entry: &'a LedgerEntry,
    opening: &LedgerOpening,
    run: RunId,
    policy: [u8; 32],
    is_closed: bool,
) -> Result<Next<'a>, RunError> {
    let disagrees = |field, found: String, wanted: String| RunError::Disagrees {
        entry_index: index,
        field,
        found,
        wanted,
    };
    match entry {
        LedgerEntry::Opening(found) if index == 0 => {
            return differs(found, opening).map_or(Ok(Next::Opening), Err);
        }
        LedgerEntry::Step(step) if index == u64::from(step.step) && !is_closed => {
            if step.run != run {
                return Err(disagrees("run", step.run.to_string(), run.to_string()));
            }
            if step.policy_before != policy {
                return Err(disagrees("policy_before", hex(&step.policy_before), hex(&policy)));
            }
            return Ok(Next::Step(step));
        }
        LedgerEntry::Close(close)
            if index == u64::from(close.step_count) + 1 && !is_closed && close.run == run =>
        {
            return Ok(Next::Close);
        }
        _ => {}
    }
    let wanted = match (index, is_closed) {
        (0, _) => "an opening".to_owned(),
        (_, true) => "the end of the ledger".to_owned(),
        (index, false) => format!("step {index} of run {run}, or its close"),
    };
    Err(RunError::Misplaced { entry_index: index, found: entry.describe(), wanted })
}

/// Says in which field a ledger's opening differs from this run's, if it does.
fn differs(found: &LedgerOpening, wanted: &LedgerOpening) -> Option<RunError> {
    let pairs = fields(found).into_iter().zip(fields(wanted));
    let (found, wanted) = pairs.into_iter().find(|(found, wanted)| found != wanted)?;
    let (field, found, wanted) = (found.0, found.1, wanted.1);
    Some(RunError::LedgerDiffers { field, found, wanted })
}

fn fields(opening: &LedgerOpening) -> [(&'static str, String); 9] {
    [
        ("origin", opening.origin.clone()),
        ("log_key", hex(&opening.log_key)),
        ("name", opening.name.clone()),
        ("experiment_sha256", hex(&opening.experiment_sha256)),
        ("reward", opening.reward.clone()),
        ("objective", opening.objective.clone()),
        ("policy_sha256", hex(&opening.policy_sha256)),
        ("seed", opening.seed.to_string()),
        ("engine", opening.engine.clone()),
    ]
}
