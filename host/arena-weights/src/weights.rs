//! A model as it lies on disk.

use std::path::Path;

use crate::config::ModelConfig;
use crate::error::WeightsError;
use crate::manifest::Manifest;
use crate::template::ChatTemplate;
use crate::tensor::{Tensor, TensorInfo};
use crate::tokenizer::Tokenizer;

/// An opened model: its header is read and checked, its weights are read when asked for.
pub struct Weights {
    config: ModelConfig,
    tensors: Vec<TensorInfo>,
}

impl Weights {
    /// Opens a `.gguf` file, or a folder with `model.safetensors` (or its shards and index),
    /// `config.json` and `tokenizer.json`.
    ///
    /// # Errors
    /// [`WeightsError`] names the file and the tensor or key.
    pub fn open(path: &Path) -> Result<Weights, WeightsError> {
        Err(WeightsError::unsupported(path, "model", "any"))
    }

    /// Returns the model's numbers.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Returns what the model calls itself, or nothing.
    pub fn name(&self) -> &str {
        ""
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
        Err(WeightsError::MissingTensor { path: Default::default(), tensor: name.into() })
    }

    /// Hashes every file that matters. `progress` is told bytes done and bytes of all.
    ///
    /// # Errors
    /// I/O.
    pub fn manifest(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Manifest, WeightsError> {
        progress(0, 0);
        Err(WeightsError::MissingTensor { path: Default::default(), tensor: String::new() })
    }

    /// Makes the model's tokenizer.
    ///
    /// # Errors
    /// [`WeightsError`] names what is malformed or not supported.
    pub fn tokenizer(&self) -> Result<Tokenizer, WeightsError> {
        Err(WeightsError::MissingTensor { path: Default::default(), tensor: String::new() })
    }

    /// Compiles the model's chat template.
    ///
    /// # Errors
    /// [`WeightsError::Template`] if there is none, or it is malformed.
    pub fn chat_template(&self) -> Result<ChatTemplate, WeightsError> {
        Err(WeightsError::Template { detail: "there is none".into() })
    }
}
