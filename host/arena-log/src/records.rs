//! Entries with their attachments in order: signed ones from bundles, then the journal.
//!
//! One record is in memory at a time.
//!
//! Not here: hashes and signatures. What is read here is checked by who reads it.

use std::sync::Arc;

use crate::bundle::{ATTACHMENT_PREFIX_BYTES, BundleReader, ENTRY_PREFIX_BYTES};
use crate::error::LogError;
use crate::journal::{Frame, JournalReader};
use crate::storage::Storage;
use crate::tile::{self, WIDTH};

/// One entry of a log, as long as the next one is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Its place in the log, counted from 0.
    pub index: u64,
    /// The entry.
    pub entry: &'a [u8],
    /// What lies beside it; empty where there is nothing, `None` where it is withheld.
    pub attachment: Option<&'a [u8]>,
}

/// Where attachments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attachments {
    /// Nowhere: they are not published.
    Withheld,
    /// In a folder.
    In(&'static str),
}

/// Reads the records of a log in order.
pub struct Records {
    storage: Arc<dyn Storage>,
    /// How many entries are in bundles.
    size: u64,
    next: u64,
    attachments: Attachments,
    bundles: Option<Bundles>,
    journal: Option<JournalReader>,
    entry: Vec<u8>,
    attachment: Vec<u8>,
}

/// The bundles of the next entry.
struct Bundles {
    entries: BundleReader,
    attachments: Option<BundleReader>,
}

impl Records {
    /// Reads the first `size` entries from bundles, from entry `start` on.
    pub(crate) fn new(
        storage: &Arc<dyn Storage>,
        size: u64,
        start: u64,
        attachments: Attachments,
    ) -> Records {
        Records {
            storage: Arc::clone(storage),
            size,
            next: start,
            attachments,
            bundles: None,
            journal: None,
            entry: Vec::new(),
            attachment: Vec::new(),
        }
    }

    /// Goes on into the journal after the signed entries.
    pub(crate) fn then(mut self, journal: JournalReader) -> Records {
        self.journal = Some(journal);
        self
    }

    /// Returns the index of the next record.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Reads the next record; `None` after the last whole one.
    ///
    /// # Errors
    /// A bundle is missing, damaged or unreadable.
    pub fn next_record(&mut self) -> Result<Option<RecordRef<'_>>, LogError> {
        let is_there =
            if self.next < self.size { self.read_bundled()? } else { self.read_journaled()? };
        if !is_there {
            return Ok(None);
        }
        let index = self.next;
        self.next += 1;
        let has_attachment = index >= self.size || self.attachments != Attachments::Withheld;
        let attachment = has_attachment.then_some(self.attachment.as_slice());
        Ok(Some(RecordRef { index, entry: &self.entry, attachment }))
    }

    fn read_bundled(&mut self) -> Result<bool, LogError> {
        let mut bundles = match self.bundles.take() {
            Some(bundles) => bundles,
            None => self.open_bundles()?,
        };
        bundles.entries.next(&mut self.entry)?;
        if let Some(attachments) = &mut bundles.attachments {
            attachments.next(&mut self.attachment)?;
        }
        let end = self.next + 1;
        if end.is_multiple_of(WIDTH) || end == self.size {
            bundles.entries.finish()?;
            bundles.attachments.map_or(Ok(()), BundleReader::finish)?;
        } else {
            self.bundles = Some(bundles);
        }
        Ok(true)
    }

    fn open_bundles(&self) -> Result<Bundles, LogError> {
        let number = self.next / WIDTH;
        let width = tile::width_at(number, self.size);
        let first = number * WIDTH;
        let path = tile::entry_bundle(number, width);
        let mut entries = BundleReader::open(&self.storage, path, ENTRY_PREFIX_BYTES, first)?;
        let mut attachments = match self.attachments {
            Attachments::Withheld => None,
            Attachments::In(folder) => {
                let path = tile::numbered(folder, number, width);
                let prefix = ATTACHMENT_PREFIX_BYTES;
                Some(BundleReader::open(&self.storage, path, prefix, first)?)
            }
        };
        for _ in first..self.next {
            entries.skip()?;
            attachments.as_mut().map_or(Ok(()), BundleReader::skip)?;
        }
        Ok(Bundles { entries, attachments })
    }

    fn read_journaled(&mut self) -> Result<bool, LogError> {
        let Some(journal) = &mut self.journal else {
            return Ok(false);
        };
        loop {
            let index = journal.next_index();
            match journal.next(&mut self.entry, &mut self.attachment)? {
                Frame::Whole if index < self.next => {}
                Frame::Whole => return Ok(true),
                Frame::End | Frame::Bad(_) => return Ok(false),
            }
        }
    }
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Records({}, next {})", self.storage.folder().display(), self.next)
    }
}
