//! A model in a folder, as Hugging Face lays it out.
//!
//! Not here: the layout of weight files (`safetensors`), the numbers (`folder::config`), the
//! tokens (`folder::vocabulary`).

mod config;
mod setting;
mod vocabulary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::config::ModelConfig;
use crate::error::{WeightsError, shown};
use crate::files::ModelFile;
use crate::layout::{self, Slot};
use crate::safetensors::{self, Entry};
use crate::tensor::TensorInfo;
use crate::weights::{Part, Parts, Stored};

/// The most files that weights are spread over.
pub const SHARDS_MAX: usize = 1024;
/// The longest `tokenizer.json`. Large vocabularies take some thirty mebibytes.
pub const TOKENIZER_BYTES_MAX: u64 = 64 << 20;
/// The longest index of shards.
pub const INDEX_BYTES_MAX: u64 = 8 << 20;
/// The longest of the other files.
pub const JSON_BYTES_MAX: u64 = 1 << 20;

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Reads everything of a folder but the weights themselves, and checks it.
pub(crate) fn open(path: &Path) -> Result<Parts, WeightsError> {
    let mut folder = Folder { path: path.into(), files: Vec::new() };
    if !path.join("config.json").exists() {
        let missing = "there is no `model.gguf` and no `config.json`";
        return Err(WeightsError::NotAModel { path: path.into(), missing });
    }
    let numbers = folder.json("config.json")?.unwrap_or_default();
    let generation = folder.json("generation_config.json")?;
    let tokenizer_config = folder.json("tokenizer_config.json")?;
    let (mut config, name) = config::read(&path.join("config.json"), numbers, generation)?;
    let tokenizer = folder.read("tokenizer.json", TOKENIZER_BYTES_MAX)?;
    let tokenizer_path = path.join("tokenizer.json");
    let mut vocabulary = vocabulary::read(&tokenizer_path, &tokenizer)?;
    let template = folder.text("chat_template.jinja")?;
    let extras = vocabulary::extras(&path.join("tokenizer_config.json"), tokenizer_config)?;
    config::ends(&mut config, &mut vocabulary, &extras);
    config.check(&path.join("config.json"))?;
    vocabulary.check(&tokenizer_path, config.vocab)?;
    let stored = folder.tensors(&config)?;
    let chat_template = template.or(extras.chat_template);
    Ok(Parts { config, name, stored, files: folder.files, vocabulary, chat_template })
}

/// A folder, and the files of it that were read.
struct Folder {
    path: PathBuf,
    files: Vec<(String, ModelFile)>,
}

