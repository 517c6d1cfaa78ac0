//! Writes a log: one process at a time, entries at the end only.
//!
//! An entry counts once it is whole in the journal, and for ever once a head over it is
//! signed. A head is signed only over what was read back from the disk, and only after
//! `last-signed` says so. After anything fails, this handle does nothing more.
//!
//! Not here: what a log that was left behind may go on from (`recovery`).

use std::path::Path;
use std::sync::Arc;

use crate::blobs::{self, Visibility};
use crate::bundle::{ATTACHMENT_BYTES_MAX, ENTRY_BYTES_MAX};
use crate::checkpoint::{Head, HeadError};
use crate::disk::Disk;
use crate::edge::Edge;
use crate::error::LogError;
use crate::hash::Hash;
use crate::heads::{self, LastSigned};
use crate::journal::JournalWriter;
use crate::key::SigningKey;
use crate::note::Vkey;
use crate::recovery::{self, Reopened};
use crate::seal;
use crate::storage::{ItemKind, Sink, Storage};
use crate::tile::{self, WIDTH};
use crate::tree::Frontier;

/// Names at the top of a folder that are looked at before a log is made there.
const TOP_NAMES_MAX: usize = 1 << 10;

/// One entry with what lies beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The entry, at most [`ENTRY_BYTES_MAX`] bytes.
    pub entry: &'a [u8],
    /// What the entry binds by a hash, at most [`ATTACHMENT_BYTES_MAX`] bytes; may be empty.
    pub attachment: &'a [u8],
}

/// What a log is written with.
pub struct LogSettings {
    /// The log's identity, which is also the name of its key.
    pub origin: String,
    /// The key that signs its heads.
    pub key: SigningKey,
    /// A head is signed at every multiple of this, which is a multiple of 256.
    pub checkpoint_every: u64,
}

impl LogSettings {
    /// Returns the verifier key, if the settings are such that a log can be written.
    pub(crate) fn check(&self) -> Result<Vkey, LogError> {
        if self.checkpoint_every == 0 || !self.checkpoint_every.is_multiple_of(WIDTH) {
            return Err(LogError::CheckpointEvery { found: self.checkpoint_every });
        }
        let error =
            |error| LogError::Origin { origin: self.origin.clone(), error: HeadError::Note(error) };
        self.key.vkey(&self.origin).map_err(error)
    }
}

/// The end of a log, held exclusively.
pub struct LogWriter {
    storage: Arc<dyn Storage>,
    /// Held for its lock.
    _lock: Box<dyn Sink>,
    settings: LogSettings,
    journal: JournalWriter,
    frontier: Frontier,
    signed: Option<Head>,
    /// The right edge at the signed size.
    edge: Edge,
    is_published: bool,
    is_broken: bool,
}

/// What a writer goes on from.
pub(crate) struct Resumed {
    pub storage: Arc<dyn Storage>,
    pub lock: Box<dyn Sink>,
    pub settings: LogSettings,
    pub journal: JournalWriter,
    pub frontier: Frontier,
    pub signed: Option<Head>,
    pub edge: Edge,
    pub is_published: bool,
}

impl LogWriter {
    /// Starts a log in `folder`, which is created where it does not exist. A folder in which
    /// a crash stopped this very call is taken up.
    ///
    /// # Errors
    /// The folder holds a log or anything else, except for `private` and what the caller put
    /// there, or cannot be written.
    pub fn create(folder: &Path, settings: LogSettings) -> Result<LogWriter, LogError> {
        settings.check()?;
        LogWriter::create_on(Arc::new(Disk::create(folder)?), settings)
    }

