//! Recorded matches played again: the same come out the same, in order, on any number of
//! threads, and what does not is named.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use arena_core::entry::Entry;
use arena_core::fault::{SeatError, VoidReason};
use arena_core::seat::{ModelCall, Seat};
use arena_core::transcript::Transcript;
use arena_runner::SeatRequest;
use arena_runner::error::RunError;
use arena_runner::reexecution::{
    Ending, Reexecution, Replayed, ReplayedSeatSource, Task, reexecute,
};

use crate::hagglers::Haggler;
use crate::stage::{Stage, hagglers, items};

/// Batches that are under way for each worker, and the matches of a batch.
const IN_FLIGHT_PER_WORKER: u64 = 4 * 32;

/// A stage, and the tasks that its finished log gives.
struct Played {
    stage: Stage,
    tasks: Vec<Task>,
}

impl Played {
    fn new(items_of_catalog: u32) -> Played {
        let stage = Stage::committed(items_of_catalog);
        let folder = tempfile::tempdir().expect("a folder for the test");
        stage.run(folder.path(), 2, &hagglers).expect("hagglers play to the end");
        let matches = items(folder.path()).into_iter().zip(0_u64..);
        let tasks = matches.filter_map(|(item, entry_index)| match item.entry {
            Entry::Match(entry) => Some(Task { entry_index, entry, transcript: item.attachment }),
            _ => None,
        });
        Played { tasks: tasks.collect(), stage }
    }

    fn replay(
        &self,
        workers: usize,
        seats: &ReplayedSeatSource<'_, '_>,
    ) -> Result<Vec<Replayed>, RunError> {
        let mut tasks = self.tasks.iter().cloned();
        let mut replayed = Vec::new();
        let done = &mut |one| replayed.push(one);
        self.replay_each(workers, seats, &mut || tasks.next(), done).map(|()| replayed)
    }

    fn replay_each(
        &self,
        workers: usize,
        seats: &ReplayedSeatSource<'_, '_>,
        tasks: &mut dyn FnMut() -> Option<Task>,
        done: &mut dyn FnMut(Replayed),
    ) -> Result<(), RunError> {
        let Stage { announcement, config, rules, schedule, catalog, .. } = &self.stage;
        let root = self.stage.root();
        let workers = NonZeroUsize::new(workers).expect("at least one worker");
        let job =
            Reexecution { announcement, config, rules, schedule, catalog, root, workers, seats };
        reexecute(&job, tasks, done)
    }

    /// Changes the record of a task and binds it anew, as an organiser could.
    fn forge(&mut self, place: usize, change: &dyn Fn(&mut Transcript)) {
        let task = &mut self.tasks[place];
        let mut transcript = Transcript::decode(&task.transcript).expect("a transcript");
        change(&mut transcript);
        task.transcript = transcript.encode();
        task.entry = transcript.entry(&task.transcript);
    }
}

fn again(request: SeatRequest, _: &[ModelCall]) -> Result<Box<dyn Seat>, SeatError> {
    hagglers(request)
}

#[test]
fn what_was_played_comes_out_the_same_in_order_on_any_number_of_threads() {
    let played = Played::new(20);
    assert_eq!(played.tasks.len(), 400);
    let indices: Vec<u64> = played.tasks.iter().map(|task| task.entry_index).collect();
    for workers in [1, 2, 7] {
        let replayed = played.replay(workers, &again).expect("no worker fails");
        let told: Vec<u64> = replayed.iter().map(|one| one.entry_index).collect();
        assert_eq!(told, indices, "{workers} workers");
        assert!(replayed.iter().all(|one| one.ending == Ending::Same), "{workers} workers");
    }
}

#[test]
fn a_changed_record_differs_and_no_other_does() {
    let mut played = Played::new(4);
    played.forge(17, &|transcript| {
        transcript.record.usage[1].trace.push("never thought".to_owned());
    });
    let replayed = played.replay(2, &again).expect("no worker fails");
    for (place, one) in replayed.into_iter().enumerate() {
        match one.ending {
            Ending::Same => assert_ne!(place, 17, "the change was not found"),
            Ending::Differs { recorded, again } => {
                assert_eq!(place, 17);
                assert_eq!(recorded.usage[1].trace.len(), again.usage[1].trace.len() + 1);
            }
            other => panic!("match {place}: {other:?}"),
        }
    }
}

