//! A folder in which the program is run, and what it says there.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder to run in, and where compiled agents are kept between tests.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Returns the files of a log that are for others, by name.
    pub fn published(&self, out: &str) -> Files {
        let mut files = Files::new();
        gather(&self.path(out), &mut files);
        files.retain(|path, _| !path.starts_with(self.path(out).join("private")));
        let strip = |path: PathBuf| path.strip_prefix(self.path(out)).unwrap().to_owned();
        files.into_iter().map(|(path, bytes)| (strip(path), bytes)).collect()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arena"));
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        command.args(words).current_dir(self.folder.path()).env("XDG_CACHE_HOME", cache);
        command
    }

    pub fn arena(&self, words: &[&str]) -> Said {
        Said::of(self.command(words).output().unwrap())
    }
}

pub type Files = BTreeMap<PathBuf, Vec<u8>>;

fn gather(folder: &Path, files: &mut Files) {
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => gather(&path, files),
            false => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
}

/// A key for logs that are compared: PKCS#8 of the secret of RFC 8032 section 7.1, test 1.
pub const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";

/// What the program said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: Output) -> Said {
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub fn ends_well(self) -> Said {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn ends_badly(self) -> Said {
        assert_ne!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Expects an exit code, nothing on standard output, and these pieces of a message.
    #[track_caller]
    pub fn complains(self, code: i32, pieces: &[&str]) {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        assert_eq!(self.out, "");
        for piece in pieces {
            assert!(self.err.contains(piece), "`{piece}` is not in:\n{}", self.err);
        }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}:\n{}", self.out))
    }
}

/// The root of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}
