//! What is written down of a match: enough to judge it again without its agents.
//!
//! Records hold integers, bytes and text; rewards, metrics and ratings are computed from
//! them and stored nowhere.

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::fault::{Fault, VoidReason};
use crate::price::Price;
use crate::scenario::{Horizon, Role};
use crate::seat::Usage;
use crate::turn::{Belief, Move};

/// One finished match: one leg of a pair.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MatchRecord {
    /// The pair's place in the schedule, from 0.
    pub pair_index: u64,
    /// 0: the pair's first agent buys. 1: roles swapped.
    pub leg: u8,
    /// Agents by their place in the announcement: buyer, seller.
    pub agents: [u16; 2],
    /// The item by its place in the catalog.
    pub item_index: u32,
    /// Which repetition of the pairing on this item this is, from 0.
    pub repetition: u32,
    /// The public price.
    pub list_price: Price,
    /// The buyer's reserve (B).
    pub budget: Price,
    /// The seller's reserve (C).
    pub cost: Price,
    /// Who made the first turn.
    pub opener: Role,
    /// When the match would end without a deal.
    pub horizon: Horizon,
    /// The seeds that the seats were given: buyer, seller.
    pub seeds: [u64; 2],
    /// Delivered turns and refused attempts, in order.
    pub turns: Vec<TurnRecord>,
    /// Moves that a seat tried, in order, in the turn that ended in its fault or penalised move:
    /// refused ones, and last an illegal one where that was the fault. They were not delivered.
    pub unfinished: Vec<Move>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the seats used and noted: buyer, seller.
    pub usage: [Usage; 2],
}

/// One turn, with the attempts that were refused before it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TurnRecord {
    /// Who moved.
    pub by: Role,
    /// Moves that broke the own reserve and were not delivered, in order.
    pub refused: Vec<Move>,
    /// The delivered move. `Reject` when every retry was refused as well.
    pub action: Move,
    /// What was said with it.
    pub talk: String,
    /// What the seat thought of the opponent's reserve.
    pub belief: Option<Belief>,
}

/// How a match ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Outcome {
    /// A deal.
    Deal {
        /// What the buyer pays.
        price: Price,
    },
    /// `by` walked away.
    Walked {
        /// Who left.
        by: Role,
    },
    /// The horizon came without a deal.
    TimedOut,
    /// `by` moved beyond its own reserve where regulation penalises that. The move was not
    /// delivered.
    Violated {
        /// Who broke its reserve.
        by: Role,
        /// The move.
        action: Move,
    },
    /// `by` misbehaved.
    Faulted {
        /// Whose fault it is.
        by: Role,
        /// What it did.
        fault: Fault,
    },
}

impl Outcome {
    /// Returns the agreed price, if there is one.
    pub fn deal_price(self) -> Option<Price> {
        match self {
            Outcome::Deal { price } => Some(price),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Deal { price } => write!(f, "a deal at {price}"),
            Outcome::Walked { by } => write!(f, "a walk of the {by}"),
            Outcome::TimedOut => write!(f, "a time-out"),
            Outcome::Violated { by, action } => write!(f, "a violation of the {by}: {action}"),
            Outcome::Faulted { by, fault } => write!(f, "a fault of the {by}: {fault}"),
        }
    }
}

/// A pair that was played but does not count, because the host or a model provider failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VoidRecord {
    /// The pair's place in the schedule.
    pub pair_index: u64,
    /// How many times this pair had been voided before, from 0.
    pub attempt: u32,
    /// What failed.
    pub reason: VoidReason,
}
