//! Compares every hash tile and every bundle of a log with its entries, in one pass.
//!
//! Fed with the records in order, it recomputes all tiles and the root at each signed size,
//! and compares the files of earlier, smaller sizes with the fuller ones. Memory does not grow
//! with the log but by one number per head.
//!
//! Not here: signatures (`policy`), and whether an attachment is the one that its entry binds.

use std::io::Read;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::bundle::{ATTACHMENT_PREFIX_BYTES, ENTRY_PREFIX_BYTES};
use crate::edge::Edge;
use crate::error::LogError;
use crate::hash::{HASH_BYTES, Hash};
use crate::heads;
use crate::records::{Attachments, RecordRef};
use crate::storage::{Item, ItemKind, Storage};
use crate::tile::{self, Kind, Tile, WIDTH};

/// Most names that a folder of tiles, bundles or blobs may hold.
pub(crate) const NAMES_MAX: usize = 1 << 16;
/// Deepest folder of tiles: `tile`, the level, six groups of digits, the partial ones.
const DEPTH_MAX: usize = 10;
/// Bytes that are compared or hashed at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A pass over the entries of a log that compares them with its files.
pub struct TreeCheck {
    storage: Arc<dyn Storage>,
    attachments: Attachments,
    edge: Edge,
    /// How many entries there will have been.
    size: u64,
    /// The signed sizes, in order, and how many are behind.
    signed: Vec<u64>,
    passed: usize,
    /// Bytes of the current bundles up to here.
    entry_bytes: u64,
    attachment_bytes: u64,
}

impl TreeCheck {
    /// Starts at the first entry of a bundle, to which `edge` leads.
    pub(crate) fn new(
        storage: &Arc<dyn Storage>,
        attachments: Attachments,
        edge: Edge,
        size: u64,
        signed: Vec<u64>,
    ) -> TreeCheck {
        assert!(edge.size().is_multiple_of(WIDTH), "a check starts where a bundle starts");
        let passed = signed.partition_point(|size| *size <= edge.size());
        let storage = Arc::clone(storage);
        TreeCheck {
            storage,
            attachments,
            edge,
            size,
            signed,
            passed,
            entry_bytes: 0,
            attachment_bytes: 0,
        }
    }

    /// Takes the next record; returns its leaf hash, and the root if there is a head of the
    /// size that is reached with it.
    ///
    /// # Errors
    /// A tile is missing or holds another hash, or a smaller file differs from the fuller one.
    ///
    /// # Panics
    /// The record is not the next one.
    pub fn push(&mut self, record: &RecordRef<'_>) -> Result<Checked, LogError> {
        assert_eq!(record.index, self.edge.size(), "records are checked in order");
        let leaf = Hash::leaf(record.entry);
        let storage = &*self.storage;
        self.edge.push(leaf, &mut |tile, hashes| compare_tile(storage, tile, hashes))?;
        self.entry_bytes += ENTRY_PREFIX_BYTES + record.entry.len() as u64;
        let attachment_bytes = record.attachment.unwrap_or_default().len() as u64;
        self.attachment_bytes += ATTACHMENT_PREFIX_BYTES + attachment_bytes;
        let size = self.edge.size();
        let is_signed = self.signed.get(self.passed) == Some(&size);
        let root = if is_signed { Some(self.check_signed_size(size)?) } else { None };
        if size.is_multiple_of(WIDTH) {
            self.entry_bytes = 0;
            self.attachment_bytes = 0;
        }
        Ok(Checked { leaf, root })
    }

    /// Returns how many entries were checked.
    pub fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Ends the pass: looks for files that do not belong to the log, and hashes all blobs.
    ///
    /// # Errors
    /// There is such a file, or a blob is not what its name says.
    ///
    /// # Panics
    /// Not all records were pushed.
    pub fn finish(self) -> Result<(), LogError> {
        assert_eq!(self.edge.size(), self.size, "all records are checked");
        let storage = &*self.storage;
        for folder in [tile::TILE, tile::ATTACHMENT] {
            walk(storage, folder, &mut |path, kind| {
                let tile = Tile::parse(path).filter(|_| kind == ItemKind::File);
                match tile.filter(|tile| self.belongs(*tile)) {
                    Some(_) => Ok(()),
                    None => Err(LogError::UnexpectedFile { path: storage.shown(path) }),
                }
            })?;
        }
        check_blobs(storage)
    }

    /// Ends the pass where files beyond the log are no matter, and returns the right edge.
    pub(crate) fn into_edge(self) -> Edge {
        assert_eq!(self.edge.size(), self.size, "all records are checked");
        self.edge
    }

    fn check_signed_size(&mut self, size: u64) -> Result<Hash, LogError> {
        for (tile, hashes) in self.edge.partial() {
            compare_tile(&*self.storage, tile, hashes)?;
        }
        self.passed += 1;
        let number = (size - 1) / WIDTH;
        let (width, full) = (tile::width_at(number, size), tile::width_at(number, self.size));
        if width < full {
            let path = |width| tile::entry_bundle(number, width);
            compare_prefix(&*self.storage, &path(width), &path(full), self.entry_bytes)?;
            if let Attachments::In(folder) = self.attachments {
                let path = |width| tile::numbered(folder, number, width);
                let bytes = self.attachment_bytes;
                compare_prefix(&*self.storage, &path(width), &path(full), bytes)?;
            }
        }
        Ok(self.edge.root())
    }

    /// Returns whether a log with these heads has such a file.
    fn belongs(&self, tile: Tile) -> bool {
        let level = match tile.kind {
            Kind::Hashes(level) => level,
            Kind::Entries | Kind::Attachments => 0,
        };
        let end = tile.end();
        if tile.width == WIDTH {
            return end <= tile::hash_count(level, self.size);
        }
        // The right edge of some signed size is where this tile ends.
        let at = self.signed.partition_point(|size| tile::hash_count(level, *size) < end);
        self.signed.get(at).is_some_and(|size| tile::hash_count(level, *size) == end)
    }
}

