//! The folder of a log as a stranger gave it: files are read up to a bound, links are not
//! followed, and whatever is wrong becomes a finding with the file's name.
//!
//! Not here: which files there should be (`files`).

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use arena_log::disk::Disk;
use arena_log::error::LogError;
use arena_log::storage::{Item, Storage};

use crate::verdict::Finding;

/// A folder that is read and never written.
#[derive(Debug)]
pub(crate) struct Folder {
    disk: Disk,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder.
    ///
    /// # Errors
    /// It is not there, or is no folder.
    pub fn open(path: &Path) -> Result<Folder, LogError> {
        Ok(Folder { disk: Disk::open(path)?, path: path.to_owned() })
    }

    /// Reads a file of at most `most` bytes; `None` where there is none.
    ///
    /// # Errors
    /// It is larger, is no regular file, or cannot be read.
    pub fn read(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, Finding> {
        let unreadable = |error: io::Error| Finding::new("the file", error, "one to read");
        let source = match self.disk.open(path) {
            Ok(source) => source,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error).within(path)),
        };
        let length = source.length().map_err(|error| unreadable(error).within(path))?;
        if length > most {
            return Err(Finding::new("the bytes", length, format!("at most {most}")).within(path));
        }
        // The file could grow while it is read.
        let mut bytes = Vec::new();
        let read = source.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(error).within(path))?;
        if bytes.len() as u64 > most {
            let wanted = format!("at most {most}");
            return Err(Finding::new("the bytes", "more", wanted).within(path));
        }
        Ok(Some(bytes))
    }

    /// Returns how many bytes a file has; `None` where there is none.
    ///
    /// # Errors
    /// It is no regular file, or cannot be opened.
    pub fn length(&self, path: &str) -> Result<Option<u64>, Finding> {
        let unreadable = |error: io::Error| Finding::new("the file", error, "one to read");
        match self.disk.open(path) {
            Ok(source) => {
                let length = source.length().map_err(|error| unreadable(error).within(path))?;
                Ok(Some(length))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(error).within(path)),
        }
    }

    /// Lists a folder of at most `most` names; one that is not there holds nothing.
    ///
    /// # Errors
    /// It holds more, is a link or no folder, or cannot be read.
    pub fn list(&self, path: &str, most: usize) -> Result<Vec<Item>, Finding> {
        match self.disk.list(path, most) {
            Ok(Some(items)) => Ok(items),
            Ok(None) => {
                let wanted = format!("at most {most}");
                Err(Finding::new("the names in the folder", "more", wanted).within(path))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Finding::new("the folder", error, "one to list").within(path)),
        }
    }

    /// Puts an error of the log into the words of a finding.
    pub fn finding(&self, error: &LogError) -> Finding {
        let (what, path, found, wanted) = match error {
            LogError::Tile { path, position, found, computed } => {
                let what = format!("hash {position}");
                (what, path, found.to_string(), computed.to_string())
            }
            LogError::Root { path, size, found, computed } => {
                let what = format!("the root of {size} entries");
                (what, path, found.to_string(), computed.to_string())
            }
            LogError::Length { path, found, wanted } => {
                ("the bytes".to_owned(), path, found.to_string(), wanted.to_string())
            }
            LogError::Blob { path, found } => {
                let what = "the hash of the bytes".to_owned();
                (what, path, found.to_string(), "its name".to_owned())
            }
            LogError::MissingFile { path } => {
                ("the file".to_owned(), path, "none".to_owned(), "one".to_owned())
            }
            LogError::UnexpectedFile { path } => {
                ("the file".to_owned(), path, "one".to_owned(), "none of this name".to_owned())
            }
            LogError::Special { path } => {
                let found = "a link or no regular file".to_owned();
                ("the file".to_owned(), path, found, "a regular file".to_owned())
            }
            LogError::NotAPrefix { path, fuller, offset } => {
                let wanted = format!("what `{}` starts with", self.relative(fuller));
                let found = format!("another byte at {offset}");
                ("the bytes".to_owned(), path, found, wanted)
            }
            LogError::Bundle { path, index, damage } => {
                let found = damage.to_string();
                let finding = Finding::new("the bundle", found, "whole entries").at(*index);
                return finding.within(self.relative(path));
            }
            error => return Finding::new("the log", error, "one that can be read"),
        };
        Finding::new(what, found, wanted).within(self.relative(path))
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.path).unwrap_or(path).display().to_string()
    }
}
