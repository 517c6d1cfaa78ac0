//! A model as it lies on disk.
//!
//! Not here: the two forms that it can have (`gguf`, `folder`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::ModelConfig;
use crate::error::WeightsError;
use crate::files::ModelFile;
use crate::manifest::Manifest;
use crate::template::ChatTemplate;
use crate::tensor::{Tensor, TensorInfo};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::Vocabulary;
use crate::{folder, gguf};

/// An opened model: its header is read and checked, its weights are read when asked for.
#[derive(Debug)]
pub struct Weights {
    path: PathBuf,
    tensors: Vec<TensorInfo>,
    parts: Parts,
}

/// What the readers of both forms make of a model.
#[derive(Debug)]
pub(crate) struct Parts {
    pub config: ModelConfig,
    pub name: String,
    /// By canonical name.
    pub stored: BTreeMap<String, Stored>,
    /// Every file that matters, with its name in the manifest.
    pub files: Vec<(String, ModelFile)>,
    pub vocabulary: Vocabulary,
    pub chat_template: Option<String>,
}

/// Where a tensor lies: its parts follow each other.
#[derive(Debug)]
pub(crate) struct Stored {
    pub info: TensorInfo,
    pub parts: Vec<Part>,
    /// Heads whose rows lie in pairs that are rotated together, not in halves.
    pub paired_heads: Option<usize>,
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Index of the file.
    pub file: usize,
    pub offset: u64,
    pub len: u64,
}

impl Weights {
    /// Opens a `.gguf` file, or a folder with `model.safetensors` (or its shards and index),
    /// `config.json` and `tokenizer.json`; or a folder with a `model.gguf`.
    ///
    /// # Errors
    /// [`WeightsError`] names the file and the tensor or key.
    pub fn open(path: &Path) -> Result<Weights, WeightsError> {
        let kind = fs::metadata(path).map_err(|source| WeightsError::Io {
            doing: "read",
            path: path.into(),
            source,
        })?;
        let in_folder = path.join(gguf::MANIFEST_NAME);
        let parts = match kind.is_dir() {
            true if in_folder.exists() => gguf::open(&in_folder)?,
            true => folder::open(path)?,
            false => gguf::open(path)?,
        };
        let tensors = parts.stored.values().map(|stored| stored.info.clone()).collect();
        Ok(Weights { path: path.into(), tensors, parts })
    }

    /// Returns the model's numbers.
    pub fn config(&self) -> &ModelConfig {
        &self.parts.config
    }

    /// Returns what the model calls itself, or nothing.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Returns every tensor, sorted by canonical name.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Reads a tensor.
    ///
    /// # Errors
    /// [`WeightsError::MissingTensor`] if there is none of this name; I/O.
    pub fn tensor(&self, name: &str) -> Result<Tensor, WeightsError> {
        let Some(stored) = self.parts.stored.get(name) else {
            return Err(WeightsError::MissingTensor {
                path: self.path.clone(),
                tensor: name.into(),
            });
        };
        let len: u64 = stored.parts.iter().map(|part| part.len).sum();
        let mut bytes = vec![0; usize::try_from(len).expect("a tensor can be addressed")];
        let mut rest = bytes.as_mut_slice();
        for part in &stored.parts {
            let (now, later) = rest.split_at_mut(usize::try_from(part.len).expect("as above"));
            self.parts.files[part.file].1.read_into(part.offset, now)?;
            rest = later;
        }
        let TensorInfo { name, format, shape } = stored.info.clone();
        if let Some(heads) = stored.paired_heads {
            bytes = rows_in_halves(&bytes, shape[0], heads);
        }
        Ok(Tensor { name, format, shape, bytes })
    }

    /// Hashes every file that matters. `progress` is told bytes done and bytes of all.
    ///
    /// # Errors
    /// I/O.
    pub fn manifest(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Manifest, WeightsError> {
        Manifest::of(&self.parts.files, progress)
    }

    /// Makes the model's tokenizer.
    ///
    /// # Errors
    /// [`WeightsError`] names what is malformed or not supported.
    pub fn tokenizer(&self) -> Result<Tokenizer, WeightsError> {
        Tokenizer::new(&self.path, &self.parts.vocabulary)
    }

    /// Compiles the model's chat template.
    ///
    /// # Errors
    /// [`WeightsError::Template`] if there is none, or it is malformed.
    pub fn chat_template(&self) -> Result<ChatTemplate, WeightsError> {
        let Some(source) = &self.parts.chat_template else {
            return Err(WeightsError::Template { detail: "the model has none".into() });
        };
        let vocabulary = &self.parts.vocabulary;
        let bos = vocabulary.written(vocabulary.bos).unwrap_or_default();
        let eos = vocabulary.written(vocabulary.eos.first().copied()).unwrap_or_default();
        ChatTemplate::new(source, bos, eos)
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }
}

/// Brings the rows of rotated heads from the order `0, D/2, 1, D/2 + 1, …` into `0, 1, 2, …`.
///
/// Source: llama.cpp, `conversion/llama.py`, `LlamaModel.permute`, which is undone. Rows are
/// moved as they are, so any format will do.
fn rows_in_halves(bytes: &[u8], rows: usize, heads: usize) -> Vec<u8> {
    let row = bytes.len() / rows;
    let half = rows / heads / 2;
    let mut out = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(2 * half * row) {
        for side in 0..2 {
            for pair in 0..half {
                let at = (2 * pair + side) * row;
                out.extend_from_slice(&head[at..at + row]);
            }
        }
    }
    out
}
