//! Measures of matches that were played out.

use arena_core::scenario::Regulation::{Penalise, Refuse};

use super::evaluation::{evaluate, improvement};
use super::rows::{EvaluationRow, LearningMetrics, StepRow};
use super::*;
use crate::fixture::{Terms, play};
use crate::objective::statistics::Statistics;
use crate::reward::{Episode, RewardKind};

const TERMS: Terms = Terms(120, 100, 60);

/// A match whose buyer reports these arguments, one for every act.
fn argued(turns: &[&str], kinds: &[i32]) -> MatchRecord {
    let mut record = play(Penalise, TERMS, turns);
    let report = |kind: &i32| (arguments::ARGUMENT_METRIC.to_owned(), *kind);
    record.usage[0].metrics = kinds.iter().map(report).collect();
    record
}

fn of_buyer(record: &MatchRecord) -> Played<'_> {
    let episode = Episode { record, role: Role::Buyer, model: "", vocabulary: 1, verdict: None };
    let reward = RewardKind::Surplus.reward().of(&episode).expect("it has one");
    Played { record, role: Role::Buyer, reward }
}

fn measured(records: &[MatchRecord]) -> PlayMetrics {
    play_metrics(records.iter().map(of_buyer))
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.expect("there is a value");
    assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
}

#[test]
fn means_are_taken_over_the_matches_that_they_are_about() {
    let found = measured(&[
        argued(&["B offer 50", "S offer 90", "B accept"], &[0, 0]),
        argued(&["B offer 40", "S offer 90", "B offer 70", "S accept"], &[1, 0]),
        argued(&["B offer 60", "S walk"], &[0]),
        argued(&["B offer 101"], &[0]),
        argued(&["B trap"], &[]),
        argued(&["B offer 50", "S trap"], &[0]),
        argued(&["B reject", "S offer 90", "B walk"], &[0, 0]),
        argued(
            &["B offer 50", "S reject", "B offer 50", "S reject", "B offer 50", "S reject"],
            &[0; 3],
        ),
    ]);
    assert_eq!(found.episodes, 8);
    close(found.deal_rate, 2.0 / 8.0);
    // (100 - 90)/40 and (100 - 70)/40.
    close(found.bargained_ratio, 0.5);
    close(found.reward, (0.25 + 0.75 - 1.0 - 1.0) / 8.0);
    // Delivered first offers: 0.5, 0.4, 0.6, 0.5 and 0.5.
    close(found.opening_ratio, 0.5);
    close(found.overshoot_rate, 1.0 / 8.0);
    close(found.invalid_rate, 1.0 / 8.0);
    close(found.seller_walk_rate, 1.0 / 8.0);
    close(found.buyer_walk_rate, 1.0 / 8.0);
    close(found.opponent_invalid_rate, 1.0 / 8.0);
    close(found.turns, (3.0 + 4.0 + 2.0 + 0.0 + 0.0 + 1.0 + 3.0 + 6.0) / 8.0);
    close(found.timeout_rate, 1.0 / 8.0);
}

#[test]
fn nothing_has_no_values() {
    let found = measured(&[]);
    assert_eq!(found, PlayMetrics::default());
}

#[test]
fn the_lift_compares_concessions_at_the_same_place() {
    let found = measured(&[
        // Turn 0 has no offer of the seller's before it. Turn 1: 100 to 90 after an argument.
        argued(
            &["B offer 40", "S offer 100", "B offer 45", "S offer 90", "B offer 50", "S offer 81"],
            &[0, 3, 0],
        ),
        // Turn 1: 100 to 95 without. Turn 2: a rejection after an argument gives nothing.
        argued(
            &["B offer 40", "S offer 100", "B offer 45", "S offer 95", "B offer 50", "S reject"],
            &[2, 0, 1],
        ),
    ]);
    // At turn 1: 0.1 - 0.05. At turn 2: 0 - 9/90. Both weigh 1/2.
    close(found.argument_lift, (0.05 - 0.1) / 2.0);
    close(found.argument_share, 3.0 / 6.0);
    assert_eq!(found.untagged_episodes, 0);
}

#[test]
fn answers_that_end_a_match_are_no_concessions() {
    let found = measured(&[
        argued(&["B offer 40", "S offer 100", "B offer 90", "S accept"], &[0, 1]),
        argued(&["B offer 40", "S offer 100", "B offer 45", "S walk"], &[0, 0]),
    ]);
    assert_eq!(found.argument_lift, None);
    close(found.argument_share, 0.25);
}

#[test]
fn reports_that_do_not_go_with_the_acts_are_counted_and_not_guessed() {
    let turns = ["B offer 40", "S offer 100", "B offer 45", "S walk"];
    let found = measured(&[argued(&turns, &[1]), argued(&turns, &[1; 4]), argued(&turns, &[])]);
    assert_eq!((found.untagged_episodes, found.argument_share), (3, None));
    // The act that ended in a fault was reported, or not.
    let turns = ["B offer 40", "S offer 100", "B trap"];
    let found = measured(&[argued(&turns, &[1]), argued(&turns, &[1, 1])]);
    assert_eq!((found.untagged_episodes, found.argument_share), (0, Some(1.0)));
}

