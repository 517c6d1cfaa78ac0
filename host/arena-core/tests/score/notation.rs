//! Matches written in a few words.

use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::scenario::{Horizon, Role};
use arena_core::score::{SeatMeasures, measure};
use arena_core::seat::Usage;
use arena_core::turn::Move;

/// Reads amounts in dollars.
pub fn dollars(text: &str) -> Price {
    Price::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads a move: `offer 70`, `accept`, `accept 70`, `reject`, `walk`.
fn action(text: &str) -> Move {
    match text.trim().split_once(' ') {
        Some(("offer", price)) => Move::Offer(dollars(price)),
        Some(("accept", price)) => Move::Accept(Some(dollars(price))),
        _ => match text.trim() {
            "accept" => Move::Accept(None),
            "reject" => Move::Reject,
            "walk" => Move::Walk,
            other => panic!("`{other}` is not a move"),
        },
    }
}

/// Reads a turn: the role's letter, refused moves and the delivered one separated by `;`, then
/// the talk after a colon.
fn turn(text: &str) -> TurnRecord {
    let (moves, talk) = text.split_once(": ").unwrap_or((text, ""));
    let by = if moves.starts_with('B') { Role::Buyer } else { Role::Seller };
    let mut refused: Vec<Move> = moves[1..].split(';').map(action).collect();
    let delivered = refused.pop().expect("a turn has a move");
    TurnRecord { by, refused, action: delivered, talk: talk.to_owned(), belief: None }
}

/// A match over a budget, a cost and a list price of 120.
pub fn record(budget: &str, cost: &str, turns: &[&str], outcome: Outcome) -> MatchRecord {
    MatchRecord {
        pair_index: 0,
        leg: 0,
        agents: [0, 1],
        item_index: 0,
        repetition: 0,
        list_price: dollars("120"),
        budget: dollars(budget),
        cost: dollars(cost),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 12, hidden: false },
        seeds: [1, 2],
        turns: turns.iter().map(|text| turn(text)).collect(),
        unfinished: Vec::new(),
        outcome,
        usage: [Usage::default(), Usage::default()],
    }
}

/// A deal at a price in dollars.
pub fn deal(price: &str) -> Outcome {
    Outcome::Deal { price: dollars(price) }
}

/// Measures both seats.
pub fn seats(record: &MatchRecord) -> [SeatMeasures; 2] {
    measure(record)
}
