//! Turns the entries of the journal into bundles and hash tiles, and reads them back.
//!
//! Everything is on the disk, and was read again and compared, before a root is given out.
//! Files of earlier sizes are never touched: only names beyond the signed size are written.
//! Memory is bounded by one record, whatever the bundles weigh.
//!
//! Not here: signing (`writer`), and the heads' own files (`heads`).

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use crate::bundle::{attachment_prefix, entry_prefix};
use crate::check::TreeCheck;
use crate::edge::Edge;
use crate::error::{FrameDamage, LogError};
use crate::hash::{HASH_BYTES, Hash};
use crate::journal::{Frame, JournalReader};
use crate::records::{Attachments, Records};
use crate::storage::{Sink, Storage, folder_of};
use crate::tile::{self, Kind, WIDTH};

/// Files that are written before they are synced together. The system can then write them
/// at once instead of one after the other.
const PENDING_FILES_MAX: usize = 64;
/// Bytes that are gathered before they are written to a bundle.
const WRITE_BYTES: usize = 64 << 10;

/// Writes what lies between the signed size, at which `edge` stands, and `size`; then reads it
/// back. Returns the right edge at `size` and the root as the disk gives it.
pub(crate) fn seal(
    storage: &Arc<dyn Storage>,
    edge: &Edge,
    size: u64,
    attachments: &'static str,
) -> Result<(Edge, Hash), LogError> {
    assert!(size > edge.size(), "there is something to seal");
    write_files(storage, edge.clone(), size, attachments)?;
    let mut edge = edge.clone();
    edge.cut_to_bundle();
    let place = Attachments::In(attachments);
    let mut records = Records::new(storage, size, edge.size(), place);
    let mut check = TreeCheck::new(storage, place, edge, size, vec![size]);
    let mut root = None;
    while let Some(record) = records.next_record()? {
        root = check.push(&record)?.root;
    }
    Ok((check.into_edge(), root.expect("the last size of a check is a signed one")))
}

fn write_files(
    storage: &Arc<dyn Storage>,
    mut edge: Edge,
    size: u64,
    attachments: &'static str,
) -> Result<(), LogError> {
    let signed = edge.size();
    let mut batch = Batch::new(&**storage);
    let missing = || LogError::MissingFile { path: storage.shown(tile::JOURNAL) };
    let mut journal = JournalReader::open(storage)?.ok_or_else(missing)?;
    if journal.base() != signed {
        let path = storage.shown(tile::JOURNAL);
        return Err(LogError::JournalAhead { path, base: journal.base(), signed });
    }
    while edge.size() < size {
        write_bundles(&mut batch, &mut journal, &mut edge, size, attachments)?;
    }
    for (tile, hashes) in edge.partial() {
        let Kind::Hashes(level) = tile.kind else { continue };
        if tile.end() > tile::hash_count(level, signed) {
            batch.write(tile.path(), &tile_bytes(hashes))?;
        }
    }
    batch.sync()
}

/// Writes the bundle of the next entry and the one of its attachments.
fn write_bundles(
    batch: &mut Batch<'_>,
    journal: &mut JournalReader,
    edge: &mut Edge,
    size: u64,
    attachments: &'static str,
) -> Result<(), LogError> {
    let (number, already) = (edge.size() / WIDTH, edge.size() % WIDTH);
    let width = tile::width_at(number, size);
    let end = number * WIDTH + width;
    let mut entries = batch.bundle(tile::ENTRIES, number, width, already)?;
    let mut attached = batch.bundle(attachments, number, width, already)?;
    let (mut entry, mut attachment) = (Vec::new(), Vec::new());
    while edge.size() < end {
        let index = edge.size();
        let damage = match journal.next(&mut entry, &mut attachment)? {
            Frame::Whole => None,
            Frame::End => Some(FrameDamage::Short),
            Frame::Bad(damage) => Some(damage),
        };
        if let Some(damage) = damage {
            let path = batch.storage.shown(tile::JOURNAL);
            return Err(LogError::JournalDamaged { path, index, damage });
        }
        entries.write(batch, &entry_prefix(&entry), &entry)?;
        attached.write(batch, &attachment_prefix(&attachment), &attachment)?;
        edge.push(Hash::leaf(&entry), &mut |tile, hashes| {
            batch.write(tile.path(), &tile_bytes(hashes))
        })?;
    }
    entries.end(batch)?;
    attached.end(batch)
}

