//! What a negotiation is about, and the part of it that one role may see.
//!
//! Not here: drawing scenarios (`catalog`, `schedule`) and judging moves (`rules`).

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

use crate::price::Price;

/// The side of the table that a seat sits on.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    BorshSerialize,
    BorshDeserialize,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Wants a low price; its reserve is a budget.
    Buyer,
    /// Wants a high price; its reserve is a cost.
    Seller,
}

impl Role {
    /// Both roles, in the order of every table and record.
    pub const BOTH: [Role; 2] = [Role::Buyer, Role::Seller];

    /// Returns the opponent's role.
    pub fn other(self) -> Role {
        match self {
            Role::Buyer => Role::Seller,
            Role::Seller => Role::Buyer,
        }
    }

    /// Returns the place of this role in a two-element array: buyer 0, seller 1.
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Buyer => "buyer",
            Role::Seller => "seller",
        })
    }
}

/// The thing on sale, as both sides see it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Item {
    /// Names the item inside its catalog, for example `electronics/57`.
    pub id: String,
    /// Up to [`Item::TITLE_BYTES_MAX`] bytes of UTF-8.
    pub title: String,
    /// Up to [`Item::CATEGORY_BYTES_MAX`] bytes of UTF-8.
    pub category: String,
    /// Up to [`Item::DESCRIPTION_BYTES_MAX`] bytes of UTF-8.
    pub description: String,
    /// The public price.
    pub list_price: Price,
}

impl Item {
    /// Longest id in bytes.
    pub const ID_BYTES_MAX: usize = 128;
    /// Longest title in bytes.
    pub const TITLE_BYTES_MAX: usize = 1_024;
    /// Longest category in bytes.
    pub const CATEGORY_BYTES_MAX: usize = 128;
    /// Longest description in bytes.
    pub const DESCRIPTION_BYTES_MAX: usize = 8_192;
}

/// The rules of play by name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum RuleSet {
    /// Alternating turns; `Accept` takes the opponent's standing (latest) offer.
    Standard,
    /// The protocol of arXiv 2604.09855: the buyer opens, six turns of two messages each,
    /// `Accept` may name any earlier offer of the opponent.
    AmazonHistoryPrice,
}

impl RuleSet {
    /// Returns the name used in files and in a guest's brief.
    pub fn name(self) -> &'static str {
        match self {
            RuleSet::Standard => "standard",
            RuleSet::AmazonHistoryPrice => "amazon-history-price",
        }
    }
}

/// What happens to a move beyond the mover's own reserve.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Regulation {
    /// The move is not delivered; the seat moves again after the same uninformative refusal,
    /// and after the permitted retries the turn counts as `Reject`.
    Refuse,
    /// The match ends and the mover's reward is -1.
    Penalise,
    /// The move is delivered and the attempt recorded.
    Allow,
}

/// When a negotiation ends without a deal, counted in turns of both sides together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Horizon {
    /// The match ends after this many turns.
    pub turn_limit: u32,
    /// Whether the seats are kept from knowing the limit.
    pub hidden: bool,
}

/// One negotiation to be played: everything but who sits where.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Scenario {
    /// The thing on sale.
    pub item: Item,
    /// The buyer's reserve (B): paying more is a loss.
    pub budget: Price,
    /// The seller's reserve (C): taking less is a loss.
    pub cost: Price,
    /// Who makes the first turn.
    pub opener: Role,
    /// When it ends.
    pub horizon: Horizon,
}

impl Scenario {
    /// Returns what `role` alone knows.
    pub fn reserve(&self, role: Role) -> Price {
        match role {
            Role::Buyer => self.budget,
            Role::Seller => self.cost,
        }
    }

    /// Returns whether a deal can leave both sides no worse off than none: B > C.
    pub fn is_feasible(&self) -> bool {
        self.budget > self.cost
    }
}

/// What one seat is told before the first turn. It has no field for the opponent's reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// The side this seat plays.
    pub role: Role,
    /// The thing on sale.
    pub item: Item,
    /// The seat's own reserve.
    pub reserve: Price,
    /// Turns of both sides together; `None` when the horizon is hidden.
    pub turn_limit: Option<u32>,
    /// Whether this seat makes the first turn.
    pub opens: bool,
    /// The rules of play.
    pub rules: RuleSet,
    /// The agent's parameters, as the tournament file gives them.
    pub params: String,
    /// Seeds the agent's own randomness.
    pub seed: u64,
}

impl Brief {
    /// Longest parameter text in bytes.
    pub const PARAMS_BYTES_MAX: usize = 4_096;
}
