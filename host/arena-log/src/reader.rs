//! Reads a log as it lies in its folder, one record in memory at a time.
//!
//! A reader takes no lock and believes nothing: it gives out what the files say, in the shape
//! that a verifier needs. Every size is bounded before anything is allocated.
//!
//! Not here: whether a head is signed by whom it should be (`policy`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::check::{TreeCheck, compare_head};
use crate::checkpoint::Head;
use crate::disk::Disk;
use crate::edge::Edge;
use crate::error::LogError;
use crate::hash::{HASH_BYTES, Hash};
use crate::journal::JournalReader;
use crate::note::NOTE_BYTES_MAX;
use crate::proof;
use crate::records::{Attachments, RecordRef, Records};
use crate::storage::Storage;
use crate::tile::{self, WIDTH};
use crate::tree::{Node, root_of};
use crate::{blobs, heads};

/// Levels of the tree that one tile spans.
const LEVELS_PER_TILE: u8 = 8;

/// What a reader may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// What is published: the entries of the newest head.
    Public,
    /// Also what is withheld, and entries beyond the newest head.
    Owner,
}

/// Reads one log.
pub struct LogReader {
    storage: Arc<dyn Storage>,
    access: Access,
    attachments: Attachments,
    checkpoint: Vec<u8>,
    head: Head,
    records: Records,
    single: Option<Records>,
    /// The last tile that was read on each level.
    tiles: BTreeMap<u8, (u64, Vec<Hash>)>,
}

impl LogReader {
    /// Opens the log in `folder`.
    ///
    /// # Errors
    /// There is none, it has no head yet, or it cannot be read.
    pub fn open(folder: &Path, access: Access) -> Result<LogReader, LogError> {
        LogReader::open_on(Arc::new(Disk::open(folder)?), access)
    }

    /// Opens the log on any storage.
    ///
    /// # Errors
    /// As [`LogReader::open`].
    pub fn open_on(storage: Arc<dyn Storage>, access: Access) -> Result<LogReader, LogError> {
        // The journal is opened before the head is read: a writer at work replaces it after
        // the head, so that there is no gap between the two.
        let journal = match access {
            Access::Public => None,
            Access::Owner => JournalReader::open(&storage)?,
        };
        let Some((checkpoint, head)) = heads::read_claimed(&*storage, tile::CHECKPOINT)? else {
            let path = storage.shown(tile::CHECKPOINT);
            let has_vkey = storage.reader_if_there(tile::VKEY)?.is_some();
            return Err(match journal.is_some() || has_vkey {
                true => LogError::NoHead { path },
                false => LogError::Missing { path: storage.folder().to_owned() },
            });
        };
        let attachments = match access {
            _ if storage.has_folder(tile::ATTACHMENT)? => Attachments::In(tile::ATTACHMENT),
            Access::Owner => Attachments::In(tile::PRIVATE_ATTACHMENT),
            Access::Public => Attachments::Withheld,
        };
        let mut records = Records::new(&storage, head.size, 0, attachments);
        if let Some(journal) = journal {
            if journal.base() > head.size {
                let (path, base) = (storage.shown(tile::JOURNAL), journal.base());
                return Err(LogError::JournalAhead { path, base, signed: head.size });
            }
            records = records.then(journal);
        }
        let (single, tiles) = (None, BTreeMap::new());
        Ok(LogReader { storage, access, attachments, checkpoint, head, records, single, tiles })
    }

    /// Returns the log's folder.
    pub fn folder(&self) -> &Path {
        self.storage.folder()
    }

    /// Returns the newest head as its file has it.
    pub fn checkpoint_bytes(&self) -> &[u8] {
        &self.checkpoint
    }

    /// Returns what the newest head says. Nobody has verified it.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns whether attachments cannot be read because they are not published.
    pub fn is_withheld(&self) -> bool {
        self.attachments == Attachments::Withheld
    }

    /// Returns the sizes of all published heads, the smallest first.
    ///
    /// # Errors
    /// There is a file that is no head, or the folder cannot be read.
    pub fn signed_sizes(&self) -> Result<Vec<u64>, LogError> {
        heads::signed_sizes(&*self.storage)
    }

