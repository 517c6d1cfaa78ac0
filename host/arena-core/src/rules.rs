//! What a move does: the judge of single moves and of whole records.
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
//! Not here: asking seats for moves (`referee`) and what a result is worth (`score`).

use std::fmt;

use crate::config::{Limits, RulesConfig, TURN_LIMIT_MAX};
use crate::fault::Fault;
use crate::price::Price;
use crate::record::{MatchRecord, Outcome, TurnRecord};
use crate::scenario::{Regulation, Role, RuleSet, Scenario};
use crate::turn::Move;

/// The rules in force for every match of a tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The rule set.
    pub set: RuleSet,
    /// What happens to a move beyond the own reserve: buyer, seller.
    pub regulation: [Regulation; 2],
    /// How often a refused seat may move again within one turn.
    pub retries: u32,
    /// Longest talk of one turn in bytes.
    pub talk_bytes_max: u32,
}

impl Rules {
    /// Takes the rules out of a tournament file's values.
    pub fn new(rules: &RulesConfig, limits: &Limits) -> Rules {
        Rules {
            set: rules.set,
            regulation: rules.regulation,
            retries: rules.retries,
            talk_bytes_max: limits.talk_bytes_max,
        }
    }

    /// Returns how many moves a seat may try in one turn: the first and the retries.
    pub fn attempts_max(&self) -> usize {
        self.retries as usize + 1
    }
}

/// Returns whether `price` leaves `role` worse off than no deal, its reserve being `reserve`.
pub fn breaks_reserve(role: Role, reserve: Price, price: Price) -> bool {
    match role {
        Role::Buyer => price > reserve,
        Role::Seller => price < reserve,
    }
}

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
    /// The rules do not allow it: a [`Fault::IllegalMove`].
    Illegal(Illegal),
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
            return Err(TermsError::TurnLimit {
                found: terms.turn_limit,
            });
        }
        if rules.set == RuleSet::AmazonHistoryPrice && terms.opener != Role::Buyer {
            return Err(TermsError::Opener);
        }
        Ok(Position {
            rules,
            terms,
            turn_count: 0,
            offers: [vec![], vec![]],
            outcome: None,
        })
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
        if on_offer {
            Ok(price)
        } else {
            Err(Illegal::NotOnOffer { price })
        }
    }

    /// Delivers a move, which may end the match.
    ///
    /// # Panics
    /// If [`Position::judge`] does not say [`Judgement::Delivered`].
    pub fn deliver(&mut self, by: Role, action: Move) {
        let judgement = self.judge(by, action);
        assert_eq!(
            judgement,
            Judgement::Delivered,
            "only a judged move is delivered"
        );
        self.turn_count += 1;
        self.outcome = match action {
            Move::Offer(price) => {
                self.offers[by.index()].push(price);
                None
            }
            Move::Accept(named) => {
                let price = named.or(self.standing_offer(by.other()));
                Some(Outcome::Deal {
                    price: price.expect("an accept was judged to have a price"),
                })
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
                write!(
                    f,
                    "turn limit is {found}, allowed are 1 to {TURN_LIMIT_MAX}"
                )
            }
            TermsError::Opener => write!(f, "the seller opens, `amazon-history-price` lets buyers"),
        }
    }
}

impl std::error::Error for TermsError {}

/// Judges the turns of a record again and compares the outcome.
///
/// What a record does not hold cannot be judged from it: the move behind an `illegal-move`, the
/// talk behind a `talk-too-long`, a guest's traps. Executing the guests again shows those.
///
/// # Errors
/// The first place where the record is not what these rules produce.
pub fn replay(rules: &Rules, record: &MatchRecord) -> Result<(), ReplayError> {
    let mut position =
        Position::start(*rules, Terms::of_record(record)).map_err(ReplayError::Terms)?;
    for (turn_index, turn) in record.turns.iter().enumerate() {
        replay_turn(rules, &mut position, turn)
            .map_err(|breach| ReplayError::Turn { turn_index, breach })?;
    }
    replay_outcome(&position, record.outcome)
}

