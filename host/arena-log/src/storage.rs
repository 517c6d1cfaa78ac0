//! The disk under a log: files and folders by paths relative to the log's folder.
//!
//! Only regular files are opened and only real folders walked through: a link or a pipe that
//! someone has put into the folder is refused, wherever in the path it lies. The trait is the
//! seam at which tests put a disk that fails.
//!
//! Not here: what is written, and in which order.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::LogError;
use crate::tile;

/// A file that is written from its start to its end.
pub trait Sink: Write + Send {
    /// Returns once everything that was written is on the disk.
    ///
    /// # Errors
    /// The system could not. Trying again proves nothing: it may have dropped the bytes.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is read.
pub trait Source: Read + Seek + Send {
    /// Returns how many bytes the file has.
    ///
    /// # Errors
    /// The system does not tell.
    fn length(&self) -> io::Result<u64>;
}

/// What a name in a folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Anything else: a link, a pipe, a device, or a name that is not UTF-8.
    Special,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The name. One that is not UTF-8 is given with replacement characters, which no file of
    /// a log has.
    pub name: String,
    /// What it stands for.
    pub kind: ItemKind,
}

/// What a log lies on. An empty path is the log's folder itself.
///
/// A regular file that turns out to be something else is an error of the kind
/// [`io::ErrorKind::InvalidData`], everywhere.
pub trait Storage: Send + Sync {
    /// Returns the log's folder, for messages.
    fn folder(&self) -> &Path;

    /// Opens a file to read it.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    fn open(&self, path: &str) -> io::Result<Box<dyn Source>>;

    /// Opens a file to write it. One that is there becomes empty first.
    ///
    /// # Errors
    /// The folder is not there, or the system refuses.
    fn create(&self, path: &str) -> io::Result<Box<dyn Sink>>;

    /// Creates a folder in one that is there. One that is there already is fine.
    ///
    /// # Errors
    /// The system refuses, or the name stands for something else.
    fn create_folder(&self, path: &str) -> io::Result<()>;

    /// Renames a file or folder. A file that is there already is replaced.
    ///
    /// # Errors
    /// The system refuses.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system refuses.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// It is not empty, or the system refuses.
    fn remove_folder(&self, path: &str) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// The system could not.
    fn sync_folder(&self, path: &str) -> io::Result<()>;

    /// Lists a folder in the order of the names; `None` when it holds more than `most`.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    fn list(&self, path: &str, most: usize) -> io::Result<Option<Vec<Item>>>;

    /// Takes an exclusive lock on a file, which is created where it does not exist, for as long
    /// as the sink lives.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when another process holds it.
    fn lock(&self, path: &str) -> io::Result<Box<dyn Sink>>;
}

/// A folder on a real disk.
#[derive(Debug)]
pub struct Disk {
    root: OwnedFd,
    folder: PathBuf,
}

impl Disk {
    /// Takes up a folder that is there.
    ///
    /// # Errors
    /// It is not there, or is no folder.
    pub fn open(folder: &Path) -> Result<Disk, LogError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::empty()) {
            Ok(root) => Ok(Disk { root, folder: folder.to_owned() }),
            Err(Errno::NOENT | Errno::NOTDIR) => Err(LogError::Missing { path: folder.to_owned() }),
            Err(errno) => {
                let source = errno.into();
                Err(LogError::Io { doing: "open", path: folder.to_owned(), source })
            }
        }
    }

    /// Creates the folder, durably, where it does not exist.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(folder: &Path) -> Result<Disk, LogError> {
        if !folder.exists() {
            let made = make_durable_folder(folder);
            let error = |source| LogError::Io { doing: "create", path: folder.to_owned(), source };
            made.map_err(error)?;
        }
        Disk::open(folder)
    }

    /// Opens `path`, walking from folder to folder without following a link.
    fn open_at(&self, path: &str, flags: OFlags) -> io::Result<File> {
        let (folder, name) = self.parent(path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        // A pipe without a writer would block whoever opens it.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let opened = rustix::fs::openat(folder, name, flags, mode).map_err(unlinked)?;
        let file = File::from(opened);
        if !file.metadata()?.is_file() {
            return Err(special());
        }
        Ok(file)
    }

    /// Opens the folder that holds `path`; `None` is the root.
    fn parent<'a>(&self, path: &'a str) -> io::Result<(Option<OwnedFd>, &'a str)> {
        match path.rsplit_once('/') {
            None => Ok((None, path)),
            Some((folder, name)) => Ok((Some(self.open_folder(folder)?), name)),
        }
    }

    fn open_folder(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = None;
        for part in path.split('/') {
            assert!(!matches!(part, "" | "." | ".."), "paths are computed from numbers and hashes");
            let at = folder.as_ref().unwrap_or(&self.root);
            let opened = rustix::fs::openat(at, part, flags, Mode::empty());
            folder = Some(opened.map_err(unlinked)?);
        }
        folder.ok_or_else(special)
    }
}

