//! One thread: takes the next pair, plays its legs, hands over their bytes.
//!
//! Encoding and hashing of transcripts happen here, so that the dispatcher only writes.
//!
//! Not here: the order of entries (`dispatcher`).

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SendError, SyncSender};
use std::time::{Duration, Instant};

use arena_core::catalog;
use arena_core::entry::{Entry, VoidEntry};
use arena_core::fault::{SeatError, VoidReason};
use arena_core::record::{MatchRecord, VoidRecord};
use arena_core::referee::{self, Voided};
use arena_core::scenario::{Brief, Role, Scenario};
use arena_core::schedule::PairPlan;
use arena_core::seat::{Seat, Usage};
use arena_core::transcript::Transcript;
use arena_core::turn::{End, Event, Reply};
use arena_log::writer::Record;

use crate::board::Board;
use crate::error::RunError;
use crate::event::{Counts, Voiding};
use crate::identity::Identity;
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
    /// Voids, then the legs.
    pub records: Vec<Encoded>,
    /// The same, counted.
    pub counts: Counts,
}

impl PlayedPair {
    /// Returns how many bytes it has.
    pub fn byte_count(&self) -> u64 {
        self.records.iter().map(Encoded::byte_count).sum()
    }
}

/// An entry and what lies beside it, as they go into the log.
pub struct Encoded {
    /// The entry.
    pub entry: Vec<u8>,
    /// The transcript of a match; empty beside any other entry.
    pub attachment: Vec<u8>,
}

impl Encoded {
    /// Returns an entry that has nothing beside it.
    pub fn alone(entry: &Entry) -> Encoded {
        Encoded { entry: entry.encode(), attachment: Vec::new() }
    }

    /// Returns this as the log takes it.
    pub fn as_record(&self) -> Record<'_> {
        Record { entry: &self.entry, attachment: &self.attachment }
    }

    /// Returns how many bytes it has.
    pub fn byte_count(&self) -> u64 {
        (self.entry.len() + self.attachment.len()) as u64
    }
}

/// Where the log ends that a run goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The first pair of which not all legs are there.
    pub pair_index: u64,
    /// How often the log says that it was voided.
    pub voids: u32,
    /// Whether its first leg of two is there: a head was signed between the legs, and what came
    /// after is lost.
    pub has_first_leg: bool,
}

impl Start {
    /// The start of a pair of which nothing is there.
    pub fn of(pair_index: u64) -> Start {
        Start { pair_index, voids: 0, has_first_leg: false }
    }

    /// Returns the legs that are missing of so many.
    fn legs(self, leg_count: u8) -> Range<u8> {
        u8::from(self.has_first_leg)..leg_count
    }
}

/// A pair that could not be finished.
pub struct Failure {
    /// The pair's place in the schedule.
    pub index: u64,
    /// Why.
    pub error: RunError,
    /// Its voids, which stay on the record.
    pub voids: Vec<Encoded>,
}

