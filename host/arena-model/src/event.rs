//! Replies as they are written, for those who watch.

use arena_llm::request::CallKey;

/// A piece of a reply, as soon as it is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenEvent<'a> {
    /// Whose reply it is.
    pub key: CallKey,
    /// What was added to its text.
    pub text: &'a str,
}

/// Is told of every piece of every reply, on the engine's thread: it must be quick, and must not
/// call the engine.
pub type Listener = Box<dyn Fn(&TokenEvent<'_>) + Send + Sync>;
