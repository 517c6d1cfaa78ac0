//! The files that say what was signed: `checkpoint`, `checkpoints/SIZE`, `last-signed`, and what
//! witnesses have left beside them.
//!
//! `last-signed` is the memory of the signer. It moves before a signature is made and only
//! from what this process believes to be there, so that no two heads of one size, and no
//! smaller head after a larger one, are ever signed with one copy of the log.
//!
//! Not here: what must be on the disk before a head may be signed (`seal`).

use std::collections::BTreeMap;

use crate::checkpoint::{Head, HeadError};
use crate::error::LogError;
use crate::hash::Hash;
use crate::note::{NOTE_BYTES_MAX, Note, Vkey};
use crate::storage::{ItemKind, Storage};
use crate::{text, tile};

/// Most heads that a log may have.
pub(crate) const SIGNED_SIZES_MAX: usize = 1 << 20;

/// Longest content of `last-signed`: a size, a space, a root, a line feed.
const LAST_SIGNED_BYTES_MAX: u64 = 20 + 1 + 64 + 1;

/// The last head that was signed, as its file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastSigned {
    pub size: u64,
    pub root: Hash,
}

impl LastSigned {
    pub fn of(head: &Head) -> LastSigned {
        LastSigned { size: head.size, root: head.root }
    }

    fn text(self) -> String {
        format!("{} {}\n", self.size, self.root)
    }

    fn parse(bytes: &[u8]) -> Option<LastSigned> {
        let line = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
        let (size, root) = line.split_once(' ')?;
        Some(LastSigned { size: text::from_decimal(size)?, root: Hash::from_hex(root)? })
    }

    /// Reads the file, if it is there.
    pub fn read(storage: &dyn Storage) -> Result<Option<LastSigned>, LogError> {
        let Some(bytes) = storage.read_if_there(tile::LAST_SIGNED, LAST_SIGNED_BYTES_MAX)? else {
            return Ok(None);
        };
        let path = || storage.shown(tile::LAST_SIGNED);
        let parsed = LastSigned::parse(&bytes).ok_or_else(|| LogError::LastSigned { path: path() });
        parsed.map(Some)
    }

    /// Writes the file, durably, if it still says what this process believes.
    pub fn swap(
        storage: &dyn Storage,
        believed: Option<LastSigned>,
        next: LastSigned,
    ) -> Result<(), LogError> {
        let found = LastSigned::read(storage)?;
        if found != believed {
            let path = storage.shown(tile::LAST_SIGNED);
            let (found, wanted) = (said(found), said(believed));
            return Err(LogError::LastSignedChanged { path, found, wanted });
        }
        if let Some(last) = believed {
            assert!(next.size >= last.size, "no smaller head is signed after a larger one");
            assert!(next.size > last.size || next == last, "one size has one root");
        }
        storage.replace(tile::LAST_SIGNED, next.text().as_bytes())
    }
}

/// Puts a head in words, for messages.
pub(crate) fn said(head: Option<LastSigned>) -> String {
    match head {
        None => "nothing".to_owned(),
        Some(LastSigned { size, root }) => format!("size {size}, root {root}"),
    }
}

/// Publishes a signed head: first among all heads, then as the newest.
pub(crate) fn publish(storage: &dyn Storage, size: u64, note: &str) -> Result<(), LogError> {
    storage.make_folders(tile::CHECKPOINTS)?;
    storage.replace(&tile::checkpoint(size), note.as_bytes())?;
    storage.replace(tile::CHECKPOINT, note.as_bytes())
}

/// Reads a head and checks its signature; `None` where there is no such file.
pub(crate) fn read_signed(
    storage: &dyn Storage,
    path: &str,
    vkey: &Vkey,
) -> Result<Option<Head>, LogError> {
    let Some(bytes) = storage.read_if_there(path, NOTE_BYTES_MAX as u64)? else {
        return Ok(None);
    };
    let opened = Head::open(&bytes, vkey);
    opened.map(Some).map_err(|error| LogError::Head { path: storage.shown(path), error })
}

/// Reads a head without checking its signature, and returns the file's bytes with it.
pub(crate) fn read_claimed(
    storage: &dyn Storage,
    path: &str,
) -> Result<Option<(Vec<u8>, Head)>, LogError> {
    let Some(bytes) = storage.read_if_there(path, NOTE_BYTES_MAX as u64)? else {
        return Ok(None);
    };
    let parsed = Note::parse(&bytes).map_err(HeadError::Note);
    let head = parsed.and_then(|note| Head::parse(note.text()));
    let head = head.map_err(|error| LogError::Head { path: storage.shown(path), error })?;
    Ok(Some((bytes, head)))
}

/// Returns the sizes of all published heads, the smallest first.
pub(crate) fn signed_sizes(storage: &dyn Storage) -> Result<Vec<u64>, LogError> {
    let mut sizes = Vec::new();
    for item in storage.items(tile::CHECKPOINTS, SIGNED_SIZES_MAX)? {
        let size = text::from_decimal(&item.name).filter(|_| item.kind == ItemKind::File);
        let path = || storage.shown(&format!("{}/{}", tile::CHECKPOINTS, item.name));
        sizes.push(size.ok_or_else(|| LogError::UnexpectedFile { path: path() })?);
    }
    sizes.sort_unstable();
    Ok(sizes)
}

/// Reads the heads that this log signed and witnesses cosigned: by size, where each lies and its
/// root. What is no such head is somebody else's, and says nothing here.
pub(crate) fn witnessed(
    storage: &dyn Storage,
    vkey: &Vkey,
) -> Result<BTreeMap<u64, Vec<(String, Hash)>>, LogError> {
    let mut heads: BTreeMap<u64, Vec<(String, Hash)>> = BTreeMap::new();
    // Each of them may be under way to be replaced.
    let items = storage.items(tile::WITNESS, 2 * tile::WITNESS_NAMES_MAX)?;
    for item in items {
        if item.kind != ItemKind::File || tile::is_under_way(&item.name) {
            continue;
        }
        let path = format!("{}/{}", tile::WITNESS, item.name);
        let bytes = match storage.read_if_there(&path, NOTE_BYTES_MAX as u64) {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(LogError::FileTooLarge { .. } | LogError::Special { .. }) => continue,
            Err(error) => return Err(error),
        };
        if let Ok(head) = Head::open(&bytes, vkey) {
            heads.entry(head.size).or_default().push((path, head.root));
        }
    }
    Ok(heads)
}
