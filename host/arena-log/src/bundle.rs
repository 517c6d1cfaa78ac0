//! Bundles: up to 256 entries or attachments in one file, each behind its length.
//!
//! The length of an entry has two bytes (C2SP tlog-tiles), that of an attachment four, both
//! big-endian. A bundle is read one item at a time; nothing is allocated on the word of the
//! file beyond the bounds below.
//!
//! Not here: where bundles lie (`tile`), and when they are written (`seal`).

use std::io::Read;
use std::sync::Arc;

use crate::error::{BundleDamage, LogError};
use crate::storage::{Buffered, Storage};

/// Largest entry in bytes: what its length can say.
pub const ENTRY_BYTES_MAX: usize = 65_535;
/// Largest attachment in bytes.
pub const ATTACHMENT_BYTES_MAX: usize = 8 << 20;

/// Bytes of the length before an entry.
pub(crate) const ENTRY_PREFIX_BYTES: u64 = 2;
/// Bytes of the length before an attachment.
pub(crate) const ATTACHMENT_PREFIX_BYTES: u64 = 4;

/// Returns the bytes that stand before an entry.
pub(crate) fn entry_prefix(entry: &[u8]) -> [u8; 2] {
    u16::try_from(entry.len()).expect("entries are bounded when they are appended").to_be_bytes()
}

/// Returns the bytes that stand before an attachment.
pub(crate) fn attachment_prefix(attachment: &[u8]) -> [u8; 4] {
    assert!(attachment.len() <= ATTACHMENT_BYTES_MAX, "attachments are bounded when appended");
    (attachment.len() as u32).to_be_bytes()
}

/// Reads one bundle.
pub(crate) struct BundleReader {
    storage: Arc<dyn Storage>,
    path: String,
    file: Buffered,
    bytes_left: u64,
    prefix_bytes: u64,
    index: u64,
}

impl BundleReader {
    /// Opens a bundle whose first item has the index `index` in the log.
    pub fn open(
        storage: &Arc<dyn Storage>,
        path: String,
        prefix_bytes: u64,
        index: u64,
    ) -> Result<BundleReader, LogError> {
        let (file, bytes_left) = storage.reader(&path)?;
        let storage = Arc::clone(storage);
        Ok(BundleReader { storage, path, file, bytes_left, prefix_bytes, index })
    }

    /// Reads the next item in place of what `item` holds.
    pub fn next(&mut self, item: &mut Vec<u8>) -> Result<(), LogError> {
        let length = self.next_length()?;
        item.resize(length, 0);
        self.fill(item)?;
        self.index += 1;
        Ok(())
    }

    /// Passes over the next item.
    pub fn skip(&mut self) -> Result<(), LogError> {
        let length = self.next_length()?;
        let moved = self.file.seek_relative(length as i64);
        moved.map_err(|error| self.storage.error("read", &self.path, error))?;
        self.bytes_left -= length as u64;
        self.index += 1;
        Ok(())
    }

    /// Checks that the last item was the last thing in the file.
    pub fn finish(self) -> Result<(), LogError> {
        match self.bytes_left {
            0 => Ok(()),
            bytes => {
                let index = self.index.saturating_sub(1);
                let path = self.storage.shown(&self.path);
                Err(LogError::Bundle { path, index, damage: BundleDamage::Trailing { bytes } })
            }
        }
    }

    fn next_length(&mut self) -> Result<usize, LogError> {
        let mut prefix = [0; 4];
        self.fill(&mut prefix[4 - self.prefix_bytes as usize..])?;
        let found = u32::from_be_bytes(prefix);
        if found as usize > ATTACHMENT_BYTES_MAX {
            return Err(self.damaged(BundleDamage::Length { found }));
        }
        if u64::from(found) > self.bytes_left {
            return Err(self.damaged(BundleDamage::Short));
        }
        Ok(found as usize)
    }

    fn fill(&mut self, target: &mut [u8]) -> Result<(), LogError> {
        if target.len() as u64 > self.bytes_left {
            return Err(self.damaged(BundleDamage::Short));
        }
        self.file.read_exact(target).map_err(|error| match error.kind() {
            // The file has become shorter since it was opened.
            std::io::ErrorKind::UnexpectedEof => self.damaged(BundleDamage::Short),
            _ => self.storage.error("read", &self.path, error),
        })?;
        self.bytes_left -= target.len() as u64;
        Ok(())
    }

    fn damaged(&self, damage: BundleDamage) -> LogError {
        LogError::Bundle { path: self.storage.shown(&self.path), index: self.index, damage }
    }
}
