//! Writes model files: a GGUF file with every weight as f32, safetensors, and adapters.
//!
//! The GGUF file is for comparing engines: with f32 weights, no engine rounds them its own way.
//! llama.cpp reads it, and reading it here gives the same model.
//!
//! Not here: quantising.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Map, json};

use crate::adapter;
use crate::config::{Architecture, ModelConfig};
use crate::error::WeightsError;
use crate::layout::{self, Slot};
use crate::tensor::Tensor;
use crate::vocabulary::{PreTokenizer, Token, TokenKind, Vocabulary};
use crate::weights::Weights;

/// Alignment of tensors, the default of the format.
const ALIGNMENT: u64 = 32;

/// Writes a model as a new GGUF file, version 3, of f32.
///
/// # Errors
/// I/O, also if the file exists; [`WeightsError::Unsupported`] if the tokenizer is one that GGUF
/// has no name for.
pub fn gguf_f32(weights: &Weights, path: &Path) -> Result<(), WeightsError> {
    let parts = weights.parts();
    let mut keys = Keys::default();
    write_numbers(&mut keys, &parts.config, &parts.name);
    write_vocabulary(&mut keys, &parts.vocabulary, parts.config.vocab, path)?;
    if let Some(template) = &parts.chat_template {
        keys.text("tokenizer.chat_template", template);
    }
    let slots = layout::slots(&parts.config);
    let mut header = b"GGUF".to_vec();
    header.extend(3u32.to_le_bytes());
    header.extend((slots.len() as u64).to_le_bytes());
    header.extend(keys.count.to_le_bytes());
    header.extend(keys.bytes);
    let mut offset = 0u64;
    for slot in &slots {
        push_text(&mut header, &slot.gguf);
        header.extend(u32::try_from(slot.shape.len()).expect("few dimensions").to_le_bytes());
        for &size in slot.shape.iter().rev() {
            header.extend((size as u64).to_le_bytes());
        }
        header.extend(0u32.to_le_bytes());
        header.extend(offset.to_le_bytes());
        offset = (offset + byte_count(slot)).next_multiple_of(ALIGNMENT);
    }
    header.resize(header.len().next_multiple_of(ALIGNMENT as usize), 0);
    let mut out = NewFile::create(path)?;
    out.write(&header)?;
    for slot in &slots {
        let mut bytes = f32_bytes(&weights.tensor(&slot.name)?.to_f32());
        if let Some(heads) =
            slot.rotated_heads.filter(|_| parts.config.architecture == Architecture::Llama)
        {
            bytes = rows_in_pairs(&bytes, slot.shape[0], heads);
        }
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        out.write(&bytes)?;
    }
    out.finish()
}

/// Writes tensors of F32, F16 or BF16 as a new safetensors file.
///
/// # Errors
/// I/O, also if the file exists; [`WeightsError::Unsupported`] names a tensor of another format.
pub fn safetensors(tensors: &[Tensor], path: &Path) -> Result<(), WeightsError> {
    let mut header = Map::new();
    let mut offset = 0;
    for tensor in tensors {
        if tensor.format.block_len() != 1 {
            let place = format!("tensor `{}`", tensor.name);
            return Err(WeightsError::unsupported(path, place, tensor.format.name()));
        }
        let end = offset + tensor.bytes.len();
        let dtype = tensor.format.name();
        let entry = json!({"dtype": dtype, "shape": tensor.shape, "data_offsets": [offset, end]});
        header.insert(tensor.name.clone(), entry);
        offset = end;
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut out = NewFile::create(path)?;
    out.write(&(header.len() as u64).to_le_bytes())?;
    out.write(header.as_bytes())?;
    for tensor in tensors {
        out.write(&tensor.bytes)?;
    }
    out.finish()
}

/// What an adapter's settings say besides its layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdapterSettings<'a> {
    /// Width of the bottleneck.
    pub rank: usize,
    /// The numerator of the scale.
    pub alpha: f32,
    /// The model that it belongs to, as people call it.
    pub base_model: &'a str,
}

