//! What a tokenizer is made of, wherever it was read from.
//!
//! Not here: reading it (`gguf::vocabulary`, `folder::vocabulary`), using it (`tokenizer`).

use std::path::Path;

use crate::config::VOCAB_MAX;
use crate::error::{WeightsError, shown};

/// The most merges.
pub const MERGES_MAX: usize = 1 << 21;
/// The longest token, as it is written.
pub const TOKEN_BYTES_MAX: usize = 1024;
/// The most tokens that are marks. Llama 3 has 256.
pub const MARKS_MAX: usize = 4096;

/// Tokens and the rules that make them of text: byte-level byte-pair encoding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vocabulary {
    /// By id.
    pub tokens: Vec<Token>,
    /// Likeliest first.
    pub merges: Vec<(String, String)>,
    pub pre_tokenizer: PreTokenizer,
    /// Whether a word that is a token is that token, whatever the merges make of it.
    pub ignore_merges: bool,
    /// Whether text is brought into Unicode's composed form first.
    pub nfc: bool,
    pub bos: Option<u32>,
    /// The file's own end token is first.
    pub eos: Vec<u32>,
    /// Whether every prompt starts with the first token, also if the template leaves it out.
    pub adds_bos: bool,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// In the byte alphabet (`tokenizer::byte_of`) if it is text, else as it is written.
    pub written: String,
    pub kind: TokenKind,
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A part of text.
    Text,
    /// A mark that only a template writes, and that no reader sees.
    Control,
    /// A mark that only a template or the model writes, such as `<think>`, and that is read.
    Added,
    /// None at all: a gap in the numbering, or a row of the embedding that was never trained.
    Unused,
}

/// How text is cut into words before it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreTokenizer {
    /// GPT-2's.
    Gpt2,
    /// GPT-2's, and every digit is a word.
    Smollm,
    /// Qwen2's, which Qwen3 has, too.
    Qwen2,
    /// Llama 3's.
    Llama3,
    /// What llama.cpp calls `default`.
    LlamaCppDefault,
}

impl Vocabulary {
    /// Checks sizes and ids against the rows of the embedding.
    pub fn check(&self, path: &Path, rows: usize) -> Result<(), WeightsError> {
        let limit = |place: &str, value: usize, most: usize| {
            if value <= most {
                return Ok(());
            }
            let (place, value, most) = (place.to_string(), value as u64, most as u64);
            Err(WeightsError::Limit { path: path.into(), place, value, most })
        };
        limit("number of the tokenizer's tokens", self.tokens.len(), rows.min(VOCAB_MAX))?;
        limit("number of merges", self.merges.len(), MERGES_MAX)?;
        limit("number of control and added tokens", self.marks().count(), MARKS_MAX)?;
        for (id, token) in self.tokens.iter().enumerate() {
            if token.written.len() > TOKEN_BYTES_MAX {
                limit(&format!("length of token {id}"), token.written.len(), TOKEN_BYTES_MAX)?;
            }
            if token.written.is_empty() && token.kind != TokenKind::Unused {
                return Err(WeightsError::malformed(path, format!("token {id}"), "is empty"));
            }
        }
        for &id in self.bos.iter().chain(&self.eos) {
            if id as usize >= self.tokens.len() {
                return Err(WeightsError::malformed(path, format!("token {id}"), "does not exist"));
            }
        }
        Ok(())
    }

    /// Returns the tokens that are marks, with their ids.
    pub fn marks(&self) -> impl Iterator<Item = (u32, &str)> {
        let ids = 0u32..;
        ids.zip(&self.tokens)
            .filter(|(_, token)| matches!(token.kind, TokenKind::Control | TokenKind::Added))
            .map(|(id, token)| (id, token.written.as_str()))
    }

    /// Returns how a token is written, where it exists.
    pub fn written(&self, id: Option<u32>) -> Option<&str> {
        self.tokens.get(id? as usize).map(|token| token.written.as_str())
    }
}

/// Cuts a merge that is written as two tokens and a space between them.
pub(crate) fn split_merge(path: &Path, merge: &str) -> Result<(String, String), WeightsError> {
    match merge.split_once(' ') {
        Some((left, right)) if !right.contains(' ') => Ok((left.into(), right.into())),
        _ => {
            let place = format!("merge `{}`", shown(merge));
            Err(WeightsError::malformed(path, place, "is not two tokens"))
        }
    }
}
