//! A disk in memory that fails, and that forgets at a crash what was not synced.
//!
//! It keeps two images. The volatile one is what the system shows; the durable one is what is
//! on the disk. An operation goes into the first and waits; a sync moves what waits for one
//! file or folder into the second. A crash lets any part of what waits through, in any order:
//! writes can be dropped, torn, or turned into zeros. A sync that fails without landing has
//! dropped the bytes of its file for good, and the next sync of it succeeds, as on Linux.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use arena_log::storage::{Item, ItemKind, Sink, Source, Storage};

/// What happens at one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and nothing of it happens.
    Fails,
    /// It happens, and fails.
    FailsAfterLanding,
    /// The machine stops before it.
    Stops,
}

#[derive(Clone, Debug)]
enum Inode {
    File(Vec<u8>),
    Folder(BTreeMap<String, usize>),
}

/// What is visible but not durable.
#[derive(Clone, Debug)]
enum Pending {
    Truncate { file: usize },
    Write { file: usize, offset: usize, bytes: Vec<u8> },
    Link { at: (usize, String), inode: usize },
    Unlink { at: (usize, String) },
    Rename { from: (usize, String), to: (usize, String), inode: usize },
}

#[derive(Debug, Default)]
struct State {
    volatile: Vec<Inode>,
    durable: Vec<Inode>,
    pending: Vec<Pending>,
    is_locked: bool,
    /// Whether all can be synced at once.
    syncs_everything: bool,
    fault: Option<(u64, Fault)>,
    is_stopped: bool,
    /// For each operation whether it changes anything.
    changes: Vec<bool>,
    /// Every head that anyone could ever see, and what crashes left as last signed.
    heads: BTreeSet<(String, Vec<u8>)>,
}

/// The disk. A clone is another hand on the same one.
#[derive(Clone, Debug)]
pub struct FaultyDisk(Arc<Mutex<State>>);

const ROOT: usize = 0;

impl FaultyDisk {
    pub fn new() -> FaultyDisk {
        let root = vec![Inode::Folder(BTreeMap::new())];
        let state = State { volatile: root.clone(), durable: root, ..State::default() };
        FaultyDisk(Arc::new(Mutex::new(state)))
    }

    /// A disk with these files.
    pub fn holding(files: &BTreeMap<String, Vec<u8>>) -> FaultyDisk {
        let disk = FaultyDisk::new();
        for (path, bytes) in files {
            for (end, _) in path.match_indices('/') {
                disk.create_folder(&path[..end]).expect("no fault is set");
            }
            let mut file = disk.create(path).expect("no fault is set");
            file.write_all(bytes).expect("no fault is set");
        }
        disk
    }

    /// Lets everything be synced at once.
    pub fn that_syncs_everything(self) -> FaultyDisk {
        self.state().syncs_everything = true;
        self
    }

    pub fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }

    /// Lets operation `at`, counted from the very first one, go wrong.
    pub fn set_fault(&self, at: u64, fault: Fault) {
        self.state().fault = Some((at, fault));
    }

    pub fn clear_fault(&self) {
        self.state().fault = None;
    }

    /// For each operation so far whether it changed anything.
    pub fn changes(&self) -> Vec<bool> {
        self.state().changes.clone()
    }

    pub fn operations(&self) -> u64 {
        self.state().changes.len() as u64
    }

    /// Whether the machine has stopped and waits for [`FaultyDisk::crash`].
    pub fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    pub fn heads_seen(&self) -> BTreeSet<(String, Vec<u8>)> {
        self.state().heads.clone()
    }

    /// Stops the machine and starts it again. `keep` decides what of each unsynced operation
    /// comes through: 0 nothing, 1 all, otherwise a number that a part is drawn from.
    pub fn crash(&self, mut keep: impl FnMut() -> u64) {
        let mut state = self.state();
        for pending in std::mem::take(&mut state.pending) {
            let drawn = keep();
            if drawn == 0 {
                continue;
            }
            let pending = match pending {
                Pending::Write { file, offset, bytes } if drawn > 1 => {
                    Pending::Write { file, offset, bytes: torn(bytes, drawn) }
                }
                whole => whole,
            };
            if drawn == 1 || !drawn.is_multiple_of(3) {
                state.make_durable(&pending);
            }
        }
        state.volatile = state.durable.clone();
        state.fault = None;
        state.is_stopped = false;
        state.is_locked = false;
        state.note_published();
        // What a crash leaves as last signed may have been signed. What it takes away was not:
        // a signature comes after it is durable.
        state.note("private/last-signed");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the disk")
    }
}

