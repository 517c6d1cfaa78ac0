//! A disk that fails or stops at every single operation, and a run that goes on afterwards.
//!
//! Whatever happens: no two heads of one size are ever to be seen, nothing that a visible head
//! covers is ever lost, and where the same records are appended again, the public folder ends
//! up as if nothing had happened.

use std::collections::BTreeMap;

use arena_log::blobs::Visibility;
use arena_log::checkpoint::Head;
use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::reader::{Access, LogReader};
use arena_log::tree::Frontier;
use arena_log::writer::LogWriter;

use crate::faulty::{Fault, FaultyDisk};
use crate::kit::{
    ORIGIN, append, append_to, assert_log, assert_same_files, attachment, entry, filler,
    public_files, settings,
};

/// Entries up to the close. Heads are due at 1, 256, here, and after one more.
const CLOSE: u64 = 270;
/// The same for a log that is short enough to try pairs of faults.
const SHORT_CLOSE: u64 = 3;
/// Crashes that are tried at each operation.
const CRASHES: u64 = 5;
/// Operations between two second faults that are tried after one first fault.
const PAIR_STEP: u64 = 11;
/// Most runs that a scenario takes to come to its end.
const RUNS_MAX: u64 = 60;

/// Numbers that a test draws from; the seed is in the name of the case.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^ (drawn >> 31)
    }
}

/// What is appended, and up to where.
#[derive(Clone, Copy, Debug)]
struct Job {
    close: u64,
    /// Whether each run appends something else.
    is_fickle: bool,
}

impl Job {
    fn steady(close: u64) -> Job {
        Job { close, is_fickle: false }
    }

    fn record(self, run: u64, index: u64) -> (Vec<u8>, Vec<u8>) {
        if !self.is_fickle {
            return (entry(index), attachment(index));
        }
        let salt = format!("run {run}");
        (filler(&salt, index, 60), filler(&salt, index + 1, 30))
    }
}

/// One run: takes up what is there, or starts, and goes on to the end.
fn run(disk: &FaultyDisk, job: Job, number: u64) -> Result<(), LogError> {
    let mut writer = match LogWriter::open_on(disk.storage(), settings(256)) {
        Ok(reopened) => {
            let whole = reopened.size();
            let signed = reopened.signed.as_ref().map_or(0, |head| head.size);
            // Who appends something else gives up all that is not signed, every other time.
            let size = if job.is_fickle && number % 2 == 1 { signed } else { whole };
            reopened.resume_at(size)?
        }
        Err(LogError::Missing { .. }) => LogWriter::create_on(disk.storage(), settings(256))?,
        Err(error) => return Err(error),
    };
    writer.put_blob(b"rules", Visibility::Public)?;
    writer.put_blob(b"secret", Visibility::Private)?;
    while writer.size() <= job.close {
        let size = writer.size();
        let end = match size {
            0 => 1,
            _ if size == job.close => size + 1,
            _ if job.is_fickle => job.close.min(size + 70 + number % 9),
            _ => job.close.min(size + 70),
        };
        // A fickle job signs at sizes that the next run will not come by.
        if size == 1 || size == job.close || (job.is_fickle && size > 0) {
            writer.checkpoint()?;
        }
        if size == job.close {
            writer.publish()?;
        }
        let records = (size..end).map(|index| job.record(number, index));
        append(&mut writer, &records.collect::<Vec<_>>())?;
        writer.sync()?;
    }
    writer.checkpoint().map(drop)
}

/// Runs until the end is reached; the disk has been told what goes wrong.
fn run_to_the_end(disk: &FaultyDisk, job: Job, mut between: impl FnMut(&FaultyDisk)) {
    for number in 0..RUNS_MAX {
        if run(disk, job, number).is_ok() {
            return;
        }
        between(disk);
    }
    panic!("the end was not reached in {RUNS_MAX} runs");
}

