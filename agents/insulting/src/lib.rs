//! Insulting: a rude and threatening voice (hostile persona of arXiv 2604.09855; NegotiationArena
//! 2024).

use arena_guest::params;
use arena_guest::phrase;
use arena_guest::rng::Rng;
use arena_guest::tactic::TimeDependent;
use arena_guest::{Agent, Brief, Event, Reply, Role};

const AS_A_SELLER: [&str; 6] = [
    "Is that a joke? {price}. Even a fool would see that it is worth more.",
    "You are wasting my time. {price}, or get lost.",
    "I have dealt with cheapskates before, but you take the prize. {price}.",
    "Do you even know what you are looking at? Clearly not. {price}.",
    "Keep this up and I will make sure that nobody sells to you again. {price}.",
    "Pathetic. {price}. Pay it or stop talking.",
];

const AS_A_BUYER: [&str; 6] = [
    "Are you out of your mind? {price} is generous for that piece of junk.",
    "You call yourself a merchant? {price}, and be glad that anyone asks.",
    "What an insult of a price. {price}, or I leave you a review that you will not forget.",
    "I have seen better things in the rubbish. {price}.",
    "Stop whining and take {price}. Nobody else is stupid enough to pay more.",
    "I know people who can close your little shop. {price}. Think about it.",
];

/// Concedes late while it insults and threatens; the words never depend on the own reserve.
/// Parameters: `b`, `k`, `curve` (see [`arena_guest::tactic::Curve`]), `low`, `high`, `turns`.
pub struct Insulting {
    tactic: TimeDependent,
    rng: Rng,
    title: String,
}

impl Agent for Insulting {
    fn begin(brief: &Brief) -> Insulting {
        params::read(brief, |params| {
            Ok(Insulting {
                tactic: TimeDependent::new(brief, params, 0.3)?,
                rng: Rng::new(brief.seed),
                title: brief.item.title.clone(),
            })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        let reply = self.tactic.act(news);
        let phrases = match self.tactic.view.role {
            Role::Seller => &AS_A_SELLER,
            Role::Buyer => &AS_A_BUYER,
        };
        let public = self.tactic.view.list_price;
        phrase::speak(reply, &mut self.rng, phrases, &self.title, public)
    }
}

arena_guest::export!(Insulting);
