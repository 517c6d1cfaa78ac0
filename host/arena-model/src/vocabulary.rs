//! What each token is in a reply: bytes of text, a mark without text, or the end of the turn.
//!
//! Not here: turning text into tokens (`arena_weights::tokenizer`).

use arena_weights::config::ModelConfig;
use arena_weights::tokenizer::Tokenizer;

use crate::error::EngineError;

/// The tokens of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    words: Vec<Box<[u8]>>,
    is_mark: Vec<bool>,
    ends: Vec<u32>,
    rows: usize,
}

impl Vocabulary {
    /// Returns the vocabulary of `words`, of which some are marks. `ends` end a turn, and `rows`
    /// is the width of the logits: ids from the number of words on have no meaning and are never
    /// sampled.
    ///
    /// # Errors
    /// [`EngineError::Vocabulary`] if there are more words than rows, or no end among the words.
    pub fn new(
        words: Vec<Box<[u8]>>,
        is_mark: Vec<bool>,
        ends: &[u32],
        rows: usize,
    ) -> Result<Vocabulary, EngineError> {
        assert!(words.len() == is_mark.len(), "each word is a mark or not");
        let ends: Vec<u32> =
            ends.iter().copied().filter(|&id| (id as usize) < words.len()).collect();
        if words.len() > rows || ends.is_empty() {
            return Err(EngineError::Vocabulary { words: words.len(), rows, ends: ends.len() });
        }
        Ok(Vocabulary { words, is_mark, ends, rows })
    }

    /// Returns the vocabulary of a model.
    ///
    /// # Errors
    /// As [`Vocabulary::new`].
    pub fn of(tokenizer: &Tokenizer, config: &ModelConfig) -> Result<Vocabulary, EngineError> {
        let count = u32::try_from(tokenizer.vocab()).expect("ids are u32");
        let words = (0..count).map(|id| tokenizer.bytes(id).into()).collect();
        let is_mark = (0..count).map(|id| tokenizer.is_control(id)).collect();
        Vocabulary::new(words, is_mark, &config.eos, config.vocab)
    }

    /// Returns how many tokens have a meaning; their ids are below it.
    pub fn token_count(&self) -> usize {
        self.words.len()
    }

    /// Returns how many logits a row has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns what a token adds to a reply's text: not always whole characters. Nothing for
    /// marks, and for ids without a meaning.
    pub fn text(&self, id: u32) -> &[u8] {
        let is_mark = self.is_mark.get(id as usize).copied().unwrap_or(true);
        if is_mark { &[] } else { &self.words[id as usize] }
    }

    /// Says whether a token ends the turn.
    pub fn is_end(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }

    /// Returns the tokens that end a turn, at least one.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }
}
