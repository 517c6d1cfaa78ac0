//! A run that was stopped or killed goes on to the same bytes, and touches no other log.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arena_core::entry::{Announcement, Close, Entry};
use arena_core::fault::{SeatError, VoidReason};
use arena_core::record::{MatchRecord, VoidRecord};
use arena_core::seat::Seat;
use arena_core::seed::{Root, Stream};
use arena_log::plain::error::LogError;
use arena_log::plain::path_in;
use arena_log::plain::writer::LogWriter;
use arena_runner::SeatRequest;
use arena_runner::error::RunError;
use arena_runner::event::{RunEvent, RunStatus};
use tempfile::TempDir;

use crate::stage::{Stage, bytes, entries, hagglers};

const SEED: u64 = 20_260_801;
const POINTS: u64 = 20;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

fn nobody(_: SeatRequest) -> Result<Box<dyn Seat>, SeatError> {
    panic!("nobody is asked to play")
}

#[test]
fn a_run_stopped_at_random_points_goes_on_to_the_same_bytes() {
    let stage = Stage::new(20);
    let wanted = stage.reference();
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
            assert_eq!(finished, bytes(folder.path()) == wanted, "point {point}");
            assert!(wanted.starts_with(&bytes(folder.path())), "point {point}");
        }
        let summary = stage.run(folder.path(), 2, &hagglers).expect("the rest is played");
        assert_eq!(summary.status, RunStatus::Finished);
        assert!(bytes(folder.path()) == wanted, "seed {SEED} point {point}");
    }
}

#[test]
fn a_run_killed_at_random_bytes_goes_on_to_the_same_bytes() {
    let stage = Stage::new(10);
    let wanted = stage.reference();
    for point in 0..2 * POINTS {
        let mut stream = Stream::derive(Root::Seed(SEED), "kill", &[point]);
        let folder = folder();
        let mut left = wanted.clone();
        left.truncate(stream.below(wanted.len() as u64) as usize);
        if point % 2 == 1 {
            // A power cut can leave sectors of zeros.
            left.resize(left.len() + stream.below(2_000) as usize, 0);
        }
        fs::write(path_in(folder.path()), left).expect("the disk works");
        let workers = 1 + stream.below(8) as usize;
        stage.run(folder.path(), workers, &hagglers).expect("the rest is played");
        assert!(bytes(folder.path()) == wanted, "seed {SEED} point {point}");
    }
}

#[test]
fn what_a_killed_run_leaves_at_any_byte_of_the_first_entries_is_gone_on_with() {
    let stage = Stage::new(1);
    let wanted = stage.reference();
    let announced = 16 + 8 + Entry::Announcement(stage.announcement.clone()).encode().len();
    let cuts = (0..20).chain(announced - 9..announced + 40);
    for cut in cuts {
        let folder = folder();
        fs::write(path_in(folder.path()), &wanted[..cut]).expect("the disk works");
        stage.run(folder.path(), 1, &hagglers).expect("the rest is played");
        assert!(bytes(folder.path()) == wanted, "cut at {cut}");
    }
}

#[test]
fn only_what_is_missing_is_played_again() {
    let stage = Stage::new(3);
    let folder = folder();
    let wanted = stage.reference();
    fs::write(path_in(folder.path()), &wanted[..wanted.len() / 2]).expect("the disk works");
    let first = AtomicU64::new(u64::MAX);
    let seats = |request: SeatRequest| {
        first.fetch_min(request.pair_index, Ordering::Relaxed);
        hagglers(request)
    };
    let summary = stage.run(folder.path(), 2, &seats).expect("the rest is played");
    assert!(summary.pairs_resumed > 3, "half of the log holds some pairs");
    assert_eq!(first.load(Ordering::Relaxed), summary.pairs_resumed);
}

