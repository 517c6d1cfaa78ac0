//! The store of language models: a folder with one folder per model.
//!
//! `NAME/model.gguf` or `NAME/model/` holds the model, itself or as a link to it, and
//! `NAME/source.toml` says where it came from. A model is there whole or not at all: it is put
//! together beside its place and takes its name last. One process at a time writes.
//!
//! Not here: fetching (`packages`), and what model files say (`arena_weights`).

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use arena_core::config::is_name;
use serde::{Deserialize, Serialize};

use crate::error::{CliError, Complaint};
use crate::files;
use crate::outputs::{self, Readers};

/// The model of a store's folder, if it is one file.
pub const GGUF: &str = "model.gguf";
/// The same, if it is a folder of files.
pub const FOLDER: &str = "model";
/// Says where the model came from.
const SOURCE: &str = "source.toml";
/// Held by the process that writes.
const LOCK: &str = ".lock";
/// Most models that are listed.
const MODELS_MAX: usize = 10_000;
/// Longest file that says where a model came from, in bytes.
const SOURCE_BYTES_MAX: u64 = 64 << 10;

/// The store.
pub struct Store {
    folder: PathBuf,
}

/// A model of the store.
pub struct Stored {
    /// Its name, which is that of its folder.
    pub name: String,
    /// The file or folder to open.
    pub path: PathBuf,
    /// Where it came from, or why that is not known.
    pub source: Result<Source, String>,
    /// Whether it lies elsewhere.
    pub is_linked: bool,
}

/// Where a model came from, as it is written beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The package, or the path.
    pub origin: String,
    /// SHA-256 of the model's manifest, 64 hexadecimal digits.
    pub manifest_sha256: String,
    /// Its family and size, for people.
    pub about: String,
}

impl Store {
    /// Finds the store: `$ARENA_MODELS`, else the user's folder for data. It may not exist yet.
    ///
    /// # Errors
    /// No variable says where it could be.
    pub fn find() -> Result<Store, CliError> {
        let variable = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
            Some(PathBuf::from(value))
        };
        // The two others count only if they are absolute, by their specification.
        let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
        let within = |base: PathBuf| base.join("arena").join("models");
        let folder = variable("ARENA_MODELS")
            .or_else(|| absolute("XDG_DATA_HOME").map(within))
            .or_else(|| absolute("HOME").map(|home| within(home.join(".local/share"))));
        folder.map(|folder| Store { folder }).ok_or_else(|| {
            let fact = "neither `ARENA_MODELS` nor `XDG_DATA_HOME` nor `HOME` names a folder";
            let complaint = Complaint::new("cannot find the store of models", fact);
            CliError::Config(complaint.hint("set `ARENA_MODELS` to a folder of your own"))
        })
    }

    /// Returns where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns every model, in order of their names.
    ///
    /// # Errors
    /// The folder cannot be read, or holds too many.
    pub fn list(&self) -> Result<Vec<Stored>, CliError> {
        let failed = || format!("cannot read the store `{}`", self.folder.display());
        let fails = |error: io::Error| CliError::Infrastructure(Complaint::new(failed(), error));
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(fails)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(fails)?.file_name().to_string_lossy().into_owned();
            if is_stored_name(&name) {
                names.push(name);
            }
            if names.len() > MODELS_MAX {
                let fact = format!("more than {MODELS_MAX} models");
                return Err(CliError::Input(Complaint::new(failed(), fact)));
            }
        }
        names.sort();
        Ok(names.iter().filter_map(|name| self.look_up(name)).collect())
    }

    /// Finds a model.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn get(&self, name: &str) -> Result<Stored, CliError> {
        let found = if is_stored_name(name) { self.look_up(name) } else { None };
        found.ok_or_else(|| {
            let fact = format!("no model of that name is in `{}`", self.folder.display());
            let complaint = Complaint::new(format!("cannot find the model `{name}`"), fact);
            CliError::Config(complaint.hint(match name {
                "smollm2" => "run `arena model pull smollm2`",
                _ => "`arena model list` names those that are there; a path has a slash in it",
            }))
        })
    }

    fn look_up(&self, name: &str) -> Option<Stored> {
        let folder = self.folder.join(name);
        let path = [GGUF, FOLDER]
            .iter()
            .map(|kind| folder.join(kind))
            .find(|path| path.symlink_metadata().is_ok())?;
        let is_linked = path.symlink_metadata().is_ok_and(|data| data.is_symlink());
        let source = read_source(&folder.join(SOURCE));
        Some(Stored { name: name.to_owned(), path, source, is_linked })
    }

    /// Returns the name of the model that lies at a path, if it is one of the store.
    pub fn name_at(&self, path: &Path) -> Option<String> {
        let path = path.canonicalize().ok()?;
        let models = self.list().ok()?;
        let is_it = |model: &Stored| model.path.canonicalize().is_ok_and(|found| found == path);
        models.into_iter().find(is_it).map(|model| model.name)
    }

    /// Refuses what is no name, or taken.
    ///
    /// # Errors
    /// It is one of them.
    pub fn check_free(&self, name: &str) -> Result<(), CliError> {
        let failed = format!("cannot put the model `{name}` into `{}`", self.folder.display());
        if !is_stored_name(name) {
            let fact = "a name has 1 to 64 letters, digits, `-`, `_` and `.`, and no `.` first";
            let complaint = Complaint::new(failed, fact);
            return Err(CliError::Config(complaint.hint("choose one with `--name`")));
        }
        let place = self.folder.join(name);
        if place.symlink_metadata().is_err() {
            return Ok(());
        }
        let complaint = Complaint::new(failed, "the name is taken");
        let hint = format!("choose another with `--name`, or remove `{}`", place.display());
        Err(CliError::Config(complaint.hint(hint)))
    }

    /// Puts a model into the store: `fill` makes it in the folder that it is given.
    ///
    /// # Errors
    /// The name is no name or is taken, another process writes, or `fill` fails. Nothing is left
    /// behind.
    pub fn put(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<Source, CliError>,
    ) -> Result<Stored, CliError> {
        let failed = || format!("cannot put the model `{name}` into `{}`", self.folder.display());
        let fails = |error: io::Error| CliError::Infrastructure(Complaint::new(failed(), error));
        self.check_free(name)?;
        fs::create_dir_all(&self.folder).map_err(fails)?;
        let _lock = self.lock()?;
        // Another process may have been faster.
        self.check_free(name)?;
        let place = self.folder.join(name);
        let staging = self.folder.join(format!(".{name}.new"));
        // What is left of a run that was killed.
        remove(&staging).map_err(fails)?;
        fs::create_dir(&staging).map_err(fails)?;
        let filled = fill(&staging).and_then(|source| {
            let text = toml::to_string(&source).expect("three texts can be written as TOML");
            outputs::create(&staging.join(SOURCE), text.as_bytes(), Readers::Anyone)?;
            fs::rename(&staging, &place).map_err(fails)?;
            File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(fails)
        });
        if let Err(error) = filled {
            let _ = remove(&staging);
            return Err(error);
        }
        self.get(name)
    }

    fn lock(&self) -> Result<File, CliError> {
        let failed = format!("cannot write to `{}`", self.folder.display());
        let path = self.folder.join(LOCK);
        let opened = File::options().create(true).append(true).open(path);
        let file = opened
            .map_err(|error| CliError::Infrastructure(Complaint::new(failed.as_str(), error)))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let complaint = Complaint::new(failed, "another process is writing there");
                Err(CliError::Infrastructure(complaint.hint("wait until it is done")))
            }
            Err(TryLockError::Error(error)) => {
                Err(CliError::Infrastructure(Complaint::new(failed, error)))
            }
        }
    }
}

