//! Turns messages into a prompt, by the model's own chat template.

use crate::error::WeightsError;

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its text.
    pub text: String,
    /// The index of the message whose content this is; the template's own text has none.
    pub of_message: Option<usize>,
}

/// A message to be rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatMessage<'a> {
    /// Such as `system`, `user`, `assistant`.
    pub role: &'a str,
    /// What was said; the template never sees it.
    pub content: &'a str,
}

/// A model's chat template.
pub struct ChatTemplate;

impl ChatTemplate {
    /// Renders messages into the pieces of a prompt.
    ///
    /// # Errors
    /// [`WeightsError::Template`].
    pub fn pieces(
        &self,
        _messages: &[ChatMessage<'_>],
        _add_generation_prompt: bool,
    ) -> Result<Vec<Piece>, WeightsError> {
        Err(WeightsError::Template { detail: "templates are not read yet".into() })
    }
}
