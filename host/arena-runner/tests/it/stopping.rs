//! Stopping a run while all of its matches wait for a model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use arena_core::fault::{SeatError, VoidReason};
use arena_core::scenario::Brief;
use arena_core::seat::{Seat, Usage};
use arena_core::turn::{End, Event, Reply};
use arena_runner::SeatRequest;
use arena_runner::event::{RunEvent, RunStatus};

use crate::stage::{Stage, files, hagglers};

/// As many as a model's batch may have.
const WORKERS: usize = 64;

/// A model that answers nobody until every worker waits for it. Then the run is stopped, and the
/// model ends: it fails half of those that wait.
struct Model<'a> {
    waiting: Mutex<usize>,
    all_wait: Condvar,
    stop: &'a AtomicBool,
}

impl Model<'_> {
    fn ask(&self) {
        let mut waiting = self.waiting.lock().expect("nobody panics");
        *waiting += 1;
        if *waiting == WORKERS {
            self.stop.store(true, Ordering::Relaxed);
            self.all_wait.notify_all();
        }
        while *waiting < WORKERS {
            waiting = self.all_wait.wait(waiting).expect("nobody panics");
        }
    }
}

/// Asks the model as soon as it sits, and never gets further.
struct Asking<'a> {
    model: &'a Model<'a>,
    fails: bool,
}

impl Seat for Asking<'_> {
    fn begin(&mut self, _brief: &Brief) -> Result<(), SeatError> {
        assert!(!self.model.stop.load(Ordering::Relaxed), "a stopped run asks nobody");
        self.model.ask();
        if self.fails {
            let detail = "the model is ending".to_owned();
            return Err(SeatError::Void { reason: VoidReason::ModelProvider, detail });
        }
        Ok(())
    }

    fn act(&mut self, _news: &[Event]) -> Result<Reply, SeatError> {
        panic!("a stopped run asks nobody")
    }

    fn finish(&mut self, _end: &End) {
        panic!("no match comes to its end")
    }

    fn take_usage(&mut self) -> Usage {
        panic!("no match comes to its end")
    }
}

#[test]
fn a_run_stopped_while_all_wait_for_a_model_records_no_void_and_goes_on_to_the_same_bytes() {
    let stage = Stage::new(100);
    assert!(stage.schedule.pair_count() >= WORKERS as u64);
    let stop = AtomicBool::new(false);
    let model = Model { waiting: Mutex::new(0), all_wait: Condvar::new(), stop: &stop };
    let seats = |request: SeatRequest| -> Result<Box<dyn Seat + '_>, SeatError> {
        Ok(Box::new(Asking { model: &model, fails: request.pair_index.is_multiple_of(2) }))
    };
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut voided = 0;
    let mut tell = |event| voided += u32::from(matches!(event, RunEvent::Voided(_)));
    let summary = stage.run_with(folder.path(), WORKERS, &stop, &seats, &mut tell);
    let summary = summary.expect("being stopped is no failure");
    assert_eq!(summary.status, RunStatus::Interrupted);
    assert_eq!((summary.counts.pairs_done, summary.counts.void_count, voided), (0, 0, 0));

    stage.run(folder.path(), 2, &hagglers).expect("the run goes on");
    let at_once = tempfile::tempdir().expect("a folder for the test");
    stage.run(at_once.path(), 2, &hagglers).expect("hagglers play to the end");
    assert!(files(folder.path()) == files(at_once.path()), "the bytes differ");
}