/// Returns a prefix of the bytes, followed by nothing or by zeros.
fn torn(mut bytes: Vec<u8>, drawn: u64) -> Vec<u8> {
    let kept = (drawn >> 8) as usize % (bytes.len() + 1);
    match drawn % 4 {
        0 => bytes.truncate(kept),
        1 => bytes[kept..].fill(0),
        2 => bytes[..kept].fill(0),
        _ => {}
    }
    bytes
}

impl State {
    /// Counts an operation; the answer is whether it happens and whether it then fails.
    fn begin(&mut self, changes: bool) -> Result<bool, io::Error> {
        let at = self.changes.len() as u64;
        self.changes.push(changes);
        if self.is_stopped {
            return Err(failure());
        }
        match self.fault {
            Some((when, Fault::Fails)) if when == at => Err(failure()),
            Some((when, Fault::FailsAfterLanding)) if when == at => Ok(true),
            Some((when, Fault::Stops)) if when == at => {
                self.is_stopped = true;
                Err(failure())
            }
            _ => Ok(false),
        }
    }

    fn folder(&self, path: &str) -> io::Result<usize> {
        let mut at = ROOT;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let Inode::Folder(names) = &self.volatile[at] else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            at = *names.get(part).ok_or(io::ErrorKind::NotFound)?;
        }
        match &self.volatile[at] {
            Inode::Folder(_) => Ok(at),
            Inode::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Returns the place of a name, and what is there.
    fn place(&self, path: &str) -> io::Result<((usize, String), Option<usize>)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.folder(folder)?;
        let found = self.names(folder).get(name).copied();
        Ok(((folder, name.to_owned()), found))
    }

    fn names(&self, folder: usize) -> &BTreeMap<String, usize> {
        match &self.volatile[folder] {
            Inode::Folder(names) => names,
            Inode::File(_) => panic!("a folder is asked for"),
        }
    }

    fn bytes(&self, file: usize) -> &[u8] {
        match &self.volatile[file] {
            Inode::File(bytes) => bytes,
            Inode::Folder(_) => panic!("a file is asked for"),
        }
    }

    fn add(&mut self, inode: Inode) -> usize {
        self.volatile.push(inode.clone());
        self.durable.push(inode);
        self.volatile.len() - 1
    }

    fn perform(&mut self, pending: Pending) {
        apply(&mut self.volatile, &pending);
        self.pending.push(pending);
    }

    fn make_durable(&mut self, pending: &Pending) {
        apply(&mut self.durable, pending);
    }

    fn sync_file(&mut self, file: usize, lands: bool) {
        for pending in std::mem::take(&mut self.pending) {
            let is_of_file = match &pending {
                Pending::Truncate { file: of } | Pending::Write { file: of, .. } => *of == file,
                _ => false,
            };
            match (is_of_file, lands) {
                (true, true) => self.make_durable(&pending),
                (true, false) => {}
                (false, _) => self.pending.push(pending),
            }
        }
    }

    fn sync_folder(&mut self, folder: usize) {
        // The last operation on a name has the last word: what came before it and waits in
        // another folder must not come through after it.
        let mut settled = Vec::new();
        let (mut due, mut waiting) = (Vec::new(), Vec::new());
        for pending in std::mem::take(&mut self.pending).into_iter().rev() {
            let places = places(&pending);
            if places.iter().any(|(of, _)| *of == folder) {
                settled.extend(places);
                due.push(pending);
            } else if places.is_empty() || !places.iter().all(|at| settled.contains(at)) {
                waiting.push(pending);
            }
        }
        due.iter().rev().for_each(|pending| self.make_durable(pending));
        self.pending.extend(waiting.into_iter().rev());
    }

