//! Compiled code kept between runs.
//!
//! A file's name holds the component's hash and the hash of everything that decides whether
//! code fits the engine; its first bytes are a hash of the rest. Files appear whole or not at
//! all, so processes may share a folder. Code is trusted like the program itself, so the folder
//! must belong to this user alone: any other is refused, not repaired.
//!
//! Not here: files from elsewhere. Compiled code is never accepted from anyone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use arena_core::hexadecimal::hex;
use sha2::{Digest, Sha256};

use crate::compile::CODE_BYTES_MAX;
use crate::refusal::SandboxError;

/// First bytes of a cached file; the last is the version of its layout.
const MAGIC: [u8; 8] = *b"ARENACC1";
/// Bytes before the code: magic and SHA-256 of the code.
const HEADER_BYTES: usize = 40;

/// A folder of compiled components.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    engine_sha256: [u8; 32],
}

impl Cache {
    /// Opens the folder, or makes it for this user alone.
    ///
    /// # Errors
    /// [`SandboxError::CacheFolder`] when it is not a folder, belongs to another user, or lets
    /// others in.
    pub(crate) fn open(folder: &Path, engine_sha256: [u8; 32]) -> Result<Cache, SandboxError> {
        let refused =
            |reason: String| SandboxError::CacheFolder { path: folder.to_owned(), reason };
        match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(refused(error.to_string()));
            }
            _ => (),
        }
        let found = fs::symlink_metadata(folder).map_err(|error| refused(error.to_string()))?;
        let owner = rustix::process::geteuid().as_raw();
        if !found.is_dir() {
            return Err(refused("it is not a folder".to_owned()));
        }
        if found.uid() != owner {
            return Err(refused(format!("it belongs to user {}, not to {owner}", found.uid())));
        }
        if found.mode() & 0o077 != 0 {
            let mode = found.mode() & 0o777;
            return Err(refused(format!("its mode is {mode:03o}; hint: run `chmod 700` on it")));
        }
        Ok(Cache { folder: folder.to_owned(), engine_sha256 })
    }

    /// Returns the code of a component, if a whole file holds it.
    ///
    /// # Errors
    /// [`SandboxError::CacheFile`] when the file is there and cannot be read.
    pub(crate) fn load(&self, component: &[u8; 32]) -> Result<Option<Vec<u8>>, SandboxError> {
        let path = self.path(component);
        match read(&path) {
            Ok(bytes) => Ok(unwrap(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    /// Keeps the code of a component.
    ///
    /// # Errors
    /// [`SandboxError::CacheFile`] when it cannot be written.
    pub(crate) fn store(&self, component: &[u8; 32], code: &[u8]) -> Result<(), SandboxError> {
        let path = self.path(component);
        // Unique among processes and threads that write the same component at once.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{number}.part", std::process::id()));
        let written = write(&temporary, code).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            // The error that matters is the one of writing.
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(|error| failed(&path, &error))
    }

    fn path(&self, component: &[u8; 32]) -> PathBuf {
        self.folder.join(format!("{}-{}.cwasm", hex(component), hex(&self.engine_sha256)))
    }
}

fn failed(path: &Path, error: &io::Error) -> SandboxError {
    SandboxError::CacheFile { path: path.to_owned(), detail: error.to_string() }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Opening waits for nobody, not even at a pipe.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    // The folder was checked when it was opened, and may be another one since.
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it is not a file of this user"));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed, so that an excess does not look whole.
    file.take(HEADER_BYTES as u64 + CODE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the code in a file's bytes, or nothing when they are torn.
fn unwrap(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (header, code) = bytes.split_at_checked(HEADER_BYTES)?;
    let (magic, hash) = header.split_at(MAGIC.len());
    let is_whole = magic == MAGIC && hash == Sha256::digest(code).as_slice();
    bytes.drain(..HEADER_BYTES);
    is_whole.then_some(bytes)
}

fn write(path: &Path, code: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&MAGIC)?;
    file.write_all(&Sha256::digest(code))?;
    file.write_all(code)
}
