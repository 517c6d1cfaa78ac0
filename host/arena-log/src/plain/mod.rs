//! The plain log that tournaments write until they are signed: one file of opaque entries.
//!
//! Whatever reads back is what was appended, in order: a damaged byte is always noticed. A
//! tail that a crash left half-written is told apart from damage further up, because the
//! first can be cut and written again and the second is for a person to look at.
//!
//! Not here: what an entry means, and signatures. `FORMAT.md` describes the bytes.

pub mod error;
mod frame;
mod medium;
pub mod reader;
pub mod writer;

use std::path::{Path, PathBuf};

/// Name of the log in its folder.
pub const FILE_NAME: &str = "log.arena";

/// Largest entry in bytes.
pub const ENTRY_BYTES_MAX: usize = 4 << 20;

/// Returns where the log of `folder` lies.
pub fn path_in(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}

/// A place between two entries of one log, as its reader found it.
///
/// Only a reader hands these out, so that a log can be cut nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boundary {
    entry_count: u64,
    offset: u64,
}

impl Boundary {
    /// How many entries lie before it.
    pub fn entry_count(self) -> u64 {
        self.entry_count
    }

    /// How many bytes lie before it, the file's header included.
    pub fn offset(self) -> u64 {
        self.offset
    }
}