    /// Writes down the heads that anyone can see.
    fn note_published(&mut self) {
        self.note("checkpoint");
        let folder = self.folder("checkpoints").map(|folder| self.names(folder).clone());
        for name in folder.unwrap_or_default().keys() {
            self.note(&format!("checkpoints/{name}"));
        }
    }

    fn note(&mut self, path: &str) {
        let Ok((_, Some(file))) = self.place(path) else { return };
        let head = (path.to_owned(), self.bytes(file).to_vec());
        self.heads.insert(head);
    }
}

/// The names that an operation changes.
fn places(pending: &Pending) -> Vec<(usize, String)> {
    match pending {
        Pending::Truncate { .. } | Pending::Write { .. } => Vec::new(),
        Pending::Link { at, .. } | Pending::Unlink { at } => vec![at.clone()],
        Pending::Rename { from, to, .. } => vec![from.clone(), to.clone()],
    }
}

fn apply(image: &mut [Inode], pending: &Pending) {
    match pending {
        Pending::Truncate { file } => image[*file] = Inode::File(Vec::new()),
        Pending::Write { file, offset, bytes } => {
            let Inode::File(content) = &mut image[*file] else { panic!("a file is written") };
            let end = offset + bytes.len();
            // Where an earlier write was dropped, there are zeros.
            content.resize(content.len().max(end), 0);
            content[*offset..end].copy_from_slice(bytes);
        }
        Pending::Link { at, inode } => link(image, at, Some(*inode)),
        Pending::Unlink { at } => link(image, at, None),
        Pending::Rename { from, to, inode } => {
            link(image, from, None);
            link(image, to, Some(*inode));
        }
    }
}

fn link(image: &mut [Inode], (folder, name): &(usize, String), inode: Option<usize>) {
    let Inode::Folder(names) = &mut image[*folder] else { panic!("names are in folders") };
    match inode {
        Some(inode) => names.insert(name.clone(), inode),
        None => names.remove(name),
    };
}

fn failure() -> io::Error {
    io::Error::other("the disk fails")
}

fn finish(fails: bool) -> io::Result<()> {
    if fails { Err(failure()) } else { Ok(()) }
}

