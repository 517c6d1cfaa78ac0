//! Rewards of matches that were played out.

use arena_core::scenario::Regulation::{Allow, Penalise, Refuse};
use arena_core::seat::{CallTokens, TokenScore};

use super::*;
use crate::fixture::{POLICY, Terms, call, play, sampled};

fn of(kind: RewardKind, record: &MatchRecord, role: Role) -> Result<RewardMicro, RewardError> {
    let (model, vocabulary) = (POLICY, 90);
    kind.reward().of(&Episode { record, role, model, vocabulary, verdict: None })
}

/// The rewards of both seats, in millionths.
fn surplus(record: &MatchRecord) -> [i32; 2] {
    Role::BOTH.map(|role| of(RewardKind::Surplus, record, role).expect("it has one").0)
}

fn unpunished(record: &MatchRecord) -> [i32; 2] {
    Role::BOTH.map(|role| of(RewardKind::SurplusUnpunished, record, role).expect("it has one").0)
}

const FEASIBLE: Terms = Terms(120, 100, 70);
const INFEASIBLE: Terms = Terms(120, 70, 100);

#[test]
fn a_deal_is_worth_its_share_of_the_room_rounded_to_millionths() {
    let record = play(Penalise, FEASIBLE, &["B offer 50", "S offer 90", "B accept"]);
    assert_eq!(surplus(&record), [333_333, 666_667]);
    assert_eq!(unpunished(&record), [333_333, 666_667]);
}

#[test]
fn no_deal_is_worth_nothing_whoever_ended_it() {
    for turns in [
        &["B offer 50", "S walk"][..],
        &["B offer 50", "S offer 110", "B walk"],
        &["B offer 50", "S reject", "B offer 50", "S reject", "B offer 50", "S reject"],
    ] {
        let record = play(Penalise, FEASIBLE, turns);
        assert_eq!((surplus(&record), unpunished(&record)), ([0, 0], [0, 0]), "{turns:?}");
    }
}

#[test]
fn a_fault_costs_its_own_seat_one_and_the_other_nothing() {
    let record = play(Penalise, FEASIBLE, &["B trap"]);
    assert_eq!((surplus(&record), unpunished(&record)), ([-1_000_000, 0], [-1_000_000, 0]));
    let record = play(Penalise, FEASIBLE, &["B offer 50", "S trap"]);
    assert_eq!((surplus(&record), unpunished(&record)), ([0, -1_000_000], [0, -1_000_000]));
}

#[test]
fn breaking_the_reserve_costs_one_however_it_is_regulated() {
    let penalised = play(Penalise, FEASIBLE, &["B offer 101"]);
    assert_eq!((surplus(&penalised), unpunished(&penalised)), ([-1_000_000, 0], [0, 0]));
    let turns = ["B offer 101", "B offer 80", "S accept"];
    let refused = play(Refuse, FEASIBLE, &turns);
    assert_eq!(surplus(&refused), [-1_000_000, 333_333]);
    assert_eq!(unpunished(&refused), [666_667, 333_333]);
    let allowed = play(Allow, FEASIBLE, &["B offer 130", "S accept"]);
    assert_eq!(
        (surplus(&allowed), unpunished(&allowed)),
        ([-1_000_000, 1_000_000], [0, 1_000_000])
    );
}

#[test]
fn where_no_deal_is_worth_making_the_seat_that_pays_for_one_loses() {
    let record = play(Allow, INFEASIBLE, &["B offer 70", "S accept"]);
    assert_eq!(surplus(&record), [0, -1_000_000], "the seller took less than its cost");
    assert_eq!(unpunished(&record), [0, 0]);
}

#[test]
fn where_regulation_penalises_the_reward_is_that_of_the_tables() {
    let games: [&[&str]; 6] = [
        &["B offer 50", "S offer 90", "B accept"],
        &["B offer 50", "S offer 110", "B accept"],
        &["B offer 69", "S accept"],
        &["B offer 100", "S accept"],
        &["B trap"],
        &["B offer 50", "S walk"],
    ];
    for turns in games {
        let record = play(Penalise, FEASIBLE, turns);
        for role in Role::BOTH {
            let found = of(RewardKind::Surplus, &record, role).expect("it has one");
            assert_eq!(Some(found.0), millionths(reward(&record, role)), "{turns:?} {role}");
        }
    }
}

#[test]
fn names_are_those_of_experiment_files() {
    for kind in RewardKind::ALL {
        let name = kind.reward().name();
        let read: RewardKind = serde_json::from_value(name.into()).expect("the name is known");
        assert_eq!(read, kind);
    }
}