#[test]
fn refused_moves_take_an_act_of_their_own() {
    let turns =
        ["B offer 101", "B offer 40", "S offer 100", "B offer 102", "B offer 103", "S walk"];
    let mut record = play(Refuse, TERMS, &turns);
    let kinds = [5, 0, 0, 7].map(|kind| (arguments::ARGUMENT_METRIC.to_owned(), kind));
    record.usage[0].metrics = kinds.to_vec();
    // Delivered were 40 without an argument, and a rejection in place of two refused offers.
    let found = measured(&[record]);
    assert_eq!((found.untagged_episodes, found.argument_share), (0, Some(0.0)));
    close(found.overshoot_rate, 1.0);
}

#[test]
fn other_reports_are_not_arguments() {
    let mut record = argued(&["B offer 40", "S walk"], &[0]);
    record.usage[0].metrics.push(("invalid".to_owned(), 1));
    assert_eq!(measured(&[record]).argument_share, Some(0.0));
}

/// Deals at these prices, each over an item of its own.
fn deals(prices: &[u32]) -> Vec<MatchRecord> {
    let deal = |(item, price): (u32, &u32)| {
        let mut record = play(Penalise, TERMS, &[&format!("B offer {price}"), "S accept"]);
        record.item_index = item;
        record
    };
    (0..).zip(prices).map(deal).collect()
}

#[test]
fn an_evaluation_has_intervals_over_items() {
    let records = deals(&[60, 80, 70, 90, 65, 75, 85, 95]);
    let found = evaluate(records.iter().map(of_buyer), 1);
    assert_eq!((found.episodes, found.items), (8, 8));
    close(found.reward.value, 0.5625);
    let (low, high) = (found.reward.low.expect("eight items"), found.reward.high.expect("them"));
    assert!(0.3 < low && low < 0.5 && 0.62 < high && high < 0.8, "{low} to {high}");
    assert_eq!((found.deal_rate.low, found.deal_rate.high), (Some(1.0), Some(1.0)));
    // Copies over the same items add nothing to what is known.
    let twice = evaluate(records.iter().chain(&records).map(of_buyer), 1);
    assert_eq!((twice.episodes, twice.reward), (16, found.reward));
    assert_eq!(evaluate(records.iter().map(of_buyer), 1), found);
    assert_eq!(evaluate(std::iter::empty(), 1).reward.value, None);
}

#[test]
fn an_improvement_is_paired_by_item() {
    let before = deals(&[60, 80, 70, 90, 65, 75, 85, 95]);
    let after = deals(&[60, 79, 69, 89, 64, 74, 84, 94]);
    let found = improvement(before.iter().map(of_buyer), after.iter().map(of_buyer), 3);
    close(found.value, 7.0 / 8.0 / 40.0);
    let low = found.low.expect("there are eight items");
    assert!(low > 0.0, "items differ by far more than the improvement, and still: {low}");
    let none = improvement(before.iter().map(of_buyer), std::iter::empty(), 3);
    assert_eq!(none.value, None);
}

#[test]
fn rows_are_flat_objects_that_are_read_back() {
    let mut row = StepRow { step: 7, ..StepRow::default() };
    row.play = measured(&deals(&[80, 90]));
    row.learning.take(&Statistics::default());
    row.learning.learning_rate = Some(3e-5);
    row.pace.seconds = Some(1.5);
    let line = serde_json::to_string(&row).expect("a row is plain numbers");
    assert!(line.starts_with("{\"step\":7,\"episodes\":2,\"reward\":0.375,"), "{line}");
    assert!(!line.contains('\n'));
    assert_eq!(serde_json::from_str::<StepRow>(&line).expect("it is read back"), row);
    let scalars = row.scalars();
    assert!(scalars.contains(&("learning_rate".to_owned(), 3e-5)), "{scalars:?}");
    assert!(scalars.iter().all(|(name, _)| name != "step" && name != "loss"));
    let step = row.curve_step();
    assert_eq!((step.deal_rate, step.opening), (1.0, row.play.opening_ratio));
}

#[test]
fn evaluation_rows_are_read_back() {
    let records = deals(&[80, 90]);
    let row = EvaluationRow {
        step: 25,
        agent: "learner".to_owned(),
        field: "unseen".to_owned(),
        mode: "greedy".to_owned(),
        measures: evaluate(records.iter().map(of_buyer), 1),
        improvement: None,
    };
    let line = serde_json::to_string(&row).expect("a row is plain numbers");
    assert_eq!(serde_json::from_str::<EvaluationRow>(&line).expect("it is read back"), row);
}

#[test]
fn a_step_without_lessons_says_so_with_no_values() {
    let mut learning = LearningMetrics::default();
    learning.take(&Statistics::default());
    assert_eq!(learning, LearningMetrics::default());
}