/// Asserts that whatever was ever visible agrees with itself and with the finished log.
fn assert_never_contradicted(disk: &FaultyDisk, job: Job, case: &str) {
    let reader = LogReader::open_on(disk.storage(), Access::Owner);
    let mut reader = reader.unwrap_or_else(|error| panic!("{case}: {error}"));
    reader.verify_tree().unwrap_or_else(|error| panic!("{case}: {error}"));
    let mut roots = BTreeMap::new();
    let mut frontier = Frontier::new();
    while let Some(record) = reader.next_record().expect("the records are read") {
        frontier.append(Hash::leaf(record.entry));
        roots.insert(frontier.size(), frontier.root());
    }
    assert_eq!(frontier.size(), job.close + 1, "{case}");
    let vkey = settings(256).key.vkey(ORIGIN).expect("a key");
    for (path, bytes) in disk.heads_seen() {
        let (size, root) = if path == "private/last-signed" {
            let line = String::from_utf8(bytes).expect("a text");
            let (size, root) = line.trim_end().split_once(' ').expect("two words");
            (size.parse().expect("a size"), Hash::from_hex(root).expect("a root"))
        } else {
            let head = Head::open(&bytes, &vkey);
            let head = head.unwrap_or_else(|error| panic!("{case}: `{path}`: {error}"));
            (head.size, head.root)
        };
        assert_eq!(roots.get(&size), Some(&root), "{case}: `{path}` of size {size}");
    }
}

/// What a steady job leaves where nothing goes wrong, and for each operation whether it
/// changes anything.
fn files_without_faults(close: u64) -> (BTreeMap<String, Vec<u8>>, Vec<bool>) {
    let (disk, job) = (FaultyDisk::new(), Job::steady(close));
    run(&disk, job, 0).expect("nothing fails");
    let changes = disk.changes();
    assert_log(&disk.storage(), close + 1);
    assert_never_contradicted(&disk, job, "without faults");
    (public_files(&*disk.storage()), changes)
}

/// Asserts the end of a run, then stops the machine at once: all of it must be durable.
fn assert_end(disk: &FaultyDisk, job: Job, wanted: &BTreeMap<String, Vec<u8>>, case: &str) {
    disk.clear_fault();
    disk.crash(|| 0);
    assert_never_contradicted(disk, job, case);
    if !job.is_fickle {
        let found = public_files(&*disk.storage());
        let same = std::panic::catch_unwind(|| assert_same_files(&found, wanted));
        assert!(same.is_ok(), "{case}: the public folder differs");
    }
}

fn fail_each_operation(fault: Fault, is_fickle: bool) {
    let job = Job { close: CLOSE, is_fickle };
    let (wanted, changes) = files_without_faults(CLOSE);
    for (at, changes) in changes.into_iter().enumerate() {
        // An operation that changes nothing cannot land.
        if fault == Fault::FailsAfterLanding && !changes {
            continue;
        }
        let disk = FaultyDisk::new();
        disk.set_fault(at as u64, fault);
        run_to_the_end(&disk, job, |_| ());
        assert_end(&disk, job, &wanted, &format!("{fault:?} at operation {at}"));
    }
}

#[test]
fn an_operation_that_fails_without_landing_loses_and_contradicts_nothing() {
    fail_each_operation(Fault::Fails, false);
}

#[test]
fn an_operation_that_fails_after_landing_loses_and_contradicts_nothing() {
    fail_each_operation(Fault::FailsAfterLanding, false);
}

#[test]
fn after_a_failure_other_records_contradict_nothing_that_was_signed() {
    fail_each_operation(Fault::Fails, true);
    fail_each_operation(Fault::FailsAfterLanding, true);
}

/// What of the unsynced operations a crash lets through.
fn crash(disk: &FaultyDisk, crash: u64, draws: &mut Draws) {
    match crash {
        0 => disk.crash(|| 0),
        1 => disk.crash(|| 1),
        2 => disk.crash(|| draws.next() % 2),
        _ => disk.crash(|| draws.next()),
    }
}

fn stop_at_each_operation(is_fickle: bool) {
    let job = Job { close: CLOSE, is_fickle };
    let (wanted, changes) = files_without_faults(CLOSE);
    let changing = changes.iter().enumerate().filter(|(_, changes)| **changes);
    for (at, _) in changing {
        for number in 0..CRASHES {
            let mut draws = Draws(at as u64 * CRASHES + number);
            let disk = FaultyDisk::new();
            disk.set_fault(at as u64, Fault::Stops);
            run_to_the_end(&disk, job, |disk| crash(disk, number, &mut draws));
            let case = format!("crash {number} before operation {at}");
            assert_end(&disk, job, &wanted, &case);
        }
    }
}

