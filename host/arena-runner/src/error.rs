//! Why a run stopped before its end.

use std::fmt;
use std::io;

use arena_core::envelope::EnvelopeError;
use arena_core::ledger::LedgerError;
use arena_log::error::LogError;

use crate::event::Voiding;

/// A run that failed. Except for [`RunError::AnnouncementDiffers`] and a damaged log, the same
/// call goes on once the cause is gone.
#[derive(Debug)]
pub enum RunError {
    /// The log cannot be opened, read or written.
    Log(LogError),
    /// The draws need contributions or a beacon's round that were not given.
    DrawNeeded,
    /// The draws need the secret, which was not given.
    SecretNeeded,
    /// Something that opens the draws is not what was announced.
    NotAnnounced {
        /// What it is, such as `draw.contributions[3]`.
        field: String,
        /// What it is, or what it gives.
        found: String,
        /// What was announced.
        wanted: String,
    },
    /// The folder's log is of another tournament.
    AnnouncementDiffers {
        /// The first field that differs, such as `agents[3].params`.
        field: String,
        /// What the log says.
        found: String,
        /// What this run would say.
        wanted: String,
    },
    /// An entry of the log is whole, but not what this program writes.
    Entry {
        /// The entry, counted from 0.
        entry_index: u64,
        /// What is wrong with it.
        source: EnvelopeError,
    },
    /// The transcript of a match is whole, but not what this program writes.
    Transcript {
        /// The entry that it lies beside, counted from 0.
        entry_index: u64,
        /// What is wrong with it.
        source: EnvelopeError,
    },
    /// An entry and the transcript beside it, or the schedule, do not agree.
    Disagrees {
        /// The entry, counted from 0.
        entry_index: u64,
        /// What they do not agree in.
        field: &'static str,
        /// What the log says.
        found: String,
        /// What it should say.
        wanted: String,
    },
    /// An entry of the log is not the one that follows.
    Misplaced {
        /// The entry, counted from 0.
        entry_index: u64,
        /// What it is.
        found: String,
        /// What should be there.
        wanted: String,
    },
    /// A pair was voided too often: the host or a model provider keeps failing.
    Voided {
        /// How many times this run played it.
        attempts: u32,
        /// The last failure.
        last: Voiding,
    },
    /// A worker panicked, which is a defect of this program.
    Panicked {
        /// The pair in play.
        pair_index: u64,
        /// What the panic said.
        message: String,
    },
    /// A thread could not be started.
    Thread(io::Error),
    /// The folder's ledger is of another training run.
    LedgerDiffers {
        /// The first field that differs.
        field: &'static str,
        /// What the ledger says.
        found: String,
        /// What this run would say.
        wanted: String,
    },
    /// An entry of a ledger, or what it binds, is whole, but not what this program writes.
    LedgerEntry {
        /// The entry, counted from 0.
        entry_index: u64,
        /// What is wrong with it.
        source: LedgerError,
    },
    /// A step was to follow on a ledger's close.
    LedgerClosed {
        /// How many steps there are.
        step_count: u32,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Log(error) => write!(f, "{error}"),
            RunError::DrawNeeded => {
                write!(f, "the draws are not open: contributions or a beacon's round are missing")
            }
            RunError::SecretNeeded => write!(f, "the secret behind the draws is missing"),
            RunError::NotAnnounced { field, found, wanted } => {
                write!(f, "`{field}` is `{found}`, announced is `{wanted}`")
            }
            RunError::AnnouncementDiffers { field, found, wanted } => write!(
                f,
                "the log is of another tournament: its `{field}` is `{found}`, now it is \
                 `{wanted}`"
            ),
            RunError::Entry { entry_index, source } => {
                write!(f, "entry {entry_index} of the log: {source}")
            }
            RunError::Transcript { entry_index, source } => {
                write!(f, "the transcript of entry {entry_index} of the log: {source}")
            }
            RunError::Disagrees { entry_index, field, found, wanted } => write!(
                f,
                "entry {entry_index} of the log has the `{field}` `{found}`, expected `{wanted}`"
            ),
            RunError::Misplaced { entry_index, found, wanted } => {
                write!(f, "entry {entry_index} of the log is {found}, expected {wanted}")
            }
            RunError::Voided { attempts, last: Voiding { pair_index, reason, detail, .. } } => {
                let reason = reason.name();
                write!(f, "pair {pair_index} was voided {attempts} times ({reason}): {detail}")
            }
            RunError::Panicked { pair_index, message } => {
                write!(f, "a worker panicked on pair {pair_index}: {message}")
            }
            RunError::Thread(error) => write!(f, "cannot start a worker thread: {error}"),
            RunError::LedgerDiffers { field, found, wanted } => write!(
                f,
                "the ledger is of another run: its `{field}` is `{found}`, now it is `{wanted}`"
            ),
            RunError::LedgerEntry { entry_index, source } => {
                write!(f, "entry {entry_index} of the ledger: {source}")
            }
            RunError::LedgerClosed { step_count } => {
                write!(f, "the ledger is closed after `{step_count}` steps")
            }
        }
    }
}