#[test]
fn seats_are_derived_and_not_taken_from_the_record() {
    let mut played = Played::new(4);
    played.forge(5, &|transcript| transcript.record.seeds = [1, 2]);
    played.forge(6, &|transcript| transcript.record.agents.reverse());
    played.forge(7, &|transcript| transcript.record.item_index ^= 1);
    let replayed = played.replay(1, &again).expect("no worker fails");
    for (place, one) in replayed.iter().enumerate() {
        let differs = matches!(one.ending, Ending::Differs { .. });
        assert_eq!(differs, (5..8).contains(&place), "match {place}: {:?}", one.ending);
    }
}

#[test]
fn a_seat_is_handed_the_calls_of_its_own_side_of_its_own_match() {
    let played = Played::new(4);
    let checked = AtomicU64::new(0);
    let calls_of = |request: &SeatRequest| {
        let is_it = |task: &&Task| {
            (task.entry.pair_index, task.entry.leg) == (request.pair_index, request.leg)
        };
        let task = played.tasks.iter().find(is_it).expect("a task");
        let transcript = Transcript::decode(&task.transcript).expect("a transcript");
        transcript.record.usage[request.role.index()].model_calls.clone()
    };
    let seats = |request: SeatRequest, calls: &[ModelCall]| -> Result<Box<dyn Seat>, SeatError> {
        assert_eq!(calls, calls_of(&request));
        checked.fetch_add(calls.len() as u64, Ordering::Relaxed);
        Ok(Box::new(Haggler::new(request.seed)))
    };
    played.replay(2, &seats).expect("no worker fails");
    assert!(checked.load(Ordering::Relaxed) > 10, "hardly any call was recorded");
}

#[test]
fn a_transcript_that_is_not_bound_or_not_scheduled_is_not_played() {
    let mut played = Played::new(1);
    let pair_count = played.stage.schedule.pair_count();
    played.tasks[0].transcript.push(0);
    played.tasks[1].transcript.clear();
    played.forge(2, &|transcript| transcript.record.pair_index = pair_count);
    played.forge(3, &|transcript| transcript.record.pair_index = u64::MAX);
    played.forge(4, &|transcript| transcript.record.leg = 2);
    let replayed = played.replay(2, &again).expect("no worker fails");
    for (place, one) in replayed.iter().enumerate() {
        let unreadable = matches!(one.ending, Ending::Unreadable { .. });
        assert_eq!(unreadable, place < 5, "match {place}: {:?}", one.ending);
    }
}

#[test]
fn a_failing_host_is_told_as_such_and_the_others_are_played() {
    let played = Played::new(2);
    let seats = |request: SeatRequest, _: &[ModelCall]| -> Result<Box<dyn Seat>, SeatError> {
        match request.pair_index {
            3 => Err(SeatError::Void { reason: VoidReason::Host, detail: "no room".to_owned() }),
            _ => Ok(Box::new(Haggler::new(request.seed))),
        }
    };
    let replayed = played.replay(2, &seats).expect("no worker fails");
    for (place, one) in replayed.iter().enumerate() {
        match &one.ending {
            Ending::Voided(voided) => assert_eq!((place / 2, &*voided.detail), (3, "no room")),
            ending => assert_eq!((place / 2 != 3, ending), (true, &Ending::Same)),
        }
    }
}

#[test]
fn a_panic_names_its_pair_and_ends_the_work() {
    let played = Played::new(8);
    let seats = |request: SeatRequest, _: &[ModelCall]| -> Result<Box<dyn Seat>, SeatError> {
        assert!(request.pair_index != 30, "the seat of pair 30 is broken");
        Ok(Box::new(Haggler::new(request.seed)))
    };
    match played.replay(2, &seats) {
        Err(RunError::Panicked { pair_index: 30, message }) => {
            assert!(message.contains("is broken"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn tasks_are_taken_no_further_ahead_than_workers_can_hold() {
    let played = Played::new(60);
    assert_eq!(played.tasks.len(), 1_200);
    let (taken, told) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut tasks = played.tasks.iter().cloned();
    let mut farthest = 0;
    let mut take = || {
        let ahead = taken.fetch_add(1, Ordering::Relaxed) - told.load(Ordering::Relaxed);
        farthest = farthest.max(ahead);
        tasks.next()
    };
    let mut done = |_| {
        told.fetch_add(1, Ordering::Relaxed);
    };
    played.replay_each(2, &again, &mut take, &mut done).expect("no worker fails");
    assert_eq!(told.load(Ordering::Relaxed), 1_200);
    assert!(farthest <= 2 * IN_FLIGHT_PER_WORKER, "{farthest} matches were under way");
}

#[test]
fn nothing_to_play_is_played_at_once() {
    let played = Played::new(1);
    let mut none = || None;
    let mut done = |replayed: Replayed| panic!("{replayed:?} was never asked for");
    played.replay_each(3, &again, &mut none, &mut done).expect("no worker fails");
}
