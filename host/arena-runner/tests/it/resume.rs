//! A run that was stopped or killed goes on to the same bytes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arena_core::entry::Entry;
use arena_core::fault::{SeatError, VoidReason};
use arena_core::seat::Seat;
use arena_core::seed::{Root, Stream};
use arena_log::writer::LogWriter;
use arena_runner::error::RunError;
use arena_runner::event::{RunEvent, RunStatus};
use arena_runner::{SeatRequest, VOID_ATTEMPTS_MAX};
use tempfile::TempDir;

use crate::forge;
use crate::stage::{
    Files, JOURNAL, JOURNAL_HEADER_BYTES, Stage, files, hagglers, items, nobody, public, put,
    signed_sizes,
};

const SEED: u64 = 20_260_801;
const POINTS: u64 = 20;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

/// Returns what is left of a log whose journal ends after some bytes.
fn cut(left: &Files, journal_bytes: usize) -> Files {
    let mut left = left.clone();
    left.get_mut(JOURNAL).expect("there is a journal").truncate(journal_bytes);
    left
}

fn journal_bytes(left: &Files) -> usize {
    left[JOURNAL].len()
}

#[test]
fn a_run_stopped_at_random_points_goes_on_to_the_same_bytes() {
    let stage = Stage::new(20);
    let whole = folder();
    stage.run(whole.path(), 1, &hagglers).expect("hagglers play to the end");
    let (wanted, all) = (public(whole.path()), items(whole.path()));
    let seats_in_all = 4 * stage.schedule.pair_count();
    for point in 0..POINTS {
        let mut stream = Stream::derive(Root::Seed(SEED), "stop", &[point]);
        let folder = folder();
        let mut pairs_before = 0;
        // Stops up to three times on the way, each time with another number of workers.
        for _ in 0..3 {
            let after = 1 + stream.below(seats_in_all / 2);
            let workers = 1 + stream.below(4) as usize;
            let stop = AtomicBool::new(false);
            let made = AtomicU64::new(0);
            let seats = |request: SeatRequest| {
                if made.fetch_add(1, Ordering::Relaxed) >= after {
                    stop.store(true, Ordering::Relaxed);
                }
                hagglers(request)
            };
            let summary = stage.run_with(folder.path(), workers, &stop, &seats, &mut |_| {});
            let summary = summary.expect("being stopped is no failure");
            assert_eq!(summary.pairs_resumed, pairs_before, "point {point}");
            pairs_before = summary.counts.pairs_done;
            let finished = summary.status == RunStatus::Finished;
            assert_eq!(finished, public(folder.path()) == wanted, "point {point}");
            assert!(all.starts_with(&items(folder.path())), "point {point}");
        }
        let summary = stage.run(folder.path(), 2, &hagglers).expect("the rest is played");
        assert_eq!(summary.status, RunStatus::Finished);
        assert!(public(folder.path()) == wanted, "seed {SEED} point {point}");
    }
}

#[test]
fn a_run_killed_at_random_bytes_goes_on_to_the_same_bytes() {
    let stage = Stage::new(20);
    let wanted = stage.reference();
    // Before the first head that covers matches, and after it.
    for (place, pairs) in [100, 190].into_iter().enumerate() {
        let left = stage.interrupted(pairs, &hagglers);
        for point in 0..POINTS {
            let mut stream = Stream::derive(Root::Seed(SEED), "kill", &[place as u64, point]);
            let folder = folder();
            let range = (JOURNAL_HEADER_BYTES as u64, journal_bytes(&left) as u64);
            let mut left = cut(&left, stream.between(range.0, range.1) as usize);
            if point % 2 == 1 {
                // A power cut can leave sectors of zeros.
                let journal = left.get_mut(JOURNAL).expect("there is a journal");
                journal.resize(journal.len() + stream.below(2_000) as usize, 0);
            }
            put(folder.path(), &left);
            let workers = 1 + stream.below(8) as usize;
            stage.run(folder.path(), workers, &hagglers).expect("the rest is played");
            assert!(public(folder.path()) == wanted, "seed {SEED} pairs {pairs} point {point}");
        }
    }
}

