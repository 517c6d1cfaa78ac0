//! The disk under a log: a file that is cut, synced and locked, and its folder.
//!
//! Not here: what is written.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use super::FILE_NAME;
use super::error::LogError;

/// What a log is written to: a file, or in tests a disk that fails.
pub trait Medium: Write {
    /// Drops everything after the first `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Returns once everything is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Refuses what is there and no file: a pipe would never end, and block whoever opens it.
pub fn refuse_special(path: &Path) -> Result<(), LogError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(LogError::NotALog { path: path.to_owned() }),
        // What is missing or unreadable says so when it is opened.
        _ => Ok(()),
    }
}

pub fn lock(file: &File, path: &Path) -> Result<(), LogError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => LogError::Locked { path: path.to_owned() },
        TryLockError::Error(source) => {
            LogError::Io { doing: "lock", path: path.to_owned(), source }
        }
    })
}

/// Creates the folder where it does not exist; refuses one that holds anything but a log.
pub fn prepare_folder(folder: &Path) -> Result<(), LogError> {
    let error = |doing| move |source| LogError::Io { doing, path: folder.to_owned(), source };
    if !folder.exists() {
        fs::create_dir_all(folder).map_err(error("create"))?;
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        return sync_folder(parent.unwrap_or(Path::new(".")));
    }
    for file in fs::read_dir(folder).map_err(error("list"))? {
        let name = file.map_err(error("list"))?.file_name();
        if name != FILE_NAME {
            let name = name.to_string_lossy().into_owned();
            return Err(LogError::ForeignFile { folder: folder.to_owned(), name });
        }
    }
    Ok(())
}

/// Makes new names in `folder` durable.
pub fn sync_folder(folder: &Path) -> Result<(), LogError> {
    let synced = File::open(folder).and_then(|handle| handle.sync_all());
    synced.map_err(|source| LogError::Io { doing: "sync", path: folder.to_owned(), source })
}
