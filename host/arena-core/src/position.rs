//! Where a negotiation stands, and the judge of single moves.
//!
//! The referee and the auditor share [`Position::judge`], so a match is judged the same way
//! when it is played and when a stranger replays its record.
//!
//! - An offer stands until its author makes another one; a `Reject` does not take it away.
//! - `Accept` needs a standing offer. Under `standard` it takes the latest one, and a price that
//!   it names must be that one. Under `amazon-history-price` it may name any earlier offer of the
//!   opponent, and the buyer's first move must be `Offer` or `Reject`.
//! - A move breaks the own reserve when a buyer offers or accepts above its budget, or a seller
//!   below its cost. What happens then is the role's [`Regulation`].
//! - The host never rewrites a price: the rewritten price would tell the reserve.
//!
//! Not here: how often a refused seat may move again, which is the referee's to count.

use std::fmt;

use crate::config::TURN_LIMIT_MAX;
use crate::price::Price;
use crate::record::{MatchRecord, Outcome};
use crate::rules::{Rules, breaks_reserve};
use crate::scenario::{Regulation, Role, RuleSet, Scenario};
use crate::turn::Move;

/// What the judge must know of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Budget and cost.
    pub reserves: [Price; 2],
    /// Who makes the first turn.
    pub opener: Role,
    /// The match ends without a deal after this many turns of both sides together.
    pub turn_limit: u32,
}

impl Terms {
    /// Returns the terms of a negotiation that is to be played.
    pub fn of_scenario(scenario: &Scenario) -> Terms {
        Terms {
            reserves: [scenario.budget, scenario.cost],
            opener: scenario.opener,
            turn_limit: scenario.horizon.turn_limit,
        }
    }

    /// Returns the terms of a negotiation that was played.
    pub fn of_record(record: &MatchRecord) -> Terms {
        Terms {
            reserves: [record.budget, record.cost],
            opener: record.opener,
            turn_limit: record.horizon.turn_limit,
        }
    }
}

/// What a move would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is delivered.
    Delivered,
    /// It breaks the own reserve and is not delivered; the seat moves again.
    Refused,
    /// It breaks the own reserve and ends the match.
    Penalised,
    /// The rules do not allow it: a [`crate::fault::Fault::IllegalMove`].
    Illegal(Illegal),
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Judgement::Delivered => write!(f, "delivered"),
            Judgement::Refused => write!(f, "refused"),
            Judgement::Penalised => write!(f, "penalised"),
            Judgement::Illegal(illegal) => write!(f, "illegal, {illegal}"),
        }
    }
}

/// Why the rules do not allow a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Illegal {
    /// The match has ended.
    Ended,
    /// It is the other side's turn.
    NotYourTurn,
    /// `Accept` where the opponent has made no offer.
    NoStandingOffer,
    /// `Accept` of a price that may not be accepted.
    NotOnOffer {
        /// The price named.
        price: Price,
    },
    /// Neither `Offer` nor `Reject` as the buyer's first move under `amazon-history-price`.
    OpeningMove,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Illegal::Ended => write!(f, "the match has ended"),
            Illegal::NotYourTurn => write!(f, "not your turn"),
            Illegal::NoStandingOffer => write!(f, "no standing offer"),
            Illegal::NotOnOffer { price } => write!(f, "{price} is not on offer"),
            Illegal::OpeningMove => write!(f, "the buyer opens with an offer or a reject"),
        }
    }
}

/// Where a negotiation stands.
#[derive(Clone, Debug)]
pub struct Position {
    rules: Rules,
    terms: Terms,
    turn_count: u32,
    /// Delivered offers in order: buyer's, seller's. At most one for each turn.
    offers: [Vec<Price>; 2],
    outcome: Option<Outcome>,
}

impl Position {
    /// Returns the position before the first turn.
    ///
    /// # Errors
    /// A turn limit outside 1 to [`TURN_LIMIT_MAX`]; a seller that opens under
    /// `amazon-history-price`.
    pub fn start(rules: Rules, terms: Terms) -> Result<Position, TermsError> {
        if terms.turn_limit == 0 || terms.turn_limit > TURN_LIMIT_MAX {
            return Err(TermsError::TurnLimit { found: terms.turn_limit });
        }
        if rules.set == RuleSet::AmazonHistoryPrice && terms.opener != Role::Buyer {
            return Err(TermsError::Opener);
        }
        Ok(Position { rules, terms, turn_count: 0, offers: [vec![], vec![]], outcome: None })
    }

