//! The words of the compact language as tokens, and how messages become a prompt.
//!
//! A text token is a word with a space before it, so that a message of words is as many tokens
//! and no others. Bytes that are in no word have no token and are left out.
//!
//! Not here: what the words mean (`guest-sdk/src/compact.rs`, which has the same).

use serde_json::{Map, Value, json};

/// The highest level of a price.
pub const LEVEL_MAX: u32 = 60;

/// The token that ends every message; the only one that is part of no text that is read.
pub const END: u32 = 0;

/// The marks by id: the end of a message, and what each role's message begins with.
const MARKS: [&str; 4] = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"];

/// The words that are no levels, in the order of their ids.
pub const WORDS: [&str; 20] = [
    "offer", "accept", "walk", "defect", "quote", "history", "means", "cash", "budget", "begin",
    "asks", "passes", "refused", "first", "moved", "stays", "raised", "above", "left", "hidden",
];

/// The words for arguments, which are among [`WORDS`].
pub const ARGUMENTS: [&str; 5] = ["defect", "quote", "history", "means", "cash"];

/// How messages become a prompt. What the model writes begins with the space of its first word, so
/// a prompt that goes on begins with the last one and the reply to it.
pub const CHAT_TEMPLATE: &str = "\
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- '<|assistant|>' + message.content + '<|end|>' -}}
{%- else -%}
{{- '<|' + message.role + '|> ' + message.content + '<|end|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|assistant|>' -}}
{%- endif -%}
";

/// How many tokens there are.
pub const TOKEN_COUNT: u32 = (MARKS.len() + WORDS.len()) as u32 + LEVEL_MAX + 1;

/// Returns `tokenizer.json`: GPT-2's words, of which each is a token as it stands and needs no
/// merges.
pub(super) fn tokenizer() -> Value {
    let levels = (0..=LEVEL_MAX).map(|level| level.to_string());
    let words = WORDS.iter().map(|word| (*word).to_owned()).chain(levels);
    // In the byte alphabet of GPT-2 a space is written so.
    let vocab: Map<String, Value> = words
        .enumerate()
        .map(|(place, word)| (format!("\u{120}{word}"), (MARKS.len() + place).into()))
        .collect();
    let marks: Vec<Value> = (0..).zip(MARKS).map(|(id, content)| mark(id, content)).collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": marks,
        "normalizer": null,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": false,
            "trim_offsets": true,
            "use_regex": true,
        },
        "post_processor": null,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": false,
            "trim_offsets": true,
            "use_regex": true,
        },
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": true,
            "vocab": vocab,
            "merges": [],
        },
    })
}

/// A mark that the model writes in the middle of a reply is read, and so is an error; only the
/// end is not.
fn mark(id: u32, content: &str) -> Value {
    json!({
        "id": id,
        "content": content,
        "single_word": false,
        "lstrip": false,
        "rstrip": false,
        "normalized": false,
        "special": id == END,
    })
}