    /// Returns the head of a size as its file has it.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn checkpoint_at(&self, size: u64) -> Result<Vec<u8>, LogError> {
        let path = tile::checkpoint(size);
        let bytes = self.storage.read_if_there(&path, NOTE_BYTES_MAX as u64)?;
        bytes.ok_or_else(|| LogError::MissingFile { path: self.storage.shown(&path) })
    }

    /// Reads the next record: first those of the head, then, for the owner, the journal's.
    /// `None` after the last whole one.
    ///
    /// # Errors
    /// A bundle is missing, damaged or unreadable.
    pub fn next_record(&mut self) -> Result<Option<RecordRef<'_>>, LogError> {
        self.records.next_record()
    }

    /// Reads one record of the head without those before its bundle.
    ///
    /// # Errors
    /// There is no such record, or its bundle is missing, damaged or unreadable.
    pub fn get(&mut self, index: u64) -> Result<RecordRef<'_>, LogError> {
        let size = self.head.size;
        if index >= size {
            return Err(LogError::NoEntry { index, size });
        }
        let kept = self.single.take().filter(|records| records.next_index() == index);
        let fresh = || Records::new(&self.storage, size, index, self.attachments);
        let records = self.single.insert(kept.unwrap_or_else(fresh));
        let record = records.next_record()?;
        record.ok_or(LogError::NoEntry { index, size })
    }

    /// Reads a blob of at most `bytes_max` bytes and checks its hash; `None` where there is
    /// none, or it is withheld.
    ///
    /// # Errors
    /// It is larger, has other bytes than its name says, or cannot be read.
    pub fn blob(&self, hash: &Hash, bytes_max: u64) -> Result<Option<Vec<u8>>, LogError> {
        let found = blobs::read(&*self.storage, tile::BLOB, hash, bytes_max)?;
        match self.access {
            Access::Owner if found.is_none() => {
                blobs::read(&*self.storage, tile::PRIVATE_BLOB, hash, bytes_max)
            }
            Access::Owner | Access::Public => Ok(found),
        }
    }

    /// Reads the hash of a perfect node of the head's tree from the hash tiles, unverified.
    ///
    /// # Errors
    /// The tile is missing, has another length, or cannot be read.
    ///
    /// # Panics
    /// The tree has no such node.
    pub fn node(&mut self, node: Node) -> Result<Hash, LogError> {
        let level = node.level / LEVELS_PER_TILE;
        let width = 1 << (node.level % LEVELS_PER_TILE);
        let first = node.index.checked_mul(width).expect("a tree has such a node");
        let number = first / WIDTH;
        let count = tile::hash_count(level, self.head.size);
        assert!(first + width <= count, "the tree of {} has no {node:?}", self.head.size);
        if self.tiles.get(&level).is_none_or(|(kept, _)| *kept != number) {
            let path = tile::hash_tile(level, number, tile::width_at(number, count));
            let wanted = tile::width_at(number, count) * HASH_BYTES as u64;
            let bytes = self.storage.read_exactly(&path, wanted)?;
            let (hashes, _) = bytes.as_chunks::<HASH_BYTES>();
            self.tiles.insert(level, (number, hashes.iter().copied().map(Hash).collect()));
        }
        let (_, hashes) = &self.tiles[&level];
        let start = (first % WIDTH) as usize;
        Ok(root_of(&hashes[start..start + width as usize]))
    }

    /// Proves that entry `index` is in the head's tree.
    ///
    /// # Errors
    /// There is no such entry, or a tile cannot be read.
    pub fn inclusion_proof(&mut self, index: u64) -> Result<Vec<Hash>, LogError> {
        proof::inclusion_proof(index, self.head.size, &mut |node| self.node(node))
    }

    /// Proves that the tree of `old` entries is the beginning of the head's.
    ///
    /// # Errors
    /// The old tree is the larger one, or a tile cannot be read.
    pub fn consistency_proof(&mut self, old: u64) -> Result<Vec<Hash>, LogError> {
        proof::consistency_proof(old, self.head.size, &mut |node| self.node(node))
    }

    /// Starts a pass over the head's records that compares them with all files.
    ///
    /// # Errors
    /// The head is not among the published ones, or one of them is larger.
    pub fn tree_check(&self) -> Result<TreeCheck, LogError> {
        let storage = &*self.storage;
        let (sizes, size) = (self.signed_sizes()?, self.head.size);
        if let Some(beyond) = sizes.iter().rev().find(|&&beyond| beyond > size) {
            let path = storage.shown(&tile::checkpoint(*beyond));
            return Err(LogError::PublishedAhead { path, published: *beyond, signed: size });
        }
        if self.checkpoint_at(size)? != self.checkpoint {
            return Err(LogError::TwoHeads {
                path: storage.shown(&tile::checkpoint(size)),
                found: "other bytes".to_owned(),
                other: storage.shown(tile::CHECKPOINT),
                wanted: heads::said(Some(heads::LastSigned::of(&self.head))),
            });
        }
        let start = Edge::default();
        Ok(TreeCheck::new(&self.storage, self.attachments, start, size, sizes))
    }

    /// Compares everything that the head covers: entries, tiles, the files of smaller sizes,
    /// and the roots of all published heads, whose signatures nobody has verified here.
    ///
    /// # Errors
    /// The first difference, with both values.
    pub fn verify_tree(&self) -> Result<(), LogError> {
        let mut check = self.tree_check()?;
        let mut records = Records::new(&self.storage, self.head.size, 0, self.attachments);
        while let Some(record) = records.next_record()? {
            if let Some(root) = check.push(&record)?.root {
                compare_head(&*self.storage, check.size(), root)?;
            }
        }
        check.finish()
    }
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LogReader({}, {:?})", self.folder().display(), self.head)
    }
}
