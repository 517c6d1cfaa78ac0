//! A disk that fails or stops at every single operation of a run, and runs that go on.
//!
//! Whatever happens, the public folder ends up as if nothing had happened, and no head was
//! ever to be seen that the finished log does not have.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arena_core::seed::{Root, Stream};
use arena_log::storage::Storage;
use arena_runner::error::RunError;

use crate::faulty::{Fault, FaultyDisk};
use crate::stage::{Files, Stage, hagglers};

/// Most runs that a tournament takes to come to its end.
const RUNS_MAX: u32 = 60;
/// What a test draws from.
const SEED: u64 = 7;

/// A tournament with a draw, a head in the middle and a reveal.
fn stage() -> Stage {
    Stage::committed(13)
}

fn run(stage: &Stage, disk: &FaultyDisk) -> Result<(), RunError> {
    let stop = AtomicBool::new(false);
    let nowhere = std::path::Path::new("nowhere");
    let run = stage.with_job(nowhere, 1, &hagglers, |job| {
        arena_runner::run_on(job, &disk.storage(), &stop, &mut |_| {})
    });
    run.map(drop)
}

/// Runs until the end is reached; `between` is what happens after a run that failed.
fn run_to_the_end(stage: &Stage, disk: &FaultyDisk, mut between: impl FnMut(&FaultyDisk)) {
    for _ in 0..RUNS_MAX {
        match run(stage, disk) {
            Ok(()) => return,
            Err(RunError::Log(_)) => between(disk),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the end was not reached in {RUNS_MAX} runs");
}

fn public(storage: &dyn Storage) -> Files {
    let mut files = Files::new();
    collect(storage, "", &mut files);
    files
}

fn collect(storage: &dyn Storage, folder: &str, files: &mut Files) {
    let items = storage.list(folder, 1_000).expect("no fault is set").expect("a few names");
    for item in items {
        let path = format!("{folder}/{}", item.name);
        let path = path.trim_start_matches('/');
        if path == "private" {
            continue;
        }
        match storage.open(path) {
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).expect("no fault is set");
                files.insert(path.to_owned(), bytes);
            }
            Err(_) => collect(storage, path, files),
        }
    }
}

/// What a run without faults leaves, and which of its operations change anything.
fn without_faults(stage: &Stage) -> (Files, Vec<bool>) {
    let disk = FaultyDisk::new();
    run(stage, &disk).expect("nothing fails");
    let changes = disk.changes();
    let files = public(&*disk.storage());
    assert_eq!(files, stage.reference(), "a disk in memory is no other");
    (files, changes)
}

/// Checks the end of a run, after the machine has stopped at once: all of it must be durable.
fn check(disk: &FaultyDisk, wanted: &Files, case: &str) {
    disk.clear_fault();
    disk.crash(|| 0);
    let found = public(&*Arc::clone(&disk.storage()));
    let paths = |files: &Files| files.keys().cloned().collect::<Vec<String>>();
    assert_eq!(paths(&found), paths(wanted), "{case}");
    for (path, bytes) in &found {
        assert!(*bytes == wanted[path], "{case}: `{path}` differs");
    }
    for (path, bytes) in disk.heads_seen() {
        let is_head = path.starts_with("checkpoint");
        assert!(!is_head || wanted.values().any(|file| *file == bytes), "{case}: `{path}`");
    }
}

#[test]
fn an_operation_that_fails_landing_or_not_leaves_the_same_public_folder() {
    let stage = stage();
    let (wanted, changes) = without_faults(&stage);
    for (at, changes) in changes.into_iter().enumerate() {
        for fault in [Fault::Fails, Fault::FailsAfterLanding] {
            // An operation that changes nothing cannot land.
            if fault == Fault::FailsAfterLanding && !changes {
                continue;
            }
            let disk = FaultyDisk::new();
            disk.set_fault(at as u64, fault);
            run_to_the_end(&stage, &disk, |_| ());
            check(&disk, &wanted, &format!("{fault:?} at operation {at}"));
        }
    }
}

#[test]
fn a_machine_that_stops_anywhere_leaves_the_same_public_folder() {
    let stage = stage();
    let (wanted, changes) = without_faults(&stage);
    let changing = changes.iter().enumerate().filter(|(_, changes)| **changes);
    for (at, _) in changing {
        for crash in 0..3 {
            let mut stream = Stream::derive(Root::Seed(SEED), "crash", &[at as u64, crash]);
            let disk = FaultyDisk::new();
            disk.set_fault(at as u64, Fault::Stops);
            run_to_the_end(&stage, &disk, |disk| match crash {
                0 => disk.crash(|| 0),
                1 => disk.crash(|| 1),
                _ => disk.crash(|| stream.bits()),
            });
            check(&disk, &wanted, &format!("crash {crash} before operation {at}, seed {SEED}"));
        }
    }
}
