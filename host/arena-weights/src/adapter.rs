//! Low-rank adapters (LoRA, arXiv 2106.09685) as PEFT writes them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::ModelConfig;
use crate::error::WeightsError;
use crate::manifest::Manifest;

/// An adapter: for some linear layers, `y += scale * B (A x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapter {
    /// Width of the bottleneck.
    pub rank: usize,
    /// `lora_alpha / r`.
    pub scale: f32,
    /// By the canonical name of the weight that is adapted, such as
    /// `model.layers.0.self_attn.q_proj.weight`.
    pub layers: BTreeMap<String, AdapterLayer>,
    /// What names it.
    pub manifest: Manifest,
}

/// The two factors of one linear layer's change.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterLayer {
    /// Inputs of the layer.
    pub columns: usize,
    /// Outputs of the layer.
    pub rows: usize,
    /// `[rank, columns]`, row-major.
    pub a: Vec<f32>,
    /// `[rows, rank]`, row-major.
    pub b: Vec<f32>,
}

impl Adapter {
    /// Reads an adapter from a folder with `adapter_config.json` and
    /// `adapter_model.safetensors`, or from the latter's path, and checks it against a model.
    ///
    /// # Errors
    /// [`WeightsError`] names the file and the tensor or key.
    pub fn open(path: &Path, config: &ModelConfig) -> Result<Adapter, WeightsError> {
        let _ = config;
        Err(WeightsError::unsupported(path, "adapter", "any"))
    }
}
