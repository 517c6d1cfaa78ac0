//! Takes up a log that was left behind: by a finished run, a crash, or a person.
//!
//! What is signed is never cut: all of it is read again, and any difference is an error that
//! names the file and both values. What is not signed was never promised, and may be cut. A
//! head that was decided on but not published is signed again, to the same bytes.
//!
//! Not here: which unsigned entries are worth keeping; whoever reads them decides.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use crate::check::{TreeCheck, compare_root, walk};
use crate::checkpoint::Head;
use crate::edge::Edge;
use crate::error::LogError;
use crate::hash::Hash;
use crate::heads::{self, LastSigned};
use crate::journal::{Frame, JournalReader, JournalWriter};
use crate::note::Vkey;
use crate::records::{Attachments, Records};
use crate::storage::{ItemKind, Sink, Storage, folder_of};
use crate::tile::{self, Kind, Tile};
use crate::tree::Frontier;
use crate::writer::{LogSettings, LogWriter, Resumed, publish_head};

/// Longest key file: a name and 44 characters, generously.
const VKEY_BYTES_MAX: u64 = 1 << 10;

/// A log that was left behind, held exclusively and sound as far as it is signed.
pub struct Reopened {
    /// The last head that was signed.
    pub signed: Option<Head>,
    /// Bytes at the end of the journal that are no whole records: what a crash leaves, or
    /// damage. They are not signed, and are cut when the log goes on.
    pub cut: u64,
    storage: Arc<dyn Storage>,
    lock: Box<dyn Sink>,
    settings: LogSettings,
    whole: u64,
    frontier: Frontier,
    edge: Edge,
    is_published: bool,
}

impl Reopened {
    pub(crate) fn open_on(
        storage: Arc<dyn Storage>,
        settings: LogSettings,
    ) -> Result<Reopened, LogError> {
        let vkey = settings.check()?;
        if !is_log(&*storage)? {
            return Err(LogError::Missing { path: storage.folder().to_owned() });
        }
        let lock = lock(&*storage)?;
        put_vkey(&*storage, &vkey)?;
        let is_published = is_published(&*storage)?;
        let (last, sizes) = read_heads(&*storage, &vkey)?;
        let witnessed = read_witnessed(&*storage, &vkey, last)?;
        let (frontier, edge) = match last {
            None => (Frontier::new(), Edge::default()),
            Some(last) => check_signed(&storage, &vkey, last, &sizes, &witnessed, is_published)?,
        };
        let signed = last.map(|last| Head {
            origin: settings.origin.clone(),
            size: last.size,
            root: last.root,
        });
        if let Some(head) = &signed {
            publish_again(&*storage, head, &settings, &vkey)?;
        }
        let size = frontier.size();
        let (whole, cut) = scan_journal(&storage, size)?;
        Ok(Reopened { signed, cut, storage, lock, settings, whole, frontier, edge, is_published })
    }

    /// Returns how many whole records there are, signed and not.
    pub fn size(&self) -> u64 {
        self.whole
    }

    /// Returns whether the attachments are public.
    pub fn is_published(&self) -> bool {
        self.is_published
    }

    /// Reads all whole records: the signed ones, which were checked, and the others.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn records(&self) -> Result<Records, LogError> {
        let attachments = Attachments::In(place(self.is_published));
        let records = Records::new(&self.storage, self.frontier.size(), 0, attachments);
        Ok(records.then(open_journal(&self.storage)?))
    }

    /// Cuts unsigned records beyond `size`, and whatever a crash left, and goes on from there.
    ///
    /// # Errors
    /// Fewer records are whole, or more are signed; or the disk failed.
    pub fn resume_at(self, size: u64) -> Result<LogWriter, LogError> {
        let signed = self.frontier.size();
        if size < signed || size > self.whole {
            return Err(LogError::ResumeAt { found: size, signed, whole: self.whole });
        }
        remove_beyond(&*self.storage, signed, place(self.is_published))?;
        let mut frontier = self.frontier;
        let mut old = open_journal(&self.storage)?;
        // The journal is written anew, so that nothing in it rests on pages that an earlier
        // process failed to sync.
        let mut journal = JournalWriter::start(&self.storage, signed)?;
        let (mut entry, mut attachment) = (Vec::new(), Vec::new());
        while journal.next_index() < size {
            let index = old.next_index();
            match old.next(&mut entry, &mut attachment)? {
                Frame::Whole if index < signed => {}
                Frame::Whole => {
                    journal.push(&entry, &attachment)?;
                    frontier.append(Hash::leaf(&entry));
                }
                Frame::End | Frame::Bad(_) => {
                    return Err(LogError::ResumeAt { found: size, signed, whole: index });
                }
            }
        }
        journal.place()?;
        let mut writer = LogWriter::resume(Resumed {
            storage: self.storage,
            lock: self.lock,
            settings: self.settings,
            journal,
            frontier,
            signed: self.signed,
            edge: self.edge,
            is_published: self.is_published,
        });
        writer.sign_if_due()?;
        Ok(writer)
    }
}

