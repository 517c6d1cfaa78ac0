//! Writes a log: one process at a time, entries at the end only.
//!
//! An entry counts once all its bytes are in the file. After a failed write the file is cut
//! back to the last whole group, and after a failed sync nothing is trusted: either way this
//! handle takes no more entries.
//!
//! Not here: judging where a log that was left behind may go on; whoever reads it decides.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::error::LogError;
use super::medium::{self, Medium};
use super::reader::LogReader;
use super::{Boundary, ENTRY_BYTES_MAX, frame, path_in};

/// Most bytes that are written together, frames included.
pub const GROUP_BYTES_MAX: usize = 16 << 20;

/// Most bytes that a crash of the machine can lose: the writer syncs at half of this, and one
/// group may still come on top.
pub const UNSYNCED_BYTES_MAX: u64 = 2 * GROUP_BYTES_MAX as u64;

/// The end of a log, held exclusively.
pub struct LogWriter {
    medium: Box<dyn Medium>,
    path: PathBuf,
    group: Vec<u8>,
    boundary: Boundary,
    synced: Boundary,
    broken: bool,
}

impl LogWriter {
    /// Starts a log in `folder`, which is created where it does not exist.
    ///
    /// # Errors
    /// The folder holds a log or anything else, or cannot be written.
    pub fn create(folder: &Path) -> Result<LogWriter, LogError> {
        let path = path_in(folder);
        medium::prepare_folder(folder)?;
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create_new(true).open(&path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => LogError::Exists { path: path.clone() },
            _ => LogError::Io { doing: "create", path: path.clone(), source },
        })?;
        medium::lock(&file, &path)?;
        let mut writer = LogWriter::at(Box::new(file), path, Boundary::START);
        writer.write_header()?;
        medium::sync_folder(folder)?;
        Ok(writer)
    }

    /// Takes hold of the log that lies in `folder`, to read it and then to go on with it.
    ///
    /// # Errors
    /// There is none, another process holds it, or it cannot be opened.
    pub fn open_for_append(folder: &Path) -> Result<Reopened, LogError> {
        let path = path_in(folder);
        medium::refuse_special(&path)?;
        let opened = OpenOptions::new().read(true).append(true).open(&path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => LogError::Missing { path: path.clone() },
            _ => LogError::Io { doing: "open", path: path.clone(), source },
        })?;
        medium::lock(&file, &path)?;
        Ok(Reopened { file, path })
    }

    /// Returns how many entries the log has.
    pub fn entry_count(&self) -> u64 {
        self.boundary.entry_count
    }

    /// Returns how many bytes the log has.
    pub fn byte_count(&self) -> u64 {
        self.boundary.offset
    }

    /// Appends entries with a single write. Syncs by itself only after half of
    /// [`UNSYNCED_BYTES_MAX`] bytes; how often else is the caller's choice.
    ///
    /// # Errors
    /// An entry or the group is too large, and nothing was written; or the write or the sync
    /// failed, and this handle takes no more entries.
    pub fn append_all(&mut self, entries: &[&[u8]]) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken { path: self.path.clone() });
        }
        self.fill_group(entries)?;
        if let Err(source) = self.medium.write_all(&self.group) {
            self.broken = true;
            // Some bytes of the group may be in the file. Cutting them is a courtesy: where
            // it fails too, the next reader finds a torn tail.
            let _ = self.medium.cut(self.boundary.offset);
            return Err(LogError::Io { doing: "write", path: self.path.clone(), source });
        }
        self.boundary.entry_count += entries.len() as u64;
        self.boundary.offset += self.group.len() as u64;
        if self.sync_is_due() { self.sync() } else { Ok(()) }
    }

    /// Forces everything that was appended to the disk.
    ///
    /// # Errors
    /// The system could not, and this handle takes no more entries.
    pub fn sync(&mut self) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken { path: self.path.clone() });
        }
        if let Err(source) = self.medium.sync() {
            // The system may have dropped the unwritten pages, and would call a second
            // attempt a success.
            self.broken = true;
            return Err(LogError::Io { doing: "sync", path: self.path.clone(), source });
        }
        self.synced = self.boundary;
        Ok(())
    }

    /// Syncs and lets go of the log.
    ///
    /// # Errors
    /// The sync failed.
    pub fn close(mut self) -> Result<(), LogError> {
        self.sync()
    }

    fn at(medium: Box<dyn Medium>, path: PathBuf, boundary: Boundary) -> LogWriter {
        let group = Vec::new();
        LogWriter { medium, path, group, boundary, synced: boundary, broken: false }
    }

    fn write_header(&mut self) -> Result<(), LogError> {
        let header = frame::header();
        let written = self.medium.write_all(&header);
        written.map_err(|source| LogError::Io {
            doing: "write",
            path: self.path.clone(),
            source,
        })?;
        self.boundary = Boundary { entry_count: 0, offset: header.len() as u64 };
        self.sync()
    }

    fn fill_group(&mut self, entries: &[&[u8]]) -> Result<(), LogError> {
        if let Some(entry) = entries.iter().find(|entry| entry.len() > ENTRY_BYTES_MAX) {
            return Err(LogError::EntryTooLarge { bytes: entry.len() });
        }
        let bytes = group_bytes(entries);
        if bytes > GROUP_BYTES_MAX {
            return Err(LogError::GroupTooLarge { bytes });
        }
        self.group.clear();
        for entry in entries {
            let offset = self.boundary.offset + self.group.len() as u64;
            frame::push(&mut self.group, offset, entry);
        }
        Ok(())
    }

    fn sync_is_due(&self) -> bool {
        self.boundary.offset - self.synced.offset >= UNSYNCED_BYTES_MAX / 2
    }
}

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LogWriter({}, {:?})", self.path.display(), self.boundary)
    }
}