#[test]
fn a_machine_that_stops_loses_and_contradicts_nothing() {
    stop_at_each_operation(false);
}

#[test]
fn after_a_crash_other_records_contradict_nothing_that_was_signed() {
    stop_at_each_operation(true);
}

/// An operation fails, the log is taken up on the same machine, which then stops: what the
/// first process failed to sync must not be what the second one relies on.
#[test]
fn a_failure_and_then_a_crash_lose_and_contradict_nothing() {
    let (_, changes) = files_without_faults(SHORT_CLOSE);
    let job = Job { close: SHORT_CLOSE, is_fickle: true };
    let changing = changes.iter().enumerate().filter(|(_, changes)| **changes);
    for (first, _) in changing {
        for fault in [Fault::Fails, Fault::FailsAfterLanding] {
            // Where the next first fault begins one further on, the second does as well.
            let mut later = first as u64 % PAIR_STEP;
            let mut is_over = false;
            while !is_over {
                let disk = FaultyDisk::new();
                disk.set_fault(first as u64, fault);
                let mut has_stopped = false;
                run_to_the_end(&disk, job, |disk| {
                    if disk.is_stopped() {
                        has_stopped = true;
                        disk.crash(|| 0);
                    } else {
                        disk.set_fault(disk.operations() + later, Fault::Stops);
                    }
                });
                let case = format!("{fault:?} at operation {first}, stopped {later} later");
                assert_end(&disk, job, &BTreeMap::new(), &case);
                is_over = !has_stopped;
                later += PAIR_STEP;
            }
        }
    }
}

/// What a failed head left is removed for good, or it would lie among the files of later ones.
#[test]
fn no_file_of_a_head_that_failed_comes_back_after_a_crash() {
    let begin = || {
        let disk = FaultyDisk::new();
        let writer = LogWriter::create_on(disk.storage(), settings(256));
        let mut writer = writer.expect("a log is made");
        append_to(&mut writer, 1, 1);
        writer.checkpoint().expect("the first head");
        append_to(&mut writer, 71, 70);
        (disk, writer)
    };
    let (disk, mut writer) = begin();
    let first = disk.operations();
    writer.checkpoint().expect("nothing fails");
    for at in first..disk.operations() {
        let (disk, mut writer) = begin();
        disk.set_fault(at, Fault::Fails);
        let failed = writer.checkpoint().is_err();
        drop(writer);
        assert!(failed, "operation {at}");
        let reopened = LogWriter::open_on(disk.storage(), settings(256)).expect("it opens");
        let signed = reopened.signed.as_ref().map_or(0, |head| head.size);
        let mut writer = reopened.resume_at(signed).expect("it goes on");
        append_to(&mut writer, 256, 256);
        drop(writer);
        disk.crash(|| 0);
        assert_log(&disk.storage(), 256);
    }
}

#[test]
fn one_fault_after_the_other_loses_and_contradicts_nothing() {
    let (wanted, changes) = files_without_faults(CLOSE);
    for case in 0..400 {
        let mut draws = Draws(0xfa17 + case);
        let job = Job { close: CLOSE, is_fickle: case % 2 == 1 };
        let mut disk = FaultyDisk::new();
        if case % 4 < 2 {
            disk = disk.that_syncs_everything();
        }
        let mut faults = 1 + draws.next() % 8;
        let mut next = |disk: &FaultyDisk, draws: &mut Draws| {
            let at = disk.operations() + draws.next() % (changes.len() as u64 / 2);
            let fault = [Fault::Fails, Fault::FailsAfterLanding, Fault::Stops];
            match faults {
                0 => disk.clear_fault(),
                _ => disk.set_fault(at, fault[(draws.next() % 3) as usize]),
            }
            faults = faults.saturating_sub(1);
        };
        next(&disk, &mut draws);
        run_to_the_end(&disk, job, |disk| {
            // A process that failed may be followed by a crash of the machine, or not.
            if disk.is_stopped() || draws.next().is_multiple_of(2) {
                let number = draws.next() % CRASHES;
                crash(disk, number, &mut draws);
            }
            next(disk, &mut draws);
        });
        assert_end(&disk, job, &wanted, &format!("case {case}"));
    }
}
