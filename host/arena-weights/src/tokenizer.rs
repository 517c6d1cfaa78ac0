//! Turns text into tokens and back.
//!
//! Marks between texts, such as `<|im_end|>`, are not in the encoder at all, so no text can ever
//! become one: only [`Tokenizer::encode_marks`] and the template's part of
//! [`Tokenizer::encode_pieces`] know them. Nothing is cached from one text to the next.
//!
//! Where a model has no token for a byte (SmolLM2 has none for some that no common text has),
//! that byte is left out, as `transformers` and llama.cpp do.
//!
//! Not here: where the vocabulary comes from (`gguf::vocabulary`, `folder::vocabulary`).

use std::collections::BTreeMap;
use std::path::Path;

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

use crate::error::{WeightsError, shown};
use crate::template::Piece;
use crate::vocabulary::{PreTokenizer, TokenKind, Vocabulary};

/// The longest text that is made into tokens at once: more than any context here holds. The crate
/// that does it takes some 500 bytes of memory a byte while it does.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

/// Source: Qwen2's `tokenizer.json`.
pub(crate) const QWEN2_WORDS: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// Source: Llama 3's `tokenizer.json`.
pub(crate) const LLAMA3_WORDS: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// Source: llama.cpp, `llama-vocab.cpp`, the default of `llm_tokenizer_bpe`.
const LLAMA_CPP_DEFAULT_WORDS: [&str; 4] = [
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
];

/// A model's tokenizer.
pub struct Tokenizer {
    /// Knows text only.
    encoder: tokenizers::Tokenizer,
    /// What every token stands for, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    kinds: Vec<TokenKind>,
    marks: Marks,
    /// The token that every prompt starts with, if it must.
    first: Option<u32>,
}

impl Tokenizer {
    /// Makes a tokenizer of a checked vocabulary; `path` is whose it is.
    pub(crate) fn new(path: &Path, vocabulary: &Vocabulary) -> Result<Tokenizer, WeightsError> {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for (id, token) in vocabulary.tokens.iter().enumerate() {
            match token.kind {
                TokenKind::Text => {
                    for letter in token.written.chars() {
                        bytes.push(byte_of(letter).ok_or_else(|| {
                            let place = format!("token {id}, `{}`", shown(&token.written));
                            WeightsError::malformed(path, place, "is not in the byte alphabet")
                        })?);
                    }
                }
                TokenKind::Control | TokenKind::Added => bytes.extend(token.written.bytes()),
                TokenKind::Unused => {}
            }
            ends.push(bytes.len());
        }
        Ok(Tokenizer {
            encoder: encoder(path, vocabulary)?,
            bytes,
            ends,
            kinds: vocabulary.tokens.iter().map(|token| token.kind).collect(),
            marks: Marks::new(path, vocabulary)?,
            first: vocabulary.bos.filter(|_| vocabulary.adds_bos),
        })
    }

    /// Returns the tokens of a text. None of them is ever a control token, whatever it says.
    ///
    /// # Errors
    /// [`WeightsError::TextTooLong`].
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>, WeightsError> {
        let mut tokens = Vec::new();
        check_length(text.len())?;
        self.append_text(text, &mut tokens)?;
        Ok(tokens)
    }

    /// Returns the tokens of a trusted text, in which control tokens are written out.
    ///
    /// # Errors
    /// [`WeightsError::TextTooLong`].
    pub fn encode_marks(&self, text: &str) -> Result<Vec<u32>, WeightsError> {
        check_length(text.len())?;
        let mut tokens = Vec::new();
        for part in self.marks.split(text) {
            match part {
                TextOrMark::Text(text) => self.append_text(text, &mut tokens)?,
                TextOrMark::Mark(id) => tokens.push(id),
            }
        }
        Ok(tokens)
    }