impl std::fmt::Debug for Reopened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reopened({}, {} entries)", self.storage.folder().display(), self.whole)
    }
}

/// Takes the lock that one writer has.
pub(crate) fn lock(storage: &dyn Storage) -> Result<Box<dyn Sink>, LogError> {
    storage.lock(tile::LOCK).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => LogError::Locked { path: storage.folder().to_owned() },
        _ => storage.error("lock", tile::LOCK, error),
    })
}

/// Returns whether there is a log, or anything that only a log leaves.
pub(crate) fn is_log(storage: &dyn Storage) -> Result<bool, LogError> {
    for path in [tile::JOURNAL, tile::LAST_SIGNED, tile::CHECKPOINT] {
        if storage.reader_if_there(path)?.is_some() {
            return Ok(true);
        }
    }
    Ok(!heads::signed_sizes(storage)?.is_empty())
}

/// Writes the log's key beside it, or compares it with the one that is there.
pub(crate) fn put_vkey(storage: &dyn Storage, vkey: &Vkey) -> Result<(), LogError> {
    let wanted = vkey.to_string();
    match storage.read_if_there(tile::VKEY, VKEY_BYTES_MAX)? {
        None => storage.replace(tile::VKEY, format!("{wanted}\n").as_bytes()),
        Some(found) if found.strip_suffix(b"\n") == Some(wanted.as_bytes()) => Ok(()),
        Some(found) => {
            let found = String::from_utf8_lossy(&found).trim_end().to_owned();
            Err(LogError::ForeignKey { path: storage.shown(tile::VKEY), found, wanted })
        }
    }
}

/// Returns the folder of the attachments.
pub(crate) fn place(is_published: bool) -> &'static str {
    if is_published { tile::ATTACHMENT } else { tile::PRIVATE_ATTACHMENT }
}

/// Returns whether the attachments are public. They lie in one place: publishing is a rename.
fn is_published(storage: &dyn Storage) -> Result<bool, LogError> {
    let is_public = storage.has_folder(tile::ATTACHMENT)?;
    if is_public && storage.has_folder(tile::PRIVATE_ATTACHMENT)? {
        return Err(LogError::UnexpectedFile { path: storage.shown(tile::PRIVATE_ATTACHMENT) });
    }
    Ok(is_public)
}

/// Reads what was signed and what was published, and refuses what cannot have come about by
/// a crash. Returns the last signed head and the sizes of the published ones.
fn read_heads(
    storage: &dyn Storage,
    vkey: &Vkey,
) -> Result<(Option<LastSigned>, Vec<u64>), LogError> {
    let last = LastSigned::read(storage)?;
    let sizes = heads::signed_sizes(storage)?;
    let newest = heads::read_signed(storage, tile::CHECKPOINT, vkey)?;
    let newest = newest.map(|head| LastSigned::of(&head));
    let published = sizes.last().copied().max(newest.map(|head| head.size));
    let (Some(last), Some(published)) = (last, published) else {
        return match (last, published) {
            (None, Some(published)) => {
                let path = storage.shown(tile::LAST_SIGNED);
                Err(LogError::LastSignedMissing { path, published })
            }
            (last, _) => Ok((last, sizes)),
        };
    };
    if published > last.size {
        let is_newest = newest.is_some_and(|head| head.size == published);
        let name = tile::checkpoint(published);
        let path = storage.shown(if is_newest { tile::CHECKPOINT } else { &name });
        return Err(LogError::PublishedAhead { path, published, signed: last.size });
    }
    let other = newest.filter(|head| head.size == last.size && head.root != last.root);
    if let Some(newest) = other {
        return Err(LogError::TwoHeads {
            path: storage.shown(tile::CHECKPOINT),
            found: heads::said(Some(newest)),
            other: storage.shown(tile::LAST_SIGNED),
            wanted: heads::said(Some(last)),
        });
    }
    Ok((Some(last), sizes))
}

/// Heads that this log signed, by size: where each lies, and its root.
type Witnessed = BTreeMap<u64, Vec<(String, Hash)>>;

/// Reads what witnesses cosigned, and refuses a log that is shorter: it is an old copy, and
/// whatever its signer said next would contradict what others hold.
fn read_witnessed(
    storage: &dyn Storage,
    vkey: &Vkey,
    last: Option<LastSigned>,
) -> Result<Witnessed, LogError> {
    let witnessed = heads::witnessed(storage, vkey)?;
    let signed = last.map_or(0, |last| last.size);
    if let Some((&published, files)) = witnessed.last_key_value()
        && published > signed
    {
        let path = storage.shown(files.first().map_or(tile::WITNESS, |(path, _)| path));
        return Err(LogError::PublishedAhead { path, published, signed });
    }
    Ok(witnessed)
}