/// Returns the bytes that `entries` take in the file.
pub fn group_bytes(entries: &[&[u8]]) -> usize {
    entries.iter().map(|entry| frame::PREFIX_BYTES + entry.len()).sum()
}

/// A log that was left behind, held exclusively and not yet written to.
#[derive(Debug)]
pub struct Reopened {
    file: File,
    path: PathBuf,
}

impl Reopened {
    /// Reads the log from its start.
    ///
    /// # Errors
    /// It cannot be read, or is not a log of this layout.
    pub fn reader(&self) -> Result<LogReader, LogError> {
        LogReader::open(&self.path)
    }

    /// Cuts everything after `boundary`, which the log's reader gave, and goes on from there.
    ///
    /// # Errors
    /// The file cannot be cut or synced.
    pub fn truncate_to(self, boundary: Boundary) -> Result<LogWriter, LogError> {
        let Reopened { mut file, path } = self;
        let cut = file.cut(boundary.offset);
        cut.map_err(|source| LogError::Io { doing: "cut", path: path.clone(), source })?;
        let mut writer = LogWriter::at(Box::new(file), path, boundary);
        if boundary == Boundary::START {
            // The crash came before the header was whole.
            writer.write_header()?;
        }
        writer.sync()?;
        Ok(writer)
    }
}

impl Boundary {
    /// The start of a file that has no header yet.
    const START: Boundary = Boundary { entry_count: 0, offset: 0 };
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    use super::*;
    use super::super::FILE_NAME;

