//! Plays recorded matches again and says whether they came out the same.
//!
//! Everything but the replies of language models is derived anew: who sits where, the
//! scenario, the seeds. The seats answer from the recorded replies. Matches are played on
//! several threads and told in the order in which they were given; memory grows with the
//! threads, not with the matches.
//!
//! Not here: which matches to play, and what a difference means (`arena-audit`).

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;

use arena_core::announcement::Announcement;
use arena_core::catalog::{self, Catalog};
use arena_core::config::TournamentConfig;
use arena_core::entry::MatchEntry;
use arena_core::fault::SeatError;
use arena_core::record::MatchRecord;
use arena_core::referee::{self, Voided};
use arena_core::rules::Rules;
use arena_core::scenario::{Role, Scenario};
use arena_core::schedule::{PairPlan, Schedule};
use arena_core::seat::{ModelCall, Seat};
use arena_core::seed::Root;
use arena_core::transcript::Transcript;
use arena_log::hash::Hash;

use crate::error::RunError;
use crate::worker::{Unseated, panic_message};
use crate::{SeatRequest, WORKERS_MAX};

/// Most matches that a worker takes at once.
const BATCH_MATCHES_MAX: usize = 32;
/// A batch with this many bytes of transcripts is full.
const BATCH_BYTES: usize = 1 << 20;
/// Batches for each worker that are not yet told.
const BATCHES_IN_FLIGHT: usize = 4;
/// Stack of a worker in bytes: a guest's host calls run on it.
const STACK_BYTES: usize = 8 << 20;

/// What a tournament's matches are played again from.
#[derive(Clone, Copy)]
pub struct Reexecution<'a, 's> {
    /// The announcement, which has the parameters of the agents.
    pub announcement: &'a Announcement,
    /// The tournament file.
    pub config: &'a TournamentConfig,
    /// The rules of play.
    pub rules: &'a Rules,
    /// Who meets whom.
    pub schedule: &'a Schedule,
    /// The items that were played.
    pub catalog: &'a Catalog,
    /// What every draw comes from.
    pub root: Root,
    /// How many threads play; at most [`WORKERS_MAX`] are used.
    pub workers: NonZeroUsize,
    /// Makes seats.
    pub seats: &'a ReplayedSeatSource<'a, 's>,
}

/// Makes the seat of an agent that is answered from the recorded calls of its match, on the
/// thread that will play it.
pub type ReplayedSeatSource<'a, 's> =
    dyn Fn(SeatRequest, &[ModelCall]) -> Result<Box<dyn Seat + 's>, SeatError> + Sync + 'a;

/// A match to be played again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The entry's place in the log.
    pub entry_index: u64,
    /// The entry.
    pub entry: MatchEntry,
    /// The bytes of the transcript that the entry binds.
    pub transcript: Vec<u8>,
}

/// What came of playing a match again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The entry's place in the log.
    pub entry_index: u64,
    /// How it came out.
    pub ending: Ending,
}

/// How a match came out when it was played again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The same, in everything that is recorded.
    Same,
    /// Otherwise.
    Differs {
        /// The record in the log.
        recorded: Box<MatchRecord>,
        /// What it is now.
        again: Box<MatchRecord>,
    },
    /// The host failed, so that it cannot be said.
    Voided(Voided),
    /// The transcript is not what the entry binds, or not of a scheduled match.
    Unreadable {
        /// What is wrong.
        detail: String,
    },
}

/// Plays matches again. `tasks` and `done` are called on this thread; `done` hears of every
/// task, in the order of the tasks.
///
/// # Errors
/// A thread could not be started, or a worker panicked.
///
/// # Panics
/// If announcement, schedule and file do not belong together.
pub fn reexecute(
    job: &Reexecution<'_, '_>,
    tasks: &mut dyn FnMut() -> Option<Task>,
    done: &mut dyn FnMut(Replayed),
) -> Result<(), RunError> {
    assert_eq!(job.announcement.agents.len(), job.config.agents.len(), "agents are announced");
    let worker_count = job.workers.get().min(WORKERS_MAX);
    let in_flight_max = worker_count * BATCHES_IN_FLIGHT;
    let (task_sender, task_receiver) = mpsc::sync_channel(in_flight_max);
    // Holds no more than what was sent for, so it needs no bound of its own.
    let (result_sender, results) = mpsc::channel();
    let queue = Mutex::new(task_receiver);
    let queue = &queue;
    thread::scope(|scope| {
        // Moved in here, so that whatever ends this closure ends the workers.
        let task_sender = task_sender;
        for number in 0..worker_count {
            let worker = Worker { job, scenario: None };
            let result_sender = result_sender.clone();
            let thread = thread::Builder::new()
                .name(format!("arena-replay-{number}"))
                .stack_size(STACK_BYTES);
            let work = move || worker.work(queue, &result_sender);
            thread.spawn_scoped(scope, work).map_err(RunError::Thread)?;
        }
        drop(result_sender);
        conduct(&task_sender, &results, in_flight_max, tasks, done)
    })
}

/// Matches that are handed over together.
struct Batch {
    number: usize,
    tasks: Vec<Task>,
}

/// What came of a batch.
struct Outcome {
    number: usize,
    replayed: Vec<Result<Replayed, RunError>>,
}

