//! What the host's failures leave on the record.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use arena_core::entry::{Close, Entry};
use arena_core::fault::{SeatError, VoidReason};
use arena_core::record::VoidRecord;
use arena_core::scenario::{Brief, Role};
use arena_core::seat::{Seat, Usage};
use arena_core::seed::{Root, Stream};
use arena_core::turn::{End, Event, Reply};
use arena_runner::error::RunError;
use arena_runner::event::{RunEvent, Voiding};
use arena_runner::{SeatRequest, VOID_ATTEMPTS_MAX};

use crate::hagglers::mix;
use crate::stage::{Item, JOURNAL, JOURNAL_HEADER_BYTES, Stage, hagglers, items, public, put};

/// A host that fails a pair as often as `times` says, before it lets it be played.
struct FailingHost<F> {
    times: F,
    failed: Mutex<BTreeMap<u64, u32>>,
}

impl<F: Fn(u64) -> u32> FailingHost<F> {
    fn new(times: F) -> FailingHost<F> {
        FailingHost { times, failed: Mutex::default() }
    }

    /// Fails in one seat of the pair: while it is made in the first leg, or when it is begun
    /// in the second leg.
    fn seat(&self, request: SeatRequest) -> Result<Box<dyn Seat>, SeatError> {
        let SeatRequest { pair_index, leg, role, .. } = request;
        let chosen = u64::from(leg) == mix(pair_index) % 2 && role == Role::Buyer;
        let mut failed = self.failed.lock().expect("nobody panics");
        let failed = failed.entry(pair_index).or_default();
        if !chosen || *failed >= (self.times)(pair_index) {
            return hagglers(request);
        }
        *failed += 1;
        if leg == 0 {
            return Err(host_failure());
        }
        Ok(Box::new(Disconnected))
    }
}

fn host_failure() -> SeatError {
    SeatError::Void { reason: VoidReason::Host, detail: "no free slot".to_owned() }
}

/// A seat whose model is gone when it is begun.
struct Disconnected;

impl Seat for Disconnected {
    fn begin(&mut self, _brief: &Brief) -> Result<(), SeatError> {
        let detail = "no answer".to_owned();
        Err(SeatError::Void { reason: VoidReason::ModelProvider, detail })
    }

    fn act(&mut self, _news: &[Event]) -> Result<Reply, SeatError> {
        panic!("a seat that could not begin is asked for nothing")
    }

    fn finish(&mut self, _end: &End) {
        panic!("a voided match has no end")
    }

    fn take_usage(&mut self) -> Usage {
        panic!("a voided match has no usage")
    }
}

/// Splits a log into its matches and its voids.
fn split(folder: &Path) -> (Vec<Item>, Vec<VoidRecord>) {
    let mut matches = Vec::new();
    let mut voids = Vec::new();
    for item in items(folder) {
        match &item.entry {
            Entry::Void(entry) => voids.push(entry.void),
            Entry::Match(_) => matches.push(item),
            _ => {}
        }
    }
    (matches, voids)
}

/// Pairs 0, 5, 10, ... fail, by turns once and twice.
fn now_and_then(pair_index: u64) -> u32 {
    if pair_index.is_multiple_of(5) { 1 + (pair_index % 2) as u32 } else { 0 }
}

#[test]
fn voided_pairs_are_on_the_record_in_their_place_and_played_to_the_same_matches() {
    let stage = Stage::new(10);
    let smooth = tempfile::tempdir().expect("a folder for the test");
    stage.run(smooth.path(), 1, &hagglers).expect("hagglers play to the end");
    let (wanted, none) = split(smooth.path());
    assert!(none.is_empty());
    let mut logs = Vec::new();
    for workers in [1, 2, 8] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let host = FailingHost::new(now_and_then);
        let seats = |request| host.seat(request);
        let summary = stage.run(folder.path(), workers, &seats).expect("it comes round");
        let (matches, voids) = split(folder.path());
        assert!(matches == wanted, "{workers} workers");
        assert_eq!(summary.counts.void_count, voids.len() as u64);
        let places: Vec<(u64, u32)> =
            voids.iter().map(|void| (void.pair_index, void.attempt)).collect();
        let expected: Vec<(u64, u32)> = (0..stage.schedule.pair_count())
            .flat_map(|pair| (0..now_and_then(pair)).map(move |attempt| (pair, attempt)))
            .collect();
        assert_eq!(places, expected);
        logs.push(folder);
    }
    let first = public(logs[0].path());
    assert!(logs.iter().all(|log| public(log.path()) == first));
    for neighbours in items(logs[0].path()).windows(2) {
        let (Entry::Void(void), after) = (&neighbours[0].entry, &neighbours[1].entry) else {
            continue;
        };
        let belongs = match after {
            Entry::Match(next) => next.leg == 0 && next.pair_index == void.void.pair_index,
            Entry::Void(next) => next.void.pair_index == void.void.pair_index,
            _ => false,
        };
        assert!(belongs, "{void:?} is followed by {after:?}");
    }
}