impl std::fmt::Debug for TreeCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let folder = self.storage.folder().display();
        write!(f, "TreeCheck({folder}, {} of {})", self.edge.size(), self.size)
    }
}

/// What is known of a record once it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The hash of its leaf.
    pub leaf: Hash,
    /// The root of the tree up to it, where there is a head of this size.
    pub root: Option<Hash>,
}

/// Compares the head of a size, unverified, with the root of the entries.
pub(crate) fn compare_head(storage: &dyn Storage, size: u64, root: Hash) -> Result<(), LogError> {
    let path = tile::checkpoint(size);
    let Some((_, head)) = heads::read_claimed(storage, &path)? else {
        return Err(LogError::MissingFile { path: storage.shown(&path) });
    };
    compare_root(storage, &path, heads::LastSigned::of(&head), size, root)
}

/// Compares what a file says of a size with the root of the entries.
pub(crate) fn compare_root(
    storage: &dyn Storage,
    path: &str,
    said: heads::LastSigned,
    size: u64,
    root: Hash,
) -> Result<(), LogError> {
    if said.size != size {
        let wanted = heads::said(Some(heads::LastSigned { size, root }));
        let path = storage.shown(path);
        let found = heads::said(Some(said));
        return Err(LogError::TwoHeads { other: path.clone(), path, found, wanted });
    }
    if said.root != root {
        let (path, found) = (storage.shown(path), said.root);
        return Err(LogError::Root { path, size, found, computed: root });
    }
    Ok(())
}

/// Compares a hash tile with the hashes that the entries give.
fn compare_tile(storage: &dyn Storage, tile: Tile, hashes: &[Hash]) -> Result<(), LogError> {
    let path = tile.path();
    let bytes = storage.read_exactly(&path, (hashes.len() * HASH_BYTES) as u64)?;
    let pairs = bytes.chunks_exact(HASH_BYTES).zip(hashes).enumerate();
    for (position, (found, computed)) in pairs {
        if found != computed.0 {
            let found = Hash(found.try_into().expect("a chunk has the bytes of a hash"));
            let (path, computed) = (storage.shown(&path), *computed);
            return Err(LogError::Tile { path, position, found, computed });
        }
    }
    Ok(())
}

/// Compares a file with the first `bytes` bytes of a fuller one.
fn compare_prefix(
    storage: &dyn Storage,
    path: &str,
    fuller: &str,
    bytes: u64,
) -> Result<(), LogError> {
    let (mut part, length) = storage.reader(path)?;
    if length != bytes {
        return Err(LogError::Length { path: storage.shown(path), found: length, wanted: bytes });
    }
    let (mut whole, _) = storage.reader(fuller)?;
    let (mut left, mut right) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut offset = 0;
    while offset < bytes {
        let count = (bytes - offset).min(CHUNK_BYTES as u64) as usize;
        let (left, right) = (&mut left[..count], &mut right[..count]);
        part.read_exact(left).map_err(|error| storage.error("read", path, error))?;
        whole.read_exact(right).map_err(|error| storage.error("read", fuller, error))?;
        if let Some(at) = left.iter().zip(right.iter()).position(|(left, right)| left != right) {
            let (path, fuller) = (storage.shown(path), storage.shown(fuller));
            return Err(LogError::NotAPrefix { path, fuller, offset: offset + at as u64 });
        }
        offset += count as u64;
    }
    Ok(())
}

/// Checks that every published blob has its name and bytes.
fn check_blobs(storage: &dyn Storage) -> Result<(), LogError> {
    walk(storage, tile::BLOB, &mut |path, kind| {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        let hash = Hash::from_hex(name).filter(|hash| tile::blob(hash) == path);
        match hash.filter(|_| kind == ItemKind::File) {
            Some(hash) => check_blob(storage, path, hash),
            None => Err(LogError::UnexpectedFile { path: storage.shown(path) }),
        }
    })
}

fn check_blob(storage: &dyn Storage, path: &str, hash: Hash) -> Result<(), LogError> {
    let (mut reader, _) = storage.reader(path)?;
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = reader.read(&mut chunk);
        match read.map_err(|error| storage.error("read", path, error))? {
            0 => break,
            count => digest.update(&chunk[..count]),
        }
    }
    let found = Hash(digest.finalize().into());
    if found != hash {
        return Err(LogError::Blob { path: storage.shown(path), found });
    }
    Ok(())
}

/// What is done with a path that a walk meets.
pub(crate) type Visit<'a> = dyn FnMut(&str, ItemKind) -> Result<(), LogError> + 'a;

/// Visits all files under a folder in order, and whatever else is no folder. A folder deeper
/// than any of a log is visited like a file.
pub(crate) fn walk(
    storage: &dyn Storage,
    folder: &str,
    visit: &mut Visit<'_>,
) -> Result<(), LogError> {
    let mut open: Vec<(String, std::vec::IntoIter<Item>)> = Vec::new();
    open.push((folder.to_owned(), storage.items(folder, NAMES_MAX)?.into_iter()));
    while let Some((folder, items)) = open.last_mut() {
        let Some(item) = items.next() else {
            open.pop();
            continue;
        };
        let path = format!("{folder}/{}", item.name);
        if item.kind == ItemKind::Folder && open.len() < DEPTH_MAX {
            let items = storage.items(&path, NAMES_MAX)?.into_iter();
            open.push((path, items));
        } else {
            visit(&path, item.kind)?;
        }
    }
    Ok(())
}
