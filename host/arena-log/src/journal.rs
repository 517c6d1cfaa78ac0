//! The journal: entries and attachments beyond the last signed head, in one file.
//!
//! Whatever is here may be lost or cut, because nothing has been said about it yet. A frame
//! counts from its first byte to its last or not at all; its checksum covers its index, so
//! that blocks of an older journal do not pass for frames of this one.
//!
//! Not here: entries that are signed (`bundle`), and who cuts the journal (`recovery`).

use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::bundle::{ATTACHMENT_BYTES_MAX, ENTRY_BYTES_MAX};
use crate::error::{FrameDamage, LogError};
use crate::storage::{Buffered, Sink, Storage};
use crate::tile;

/// First bytes of a journal.
const MAGIC: [u8; 8] = *b"ARENAJNL";
/// The layout of header and frames.
pub const VERSION: u32 = 1;
/// Bytes of the header: magic, version, index of the first entry, CRC-32C of the three.
pub const HEADER_BYTES: usize = 24;
/// Bytes of a frame before its entry: CRC-32C, length of the entry, length of the attachment.
pub const PREFIX_BYTES: usize = 12;

/// Bytes of frames that are gathered before they are written.
const GROUP_BYTES: usize = 1 << 20;

/// A journal that is being written, from its header on.
pub(crate) struct JournalWriter {
    storage: Arc<dyn Storage>,
    sink: Box<dyn Sink>,
    next: u64,
    group: Vec<u8>,
}

impl JournalWriter {
    /// Starts a journal whose first entry will have the index `base`. It takes the place of
    /// the one that is there once it is [`placed`](JournalWriter::place).
    pub fn start(storage: &Arc<dyn Storage>, base: u64) -> Result<JournalWriter, LogError> {
        let sink = storage.writer(tile::TEMPORARY)?;
        let group = header(base).to_vec();
        let storage = Arc::clone(storage);
        Ok(JournalWriter { storage, sink, next: base, group })
    }

    /// Syncs what was written and puts the journal into its place, durably.
    pub fn place(&mut self) -> Result<(), LogError> {
        self.sync()?;
        self.storage.move_to(tile::TEMPORARY, tile::JOURNAL)?;
        self.storage.settle(tile::PRIVATE)
    }

    /// Returns the index that the next entry will have.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Adds a frame. It may stay in memory until [`flush`](JournalWriter::flush).
    pub fn push(&mut self, entry: &[u8], attachment: &[u8]) -> Result<(), LogError> {
        push_frame(&mut self.group, self.next, entry, attachment);
        self.next += 1;
        if self.group.len() >= GROUP_BYTES { self.flush() } else { Ok(()) }
    }

    /// Hands everything that was pushed to the system.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if self.group.is_empty() {
            return Ok(());
        }
        let written = self.sink.write_all(&self.group);
        written.map_err(|error| self.storage.error("write", tile::JOURNAL, error))?;
        self.group.clear();
        Ok(())
    }

    /// Returns once everything that was pushed is on the disk.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.flush()?;
        self.sink.sync().map_err(|error| self.storage.error("sync", tile::JOURNAL, error))
    }
}

/// What comes next in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A whole frame.
    Whole,
    /// The end of the file, right after a whole frame.
    End,
    /// Bytes that are no whole frame. Nothing after them counts.
    Bad(FrameDamage),
}

/// Reads a journal from its start.
pub(crate) struct JournalReader {
    storage: Arc<dyn Storage>,
    file: Buffered,
    base: u64,
    next: u64,
    bytes_left: u64,
    bad: Option<FrameDamage>,
}

