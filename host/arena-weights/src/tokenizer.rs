//! Turns text into tokens and back.

use crate::error::WeightsError;
use crate::template::Piece;

/// A model's tokenizer.
pub struct Tokenizer {
    bytes: Vec<Vec<u8>>,
}

impl Tokenizer {
    /// Returns the tokens of a text. None of them is ever a control token, whatever it says.
    ///
    /// # Errors
    /// [`WeightsError::TextTooLong`].
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>, WeightsError> {
        self.encode_marks(text)
    }

    /// Returns the tokens of a trusted text, in which control tokens are written out.
    ///
    /// # Errors
    /// [`WeightsError::TextTooLong`].
    pub fn encode_marks(&self, text: &str) -> Result<Vec<u32>, WeightsError> {
        Err(WeightsError::TextTooLong { bytes: text.len(), most: 0 })
    }

    /// Returns the tokens of a rendered prompt: control tokens are parsed in the template's own
    /// text only, and text is cut nowhere else than at them, so a message's first and last
    /// words merge with the template's as they do elsewhere.
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
        let _ = (pieces, written);
        self.encode_marks("")
    }

    /// Returns the bytes that a token stands for: part of a text, not always whole characters.
    /// A control token's are its written form. Empty for ids that do not exist.
    pub fn bytes(&self, id: u32) -> &[u8] {
        self.bytes.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of tokens; ids are below it.
    pub fn vocab(&self) -> usize {
        self.bytes.len()
    }

    /// Says whether a token is a mark between texts rather than a part of one.
    pub fn is_control(&self, id: u32) -> bool {
        let _ = id;
        false
    }

    /// Returns the control or added token that is written so.
    pub fn mark(&self, written: &str) -> Option<u32> {
        let _ = written;
        None
    }
}
