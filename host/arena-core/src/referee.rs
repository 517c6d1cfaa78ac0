//! Plays one match: asks the seats in turn and writes down what happened.
//!
//! The same seats and scenario always give the same result: no clock, no I/O, no randomness.
//! A seat sees its brief, the opponent's delivered turns and how the match ended, and nothing
//! else of the other side: not its reserve, belief, refused moves or notes.
//!
//! Not here: what a move does (`position`), where seats come from, what a result is worth
//! (`score`).

use crate::fault::{Fault, SeatError, VoidReason};
use crate::position::{Judgement, Position, Terms};
use crate::record::{MatchRecord, Outcome, TurnRecord};
use crate::rules::Rules;
use crate::scenario::{Brief, Role, Scenario};
use crate::schedule::PairPlan;
use crate::seat::{Seat, Usage};
use crate::turn::{End, Event, Move, Turn};

/// What happened in a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Delivered turns. A turn that ended in a fault or a violation is not among them.
    pub turns: Vec<TurnRecord>,
    /// What was tried in the turn that ended in a fault or a violation.
    pub unfinished: Vec<Move>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the seats used and noted: buyer, seller.
    pub usage: [Usage; 2],
}

impl Played {
    /// Returns the record of the match, given what it was played on: a leg of a pair, its
    /// scenario and the seats' seeds (buyer, seller).
    ///
    /// # Panics
    /// If `leg` is neither 0 nor 1.
    pub fn into_record(
        self,
        plan: &PairPlan,
        leg: u8,
        scenario: &Scenario,
        seeds: [u64; 2],
    ) -> MatchRecord {
        MatchRecord {
            pair_index: plan.index,
            leg,
            agents: plan.seats(leg),
            item_index: plan.item_index,
            repetition: plan.repetition,
            list_price: scenario.item.list_price,
            budget: scenario.budget,
            cost: scenario.cost,
            opener: scenario.opener,
            horizon: scenario.horizon,
            seeds,
            turns: self.turns,
            unfinished: self.unfinished,
            outcome: self.outcome,
            usage: self.usage,
        }
    }
}

/// A match that does not count, because the host or a model provider failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voided {
    /// The seat that could not be run. Not its fault.
    pub by: Role,
    /// The class that is recorded.
    pub reason: VoidReason,
    /// What happened, for the operator; enters no record.
    pub detail: String,
}

/// Plays one match. The arrays are buyer, seller.
///
/// Each seat is begun once, then asked for each of its turns and again after each refused move,
/// then told the end unless it faulted. `begin` is called on the buyer first; when both fault
/// there, the buyer's fault is the outcome, and the pair's other leg swaps the agents.
///
/// # Errors
/// [`Voided`] as soon as a seat cannot be run for a reason that is not its own.
///
/// # Panics
/// If the scenario cannot be played under the rules: see [`Position::start`].
pub fn play(
    rules: &Rules,
    scenario: &Scenario,
    params: [&str; 2],
    seeds: [u64; 2],
    seats: [&mut dyn Seat; 2],
) -> Result<Played, Voided> {
    let position = Position::start(*rules, Terms::of_scenario(scenario))
        .expect("scenarios are drawn within the rules");
    let mut table = Table {
        rules: *rules,
        position,
        seats,
        turns: Vec::new(),
        unfinished: Vec::new(),
        faults: [None; 2],
    };
    for role in Role::BOTH {
        table.begin(&brief(rules, scenario, role, params[role.index()], seeds[role.index()]))?;
    }
    let outcome = table.negotiate()?;
    let usage = table.finish(outcome);
    Ok(Played { turns: table.turns, unfinished: table.unfinished, outcome, usage })
}

/// Returns what the seat of `role` is told before the first turn.
pub fn brief(rules: &Rules, scenario: &Scenario, role: Role, params: &str, seed: u64) -> Brief {
    let horizon = scenario.horizon;
    Brief {
        role,
        item: scenario.item.clone(),
        reserve: scenario.reserve(role),
        turn_limit: (!horizon.hidden).then_some(horizon.turn_limit),
        opens: scenario.opener == role,
        rules: rules.set,
        params: params.to_owned(),
        seed,
    }
}