    /// What a failing disk holds, and how it fails.
    #[derive(Debug, Default)]
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        bytes_per_write: usize,
        sync_fails: bool,
        cut_fails: bool,
    }

    /// The disk as a writer holds it; the test keeps another hand on it.
    struct FailingDisk(Rc<RefCell<Disk>>);

    impl Write for FailingDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.borrow_mut();
            let room = disk.room.saturating_sub(disk.bytes.len());
            let count = bytes.len().min(disk.bytes_per_write).min(room);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.bytes.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Medium for FailingDisk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            let mut disk = self.0.borrow_mut();
            if disk.cut_fails {
                return Err(io::ErrorKind::Other.into());
            }
            disk.bytes.truncate(usize::try_from(length).expect("a small disk"));
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            if self.0.borrow().sync_fails { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        }
    }

    fn writer_on(disk: Disk) -> (LogWriter, Rc<RefCell<Disk>>) {
        let disk = Rc::new(RefCell::new(disk));
        let medium = Box::new(FailingDisk(Rc::clone(&disk)));
        let mut writer = LogWriter::at(medium, PathBuf::from(FILE_NAME), Boundary::START);
        writer.write_header().expect("the disk has room for a header");
        (writer, disk)
    }

    #[test]
    fn short_writes_lose_nothing() {
        let (mut writer, disk) =
            writer_on(Disk { room: 4_096, bytes_per_write: 3, ..Disk::default() });
        let (mut whole, wanted) =
            writer_on(Disk { room: 4_096, bytes_per_write: 4_096, ..Disk::default() });
        for writer in [&mut writer, &mut whole] {
            writer.append_all(&[b"one", b"", b"three"]).expect("there is room");
        }
        assert_eq!(disk.borrow().bytes, wanted.borrow().bytes);
    }

    #[test]
    fn a_full_disk_counts_no_part_of_a_group_and_takes_no_more() {
        let whole = frame::HEADER_BYTES + frame::PREFIX_BYTES + b"first".len();
        for extra in 0..2 * frame::PREFIX_BYTES + b"secondthird".len() {
            let disk = Disk { room: whole + extra, bytes_per_write: 7, ..Disk::default() };
            let (mut writer, disk) = writer_on(disk);
            writer.append_all(&[b"first"]).expect("there is room for one");
            let error = writer.append_all(&[b"second", b"third"]).expect_err("the disk is full");
            assert!(matches!(error, LogError::Io { doing: "write", .. }), "{error:?}");
            assert_eq!(writer.entry_count(), 1);
            assert_eq!(disk.borrow().bytes.len(), whole, "room for {extra} more");
            disk.borrow_mut().room = 4_096;
            for error in [writer.append_all(&[b"second"]), writer.sync()] {
                assert!(matches!(error, Err(LogError::Broken { .. })), "{error:?}");
            }
        }
    }

    #[test]
    fn a_failed_sync_is_never_tried_again() {
        let disk = Disk { room: 4_096, bytes_per_write: 99, ..Disk::default() };
        let (mut writer, disk) = writer_on(disk);
        writer.append_all(&[b"first"]).expect("there is room");
        disk.borrow_mut().sync_fails = true;
        assert!(matches!(writer.sync(), Err(LogError::Io { doing: "sync", .. })));
        disk.borrow_mut().sync_fails = false;
        assert!(matches!(writer.sync(), Err(LogError::Broken { .. })));
        assert!(matches!(writer.append_all(&[b"second"]), Err(LogError::Broken { .. })));
    }

    #[test]
    fn where_cutting_fails_too_the_whole_groups_are_still_there() {
        let room = frame::HEADER_BYTES + frame::PREFIX_BYTES + b"first".len() + 5;
        let (mut writer, disk) =
            writer_on(Disk { room, bytes_per_write: 99, cut_fails: true, ..Disk::default() });
        writer.append_all(&[b"first"]).expect("there is room for one");
        let whole = disk.borrow().bytes.clone();
        writer.append_all(&[b"second"]).expect_err("the disk is full");
        assert!(disk.borrow().bytes.starts_with(&whole));
        assert_eq!(writer.byte_count(), whole.len() as u64);
    }

    #[test]
    fn no_more_than_the_limit_is_ever_unsynced() {
        let (mut writer, disk) =
            writer_on(Disk { room: usize::MAX, bytes_per_write: usize::MAX, ..Disk::default() });
        disk.borrow_mut().sync_fails = true;
        let entry = vec![0; ENTRY_BYTES_MAX];
        let error = (0..8).find_map(|_| writer.append_all(&[&entry]).err());
        assert!(matches!(error, Some(LogError::Io { doing: "sync", .. })), "{error:?}");
        assert!(writer.byte_count() <= UNSYNCED_BYTES_MAX);
    }
}
