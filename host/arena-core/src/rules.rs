//! The rules in force, and the replay of a whole record under them.
//!
//! Not here: single moves (`position`), asking seats for moves (`referee`) and what a result is
//! worth (`score`).

use std::fmt;

use crate::config::{Limits, RulesConfig};
use crate::fault::Fault;
use crate::position::{Judgement, Position, Terms, TermsError};
use crate::price::Price;
use crate::record::{MatchRecord, Outcome, TurnRecord};
use crate::scenario::{Regulation, Role, RuleSet};
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

/// Judges the turns of a record again and compares the outcome.
///
/// What a record does not hold cannot be judged from it: the talk behind a `talk-too-long`, a
/// guest's traps. Executing the guests again shows those.
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
    replay_outcome(&position, record.outcome)?;
    replay_unfinished(rules, &position, record)
}

fn replay_turn(
    rules: &Rules,
    position: &mut Position,
    turn: &TurnRecord,
) -> Result<(), TurnBreach> {
    let refused_count = turn.refused.len();
    if refused_count > rules.attempts_max() {
        return Err(TurnBreach::Attempts { found: refused_count, allowed: rules.attempts_max() });
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
        return Err(TurnBreach::NotForced { action: turn.action });
    }
    match position.judge(turn.by, turn.action) {
        Judgement::Delivered => {
            position.deliver(turn.by, turn.action);
            Ok(())
        }
        judgement => Err(TurnBreach::NotDeliverable { action: turn.action, judgement }),
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
    if fits { Ok(()) } else { Err(ReplayError::Outcome { recorded, replayed }) }
}

/// Judges the moves of the turn that ended the match without being delivered.
fn replay_unfinished(
    rules: &Rules,
    position: &Position,
    record: &MatchRecord,
) -> Result<(), ReplayError> {
    let unfinished = |breach| Err(ReplayError::Turn { turn_index: record.turns.len(), breach });
    let (by, illegal) = match record.outcome {
        Outcome::Violated { by, .. } => (by, false),
        Outcome::Faulted { by, fault } => (by, fault == Fault::IllegalMove),
        Outcome::Deal { .. } | Outcome::Walked { .. } | Outcome::TimedOut => {
            return match record.unfinished.first() {
                None => Ok(()),
                Some(&action) => unfinished(TurnBreach::AfterTheEnd { action }),
            };
        }
    };
    let (refused, last) = match (illegal, record.unfinished.split_last()) {
        (true, Some((last, refused))) => (refused, Some(*last)),
        (true, None) => return unfinished(TurnBreach::NoIllegalMove),
        (false, _) => (record.unfinished.as_slice(), None),
    };
    // The attempt that ended the match came after these.
    if refused.len() >= rules.attempts_max() {
        let (found, allowed) = (refused.len(), rules.attempts_max() - 1);
        return unfinished(TurnBreach::Attempts { found, allowed });
    }
    for &action in refused {
        match position.judge(by, action) {
            Judgement::Refused => (),
            judgement => return unfinished(TurnBreach::NotRefusable { action, judgement }),
        }
    }
    match last.map(|action| (action, position.judge(by, action))) {
        None | Some((_, Judgement::Illegal(_))) => Ok(()),
        Some((action, judgement)) => unfinished(TurnBreach::NotIllegal { action, judgement }),
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
    /// An undelivered move although the match ended by a delivered one, or by its horizon.
    AfterTheEnd {
        /// The move.
        action: Move,
    },
    /// The fault is an illegal move, and none is recorded.
    NoIllegalMove,
    /// A move recorded as illegal that is not illegal under these rules.
    NotIllegal {
        /// The move.
        action: Move,
        /// What the rules say to it.
        judgement: Judgement,
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
            ReplayError::Outcome { recorded, replayed: Some(replayed) } => {
                write!(f, "outcome is {recorded}, the turns lead to {replayed}")
            }
            ReplayError::Outcome { recorded, replayed: None } => {
                write!(f, "outcome is {recorded}, the turns do not lead to it")
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
                write!(f, "`{action}` is recorded as refused, by the rules it is {judgement}")
            }
            TurnBreach::NotDeliverable { action, judgement } => {
                write!(f, "`{action}` is recorded as delivered, by the rules it is {judgement}")
            }
            TurnBreach::NotForced { action } => {
                write!(f, "every attempt was refused, yet the turn is `{action}` or has talk")
            }
            TurnBreach::AfterTheEnd { action } => {
                write!(f, "`{action}` was tried after the match had ended")
            }
            TurnBreach::NoIllegalMove => {
                write!(f, "the fault is an illegal move, and none is recorded")
            }
            TurnBreach::NotIllegal { action, judgement } => {
                write!(f, "`{action}` is recorded as illegal, by the rules it is {judgement}")
            }
            TurnBreach::Talk { found, allowed } => {
                write!(f, "talk is {found} bytes, allowed are {allowed}")
            }
        }
    }
}