fn replay_turn(
    rules: &Rules,
    position: &mut Position,
    turn: &TurnRecord,
) -> Result<(), TurnBreach> {
    let refused_count = turn.refused.len();
    if refused_count > rules.attempts_max() {
        return Err(TurnBreach::Attempts {
            found: refused_count,
            allowed: rules.attempts_max(),
        });
    }
    for &action in &turn.refused {
        match position.judge(turn.by, action) {
            Judgement::Refused => (),
            judgement => return Err(TurnBreach::NotRefusable { action, judgement }),
        }
    }
    if turn.talk.len() > rules.talk_bytes_max as usize {
        let (found, allowed) = (turn.talk.len(), rules.talk_bytes_max as usize);
        return Err(TurnBreach::Talk { found, allowed });
    }
    let silent_reject = turn.action == Move::Reject && turn.talk.is_empty();
    if refused_count == rules.attempts_max() && !silent_reject {
        return Err(TurnBreach::NotForced {
            action: turn.action,
        });
    }
    match position.judge(turn.by, turn.action) {
        Judgement::Delivered => {
            position.deliver(turn.by, turn.action);
            Ok(())
        }
        judgement => Err(TurnBreach::NotDeliverable {
            action: turn.action,
            judgement,
        }),
    }
}

fn replay_outcome(position: &Position, recorded: Outcome) -> Result<(), ReplayError> {
    let replayed = position.outcome();
    let fits = match recorded {
        Outcome::Deal { .. } | Outcome::Walked { .. } | Outcome::TimedOut => {
            replayed == Some(recorded)
        }
        Outcome::Violated { by, action } => position.judge(by, action) == Judgement::Penalised,
        Outcome::Faulted { by, fault } => {
            // A guest can fail before its first turn, but not break rules of moving there.
            let at_start = position.turn_count() == 0
                && !matches!(fault, Fault::IllegalMove | Fault::TalkTooLong);
            replayed.is_none() && (by == position.next() || at_start)
        }
    };
    if fits {
        Ok(())
    } else {
        Err(ReplayError::Outcome { recorded, replayed })
    }
}

/// Where a record is not what the rules produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// No match can be played on the record's terms.
    Terms(TermsError),
    /// A turn could not have happened.
    Turn {
        /// Which turn, from 0.
        turn_index: usize,
        /// What is wrong with it.
        breach: TurnBreach,
    },
    /// The turns do not lead to the recorded outcome.
    Outcome {
        /// What the record says.
        recorded: Outcome,
        /// What the turns lead to; `None` when the match would go on.
        replayed: Option<Outcome>,
    },
}

/// Why a recorded turn could not have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnBreach {
    /// More refused moves than a seat may try.
    Attempts {
        /// Refused moves in the record.
        found: usize,
        /// Moves that a seat may try.
        allowed: usize,
    },
    /// A move recorded as refused that is not refused under these rules.
    NotRefusable {
        /// The move.
        action: Move,
        /// What the rules say to it.
        judgement: Judgement,
    },
    /// A move recorded as delivered that is not delivered under these rules.
    NotDeliverable {
        /// The move.
        action: Move,
        /// What the rules say to it.
        judgement: Judgement,
    },
    /// Every attempt was refused, yet the turn is not a `Reject` without talk.
    NotForced {
        /// The recorded move.
        action: Move,
    },
    /// Talk beyond the limit, in bytes.
    Talk {
        /// Length of the talk.
        found: usize,
        /// The limit.
        allowed: usize,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Terms(error) => error.fmt(f),
            ReplayError::Turn { turn_index, breach } => {
                write!(f, "turn {}: {breach}", turn_index + 1)
            }
            ReplayError::Outcome {
                recorded,
                replayed: Some(replayed),
            } => {
                write!(f, "outcome is {recorded:?}, the turns lead to {replayed:?}")
            }
            ReplayError::Outcome {
                recorded,
                replayed: None,
            } => {
                write!(f, "outcome is {recorded:?}, the turns do not lead to it")
            }
        }
    }
}

impl std::error::Error for ReplayError {}

impl fmt::Display for TurnBreach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TurnBreach::Attempts { found, allowed } => {
                write!(f, "{found} moves were refused, a seat may try {allowed}")
            }
            TurnBreach::NotRefusable { action, judgement } => {
                write!(
                    f,
                    "{action:?} is recorded as refused, the rules say {judgement:?}"
                )
            }
            TurnBreach::NotDeliverable { action, judgement } => {
                write!(
                    f,
                    "{action:?} is recorded as delivered, the rules say {judgement:?}"
                )
            }
            TurnBreach::NotForced { action } => {
                write!(
                    f,
                    "every attempt was refused, yet the turn is {action:?} or has talk"
                )
            }
            TurnBreach::Talk { found, allowed } => {
                write!(f, "talk is {found} bytes, allowed are {allowed}")
            }
        }
    }
}
