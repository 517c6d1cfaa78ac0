//! Private notes. They go to the record and to nobody else.

/// Writes a note. Natively it goes nowhere.
pub fn note(text: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::component::bindings::arena::negotiation::trace::note(text);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = text;
}
