//! A seat that plays a fixed list of replies and remembers what it was told.
//!
//! For tests of whatever plays matches, and for playing a record's moves again.

use std::collections::VecDeque;

use crate::fault::{Fault, SeatError};
use crate::scenario::Brief;
use crate::seat::{Seat, Usage};
use crate::turn::{End, Event, Move, Reply};

/// A seat that gives each of its answers once, in order. When it is asked for more than it
/// has, it faults with [`Fault::Trap`], as a guest that reaches `unreachable` does.
#[derive(Clone, Debug)]
pub struct ScriptedSeat {
    /// What it answers to `begin`.
    pub on_begin: Result<(), SeatError>,
    /// What it has yet to answer to `act`.
    pub answers: VecDeque<Result<Reply, SeatError>>,
    /// What it hands over as its usage.
    pub usage: Usage,
    /// The briefs that it was given.
    pub briefs: Vec<Brief>,
    /// The news of each `act`, in order.
    pub news: Vec<Vec<Event>>,
    /// The ends that it was told.
    pub ends: Vec<End>,
}

impl ScriptedSeat {
    /// Returns a seat that gives these answers.
    pub fn new(answers: Vec<Result<Reply, SeatError>>) -> ScriptedSeat {
        ScriptedSeat {
            on_begin: Ok(()),
            answers: answers.into(),
            usage: Usage::default(),
            briefs: Vec::new(),
            news: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Returns a seat that makes these moves without a word.
    pub fn of_moves(moves: &[Move]) -> ScriptedSeat {
        let reply = |&action| Ok(Reply { action, talk: String::new(), belief: None });
        ScriptedSeat::new(moves.iter().map(reply).collect())
    }
}

impl Seat for ScriptedSeat {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        self.briefs.push(brief.clone());
        self.on_begin.clone()
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        self.news.push(news.to_vec());
        self.answers.pop_front().unwrap_or(Err(SeatError::Fault(Fault::Trap)))
    }

    fn finish(&mut self, end: &End) {
        self.ends.push(end.clone());
    }

    fn take_usage(&mut self) -> Usage {
        std::mem::take(&mut self.usage)
    }
}