#[test]
fn a_pair_that_keeps_failing_stops_the_run_by_name_and_can_be_gone_on_with() {
    const BAD: u64 = 37;
    let stage = Stage::new(10);
    for workers in [1, 4] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let host = FailingHost::new(|pair| if pair == BAD { u32::MAX } else { 0 });
        let seats = |request| host.seat(request);
        for run in 0..2 {
            let mut told = Vec::new();
            let mut tell = |event| {
                if let RunEvent::Voided(voiding) = event {
                    told.push(voiding);
                }
            };
            let stop = AtomicBool::new(false);
            let error = stage.run_with(folder.path(), workers, &stop, &seats, &mut tell);
            let error = error.expect_err("the host keeps failing");
            let RunError::Voided { attempts, last } = &error else { panic!("{error:?}") };
            let voids_before = run * VOID_ATTEMPTS_MAX;
            let Voiding { pair_index, attempt, reason, detail } = last;
            assert_eq!((*attempts, *pair_index), (VOID_ATTEMPTS_MAX, BAD));
            assert_eq!(*attempt, voids_before + VOID_ATTEMPTS_MAX - 1);
            let text = error.to_string();
            assert!(text.contains("pair 37") && text.contains(reason.name()), "{text}");
            assert!(text.contains(detail.as_str()), "{text}");
            assert!(error.hint().is_some_and(|hint| hint.contains("goes on")));
            assert_eq!(told.len() as u32, VOID_ATTEMPTS_MAX);
            // Everything before the pair is there, and its failures, and nothing after.
            let (matches, voids) = split(folder.path());
            assert_eq!(matches.len() as u64, 2 * BAD);
            let attempts: Vec<u32> = voids.iter().map(|void| void.attempt).collect();
            assert_eq!(attempts, (0..voids_before + VOID_ATTEMPTS_MAX).collect::<Vec<u32>>());
        }
        let summary = stage.run(folder.path(), workers, &hagglers).expect("the host is well");
        assert_eq!(summary.pairs_resumed, BAD);
        let close = Close {
            tournament: stage.tournament(),
            match_count: stage.schedule.match_count(),
            void_count: u64::from(2 * VOID_ATTEMPTS_MAX),
        };
        let items = items(folder.path());
        assert_eq!(items[items.len() - 2].entry, Entry::Close(close));
        let again = stage.run(folder.path(), workers, &hagglers).expect("the log is closed");
        assert_eq!(again.counts, summary.counts);
    }
}

#[test]
fn a_killed_run_over_a_failing_host_keeps_the_voids_that_are_whole_and_the_same_matches() {
    const SEED: u64 = 5;
    let stage = Stage::new(4);
    let smooth = tempfile::tempdir().expect("a folder for the test");
    stage.run(smooth.path(), 1, &hagglers).expect("hagglers play to the end");
    let (wanted, _) = split(smooth.path());
    let failing = |folder: &Path, workers| {
        let host = FailingHost::new(now_and_then);
        stage.run(folder, workers, &|request| host.seat(request)).expect("it comes round")
    };
    let pair_count = stage.schedule.pair_count();
    let host = FailingHost::new(now_and_then);
    let left = stage.interrupted(pair_count - 1, &|request| host.seat(request));
    for point in 0..20 {
        let mut stream = Stream::derive(Root::Seed(SEED), "kill", &[point]);
        let folder = tempfile::tempdir().expect("a folder for the test");
        let mut left = left.clone();
        let journal = left.get_mut(JOURNAL).expect("there is a journal");
        let kept = stream.between(JOURNAL_HEADER_BYTES as u64, journal.len() as u64);
        journal.truncate(kept as usize);
        put(folder.path(), &left);
        let summary = failing(folder.path(), 1 + stream.below(4) as usize);
        let (matches, voids) = split(folder.path());
        assert!(matches == wanted, "seed {SEED} point {point}");
        assert_eq!(summary.counts.void_count, voids.len() as u64);
        // The log is read, and every void with it, before a finished one is left alone.
        let again = stage.run(folder.path(), 1, &hagglers).expect("the log is finished");
        assert_eq!(again.counts, summary.counts, "seed {SEED} point {point}");
    }
}
