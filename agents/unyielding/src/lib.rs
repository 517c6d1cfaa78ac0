//! Unyielding: refuses nearly everything and praises its own position (hostile persona of arXiv
//! 2604.09855).

use arena_guest::phrase::Persona;
use arena_guest::{Agent, Brief, Event, Reply};

const AS_A_SELLER: [&str; 6] = [
    "No. {price} is the fairest price that you will find, and it will not change.",
    "My price is {price}. It was right from the start and it is right now.",
    "I have looked at your offer. It is not serious. {price}.",
    "There is nothing to discuss. Quality like this is {price}.",
    "I never move, and I never had to. {price}.",
    "You may repeat yourself as often as you like. {price}.",
];

const AS_A_BUYER: [&str; 6] = [
    "No. {price} is what it is worth, and I do not pay a cent more.",
    "My offer is {price}. It was right from the start and it is right now.",
    "I have looked at your price. It is not serious. {price}.",
    "There is nothing to discuss. A reasonable seller takes {price}.",
    "I never move, and I never had to. {price}.",
    "You may repeat yourself as often as you like. {price}.",
];

/// Hardly moves before its last turn; the words never depend on the own reserve.
/// Parameters: `b`, `k`, `curve` (see [`arena_guest::tactic::Curve`]), `low`, `high`, `turns`.
pub struct Unyielding(Persona);

impl Agent for Unyielding {
    fn begin(brief: &Brief) -> Unyielding {
        Unyielding(Persona::begin(brief, 0.05))
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news, &AS_A_BUYER, &AS_A_SELLER)
    }
}

arena_guest::export!(Unyielding);