/// A worker and what it keeps between pairs.
pub struct Worker<'a, 's, 'b> {
    job: &'b Job<'a, 's>,
    identity: &'b Identity,
    board: &'b Board<'b>,
    deliveries: SyncSender<Delivery>,
    start: Start,
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
    /// Returns a worker of a run that goes on from `start`.
    pub fn new(
        job: &'b Job<'a, 's>,
        identity: &'b Identity,
        board: &'b Board<'b>,
        deliveries: SyncSender<Delivery>,
        start: Start,
    ) -> Worker<'a, 's, 'b> {
        let batch = Vec::with_capacity(BATCH_PAIRS_MAX);
        let batch_start = Instant::now();
        Worker { job, identity, board, deliveries, start, batch, batch_start, scenario: None }
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
                Ok(pair) => {
                    self.board.hold(pair.byte_count());
                    self.batch.push(pair);
                }
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
            let message = panic_message(&*payload);
            let error = RunError::Panicked { pair_index: index, message };
            Err(Unfinished::Failed(Box::new(Failure { index, error, voids: Vec::new() })))
        })
    }

    /// Plays a pair until it counts, but not more often than allowed.
    fn play_pair(&mut self, index: u64) -> Result<PlayedPair, Unfinished> {
        let plan = self.job.schedule.pair(index);
        let scenario = self.take_scenario(&plan);
        let counts = Counts { pairs_done: 1, ..Counts::default() };
        let mut pair = PlayedPair { index, records: Vec::with_capacity(2), counts };
        let start = if index == self.start.pair_index { self.start } else { Start::of(index) };
        let mut last = None;
        for attempt in start.voids..start.voids + VOID_ATTEMPTS_MAX {
            let legs = start.legs(self.job.schedule.leg_count());
            match self.play_legs(&plan, legs, &scenario) {
                Ok(records) => {
                    for record in records {
                        pair.counts.add_match(record.outcome);
                        pair.records.push(self.encode(record));
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
        Err(Unfinished::Failed(Box::new(Failure { index, error, voids: pair.records })))
    }

    /// Tells a void, and puts it on the pair's record.
    fn note_void(
        &self,
        pair: &mut PlayedPair,
        attempt: u32,
        voided: Voided,
    ) -> Result<Voiding, Unfinished> {
        let (pair_index, Voided { reason, detail, .. }) = (pair.index, voided);
        // Between the legs of a pair there is no place for a void: its first leg counts.
        if pair_index != self.start.pair_index || !self.start.has_first_leg {
            pair.counts.void_count += 1;
            let void = VoidRecord { pair_index, attempt, reason };
            let tournament = self.identity.tournament;
            pair.records.push(Encoded::alone(&Entry::Void(VoidEntry { tournament, void })));
        }
        let voiding = Voiding { pair_index, attempt, reason, detail };
        let sent = self.deliveries.send(Delivery::Voided(voiding.clone()));
        sent.map_err(|_| Unfinished::Abandoned)?;
        Ok(voiding)
    }

    /// Returns a match as the log keeps it: the whole beside the entry that binds it.
    fn encode(&self, record: MatchRecord) -> Encoded {
        let Identity { tournament, root, .. } = *self.identity;
        let transcript = Transcript::new(tournament, root, record);
        let attachment = transcript.encode();
        let entry = Entry::Match(transcript.entry(&attachment)).encode();
        Encoded { entry, attachment }
    }

    /// Returns the pair's scenario, which neighbours in the schedule share.
    fn take_scenario(&mut self, plan: &PairPlan) -> Scenario {
        let (item_index, repetition) = (plan.item_index, plan.repetition);
        match self.scenario.take() {
            Some((item, time, scenario)) if (item, time) == (item_index, repetition) => scenario,
            _ => {
                let Job { config, catalog, .. } = self.job;
                let root = self.identity.root;
                catalog::draw_scenario(config, catalog, root, item_index, repetition)
            }
        }
    }

    fn play_legs(
        &self,
        plan: &PairPlan,
        legs: Range<u8>,
        scenario: &Scenario,
    ) -> Result<Vec<MatchRecord>, LegEnd> {
        let seeds = self.job.schedule.seat_seeds(self.identity.root, plan);
        legs.map(|leg| self.play_leg(plan, leg, scenario, seeds[usize::from(leg)])).collect()
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
            let seat = (self.job.seats)(request).unwrap_or_else(|error| Box::new(Unseated(error)));
            Stoppable { seat, board: self.board }
        });
        let params =
            agents.map(|agent| self.job.announcement.agents[usize::from(agent)].params.as_str());
        let [buyer, seller] = &mut seats;
        let pair: [&mut dyn Seat; 2] = [buyer, seller];
        let played = referee::play(self.job.rules, scenario, params, seeds, pair);
        // Stopping may be what voided it: seats are not asked any more, and a model may be ending.
        let played = played.map_err(|voided| match self.board.is_stopped() {
            true => LegEnd::Stopped,
            false => LegEnd::Voided(voided),
        })?;
        Ok(played.into_record(plan, leg, scenario, seeds))
    }
}

/// Returns what a panic said.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("no message").to_owned()
}

/// A seat that is not asked any more once the run is stopped: with language models, a match in play
/// may take minutes to its end.
struct Stoppable<'s, 'b> {
    seat: Box<dyn Seat + 's>,
    board: &'b Board<'b>,
}

impl Stoppable<'_, '_> {
    fn check(&self) -> Result<(), SeatError> {
        if self.board.is_stopped() {
            let detail = "the run was stopped".to_owned();
            return Err(SeatError::Void { reason: VoidReason::Host, detail });
        }
        Ok(())
    }
}

impl Seat for Stoppable<'_, '_> {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        self.check()?;
        self.seat.begin(brief)
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        self.check()?;
        self.seat.act(news)
    }

    fn finish(&mut self, end: &End) {
        self.seat.finish(end);
    }

    fn take_usage(&mut self) -> Usage {
        self.seat.take_usage()
    }
}

/// Sits in for a seat that could not be made, and says why as soon as it is asked.
pub struct Unseated(pub SeatError);

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
