//! Regular files of a model, read where their bytes lie.
//!
//! No read is asked of the system, and no memory taken, for bytes that the file does not have.
//!
//! Not here: what the bytes mean (`gguf`, `safetensors`, `folder`).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::WeightsError;
use crate::manifest::ManifestFile;

/// Bytes that are hashed at a time.
const HASH_CHUNK_BYTES: usize = 1 << 20;

/// An opened file, of the length that it had then.
#[derive(Debug)]
pub(crate) struct ModelFile {
    pub path: PathBuf,
    pub size: u64,
    file: File,
}

impl ModelFile {
    /// Opens a regular file; links are followed, since download caches are made of them.
    pub fn open(path: &Path) -> Result<ModelFile, WeightsError> {
        let io = |doing| move |source| WeightsError::Io { doing, path: path.into(), source };
        // Asked before it is opened, since opening a pipe would wait for its other end.
        if !fs::metadata(path).map_err(io("read"))?.is_file() {
            return Err(WeightsError::malformed(path, "file", "is not a regular file"));
        }
        let file = File::open(path).map_err(io("open"))?;
        let size = file.metadata().map_err(io("read"))?.len();
        Ok(ModelFile { path: path.into(), size, file })
    }

    /// Opens a file and reads all of it, if it is at most so long.
    pub fn open_and_read(path: &Path, most: u64) -> Result<(ModelFile, Vec<u8>), WeightsError> {
        let file = ModelFile::open(path)?;
        if file.size > most {
            let (place, value) = ("length in bytes".to_string(), file.size);
            return Err(WeightsError::Limit { path: path.into(), place, value, most });
        }
        let bytes = file.read(0, file.size, "the file")?;
        Ok((file, bytes))
    }

    /// Reads bytes; `place` says in an error what they are.
    pub fn read(&self, offset: u64, len: u64, place: &str) -> Result<Vec<u8>, WeightsError> {
        let left = self.size.saturating_sub(offset);
        if len > left {
            return Err(self.truncated(place, len, left));
        }
        let mut bytes = vec![0; usize::try_from(len).expect("a file's bytes can be addressed")];
        self.read_into(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Fills `bytes` from the file.
    pub fn read_into(&self, offset: u64, bytes: &mut [u8]) -> Result<(), WeightsError> {
        self.file.read_exact_at(bytes, offset).map_err(|source| self.io("read", source))
    }

    /// Hashes the file. `progress` is told the bytes of every chunk.
    pub fn hash(
        &self,
        name: &str,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ManifestFile, WeightsError> {
        let mut hash = Sha256::new();
        let mut chunk = vec![0; HASH_CHUNK_BYTES];
        let mut at = 0;
        while at < self.size {
            let len = usize::try_from(self.size - at).unwrap_or(usize::MAX).min(chunk.len());
            self.read_into(at, &mut chunk[..len])?;
            hash.update(&chunk[..len]);
            at += len as u64;
            progress(len as u64);
        }
        Ok(ManifestFile { name: name.into(), size: self.size, sha256: hash.finalize().into() })
    }

    pub fn truncated(&self, place: &str, needed: u64, left: u64) -> WeightsError {
        WeightsError::Truncated { path: self.path.clone(), place: place.into(), needed, left }
    }

    fn io(&self, doing: &'static str, source: io::Error) -> WeightsError {
        WeightsError::Io { doing, path: self.path.clone(), source }
    }
}
