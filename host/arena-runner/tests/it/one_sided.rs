//! Tournaments in which candidates take one role only, and repetitions share scenarios: one match
//! for each pair, the same bytes however they came about, and nothing else is gone on with.

use std::num::NonZeroUsize;

use arena_core::catalog::draw_scenario;
use arena_core::entry::{Close, Entry};
use arena_core::fault::SeatError;
use arena_core::rules;
use arena_core::scenario::Role;
use arena_core::schedule::seat_seeds;
use arena_core::seat::{ModelCall, Seat};
use arena_core::seed::{Root, Stream};
use arena_runner::SeatRequest;
use arena_runner::reexecution::{Ending, Reexecution, Task, reexecute};

use crate::forge;
use crate::stage::{
    JOURNAL, JOURNAL_HEADER_BYTES, Stage, hagglers, items, public, put, signed_sizes,
};

/// Points at which a run is killed.
const POINTS: u64 = 20;

#[test]
fn each_pair_has_one_match_in_which_candidates_have_their_role() {
    for (roles, candidate_role) in
        [("candidates-buy", Role::Buyer), ("candidates-sell", Role::Seller)]
    {
        let stage = Stage::one_sided(roles, 3);
        let folder = tempfile::tempdir().expect("a folder for the test");
        let summary = stage.run(folder.path(), 3, &hagglers).expect("hagglers play to the end");
        assert_eq!((summary.pair_count, summary.counts.match_count), (72, 72), "{roles}");
        let items = items(folder.path());
        assert_eq!(items.len(), 1 + 72 + 2);
        for (index, item) in (0..72_u64).zip(&items[1..]) {
            let record = item.transcript().record;
            let plan = stage.schedule.pair(index);
            assert_eq!((record.pair_index, record.leg), (index, 0));
            assert_eq!(record.agents, plan.agents);
            assert_eq!(record.agents[candidate_role.index()] % 2, 1, "{roles}: pair {index}");
            assert_eq!(record.agents[candidate_role.other().index()] % 2, 0);
            assert_eq!(record.seeds, stage.schedule.seat_seeds(stage.root(), &plan)[0]);
            let side = candidate_role.index();
            assert_eq!(record.seeds[side], seat_seeds(stage.root(), index)[0][side]);
            let (item, group) = (plan.item_index, plan.repetition / 3 * 3);
            let scenario = draw_scenario(&stage.config, &stage.catalog, stage.root(), item, group);
            assert_eq!((record.opener, record.horizon), (scenario.opener, scenario.horizon));
            rules::replay(&stage.rules, &record).expect("a record replays");
        }
        let tournament = stage.tournament();
        let close = Close { tournament, match_count: 72, void_count: 0 };
        assert_eq!(items[73].entry, Entry::Close(close));
    }
}

#[test]
fn logs_of_one_two_and_eight_workers_are_the_same_bytes() {
    let stage = Stage::one_sided("candidates-buy", 12);
    let wanted = stage.reference();
    for workers in [2, 8] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        stage.run(folder.path(), workers, &hagglers).expect("hagglers play to the end");
        assert!(public(folder.path()) == wanted, "{workers} workers");
        assert_eq!(signed_sizes(folder.path()), [1, 256, 290, 291]);
    }
}

#[test]
fn a_run_killed_at_random_bytes_goes_on_to_the_same_bytes() {
    let stage = Stage::one_sided("candidates-sell", 12);
    let wanted = stage.reference();
    // Before the head at 256 entries, and after it.
    for (place, pairs) in [150, 270].into_iter().enumerate() {
        let left = stage.interrupted(pairs, &hagglers);
        for point in 0..POINTS {
            let mut stream = Stream::derive(Root::Seed(1), "kill", &[place as u64, point]);
            let folder = tempfile::tempdir().expect("a folder for the test");
            let bytes = left[JOURNAL].len() as u64;
            let cut = stream.between(JOURNAL_HEADER_BYTES as u64, bytes) as usize;
            let mut torn = left.clone();
            torn.get_mut(JOURNAL).expect("there is a journal").truncate(cut);
            put(folder.path(), &torn);
            let workers = 1 + stream.below(8) as usize;
            stage.run(folder.path(), workers, &hagglers).expect("the rest is played");
            assert!(public(folder.path()) == wanted, "pairs {pairs} point {point}");
        }
    }
}

#[test]
fn a_log_with_swapped_seats_is_not_gone_on_with() {
    let stage = Stage::one_sided("candidates-buy", 3);
    let whole = tempfile::tempdir().expect("a folder for the test");
    put(whole.path(), &stage.interrupted(20, &hagglers));
    let mut items = items(whole.path());
    let mut transcript = items[8].transcript();
    transcript.record.agents.reverse();
    items[8].attachment = transcript.encode();
    items[8].entry = Entry::Match(transcript.entry(&items[8].attachment));
    let folder = tempfile::tempdir().expect("a folder for the test");
    drop(forge::played(&stage, folder.path(), &items));
    let error = stage.run(folder.path(), 1, &hagglers).expect_err("the seats are swapped");
    let plan = stage.schedule.pair(7);
    let [buyer, seller] = plan.agents;
    let wanted = format!(
        "entry 8 of the log has the `agents` `{seller}, {buyer}`, expected `{buyer}, {seller}`"
    );
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn matches_come_out_again_and_a_second_leg_is_none_of_them() {
    let stage = Stage::one_sided("candidates-sell", 3);
    let folder = tempfile::tempdir().expect("a folder for the test");
    stage.run(folder.path(), 2, &hagglers).expect("hagglers play to the end");
    let matches = items(folder.path()).into_iter().zip(0_u64..);
    let mut tasks: Vec<Task> = matches
        .filter_map(|(item, entry_index)| match item.entry {
            Entry::Match(entry) => Some(Task { entry_index, entry, transcript: item.attachment }),
            _ => None,
        })
        .collect();
    tasks[5].entry.leg = 1;
    let Stage { announcement, config, rules, schedule, catalog, .. } = &stage;
    let again = |request: SeatRequest, _: &[ModelCall]| -> Result<Box<dyn Seat>, SeatError> {
        hagglers(request)
    };
    let job = Reexecution {
        announcement,
        config,
        rules,
        schedule,
        catalog,
        root: stage.root(),
        workers: NonZeroUsize::new(3).expect("at least one worker"),
        seats: &again,
    };
    let (mut tasks, mut endings) = (tasks.into_iter(), Vec::new());
    reexecute(&job, &mut || tasks.next(), &mut |one| endings.push(one.ending))
        .expect("no worker fails");
    assert_eq!(endings.len(), 72);
    for (place, ending) in endings.into_iter().enumerate() {
        match place {
            5 => {
                let detail = "pair 5, leg 1 of 72 pairs is not scheduled".to_owned();
                assert_eq!(ending, Ending::Unreadable { detail });
            }
            _ => assert_eq!(ending, Ending::Same, "match {place}"),
        }
    }
}
