//! One thread: takes the next pair, plays its two legs, hands over their bytes.
//!
//! Encoding happens here, so that the dispatcher only writes.
//!
//! Not here: the order of entries (`dispatcher`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SendError, SyncSender};
use std::time::{Duration, Instant};

use arena_core::catalog;
use arena_core::entry::Entry;
use arena_core::fault::SeatError;
use arena_core::record::{MatchRecord, VoidRecord};
use arena_core::referee::{self, Voided};
use arena_core::scenario::{Brief, Role, Scenario};
use arena_core::schedule::{self, PairPlan};
use arena_core::seat::{Seat, Usage};
use arena_core::turn::{End, Event, Reply};

use crate::board::Board;
use crate::error::RunError;
use crate::event::{Counts, Voiding};
use crate::{Job, SeatRequest, VOID_ATTEMPTS_MAX};

/// Pairs that are handed over together.
pub const BATCH_PAIRS_MAX: usize = 16;

/// A pair is handed over no later than this after it was played, unless the next one is slow.
const BATCH_AGE_MAX: Duration = Duration::from_millis(10);

/// What a worker hands over.
pub enum Delivery {
    /// Finished pairs.
    Pairs(Vec<PlayedPair>),
    /// A pair was voided; it is being played again.
    Voided(Voiding),
    /// A pair could not be finished; this worker is gone.
    Failed(Box<Failure>),
}

/// A pair as it goes into the log.
pub struct PlayedPair {
    /// The pair's place in the schedule.
    pub index: u64,
    /// Encoded entries: voids, then the two legs.
    pub entries: Vec<Vec<u8>>,
    /// The same, counted.
    pub counts: Counts,
}

/// A pair that could not be finished.
pub struct Failure {
    /// The pair's place in the schedule.
    pub index: u64,
    /// Why.
    pub error: RunError,
    /// Its voids, encoded, which stay on the record.
    pub voids: Vec<Vec<u8>>,
}

/// A worker and what it keeps between pairs.
pub struct Worker<'a, 's, 'b> {
    job: &'b Job<'a, 's>,
    board: &'b Board<'b>,
    deliveries: SyncSender<Delivery>,
    first: (u64, u32),
    batch: Vec<PlayedPair>,
    batch_start: Instant,
    scenario: Option<(u32, u32, Scenario)>,
}

/// Why a pair has no result.
enum Unfinished {
    /// A person wants the run to stop.
    Stopped,
    /// The dispatcher is gone.
    Abandoned,
    /// It keeps being voided.
    Failed(Box<Failure>),
}

/// Why a leg has no record.
enum LegEnd {
    Stopped,
    Voided(Voided),
}