/// `model.safetensors.index.json`.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Folder {
    fn read(&mut self, name: &str, most: u64) -> Result<Vec<u8>, WeightsError> {
        let (file, bytes) = ModelFile::open_and_read(&self.path.join(name), most)?;
        self.files.push((name.into(), file));
        Ok(bytes)
    }

    /// Reads a text file that may not be there.
    fn text(&mut self, name: &str) -> Result<Option<String>, WeightsError> {
        if !self.path.join(name).exists() {
            return Ok(None);
        }
        let text = String::from_utf8(self.read(name, JSON_BYTES_MAX)?);
        let not_utf8 = |_| WeightsError::malformed(&self.path.join(name), "file", "is not UTF-8");
        text.map(Some).map_err(not_utf8)
    }

    /// Reads a JSON object that may not be there.
    fn json(&mut self, name: &str) -> Result<Option<config::Object>, WeightsError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| self.malformed(name, &error))
    }

    fn malformed(&self, name: &str, error: &serde_json::Error) -> WeightsError {
        WeightsError::malformed(&self.path.join(name), "file", error.to_string())
    }

    /// Finds every tensor of the model in the weight files.
    fn tensors(&mut self, config: &ModelConfig) -> Result<BTreeMap<String, Stored>, WeightsError> {
        let mut entries = self.entries()?;
        // Llama checkpoints of old carry a table that is computed from the config.
        entries.retain(|name, _| !name.ends_with(".rotary_emb.inv_freq"));
        if config.tied_embeddings {
            // Then the head is the embedding, whether it was written a second time or not.
            entries.remove("lm_head.weight");
        }
        let mut stored = BTreeMap::new();
        for slot in layout::slots(config) {
            let tensor = match expert_count(&slot) {
                None => self.whole(slot, &mut entries)?,
                Some(experts) => self.stacked(slot, experts, &mut entries)?,
            };
            stored.insert(tensor.info.name.clone(), tensor);
        }
        if let Some(name) = entries.keys().next() {
            let value = "a tensor that its architecture does not have";
            let place = format!("tensor `{}`", shown(name));
            return Err(WeightsError::unsupported(&self.path, place, value));
        }
        Ok(stored)
    }

    fn whole(
        &self,
        slot: Slot,
        entries: &mut BTreeMap<String, (usize, Entry)>,
    ) -> Result<Stored, WeightsError> {
        let (part, format) = self.take(&slot.name, &slot.shape, entries)?;
        let info = TensorInfo { name: slot.name, format, shape: slot.shape };
        Ok(Stored { info, parts: vec![part], paired_heads: None })
    }

    /// Finds a stack of experts, each of which is a tensor of its own.
    fn stacked(
        &self,
        slot: Slot,
        experts: usize,
        entries: &mut BTreeMap<String, (usize, Entry)>,
    ) -> Result<Stored, WeightsError> {
        let mut parts = Vec::new();
        let mut common = None;
        for expert in 0..experts {
            let name = layout::expert_name(&slot.name, expert).expect("a stack of experts");
            let (part, format) = self.take(&name, &slot.shape[1..], entries)?;
            if format != *common.get_or_insert(format) {
                let detail = "has another format than the layer's first expert";
                let place = format!("tensor `{name}`");
                return Err(WeightsError::malformed(&self.path, place, detail));
            }
            parts.push(part);
        }
        let format = common.expect("a mixture has an expert");
        let info = TensorInfo { name: slot.name, format, shape: slot.shape };
        Ok(Stored { info, parts, paired_heads: None })
    }

    fn take(
        &self,
        name: &str,
        shape: &[usize],
        entries: &mut BTreeMap<String, (usize, Entry)>,
    ) -> Result<(Part, arena_kernels::format::Format), WeightsError> {
        let (path, tensor) = (self.path.clone(), name.to_string());
        let Some((file, entry)) = entries.remove(name) else {
            return Err(WeightsError::MissingTensor { path, tensor });
        };
        if entry.shape != shape {
            let (expected, found) = (shape.to_vec(), entry.shape);
            return Err(WeightsError::Shape { path, tensor, expected, found });
        }
        Ok((Part { file, offset: entry.offset, len: entry.len }, entry.format))
    }

    /// Reads the headers of all weight files: tensors by name, with the index of their file.
    fn entries(&mut self) -> Result<BTreeMap<String, (usize, Entry)>, WeightsError> {
        let mut entries = BTreeMap::new();
        if self.path.join(WEIGHTS).exists() {
            self.shard(WEIGHTS, &mut entries)?;
            return Ok(entries);
        }
        if !self.path.join(INDEX).exists() {
            let missing = "there is no `model.safetensors` and no index of shards";
            return Err(WeightsError::NotAModel { path: self.path.clone(), missing });
        }
        let index = self.read(INDEX, INDEX_BYTES_MAX)?;
        let index: Index =
            serde_json::from_slice(&index).map_err(|error| self.malformed(INDEX, &error))?;
        let mut shards: Vec<&String> = index.weight_map.values().collect();
        shards.sort_unstable();
        shards.dedup();
        if shards.len() > SHARDS_MAX {
            let (path, place) = (self.path.join(INDEX), "number of shards".to_string());
            let (value, most) = (shards.len() as u64, SHARDS_MAX as u64);
            return Err(WeightsError::Limit { path, place, value, most });
        }
        for shard in shards {
            // The name comes from a file, and must not lead out of the folder.
            if shard.contains(['/', '\\', '\0']) || !shard.ends_with(".safetensors") {
                let place = format!("shard `{}`", shown(shard));
                let detail = "is not the name of a safetensors file beside it";
                return Err(WeightsError::malformed(&self.path.join(INDEX), place, detail));
            }
            self.shard(shard, &mut entries)?;
        }
        for (name, shard) in &index.weight_map {
            let found = entries.get(name).map(|(file, _)| self.files[*file].0.as_str());
            if found != Some(shard) {
                let place = format!("tensor `{}`", shown(name));
                let detail = format!("is not in shard `{}`", shown(shard));
                return Err(WeightsError::malformed(&self.path.join(INDEX), place, detail));
            }
        }
        Ok(entries)
    }

    fn shard(
        &mut self,
        name: &str,
        entries: &mut BTreeMap<String, (usize, Entry)>,
    ) -> Result<(), WeightsError> {
        let file = ModelFile::open(&self.path.join(name))?;
        let index = self.files.len();
        for (tensor, entry) in safetensors::read(&file)? {
            if entries.contains_key(&tensor) {
                let place = format!("tensor `{}`", shown(&tensor));
                return Err(WeightsError::malformed(&file.path, place, "is in two shards"));
            }
            entries.insert(tensor, (index, entry));
        }
        self.files.push((name.into(), file));
        Ok(())
    }
}

/// Returns how many experts a slot stacks, if it does.
fn expert_count(slot: &Slot) -> Option<usize> {
    layout::expert_name(&slot.name, 0).map(|_| slot.shape[0])
}