/// Reads where a model came from, or says why that is not known.
fn read_source(path: &Path) -> Result<Source, String> {
    if path.symlink_metadata().is_err() {
        return Err(format!("no `{SOURCE}` is beside it"));
    }
    let text = files::read_text(path, SOURCE_BYTES_MAX).map_err(|error| error.facts.join("; "));
    let unreadable = |why: &str| format!("its `{SOURCE}` cannot be read: {}", why.trim());
    let text = text.map_err(|why| unreadable(&why))?;
    toml::from_str(&text).map_err(|error: toml::de::Error| unreadable(error.message()))
}

/// Returns whether a text can be the name of a model, and of its folder.
pub fn is_stored_name(text: &str) -> bool {
    is_name(text) && !text.starts_with('.')
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source {
            origin: "a test".to_owned(),
            manifest_sha256: "0".repeat(64),
            about: "nothing".to_owned(),
        }
    }

    fn filled(folder: &Path) -> Result<Source, CliError> {
        fs::write(folder.join(GGUF), b"GGUF").expect("a file");
        Ok(source())
    }

    #[test]
    fn a_model_is_there_whole_with_its_source_and_its_name_is_taken() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store { folder: folder.path().join("models") };
        assert!(store.list().expect("an empty store").is_empty());
        store.put("small", filled).expect("a model");
        let stored = store.get("small").expect("the model");
        assert_eq!(stored.source, Ok(source()));
        assert_eq!(store.name_at(&stored.path), Some("small".to_owned()));
        assert_eq!(store.name_at(folder.path()), None);
        assert_eq!(fs::read(&stored.path).expect("the file"), b"GGUF");
        assert!(store.put("small", filled).is_err(), "the name is taken");
        assert_eq!(store.list().expect("the store").len(), 1);
    }

    #[test]
    fn why_an_origin_is_not_known_is_said() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store { folder: folder.path().to_owned() };
        let place = folder.path().join("small");
        fs::create_dir(&place).expect("a folder");
        fs::write(place.join(GGUF), b"GGUF").expect("a file");
        let why = || store.get("small").expect("the model").source.expect_err("not known");
        assert_eq!(why(), "no `source.toml` is beside it");
        fs::write(place.join(SOURCE), "origin = \"a test\"").expect("a file");
        assert_eq!(why(), "its `source.toml` cannot be read: missing field `manifest_sha256`");
    }

    #[test]
    fn a_model_that_fails_leaves_nothing_behind_and_may_be_put_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store { folder: folder.path().to_owned() };
        let failing = |staging: &Path| {
            fs::write(staging.join(GGUF), b"half").expect("a file");
            Err(CliError::Input(Complaint::new("cannot", "be done")))
        };
        assert!(store.put("small", failing).is_err());
        assert!(store.list().expect("the store").is_empty());
        fs::create_dir(folder.path().join(".small.new")).expect("what a killed run left");
        store.put("small", filled).expect("a model");
        let names: Vec<String> = fs::read_dir(folder.path())
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .filter(|name| name != LOCK)
            .collect();
        assert_eq!(names, ["small"]);
    }

    #[test]
    fn a_name_never_leaves_the_store() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store { folder: folder.path().to_owned() };
        for name in ["", ".", "..", ".new", "a/b", "a b", "../x"] {
            assert!(store.put(name, filled).is_err(), "{name}");
            assert!(store.get(name).is_err(), "{name}");
        }
    }

    #[test]
    fn while_one_process_writes_another_is_told_to_wait() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store { folder: folder.path().to_owned() };
        let held = store.lock().expect("nobody else");
        assert!(matches!(store.put("small", filled), Err(CliError::Infrastructure(_))));
        drop(held);
        store.put("small", filled).expect("a model");
    }
}
