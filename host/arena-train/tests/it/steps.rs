//! What a step learns from its matches.

use arena_train::experiment::Experiment;
use arena_train::reward::RewardMicro;
use arena_train::steps::Rewarded;

fn experiment(more: &str) -> Experiment {
    let text = format!(
        r#"name = "steps"
seed = 3
[policy]
kind = "compact"
[learner]
component = "builtin:compact-buyer"
[[opponents]]
name = "one"
component = "builtin:linear"
[[opponents]]
name = "two"
component = "builtin:linear"
[catalog]
kind = "synthetic"
items = 50
[train]
steps = 4
group_size = 2
learning_rate = 0.5
warm_up = 2
{more}
"#
    );
    Experiment::parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// A match of the learner against an opponent, by its place in the announcement.
fn played(opponent: u16, item_index: u32, repetition: u32, reward: i32) -> Rewarded {
    let agents = [0, opponent];
    Rewarded { agents, item_index, repetition, reward: RewardMicro(reward) }
}

#[test]
fn matches_of_one_scenario_and_opponent_are_compared() {
    // Pairings vary fastest in a log, repetitions slowest.
    let matches = [
        played(1, 0, 0, 1_000_000),
        played(2, 0, 0, 500_000),
        played(1, 1, 0, 0),
        played(2, 1, 0, 0),
        played(1, 0, 1, 0),
        played(2, 0, 1, 0),
        played(1, 1, 1, -1_000_000),
        played(2, 1, 1, 0),
    ];
    let found = experiment("").advantages(1, &matches).expect("these are groups");
    let expected =
        [Some(0.5), Some(0.25), Some(0.5), None, Some(-0.5), Some(-0.25), Some(-0.5), None];
    assert_eq!(found.advantages, expected);
    assert_eq!((found.group_count, found.dropped_groups, found.level_groups), (4, 1, 1));
}

#[test]
fn the_order_of_the_log_does_not_matter() {
    let rewards = [3, 1, 4, 1, 5, 9, 2, 6];
    let forward: Vec<Rewarded> = (0..8)
        .map(|place| played(1, place / 2, place % 2, rewards[place as usize] * 1_000))
        .collect();
    let backward: Vec<Rewarded> = forward.iter().rev().copied().collect();
    for more in ["", "shuffle_advantages = true"] {
        let experiment = experiment(more);
        let found = experiment.advantages(1, &forward).expect("these are groups").advantages;
        let mut other = experiment.advantages(1, &backward).expect("these are groups").advantages;
        other.reverse();
        assert_eq!(found, other, "{more}");
    }
}

#[test]
fn shuffled_advantages_differ_by_step_and_follow_from_the_seed() {
    let matches: Vec<Rewarded> =
        (0..16).map(|place| played(1, place / 2, place % 2, place as i32 * 1_000)).collect();
    let honest = experiment("").advantages(1, &matches).expect("these are groups");
    let shuffled = experiment("shuffle_advantages = true");
    let first = shuffled.advantages(1, &matches).expect("these are groups");
    assert_ne!(honest, first);
    assert_eq!(first, shuffled.advantages(1, &matches).expect("these are groups"));
    assert_ne!(first, shuffled.advantages(2, &matches).expect("these are groups"));
}

#[test]
fn the_learning_rate_rises_and_stays() {
    let experiment = experiment("");
    let rates: Vec<f64> = (1..=4).map(|step| experiment.learning_rate(step)).collect();
    assert_eq!(rates, [0.25, 0.5, 0.5, 0.5]);
}