impl<'a, 's, 'b> Worker<'a, 's, 'b> {
    /// Returns a worker. `first` is the first pair that the log does not hold, and how often
    /// the log says that it was voided.
    pub fn new(
        job: &'b Job<'a, 's>,
        board: &'b Board<'b>,
        deliveries: SyncSender<Delivery>,
        first: (u64, u32),
    ) -> Worker<'a, 's, 'b> {
        let batch = Vec::with_capacity(BATCH_PAIRS_MAX);
        let batch_start = Instant::now();
        Worker { job, board, deliveries, first, batch, batch_start, scenario: None }
    }

    /// Plays pairs until there are none, the run stops, or one fails.
    pub fn work(mut self) {
        // A failed hand-over means that the dispatcher is gone and the run over.
        let _ = self.play_pairs();
    }

    fn play_pairs(&mut self) -> Result<(), SendError<Delivery>> {
        while let Some(index) = self.board.claim() {
            if !self.board.is_open(index) {
                // The window may be waiting for what this worker still holds.
                self.hand_over()?;
                if !self.board.wait_until_open(index) {
                    break;
                }
            }
            match self.play_caught(index) {
                Ok(pair) => self.batch.push(pair),
                Err(Unfinished::Stopped) => break,
                Err(Unfinished::Abandoned) => return Ok(()),
                Err(Unfinished::Failed(failure)) => {
                    self.hand_over()?;
                    return self.deliveries.send(Delivery::Failed(failure));
                }
            }
            if self.batch.len() >= BATCH_PAIRS_MAX || self.batch_start.elapsed() >= BATCH_AGE_MAX {
                self.hand_over()?;
            }
        }
        self.hand_over()
    }

    fn hand_over(&mut self) -> Result<(), SendError<Delivery>> {
        self.batch_start = Instant::now();
        if self.batch.is_empty() {
            return Ok(());
        }
        let next = Vec::with_capacity(BATCH_PAIRS_MAX);
        self.deliveries.send(Delivery::Pairs(std::mem::replace(&mut self.batch, next)))
    }

    /// Plays a pair; a panic becomes a failure that names it.
    fn play_caught(&mut self, index: u64) -> Result<PlayedPair, Unfinished> {
        // Nothing that a panic leaves half-changed is used again: the worker ends.
        let caught = catch_unwind(AssertUnwindSafe(|| self.play_pair(index)));
        caught.unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            let message = text.unwrap_or("no message").to_owned();
            let error = RunError::Panicked { pair_index: index, message };
            Err(Unfinished::Failed(Box::new(Failure { index, error, voids: Vec::new() })))
        })
    }

    /// Plays a pair until it counts, but not more often than allowed.
    fn play_pair(&mut self, index: u64) -> Result<PlayedPair, Unfinished> {
        let plan = self.job.schedule.pair(index);
        let scenario = self.take_scenario(&plan);
        let counts = Counts { pairs_done: 1, ..Counts::default() };
        let mut pair = PlayedPair { index, entries: Vec::with_capacity(2), counts };
        let voided_before = if index == self.first.0 { self.first.1 } else { 0 };
        let mut last = None;
        for attempt in voided_before..voided_before + VOID_ATTEMPTS_MAX {
            match self.play_legs(&plan, &scenario) {
                Ok(records) => {
                    for record in records {
                        pair.counts.add_match(&record);
                        pair.entries.push(Entry::Match(record).encode());
                    }
                    self.scenario = Some((plan.item_index, plan.repetition, scenario));
                    return Ok(pair);
                }
                Err(LegEnd::Stopped) => return Err(Unfinished::Stopped),
                Err(LegEnd::Voided(voided)) => {
                    last = Some(self.note_void(&mut pair, attempt, voided)?);
                }
            }
        }
        let last = last.expect("a pair is played at least once");
        let error = RunError::Voided { attempts: VOID_ATTEMPTS_MAX, last };
        Err(Unfinished::Failed(Box::new(Failure { index, error, voids: pair.entries })))
    }

    /// Puts a void on the pair's record and tells it.
    fn note_void(
        &self,
        pair: &mut PlayedPair,
        attempt: u32,
        voided: Voided,
    ) -> Result<Voiding, Unfinished> {
        let (pair_index, Voided { reason, detail, .. }) = (pair.index, voided);
        pair.counts.void_count += 1;
        let record = VoidRecord { pair_index, attempt, reason };
        pair.entries.push(Entry::Void(record).encode());
        let voiding = Voiding { pair_index, attempt, reason, detail };
        let sent = self.deliveries.send(Delivery::Voided(voiding.clone()));
        sent.map_err(|_| Unfinished::Abandoned)?;
        Ok(voiding)
    }

    /// Returns the pair's scenario, which neighbours in the schedule share.
    fn take_scenario(&mut self, plan: &PairPlan) -> Scenario {
        let (item_index, repetition) = (plan.item_index, plan.repetition);
        match self.scenario.take() {
            Some((item, time, scenario)) if (item, time) == (item_index, repetition) => scenario,
            _ => {
                let Job { config, catalog, announcement, .. } = self.job;
                catalog::draw_scenario(config, catalog, announcement.seed, item_index, repetition)
            }
        }
    }

    fn play_legs(&self, plan: &PairPlan, scenario: &Scenario) -> Result<[MatchRecord; 2], LegEnd> {
        let seeds = schedule::seat_seeds(self.job.announcement.seed, plan.index);
        let first = self.play_leg(plan, 0, scenario, seeds[0])?;
        let second = self.play_leg(plan, 1, scenario, seeds[1])?;
        Ok([first, second])
    }

    fn play_leg(
        &self,
        plan: &PairPlan,
        leg: u8,
        scenario: &Scenario,
        seeds: [u64; 2],
    ) -> Result<MatchRecord, LegEnd> {
        if self.board.is_stopped() {
            return Err(LegEnd::Stopped);
        }
        let agents = plan.seats(leg);
        let mut seats = Role::BOTH.map(|role| {
            let side = role.index();
            let request = SeatRequest {
                agent: agents[side],
                role,
                pair_index: plan.index,
                leg,
                seed: seeds[side],
            };
            (self.job.seats)(request).unwrap_or_else(|error| Box::new(Unseated(error)))
        });
        let params =
            agents.map(|agent| self.job.announcement.agents[usize::from(agent)].params.as_str());
        let [buyer, seller] = &mut seats;
        let pair: [&mut dyn Seat; 2] = [buyer.as_mut(), seller.as_mut()];
        let played = referee::play(self.job.rules, scenario, params, seeds, pair);
        let played = played.map_err(LegEnd::Voided)?;
        Ok(played.into_record(plan, leg, scenario, seeds))
    }
}

/// Sits in for a seat that could not be made, and says why as soon as it is asked.
struct Unseated(SeatError);

impl Seat for Unseated {
    fn begin(&mut self, _brief: &Brief) -> Result<(), SeatError> {
        Err(self.0.clone())
    }

    fn act(&mut self, _news: &[Event]) -> Result<Reply, SeatError> {
        Err(self.0.clone())
    }

    fn finish(&mut self, _end: &End) {}

    fn take_usage(&mut self) -> Usage {
        Usage::default()
    }
}
