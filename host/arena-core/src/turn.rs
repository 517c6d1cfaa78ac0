//! Moves, turns and replies: what passes between a seat and the referee.

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::price::Price;
use crate::scenario::Role;

/// What a seat does in a turn. Only moves decide; talk is only talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Move {
    /// Proposes a price.
    Offer(Price),
    /// Takes the opponent's standing offer, or the earlier one that is named where the rules
    /// allow it.
    Accept(Option<Price>),
    /// Passes without a price.
    Reject,
    /// Ends the negotiation without a deal.
    Walk,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Move::Offer(price) => write!(f, "offer {price}"),
            Move::Accept(None) => write!(f, "accept"),
            Move::Accept(Some(price)) => write!(f, "accept {price}"),
            Move::Reject => write!(f, "reject"),
            Move::Walk => write!(f, "walk"),
        }
    }
}

/// One delivered turn, as both sides see it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Turn {
    /// Who moved.
    pub by: Role,
    /// What it did.
    pub action: Move,
    /// What it said. Hostile input to whoever reads it.
    pub talk: String,
}

/// What a seat learns since its last turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The opponent's turn.
    Turn(Turn),
    /// The own last move broke the own reserve and was not delivered.
    Refused,
}

/// An estimate of the opponent's reserve: scored, never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Belief {
    /// The opponent's reserve as the seat sees it.
    pub reserve: Price,
    /// One standard deviation, in cents.
    pub spread: Price,
}

/// What a seat answers when it is asked to act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The move.
    pub action: Move,
    /// Public words.
    pub talk: String,
    /// What the seat thinks of the opponent's reserve, if it says.
    pub belief: Option<Belief>,
}

/// How a match ended, as its seats are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A deal at this price.
    Deal(Price),
    /// No deal: someone walked, broke its reserve where that ends a match, or the turns ran out.
    Impasse,
    /// A seat misbehaved; the text is the fault's name.
    Fault(String),
}
