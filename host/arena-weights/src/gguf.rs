//! A model in one GGUF file.
//!
//! Every key under the architecture's name or `tokenizer.` is understood, or it is an error
//! that names it: a model is never run as something other than what its file says.
//!
//! Not here: the layout of the header (`gguf::header`), the tokens (`gguf::vocabulary`).

pub mod header;
pub(crate) mod value;
pub(crate) mod vocabulary;

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::{Architecture, ModelConfig, Moe};
use crate::error::{WeightsError, shown};
use crate::files::ModelFile;
use crate::gguf::header::StoredTensor;
use crate::gguf::value::Value;
use crate::layout::{self, Slot};
use crate::tensor::TensorInfo;
use crate::weights::{Part, Parts, Stored};

/// What a GGUF file is called in a manifest, whatever it is called on disk.
pub const MANIFEST_NAME: &str = "model.gguf";

/// Base of the position angles where the file does not say. Source: llama.cpp, `llama-model.cpp`.
const ROPE_THETA: f64 = 10_000.0;

/// Keys beside the architecture's and the tokenizer's that say nothing about how a model runs.
const DESCRIPTIVE: [&str; 2] = ["general.", "quantize."];

/// Reads the header of a file and checks all that it says.
pub(crate) fn open(path: &Path) -> Result<Parts, WeightsError> {
    let file = ModelFile::open(path)?;
    let header = header::read(&file)?;
    let mut keys = Keys { path, metadata: header.metadata };
    let mut tensors = header.tensors;
    let architecture = keys.architecture()?;
    let vocabulary = vocabulary::read(&mut keys)?;
    let mut config = keys.config(architecture, &tensors)?;
    config.bos = vocabulary.bos;
    config.eos = vocabulary.eos.clone();
    config.check(path)?;
    vocabulary.check(path, config.vocab)?;
    let name = keys.text("general.name")?.unwrap_or_default();
    let chat_template = keys.text("tokenizer.chat_template")?;
    keys.finish(architecture)?;
    let mut stored = BTreeMap::new();
    for slot in layout::slots(&config) {
        let tensor = take(path, architecture, slot, &mut tensors)?;
        stored.insert(tensor.info.name.clone(), tensor);
    }
    if let Some(name) = tensors.keys().next() {
        let value = "a tensor that its architecture does not have";
        return Err(WeightsError::unsupported(path, format!("tensor `{}`", shown(name)), value));
    }
    let files = vec![(MANIFEST_NAME.into(), file)];
    Ok(Parts { config, name, stored, files, vocabulary, chat_template })
}

/// Finds the tensor of a slot in the file.
fn take(
    path: &Path,
    architecture: Architecture,
    slot: Slot,
    tensors: &mut BTreeMap<String, StoredTensor>,
) -> Result<Stored, WeightsError> {
    let Some(StoredTensor { format, shape, offset, len }) = tensors.remove(&slot.gguf) else {
        return Err(WeightsError::MissingTensor { path: path.into(), tensor: slot.gguf });
    };
    if shape != slot.shape {
        let (expected, found, tensor) = (slot.shape, shape, slot.gguf);
        return Err(WeightsError::Shape { path: path.into(), tensor, expected, found });
    }
    // llama.cpp stores the rotated pairs of Llama's heads next to each other. Qwen3's are left.
    let paired_heads = slot.rotated_heads.filter(|_| architecture == Architecture::Llama);
    let info = TensorInfo { name: slot.name, format, shape };
    let parts = vec![Part { file: 0, offset, len }];
    Ok(Stored { info, parts, paired_heads })
}

/// Keys that were not understood yet.
pub(crate) struct Keys<'a> {
    pub path: &'a Path,
    metadata: BTreeMap<String, Value>,
}

