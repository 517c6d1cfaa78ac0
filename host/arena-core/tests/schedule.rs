//! Schedules: written-out cases, and what must hold for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arena_core::config::{Roles, TournamentConfig};
use arena_core::schedule::{PAIRS_MAX, Schedule, ScheduleError, seat_seeds};
use arena_core::seed::Root;
use proptest::prelude::*;

/// Settings of a schedule. Agents are marked as candidates by a star.
#[derive(Debug)]
struct Setup {
    gauntlet: bool,
    self_play: bool,
    agents: Vec<String>,
    repetitions: u32,
}

impl Setup {
    fn config(&self) -> TournamentConfig {
        let kind = if self.gauntlet { "gauntlet" } else { "round-robin" };
        let mut text = format!(
            "name = 'case'\nschedule = '{kind}'\nself_play = {}\nrepetitions = {}\n\
             catalog = {{ kind = 'synthetic', items = 1 }}\n",
            self.self_play, self.repetitions
        );
        for agent in &self.agents {
            let name = agent.trim_start_matches('*');
            text += &format!("[[agents]]\nname = '{name}'\ncomponent = 'builtin:linear'\n");
            if self.gauntlet {
                text += &format!("candidate = {}\n", agent.starts_with('*'));
            }
        }
        TournamentConfig::parse(&text).expect("the case is a tournament")
    }

    fn schedule(&self, item_count: u32) -> Schedule {
        Schedule::new(&self.config(), item_count).expect("the case can be scheduled")
    }
}

fn numbered(agent_count: u16, candidate: impl Fn(u16) -> bool) -> Vec<String> {
    let name = |number| format!("{}agent-{number}", if candidate(number) { "*" } else { "" });
    (0..agent_count).map(name).collect()
}

fn check_case(path: &Path) {
    let text = fs::read_to_string(path).expect("the case is readable");
    let (settings, expected) = text.split_once("\n\n").expect("settings, a blank line, pairs");
    let settings: BTreeMap<&str, &str> = settings
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(" = ").expect("key = value"))
        .collect();
    let setup = Setup {
        gauntlet: settings["schedule"] == "gauntlet",
        self_play: settings["self_play"] == "on",
        agents: settings["agents"].split(' ').map(str::to_owned).collect(),
        repetitions: settings["repetitions"].parse().expect("a number"),
    };
    let schedule = setup.schedule(settings["items"].parse().expect("a number"));
    let mut found = String::new();
    for index in 0..schedule.pair_count() {
        let plan = schedule.pair(index);
        if index % schedule.pairing_count() == 0 {
            let line = format!("\nrepetition {}, item {}:", plan.repetition, plan.item_index);
            found += &line;
        }
        let name = |agent: u16| setup.agents[usize::from(agent)].trim_start_matches('*');
        found += &format!(" {}-{}", name(plan.agents[0]), name(plan.agents[1]));
    }
    assert_eq!(found.trim(), expected.trim(), "{}", path.display());
}

#[test]
fn written_out_schedules_are_followed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/schedule");
    let mut count = 0;
    for file in fs::read_dir(folder).expect("the cases are there") {
        let path = file.expect("a case").path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            check_case(&path);
            count += 1;
        }
    }
    assert!(count >= 6, "{count} cases were found");
}

#[test]
fn a_trillion_pairs_are_numbered_without_being_listed() {
    let agents = numbered(1_000, |_| false);
    let setup = Setup { gauntlet: false, self_play: true, agents, repetitions: 2_200 };
    let schedule = setup.schedule(930);
    assert_eq!(schedule.pair_count(), 500_500 * 930 * 2_200);
    assert!(schedule.pair_count() > 1_000_000_000_000);
    let last = schedule.pair(schedule.pair_count() - 1);
    assert_eq!((last.agents, last.item_index, last.repetition), ([999, 999], 929, 2_199));
    let middle = schedule.pair(500_500 * 930 * 1_100 + 500_500 * 465);
    assert_eq!((middle.agents, middle.item_index, middle.repetition), ([0, 999], 465, 1_100));
}

#[test]
fn nothing_to_play_is_an_error() {
    let agents = numbered(2, |_| false);
    let setup = Setup { gauntlet: false, self_play: false, agents, repetitions: 1 };
    assert_eq!(Schedule::new(&setup.config(), 0), Err(ScheduleError::NoItem));

    let mut config = setup.config();
    config.repetitions = 0;
    assert_eq!(Schedule::new(&config, 1), Err(ScheduleError::NoRepetition));

    let mut config = setup.config();
    config.agents.truncate(1);
    let alone = ScheduleError::NoPairing { agent_count: 1, candidate_count: 0 };
    assert_eq!(Schedule::new(&config, 1), Err(alone));
    config.agents.clear();
    let nobody = ScheduleError::NoPairing { agent_count: 0, candidate_count: 0 };
    assert_eq!(Schedule::new(&config, 1), Err(nobody));
}

