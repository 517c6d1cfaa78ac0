//! Two seats that read their answers from one tape, in the order in which they are asked.

use std::cell::RefCell;
use std::collections::VecDeque;

use arena_core::fault::{SeatError, VoidReason};
use arena_core::referee::{Played, Voided, play};
use arena_core::rules::Rules;
use arena_core::scenario::{Brief, Scenario};
use arena_core::seat::{Seat, Usage};
use arena_core::turn::{End, Event, Reply};

/// One answer of a seat.
pub type Answer = Result<Reply, SeatError>;

/// A seat that takes the next answer from the tape and keeps what it is told. At the end of the
/// tape it cannot be run, which voids the match.
pub struct TapeSeat<'a> {
    tape: &'a RefCell<VecDeque<Answer>>,
    pub heard: Vec<Event>,
    pub ends: Vec<End>,
}

impl<'a> TapeSeat<'a> {
    fn new(tape: &'a RefCell<VecDeque<Answer>>) -> TapeSeat<'a> {
        TapeSeat { tape, heard: Vec::new(), ends: Vec::new() }
    }
}

impl Seat for TapeSeat<'_> {
    fn begin(&mut self, _: &Brief) -> Result<(), SeatError> {
        Ok(())
    }

    fn act(&mut self, news: &[Event]) -> Answer {
        self.heard.extend_from_slice(news);
        let end = || {
            let (reason, detail) = (VoidReason::Host, "end of tape".to_owned());
            Err(SeatError::Void { reason, detail })
        };
        self.tape.borrow_mut().pop_front().unwrap_or_else(end)
    }

    fn finish(&mut self, end: &End) {
        self.ends.push(end.clone());
    }

    fn take_usage(&mut self) -> Usage {
        Usage::default()
    }
}

/// What came of a tape.
pub struct Session {
    pub played: Result<Played, Voided>,
    /// Events of each seat, all calls together: buyer, seller.
    pub heard: [Vec<Event>; 2],
    /// Ends that each seat was told.
    pub ends: [Vec<End>; 2],
    /// Answers that nobody asked for.
    pub left_over: usize,
}

/// Plays a tape.
pub fn play_tape(rules: &Rules, scenario: &Scenario, answers: Vec<Answer>) -> Session {
    let tape = RefCell::new(VecDeque::from(answers));
    let (mut buyer, mut seller) = (TapeSeat::new(&tape), TapeSeat::new(&tape));
    let played = play(rules, scenario, ["", ""], [1, 2], [&mut buyer, &mut seller]);
    let (heard, ends) = ([buyer.heard, seller.heard], [buyer.ends, seller.ends]);
    let left_over = tape.borrow().len();
    Session { played, heard, ends, left_over }
}