fn tile_bytes(hashes: &[Hash]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(hashes.len() * HASH_BYTES);
    hashes.iter().for_each(|hash| bytes.extend_from_slice(&hash.0));
    bytes
}

/// A bundle that is being written.
struct Bundle {
    path: String,
    sink: BufWriter<Box<dyn Sink>>,
}

impl Bundle {
    fn write(&mut self, batch: &Batch<'_>, prefix: &[u8], item: &[u8]) -> Result<(), LogError> {
        let written = self.sink.write_all(prefix).and_then(|()| self.sink.write_all(item));
        written.map_err(|error| batch.storage.error("write", &self.path, error))
    }

    fn end(self, batch: &mut Batch<'_>) -> Result<(), LogError> {
        let Bundle { path, sink } = self;
        match sink.into_inner() {
            Ok(sink) => batch.end(path, sink),
            Err(error) => Err(batch.storage.error("write", &path, error.into_error())),
        }
    }
}

/// Files that are written and will be synced, with all folders that got a new name.
struct Batch<'a> {
    storage: &'a dyn Storage,
    files: Vec<(String, Box<dyn Sink>)>,
    folders: BTreeSet<String>,
}

impl<'a> Batch<'a> {
    fn new(storage: &'a dyn Storage) -> Batch<'a> {
        Batch { storage, files: Vec::new(), folders: BTreeSet::new() }
    }

    /// Starts a bundle with what the signed, smaller file of it holds.
    fn bundle(
        &mut self,
        folder: &str,
        number: u64,
        width: u64,
        already: u64,
    ) -> Result<Bundle, LogError> {
        let path = tile::numbered(folder, number, width);
        let mut sink = BufWriter::with_capacity(WRITE_BYTES, self.create(&path)?);
        if already > 0 {
            let signed = tile::numbered(folder, number, already);
            let (mut signed, _) = self.storage.reader(&signed)?;
            let copied = io::copy(&mut signed, &mut sink);
            copied.map_err(|error| self.storage.error("copy to", &path, error))?;
        }
        Ok(Bundle { path, sink })
    }

    fn write(&mut self, path: String, bytes: &[u8]) -> Result<(), LogError> {
        let mut sink = self.create(&path)?;
        let written = sink.write_all(bytes);
        written.map_err(|error| self.storage.error("write", &path, error))?;
        self.end(path, sink)
    }

    fn create(&mut self, path: &str) -> Result<Box<dyn Sink>, LogError> {
        let mut folder = folder_of(path);
        if !self.folders.contains(folder) {
            self.storage.make_folders(folder)?;
        }
        // Any folder above may be as new as the file, so its name is made durable too.
        while self.folders.insert(folder.to_owned()) && !folder.is_empty() {
            folder = folder_of(folder);
        }
        self.storage.writer(path)
    }

    fn end(&mut self, path: String, sink: Box<dyn Sink>) -> Result<(), LogError> {
        self.files.push((path, sink));
        if self.files.len() >= PENDING_FILES_MAX { self.sync_files() } else { Ok(()) }
    }

    fn sync_files(&mut self) -> Result<(), LogError> {
        if self.sync_everything()? {
            self.files.clear();
            return Ok(());
        }
        for (path, mut sink) in self.files.drain(..) {
            sink.sync().map_err(|error| self.storage.error("sync", &path, error))?;
        }
        Ok(())
    }

    fn sync_everything(&self) -> Result<bool, LogError> {
        let synced = self.storage.sync_everything();
        synced.map_err(|error| self.storage.error("sync", tile::TILE, error))
    }

    fn sync(mut self) -> Result<(), LogError> {
        if self.sync_everything()? {
            return Ok(());
        }
        self.sync_files()?;
        self.folders.iter().rev().try_for_each(|folder| self.storage.settle(folder))
    }
}
