//! Why a run stopped before its end.

use std::fmt;
use std::io;

use arena_core::entry::EntryError;
use arena_log::plain::error::LogError;

use crate::event::Voiding;

/// A run that failed. Except for [`RunError::AnnouncementDiffers`] and a damaged log, the same
/// call goes on once the cause is gone.
#[derive(Debug)]
pub enum RunError {
    /// The log cannot be opened, read or written.
    Log(LogError),
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
        source: EntryError,
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
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Log(error) => write!(f, "{error}"),
            RunError::AnnouncementDiffers { field, found, wanted } => write!(
                f,
                "the log is of another tournament: its `{field}` is `{found}`, now it is \
                 `{wanted}`"
            ),
            RunError::Entry { entry_index, source } => {
                write!(f, "entry {entry_index} of the log: {source}")
            }
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
        }
    }
}

impl RunError {
    /// Returns what the person at the terminal can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RunError::AnnouncementDiffers { .. } => {
                Some("choose another folder with `--out`, or run the tournament as it was")
            }
            RunError::Log(LogError::ForeignFile { .. }) => {
                Some("choose another folder with `--out`")
            }
            RunError::Log(LogError::Locked { .. }) => {
                Some("wait for the other run, or choose another folder with `--out`")
            }
            RunError::Log(LogError::Damaged { .. } | LogError::TornTail { .. })
            | RunError::Entry { .. }
            | RunError::Misplaced { .. } => {
                Some("nothing was changed; restore the log from a copy, or choose another `--out`")
            }
            RunError::Log(LogError::Io { .. }) | RunError::Voided { .. } => {
                Some("once the cause is gone, the same command goes on from here")
            }
            _ => None,
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Log(error) => Some(error),
            RunError::Entry { source, .. } => Some(source),
            RunError::Thread(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LogError> for RunError {
    fn from(error: LogError) -> RunError {
        RunError::Log(error)
    }
}