#[test]
fn more_pairs_than_can_be_counted_are_an_error() {
    let agents = numbered(1_000, |_| false);
    let setup = Setup { gauntlet: false, self_play: false, agents, repetitions: 1 };
    let mut config = setup.config();
    config.repetitions = u32::MAX;
    let expected = ScheduleError::TooManyPairs {
        pairing_count: 499_500,
        item_count: u32::MAX,
        repetitions: u32::MAX,
    };
    assert_eq!(Schedule::new(&config, u32::MAX), Err(expected));

    config.agents.truncate(2);
    let expected = ScheduleError::TooManyPairs {
        pairing_count: 1,
        item_count: u32::MAX,
        repetitions: u32::MAX,
    };
    assert_eq!(Schedule::new(&config, u32::MAX), Err(expected));
    config.repetitions = u32::MAX / 2;
    let schedule = Schedule::new(&config, u32::MAX).expect("this is just few enough");
    assert!(schedule.pair_count() > PAIRS_MAX - (1 << 33));
    assert_eq!(schedule.match_count() / 2, schedule.pair_count());
}

#[test]
fn more_agents_than_records_can_name_are_an_error() {
    let agents = numbered(2, |_| false);
    let setup = Setup { gauntlet: false, self_play: false, agents, repetitions: 1 };
    let mut config = setup.config();
    config.agents = vec![config.agents[0].clone(); 70_000];
    let expected = ScheduleError::TooManyAgents { agent_count: 70_000 };
    assert_eq!(Schedule::new(&config, 1), Err(expected));
}

#[test]
#[should_panic(expected = "below the schedule's pair count")]
fn a_pair_beyond_the_last_is_a_broken_invariant() {
    let agents = numbered(2, |_| false);
    let setup = Setup { gauntlet: false, self_play: false, agents, repetitions: 3 };
    setup.schedule(5).pair(15);
}

#[test]
fn seats_are_seeded_with_the_first_draws_of_the_pairs_stream() {
    // The numbers of the test vector `7, pair, [12]` of the module `seed`.
    let expected =
        [[0xd5aa15ddc2f65f89, 0xaf102e95c0ca3b90], [0x513e03396d4b1617, 0xb392a58e48544a3c]];
    assert_eq!(seat_seeds(Root::Seed(7), 12), expected);
    assert_ne!(seat_seeds(Root::Seed(7), 13), expected);
    assert_ne!(seat_seeds(Root::Seed(8), 12), expected);
}

#[test]
fn where_candidates_take_one_role_a_pair_is_one_match_in_which_they_have_it() {
    let agents = numbered(5, |agent| agent == 1 || agent == 4);
    let setup = Setup { gauntlet: true, self_play: false, agents, repetitions: 2 };
    let both = setup.schedule(3);
    assert_eq!((both.pair_count(), both.match_count(), both.leg_count()), (36, 72, 2));
    for (roles, place) in [(Roles::CandidatesBuy, 0), (Roles::CandidatesSell, 1)] {
        let mut config = setup.config();
        config.roles = roles;
        let schedule = Schedule::new(&config, 3).expect("the case can be scheduled");
        assert_eq!((schedule.pair_count(), schedule.match_count()), (36, 36));
        assert_eq!(schedule.leg_count(), 1);
        for index in 0..36 {
            let (plan, wanted) = (schedule.pair(index), both.pair(index));
            assert_eq!(plan.seats(0)[place], wanted.agents[0], "{roles:?}: pair {index}");
            assert_eq!(plan.seats(0)[1 - place], wanted.agents[1], "{roles:?}: pair {index}");
            assert_eq!(plan.item_index, wanted.item_index);
            assert_eq!(plan.repetition, wanted.repetition);
        }
    }
}

