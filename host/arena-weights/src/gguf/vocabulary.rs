//! The tokenizer in a GGUF file's metadata.
//!
//! Not here: using it (`tokenizer`).

use crate::error::WeightsError;
use crate::gguf::Keys;
use crate::gguf::value::{Texts, Value};
use crate::vocabulary::{PreTokenizer, Token, TokenKind, Vocabulary, split_merge};

/// Control tokens that end a turn whether the file says so or not.
/// Source: llama.cpp, `llama-vocab.cpp`, `special_eog_ids`.
const END_MARKS: [&str; 5] = ["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|endoftext|>"];

/// Takes all keys of the tokenizer but the chat template.
pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Vocabulary, WeightsError> {
    let key = |key: &str| format!("tokenizer.ggml.{key}");
    let mut named = |name| match keys.text(name)? {
        Some(text) => Ok(text),
        None => Err(missing(keys, name)),
    };
    let (model, pre) = (named("tokenizer.ggml.model")?, named("tokenizer.ggml.pre")?);
    if model != "gpt2" {
        return Err(keys.unsupported(&key("model"), &model));
    }
    let pre_tokenizer = match pre.as_str() {
        "smollm" => PreTokenizer::Smollm,
        "qwen2" => PreTokenizer::Qwen2,
        "llama-bpe" => PreTokenizer::Llama3,
        "gpt-2" => PreTokenizer::Gpt2,
        "default" => PreTokenizer::LlamaCppDefault,
        other => return Err(keys.unsupported(&key("pre"), other)),
    };
    for refused in ["add_eos_token", "add_sep_token", "add_space_prefix"] {
        if keys.flag(&key(refused))? == Some(true) {
            return Err(keys.unsupported(&key(refused), "true"));
        }
    }
    let adds_bos = keys.flag(&key("add_bos_token"))?.unwrap_or(false);
    let tokens = tokens(keys)?;
    let merges = texts(keys, &key("merges"))?;
    let merges = merges.iter().map(|merge| split_merge(keys.path, merge));
    let merges = merges.collect::<Result<_, _>>()?;
    let (bos, eos) = ends(keys, &tokens)?;
    // Scores mean nothing in byte-pair encoding; the named templates are for tools.
    keys.take(&key("scores"));
    keys.take("tokenizer.chat_templates");
    keys.take_all("tokenizer.chat_template.", "");
    Ok(Vocabulary {
        tokens,
        merges,
        pre_tokenizer,
        ignore_merges: pre_tokenizer == PreTokenizer::Llama3,
        nfc: pre_tokenizer == PreTokenizer::Qwen2,
        bos,
        eos,
        adds_bos,
    })
}

fn tokens(keys: &mut Keys<'_>) -> Result<Vec<Token>, WeightsError> {
    let written = texts(keys, "tokenizer.ggml.tokens")?;
    let key = "tokenizer.ggml.token_type";
    let kinds = keys.take(key).ok_or_else(|| missing(keys, key))?;
    let Some(kinds) = kinds.integers() else {
        return Err(keys.wrong_kind(key, &kinds, "a list of numbers"));
    };
    let kinds: Vec<i64> = kinds.collect();
    if kinds.len() != written.len() {
        let detail = format!("has {} entries for {} tokens", kinds.len(), written.len());
        return Err(WeightsError::malformed(keys.path, format!("key `{key}`"), detail));
    }
    let tokens = written.iter().zip(kinds).enumerate().map(|(id, (written, kind))| {
        let kind = match kind {
            1 => TokenKind::Text,
            2 | 3 => TokenKind::Control,
            4 => TokenKind::Added,
            5 => TokenKind::Unused,
            other => {
                let place = format!("kind of token {id}");
                return Err(WeightsError::unsupported(keys.path, place, other.to_string()));
            }
        };
        Ok(Token { written: written.into(), kind })
    });
    tokens.collect()
}

fn texts(keys: &mut Keys<'_>, key: &str) -> Result<Texts, WeightsError> {
    match keys.take(key) {
        Some(Value::Texts(texts)) => Ok(texts),
        Some(other) => Err(keys.wrong_kind(key, &other, "a list of texts")),
        None => Err(missing(keys, key)),
    }
}

fn missing(keys: &Keys<'_>, key: &str) -> WeightsError {
    WeightsError::malformed(keys.path, format!("key `{key}`"), "is missing")
}

/// Takes the ids of tokens that have a purpose, and returns the first and the end tokens.
fn ends(keys: &mut Keys<'_>, tokens: &[Token]) -> Result<(Option<u32>, Vec<u32>), WeightsError> {
    let mut named = |key: &str| -> Result<Option<u32>, WeightsError> {
        let id = keys.number(&format!("tokenizer.ggml.{key}_token_id"))?;
        Ok(id.map(|id| u32::try_from(id).expect("numbers of keys have 32 bits")))
    };
    let bos = named("bos")?;
    let mut eos = Vec::new();
    eos.extend([named("eos")?, named("eot")?, named("eom")?].into_iter().flatten());
    let ids = 0u32..;
    eos.extend(ids.zip(tokens).filter_map(|(id, token)| {
        let ends = END_MARKS.contains(&token.written.as_str());
        (ends && token.kind == TokenKind::Control).then_some(id)
    }));
    let mut seen = Vec::new();
    eos.retain(|id| {
        !seen.contains(id) && {
            seen.push(*id);
            true
        }
    });
    // Padding, unknown, separators, holes to fill: not needed to chat.
    keys.take_all("tokenizer.ggml.", "_token_id");
    Ok((bos, eos))
}
