//! What can go wrong with a log, with the facts that a person needs.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::{ENTRY_BYTES_MAX, frame, writer};

/// A log that cannot be read or written.
#[derive(Debug)]
pub enum LogError {
    /// The operating system refused.
    Io {
        /// What was tried, such as `read`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no log.
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A log is already there.
    Exists {
        /// The log.
        path: PathBuf,
    },
    /// Another process writes this log.
    Locked {
        /// The log.
        path: PathBuf,
    },
    /// The folder for a new log holds something else.
    ForeignFile {
        /// The folder.
        folder: PathBuf,
        /// One name found in it.
        name: String,
    },
    /// The file is not a log, or its header is damaged.
    NotALog {
        /// The file.
        path: PathBuf,
    },
    /// The log is in another layout.
    Version {
        /// The log.
        path: PathBuf,
        /// The version found.
        found: u32,
    },
    /// The last bytes are what a crash leaves: no whole entry lies in or after them.
    TornTail {
        /// The log.
        path: PathBuf,
        /// The entry that is not whole, counted from 0.
        entry_index: u64,
        /// Where the torn bytes start.
        offset: u64,
        /// How many there are.
        bytes: u64,
    },
    /// Bytes changed after they were written. Nothing is cut.
    Damaged {
        /// The log.
        path: PathBuf,
        /// The first damaged entry, counted from 0.
        entry_index: u64,
        /// Where it starts.
        offset: u64,
        /// What is wrong with it.
        damage: Damage,
    },
    /// An entry is larger than the log takes. Nothing was written.
    EntryTooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// Entries to be written together are larger than the log takes. Nothing was written.
    GroupTooLarge {
        /// Their bytes.
        bytes: usize,
    },
    /// An earlier write or sync failed; nothing more is written through this handle.
    Broken {
        /// The log.
        path: PathBuf,
    },
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file ends within it.
    Short,
    /// It claims more bytes than an entry may have.
    Length {
        /// The claim.
        found: u32,
    },
    /// Its bytes are not the ones that were written.
    Checksum {
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes in the file.
        computed: u32,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Short => write!(f, "it runs beyond the end of the file"),
            Damage::Length { found } => {
                write!(f, "its length is {found} bytes, the most is {ENTRY_BYTES_MAX}")
            }
            Damage::Checksum { stored, computed } => {
                write!(f, "its checksum is {stored:08x}, its bytes give {computed:08x}")
            }
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io { doing, path, source } => {
                write!(f, "cannot {doing} `{}`: {source}", path.display())
            }
            LogError::Missing { path } => write!(f, "no log at `{}`", path.display()),
            LogError::Exists { path } => write!(f, "there is a log at `{}`", path.display()),
            LogError::Locked { path } => {
                write!(f, "another process is writing `{}`", path.display())
            }
            LogError::ForeignFile { folder, name } => write!(
                f,
                "folder `{}` holds `{}`, which is not part of a log: choose an empty folder",
                folder.display(),
                name.escape_debug(),
            ),
            LogError::NotALog { path } => write!(f, "`{}` is not a log", path.display()),
            LogError::Version { path, found } => write!(
                f,
                "log `{}` has layout version {found}, this program reads {}",
                path.display(),
                frame::VERSION,
            ),
            LogError::TornTail { path, entry_index, offset, bytes } => write!(
                f,
                "log `{}` ends in {bytes} torn bytes at byte {offset} (entry {entry_index}), \
                 as after a crash",
                path.display(),
            ),
            LogError::Damaged { path, entry_index, offset, damage } => write!(
                f,
                "log `{}` is damaged at byte {offset} (entry {entry_index}): {damage}",
                path.display(),
            ),
            LogError::EntryTooLarge { bytes } => {
                write!(f, "an entry has {bytes} bytes, the most is {ENTRY_BYTES_MAX}")
            }
            LogError::GroupTooLarge { bytes } => write!(
                f,
                "entries written together have {bytes} bytes, the most is {}",
                writer::GROUP_BYTES_MAX,
            ),
            LogError::Broken { path } => {
                write!(f, "log `{}` takes no entries after a failed write", path.display())
            }
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
