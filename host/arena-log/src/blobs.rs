//! Blobs: files named by the SHA-256 of their bytes, public ones and withheld ones.
//!
//! A blob is whole or not there. Publishing moves the withheld ones in between the public
//! ones; it can be broken off anywhere and begun again.
//!
//! Not here: what a blob is for.

use crate::check::NAMES_MAX;
use crate::error::LogError;
use crate::hash::Hash;
use crate::storage::{ItemKind, Storage, folder_of};
use crate::tile;

/// Whether a blob may be seen before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Anyone may have it at once.
    Public,
    /// Withheld until the log is published.
    Private,
}

/// Puts a blob into `folder`, durably. One that is there with these bytes stays.
pub(crate) fn put(storage: &dyn Storage, folder: &str, bytes: &[u8]) -> Result<Hash, LogError> {
    let hash = Hash::of(bytes);
    let path = tile::blob_in(folder, &hash);
    storage.make_folders(folder_of(&path))?;
    let found = storage.read_if_there(&path, bytes.len() as u64);
    // Whatever is there with other bytes is what a broken disk left: nothing has named it yet.
    let is_there = matches!(found, Ok(Some(found)) if found == bytes);
    if !is_there {
        storage.replace(&path, bytes)?;
    }
    let mut folder = folder_of(&path);
    loop {
        storage.settle(folder)?;
        if folder.is_empty() {
            return Ok(hash);
        }
        folder = folder_of(folder);
    }
}

/// Reads a blob of at most `bytes_max` bytes, if it is in `folder`.
pub(crate) fn read(
    storage: &dyn Storage,
    folder: &str,
    hash: &Hash,
    bytes_max: u64,
) -> Result<Option<Vec<u8>>, LogError> {
    let path = tile::blob_in(folder, hash);
    let Some(bytes) = storage.read_if_there(&path, bytes_max)? else {
        return Ok(None);
    };
    let found = Hash::of(&bytes);
    if found != *hash {
        return Err(LogError::Blob { path: storage.shown(&path), found });
    }
    Ok(Some(bytes))
}

/// Moves every withheld blob to the public ones, durably.
pub(crate) fn publish(storage: &dyn Storage) -> Result<(), LogError> {
    let groups = storage.items(tile::PRIVATE_BLOB, NAMES_MAX)?;
    if groups.is_empty() {
        return Ok(());
    }
    for group in &groups {
        let from = format!("{}/{}", tile::PRIVATE_BLOB, group.name);
        if group.kind != ItemKind::Folder {
            return Err(LogError::UnexpectedFile { path: storage.shown(&from) });
        }
        storage.make_folders(&format!("{}/{}", tile::BLOB, group.name))?;
    }
    // A folder whose own name may be lost is no place to move anything to.
    storage.settle(tile::BLOB)?;
    storage.settle("")?;
    for group in groups {
        let from = format!("{}/{}", tile::PRIVATE_BLOB, group.name);
        let to = format!("{}/{}", tile::BLOB, group.name);
        for blob in storage.items(&from, NAMES_MAX)? {
            let path = format!("{from}/{}", blob.name);
            let hash = Hash::from_hex(&blob.name);
            if hash.is_none_or(|hash| tile::blob_in(tile::PRIVATE_BLOB, &hash) != path) {
                return Err(LogError::UnexpectedFile { path: storage.shown(&path) });
            }
            storage.move_to(&path, &format!("{to}/{}", blob.name))?;
        }
        storage.settle(&to)?;
        storage.settle(&from)?;
    }
    Ok(())
}