    /// Returns the tokens of a rendered prompt: control tokens are parsed in the template's own
    /// text only, and text is cut nowhere else than at them, so a message's first and last
    /// words merge with the template's as they do in `transformers`.
    ///
    /// `written[i]` has the tokens of message `i` as the model wrote them, to be taken as they
    /// are instead of its text; empty, or past the end of `written`, where there are none. If they
    /// end with the control token that the template writes next, it is not repeated.
    ///
    /// # Errors
    /// [`WeightsError::TextTooLong`].
    pub fn encode_pieces(
        &self,
        pieces: &[Piece],
        written: &[&[u32]],
    ) -> Result<Vec<u32>, WeightsError> {
        check_length(pieces.iter().map(|piece| piece.text.len()).sum())?;
        let mut tokens = Vec::new();
        let mut text = String::new();
        // The end token of tokens that were just taken over.
        let mut ended: Option<u32> = None;
        for piece in pieces {
            let taken = piece.of_message.and_then(|message| written.get(message).copied());
            match (piece.of_message, taken.unwrap_or_default()) {
                (Some(_), []) => text.push_str(&piece.text),
                (Some(_), taken) => {
                    self.append_text(&std::mem::take(&mut text), &mut tokens)?;
                    tokens.extend(taken);
                    ended = tokens.last().copied();
                    continue;
                }
                (None, _) => {
                    for part in self.marks.split(&piece.text) {
                        match part {
                            TextOrMark::Text(part) => text.push_str(part),
                            TextOrMark::Mark(id) if text.is_empty() && ended == Some(id) => {}
                            TextOrMark::Mark(id) => {
                                self.append_text(&std::mem::take(&mut text), &mut tokens)?;
                                tokens.push(id);
                            }
                        }
                        ended = None;
                    }
                }
            }
        }
        self.append_text(&text, &mut tokens)?;
        if let Some(first) = self.first.filter(|first| tokens.first() != Some(first)) {
            tokens.insert(0, first);
        }
        Ok(tokens)
    }

    /// Returns the bytes that a token stands for: part of a text, not always whole characters.
    /// A mark's are its written form. Empty for ids that do not exist.
    pub fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..end]
    }

    /// Returns the number of tokens; ids are below it. A model can have more rows than that.
    pub fn vocab(&self) -> usize {
        self.ends.len()
    }

    /// Says whether a token is no part of any text that is read: a control token, or an id that
    /// stands for nothing. Added tokens such as `<think>` are read.
    pub fn is_control(&self, id: u32) -> bool {
        let kind = self.kinds.get(id as usize).copied().unwrap_or(TokenKind::Unused);
        matches!(kind, TokenKind::Control | TokenKind::Unused)
    }

    /// Says whether a token is one that no text is encoded to.
    pub fn is_mark(&self, id: u32) -> bool {
        self.kinds.get(id as usize) != Some(&TokenKind::Text)
    }

    /// Returns the control or added token that is written so.
    pub fn mark(&self, written: &str) -> Option<u32> {
        self.marks.by_text.get(written).copied()
    }

    fn append_text(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), WeightsError> {
        if text.is_empty() {
            return Ok(());
        }
        let encoding = self.encoder.encode_fast(text, false);
        let encoding =
            encoding.map_err(|error| WeightsError::Tokenizer { detail: error.to_string() })?;
        tokens.extend(encoding.get_ids());
        Ok(())
    }
}

fn check_length(bytes: usize) -> Result<(), WeightsError> {
    if bytes > TEXT_BYTES_MAX {
        return Err(WeightsError::TextTooLong { bytes, most: TEXT_BYTES_MAX });
    }
    Ok(())
}

/// Makes the encoder, of the tokens that are text.
fn encoder(path: &Path, vocabulary: &Vocabulary) -> Result<tokenizers::Tokenizer, WeightsError> {
    let mut ids = BTreeMap::new();
    for (id, token) in (0u32..).zip(&vocabulary.tokens) {
        let is_text = token.kind == TokenKind::Text;
        if is_text && let Some(other) = ids.insert(token.written.clone(), id) {
            let place = format!("token {id}, `{}`", shown(&token.written));
            return Err(WeightsError::malformed(path, place, format!("is token {other}, too")));
        }
    }
    // The crate takes this for granted, and would stop the program if it were not so.
    for (left, right) in &vocabulary.merges {
        let known = [left.as_str(), right, &format!("{left}{right}")];
        if let Some(unknown) = known.iter().find(|token| !ids.contains_key(**token)) {
            let place = format!("merge `{} {}`", shown(left), shown(right));
            let detail = format!("`{}` is no token of text", shown(unknown));
            return Err(WeightsError::malformed(path, place, detail));
        }
    }
    let refused = |error: tokenizers::Error| WeightsError::Tokenizer { detail: error.to_string() };
    let model = BPE::builder()
        .vocab_and_merges(ids.into_iter().collect::<Vocab>(), vocabulary.merges.clone())
        .ignore_merges(vocabulary.ignore_merges)
        // Every thread would keep a cache, for as long as it lives.
        .cache_capacity(0)
        .build()
        .map_err(refused)?;
    let mut encoder = tokenizers::Tokenizer::new(model);
    let words = words(vocabulary.pre_tokenizer).map_err(refused)?;
    encoder.with_pre_tokenizer(Some(Sequence::new(words)));
    if vocabulary.nfc {
        encoder.with_normalizer(Some(NFC)).map_err(refused)?;
    }
    Ok(encoder)
}