#[test]
fn halves_of_a_millionth_are_rounded_away_from_zero() {
    for (value, micro) in
        [(0.000_000_5, 1), (-0.000_000_5, -1), (0.000_000_499, 0), (1.0, 1_000_000)]
    {
        assert_eq!(millionths(value), Some(micro), "{value}");
    }
    for value in [2_148.0, -2_148.0, f64::NAN, f64::INFINITY] {
        assert_eq!(millionths(value), None, "{value}");
    }
}

/// A token whose likeliest tokens have these probabilities, the first one sampled.
fn token(probabilities: &[f64]) -> SampledToken {
    let micro = |p: f64| (p.ln() * MICRO).round() as i32;
    let score = |(id, p): (usize, &f64)| TokenScore { id: id as u32, logprob_micro: micro(*p) };
    SampledToken {
        id: 0,
        logprob_micro: micro(probabilities[0]),
        sampled_logprob_micro: micro(probabilities[0]),
        top: probabilities.iter().enumerate().map(score).collect(),
    }
}

#[test]
fn self_certainty_is_the_divergence_from_even_where_the_record_holds_all() {
    let probabilities = [0.5, 0.25, 0.15, 0.1];
    let logarithms: f64 = probabilities.iter().map(|p: &f64| p.ln()).sum();
    let expected = -4.0_f64.ln() - logarithms / 4.0;
    let found = self_certainty(&token(&probabilities), 4).expect("it has scores");
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    assert!(self_certainty(&token(&[0.25; 4]), 4).expect("it has scores") < 1e-6);
}

#[test]
fn self_certainty_of_five_tokens_is_never_above_that_of_all() {
    // The likeliest five of twelve, p ∝ 0.7ⁿ.
    let all: Vec<f64> = (0..12).map(|rank| 0.7_f64.powi(rank)).collect();
    let total: f64 = all.iter().sum();
    let all: Vec<f64> = all.iter().map(|p| p / total).collect();
    let full = -12.0_f64.ln() - all.iter().map(|p| p.ln()).sum::<f64>() / 12.0;
    let least = self_certainty(&token(&all[..5]), 12).expect("it has scores");
    assert!(0.0 < least && least < full, "{least}, {full}");
    let even: Vec<f64> = [&all[..5], &[all[5..].iter().sum::<f64>() / 7.0; 7]].concat();
    let expected = -12.0_f64.ln() - even.iter().map(|p| p.ln()).sum::<f64>() / 12.0;
    assert!((least - expected).abs() < 1e-5, "{least} is not {expected}");
}

#[test]
fn self_certainty_is_the_mean_over_the_models_own_weighted_tokens() {
    let spoken = |probabilities: &[f64]| {
        let output = vec![token(probabilities)];
        call(Some(CallTokens { reused: 0, prompt: vec![1], output }))
    };
    let mut record = play(Penalise, FEASIBLE, &["B offer 50", "S walk"]);
    let sharp = spoken(&[0.9, 0.05]);
    let calls = &mut record.usage[0].model_calls;
    *calls = vec![sharp.clone(), spoken(&[0.02; 5])];
    let both = of(RewardKind::SelfCertainty, &record, Role::Buyer).expect("it has one");
    record.usage[0].model_calls[1].weight_milli = Some(0);
    let first = of(RewardKind::SelfCertainty, &record, Role::Buyer).expect("it has one");
    record.usage[0].model_calls[1].weight_milli = Some(1);
    record.usage[0].model_calls[1].model = "other".to_owned();
    assert_eq!(of(RewardKind::SelfCertainty, &record, Role::Buyer), Ok(first));
    assert!(first > both && both > RewardMicro(0), "{first:?}, {both:?}");
}

#[test]
fn what_a_record_does_not_hold_is_an_error_and_no_reward_of_zero() {
    let mut record = play(Penalise, FEASIBLE, &["B offer 50", "S walk"]);
    let refused = |record: &MatchRecord, kind, says: &str| {
        let error = of(kind, record, Role::Buyer).expect_err(says);
        assert_eq!(error.to_string(), says);
    };
    refused(&record, RewardKind::Judge, "no judge was asked about this match");
    refused(&record, RewardKind::SelfCertainty, "model `policy` wrote nothing to learn from");
    record.usage[0].model_calls = vec![call(None)];
    let says = "model call `0` was recorded without its tokens";
    refused(&record, RewardKind::SelfCertainty, says);
    let bare = SampledToken { top: vec![], ..sampled(3) };
    let output = vec![sampled(2), bare];
    record.usage[0].model_calls =
        vec![call(Some(CallTokens { reused: 0, prompt: vec![], output }))];
    let says = "reply token `1` of model call `0` has no scores of likeliest tokens that a \
                vocabulary of `90` could give";
    refused(&record, RewardKind::SelfCertainty, says);
}
