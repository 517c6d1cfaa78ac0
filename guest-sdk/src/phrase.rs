//! Words for agents that talk without a language model.

use crate::game::dollars;
use crate::rng::Rng;

/// Longest title, in characters, that a phrase repeats.
const TITLE_CHARS_MAX: usize = 60;

/// Returns one of the phrases, drawn evenly, with `{price}` and `{item}` filled in.
///
/// # Panics
/// If there are no phrases.
pub fn draw(rng: &mut Rng, phrases: &[&str], cents: u32, title: &str) -> String {
    fill(
        phrases[rng.below(phrases.len() as u64) as usize],
        cents,
        title,
    )
}

/// Returns a phrase with `{price}` and `{item}` filled in.
pub fn fill(phrase: &str, cents: u32, title: &str) -> String {
    let item: String = title.chars().take(TITLE_CHARS_MAX).collect();
    phrase
        .replace("{price}", &dollars(cents))
        .replace("{item}", &item)
}
