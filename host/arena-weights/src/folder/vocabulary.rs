//! The tokenizer of a folder: `tokenizer.json`, and what `tokenizer_config.json` adds.
//!
//! The file could ask for any regular expression and any sequence of steps. Only those of the
//! families that are read from GGUF files, too, are known here; others are refused by name.
//!
//! Not here: using it (`tokenizer`).

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use crate::config::VOCAB_MAX;
use crate::error::{WeightsError, shown};
use crate::folder::config::Object;
use crate::folder::setting::Setting;
use crate::tokenizer::{LLAMA3_WORDS, QWEN2_WORDS};
use crate::vocabulary::{MERGES_MAX, PreTokenizer, Token, TokenKind, Vocabulary, split_merge};

/// What `tokenizer_config.json` adds.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    pub bos: Option<String>,
    pub eos: Option<String>,
    pub chat_template: Option<String>,
}

/// Reads `tokenizer.json`, which is at `path`.
pub(crate) fn read(path: &Path, json: &[u8]) -> Result<Vocabulary, WeightsError> {
    let file: TokenizerJson = serde_json::from_slice(json)
        .map_err(|error| WeightsError::malformed(path, "file", error.to_string()))?;
    let refuse = |key: &str, value: String| {
        Err(WeightsError::unsupported(path, format!("key `{key}`"), shown(&value)))
    };
    for (key, Setting(value)) in [("truncation", &file.truncation), ("padding", &file.padding)] {
        if !value.is_null() {
            return refuse(key, value.to_string());
        }
    }
    let nfc = match &file.normalizer.0 {
        Value::Null => false,
        normalizer if *normalizer == json!({"type": "NFC"}) => true,
        other => return refuse("normalizer", other.to_string()),
    };
    let Some(pre_tokenizer) = pre_tokenizer(&file.pre_tokenizer.0) else {
        return refuse("pre_tokenizer", file.pre_tokenizer.0.to_string());
    };
    let model = file.model;
    if model.kind.as_deref().unwrap_or("BPE") != "BPE" {
        return refuse("model.type", model.kind.unwrap_or_default());
    }
    let affixes = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
    if affixes.iter().any(|affix| affix.as_ref().is_some_and(|affix| !affix.is_empty())) {
        return refuse("model", "prefixes or suffixes of words".into());
    }
    if model.byte_fallback || model.fuse_unk || model.dropout.is_some_and(|rate| rate != 0.0) {
        return refuse("model", "byte_fallback, fuse_unk or dropout".into());
    }
    let merges = model.merges.merges.into_iter().map(|merge| match merge {
        MergeJson::Pair(left, right) => Ok((left, right)),
        MergeJson::Text(text) => split_merge(path, &text),
    });
    Ok(Vocabulary {
        tokens: tokens(path, model.vocab.tokens, file.added_tokens)?,
        merges: merges.collect::<Result<_, _>>()?,
        pre_tokenizer,
        ignore_merges: model.ignore_merges,
        nfc,
        bos: None,
        eos: Vec::new(),
        // As in `transformers`, a prompt is what the chat template makes of it.
        adds_bos: false,
    })
}

/// Reads `tokenizer_config.json`, which is at `path`, if there is one.
pub(crate) fn extras(path: &Path, object: Option<Object>) -> Result<Extras, WeightsError> {
    let Some(object) = object else { return Ok(Extras::default()) };
    let text = |value: &Value| value.as_str().map(str::to_string);
    let token = |key: &str| match object.get(key) {
        Some(Value::Object(token)) => token.get("content").and_then(text),
        other => other.and_then(text),
    };
    let chat_template = match object.get("chat_template") {
        None | Some(Value::Null) => None,
        Some(Value::String(template)) => Some(template.clone()),
        Some(Value::Array(named)) => {
            let default = named.iter().find(|entry| entry["name"] == "default");
            default.and_then(|entry| text(&entry["template"]))
        }
        Some(other) => {
            let detail = format!("`{}` is no template", shown(&other.to_string()));
            return Err(WeightsError::malformed(path, "key `chat_template`", detail));
        }
    };
    Ok(Extras { bos: token("bos_token"), eos: token("eos_token"), chat_template })
}

/// Recognises how text is cut into words.
fn pre_tokenizer(json: &Value) -> Option<PreTokenizer> {
    if is_byte_level(json, true) {
        return Some(PreTokenizer::Gpt2);
    }
    let steps = json.get("pretokenizers").filter(|_| json["type"] == "Sequence")?.as_array()?;
    let [first, last] = steps.as_slice() else { return None };
    if *first == json!({"type": "Digits", "individual_digits": true}) {
        return is_byte_level(last, true).then_some(PreTokenizer::Smollm);
    }
    let split = |regex: &str| {
        let pattern = json!({"Regex": regex});
        *first
            == json!({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false})
            && is_byte_level(last, false)
    };
    if split(QWEN2_WORDS) {
        return Some(PreTokenizer::Qwen2);
    }
    split(LLAMA3_WORDS).then_some(PreTokenizer::Llama3)
}

