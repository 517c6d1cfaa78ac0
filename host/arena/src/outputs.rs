//! Writes the files that commands make: whole or not at all.
//!
//! What is made once, such as a key or a receipt, never replaces anything. What is kept up to
//! date is on the disk before this program says so.
//!
//! Not here: the log itself (`arena_log`) and what a run keeps beside it (`secrets`).

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::{CliError, Complaint};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone.
    Owner,
    /// Whoever the user's settings let.
    Anyone,
}

impl Readers {
    fn mode(self) -> u32 {
        match self {
            Readers::Owner => 0o600,
            Readers::Anyone => 0o666,
        }
    }
}

/// Writes a file that must not exist yet.
///
/// # Errors
/// Something of that name exists, or the file cannot be written.
pub fn create(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), CliError> {
    let created = fill_new(path, bytes, readers);
    created.and_then(|()| sync_folder(path)).map_err(|error| {
        let complaint = Complaint::new(format!("cannot write `{}`", path.display()), &error);
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                CliError::Config(complaint.hint("nothing is overwritten: choose another name"))
            }
            io::ErrorKind::NotFound => CliError::Config(complaint.hint("make its folder first")),
            _ => CliError::Infrastructure(complaint),
        }
    })
}

/// Puts a file in the place of whatever file has its name. Once this returns, the file is on
/// the disk; if the machine fails before, the old one is.
///
/// # Errors
/// The file cannot be written.
pub fn replace(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), CliError> {
    let mut output = Output::begin(path, readers)?;
    let written = output.file.write_all(bytes);
    written.map_err(|error| output.fails(&error))?;
    output.finish()
}

/// A file under way that will replace another. It takes its name when it is finished.
pub struct Output {
    path: PathBuf,
    new: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    /// Begins a file beside the one that it will replace.
    ///
    /// # Errors
    /// It cannot be written there.
    pub fn begin(path: &Path, readers: Readers) -> Result<Output, CliError> {
        let new = beside(path);
        let opened = match fs::remove_file(&new) {
            // What an earlier run left when it was killed was never finished.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => open_new(&new, readers),
        };
        let file = opened.map_err(|error| {
            let failed = format!("cannot write `{}`", path.display());
            CliError::Infrastructure(Complaint::new(failed, error))
        })?;
        Ok(Output { path: path.to_owned(), new, file: BufWriter::new(file) })
    }

    /// Gives the file its name, once it is on the disk.
    ///
    /// # Errors
    /// It cannot be written or named.
    pub fn finish(mut self) -> Result<(), CliError> {
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        let named = flushed.and_then(|()| fs::rename(&self.new, &self.path));
        named.and_then(|()| sync_folder(&self.path)).map_err(|error| self.fails(&error))
    }

    /// Says that writing failed.
    pub fn fails(&self, error: &io::Error) -> CliError {
        let failed = format!("cannot write `{}`", self.path.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the name under which a file is written that will take the name `path`. It begins with
/// a dot: among the heads that witnesses cosigned, no reader looks at such a file.
pub fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

/// Gives a file that was written [`beside`] its name, once it is on the disk.
///
/// # Errors
/// It cannot be named.
#[cfg(feature = "index")]
pub fn name(new: &Path, path: &Path) -> Result<(), CliError> {
    let synced = File::open(new).and_then(|file| file.sync_all());
    let named = synced.and_then(|()| fs::rename(new, path)).and_then(|()| sync_folder(path));
    named.map_err(|error| {
        let failed = format!("cannot write `{}`", path.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    })
}

fn fill_new(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let mut file = open_new(path, readers)?;
    let filled = file.write_all(bytes).and_then(|()| file.sync_all());
    if filled.is_err() {
        // Half a file would stand in the way of the next try.
        let _ = fs::remove_file(path);
    }
    filled
}

fn open_new(path: &Path, readers: Readers) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(readers.mode()).open(path)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_private_file_is_its_owners_and_is_never_overwritten() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key.pem");
        create(&path, b"one", Readers::Owner).expect("a new file");
        let mode = fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(create(&path, b"two", Readers::Owner).is_err());
        assert_eq!(fs::read(&path).expect("the file"), b"one");
    }

    #[test]
    fn a_dangling_link_is_not_written_through() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        assert!(create(&link, b"one", Readers::Owner).is_err());
        assert!(!target.exists());
    }

    #[test]
    fn a_replaced_file_has_the_new_bytes_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("state");
        for bytes in [b"one".as_slice(), b"two"] {
            replace(&path, bytes, Readers::Owner).expect("a file");
            assert_eq!(fs::read(&path).expect("the file"), bytes);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
    }
}