#[test]
fn a_closed_log_is_finished_and_left_alone() {
    let stage = Stage::new(2);
    let folder = folder();
    let summary = stage.run(folder.path(), 2, &hagglers).expect("hagglers play to the end");
    let before = bytes(folder.path());
    let mut news = Vec::new();
    let stop = AtomicBool::new(false);
    let again = stage.run_with(folder.path(), 2, &stop, &nobody, &mut |event| news.push(event));
    let again = again.expect("there is nothing left to fail");
    assert_eq!(again.counts, summary.counts);
    assert_eq!(again.pairs_resumed, stage.schedule.pair_count());
    assert_eq!(news, [RunEvent::Finished(again)]);
    assert!(bytes(folder.path()) == before);
}

/// Checks that a run refuses the log that lies in `folder`, and leaves it as it is.
fn refuse(stage: &Stage, folder: &Path) -> RunError {
    let before = bytes(folder);
    let error = stage.run(folder, 2, &nobody).expect_err("the log is not this job's");
    assert!(bytes(folder) == before, "a refused log is left as it is");
    error
}

/// Turns a job's announcement into that of another.
type Change = fn(&mut Announcement);

#[test]
fn a_log_of_another_tournament_is_refused_with_the_field_that_differs() {
    let stage = Stage::new(1);
    let change: [(&str, Change); 11] = [
        ("name", |other| other.name.push('x')),
        ("seed", |other| other.seed += 1),
        ("item_count", |other| other.item_count += 1),
        ("catalog_sha256", |other| other.catalog_sha256[31] ^= 1),
        ("agents", |other| other.agents.truncate(3)),
        ("agents[1].name", |other| other.agents[1].name.push('x')),
        ("agents[2].component_sha256", |other| other.agents[2].component_sha256[0] = 0),
        ("agents[3].params", |other| other.agents[3].params.push('x')),
        ("pair_count", |other| other.pair_count += 1),
        ("engine line 2", |other| other.engine.push_str(" fuel")),
        ("config_toml line 4", |other| {
            other.config_toml = other.config_toml.replace("[rules]", "[rules] # stricter");
        }),
    ];
    for (wanted, change) in change {
        let folder = folder();
        let mut other = stage.announcement.clone();
        change(&mut other);
        let mut writer = LogWriter::create(folder.path()).expect("an empty folder");
        writer.append_all(&[&Entry::Announcement(other).encode()]).expect("the disk works");
        drop(writer);
        let error = refuse(&stage, folder.path());
        assert!(error.hint().is_some_and(|hint| hint.contains("--out")));
        let RunError::AnnouncementDiffers { field, found, wanted: ours } = error else {
            panic!("{error:?}");
        };
        assert_eq!(field, wanted);
        assert_ne!(found, ours);
    }
}

#[test]
fn a_longer_config_or_engine_is_a_difference_too() {
    let stage = Stage::new(1);
    let change: [Change; 4] = [
        |other| other.config_toml.push('\n'),
        |other| other.config_toml.truncate(20),
        |other| other.engine.push_str("\nmore=1"),
        |other| other.engine.clear(),
    ];
    for change in change {
        let folder = folder();
        let mut other = stage.announcement.clone();
        change(&mut other);
        let mut writer = LogWriter::create(folder.path()).expect("an empty folder");
        writer.append_all(&[&Entry::Announcement(other).encode()]).expect("the disk works");
        drop(writer);
        let error = refuse(&stage, folder.path());
        assert!(matches!(error, RunError::AnnouncementDiffers { .. }), "{error:?}");
    }
}

fn leg_of(entries: &mut [Entry], place: usize) -> &mut MatchRecord {
    match &mut entries[place] {
        Entry::Match(record) => record,
        other => panic!("entry {place} is {other:?}"),
    }
}

fn void(pair_index: u64, attempt: u32) -> Entry {
    Entry::Void(VoidRecord { pair_index, attempt, reason: VoidReason::Host })
}

fn close(match_count: u64) -> Entry {
    Entry::Close(Close { match_count, void_count: 0 })
}