/// Says whether a step maps bytes to the byte alphabet, with or without GPT-2's words, and adds
/// nothing. Trimming concerns offsets, which nobody asks for.
fn is_byte_level(json: &Value, words: bool) -> bool {
    json["type"] == "ByteLevel"
        && json["add_prefix_space"] == false
        && json.get("use_regex").is_none_or(|regex| *regex == true) == words
}

/// Puts tokens in the order of their ids.
fn tokens(
    path: &Path,
    vocab: Vec<(String, u32)>,
    added: Vec<AddedJson>,
) -> Result<Vec<Token>, WeightsError> {
    let text = vocab.into_iter().map(|(written, id)| (id, written, TokenKind::Text));
    let mut marks = Vec::new();
    for token in added {
        if token.lstrip || token.rstrip || token.single_word {
            let place = format!("added token `{}`", shown(&token.content));
            let value = "lstrip, rstrip or single_word";
            return Err(WeightsError::unsupported(path, place, value));
        }
        let kind = if token.special { TokenKind::Control } else { TokenKind::Added };
        marks.push((token.id, token.content, kind));
    }
    let mut tokens: Vec<Token> = Vec::new();
    for (id, written, kind) in text.chain(marks) {
        if id as usize >= VOCAB_MAX {
            let (path, place) = (path.into(), format!("id of token `{}`", shown(&written)));
            return Err(WeightsError::Limit {
                path,
                place,
                value: id.into(),
                most: VOCAB_MAX as u64,
            });
        }
        if tokens.len() <= id as usize {
            let gap = Token { written: String::new(), kind: TokenKind::Unused };
            tokens.resize(id as usize + 1, gap);
        }
        let token = &mut tokens[id as usize];
        let taken = token.kind != TokenKind::Unused;
        if taken && (kind == TokenKind::Text || token.written != written) {
            let detail = format!("is `{}` and `{}`", shown(&token.written), shown(&written));
            return Err(WeightsError::malformed(path, format!("token {id}"), detail));
        }
        *token = Token { written, kind };
    }
    Ok(tokens)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenizerJson {
    #[serde(rename = "version")]
    _version: IgnoredAny,
    #[serde(default)]
    truncation: Setting,
    #[serde(default)]
    padding: Setting,
    #[serde(default)]
    added_tokens: Vec<AddedJson>,
    #[serde(default)]
    normalizer: Setting,
    #[serde(default)]
    pre_tokenizer: Setting,
    /// Adds special tokens around a text, which templates do here.
    #[serde(rename = "post_processor")]
    _post_processor: IgnoredAny,
    /// Every token's bytes are known without it.
    #[serde(rename = "decoder")]
    _decoder: IgnoredAny,
    model: ModelJson,
}

#[derive(Deserialize)]
struct AddedJson {
    id: u32,
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    special: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelJson {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f32>,
    /// What is left out here would become this token, which no text may.
    #[serde(rename = "unk_token")]
    _unk_token: Option<IgnoredAny>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    vocab: VocabJson,
    merges: MergesJson,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MergeJson {
    Text(String),
    Pair(String, String),
}

/// Merges, likeliest first.
struct MergesJson {
    merges: Vec<MergeJson>,
}

impl<'de> Deserialize<'de> for MergesJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MergesJson, D::Error> {
        struct Merges;
        impl<'de> Visitor<'de> for Merges {
            type Value = MergesJson;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of merges")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<MergesJson, S::Error> {
                let mut merges = Vec::new();
                while let Some(merge) = seq.next_element()? {
                    if merges.len() == MERGES_MAX {
                        return Err(S::Error::custom(format!("more than {MERGES_MAX} merges")));
                    }
                    merges.push(merge);
                }
                Ok(MergesJson { merges })
            }
        }
        deserializer.deserialize_seq(Merges)
    }
}

/// Tokens with their ids, in the order of the file.
struct VocabJson {
    tokens: Vec<(String, u32)>,
}

impl<'de> Deserialize<'de> for VocabJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<VocabJson, D::Error> {
        struct Tokens;
        impl<'de> Visitor<'de> for Tokens {
            type Value = VocabJson;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tokens")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<VocabJson, M::Error> {
                let mut tokens = Vec::new();
                while let Some(token) = map.next_entry()? {
                    if tokens.len() == VOCAB_MAX {
                        return Err(M::Error::custom(format!("more than {VOCAB_MAX} tokens")));
                    }
                    tokens.push(token);
                }
                Ok(VocabJson { tokens })
            }
        }
        deserializer.deserialize_map(Tokens)
    }
}