/// A match in progress.
struct Table<'a> {
    rules: Rules,
    position: Position,
    seats: [&'a mut dyn Seat; 2],
    turns: Vec<TurnRecord>,
    unfinished: Vec<Move>,
    faults: [Option<Fault>; 2],
}

/// What comes of asking a seat for its turn.
enum Asked {
    Turn(TurnRecord),
    /// The outcome, and what was tried before.
    Ended(Outcome, Vec<Move>),
}

impl Table<'_> {
    fn begin(&mut self, brief: &Brief) -> Result<(), Voided> {
        let by = brief.role;
        if let Err(error) = self.seats[by.index()].begin(brief) {
            self.faults[by.index()] = Some(fault_of(by, error)?);
        }
        Ok(())
    }

    fn negotiate(&mut self) -> Result<Outcome, Voided> {
        for by in Role::BOTH {
            if let Some(fault) = self.faults[by.index()] {
                return Ok(Outcome::Faulted { by, fault });
            }
        }
        // Every pass delivers a turn or returns, and the turn limit ends the match.
        loop {
            if let Some(outcome) = self.position.outcome() {
                return Ok(outcome);
            }
            let by = self.position.next();
            match self.ask(by)? {
                Asked::Turn(turn) => {
                    self.position.deliver(by, turn.action);
                    self.turns.push(turn);
                }
                Asked::Ended(outcome, unfinished) => {
                    self.unfinished = unfinished;
                    if let Outcome::Faulted { fault, .. } = outcome {
                        self.faults[by.index()] = Some(fault);
                    }
                    return Ok(outcome);
                }
            }
        }
    }

    fn ask(&mut self, by: Role) -> Result<Asked, Voided> {
        let faulted = |fault, tried| Ok(Asked::Ended(Outcome::Faulted { by, fault }, tried));
        let mut news: Vec<Event> = self.turns.last().map(event).into_iter().collect();
        let mut refused = Vec::new();
        let mut belief = None;
        for _ in 0..self.rules.attempts_max() {
            let reply = match self.seats[by.index()].act(&news) {
                Ok(reply) => reply,
                Err(error) => return faulted(fault_of(by, error)?, refused),
            };
            if reply.talk.len() > self.rules.talk_bytes_max as usize {
                return faulted(Fault::TalkTooLong, refused);
            }
            belief = reply.belief;
            let action = reply.action;
            match self.position.judge(by, action) {
                Judgement::Delivered => {
                    let talk = reply.talk;
                    return Ok(Asked::Turn(TurnRecord { by, refused, action, talk, belief }));
                }
                Judgement::Illegal(_) => {
                    refused.push(action);
                    return faulted(Fault::IllegalMove, refused);
                }
                Judgement::Penalised => {
                    return Ok(Asked::Ended(Outcome::Violated { by, action }, refused));
                }
                Judgement::Refused => refused.push(action),
            }
            news = vec![Event::Refused];
        }
        let (action, talk) = (Move::Reject, String::new());
        Ok(Asked::Turn(TurnRecord { by, refused, action, talk, belief }))
    }

    fn finish(&mut self, outcome: Outcome) -> [Usage; 2] {
        let end = match outcome {
            Outcome::Deal { price } => End::Deal(price),
            // Which side broke its reserve is for the record, not for the seats.
            Outcome::Walked { .. } | Outcome::TimedOut | Outcome::Violated { .. } => End::Impasse,
            Outcome::Faulted { fault, .. } => End::Fault(fault.name().to_owned()),
        };
        for role in Role::BOTH {
            if self.faults[role.index()].is_none() {
                self.seats[role.index()].finish(&end);
            }
        }
        Role::BOTH.map(|role| self.seats[role.index()].take_usage())
    }
}

fn event(turn: &TurnRecord) -> Event {
    Event::Turn(Turn { by: turn.by, action: turn.action, talk: turn.talk.clone() })
}

fn fault_of(by: Role, error: SeatError) -> Result<Fault, Voided> {
    match error {
        SeatError::Fault(fault) => Ok(fault),
        SeatError::Void { reason, detail } => Err(Voided { by, reason, detail }),
    }
}