impl Storage for Disk {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(self.open_at(path, OFlags::RDONLY)?))
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        Ok(Box::new(self.open_at(path, flags)?))
    }

    fn create_folder(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        // What is withheld is for its owner alone.
        let mode = if path == tile::PRIVATE { 0o700 } else { 0o777 };
        match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode)) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => self.open_folder(path).map(drop),
            Err(errno) => Err(errno.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from_folder, from_name) = self.parent(from)?;
        let (to_folder, to_name) = self.parent(to)?;
        let from_folder = from_folder.as_ref().unwrap_or(&self.root);
        let to_folder = to_folder.as_ref().unwrap_or(&self.root);
        Ok(rustix::fs::renameat(from_folder, from_name, to_folder, to_name)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn remove_folder(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        if path.is_empty() {
            return Ok(rustix::fs::fsync(&self.root)?);
        }
        File::from(self.open_folder(path)?).sync_all()
    }

    fn list(&self, path: &str, most: usize) -> io::Result<Option<Vec<Item>>> {
        let opened = if path.is_empty() { None } else { Some(self.open_folder(path)?) };
        let folder = opened.as_ref().unwrap_or(&self.root);
        let mut items = Vec::new();
        for item in Dir::read_from(folder)? {
            let item = item?;
            if matches!(item.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            if items.len() == most {
                return Ok(None);
            }
            let mut found = item.file_type();
            if found == FileType::Unknown {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                let stat = rustix::fs::statat(folder, item.file_name(), flags)?;
                found = FileType::from_raw_mode(stat.st_mode);
            }
            let name = item.file_name().to_str();
            let kind = match found {
                FileType::RegularFile if name.is_ok() => ItemKind::File,
                FileType::Directory if name.is_ok() => ItemKind::Folder,
                _ => ItemKind::Special,
            };
            let name = item.file_name().to_string_lossy().into_owned();
            items.push(Item { name, kind });
        }
        items.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(items))
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        let file = self.open_at(path, OFlags::RDWR | OFlags::CREATE)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        Ok(Box::new(file))
    }
}

impl Sink for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Source for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// Creates a folder and whatever is missing above it, and makes the new names durable.
fn make_durable_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|at| !at.as_os_str().is_empty() && !at.exists());
    let missing: Vec<&Path> = missing.collect();
    fs::create_dir_all(folder)?;
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn special() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is a link or no regular file")
}

/// What the system says of a link that is not followed, or of a file in a folder's place.
fn unlinked(errno: Errno) -> io::Error {
    match errno {
        Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => special(),
        errno => errno.into(),
    }
}

/// Bytes fetched from a file at once.
const READ_BYTES: usize = 64 << 10;

