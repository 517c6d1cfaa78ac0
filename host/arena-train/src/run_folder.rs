//! The folder of a training run: where everything lies, and how it comes there whole.
//!
//! One process at a time writes. A file is written under another name, synced and renamed, and so
//! is a folder, so that a run that was killed anywhere goes on from what it finds. A run belongs
//! to one experiment text for ever.
//!
//! ```text
//! experiment.toml        as it stood, with the command line's seed and steps
//! private/               the key that signs; the folder that paths are resolved against
//! warm-start/            the log of a teacher's demonstrations
//! steps/000001/          the log of the matches that step 1 learned from
//! ledger/                the signed account of all steps
//! evaluations/000025-greedy/
//! checkpoints/000025/    policy, optimiser, and what is said of the step (`checkpoint`)
//! policy                 the newest checkpoint's
//! steps.jsonl, evaluations.jsonl
//! ```
//!
//! Not here: what a checkpoint holds (`checkpoint`), the logs (`arena-log`).

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::experiment::{EXPERIMENT_BYTES_MAX, Occasion};

/// Longest file of lines that is read, in bytes.
pub const LINES_BYTES_MAX: u64 = 1 << 30;

const EXPERIMENT: &str = "experiment.toml";
const LOCK: &str = "lock";
/// Ends the names of what is being written.
const UNFINISHED: &str = ".new";

/// An open run, which no other process writes to.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Holds the lock while it lives.
    _lock: File,
}

/// What is wrong with a run's folder.
#[derive(Debug)]
pub enum FolderError {
    /// The system refused.
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Its words.
        source: io::Error,
    },
    /// Another process writes there.
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// It is another experiment's.
    OtherExperiment {
        /// The file that says so.
        path: PathBuf,
    },
    /// It holds something and is no run.
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What it holds.
        found: String,
    },
    /// A file does not say what it should.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FolderError::Io { doing, path, source } => {
                write!(f, "cannot {doing} `{}`: {source}", path.display())
            }
            FolderError::Locked { path } => {
                write!(f, "another process trains in `{}`", path.display())
            }
            FolderError::OtherExperiment { path } => {
                write!(f, "`{}` is another experiment, seed or number of steps", path.display())
            }
            FolderError::Foreign { path, found } => {
                write!(f, "`{}` holds `{}` and is no run", path.display(), found.escape_debug())
            }
            FolderError::Damaged { path, detail } => write!(f, "`{}`: {detail}", path.display()),
        }
    }
}

impl std::error::Error for FolderError {}

/// Makes an I/O error say what was tried with which path.
pub(crate) fn io_error<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> FolderError + use<'a> {
    move |source| FolderError::Io { doing, path: path.to_owned(), source }
}

impl RunFolder {
    /// Opens the run of an experiment, or begins it.
    ///
    /// # Errors
    /// The folder is another experiment's or no run, another process holds it, or the disk failed.
    pub fn begin(path: &Path, experiment: &str) -> Result<RunFolder, FolderError> {
        fs::create_dir_all(path).map_err(io_error("create", path))?;
        let file = path.join(EXPERIMENT);
        if !file.exists() {
            refuse_foreign(path)?;
        }
        let folder = RunFolder { path: path.to_owned(), _lock: lock(path)? };
        if !file.exists() {
            folder.write(EXPERIMENT, experiment.as_bytes())?;
        }
        if folder.experiment()? != experiment {
            return Err(FolderError::OtherExperiment { path: file });
        }
        Ok(folder)
    }

    /// Opens a run that there is.
    ///
    /// # Errors
    /// There is none, another process holds it, or the disk failed.
    pub fn open(path: &Path) -> Result<RunFolder, FolderError> {
        let experiment = path.join(EXPERIMENT);
        fs::metadata(&experiment).map_err(io_error("read", &experiment))?;
        Ok(RunFolder { path: path.to_owned(), _lock: lock(path)? })
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the experiment as it stood.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn experiment(&self) -> Result<String, FolderError> {
        read_text(&self.path.join(EXPERIMENT), EXPERIMENT_BYTES_MAX as u64)
    }

    /// Returns the folder of an occasion's log.
    pub fn log(&self, occasion: Occasion) -> PathBuf {
        self.path.join(occasion.folder())
    }

    /// Returns the folder of the ledger.
    pub fn ledger(&self) -> PathBuf {
        self.path.join("ledger")
    }

    /// Writes a file whole, in place of what was there.
    ///
    /// # Errors
    /// The disk failed.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let path = self.path.join(name);
        let new = self.path.join(format!("{name}{UNFINISHED}"));
        let mut file = File::create(&new).map_err(io_error("create", &new))?;
        file.write_all(bytes).map_err(io_error("write", &new))?;
        file.sync_all().map_err(io_error("sync", &new))?;
        fs::rename(&new, &path).map_err(io_error("rename", &new))?;
        sync_folder(&self.path)
    }

