//! What can go wrong with a log, with the facts that a person needs.
//!
//! Every variant that speaks of damage names the file and both values: what is there and what
//! should be. Nothing is repaired behind anyone's back.
//!
//! Not here: how it is said (`error_text`), malformed notes and heads (`note`, `checkpoint`), and
//! failed proofs (`proof`).

use std::io;
use std::path::PathBuf;

use crate::checkpoint::HeadError;
use crate::hash::Hash;
use crate::proof::ProofError;

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
    /// There is a link, pipe, device or folder where a regular file or a folder belongs.
    Special {
        /// What it is called.
        path: PathBuf,
    },
    /// There is no log.
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A log has entries, but no head that was ever published.
    NoHead {
        /// Where the head would be.
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
    /// A file that belongs to the signed part of the log is not there.
    MissingFile {
        /// The file.
        path: PathBuf,
    },
    /// A file that no log of this content has.
    UnexpectedFile {
        /// The file.
        path: PathBuf,
    },
    /// A folder holds more names than any log needs.
    TooManyFiles {
        /// The folder.
        path: PathBuf,
        /// The most that are looked at.
        most: usize,
    },
    /// A file has another length than it must have.
    Length {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        found: u64,
        /// The bytes that it should have.
        wanted: u64,
    },
    /// A file is larger than any of its kind.
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// Its bytes, as far as they were counted.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// An entry or attachment in a bundle cannot be read.
    Bundle {
        /// The file.
        path: PathBuf,
        /// Which entry, counted from 0.
        index: u64,
        /// What is wrong.
        damage: BundleDamage,
    },
    /// A hash tile holds another hash than the entries give.
    Tile {
        /// The file.
        path: PathBuf,
        /// Which hash in it, counted from 0.
        position: usize,
        /// The hash in the file.
        found: Hash,
        /// The hash of what lies below it.
        computed: Hash,
    },
    /// A file of an earlier, smaller size is not what the fuller file starts with.
    NotAPrefix {
        /// The file of the smaller size.
        path: PathBuf,
        /// The fuller file.
        fuller: PathBuf,
        /// The first byte that differs, counted from 0.
        offset: u64,
    },
    /// A head claims another root than the entries give.
    Root {
        /// The file with the head.
        path: PathBuf,
        /// How many entries the head covers.
        size: u64,
        /// The root it claims.
        found: Hash,
        /// The root of the entries.
        computed: Hash,
    },
    /// The entries as they lie on the disk give another root than they gave in memory.
    Memory {
        /// How many entries.
        size: u64,
        /// The root of what was appended.
        appended: Hash,
        /// The root of what is on the disk.
        stored: Hash,
    },
    /// A blob's bytes are not those that it is named after.
    Blob {
        /// The file.
        path: PathBuf,
        /// The hash of its bytes.
        found: Hash,
    },
    /// A file holds no head, or one that is not signed as it should be.
    Head {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: HeadError,
    },
    /// The log is another one than the caller's, or of another key.
    ForeignKey {
        /// The file.
        path: PathBuf,
        /// The key in it.
        found: String,
        /// The caller's key.
        wanted: String,
    },
    /// Two heads that should be the same differ.
    TwoHeads {
        /// One file.
        path: PathBuf,
        /// What it says.
        found: String,
        /// The other file.
        other: PathBuf,
        /// What that says.
        wanted: String,
    },
    /// The file of the last signed head is not of its form.
    LastSigned {
        /// The file.
        path: PathBuf,
    },
    /// A head was published, but nothing says that it was signed here.
    LastSignedMissing {
        /// The file that should be there.
        path: PathBuf,
        /// A published size.
        published: u64,
    },
    /// A head was published, or cosigned by a witness, that is larger than the last one known to
    /// be signed.
    PublishedAhead {
        /// The file with the larger head.
        path: PathBuf,
        /// Its size.
        published: u64,
        /// The last signed size.
        signed: u64,
    },
    /// Someone else has changed the file of the last signed head.
    LastSignedChanged {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What this writer left there.
        wanted: String,
    },
    /// The journal starts beyond the last signed head: entries between them are lost.
    JournalAhead {
        /// The journal.
        path: PathBuf,
        /// The index of its first entry.
        base: u64,
        /// The last signed size.
        signed: u64,
    },
    /// The file is no journal, or its header is damaged.
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// The journal is in another layout.
    Version {
        /// The journal.
        path: PathBuf,
        /// The version found.
        found: u32,
    },
    /// What was appended cannot be read back from the journal.
    JournalDamaged {
        /// The journal.
        path: PathBuf,
        /// The entry that is not whole, counted from 0.
        index: u64,
        /// What is wrong with it.
        damage: FrameDamage,
    },
    /// Heads are to be signed at other sizes than a log can have.
    CheckpointEvery {
        /// The distance asked for.
        found: u64,
    },
    /// The key or the origin cannot be written as a verifier key.
    Origin {
        /// The origin.
        origin: String,
        /// What is wrong.
        error: HeadError,
    },
    /// A log without entries has no head.
    Empty,
    /// A log cannot go on at this size.
    ResumeAt {
        /// The size asked for.
        found: u64,
        /// What is signed, and so must stay.
        signed: u64,
        /// How many whole entries there are.
        whole: u64,
    },
    /// Entries are not signed yet, and nothing may be published before they are.
    Unsigned {
        /// How many entries there are.
        size: u64,
        /// How many are signed.
        signed: u64,
    },
    /// An entry is larger than the log takes. Nothing was written.
    EntryTooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// An attachment is larger than the log takes. Nothing was written.
    AttachmentTooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// There is no entry of this index.
    NoEntry {
        /// The index asked for.
        index: u64,
        /// How many entries there are.
        size: u64,
    },
    /// A proof was asked for that cannot be.
    Proof(ProofError),
    /// An earlier operation failed; nothing more is written through this handle.
    Broken {
        /// The log.
        path: PathBuf,
    },
}

/// What is wrong with an entry or attachment in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleDamage {
    /// The file ends within it.
    Short,
    /// It claims more bytes than an attachment may have.
    Length {
        /// The claim.
        found: u32,
    },
    /// Bytes follow after the last one.
    Trailing {
        /// How many.
        bytes: u64,
    },
}

/// What is wrong with a frame of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDamage {
    /// The file ends within it.
    Short,
    /// It claims more bytes than an entry or an attachment may have.
    Length {
        /// The claim for the entry.
        entry: u32,
        /// The claim for the attachment.
        attachment: u32,
    },
    /// Its bytes are not the ones that were written.
    Checksum {
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes in the file.
        computed: u32,
    },
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogError::Io { source, .. } => Some(source),
            LogError::Head { error, .. } | LogError::Origin { error, .. } => Some(error),
            LogError::Proof(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ProofError> for LogError {
    fn from(error: ProofError) -> LogError {
        LogError::Proof(error)
    }
}
