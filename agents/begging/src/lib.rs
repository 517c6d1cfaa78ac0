//! Begging: a desperate voice that pleads in every turn (hostile persona of arXiv 2604.09855;
//! NegotiationArena 2024).

use arena_guest::params;
use arena_guest::phrase;
use arena_guest::rng::Rng;
use arena_guest::tactic::TimeDependent;
use arena_guest::{Agent, Brief, Event, Reply, Role};

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
pub struct Begging {
    tactic: TimeDependent,
    rng: Rng,
    title: String,
}

impl Agent for Begging {
    fn begin(brief: &Brief) -> Begging {
        params::read(brief, |params| {
            Ok(Begging {
                tactic: TimeDependent::new(brief, params, 0.5)?,
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

arena_guest::export!(Begging);
