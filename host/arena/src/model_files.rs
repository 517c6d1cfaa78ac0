//! Finds and opens model files, and says in a few words what is in them.
//!
//! Not here: what model files mean (`arena_weights`), computing with them (`engines`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arena_core::config::models::WeightsSource;
use arena_core::hexadecimal::hex;
use arena_weights::error::WeightsError;
use arena_weights::manifest::Manifest;
use arena_weights::weights::Weights;

use crate::advance::Advance;
use crate::error::{CliError, Complaint};
use crate::store::{Source, Store};

/// Bytes of a key or value of the cache: f32.
const CACHE_NUMBER_BYTES: u64 = 4;

/// A model that someone named: how it is called and where it is.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name in the store, else that of its file or folder.
    pub label: String,
    /// The file or folder to open.
    pub path: PathBuf,
}

/// Finds a model by its name in the store or by its path.
///
/// # Errors
/// There is no such name.
pub fn find(source: &WeightsSource) -> Result<Named, CliError> {
    match source {
        WeightsSource::Named(name) => {
            let stored = Store::find()?.get(name)?;
            Ok(Named { label: stored.name, path: stored.path })
        }
        WeightsSource::Path(path) => {
            let path = PathBuf::from(path);
            Ok(Named { label: label(&path), path })
        }
    }
}

/// Returns a short name for a file or folder.
pub fn label(path: &Path) -> String {
    let is_file = path.extension().is_some_and(|extension| extension == "gguf");
    let name = if is_file { path.file_stem() } else { path.file_name() };
    name.unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Opens a model.
///
/// # Errors
/// The file or folder is missing or wrong.
pub fn open(path: &Path) -> Result<Weights, CliError> {
    Weights::open(path).map_err(|error| complain(path, &error))
}

/// Says that a model's files are missing or wrong.
pub fn complain(path: &Path, error: &WeightsError) -> CliError {
    let complaint = Complaint::new(format!("cannot load the model `{}`", path.display()), error);
    CliError::Input(match error {
        WeightsError::NotAModel { .. } => complaint.hint(
            "a model is a `.gguf` file, or a folder with config.json, tokenizer.json and \
             *.safetensors",
        ),
        WeightsError::Truncated { .. } => complaint.hint("fetch the file again"),
        _ => complaint,
    })
}

/// Hashes a model's files: what names it.
///
/// # Errors
/// A file cannot be read.
pub fn manifest(path: &Path, weights: &Weights) -> Result<Manifest, CliError> {
    let mut advance = Advance::new("hashed", "byte", 0);
    let manifest = weights.manifest(&mut |done, total| advance.show(done, total));
    manifest.map_err(|error| complain(path, &error))
}

/// Opens a model and returns its files and what is written beside it in the store.
///
/// # Errors
/// As [`open`] and [`manifest`].
pub fn examine(path: &Path, origin: String) -> Result<(Manifest, Source), CliError> {
    let weights = open(path)?;
    let manifest = manifest(path, &weights)?;
    let manifest_sha256 = hex(&manifest.sha256());
    Ok((manifest, Source { origin, manifest_sha256, about: about(&weights) }))
}

/// Returns architecture, size and the commonest format, such as `llama, 135M weights, Q4_1`.
pub fn about(weights: &Weights) -> String {
    let formats = formats(weights);
    let format = formats.first().map_or("", |share| share.format.as_str());
    let architecture = weights.config().architecture.name();
    format!("{architecture}, {} weights, {format}", rounded(weight_count(weights)))
}

/// How many weights are stored in one way.
pub struct FormatShare {
    /// The format's name.
    pub format: String,
    /// Tensors.
    pub tensor_count: u64,
    /// Weights.
    pub weight_count: u64,
    /// Bytes in the file.
    pub bytes: u64,
}

/// Returns the ways in which weights are stored, the one of most weights first.
pub fn formats(weights: &Weights) -> Vec<FormatShare> {
    let mut shares: BTreeMap<String, FormatShare> = BTreeMap::new();
    for tensor in weights.tensors() {
        let name = tensor.format.name().to_owned();
        let share = shares.entry(name.clone()).or_insert(FormatShare {
            format: name,
            tensor_count: 0,
            weight_count: 0,
            bytes: 0,
        });
        let elements = tensor.element_count() as u64;
        share.tensor_count += 1;
        share.weight_count += elements;
        let (block_len, block_bytes) = (tensor.format.block_len(), tensor.format.block_bytes());
        share.bytes += elements / block_len as u64 * block_bytes as u64;
    }
    let mut shares: Vec<FormatShare> = shares.into_values().collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.weight_count));
    shares
}

/// Returns the number of weights.
pub fn weight_count(weights: &Weights) -> u64 {
    weights.tensors().iter().map(|tensor| tensor.element_count() as u64).sum()
}

/// Returns the bytes of keys and values that one token takes in the cache.
pub fn cache_bytes_per_token(weights: &Weights) -> u64 {
    let config = weights.config();
    let numbers = 2 * config.layers * config.kv_heads * config.head_dim;
    numbers as u64 * CACHE_NUMBER_BYTES
}

/// Returns a count in three digits or fewer, such as `135M`.
fn rounded(count: u64) -> String {
    for (unit, letter) in [(1_000_000_000_u64, 'B'), (1_000_000, 'M'), (1_000, 'K')] {
        if count >= 10 * unit {
            return format!("{}{letter}", (count + unit / 2) / unit);
        }
        if count >= unit {
            let tenths = (count + unit / 20) / (unit / 10);
            return format!("{}.{}{letter}", tenths / 10, tenths % 10);
        }
    }
    count.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_rounded_as_people_call_models() {
        for (count, shown) in [
            (134_515_008, "135M"),
            (30_532_122_624, "31B"),
            (1_720_574_976, "1.7B"),
            (9_960_000_000, "10.0B"),
            (999, "999"),
        ] {
            assert_eq!(rounded(count), shown);
        }
    }

    #[test]
    fn a_file_is_called_by_its_stem_and_a_folder_by_its_whole_name() {
        assert_eq!(label(Path::new("a/Qwen3-0.6B-Q8_0.gguf")), "Qwen3-0.6B-Q8_0");
        assert_eq!(label(Path::new("models/Qwen3-0.6B")), "Qwen3-0.6B");
    }
}
