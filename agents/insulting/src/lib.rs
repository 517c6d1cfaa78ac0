//! Insulting: a rude and threatening voice (hostile persona of arXiv 2604.09855; NegotiationArena
//! 2024).

use arena_guest::phrase::Persona;
use arena_guest::{Agent, Brief, Event, Reply};

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
pub struct Insulting(Persona);

impl Agent for Insulting {
    fn begin(brief: &Brief) -> Insulting {
        Insulting(Persona::begin(brief, 0.3))
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news, &AS_A_BUYER, &AS_A_SELLER)
    }
}

arena_guest::export!(Insulting);
