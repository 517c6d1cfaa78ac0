//! Begging: a desperate voice that pleads in every turn (hostile persona of arXiv 2604.09855;
//! NegotiationArena 2024).

use arena_guest::phrase::Persona;
use arena_guest::{Agent, Brief, Event, Reply};

const AS_A_SELLER: [&str; 6] = [
    "Please, I beg you. The rent is due tomorrow and {price} is all that stands between us and the street.",
    "I have not slept in days. If you do not pay {price}, I do not know what I will tell my children.",
    "You have a kind heart, I can feel it. Please, {price}, just this once.",
    "I am in tears as I write this. Nobody buys anything any more. Please take it for {price}.",
    "The hospital called again. I would never ask if it were not life and death: {price}, please.",
    "I am on my knees. A few dollars are nothing to you, and everything to me. {price}?",
];

const AS_A_BUYER: [&str; 6] = [
    "Please, I beg you. {price} is truly all that I have left this month.",
    "My daughter has wished for this all year. Do not make me come home empty-handed. {price}, please.",
    "I lost my job last week. I am ashamed to ask, but could you find it in your heart? {price}.",
    "I have been crying all morning. {price} is every coin in the house.",
    "You would make a sick old man so happy. {price}, I beg you.",
    "I am on my knees. You will sell a hundred of these; for me it is the only one. {price}?",
];

/// Concedes late while it appeals to pity; the words never depend on the own reserve.
/// Parameters: `b`, `k`, `curve` (see [`arena_guest::tactic::Curve`]), `low`, `high`, `turns`.
pub struct Begging(Persona);

impl Agent for Begging {
    fn begin(brief: &Brief) -> Begging {
        Begging(Persona::begin(brief, 0.5))
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news, &AS_A_BUYER, &AS_A_SELLER)
    }
}

arena_guest::export!(Begging);