#[test]
fn candidates_of_one_role_meet_the_same_seat_of_the_field_within_a_group_of_repetitions() {
    let agents = numbered(5, |agent| agent == 1 || agent == 4);
    let mut config = Setup { gauntlet: true, self_play: false, agents, repetitions: 6 }.config();
    config.scenario_group = 3;
    let root = Root::Seed(7);
    for roles in [Roles::CandidatesBuy, Roles::CandidatesSell] {
        config.roles = roles;
        let schedule = Schedule::new(&config, 3).expect("the case can be scheduled");
        let candidate = roles.of_candidates().expect("they have one role");
        let mut met: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
        for plan in (0..schedule.pair_count()).map(|index| schedule.pair(index)) {
            let seeds = schedule.seat_seeds(root, &plan)[0];
            let own = seat_seeds(root, plan.index)[0][candidate.index()];
            assert_eq!(seeds[candidate.index()], own, "{roles:?}: {plan:?}");
            let other = candidate.other().index();
            let address = (plan.item_index, plan.repetition / 3, plan.seats(0)[other]);
            met.entry(address).or_default().insert(seeds[other]);
        }
        assert_eq!(met.len(), 3 * 2 * 3, "items, groups and agents of the field");
        assert!(met.values().all(|seeds| seeds.len() == 1), "{met:?}");
        let all: BTreeSet<u64> = met.values().flatten().copied().collect();
        assert_eq!(all.len(), met.len(), "and no two of them are alike");
    }
    config.roles = Roles::Both;
    let both = Schedule::new(&config, 3).expect("the case can be scheduled");
    assert_eq!(both.seat_seeds(root, &both.pair(5)), seat_seeds(root, 5));
}

fn setups() -> impl Strategy<Value = (Setup, u32)> {
    (any::<bool>(), any::<bool>(), 2_u16..9, 1_u32..6, 1_u32..4, any::<u16>()).prop_map(
        |(gauntlet, self_play, agent_count, item_count, repetitions, candidates)| {
            // Agent 0 is always a candidate and agent 1 never, so that each side has someone.
            let mask = (candidates | 1) & !2;
            let agents = numbered(agent_count, |agent| gauntlet && mask >> agent & 1 == 1);
            (Setup { gauntlet, self_play, agents, repetitions }, item_count)
        },
    )
}

proptest! {
    #[test]
    fn every_pairing_meets_every_item_in_every_repetition_once((setup, items) in setups()) {
        let schedule = setup.schedule(items);
        let plans: Vec<_> = (0..schedule.pair_count()).map(|index| schedule.pair(index)).collect();
        let places: BTreeSet<_> =
            plans.iter().map(|plan| (plan.agents, plan.item_index, plan.repetition)).collect();
        prop_assert_eq!(places.len(), plans.len(), "no two indices give the same plan");
        let pairings: BTreeSet<_> = plans.iter().map(|plan| plan.agents).collect();
        prop_assert_eq!(pairings.len() as u64, schedule.pairing_count());
        let full = pairings.len() * items as usize * setup.repetitions as usize;
        prop_assert_eq!(plans.len(), full, "so every combination is there");
        prop_assert!(plans.iter().all(|plan| plan.item_index < items));
        prop_assert!(plans.iter().all(|plan| plan.repetition < setup.repetitions));
        prop_assert!((0..).zip(&plans).all(|(index, plan): (u64, _)| plan.index == index));
    }

    #[test]
    fn exactly_the_pairings_that_the_file_asks_for_are_there((setup, items) in setups()) {
        let schedule = setup.schedule(items);
        let found: BTreeSet<_> =
            (0..schedule.pairing_count()).map(|index| schedule.pair(index).agents).collect();
        let candidate = |agent: u16| setup.agents[usize::from(agent)].starts_with('*');
        let agent_count = setup.agents.len() as u16;
        let mut expected = BTreeSet::new();
        for first in 0..agent_count {
            for second in 0..agent_count {
                let meet = match (setup.gauntlet, first == second) {
                    (false, false) => first < second,
                    (true, false) => candidate(first) && !candidate(second),
                    (false, true) => setup.self_play,
                    (true, true) => setup.self_play && candidate(first),
                };
                if meet {
                    expected.insert([first, second]);
                }
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn each_agent_buys_as_often_as_it_sells((setup, items) in setups()) {
        let schedule = setup.schedule(items);
        let mut balance = vec![0_i64; setup.agents.len()];
        for index in 0..schedule.pair_count() {
            let plan = schedule.pair(index);
            for leg in [0, 1] {
                let [buyer, seller] = plan.seats(leg);
                balance[usize::from(buyer)] += 1;
                balance[usize::from(seller)] -= 1;
            }
        }
        prop_assert!(balance.iter().all(|&difference| difference == 0));
    }

    #[test]
    fn a_round_robin_never_lets_an_agent_run_ahead(agent_count in 2_u16..12, prefix in 0_u64..66) {
        let agents = numbered(agent_count, |_| false);
        let setup = Setup { gauntlet: false, self_play: false, agents, repetitions: 1 };
        let schedule = setup.schedule(1);
        let mut played = vec![0_u32; usize::from(agent_count)];
        for index in 0..prefix.min(schedule.pair_count()) {
            for agent in schedule.pair(index).agents {
                played[usize::from(agent)] += 1;
            }
        }
        let (least, most) = (played.iter().min(), played.iter().max());
        // Within a round everyone is within one pairing; one who rested is one further behind.
        prop_assert!(most.expect("agents") - least.expect("agents") <= 2, "{played:?}");
    }
}
