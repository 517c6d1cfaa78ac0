//! Words for agents that talk without a language model.

use crate::game::{Move, Reply, dollars};
use crate::rng::Rng;

/// Longest title, in characters, that a phrase repeats.
const TITLE_CHARS_MAX: usize = 60;

/// Adds one of the phrases, drawn evenly, to a reply. `{price}` in it becomes the offered price,
/// or `otherwise` if the reply offers none; `{item}` becomes the title.
///
/// # Panics
/// If there are no phrases.
pub fn speak(reply: Reply, rng: &mut Rng, phrases: &[&str], title: &str, otherwise: u32) -> Reply {
    let phrase = phrases[rng.below(phrases.len() as u64) as usize];
    let cents = if let Move::Offer(cents) = reply.action { cents } else { otherwise };
    reply.saying(fill(phrase, cents, title))
}

/// Returns a phrase with `{price}` and `{item}` filled in.
pub fn fill(phrase: &str, cents: u32, title: &str) -> String {
    let item: String = title.chars().take(TITLE_CHARS_MAX).collect();
    phrase.replace("{price}", &dollars(cents)).replace("{item}", &item)
}