    /// Starts a log on any storage.
    ///
    /// # Errors
    /// As [`LogWriter::create`].
    pub fn create_on(
        storage: Arc<dyn Storage>,
        settings: LogSettings,
    ) -> Result<LogWriter, LogError> {
        let vkey = settings.check()?;
        refuse_foreign(&*storage)?;
        storage.make_folders(tile::PRIVATE)?;
        let lock = recovery::lock(&*storage)?;
        if recovery::is_log(&*storage)? {
            return Err(LogError::Exists { path: storage.folder().to_owned() });
        }
        storage.make_folders(tile::PRIVATE_ATTACHMENT)?;
        recovery::put_vkey(&*storage, &vkey)?;
        storage.settle("")?;
        // The journal comes last: whatever has none is no log yet.
        let mut journal = JournalWriter::start(&storage, 0)?;
        journal.place()?;
        Ok(LogWriter::resume(Resumed {
            storage,
            lock,
            settings,
            journal,
            frontier: Frontier::new(),
            signed: None,
            edge: Edge::default(),
            is_published: false,
        }))
    }

    /// Takes hold of the log that lies in `folder`, to read it and then to go on with it.
    ///
    /// # Errors
    /// There is none, another process holds it, it is damaged below its last signed size, or
    /// it is an older copy of itself.
    pub fn open(folder: &Path, settings: LogSettings) -> Result<Reopened, LogError> {
        Reopened::open_on(Arc::new(Disk::open(folder)?), settings)
    }

    /// Takes hold of the log on any storage.
    ///
    /// # Errors
    /// As [`LogWriter::open`].
    pub fn open_on(storage: Arc<dyn Storage>, settings: LogSettings) -> Result<Reopened, LogError> {
        Reopened::open_on(storage, settings)
    }

    pub(crate) fn resume(resumed: Resumed) -> LogWriter {
        LogWriter {
            storage: resumed.storage,
            _lock: resumed.lock,
            settings: resumed.settings,
            journal: resumed.journal,
            frontier: resumed.frontier,
            signed: resumed.signed,
            edge: resumed.edge,
            is_published: resumed.is_published,
            is_broken: false,
        }
    }

    /// Returns how many entries the log has.
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// Returns the last head that was signed.
    pub fn signed(&self) -> Option<&Head> {
        self.signed.as_ref()
    }

    /// Returns whether the attachments are public.
    pub fn is_published(&self) -> bool {
        self.is_published
    }

    /// Returns the log's folder.
    pub fn folder(&self) -> &Path {
        self.storage.folder()
    }

    /// Appends entries, and signs a head at each multiple of `checkpoint_every` that they
    /// reach. They are on the disk after [`sync`](LogWriter::sync), or once they are signed.
    ///
    /// # Errors
    /// An entry or attachment is too large, and nothing was written; or something failed, and
    /// this handle takes no more entries. Some of these may then be in the log.
    pub fn append_all(&mut self, records: &[Record<'_>]) -> Result<(), LogError> {
        for Record { entry, attachment } in records {
            if entry.len() > ENTRY_BYTES_MAX {
                return Err(LogError::EntryTooLarge { bytes: entry.len() });
            }
            if attachment.len() > ATTACHMENT_BYTES_MAX {
                return Err(LogError::AttachmentTooLarge { bytes: attachment.len() });
            }
        }
        self.guarded(|writer| {
            for Record { entry, attachment } in records {
                writer.journal.push(entry, attachment)?;
                writer.frontier.append(Hash::leaf(entry));
                writer.sign_if_due()?;
            }
            writer.journal.flush()
        })
    }

    /// Returns once everything that was appended is on the disk.
    ///
    /// # Errors
    /// The system could not, and this handle takes no more entries.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.guarded(|writer| writer.journal.sync())
    }

    /// Signs a head over everything that was appended, unless that is done.
    ///
    /// # Errors
    /// There are no entries; or something failed, and this handle takes no more entries.
    pub fn checkpoint(&mut self) -> Result<Head, LogError> {
        if self.size() == 0 {
            return Err(LogError::Empty);
        }
        self.guarded(LogWriter::sign)
    }

    /// Makes public what was withheld: blobs first, then attachments. May be called again.
    ///
    /// # Errors
    /// Entries are not signed yet, and nothing was done; or something failed, and this handle
    /// takes no more entries.
    pub fn publish(&mut self) -> Result<(), LogError> {
        let signed = self.signed.as_ref().map_or(0, |head| head.size);
        if self.size() != signed {
            return Err(LogError::Unsigned { size: self.size(), signed });
        }
        self.guarded(|writer| {
            let storage = &*writer.storage;
            blobs::publish(storage)?;
            if !writer.is_published {
                storage.move_to(tile::PRIVATE_ATTACHMENT, tile::ATTACHMENT)?;
                writer.is_published = true;
            }
            // A call before this one may have failed between the move and this.
            storage.settle("")?;
            storage.settle(tile::PRIVATE)
        })
    }