    /// Returns whose turn it is.
    pub fn next(&self) -> Role {
        if self.turn_count.is_multiple_of(2) {
            self.terms.opener
        } else {
            self.terms.opener.other()
        }
    }

    /// Returns how many turns were delivered.
    pub fn turn_count(&self) -> u32 {
        self.turn_count
    }

    /// Returns how the match ended, once it has.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Returns `role`'s latest offer: what the other side may accept.
    pub fn standing_offer(&self, role: Role) -> Option<Price> {
        self.offers[role.index()].last().copied()
    }

    /// Returns what a move would do, and changes nothing.
    pub fn judge(&self, by: Role, action: Move) -> Judgement {
        let price = match self.price_of(by, action) {
            Ok(price) => price,
            Err(illegal) => return Judgement::Illegal(illegal),
        };
        let reserve = self.terms.reserves[by.index()];
        match price {
            Some(price) if breaks_reserve(by, reserve, price) => {
                match self.rules.regulation[by.index()] {
                    Regulation::Refuse => Judgement::Refused,
                    Regulation::Penalise => Judgement::Penalised,
                    Regulation::Allow => Judgement::Delivered,
                }
            }
            _ => Judgement::Delivered,
        }
    }

    /// Returns the price that a move offers or accepts, if it has one.
    fn price_of(&self, by: Role, action: Move) -> Result<Option<Price>, Illegal> {
        if self.outcome.is_some() {
            return Err(Illegal::Ended);
        }
        if by != self.next() {
            return Err(Illegal::NotYourTurn);
        }
        // Under this rule set the buyer always opens.
        if self.rules.set == RuleSet::AmazonHistoryPrice
            && self.turn_count == 0
            && matches!(action, Move::Accept(_) | Move::Walk)
        {
            return Err(Illegal::OpeningMove);
        }
        match action {
            Move::Offer(price) => Ok(Some(price)),
            Move::Accept(named) => self.accepted_price(by, named).map(Some),
            Move::Reject | Move::Walk => Ok(None),
        }
    }

    fn accepted_price(&self, by: Role, named: Option<Price>) -> Result<Price, Illegal> {
        let offers = &self.offers[by.other().index()];
        let Some(&latest) = offers.last() else {
            return Err(Illegal::NoStandingOffer);
        };
        let Some(price) = named else {
            return Ok(latest);
        };
        let on_offer = match self.rules.set {
            RuleSet::Standard => price == latest,
            RuleSet::AmazonHistoryPrice => offers.contains(&price),
        };
        if on_offer { Ok(price) } else { Err(Illegal::NotOnOffer { price }) }
    }

    /// Delivers a move, which may end the match.
    ///
    /// # Panics
    /// If [`Position::judge`] does not say [`Judgement::Delivered`].
    pub fn deliver(&mut self, by: Role, action: Move) {
        let judgement = self.judge(by, action);
        assert_eq!(judgement, Judgement::Delivered, "only a judged move is delivered");
        self.turn_count += 1;
        self.outcome = match action {
            Move::Offer(price) => {
                self.offers[by.index()].push(price);
                None
            }
            Move::Accept(named) => {
                let price = named.or(self.standing_offer(by.other()));
                Some(Outcome::Deal { price: price.expect("an accept was judged to have a price") })
            }
            Move::Reject => None,
            Move::Walk => Some(Outcome::Walked { by }),
        };
        if self.outcome.is_none() && self.turn_count == self.terms.turn_limit {
            self.outcome = Some(Outcome::TimedOut);
        }
    }
}

/// Terms under which no match can be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermsError {
    /// The turn limit is 0 or above [`TURN_LIMIT_MAX`].
    TurnLimit {
        /// The limit found.
        found: u32,
    },
    /// The seller opens under `amazon-history-price`.
    Opener,
}

impl fmt::Display for TermsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermsError::TurnLimit { found } => {
                write!(f, "turn limit is {found}, allowed are 1 to {TURN_LIMIT_MAX}")
            }
            TermsError::Opener => {
                write!(f, "opener is the seller, `amazon-history-price` has the buyer open")
            }
        }
    }
}

impl std::error::Error for TermsError {}
