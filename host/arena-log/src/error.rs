//! What can go wrong with a log, with the facts that a person needs.
//!
//! Every variant that speaks of damage names the file and both values: what is there and what
//! should be. Nothing is repaired behind anyone's back.
//!
//! Not here: malformed notes and heads (`note`, `checkpoint`) and failed proofs (`proof`).

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::bundle::{ATTACHMENT_BYTES_MAX, ENTRY_BYTES_MAX};
use crate::checkpoint::HeadError;
use crate::hash::Hash;
use crate::proof::ProofError;
use crate::{journal, tile};

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
        /// The bytes that it should have, or the most that it may.
        wanted: u64,
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
    /// A head was published that is larger than the last one known to be signed.
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

impl fmt::Display for BundleDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BundleDamage::Short => write!(f, "it runs beyond the end of the file"),
            BundleDamage::Length { found } => {
                write!(f, "its length is {found} bytes, the most is {ATTACHMENT_BYTES_MAX}")
            }
            BundleDamage::Trailing { bytes } => {
                write!(f, "{bytes} bytes follow after it, but it is the last one")
            }
        }
    }
}

impl fmt::Display for FrameDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameDamage::Short => write!(f, "it runs beyond the end of the file"),
            FrameDamage::Length { entry, attachment } => write!(
                f,
                "its lengths are {entry} and {attachment} bytes, the most are {ENTRY_BYTES_MAX} \
                 and {ATTACHMENT_BYTES_MAX}",
            ),
            FrameDamage::Checksum { stored, computed } => {
                write!(f, "its checksum is {stored:08x}, its bytes give {computed:08x}")
            }
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io { .. }
            | LogError::Special { .. }
            | LogError::Missing { .. }
            | LogError::NoHead { .. }
            | LogError::Exists { .. }
            | LogError::Locked { .. }
            | LogError::ForeignFile { .. }
            | LogError::Broken { .. } => self.fmt_place(f),
            LogError::EntryTooLarge { .. }
            | LogError::AttachmentTooLarge { .. }
            | LogError::CheckpointEvery { .. }
            | LogError::Origin { .. }
            | LogError::Empty
            | LogError::ResumeAt { .. }
            | LogError::Unsigned { .. }
            | LogError::NoEntry { .. }
            | LogError::Proof(_) => self.fmt_request(f),
            LogError::Head { .. }
            | LogError::ForeignKey { .. }
            | LogError::TwoHeads { .. }
            | LogError::LastSigned { .. }
            | LogError::LastSignedMissing { .. }
            | LogError::PublishedAhead { .. }
            | LogError::LastSignedChanged { .. } => self.fmt_head(f),
            _ => self.fmt_damage(f),
        }
    }
}