    /// Puts a blob beside the log, durably, under the name of its hash. Private ones are
    /// public at once if the log is published.
    ///
    /// # Errors
    /// Something failed, and this handle takes no more entries.
    pub fn put_blob(&mut self, bytes: &[u8], visibility: Visibility) -> Result<Hash, LogError> {
        self.guarded(|writer| {
            let folder = match visibility {
                Visibility::Private if !writer.is_published => tile::PRIVATE_BLOB,
                Visibility::Private | Visibility::Public => tile::BLOB,
            };
            blobs::put(&*writer.storage, folder, bytes)
        })
    }

    /// Signs a head if there must be one at this size.
    pub(crate) fn sign_if_due(&mut self) -> Result<(), LogError> {
        let size = self.size();
        let is_due = size > 0 && size.is_multiple_of(self.settings.checkpoint_every);
        if is_due { self.sign().map(drop) } else { Ok(()) }
    }

    fn sign(&mut self) -> Result<Head, LogError> {
        let size = self.size();
        if let Some(head) = self.signed.as_ref().filter(|head| head.size == size) {
            return Ok(head.clone());
        }
        self.journal.sync()?;
        let (edge, stored) = seal::seal(&self.storage, &self.edge, size, self.attachments())?;
        let appended = self.frontier.root();
        if stored != appended {
            return Err(LogError::Memory { size, appended, stored });
        }
        let head = Head { origin: self.settings.origin.clone(), size, root: stored };
        let believed = self.signed.as_ref().map(LastSigned::of);
        LastSigned::swap(&*self.storage, believed, LastSigned::of(&head))?;
        publish_head(&*self.storage, &head, &self.settings.key)?;
        let mut journal = JournalWriter::start(&self.storage, size)?;
        journal.place()?;
        self.journal = journal;
        self.edge = edge;
        self.signed = Some(head.clone());
        Ok(head)
    }

    fn attachments(&self) -> &'static str {
        if self.is_published { tile::ATTACHMENT } else { tile::PRIVATE_ATTACHMENT }
    }

    /// Does something after which this handle is broken if it fails: memory and disk may then
    /// differ, and a second sync can succeed without having written.
    fn guarded<T>(
        &mut self,
        act: impl FnOnce(&mut LogWriter) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        if self.is_broken {
            return Err(LogError::Broken { path: self.folder().to_owned() });
        }
        self.is_broken = true;
        let done = act(self)?;
        self.is_broken = false;
        Ok(done)
    }
}

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LogWriter({}, {} entries)", self.folder().display(), self.size())
    }
}

/// Signs a head that `last-signed` already holds, and publishes it.
pub(crate) fn publish_head(
    storage: &dyn Storage,
    head: &Head,
    key: &SigningKey,
) -> Result<(), LogError> {
    let path = || storage.shown(tile::CHECKPOINT);
    let note = head.sign(key).map_err(|error| LogError::Head { path: path(), error })?;
    heads::publish(storage, head.size, &note)
}

/// Refuses a folder with anything in it that a log does not start with.
fn refuse_foreign(storage: &dyn Storage) -> Result<(), LogError> {
    for item in storage.items("", TOP_NAMES_MAX)? {
        let is_ours = match item.kind {
            ItemKind::Folder => item.name == tile::PRIVATE,
            ItemKind::File => item.name == tile::VKEY,
            ItemKind::Special => false,
        };
        let is_log = matches!(&*item.name, tile::CHECKPOINT | tile::CHECKPOINTS | tile::TILE);
        let folder = storage.folder().to_owned();
        if is_log {
            return Err(LogError::Exists { path: folder });
        }
        if !is_ours {
            return Err(LogError::ForeignFile { folder, name: item.name });
        }
    }
    Ok(())
}