impl Storage for FaultyDisk {
    fn folder(&self) -> &Path {
        Path::new("log")
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Source>> {
        let mut state = self.state();
        finish(state.begin(false)?)?;
        let (_, found) = state.place(path)?;
        let file = found.ok_or(io::ErrorKind::NotFound)?;
        match &state.volatile[file] {
            Inode::File(_) => Ok(Box::new(Handle { disk: self.clone(), file, at: 0 })),
            Inode::Folder(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        let mut state = self.state();
        let fails = state.begin(true)?;
        let (at, found) = state.place(path)?;
        let file = match found {
            Some(file) => {
                state.perform(Pending::Truncate { file });
                file
            }
            None => {
                let inode = state.add(Inode::File(Vec::new()));
                state.perform(Pending::Link { at, inode });
                inode
            }
        };
        finish(fails)?;
        Ok(Box::new(Handle { disk: self.clone(), file, at: 0 }))
    }

    fn create_folder(&self, path: &str) -> io::Result<()> {
        let mut state = self.state();
        let fails = state.begin(true)?;
        let (at, found) = state.place(path)?;
        match found {
            Some(found) if matches!(state.volatile[found], Inode::Folder(_)) => {}
            Some(_) => return Err(io::ErrorKind::InvalidData.into()),
            None => {
                let inode = state.add(Inode::Folder(BTreeMap::new()));
                state.perform(Pending::Link { at, inode });
            }
        }
        finish(fails)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let fails = state.begin(true)?;
        let (source, found) = state.place(from)?;
        let (target, _) = state.place(to)?;
        let inode = found.ok_or(io::ErrorKind::NotFound)?;
        state.perform(Pending::Rename { from: source, to: target, inode });
        if to.starts_with("checkpoint") {
            state.note(to);
        }
        finish(fails)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.state();
        let fails = state.begin(true)?;
        let (at, found) = state.place(path)?;
        found.ok_or(io::ErrorKind::NotFound)?;
        state.perform(Pending::Unlink { at });
        finish(fails)
    }

    fn remove_folder(&self, path: &str) -> io::Result<()> {
        let mut state = self.state();
        let fails = state.begin(true)?;
        let (at, found) = state.place(path)?;
        let found = found.ok_or(io::ErrorKind::NotFound)?;
        if !state.names(found).is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.perform(Pending::Unlink { at });
        finish(fails)
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        let mut state = self.state();
        let fails = state.begin(true)?;
        let folder = state.folder(path)?;
        state.sync_folder(folder);
        finish(fails)
    }

    fn sync_everything(&self) -> io::Result<bool> {
        let mut state = self.state();
        if !state.syncs_everything {
            return Ok(false);
        }
        let begun = state.begin(true);
        if begun.is_err() && !state.is_stopped {
            state.pending.retain(|pending| !places(pending).is_empty());
        }
        let fails = begun?;
        for pending in std::mem::take(&mut state.pending) {
            state.make_durable(&pending);
        }
        finish(fails)?;
        Ok(true)
    }

    fn list(&self, path: &str, most: usize) -> io::Result<Option<Vec<Item>>> {
        let mut state = self.state();
        finish(state.begin(false)?)?;
        let folder = state.folder(path)?;
        let names = state.names(folder);
        if names.len() > most {
            return Ok(None);
        }
        let item = |(name, inode): (&String, &usize)| Item {
            name: name.clone(),
            kind: match state.volatile[*inode] {
                Inode::File(_) => ItemKind::File,
                Inode::Folder(_) => ItemKind::Folder,
            },
        };
        Ok(Some(names.iter().map(item).collect()))
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        let mut state = self.state();
        let fails = state.begin(true)?;
        let (at, found) = state.place(path)?;
        if state.is_locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if found.is_none() {
            let inode = state.add(Inode::File(Vec::new()));
            state.perform(Pending::Link { at, inode });
        }
        finish(fails)?;
        state.is_locked = true;
        drop(state);
        Ok(Box::new(Lock(self.clone())))
    }
}

/// An open file.
struct Handle {
    disk: FaultyDisk,
    file: usize,
    at: usize,
}

impl Write for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        let fails = state.begin(true)?;
        let (file, offset) = (self.file, self.at);
        state.perform(Pending::Write { file, offset, bytes: bytes.to_vec() });
        self.at += bytes.len();
        finish(fails)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Handle {
    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        match state.begin(true) {
            Ok(fails) => {
                state.sync_file(self.file, true);
                finish(fails)
            }
            Err(error) => {
                if !state.is_stopped {
                    state.sync_file(self.file, false);
                }
                Err(error)
            }
        }
    }
}

impl Read for Handle {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        finish(state.begin(false)?)?;
        let mut rest = state.bytes(self.file).get(self.at..).unwrap_or_default();
        let count = rest.read(target)?;
        self.at += count;
        Ok(count)
    }
}

impl Seek for Handle {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        let length = self.disk.state().bytes(self.file).len() as i64;
        let at = match position {
            SeekFrom::Start(at) => at as i64,
            SeekFrom::Current(by) => self.at as i64 + by,
            SeekFrom::End(by) => length + by,
        };
        self.at = usize::try_from(at).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(at as u64)
    }
}

impl Source for Handle {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().bytes(self.file).len() as u64)
    }
}

/// The lock, as long as it lives.
struct Lock(FaultyDisk);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.state().is_locked = false;
    }
}

impl Write for Lock {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Lock {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