/// The same operations with the errors of a log.
impl dyn Storage + '_ {
    /// Returns where `path` lies, for messages.
    pub(crate) fn shown(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.folder().to_owned() } else { self.folder().join(path) }
    }

    pub(crate) fn error(&self, doing: &'static str, path: &str, source: io::Error) -> LogError {
        let path = self.shown(path);
        match source.kind() {
            io::ErrorKind::InvalidData => LogError::Special { path },
            _ => LogError::Io { doing, path, source },
        }
    }

    /// Opens a file that must be there, with its length.
    pub(crate) fn reader(&self, path: &str) -> Result<(Buffered, u64), LogError> {
        let missing = || LogError::MissingFile { path: self.shown(path) };
        self.reader_if_there(path)?.ok_or_else(missing)
    }

    pub(crate) fn reader_if_there(&self, path: &str) -> Result<Option<(Buffered, u64)>, LogError> {
        let source = match self.open(path) {
            Ok(source) => source,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error("open", path, error)),
        };
        let length = source.length().map_err(|error| self.error("read", path, error))?;
        Ok(Some((BufReader::with_capacity(READ_BYTES, source), length)))
    }

    /// Reads a whole file of at most `most` bytes, if it is there.
    pub(crate) fn read_if_there(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, LogError> {
        let Some((reader, length)) = self.reader_if_there(path)? else {
            return Ok(None);
        };
        let too_long = |found| LogError::Length { path: self.shown(path), found, wanted: most };
        if length > most {
            return Err(too_long(length));
        }
        // The file may have grown since its length was taken.
        let mut bytes = Vec::new();
        let read = reader.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| self.error("read", path, error))?;
        if bytes.len() as u64 > most {
            return Err(too_long(bytes.len() as u64));
        }
        Ok(Some(bytes))
    }

    /// Reads a whole file of exactly `wanted` bytes, which must be there.
    pub(crate) fn read_exactly(&self, path: &str, wanted: u64) -> Result<Vec<u8>, LogError> {
        let missing = || LogError::MissingFile { path: self.shown(path) };
        let bytes = self.read_if_there(path, wanted)?.ok_or_else(missing)?;
        if bytes.len() as u64 != wanted {
            let found = bytes.len() as u64;
            return Err(LogError::Length { path: self.shown(path), found, wanted });
        }
        Ok(bytes)
    }

    pub(crate) fn writer(&self, path: &str) -> Result<Box<dyn Sink>, LogError> {
        self.create(path).map_err(|error| self.error("create", path, error))
    }

    /// Creates a folder and those above it that are not there.
    pub(crate) fn make_folders(&self, path: &str) -> Result<(), LogError> {
        match self.create_folder(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.error("create", path, error)),
        }
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let made = self.create_folder(&path[..end]);
            made.map_err(|error| self.error("create", &path[..end], error))?;
        }
        Ok(())
    }

    pub(crate) fn move_to(&self, from: &str, to: &str) -> Result<(), LogError> {
        self.rename(from, to).map_err(|error| self.error("rename to", to, error))
    }

    pub(crate) fn settle(&self, path: &str) -> Result<(), LogError> {
        self.sync_folder(path).map_err(|error| self.error("sync", path, error))
    }

    /// Puts a small file into its place, whole or not at all, durably.
    pub(crate) fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), LogError> {
        let mut sink = self.writer(tile::TEMPORARY)?;
        let written = sink.write_all(bytes);
        written.map_err(|error| self.error("write", tile::TEMPORARY, error))?;
        sink.sync().map_err(|error| self.error("sync", tile::TEMPORARY, error))?;
        self.move_to(tile::TEMPORARY, path)?;
        self.settle(folder_of(path))
    }

    /// Lists a folder; one that is not there holds nothing.
    pub(crate) fn items(&self, path: &str, most: usize) -> Result<Vec<Item>, LogError> {
        match self.list(path, most) {
            Ok(Some(items)) => Ok(items),
            Ok(None) => Err(LogError::TooManyFiles { path: self.shown(path), most }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.error("list", path, error)),
        }
    }

    /// Returns whether there is a folder of this name.
    pub(crate) fn has_folder(&self, path: &str) -> Result<bool, LogError> {
        match self.list(path, 0) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.error("list", path, error)),
        }
    }
}

/// A file that is read in large pieces.
pub(crate) type Buffered = BufReader<Box<dyn Source>>;

/// Returns the folder of a path; the empty path is the log's folder.
pub(crate) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