/// Writes an adapter as PEFT does: `adapter_config.json` and `adapter_model.safetensors` into a
/// folder that is there. Tensors have PEFT's names, as [`adapter::Adapter::open`] reads them: A and
/// B of linear layers of a model of these numbers.
///
/// # Errors
/// I/O, also if a file exists; [`WeightsError::Unsupported`] names a tensor that is no factor.
pub fn adapter(
    settings: AdapterSettings<'_>,
    tensors: &[Tensor],
    config: &ModelConfig,
    folder: &Path,
) -> Result<(), WeightsError> {
    let path = folder.join(adapter::CONFIG_NAME);
    let mut modules = BTreeSet::new();
    for tensor in tensors {
        let module = tensor.name.strip_prefix("base_model.model.").and_then(|name| {
            name.strip_suffix(".lora_A.weight").or(name.strip_suffix(".lora_B.weight"))
        });
        let Some(module) = module else {
            let place = format!("tensor `{}`", tensor.name);
            return Err(WeightsError::unsupported(&path, place, "in an adapter"));
        };
        modules.insert(module);
    }
    let settings = json!({
        "base_model_name_or_path": settings.base_model,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "init_lora_weights": true,
        "lora_alpha": settings.alpha,
        "lora_dropout": 0.0,
        "modules_to_save": null,
        "peft_type": "LORA",
        "r": settings.rank,
        "target_modules": targets(&modules, config),
        "task_type": "CAUSAL_LM",
        "use_dora": false,
        "use_rslora": false,
    });
    let text = serde_json::to_string_pretty(&settings).expect("names and numbers are JSON");
    let mut out = NewFile::create(&path)?;
    out.write(text.as_bytes())?;
    out.write(b"\n")?;
    out.finish()?;
    safetensors(tensors, &folder.join(adapter::WEIGHTS_NAME))
}

/// Names modules by their last part where all of that name are meant, else in full.
fn targets(modules: &BTreeSet<&str>, config: &ModelConfig) -> BTreeSet<String> {
    let last = |module: &str| module.rsplit('.').next().unwrap_or(module).to_owned();
    let all = layout::parts(config);
    let of_model = all.iter().map(|(name, _)| name.trim_end_matches(".weight"));
    let missed: BTreeSet<String> =
        of_model.filter(|module| !modules.contains(module)).map(last).collect();
    let named = modules.iter().map(|module| {
        let short = last(module);
        if missed.contains(&short) { (*module).to_owned() } else { short }
    });
    named.collect()
}

fn byte_count(slot: &Slot) -> u64 {
    4 * slot.shape.iter().product::<usize>() as u64
}

fn f32_bytes(weights: &[f32]) -> Vec<u8> {
    weights.iter().flat_map(|weight| weight.to_le_bytes()).collect()
}

/// Undoes what reading a Llama file does to rotated heads: halves to pairs.
fn rows_in_pairs(bytes: &[u8], rows: usize, heads: usize) -> Vec<u8> {
    let row = bytes.len() / rows;
    let half = rows / heads / 2;
    let mut out = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(2 * half * row) {
        for pair in 0..half {
            for side in 0..2 {
                let at = (side * half + pair) * row;
                out.extend_from_slice(&head[at..at + row]);
            }
        }
    }
    out
}

fn write_numbers(keys: &mut Keys, config: &ModelConfig, name: &str) {
    let architecture = config.architecture.name();
    let key = |key: &str| format!("{architecture}.{key}");
    keys.text("general.architecture", architecture);
    keys.text("general.type", "model");
    keys.text("general.name", name);
    keys.number("general.file_type", 0);
    keys.number(&key("block_count"), config.layers);
    keys.number(&key("context_length"), config.context_tokens);
    keys.number(&key("embedding_length"), config.hidden);
    keys.number(&key("attention.head_count"), config.heads);
    keys.number(&key("attention.head_count_kv"), config.kv_heads);
    keys.number(&key("attention.key_length"), config.head_dim);
    keys.number(&key("attention.value_length"), config.head_dim);
    keys.number(&key("rope.dimension_count"), config.head_dim);
    keys.number(&key("vocab_size"), config.vocab);
    keys.float(&key("rope.freq_base"), config.rope_theta);
    keys.float(&key("attention.layer_norm_rms_epsilon"), config.rms_eps);
    match config.moe {
        None => keys.number(&key("feed_forward_length"), config.ffn),
        Some(moe) => {
            // llama.cpp wants the dense width, too, and does not use it.
            keys.number(&key("feed_forward_length"), moe.ffn);
            keys.number(&key("expert_count"), moe.experts);
            keys.number(&key("expert_used_count"), moe.experts_per_token);
            keys.number(&key("expert_feed_forward_length"), moe.ffn);
        }
    }
}