#[test]
fn what_a_killed_run_leaves_at_any_byte_of_the_first_entries_is_gone_on_with() {
    let stage = Stage::new(1);
    let wanted = stage.reference();
    let left = stage.interrupted(2, &hagglers);
    // A frame begins with a checksum, the length of the entry and that of its attachment.
    let number = |at: usize| left[JOURNAL][at..at + 4].try_into().map(u32::from_be_bytes);
    let lengths = [4, 8].map(|at| number(JOURNAL_HEADER_BYTES + at).expect("four bytes"));
    let first_end = JOURNAL_HEADER_BYTES + 12 + (lengths[0] + lengths[1]) as usize;
    let cuts = JOURNAL_HEADER_BYTES..JOURNAL_HEADER_BYTES + 30;
    for bytes in cuts.chain(first_end - 9..first_end + 20) {
        let folder = folder();
        put(folder.path(), &cut(&left, bytes));
        stage.run(folder.path(), 1, &hagglers).expect("the rest is played");
        assert!(public(folder.path()) == wanted, "cut at {bytes}");
    }
}

#[test]
fn only_what_is_missing_is_played_again() {
    let stage = Stage::new(3);
    let folder = folder();
    let left = stage.interrupted(20, &hagglers);
    put(folder.path(), &cut(&left, journal_bytes(&left) / 2));
    let first = AtomicU64::new(u64::MAX);
    let seats = |request: SeatRequest| {
        first.fetch_min(request.pair_index, Ordering::Relaxed);
        hagglers(request)
    };
    let summary = stage.run(folder.path(), 2, &seats).expect("the rest is played");
    assert!(summary.pairs_resumed > 3, "half of the journal holds some pairs");
    assert_eq!(first.load(Ordering::Relaxed), summary.pairs_resumed);
    assert!(public(folder.path()) == stage.reference());
}

/// Leaves what is there when a run is killed right after a head was signed between the two
/// legs of pair 127.
fn signed_between_legs(stage: &Stage, folder: &std::path::Path) {
    let left = stage.interrupted(128, &hagglers);
    put(folder, &cut(&left, JOURNAL_HEADER_BYTES));
    assert_eq!(signed_sizes(folder), [1, 256]);
    let items = items(folder);
    let last = &items.last().expect("there are entries").entry;
    assert!(matches!(last, Entry::Match(entry) if (entry.pair_index, entry.leg) == (127, 0)));
}

#[test]
fn a_first_leg_that_is_signed_stays_and_only_its_second_leg_is_played() {
    let stage = Stage::new(20);
    let folder = folder();
    signed_between_legs(&stage, folder.path());
    let seats = |request: SeatRequest| {
        assert!((request.pair_index, request.leg) > (127, 0), "{request:?} is played again");
        hagglers(request)
    };
    let summary = stage.run(folder.path(), 3, &seats).expect("the rest is played");
    assert_eq!(summary.pairs_resumed, 127);
    assert_eq!(summary.counts.match_count, stage.schedule.match_count());
    assert!(public(folder.path()) == stage.reference());
}

#[test]
fn a_failing_host_between_two_signed_legs_leaves_no_void_there() {
    let stage = Stage::new(20);
    let folder = folder();
    signed_between_legs(&stage, folder.path());
    let failing = |request: SeatRequest| -> Result<Box<dyn Seat>, SeatError> {
        if request.pair_index > 127 {
            return hagglers(request);
        }
        Err(SeatError::Void { reason: VoidReason::Host, detail: "no slot".to_owned() })
    };
    let mut told = 0;
    let mut tell = |event| told += u32::from(matches!(event, RunEvent::Voided(_)));
    let stop = AtomicBool::new(false);
    let error = stage.run_with(folder.path(), 2, &stop, &failing, &mut tell);
    let error = error.expect_err("the host keeps failing");
    assert!(matches!(error, RunError::Voided { .. }), "{error:?}");
    assert_eq!(told, VOID_ATTEMPTS_MAX);
    assert_eq!(items(folder.path()).len(), 256);
    stage.run(folder.path(), 2, &hagglers).expect("the host is well");
    assert!(public(folder.path()) == stage.reference());
}