fn words(pre_tokenizer: PreTokenizer) -> Result<Vec<PreTokenizerWrapper>, tokenizers::Error> {
    let byte_level =
        |use_regex| PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, false, use_regex));
    let split = |regex: &str| {
        let pattern = SplitPattern::Regex(regex.into());
        Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map(PreTokenizerWrapper::Split)
    };
    Ok(match pre_tokenizer {
        PreTokenizer::Gpt2 => vec![byte_level(true)],
        PreTokenizer::Smollm => {
            vec![PreTokenizerWrapper::Digits(Digits::new(true)), byte_level(true)]
        }
        PreTokenizer::Qwen2 => vec![split(QWEN2_WORDS)?, byte_level(false)],
        PreTokenizer::Llama3 => vec![split(LLAMA3_WORDS)?, byte_level(false)],
        PreTokenizer::LlamaCppDefault => {
            let splits = LLAMA_CPP_DEFAULT_WORDS.iter().map(|regex| split(regex));
            splits.chain([Ok(byte_level(false))]).collect::<Result<_, _>>()?
        }
    })
}

/// Returns the byte that a letter of the byte alphabet stands for.
///
/// Printable Latin-1 stands for itself, the other bytes, in order, for U+0100 on.
/// Source: GPT-2, `encoder.py`, `bytes_to_unicode`.
pub(crate) fn byte_of(letter: char) -> Option<u8> {
    let code = u32::from(letter);
    match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(code).ok(),
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// The marks of a tokenizer, to be found in the text of templates.
struct Marks {
    by_text: BTreeMap<String, u32>,
    /// Lengths of marks by their first byte, longest first.
    lengths: BTreeMap<u8, Vec<usize>>,
}

/// A part of a template's text.
enum TextOrMark<'a> {
    Text(&'a str),
    Mark(u32),
}

impl Marks {
    fn new(path: &Path, vocabulary: &Vocabulary) -> Result<Marks, WeightsError> {
        let mut marks = Marks { by_text: BTreeMap::new(), lengths: BTreeMap::new() };
        for (id, written) in vocabulary.marks() {
            if let Some(other) = marks.by_text.insert(written.into(), id) {
                let place = format!("token {id}, `{}`", shown(written));
                return Err(WeightsError::malformed(path, place, format!("is token {other}, too")));
            }
            let lengths = marks.lengths.entry(written.as_bytes()[0]).or_default();
            lengths.push(written.len());
        }
        for lengths in marks.lengths.values_mut() {
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            lengths.dedup();
        }
        Ok(marks)
    }

    /// Cuts a text at its marks. Where several begin, the longest counts.
    fn split<'a>(&self, text: &'a str) -> Vec<TextOrMark<'a>> {
        let mut parts = Vec::new();
        let (mut from, mut at) = (0, 0);
        while at < text.len() {
            let Some((id, len)) = self.at(text, at) else {
                at += 1;
                continue;
            };
            if from < at {
                parts.push(TextOrMark::Text(&text[from..at]));
            }
            parts.push(TextOrMark::Mark(id));
            at += len;
            from = at;
        }
        if from < text.len() {
            parts.push(TextOrMark::Text(&text[from..]));
        }
        parts
    }

    fn at(&self, text: &str, at: usize) -> Option<(u32, usize)> {
        let lengths = self.lengths.get(&text.as_bytes()[at])?;
        lengths.iter().find_map(|&len| {
            let mark = text.get(at..at + len)?;
            self.by_text.get(mark).map(|&id| (id, len))
        })
    }
}
