//! The log does not depend on who played what when.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use arena_core::catalog::draw_scenario;
use arena_core::entry::{Close, Entry, Reveal};
use arena_core::fault::{Fault, SeatError};
use arena_core::record::Outcome;
use arena_core::rules;
use arena_core::scenario::{Brief, Role};
use arena_core::schedule::seat_seeds;
use arena_core::seat::{Seat, Usage};
use arena_core::transcript::Transcript;
use arena_core::turn::{End, Event, Reply};
use arena_runner::SeatRequest;
use arena_runner::event::{RunEvent, RunStatus};

use crate::hagglers::Haggler;
use crate::stage::{
    Farthest, ITEMS_BEYOND_WINDOW, Item, Stage, WINDOW, WINDOW_BYTES, hagglers, items, public,
    signed_sizes,
};

#[test]
fn logs_of_one_two_and_eight_workers_are_the_same_bytes() {
    let stage = Stage::new(30);
    let wanted = stage.reference();
    for workers in [2, 8] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        stage.run(folder.path(), workers, &hagglers).expect("hagglers play to the end");
        assert!(public(folder.path()) == wanted, "{workers} workers");
    }
}

#[test]
fn every_leg_of_the_schedule_has_one_record_in_its_place_that_replays() {
    let stage = Stage::new(40);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let summary = stage.run(folder.path(), 3, &hagglers).expect("hagglers play to the end");
    let pair_count = stage.schedule.pair_count();
    assert_eq!(pair_count, 400);
    let items = items(folder.path());
    assert_eq!(items.len() as u64, 1 + 2 * pair_count + 2);
    assert_eq!(items[0].entry, Entry::Announcement(stage.opening.clone()));
    let mut faults = [0; Fault::ALL.len()];
    let mut outcomes = BTreeSet::new();
    for (place, item) in items[1..items.len() - 2].iter().enumerate() {
        let Transcript { record, .. } = check_match(&stage, place, item);
        let outcome = format!("{:?}", record.outcome);
        outcomes.insert(outcome.split(' ').next().map(str::to_owned));
        if let Outcome::Faulted { fault, .. } = record.outcome {
            faults[Fault::ALL.iter().position(|class| *class == fault).expect("listed")] += 1;
        }
    }
    let tournament = stage.tournament();
    let close = Close { tournament, match_count: 2 * pair_count, void_count: 0 };
    assert_eq!(items[items.len() - 2].entry, Entry::Close(close));
    let reveal = Reveal { tournament, secret: None };
    assert_eq!(items[items.len() - 1].entry, Entry::Reveal(reveal));
    assert_eq!(summary.status, RunStatus::Finished);
    assert_eq!(summary.counts.match_count, 2 * pair_count);
    assert_eq!(summary.counts.faults, faults);
    assert_eq!(signed_sizes(folder.path()), [1, 256, 512, 768, 802, 803]);
    // The seats above are worth their name only if they do everything.
    assert!(faults.iter().all(|count| *count > 0), "{faults:?}");
    assert_eq!(outcomes.len(), 4, "{outcomes:?}");
}

/// Checks that the match at a place is the scheduled one, and returns its transcript.
fn check_match(stage: &Stage, place: usize, item: &Item) -> Transcript {
    let transcript = item.transcript();
    assert_eq!(
        transcript,
        Transcript::new(stage.tournament(), stage.root(), transcript.record.clone())
    );
    assert_eq!(item.entry, Entry::Match(transcript.entry(&item.attachment)));
    let record = &transcript.record;
    let plan = stage.schedule.pair(place as u64 / 2);
    let leg = (place % 2) as u8;
    assert_eq!((record.pair_index, record.leg), (plan.index, leg));
    assert_eq!(record.agents, plan.seats(leg));
    assert_eq!(record.seeds, seat_seeds(stage.root(), plan.index)[place % 2]);
    let (item, repetition) = (plan.item_index, plan.repetition);
    assert_eq!((record.item_index, record.repetition), (item, repetition));
    let scenario = draw_scenario(&stage.config, &stage.catalog, stage.root(), item, repetition);
    let reserves = (record.budget, record.cost, record.opener, record.horizon);
    assert_eq!(reserves, (scenario.budget, scenario.cost, scenario.opener, scenario.horizon));
    rules::replay(&stage.rules, record).expect("a record replays");
    transcript
}

