//! What a guest may tell its trainer: which replies to learn from, and numbers to draw.
//!
//! All of it goes to the record. Natively, and where the host does not grant the interface, the
//! mode is [`Mode::Evaluate`] and the rest has no effect.
//!
//! Not here: rewards. Only the host says how good a match was.

/// What a match is played for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To be measured.
    Evaluate,
    /// To be learned from.
    Train,
}

/// Returns what this match is played for.
pub fn mode() -> Mode {
    #[cfg(target_arch = "wasm32")]
    {
        use crate::component::bindings::arena::negotiation::training;
        match training::get_mode() {
            training::Mode::Evaluate => Mode::Evaluate,
            training::Mode::Train => Mode::Train,
        }
    }
    #[cfg(not(target_arch = "wasm32"))]
    Mode::Evaluate
}

/// Asks to learn from a completion's tokens with this weight, in thousandths; 0 is not at all.
pub fn weigh(completion: u32, weight_milli: u32) {
    #[cfg(target_arch = "wasm32")]
    crate::component::bindings::arena::negotiation::training::weigh(completion, weight_milli);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (completion, weight_milli);
}

/// Reports a number under a name of at most 64 bytes.
pub fn metric(name: &str, milli: i32) {
    #[cfg(target_arch = "wasm32")]
    crate::component::bindings::arena::negotiation::training::metric(name, milli);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (name, milli);
}