    /// Keeps the first `count` lines of a file, and adds one.
    ///
    /// # Errors
    /// There are fewer, or the disk failed.
    pub fn write_line(&self, name: &str, count: usize, line: &str) -> Result<(), FolderError> {
        let path = self.path.join(name);
        let damaged = |detail| FolderError::Damaged { path: path.clone(), detail };
        let text = self.read_lines(name)?;
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut ends = ends.map(|(place, _)| place + 1);
        let kept = match count {
            0 => 0,
            _ => {
                ends.nth(count - 1).ok_or_else(|| damaged(format!("fewer lines than `{count}`")))?
            }
        };
        if kept == text.len() && path.exists() {
            // The common case: nothing is cut off.
            let options = File::options().append(true).open(&path);
            let mut file = options.map_err(io_error("open", &path))?;
            file.write_all(format!("{line}\n").as_bytes()).map_err(io_error("write", &path))?;
            return file.sync_all().map_err(io_error("sync", &path));
        }
        self.write(name, format!("{}{line}\n", &text[..kept]).as_bytes())
    }

    /// Reads a file of lines; nothing where there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_lines(&self, name: &str) -> Result<String, FolderError> {
        let path = self.path.join(name);
        match path.exists() {
            true => read_text(&path, LINES_BYTES_MAX),
            false => Ok(String::new()),
        }
    }

    /// Makes a folder whole: what `fill` put in it appears under its name at once.
    ///
    /// # Errors
    /// `fill` failed, or the disk.
    pub(crate) fn fill_folder(
        &self,
        name: &str,
        fill: &mut dyn FnMut(&Path) -> Result<(), FolderError>,
    ) -> Result<(), FolderError> {
        let path = self.path.join(name);
        let new = self.path.join(format!("{name}{UNFINISHED}"));
        // What a run left when it was killed was never used.
        remove_folder(&new)?;
        fs::create_dir_all(&new).map_err(io_error("create", &new))?;
        fill(&new)?;
        sync_tree(&new)?;
        remove_folder(&path)?;
        fs::rename(&new, &path).map_err(io_error("rename", &new))?;
        sync_folder(path.parent().unwrap_or(&self.path))
    }

    /// Lets a link lead elsewhere, at once.
    pub(crate) fn link(&self, name: &str, target: &str) -> Result<(), FolderError> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}{UNFINISHED}")));
        match fs::remove_file(&new) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(io_error("remove", &new)(source));
            }
            _ => {}
        }
        std::os::unix::fs::symlink(target, &new).map_err(io_error("link", &new))?;
        fs::rename(&new, &path).map_err(io_error("rename", &new))?;
        sync_folder(&self.path)
    }
}

/// Reads a text of at most so many bytes.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Result<String, FolderError> {
    let length = fs::metadata(path).map_err(io_error("read", path))?.len();
    if length > bytes_max {
        let detail = format!("`{length}` bytes, at most `{bytes_max}`");
        return Err(FolderError::Damaged { path: path.to_owned(), detail });
    }
    fs::read_to_string(path).map_err(io_error("read", path))
}

/// Removes a folder, if it is there.
pub(crate) fn remove_folder(path: &Path) -> Result<(), FolderError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", path)(source))
        }
        _ => Ok(()),
    }
}

fn lock(path: &Path) -> Result<File, FolderError> {
    let path_of_lock = path.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path_of_lock);
    let file = file.map_err(io_error("open", &path_of_lock))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FolderError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io_error("lock", &path_of_lock)(source)),
    }
}

/// Refuses a folder that someone uses for something else.
fn refuse_foreign(path: &Path) -> Result<(), FolderError> {
    for item in fs::read_dir(path).map_err(io_error("read", path))? {
        let name = item.map_err(io_error("read", path))?.file_name();
        let own = [LOCK, "private"].iter().any(|own| name == *own);
        if !own && !name.to_string_lossy().ends_with(UNFINISHED) {
            let found = name.to_string_lossy().into_owned();
            return Err(FolderError::Foreign { path: path.to_owned(), found });
        }
    }
    Ok(())
}

fn sync_tree(path: &Path) -> Result<(), FolderError> {
    for item in fs::read_dir(path).map_err(io_error("read", path))? {
        let item = item.map_err(io_error("read", path))?.path();
        match item.is_dir() {
            true => sync_tree(&item)?,
            false => {
                let file = File::open(&item).map_err(io_error("open", &item))?;
                file.sync_all().map_err(io_error("sync", &item))?;
            }
        }
    }
    sync_folder(path)
}

fn sync_folder(path: &Path) -> Result<(), FolderError> {
    let folder = File::open(path).map_err(io_error("open", path))?;
    folder.sync_all().map_err(io_error("sync", path))
}