/// Computes everything below the last signed size again and compares it with the files.
fn check_signed(
    storage: &Arc<dyn Storage>,
    vkey: &Vkey,
    last: LastSigned,
    sizes: &[u64],
    witnessed: &Witnessed,
    is_published: bool,
) -> Result<(Frontier, Edge), LogError> {
    let attachments = Attachments::In(place(is_published));
    let mut signed = sizes.to_vec();
    if signed.last() != Some(&last.size) {
        signed.push(last.size);
    }
    let mut records = Records::new(storage, last.size, 0, attachments);
    let mut check = TreeCheck::new(storage, attachments, Edge::default(), last.size, signed);
    let mut frontier = Frontier::new();
    while let Some(record) = records.next_record()? {
        let checked = check.push(&record)?;
        frontier.append(checked.leaf);
        for (path, root) in witnessed.get(&frontier.size()).into_iter().flatten() {
            let said = LastSigned { size: frontier.size(), root: *root };
            compare_root(&**storage, path, said, frontier.size(), frontier.root())?;
        }
        let Some(root) = checked.root else { continue };
        let path = tile::checkpoint(check.size());
        if let Some(head) = heads::read_signed(&**storage, &path, vkey)? {
            compare_root(&**storage, &path, LastSigned::of(&head), check.size(), root)?;
        }
    }
    compare_root(&**storage, tile::LAST_SIGNED, last, frontier.size(), frontier.root())?;
    Ok((frontier, check.into_edge()))
}

/// Publishes the last signed head where a crash came before that was done.
fn publish_again(
    storage: &dyn Storage,
    head: &Head,
    settings: &LogSettings,
    vkey: &Vkey,
) -> Result<(), LogError> {
    let in_order = heads::read_signed(storage, &tile::checkpoint(head.size), vkey)?;
    let newest = heads::read_signed(storage, tile::CHECKPOINT, vkey)?;
    if in_order.as_ref() == Some(head) && newest.as_ref() == Some(head) {
        // They may have been put into place by a process that failed before it synced the
        // folders, and nothing that follows needs to write here again.
        storage.settle(tile::CHECKPOINTS)?;
        return storage.settle("");
    }
    // The file may be visible without being durable: the process before this one may have
    // failed right after it was put into place.
    let last = LastSigned::of(head);
    LastSigned::swap(storage, Some(last), last)?;
    publish_head(storage, head, &settings.key)
}

fn open_journal(storage: &Arc<dyn Storage>) -> Result<JournalReader, LogError> {
    let missing = || LogError::MissingFile { path: storage.shown(tile::JOURNAL) };
    JournalReader::open(storage)?.ok_or_else(missing)
}

/// Returns how many whole records there are with those of the journal, and the bytes after.
fn scan_journal(storage: &Arc<dyn Storage>, signed: u64) -> Result<(u64, u64), LogError> {
    let mut journal = open_journal(storage)?;
    if journal.base() > signed {
        let path = storage.shown(tile::JOURNAL);
        return Err(LogError::JournalAhead { path, base: journal.base(), signed });
    }
    let (mut entry, mut attachment) = (Vec::new(), Vec::new());
    while journal.next(&mut entry, &mut attachment)? == Frame::Whole {}
    Ok((journal.next_index().max(signed), journal.bytes_left()))
}

/// Removes tiles and bundles beyond the signed size, which a crash left, durably: otherwise
/// they would be found beside those that the log goes on with.
fn remove_beyond(
    storage: &dyn Storage,
    signed: u64,
    attachments: &'static str,
) -> Result<(), LogError> {
    let mut touched = BTreeSet::new();
    for top in [tile::TILE, attachments] {
        walk(storage, top, &mut |path, kind| {
            let public = path.strip_prefix("private/").unwrap_or(path);
            let Some(tile) = Tile::parse(public).filter(|_| kind == ItemKind::File) else {
                return Err(LogError::UnexpectedFile { path: storage.shown(path) });
            };
            let level = match tile.kind {
                Kind::Hashes(level) => level,
                Kind::Entries | Kind::Attachments => 0,
            };
            if tile.end() <= tile::hash_count(level, signed) {
                return Ok(());
            }
            storage.remove(path).map_err(|error| storage.error("remove", path, error))?;
            touched.insert(folder_of(path).to_owned());
            Ok(())
        })?;
    }
    remove_emptied(storage, touched, attachments)
}

/// Syncs folders from which files were removed, and removes those that have become empty.
fn remove_emptied(
    storage: &dyn Storage,
    mut touched: BTreeSet<String>,
    attachments: &'static str,
) -> Result<(), LogError> {
    // The last in order is never above another one.
    while let Some(folder) = touched.pop_last() {
        storage.settle(&folder)?;
        let stays = [tile::TILE, tile::ENTRIES, attachments].contains(&&*folder);
        if !stays && storage.items(&folder, 1).is_ok_and(|items| items.is_empty()) {
            let removed = storage.remove_folder(&folder);
            removed.map_err(|error| storage.error("remove", &folder, error))?;
            touched.insert(folder_of(&folder).to_owned());
        }
    }
    Ok(())
}