impl Keys<'_> {
    fn architecture(&mut self) -> Result<Architecture, WeightsError> {
        match self.text("general.type")?.as_deref() {
            None | Some("model") => {}
            Some(other) => return Err(self.unsupported("general.type", other)),
        }
        match self.text("general.architecture")?.as_deref() {
            Some("llama") => Ok(Architecture::Llama),
            Some("qwen3") => Ok(Architecture::Qwen3),
            Some("qwen3moe") => Ok(Architecture::Qwen3Moe),
            other => Err(self.unsupported("general.architecture", other.unwrap_or_default())),
        }
    }

    /// Reads the architecture's numbers.
    fn config(
        &mut self,
        architecture: Architecture,
        tensors: &BTreeMap<String, StoredTensor>,
    ) -> Result<ModelConfig, WeightsError> {
        let key = |key: &str| format!("{}.{key}", architecture.name());
        let Some(embedding) = tensors.get("token_embd.weight") else {
            let tensor = "token_embd.weight".into();
            return Err(WeightsError::MissingTensor { path: self.path.into(), tensor });
        };
        let hidden = self.needed(&key("embedding_length"))?;
        let heads = self.needed(&key("attention.head_count"))?;
        let head_dim = match self.number(&key("attention.key_length"))? {
            Some(width) => width,
            None => hidden.checked_div(heads).unwrap_or(0),
        };
        let kv_heads = self.number(&key("attention.head_count_kv"))?.unwrap_or(heads);
        let moe = match architecture {
            Architecture::Qwen3Moe => Some(Moe {
                experts: self.needed(&key("expert_count"))?,
                experts_per_token: self.needed(&key("expert_used_count"))?,
                ffn: self.needed(&key("expert_feed_forward_length"))?,
                // llama.cpp, `qwen3moe.cpp`: always.
                normalise: true,
            }),
            Architecture::Llama | Architecture::Qwen3 => None,
        };
        let ffn = self.number(&key("feed_forward_length"))?;
        let config = ModelConfig {
            architecture,
            hidden,
            layers: self.needed(&key("block_count"))?,
            heads,
            kv_heads,
            head_dim,
            ffn: if moe.is_some() { 0 } else { ffn.unwrap_or(0) },
            vocab: embedding.shape[0],
            context_tokens: self.needed(&key("context_length"))?,
            rope_theta: self.float(&key("rope.freq_base"))?.unwrap_or(ROPE_THETA) as f32,
            rms_eps: self.float(&key("attention.layer_norm_rms_epsilon"))?.unwrap_or(0.0) as f32,
            tied_embeddings: !tensors.contains_key("output.weight"),
            moe,
            bos: None,
            eos: Vec::new(),
        };
        // In range first: a width of 0 is said to be that, not to differ from another key.
        config.check(self.path)?;
        self.check_fixed(architecture, &config)?;
        Ok(config)
    }

    /// Checks keys that have one value here, or none.
    fn check_fixed(
        &mut self,
        architecture: Architecture,
        config: &ModelConfig,
    ) -> Result<(), WeightsError> {
        let experts = config.moe.map_or(0, |_| 1);
        let numbers = [
            ("attention.value_length", config.head_dim),
            ("rope.dimension_count", config.head_dim),
            ("vocab_size", config.vocab),
            ("expert_count", 0),
            ("expert_used_count", 0),
            ("expert_shared_count", 0),
            // 1 is softmax. Source: llama.cpp, `enum llama_expert_gating_func_type`.
            ("expert_gating_func", experts),
        ];
        for (key, only) in numbers {
            let key = format!("{}.{key}", architecture.name());
            if let Some(value) = self.number(&key)?
                && value != only
            {
                return Err(self.unsupported(&key, &value.to_string()));
            }
        }
        let key = |key: &str| format!("{}.{key}", architecture.name());
        for (key, only) in [(key("expert_weights_scale"), 1.0), (key("rope.scaling.factor"), 1.0)] {
            if let Some(value) = self.float(&key)?
                && value != only
            {
                return Err(self.unsupported(&key, &value.to_string()));
            }
        }
        let flags = [(key("expert_weights_norm"), true), (key("attention.causal"), true)];
        for (key, only) in flags {
            if let Some(value) = self.flag(&key)?
                && value != only
            {
                return Err(self.unsupported(&key, &value.to_string()));
            }
        }
        let scaling = key("rope.scaling.type");
        match self.text(&scaling)? {
            Some(kind) if kind != "none" => Err(self.unsupported(&scaling, &kind)),
            _ => Ok(()),
        }
    }

    /// Checks that every key was understood or only describes the model.
    fn finish(mut self, architecture: Architecture) -> Result<(), WeightsError> {
        for (key, only) in [("split.count", 1), ("general.quantization_version", 2)] {
            if let Some(value) = self.number(key)?
                && value != only
            {
                return Err(self.unsupported(key, &value.to_string()));
            }
        }
        for (key, value) in &self.metadata {
            let describes = DESCRIPTIVE.iter().any(|prefix| key.starts_with(prefix));
            let split = key.starts_with("split.");
            if !(describes || split) {
                let place = format!("key `{}` of a {} model", shown(key), architecture.name());
                return Err(WeightsError::unsupported(self.path, place, value.describe()));
            }
        }
        Ok(())
    }

    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.metadata.remove(key)
    }

    /// Takes the keys that start and end so, in order.
    pub fn take_all(&mut self, prefix: &str, suffix: &str) -> Vec<(String, Value)> {
        let named = |key: &&String| key.starts_with(prefix) && key.ends_with(suffix);
        let keys: Vec<String> = self.metadata.keys().filter(named).cloned().collect();
        keys.into_iter().filter_map(|key| self.metadata.remove_entry(&key)).collect()
    }

    pub fn text(&mut self, key: &str) -> Result<Option<String>, WeightsError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_kind(key, &other, "a text")),
        }
    }

    pub fn flag(&mut self, key: &str) -> Result<Option<bool>, WeightsError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong_kind(key, &other, "true or false")),
        }
    }

    fn float(&mut self, key: &str) -> Result<Option<f64>, WeightsError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Float(number)) => Ok(Some(number)),
            Some(other) => Err(self.wrong_kind(key, &other, "a fraction")),
        }
    }

    /// Takes a number that fits what is counted here.
    pub fn number(&mut self, key: &str) -> Result<Option<usize>, WeightsError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.unsigned().and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Ok(Some(number as usize)),
            None => Err(self.wrong_kind(key, &value, "a number of 32 bits")),
        }
    }

    fn needed(&mut self, key: &str) -> Result<usize, WeightsError> {
        let number = self.number(key)?;
        number
            .ok_or_else(|| WeightsError::malformed(self.path, format!("key `{key}`"), "is missing"))
    }

    pub fn wrong_kind(&self, key: &str, value: &Value, wanted: &str) -> WeightsError {
        let detail = format!("is {}, not {wanted}", value.describe());
        WeightsError::malformed(self.path, format!("key `{}`", shown(key)), detail)
    }

    pub fn unsupported(&self, key: &str, value: &str) -> WeightsError {
        WeightsError::unsupported(self.path, format!("key `{}`", shown(key)), shown(value))
    }
}