impl RunError {
    /// Returns what the person at the terminal can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RunError::LedgerDiffers { .. } => {
                Some("choose another folder, or run the experiment as it was")
            }
            RunError::AnnouncementDiffers { .. } => {
                Some("choose another folder with `--out`, or run the tournament as it was")
            }
            RunError::Log(LogError::ForeignFile { .. }) => {
                Some("choose another folder with `--out`")
            }
            RunError::Log(LogError::Locked { .. }) => {
                Some("wait for the other run, or choose another folder with `--out`")
            }
            RunError::Log(LogError::ForeignKey { .. }) => {
                Some("give the key that the log was started with, or choose another `--out`")
            }
            RunError::DrawNeeded => {
                Some("give the beacon's round with `--beacon`, contributions with `--contribution`")
            }
            RunError::SecretNeeded => Some("give the secret with `--secret`"),
            RunError::NotAnnounced { .. } => {
                Some("give what was announced, or choose another folder with `--out`")
            }
            RunError::Log(error) if is_damage(error) => {
                Some("nothing was changed; restore the log from a copy, or choose another `--out`")
            }
            RunError::Entry { .. }
            | RunError::Transcript { .. }
            | RunError::Disagrees { .. }
            | RunError::Misplaced { .. }
            | RunError::LedgerEntry { .. } => {
                Some("nothing was changed; restore the log from a copy, or choose another `--out`")
            }
            RunError::Log(
                LogError::Special { .. }
                | LogError::MissingFile { .. }
                | LogError::UnexpectedFile { .. }
                | LogError::Length { .. }
                | LogError::Bundle { .. }
                | LogError::Tile { .. }
                | LogError::NotAPrefix { .. }
                | LogError::Root { .. }
                | LogError::Blob { .. }
                | LogError::Head { .. }
                | LogError::TwoHeads { .. }
                | LogError::LastSigned { .. }
                | LogError::LastSignedMissing { .. }
                | LogError::PublishedAhead { .. }
                | LogError::JournalAhead { .. }
                | LogError::NotAJournal { .. },
            ) => Some(
                "nothing was changed; restore what is damaged from a copy of the same age: an \
                 older copy of the whole log would sign a second history",
            ),
            RunError::Log(LogError::Io { .. }) | RunError::Voided { .. } => {
                Some("once the cause is gone, the same command goes on from here")
            }
            _ => None,
        }
    }
}

/// Returns whether what is signed is not there as it was signed.
fn is_damage(error: &LogError) -> bool {
    matches!(
        error,
        LogError::Special { .. }
            | LogError::MissingFile { .. }
            | LogError::UnexpectedFile { .. }
            | LogError::Length { .. }
            | LogError::Bundle { .. }
            | LogError::Tile { .. }
            | LogError::NotAPrefix { .. }
            | LogError::Root { .. }
            | LogError::Head { .. }
            | LogError::TwoHeads { .. }
            | LogError::LastSigned { .. }
            | LogError::LastSignedMissing { .. }
            | LogError::PublishedAhead { .. }
            | LogError::JournalAhead { .. }
            | LogError::NotAJournal { .. }
    )
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Log(error) => Some(error),
            RunError::Entry { source, .. } | RunError::Transcript { source, .. } => Some(source),
            RunError::Thread(error) => Some(error),
            RunError::LedgerEntry { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<LogError> for RunError {
    fn from(error: LogError) -> RunError {
        RunError::Log(error)
    }
}
