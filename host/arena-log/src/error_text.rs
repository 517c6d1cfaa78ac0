//! What is said to the person who can do something about a log.
//!
//! Lower-case fragments, values in backticks or as numbers, both sides of a mismatch.
//!
//! Not here: the facts (`error`).

use std::fmt;

use crate::bundle::{ATTACHMENT_BYTES_MAX, ENTRY_BYTES_MAX};
use crate::error::{BundleDamage, FrameDamage, LogError};
use crate::{journal, tile};

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
            LogError::FileTooLarge { path, bytes, most } => {
                write!(f, "`{}` has {bytes} bytes, the most is {most}", path.display())
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
