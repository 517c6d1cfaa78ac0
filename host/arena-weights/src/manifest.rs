//! What names a model: the hashes of every file that matters.
//!
//! The canonical text has one line per file, `SHA256 SIZE NAME\n` with lower-case hex and decimal
//! bytes, sorted by name. The model is named by the SHA-256 of that text. A GGUF file is always
//! called `model.gguf` in it, so that a renamed file is still the same model.
//!
//! Not here: which files matter (`weights`, `adapter`).

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::error::WeightsError;
use crate::files::ModelFile;

/// The hashes of a model's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Sorted by name; names are unique.
    pub files: Vec<ManifestFile>,
}

/// One file of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestFile {
    /// The file's name in the model's folder.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// The hash of its bytes.
    pub sha256: [u8; 32],
}

impl Manifest {
    /// Hashes files. `progress` is told bytes done and bytes of all.
    pub(crate) fn of(
        files: &[(String, ModelFile)],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Manifest, WeightsError> {
        let all = files.iter().map(|(_, file)| file.size).sum();
        let mut done = 0;
        let mut hashed = Vec::new();
        for (name, file) in files {
            hashed.push(file.hash(name, &mut |bytes| {
                done += bytes;
                progress(done, all);
            })?);
        }
        hashed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Manifest { files: hashed })
    }

    /// Returns the canonical text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            for byte in file.sha256 {
                write!(text, "{byte:02x}").expect("writing to a string cannot fail");
            }
            writeln!(text, " {} {}", file.size, file.name)
                .expect("writing to a string cannot fail");
        }
        text
    }

    /// Returns the hash that names the model: SHA-256 of the canonical text.
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.text().as_bytes()).into()
    }
}