/// Hands batches out and tells what comes back, in order.
fn conduct(
    batches: &SyncSender<Batch>,
    outcomes: &Receiver<Outcome>,
    in_flight_max: usize,
    tasks: &mut dyn FnMut() -> Option<Task>,
    done: &mut dyn FnMut(Replayed),
) -> Result<(), RunError> {
    let (mut sent, mut told) = (0, 0);
    let mut waiting = BTreeMap::new();
    let mut exhausted = false;
    // Every pass hands out or takes back a batch, or ends.
    loop {
        while !exhausted && sent - told < in_flight_max {
            let tasks = next_batch(tasks);
            exhausted = tasks.is_empty();
            if !exhausted {
                let sending = batches.send(Batch { number: sent, tasks });
                sending.expect("workers live as long as there may be batches");
                sent += 1;
            }
        }
        if told == sent {
            return Ok(());
        }
        let Outcome { number, replayed } =
            outcomes.recv().expect("workers answer every batch before they end");
        waiting.insert(number, replayed);
        while let Some(replayed) = waiting.remove(&told) {
            told += 1;
            for replayed in replayed {
                done(replayed?);
            }
        }
    }
}

fn next_batch(tasks: &mut dyn FnMut() -> Option<Task>) -> Vec<Task> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < BATCH_MATCHES_MAX && bytes < BATCH_BYTES {
        let Some(task) = tasks() else { break };
        bytes += task.transcript.len();
        batch.push(task);
    }
    batch
}

/// One thread, and what it keeps between matches.
struct Worker<'a, 's, 'b> {
    job: &'b Reexecution<'a, 's>,
    scenario: Option<((u32, u32), Scenario)>,
}

impl Worker<'_, '_, '_> {
    fn work(mut self, queue: &Mutex<Receiver<Batch>>, outcomes: &Sender<Outcome>) {
        loop {
            let taken = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Batch { number, tasks }) = taken else { return };
            let replayed = tasks.into_iter().map(|task| self.replay_caught(&task)).collect();
            if outcomes.send(Outcome { number, replayed }).is_err() {
                return;
            }
        }
    }

    /// Plays a match again; a panic becomes an error that names it.
    fn replay_caught(&mut self, task: &Task) -> Result<Replayed, RunError> {
        // What a panic leaves half-changed is the scenario, which is put back only afterwards.
        let caught = catch_unwind(AssertUnwindSafe(|| self.replay(task)));
        let ending = caught.map_err(|payload| RunError::Panicked {
            pair_index: task.entry.pair_index,
            message: panic_message(&*payload),
        })?;
        Ok(Replayed { entry_index: task.entry_index, ending })
    }

    fn replay(&mut self, task: &Task) -> Ending {
        let recorded = match self.read(task) {
            Ok(recorded) => recorded,
            Err(detail) => return Ending::Unreadable { detail },
        };
        let plan = self.job.schedule.pair(task.entry.pair_index);
        let scenario = self.take_scenario(&plan);
        let played = self.play(&plan, task.entry.leg, &scenario, &recorded);
        self.scenario = Some(((plan.item_index, plan.repetition), scenario));
        match played {
            Ok(again) if again == recorded => Ending::Same,
            Ok(again) => Ending::Differs { recorded: Box::new(recorded), again: Box::new(again) },
            Err(voided) => Ending::Voided(voided),
        }
    }

    /// Reads the transcript, and makes sure that the entry binds it and names a scheduled match.
    fn read(&self, task: &Task) -> Result<MatchRecord, String> {
        let Task { entry, transcript, .. } = task;
        let pair_count = self.job.schedule.pair_count();
        if entry.pair_index >= pair_count || entry.leg >= self.job.schedule.leg_count() {
            let (pair, leg) = (entry.pair_index, entry.leg);
            return Err(format!("pair {pair}, leg {leg} of {pair_count} pairs is not scheduled"));
        }
        let (found, wanted) = (Hash::of(transcript), Hash(entry.transcript_sha256));
        if found != wanted {
            return Err(format!("the transcript's hash is {found}, the entry says {wanted}"));
        }
        let transcript = Transcript::decode(transcript).map_err(|error| error.to_string())?;
        Ok(transcript.record)
    }

    /// Returns the pair's scenario, which neighbours in the schedule share.
    fn take_scenario(&mut self, plan: &PairPlan) -> Scenario {
        let address = (plan.item_index, plan.repetition);
        match self.scenario.take() {
            Some((drawn, scenario)) if drawn == address => scenario,
            _ => {
                let Reexecution { config, catalog, root, .. } = self.job;
                catalog::draw_scenario(config, catalog, *root, plan.item_index, plan.repetition)
            }
        }
    }

    fn play(
        &self,
        plan: &PairPlan,
        leg: u8,
        scenario: &Scenario,
        recorded: &MatchRecord,
    ) -> Result<MatchRecord, Voided> {
        let seeds = self.job.schedule.seat_seeds(self.job.root, plan)[usize::from(leg)];
        let agents = plan.seats(leg);
        let mut seats = Role::BOTH.map(|role| {
            let side = role.index();
            let (agent, seed) = (agents[side], seeds[side]);
            let request = SeatRequest { agent, role, pair_index: plan.index, leg, seed };
            let calls = &recorded.usage[side].model_calls;
            (self.job.seats)(request, calls).unwrap_or_else(|error| Box::new(Unseated(error)))
        });
        let announced = &self.job.announcement.agents;
        let params = agents.map(|agent| announced[usize::from(agent)].params.as_str());
        let [buyer, seller] = &mut seats;
        let pair: [&mut dyn Seat; 2] = [buyer.as_mut(), seller.as_mut()];
        let played = referee::play(self.job.rules, scenario, params, seeds, pair)?;
        Ok(played.into_record(plan, leg, scenario, seeds))
    }
}