#[test]
fn a_seat_that_cannot_be_made_faults_before_the_first_turn() {
    let stage = Stage::new(1);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let seats = |request: SeatRequest| -> Result<Box<dyn Seat>, SeatError> {
        if request.agent == 2 { Err(Fault::Memory.into()) } else { hagglers(request) }
    };
    stage.run(folder.path(), 2, &seats).expect("the others play to the end");
    let mut seen = 0;
    for item in items(folder.path()) {
        let Entry::Match(_) = item.entry else {
            continue;
        };
        let record = item.transcript().record;
        let Some(place) = record.agents.iter().position(|agent| *agent == 2) else {
            continue;
        };
        let Outcome::Faulted { by, fault } = record.outcome else {
            panic!("{record:?}");
        };
        assert!(record.turns.is_empty());
        // Where the opponent is a buyer that faults at its beginning, its fault comes first.
        if by == Role::BOTH[place] {
            assert_eq!(fault, Fault::Memory);
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen} matches");
}

#[test]
fn no_pair_is_begun_further_ahead_of_the_log_than_the_window() {
    let stage = Stage::new(ITEMS_BEYOND_WINDOW);
    let farthest = Farthest::default();
    let seats = |request: SeatRequest| -> Result<Box<dyn Seat>, SeatError> {
        farthest.note(request.pair_index);
        if request.pair_index == 0 && request.leg == 1 && request.role == Role::Seller {
            // The first pair ends only after the other worker has come as far as it may.
            assert_eq!(farthest.wait(WINDOW - 1), WINDOW - 1);
        }
        hagglers(request)
    };
    let folder = tempfile::tempdir().expect("a folder for the test");
    stage.run(folder.path(), 2, &seats).expect("hagglers play to the end");
    assert!(public(folder.path()) == stage.reference());
}

/// A haggler that notes so much that its pairs weigh millions of bytes.
struct Chronicler(Haggler);

/// Bytes that each of a pair's four seats notes.
const NOTES_BYTES: usize = 1 << 20;

impl Seat for Chronicler {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        self.0.begin(brief)
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        self.0.act(news)
    }

    fn finish(&mut self, end: &End) {
        self.0.finish(end);
    }

    fn take_usage(&mut self) -> Usage {
        let mut usage = self.0.take_usage();
        usage.trace.push("x".repeat(NOTES_BYTES));
        usage
    }
}

#[test]
fn no_pair_is_begun_while_more_bytes_wait_for_an_earlier_one_than_may() {
    let stage = Stage::new(10);
    let pairs_max = WINDOW_BYTES / (4 * NOTES_BYTES as u64);
    let (farthest, stop) = (Farthest::default(), AtomicBool::new(false));
    let seats = |request: SeatRequest| -> Result<Box<dyn Seat>, SeatError> {
        farthest.note(request.pair_index);
        if request.pair_index == 0 && request.role == Role::Buyer {
            // The pair after those that fill the window may be begun before they are finished.
            let come = farthest.wait(pairs_max - 1);
            assert!(come <= pairs_max + 1, "{come} of {pairs_max}");
            stop.store(true, Ordering::Relaxed);
        }
        Ok(Box::new(Chronicler(Haggler::new(request.seed))))
    };
    let folder = tempfile::tempdir().expect("a folder for the test");
    let summary = stage.run_with(folder.path(), 2, &stop, &seats, &mut |_| {});
    let summary = summary.expect("being stopped is no failure");
    assert_eq!((summary.status, summary.counts.pairs_done), (RunStatus::Interrupted, 0));
}

#[test]
fn the_news_begin_with_the_start_grow_and_end_with_the_summary() {
    let stage = Stage::new(30);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut news = Vec::new();
    let mut tell = |event| news.push(event);
    let stop = AtomicBool::new(false);
    let summary = stage.run_with(folder.path(), 2, &stop, &hagglers, &mut tell);
    let summary = summary.expect("hagglers play to the end");
    let pair_count = stage.schedule.pair_count();
    assert_eq!(
        news.first(),
        Some(&RunEvent::Started { pairs_done: 0, pair_count, matches_done: 0 })
    );
    assert_eq!(news.last(), Some(&RunEvent::Finished(summary)));
    let mut pairs_before = 0;
    for event in &news[1..news.len() - 1] {
        let RunEvent::Progress { counts, .. } = event else { panic!("{event:?}") };
        assert!(counts.pairs_done > pairs_before && counts.match_count == 2 * counts.pairs_done);
        pairs_before = counts.pairs_done;
    }
}