fn write_vocabulary(
    keys: &mut Keys,
    vocabulary: &Vocabulary,
    rows: usize,
    path: &Path,
) -> Result<(), WeightsError> {
    let pre = match (vocabulary.pre_tokenizer, vocabulary.ignore_merges, vocabulary.nfc) {
        (PreTokenizer::Gpt2, false, false) => "gpt-2",
        (PreTokenizer::Smollm, false, false) => "smollm",
        (PreTokenizer::Qwen2, false, true) => "qwen2",
        (PreTokenizer::Llama3, true, false) => "llama-bpe",
        (PreTokenizer::LlamaCppDefault, false, false) => "default",
        (words, ignore_merges, nfc) => {
            let value = format!("{words:?} with ignore_merges {ignore_merges} and nfc {nfc}");
            return Err(WeightsError::unsupported(path, "key `tokenizer.ggml.pre`", value));
        }
    };
    keys.text("tokenizer.ggml.model", "gpt2");
    keys.text("tokenizer.ggml.pre", pre);
    // There is a token for every row of the embedding. Gaps get names, since names are unique.
    let gap = Token { written: String::new(), kind: TokenKind::Unused };
    let tokens = vocabulary.tokens.iter().chain(std::iter::repeat(&gap)).take(rows);
    let written = tokens.clone().enumerate().map(|(id, token)| match token.written.as_str() {
        "" => format!("[PAD{id}]"),
        written => written.into(),
    });
    keys.texts("tokenizer.ggml.tokens", written);
    keys.integers(
        "tokenizer.ggml.token_type",
        tokens.map(|token| match token.kind {
            TokenKind::Text => 1,
            TokenKind::Control => 3,
            TokenKind::Added => 4,
            TokenKind::Unused => 5,
        }),
    );
    let merges = vocabulary.merges.iter().map(|(left, right)| format!("{left} {right}"));
    keys.texts("tokenizer.ggml.merges", merges);
    keys.flag("tokenizer.ggml.add_bos_token", vocabulary.adds_bos);
    if let Some(bos) = vocabulary.bos {
        keys.number("tokenizer.ggml.bos_token_id", bos as usize);
    }
    let named = ["eos", "eot", "eom"];
    for (name, &id) in named.iter().zip(&vocabulary.eos) {
        keys.number(&format!("tokenizer.ggml.{name}_token_id"), id as usize);
    }
    Ok(())
}

/// Keys and values as they are written.
#[derive(Default)]
struct Keys {
    count: u64,
    bytes: Vec<u8>,
}

impl Keys {
    fn key(&mut self, key: &str, kind: u32) {
        self.count += 1;
        push_text(&mut self.bytes, key);
        self.bytes.extend(kind.to_le_bytes());
    }

    fn number(&mut self, key: &str, number: usize) {
        self.key(key, 4);
        let number = u32::try_from(number).expect("numbers of a model have 32 bits");
        self.bytes.extend(number.to_le_bytes());
    }

    fn float(&mut self, key: &str, number: f32) {
        self.key(key, 6);
        self.bytes.extend(number.to_le_bytes());
    }

    fn flag(&mut self, key: &str, flag: bool) {
        self.key(key, 7);
        self.bytes.push(flag.into());
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key, 8);
        push_text(&mut self.bytes, text);
    }

    fn texts(&mut self, key: &str, texts: impl Iterator<Item = String>) {
        let start = self.list(key, 8);
        let mut count = 0u64;
        for text in texts {
            push_text(&mut self.bytes, &text);
            count += 1;
        }
        self.bytes[start..start + 8].copy_from_slice(&count.to_le_bytes());
    }

    fn integers(&mut self, key: &str, integers: impl Iterator<Item = i32>) {
        let start = self.list(key, 5);
        let mut count = 0u64;
        for integer in integers {
            self.bytes.extend(integer.to_le_bytes());
            count += 1;
        }
        self.bytes[start..start + 8].copy_from_slice(&count.to_le_bytes());
    }

    /// Begins a list. Returns where its count belongs.
    fn list(&mut self, key: &str, element: u32) -> usize {
        self.key(key, 9);
        self.bytes.extend(element.to_le_bytes());
        let start = self.bytes.len();
        self.bytes.extend(0u64.to_le_bytes());
        start
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// A file that was not there before.
struct NewFile<'a> {
    path: &'a Path,
    out: BufWriter<File>,
}

impl NewFile<'_> {
    fn create(path: &Path) -> Result<NewFile<'_>, WeightsError> {
        let file = File::create_new(path).map_err(|source| WeightsError::Io {
            doing: "create",
            path: path.into(),
            source,
        })?;
        Ok(NewFile { path, out: BufWriter::new(file) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WeightsError> {
        let failed = |source| WeightsError::Io { doing: "write", path: self.path.into(), source };
        self.out.write_all(bytes).map_err(failed)
    }

    fn finish(mut self) -> Result<(), WeightsError> {
        let failed = |source| WeightsError::Io { doing: "write", path: self.path.into(), source };
        self.out.flush().map_err(failed)
    }
}