/// Makes a sound log of ten pairs one that no run writes.
type Tampering = fn(&mut Vec<Entry>);

/// What was done, the first entry that is out of order, and how to do it.
const TAMPERINGS: [(&str, u64, Tampering); 13] = [
    ("the legs of a pair are swapped", 1, |entries| entries.swap(1, 2)),
    ("two pairs are swapped", 3, |entries| entries[3..7].rotate_left(2)),
    ("a pair is missing", 3, |entries| drop(entries.drain(3..5))),
    ("a leg is there twice", 2, |entries| entries.insert(1, entries[1].clone())),
    ("another agent plays", 5, |entries| leg_of(entries, 5).agents[0] ^= 1),
    ("another seed was given", 6, |entries| leg_of(entries, 6).seeds[1] += 1),
    ("another item is sold", 6, |entries| leg_of(entries, 6).item_index += 1),
    ("a void is between the legs", 2, |entries| entries.insert(2, void(0, 0))),
    ("a void is of another pair", 3, |entries| entries.insert(3, void(0, 0))),
    ("a void is missing", 3, |entries| entries.insert(3, void(1, 1))),
    ("the close comes early", 19, |entries| drop(entries.drain(19..21))),
    ("the close counts wrong", 21, |entries| entries[21] = close(19)),
    ("something follows the close", 22, |entries| entries.push(close(20))),
];

#[test]
fn entries_out_of_order_are_refused_by_number_and_left_as_they_are() {
    let stage = Stage::new(1);
    let whole = folder();
    stage.run(whole.path(), 1, &hagglers).expect("hagglers play to the end");
    for (name, wanted, tamper) in TAMPERINGS {
        let mut entries = entries(whole.path());
        tamper(&mut entries);
        let folder = folder();
        let mut writer = LogWriter::create(folder.path()).expect("an empty folder");
        for entry in &entries {
            writer.append_all(&[&entry.encode()]).expect("the disk works");
        }
        drop(writer);
        let error = refuse(&stage, folder.path());
        let RunError::Misplaced { entry_index, .. } = error else { panic!("{name}: {error:?}") };
        assert_eq!(entry_index, wanted, "{name}: {error}");
    }
}

#[test]
fn a_damaged_log_is_refused_and_left_as_it_is() {
    let stage = Stage::new(2);
    let good = stage.reference();
    let folder = folder();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 4;
    fs::write(path_in(folder.path()), &damaged).expect("the disk works");
    let error = refuse(&stage, folder.path());
    assert!(matches!(error, RunError::Log(LogError::Damaged { .. })), "{error:?}");
    // Nothing is ever written after the close, so this is no crash's work either.
    let longer = [&good[..], b"more"].concat();
    fs::write(path_in(folder.path()), longer).expect("the disk works");
    let error = refuse(&stage, folder.path());
    assert!(matches!(error, RunError::Log(LogError::TornTail { .. })), "{error:?}");
}

#[test]
fn a_whole_frame_that_is_no_entry_is_refused_by_number() {
    let stage = Stage::new(1);
    let folder = folder();
    let mut writer = LogWriter::create(folder.path()).expect("an empty folder");
    let announcement = Entry::Announcement(stage.announcement.clone()).encode();
    writer.append_all(&[&announcement, b"ARNA\0\x01\0\x09"]).expect("the disk works");
    drop(writer);
    let error = refuse(&stage, folder.path());
    assert!(matches!(error, RunError::Entry { entry_index: 1, .. }), "{error:?}");
    assert_eq!(error.to_string(), "entry 1 of the log: unknown kind 9");
}

#[test]
fn a_second_run_of_the_same_folder_is_refused() {
    let stage = Stage::new(1);
    let folder = folder();
    let held = LogWriter::create(folder.path()).expect("an empty folder");
    let error = refuse(&stage, folder.path());
    assert!(matches!(error, RunError::Log(LogError::Locked { .. })), "{error:?}");
    drop(held);
}
