//! The rule on curves that were made up.

use arena_core::seed::{Root, Stream};

use super::*;

/// A curve through these corners, `(step, opening, deal rate, surplus, lift)`, in straight lines,
/// with a small zigzag on all of it that stands for noise.
fn curve(corners: &[(usize, f64, f64, f64, f64)]) -> Vec<CurveStep> {
    let mut steps = Vec::new();
    for pair in corners.windows(2) {
        let ((start, ..), (end, ..)) = (pair[0], pair[1]);
        for step in start..end {
            let share = (step - start) as f64 / (end - start) as f64;
            let zigzag = [0.004, -0.006, 0.003, -0.001][step % 4];
            let between = |from: f64, to: f64| from + share * (to - from) + zigzag;
            steps.push(CurveStep {
                opening: Some(between(pair[0].1, pair[1].1)),
                deal_rate: between(pair[0].2, pair[1].2),
                surplus: Some(between(pair[0].3, pair[1].3)),
                lift: Some(between(pair[0].4, pair[1].4)),
            });
        }
    }
    steps
}

/// The phases of a curve, as `naive 0..10, anchoring 10..60`.
fn labels(curve: &[CurveStep]) -> String {
    let noise = noise(&[curve.to_vec()]).expect("the curve is long enough");
    let found = phases(curve, noise).expect("the curve can be labelled");
    let shown = found.stretches.iter().map(|stretch| {
        let Stretch { phase, start, end } = stretch;
        format!("{phase} {start}..{end}")
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// What the paper tells, in sixty steps: opens lower, loses deals, wins them back.
fn paper() -> Vec<CurveStep> {
    curve(&[
        (0, 0.85, 0.62, 0.16, 0.0),
        (4, 0.85, 0.64, 0.16, 0.0),
        (12, 0.50, 0.66, 0.45, 0.0),
        (20, 0.35, 0.30, 0.55, 0.0),
        (28, 0.35, 0.32, 0.60, 0.02),
        (44, 0.40, 0.90, 0.80, 0.06),
        (60, 0.35, 0.92, 0.84, 0.06),
    ])
}

#[test]
fn a_run_as_the_paper_tells_it_has_all_four_phases() {
    assert_eq!(labels(&paper()), "naive 0..6, anchoring 6..17, deadlock 17..34, persuasion 34..60");
    let found = phases(&paper(), noise(&[paper()]).expect("long enough")).expect("labelled");
    assert!(found.holds_at_end);
    assert_eq!(found.start_of(Phase::Persuasion), Some(34));
}

#[test]
fn without_a_deadlock_there_is_nothing_to_recover_from() {
    let run = curve(&[
        (0, 0.85, 0.6, 0.2, 0.05),
        (10, 0.85, 0.6, 0.2, 0.05),
        (30, 0.4, 0.85, 0.7, 0.05),
        (60, 0.4, 0.9, 0.8, 0.05),
    ]);
    assert_eq!(labels(&run), "naive 0..13, anchoring 13..60");
}

#[test]
fn a_deadlock_that_never_ends_is_the_last_phase() {
    let run = curve(&[
        (0, 0.85, 0.6, 0.2, 0.0),
        (10, 0.85, 0.6, 0.2, 0.0),
        (20, 0.4, 0.6, 0.4, 0.0),
        (30, 0.3, 0.1, 0.5, 0.0),
        (60, 0.3, 0.1, 0.5, 0.0),
    ]);
    assert_eq!(labels(&run), "naive 0..12, anchoring 12..24, deadlock 24..60");
}

#[test]
fn deals_that_come_back_at_the_old_price_are_no_persuasion() {
    let mut run = paper();
    run.iter_mut().skip(28).for_each(|step| step.surplus = Some(0.4));
    assert_eq!(labels(&run), "naive 0..6, anchoring 6..17, deadlock 17..60");
}

#[test]
fn deals_that_come_back_without_arguments_that_work_are_no_persuasion() {
    let mut run = paper();
    for (number, step) in run.iter_mut().enumerate() {
        step.lift = Some([0.01, -0.01, 0.012, -0.008, 0.004][number % 5]);
    }
    assert_eq!(labels(&run), "naive 0..6, anchoring 6..17, deadlock 17..60");
    run.iter_mut().for_each(|step| step.lift = None);
    assert_eq!(labels(&run), "naive 0..6, anchoring 6..17, deadlock 17..60");
}

#[test]
fn higher_openings_that_end_a_slump_are_no_deadlock() {
    let mut run = paper();
    run.iter_mut().skip(14).for_each(|step| step.opening = Some(0.85));
    assert_eq!(labels(&run), "naive 0..7, anchoring 7..60");
}

#[test]
fn openings_that_fall_together_with_deals_are_not_the_second_phase() {
    let run = curve(&[
        (0, 0.85, 0.6, 0.2, 0.0),
        (20, 0.85, 0.6, 0.2, 0.0),
        (21, 0.3, 0.1, 0.2, 0.0),
        (60, 0.3, 0.1, 0.2, 0.0),
    ]);
    assert_eq!(labels(&run), "naive 0..60");
}

#[test]
fn flat_noise_has_one_phase_however_loud() {
    for (seed, loudness) in (0..100).flat_map(|seed| [(seed, 0.01), (seed, 0.1), (seed, 0.3)]) {
        let mut stream = Stream::derive(Root::Seed(seed), "test", &[]);
        // About normal: the sum of four even draws.
        let mut wobble = || {
            let sum: u64 = (0..4).map(|_| stream.below(1 << 20)).sum();
            (sum as f64 / f64::from(1 << 21) - 1.0) * loudness
        };
        let run: Vec<CurveStep> = (0..300)
            .map(|_| CurveStep {
                opening: Some(0.8 + wobble()),
                deal_rate: 0.6 + wobble(),
                surplus: Some(0.3 + wobble()),
                lift: Some(wobble()),
            })
            .collect();
        assert_eq!(labels(&run), "naive 0..300", "seed {seed}, loudness {loudness}");
    }
}

#[test]
fn spikes_of_up_to_three_steps_begin_nothing_wherever_they_are() {
    let flat = curve(&[(0, 0.8, 0.6, 0.3, 0.0), (60, 0.8, 0.6, 0.3, 0.0)]);
    for (at, width) in [(0, 1), (0, 3), (30, 1), (30, 3), (57, 3), (59, 1)] {
        let mut run = flat.clone();
        for step in &mut run[at..at + width] {
            *step = CurveStep { opening: Some(0.1), deal_rate: 0.0, surplus: None, lift: None };
        }
        assert_eq!(labels(&run), "naive 0..60", "{width} steps from {at}");
    }
}

#[test]
fn seeds_that_start_apart_ask_for_a_larger_fall() {
    let starting_at = |opening: f64| {
        curve(&[
            (0, opening, 0.6, 0.3, 0.0),
            (20, opening, 0.6, 0.3, 0.0),
            (40, 0.6, 0.6, 0.3, 0.0),
        ])
    };
    let alone = noise(&[starting_at(0.7)]).expect("long enough");
    let apart = noise(&[starting_at(0.7), starting_at(0.9)]).expect("long enough");
    assert!(alone.opening < 0.02 && apart.opening > 0.1, "{alone:?} {apart:?}");
    let count = |noise| phases(&starting_at(0.7), noise).expect("labelled").stretches.len();
    assert_eq!((count(alone), count(apart)), (2, 1));
}

#[test]
fn a_phase_that_passed_is_said_not_to_hold_at_the_end() {
    let mut run = paper();
    let last = run.len() - WINDOW;
    run[last..].iter_mut().for_each(|step| step.deal_rate = 0.2);
    let found = phases(&run, noise(&[run.clone()]).expect("long enough")).expect("labelled");
    assert!(found.start_of(Phase::Persuasion).is_some() && !found.holds_at_end);
}

#[test]
fn short_runs_silent_runs_and_broken_numbers_are_refused() {
    let check = |curve: &[CurveStep], says: &str| {
        let error = phases(curve, Noise::default()).expect_err(says);
        assert_eq!(error.to_string(), says);
    };
    check(&paper()[..20], "a run of `20` steps has no phases, it takes `21` to `1000000`");
    check(&[], "a run of `0` steps has no phases, it takes `21` to `1000000`");
    check(&[CurveStep::default(); 30], "nobody made an offer in the first 7 steps");
    let mut broken = paper();
    broken[3].lift = Some(f64::NAN);
    check(&broken, "a value of step `3` is `NaN`");
}

#[test]
fn a_run_of_the_fewest_steps_is_labelled() {
    assert_eq!(labels(&paper()[..STEPS_MIN]), "naive 0..6, anchoring 6..17, deadlock 17..21");
}
