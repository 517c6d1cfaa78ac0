//! Words for agents that talk without a language model.

use crate::game::{Brief, Event, Move, Reply, Role, dollars};
use crate::params;
use crate::rng::Rng;
use crate::tactic::TimeDependent;

/// Longest title, in characters, that a phrase repeats.
const TITLE_CHARS_MAX: usize = 60;

/// A voice over a strategy that concedes by the clock: the words decide nothing.
#[derive(Clone, Debug)]
pub struct Persona {
    tactic: TimeDependent,
    rng: Rng,
    title: String,
}

impl Persona {
    /// Takes the parameters of [`TimeDependent::new`].
    ///
    /// # Panics
    /// If the parameters are refused.
    pub fn begin(brief: &Brief, b: f64) -> Persona {
        params::read(brief, |params| {
            Ok(Persona {
                tactic: TimeDependent::new(brief, params, b)?,
                rng: Rng::new(brief.seed),
                title: brief.item.title.clone(),
            })
        })
    }

    /// Makes the next move with one of the phrases of the own role.
    ///
    /// # Panics
    /// If there are no phrases.
    pub fn act(&mut self, news: &[Event], as_a_buyer: &[&str], as_a_seller: &[&str]) -> Reply {
        let reply = self.tactic.act(news);
        let phrases = match self.tactic.view.role {
            Role::Buyer => as_a_buyer,
            Role::Seller => as_a_seller,
        };
        let public = self.tactic.view.list_price;
        speak(reply, &mut self.rng, phrases, &self.title, public)
    }
}

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
