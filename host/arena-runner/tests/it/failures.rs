//! Defects end a run with an error; none makes it hang.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use arena_core::entry::Entry;
use arena_core::fault::{SeatError, VoidReason};
use arena_core::seat::Seat;
use arena_log::error::LogError;
use arena_runner::SeatRequest;
use arena_runner::error::RunError;
use arena_runner::event::RunEvent;

use crate::stage::{Farthest, ITEMS_BEYOND_WINDOW, Stage, WINDOW, hagglers, items, public};

#[test]
fn a_worker_that_panics_ends_the_run_with_the_pair_and_the_log_goes_on() {
    const BAD: u64 = 91;
    let stage = Stage::new(20);
    let seats = |request: SeatRequest| -> Result<Box<dyn Seat>, SeatError> {
        assert!(request.pair_index != BAD, "seat of a bad pair");
        hagglers(request)
    };
    for workers in [1, 2, 8] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let error = stage.run(folder.path(), workers, &seats).expect_err("a worker panics");
        let RunError::Panicked { pair_index, message } = &error else { panic!("{error:?}") };
        assert_eq!((*pair_index, message.as_str()), (BAD, "seat of a bad pair"));
        let matches = items(folder.path())
            .iter()
            .filter(|item| matches!(item.entry, Entry::Match(_)))
            .count();
        assert_eq!(matches as u64, 2 * BAD, "what came before is written");
        stage.run(folder.path(), workers, &hagglers).expect("the rest is played");
        assert!(public(folder.path()) == stage.reference());
    }
}

#[test]
fn a_listener_that_panics_ends_the_workers_too() {
    let stage = Stage::new(ITEMS_BEYOND_WINDOW);
    let farthest = Farthest::default();
    // The first pair is voided only once the other worker has come as far as it may: that one
    // then waits for a log that will not grow any more.
    let seats = |request: SeatRequest| -> Result<Box<dyn Seat>, SeatError> {
        farthest.note(request.pair_index);
        if request.pair_index > 0 {
            return hagglers(request);
        }
        farthest.wait(WINDOW - 1);
        Err(SeatError::Void { reason: VoidReason::Host, detail: "no slot".to_owned() })
    };
    let folder = tempfile::tempdir().expect("a folder for the test");
    let stop = AtomicBool::new(false);
    let mut tell = |event| {
        if let RunEvent::Voided(_) = event {
            panic!("the screen is gone");
        }
    };
    let ended = catch_unwind(AssertUnwindSafe(|| {
        stage.run_with(folder.path(), 2, &stop, &seats, &mut tell)
    }));
    assert!(ended.is_err(), "the panic reaches the caller");
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let stage = Stage::new(1);
    let folder = tempfile::tempdir().expect("a folder for the test");
    std::fs::write(folder.path().join("notes.txt"), "mine").expect("the disk works");
    let error = stage.run(folder.path(), 1, &hagglers).expect_err("the folder is in use");
    assert!(matches!(error, RunError::Log(LogError::ForeignFile { .. })), "{error:?}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the disk works").count(), 1);
}