impl JournalReader {
    /// Opens the journal, if there is one.
    pub fn open(storage: &Arc<dyn Storage>) -> Result<Option<JournalReader>, LogError> {
        let Some((mut file, length)) = storage.reader_if_there(tile::JOURNAL)? else {
            return Ok(None);
        };
        let path = || storage.shown(tile::JOURNAL);
        let mut bytes = [0; HEADER_BYTES];
        match file.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(LogError::NotAJournal { path: path() });
            }
            Err(error) => return Err(storage.error("read", tile::JOURNAL, error)),
        }
        let base = u64::from_be_bytes(bytes[12..20].try_into().expect("eight bytes"));
        if bytes != header(base) {
            let found = number(&bytes[8..12]);
            let is_whole = bytes.starts_with(&MAGIC)
                && crc32c::crc32c(&bytes[..20]) == number(&bytes[20..])
                && found != VERSION;
            return Err(match is_whole {
                true => LogError::Version { path: path(), found },
                false => LogError::NotAJournal { path: path() },
            });
        }
        let storage = Arc::clone(storage);
        let bytes_left = length.saturating_sub(HEADER_BYTES as u64);
        Ok(Some(JournalReader { storage, file, base, next: base, bytes_left, bad: None }))
    }

    /// Returns the index of the first entry.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the index of the next entry.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Returns how many bytes lie after the last whole frame that was read.
    pub fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// Reads the next frame in place of what the buffers hold.
    pub fn next(
        &mut self,
        entry: &mut Vec<u8>,
        attachment: &mut Vec<u8>,
    ) -> Result<Frame, LogError> {
        if let Some(damage) = self.bad {
            return Ok(Frame::Bad(damage));
        }
        if self.bytes_left == 0 {
            return Ok(Frame::End);
        }
        let read = self.read_frame(entry, attachment);
        match read.map_err(|error| self.storage.error("read", tile::JOURNAL, error))? {
            Ok(()) => Ok(Frame::Whole),
            Err(damage) => {
                self.bad = Some(damage);
                Ok(Frame::Bad(damage))
            }
        }
    }

    fn read_frame(
        &mut self,
        entry: &mut Vec<u8>,
        attachment: &mut Vec<u8>,
    ) -> io::Result<Result<(), FrameDamage>> {
        let mut prefix = [0; PREFIX_BYTES];
        if self.bytes_left < PREFIX_BYTES as u64 {
            return Ok(Err(FrameDamage::Short));
        }
        self.file.read_exact(&mut prefix)?;
        let stored = number(&prefix[..4]);
        let lengths = (number(&prefix[4..8]), number(&prefix[8..]));
        let (entry_bytes, attachment_bytes) = (lengths.0 as usize, lengths.1 as usize);
        if entry_bytes > ENTRY_BYTES_MAX || attachment_bytes > ATTACHMENT_BYTES_MAX {
            let damage = FrameDamage::Length { entry: lengths.0, attachment: lengths.1 };
            return Ok(Err(damage));
        }
        let frame_bytes = (PREFIX_BYTES + entry_bytes + attachment_bytes) as u64;
        if frame_bytes > self.bytes_left {
            return Ok(Err(FrameDamage::Short));
        }
        entry.resize(entry_bytes, 0);
        self.file.read_exact(entry)?;
        attachment.resize(attachment_bytes, 0);
        self.file.read_exact(attachment)?;
        let computed = checksum(self.next, &prefix[4..], entry, attachment);
        if computed != stored {
            return Ok(Err(FrameDamage::Checksum { stored, computed }));
        }
        self.next += 1;
        self.bytes_left -= frame_bytes;
        Ok(Ok(()))
    }
}

fn header(base: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_be_bytes());
    bytes[12..20].copy_from_slice(&base.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[..20]);
    bytes[20..].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn push_frame(frames: &mut Vec<u8>, index: u64, entry: &[u8], attachment: &[u8]) {
    assert!(entry.len() <= ENTRY_BYTES_MAX, "entries are bounded when they are appended");
    assert!(attachment.len() <= ATTACHMENT_BYTES_MAX, "attachments are bounded when appended");
    let mut lengths = [0; 8];
    lengths[..4].copy_from_slice(&(entry.len() as u32).to_be_bytes());
    lengths[4..].copy_from_slice(&(attachment.len() as u32).to_be_bytes());
    let crc = checksum(index, &lengths, entry, attachment);
    frames.extend_from_slice(&crc.to_be_bytes());
    frames.extend_from_slice(&lengths);
    frames.extend_from_slice(entry);
    frames.extend_from_slice(attachment);
}

fn checksum(index: u64, lengths: &[u8], entry: &[u8], attachment: &[u8]) -> u32 {
    let mut crc = crc32c::crc32c(&index.to_be_bytes());
    for part in [lengths, entry, attachment] {
        crc = crc32c::crc32c_append(crc, part);
    }
    crc
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("a number has four bytes"))
}