impl LogError {
    fn fmt_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io { doing, path, source } => {
                write!(f, "cannot {doing} `{}`: {source}", path.display())
            }
            LogError::Special { path } => {
                write!(f, "`{}` is a link or no regular file: a log holds neither", path.display())
            }
            LogError::Missing { path } => write!(f, "no log at `{}`", path.display()),
            LogError::NoHead { path } => {
                write!(f, "no head was published yet: there is no `{}`", path.display())
            }
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
            LogError::Broken { path } => {
                write!(f, "log `{}` takes nothing more after a failed write", path.display())
            }
            _ => Ok(()),
        }
    }

    fn fmt_request(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::EntryTooLarge { bytes } => {
                write!(f, "an entry has {bytes} bytes, the most is {ENTRY_BYTES_MAX}")
            }
            LogError::AttachmentTooLarge { bytes } => {
                write!(f, "an attachment has {bytes} bytes, the most is {ATTACHMENT_BYTES_MAX}")
            }
            LogError::CheckpointEvery { found } => write!(
                f,
                "a head every {found} entries is not possible: choose a multiple of {}",
                tile::WIDTH,
            ),
            LogError::Origin { origin, error } => {
                write!(f, "`{}` cannot name a log: {error}", origin.escape_debug())
            }
            LogError::Empty => write!(f, "a log without entries has no head to sign"),
            LogError::ResumeAt { found, signed, whole } => write!(
                f,
                "the log cannot go on at {found} entries: {signed} are signed, {whole} are whole",
            ),
            LogError::Unsigned { size, signed } => write!(
                f,
                "nothing is published before all entries are signed: there are {size}, {signed} \
                 are signed",
            ),
            LogError::NoEntry { index, size } => {
                write!(f, "there is no entry {index}: the log has {size}")
            }
            LogError::Proof(error) => write!(f, "{error}"),
            _ => Ok(()),
        }
    }

    fn fmt_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Head { path, error } => write!(f, "`{}`: {error}", path.display()),
            LogError::ForeignKey { path, found, wanted } => write!(
                f,
                "`{}` holds the key `{}`, the key in use is `{wanted}`",
                path.display(),
                found.escape_debug(),
            ),
            LogError::TwoHeads { path, found, other, wanted } => write!(
                f,
                "`{}` says {found}, `{}` says {wanted}: do not sign anything before this is \
                 understood",
                path.display(),
                other.display(),
            ),
            LogError::LastSigned { path } => {
                write!(f, "`{}` is not a size and a root", path.display())
            }
            LogError::LastSignedMissing { path, published } => write!(
                f,
                "`{}` is missing, but a head of size {published} was published: restore the \
                 newest copy",
                path.display(),
            ),
            LogError::PublishedAhead { path, published, signed } => write!(
                f,
                "`{}` has size {published}, but the last signed size is {signed}: this looks like \
                 an old copy of the log",
                path.display(),
            ),
            LogError::LastSignedChanged { path, found, wanted } => write!(
                f,
                "`{}` says {found}, this process left {wanted} there: another process signs",
                path.display(),
            ),
            _ => Ok(()),
        }
    }

    fn fmt_damage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::MissingFile { path } => {
                write!(f, "`{}` is missing, but belongs to the signed log", path.display())
            }
            LogError::UnexpectedFile { path } => {
                write!(f, "`{}` is not part of this log", path.display())
            }
            LogError::TooManyFiles { path, most } => {
                write!(f, "folder `{}` holds more than {most} names", path.display())
            }
            LogError::Length { path, found, wanted } => {
                write!(f, "`{}` has {found} bytes, expected {wanted}", path.display())
            }
            LogError::Bundle { path, index, damage } => {
                write!(f, "entry {index} in `{}`: {damage}", path.display())
            }
            LogError::Tile { path, position, found, computed } => write!(
                f,
                "hash {position} in `{}` is {found}, what lies below it gives {computed}",
                path.display(),
            ),
            LogError::NotAPrefix { path, fuller, offset } => write!(
                f,
                "`{}` is not what `{}` starts with: they differ at byte {offset}",
                path.display(),
                fuller.display(),
            ),
            LogError::Root { path, size, found, computed } => write!(
                f,
                "`{}` says that the root of {size} entries is {found}, they give {computed}",
                path.display(),
            ),
            LogError::Memory { size, appended, stored } => write!(
                f,
                "the root of the {size} entries that were appended is {appended}, the disk holds \
                 {stored}: check memory and disk",
            ),
            LogError::Blob { path, found } => {
                write!(f, "`{}` holds bytes with the hash {found}", path.display())
            }
            LogError::JournalAhead { path, base, signed } => write!(
                f,
                "`{}` starts at entry {base}, but only {signed} are signed: this looks like an \
                 old copy of the log",
                path.display(),
            ),
            LogError::NotAJournal { path } => write!(f, "`{}` is not a journal", path.display()),
            LogError::Version { path, found } => write!(
                f,
                "journal `{}` has layout version {found}, this program reads {}",
                path.display(),
                journal::VERSION,
            ),
            LogError::JournalDamaged { path, index, damage } => {
                write!(f, "entry {index} in `{}`: {damage}", path.display())
            }
            _ => Ok(()),
        }
    }
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