#[test]
fn a_finished_log_is_left_alone() {
    let stage = Stage::new(2);
    let folder = folder();
    let summary = stage.run(folder.path(), 2, &hagglers).expect("hagglers play to the end");
    let before = files(folder.path());
    let mut news = Vec::new();
    let stop = AtomicBool::new(false);
    let again = stage.run_with(folder.path(), 2, &stop, &nobody, &mut |event| news.push(event));
    let again = again.expect("there is nothing left to fail");
    assert_eq!(again.counts, summary.counts);
    assert_eq!(again.pairs_resumed, stage.schedule.pair_count());
    assert_eq!(news, [RunEvent::Finished(again)]);
    assert!(files(folder.path()) == before);
}

/// What a run does once everything is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Close,
    SignClose,
    Publish,
    Reveal,
    SignReveal,
}

const STEPS: [Step; 5] =
    [Step::Close, Step::SignClose, Step::Publish, Step::Reveal, Step::SignReveal];

#[test]
fn a_run_killed_between_any_two_steps_of_its_end_is_finished() {
    let stage = Stage::secret(2);
    let whole = folder();
    stage.run(whole.path(), 1, &hagglers).expect("hagglers play to the end");
    let (wanted, all) = (public(whole.path()), items(whole.path()));
    let (reveal, rest) = all.split_last().expect("the log has an end");
    let (close, played) = rest.split_last().expect("the log has an end");
    for done in 0..=STEPS.len() {
        let folder = folder();
        let mut writer = forge::played(&stage, folder.path(), played);
        for step in &STEPS[..done] {
            match step {
                Step::Close => forge::append(&mut writer, close),
                Step::Reveal => forge::append(&mut writer, reveal),
                Step::SignClose | Step::SignReveal => drop(forge::sign(&mut writer)),
                Step::Publish => writer.publish().expect("the disk works"),
            }
        }
        writer.sync().expect("the disk works");
        drop(writer);
        let before = public(folder.path());
        let summary = stage.run(folder.path(), 2, &nobody).expect("nothing is left to play");
        assert_eq!(summary.status, RunStatus::Finished);
        assert_eq!(summary.counts.match_count, stage.schedule.match_count());
        assert!(public(folder.path()) == wanted, "{:?} were done", &STEPS[..done]);
        assert_eq!(before == wanted, done == STEPS.len(), "{:?} were done", &STEPS[..done]);
    }
}

#[test]
fn a_reveal_before_anything_was_published_is_written_again_in_its_place() {
    let stage = Stage::secret(2);
    let whole = folder();
    stage.run(whole.path(), 1, &hagglers).expect("hagglers play to the end");
    let folder = folder();
    let mut writer = forge::played(&stage, folder.path(), &items(whole.path()));
    writer.sync().expect("the disk works");
    drop(writer);
    stage.run(folder.path(), 2, &nobody).expect("nothing is left to play");
    assert!(public(folder.path()) == public(whole.path()));
}

#[test]
fn a_log_that_was_begun_but_not_signed_is_begun_again() {
    let stage = Stage::committed(1);
    let wanted = stage.reference();
    let folder = folder();
    drop(LogWriter::create(folder.path(), stage.settings()).expect("an empty folder"));
    stage.run(folder.path(), 1, &hagglers).expect("hagglers play to the end");
    assert!(public(folder.path()) == wanted);
}
