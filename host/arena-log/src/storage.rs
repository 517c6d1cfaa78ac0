//! The disk under a log: files and folders by paths relative to the log's folder.
//!
//! The trait is the seam at which tests put a disk that fails. What is built on it here reads
//! with bounds, and puts small files into place whole or not at all.
//!
//! Not here: real files (`disk`); what is written, and in which order (`writer`).

use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

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

    /// Makes everything durable at once, if that can be vouched for. Where the answer is
    /// false, files and folders must be synced one by one.
    ///
    /// # Errors
    /// The system could not. What was lost is not known.
    fn sync_everything(&self) -> io::Result<bool> {
        Ok(false)
    }

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
        let too_large = |bytes| {
            let path = self.shown(path);
            LogError::FileTooLarge { path, bytes, most }
        };
        if length > most {
            return Err(too_large(length));
        }
        // The file may have grown since its length was taken.
        let mut bytes = Vec::new();
        let read = reader.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| self.error("read", path, error))?;
        if bytes.len() as u64 > most {
            return Err(too_large(bytes.len() as u64));
        }
        Ok(Some(bytes))
    }

    /// Reads a whole file of exactly `wanted` bytes, which must be there.
    pub(crate) fn read_exactly(&self, path: &str, wanted: u64) -> Result<Vec<u8>, LogError> {
        let (reader, length) = self.reader(path)?;
        let mut bytes = Vec::new();
        if length == wanted {
            let read = reader.take(wanted).read_to_end(&mut bytes);
            read.map_err(|error| self.error("read", path, error))?;
        }
        if bytes.len() as u64 != wanted {
            return Err(LogError::Length { path: self.shown(path), found: length, wanted });
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
