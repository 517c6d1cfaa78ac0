//! The losses by hand, against finite differences, and in micro-batches.

use arena_core::seed::{Root, Stream};

use super::*;

const WIDE: Clip = Clip { low: 0.9, high: 9.0 };

fn loss(objective: Objective) -> Loss {
    Loss { objective, kl: 0.0, entropy: 0.0, importance_cap: None }
}

fn target(tokens: usize, advantage: f64) -> Target {
    Target {
        sampled: vec![-1.0; tokens],
        before: None,
        reference: None,
        weights_milli: vec![1_000; tokens],
        advantage,
        episode_weight_milli: 1_000 * tokens as u64,
    }
}

/// Two episodes: two tokens 1.1 and 1.5 times as likely as when they were sampled, with an
/// advantage of 1; one token half as likely, with -0.5.
fn example() -> (Normaliser, Vec<Target>, Scores) {
    let ratios = [1.1_f64, 1.5, 0.5];
    let logprobs = ratios.iter().map(|ratio| (ratio.ln() - 1.0) as f32).collect();
    let scores = Scores { logprobs, entropies: vec![2.0, 1.0, 0.5] };
    let normaliser = Normaliser { weight_milli: 3_000, episodes: 2 };
    (normaliser, vec![target(2, 1.0), target(1, -0.5)], scores)
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-6, "{what}: {found} is not {expected}");
}

fn check(loss: Loss, expected: f64, slopes: [f64; 3]) -> Statistics {
    let (normaliser, targets, scores) = example();
    let mut statistics = Statistics::default();
    let graded = loss.grade(normaliser, &targets, &scores, &mut statistics).expect("it is sound");
    let name = format!("{:?}", loss.objective);
    close(statistics.loss(), expected, &name);
    for (found, expected) in graded.logprobs.iter().zip(slopes) {
        close(f64::from(*found), expected, &name);
    }
    assert_eq!(graded.logprobs.len(), 3);
    statistics
}

#[test]
fn grpo_counts_each_episode_alike() {
    // ((1.1 + 1.28)/2 + min(-0.25, -0.4))/2, to be maximised.
    check(loss(Objective::Grpo { clip: Clip::DAPO }), -0.395, [-0.275, 0.0, 0.0]);
}

#[test]
fn dapo_counts_each_token_alike() {
    let found = check(loss(Objective::Dapo { clip: Clip::DAPO }), -0.66, [-1.1 / 3.0, 0.0, 0.0]);
    assert_eq!(found.clip_fraction_high(), Some(1.0 / 3.0));
    assert_eq!(found.clip_fraction_low(), Some(1.0 / 3.0));
}

#[test]
fn dr_grpo_divides_by_a_constant_length() {
    let objective = Objective::DrGrpo { clip: Clip::DAPO, length: 10 };
    check(loss(objective), -0.099, [-0.055, 0.0, 0.0]);
}

#[test]
fn gspo_has_one_ratio_for_a_sequence() {
    // The geometric mean of 1.1 and 1.5 is √1.65.
    let ratio = 1.65_f64.sqrt();
    let slope = -ratio / 4.0;
    let wide = Objective::Gspo { clip: WIDE };
    check(loss(wide), -(ratio - 0.25) / 2.0, [slope, slope, 0.125]);
    let cut = check(loss(Objective::Gspo { clip: Clip::DAPO }), -0.44, [0.0; 3]);
    assert_eq!(cut.clip_fraction_high(), Some(2.0 / 3.0), "both tokens of the first sequence");
}

#[test]
fn rloo_takes_a_sequence_as_one_action() {
    check(loss(Objective::Rloo { clip: WIDE }), -0.7, [-0.825, -0.825, 0.125]);
}

#[test]
fn reinforce_has_no_ratio() {
    let expected = -((1.65_f64.ln() - 2.0) - 0.5 * (0.5_f64.ln() - 1.0)) / 2.0;
    check(loss(Objective::Reinforce), expected, [-0.5, -0.5, 0.25]);
}

#[test]
fn cispo_weighs_by_cut_ratios_and_keeps_every_token() {
    let [first, second, third] = [1.1_f64, 1.5, 0.5].map(|ratio| ratio.ln() - 1.0);
    let expected = -(1.1 * first + 1.28 * second - 0.4 * third) / 3.0;
    let slopes = [-1.1 / 3.0, -1.28 / 3.0, 0.4 / 3.0];
    check(loss(Objective::Cispo { clip: Clip::DAPO }), expected, slopes);
}

#[test]
fn cross_entropy_ignores_advantages() {
    let expected = -((1.65_f64 * 0.5).ln() - 3.0) / 3.0;
    check(loss(Objective::CrossEntropy), expected, [-1.0 / 3.0; 3]);
}

#[test]
fn weights_count_tokens_more_or_less() {
    let (_, mut targets, scores) = example();
    targets[0].weights_milli = vec![500, 2_500];
    targets[0].episode_weight_milli = 3_000;
    let normaliser = Normaliser { weight_milli: 4_000, episodes: 2 };
    let mut statistics = Statistics::default();
    let dapo = loss(Objective::Dapo { clip: WIDE });
    let slopes = dapo.grade(normaliser, &targets, &scores, &mut statistics).expect("it is sound");
    close(statistics.loss(), -(0.5 * 1.1 + 2.5 * 1.5 - 0.25) / 4.0, "loss");
    close(slopes.logprobs[1].into(), -2.5 * 1.5 / 4.0, "slope");
}

#[test]
fn an_episode_in_two_sequences_counts_once() {
    let grade = |targets: &[Target], objective| {
        let (_, _, mut scores) = example();
        scores.logprobs.truncate(2);
        scores.entropies.truncate(2);
        let normaliser = Normaliser { weight_milli: 2_000, episodes: 1 };
        let mut statistics = Statistics::default();
        let graded = loss(objective).grade(normaliser, targets, &scores, &mut statistics);
        (graded.expect("it is sound"), statistics.loss())
    };
    let half = Target { episode_weight_milli: 2_000, ..target(1, 1.0) };
    let objective = Objective::Grpo { clip: WIDE };
    let whole = grade(&[target(2, 1.0)], objective);
    assert_eq!(grade(&[half.clone(), half.clone()], objective), whole);
    // Of a ratio per sequence the parts have two, each with its share of the episode.
    let (_, gspo) = grade(&[half.clone(), half], Objective::Gspo { clip: WIDE });
    close(gspo, -(0.5 * 1.1 + 0.5 * 1.5), "loss");
}

#[test]
fn divergence_and_entropy_are_added_per_token() {
    let (normaliser, mut targets, scores) = example();
    targets[0].reference = Some(vec![-1.0; 2]);
    targets[1].reference = Some(vec![-1.0]);
    let both = Loss { kl: 0.3, entropy: 0.1, ..loss(Objective::Dapo { clip: Clip::DAPO }) };
    let mut statistics = Statistics::default();
    let slopes = both.grade(normaliser, &targets, &scores, &mut statistics).expect("it is sound");
    // With x = ln q/p: 1/1.1 + ln 1.1 - 1 and so on.
    let k3: Vec<f64> = [1.1_f64, 1.5, 0.5].map(|r| 1.0 / r + r.ln() - 1.0).to_vec();
    let mean = k3.iter().sum::<f64>() / 3.0;
    close(statistics.loss(), -0.66 + 0.3 * mean - 0.1 * 3.5 / 3.0, "loss");
    close(statistics.reference_divergence().expect("there is one"), mean, "divergence");
    close(slopes.logprobs[1].into(), -0.3 * (1.0 / 1.5 - 1.0) / 3.0, "slope of the cut token");
    assert_eq!(slopes.entropies, [-0.1_f32 / 3.0; 3]);
}

#[test]
fn importance_is_truncated_and_ratios_are_taken_to_the_trainer() {
    let (normaliser, mut targets, scores) = example();
    // Before the update the trainer found the first token e times as likely as the sampler did.
    targets[0].before = Some(vec![0.0, -1.0]);
    targets[1].before = Some(vec![-1.0]);
    let capped = Loss { importance_cap: Some(2.0), ..loss(Objective::Dapo { clip: WIDE }) };
    let mut statistics = Statistics::default();
    let slopes = capped.grade(normaliser, &targets, &scores, &mut statistics).expect("sound");
    let first = 2.0 * 1.1 / std::f64::consts::E;
    close(statistics.loss(), -(first + 1.5 - 0.25) / 3.0, "loss");
    close(slopes.logprobs[0].into(), -first / 3.0, "slope");
    assert_eq!(statistics.sampler_gap_max(), 1.0);
    // Without what the trainer said before, the scores themselves are it: the ratio is 1.
    let (_, targets, _) = example();
    let mut fresh = Statistics::default();
    capped.grade(normaliser, &targets, &scores, &mut fresh).expect("sound");
    close(fresh.loss(), -(1.1 + 1.5 - 0.25) / 3.0, "loss");
}

#[test]
fn statistics_say_how_far_the_policy_has_moved() {
    let found = check(loss(Objective::Dapo { clip: Clip::DAPO }), -0.66, [-1.1 / 3.0, 0.0, 0.0]);
    let squares = 1.21 + 2.25 + 0.25;
    close(found.mean_ratio().expect("tokens"), 3.1 / 3.0, "ratio");
    close(found.effective_share().expect("tokens"), 3.1 * 3.1 / (3.0 * squares), "share");
    close(found.log_ratio_max(), 2.0_f64.ln(), "largest");
    close(found.mean_entropy().expect("tokens"), 3.5 / 3.0, "entropy");
    let k3: f64 = [1.1_f64, 1.5, 0.5].iter().map(|r| r - 1.0 - r.ln()).sum();
    close(found.sampler_divergence().expect("tokens"), k3 / 3.0, "divergence");
    assert_eq!((found.token_count(), found.sequence_count()), (3, 2));
    assert_eq!(Statistics::default().mean_ratio(), None);
}

#[test]
fn ratios_beyond_all_bounds_stay_finite_and_have_no_slope() {
    let (normaliser, mut targets, mut scores) = example();
    scores.logprobs = vec![-1.0, -90.0, -1.0];
    targets[0].sampled = vec![-90.0, -1.0];
    targets[0].advantage = -1.0;
    for objective in every_objective() {
        let mut statistics = Statistics::default();
        let graded = loss(objective).grade(normaliser, &targets, &scores, &mut statistics);
        let slopes = graded.expect("it is sound").logprobs;
        assert!(slopes.iter().all(|slope| slope.is_finite()), "{objective:?}: {slopes:?}");
        assert!(statistics.loss().is_finite(), "{objective:?}");
    }
    let mut statistics = Statistics::default();
    let dapo = loss(Objective::Dapo { clip: Clip::DAPO });
    let slopes = dapo.grade(normaliser, &targets, &scores, &mut statistics).expect("sound");
    assert_eq!(slopes.logprobs[0], 0.0);
}

fn every_objective() -> [Objective; 8] {
    let clip = Clip::DAPO;
    [
        Objective::Grpo { clip },
        Objective::Dapo { clip },
        Objective::DrGrpo { clip, length: 7 },
        Objective::Gspo { clip: WIDE },
        Objective::Rloo { clip: WIDE },
        Objective::Reinforce,
        Objective::Cispo { clip },
        Objective::CrossEntropy,
    ]
}

/// Twelve sequences of 1 to 8 tokens, drawn.
fn drawn(seed: u64) -> (Normaliser, Vec<Target>, Scores) {
    let mut stream = Stream::derive(Root::Seed(seed), "test", &[]);
    let mut between = |low: f64, high: f64| {
        low + (high - low) * stream.below(1 << 20) as f64 / f64::from(1 << 20)
    };
    let (mut targets, mut scores) = (Vec::new(), Scores::default());
    for sequence in 0..12 {
        let tokens = 1 + sequence * 7 % 8;
        let sampled: Vec<f64> = (0..tokens).map(|_| between(-3.0, -0.1)).collect();
        let mut near = |spread: f64| -> Vec<f32> {
            sampled.iter().map(|value| (value + between(-spread, spread)) as f32).collect()
        };
        let (before, reference) = (Some(near(0.1)), Some(near(0.5)));
        scores.logprobs.extend(near(0.4));
        scores.entropies.extend((0..tokens).map(|_| between(0.0, 3.0) as f32));
        let weights_milli: Vec<u32> = (0..tokens).map(|_| between(100.0, 3_000.0) as u32).collect();
        let own: u64 = weights_milli.iter().map(|weight| u64::from(*weight)).sum();
        let episode_weight_milli = own + between(0.0, 2_000.0) as u64;
        let advantage = between(-1.0, 1.0);
        targets.push(Target {
            sampled,
            before,
            reference,
            weights_milli,
            advantage,
            episode_weight_milli,
        });
    }
    let weight_milli = targets.iter().map(|target| target.episode_weight_milli).sum();
    (Normaliser { weight_milli, episodes: 12 }, targets, scores)
}

#[test]
fn slopes_agree_with_finite_differences() {
    const STEP: f64 = 1e-6;
    let mut compared = 0;
    for (seed, objective) in (1..).zip(every_objective()) {
        // CISPO holds its ratios constant, so its loss has other differences than its slopes.
        if matches!(objective, Objective::Cispo { .. }) {
            continue;
        }
        let cap = (objective != Objective::CrossEntropy).then_some(1.05);
        for importance_cap in [None, cap] {
            let loss = Loss { objective, kl: 0.2, entropy: 0.3, importance_cap };
            loss.check().expect("its numbers are sound");
            let (normaliser, targets, scores) = drawn(seed);
            let mut start = 0;
            for target in &targets {
                let range = start..start + target.sampled.len();
                start = range.end;
                let widen = |values: &[f32]| -> Vec<f64> {
                    values[range.clone()].iter().map(|value| f64::from(*value)).collect()
                };
                let (logprobs, entropies) = (widen(&scores.logprobs), widen(&scores.entropies));
                let at = |logprobs: &[f64], entropies: &[f64]| {
                    loss.grade_sequence(normaliser, target, logprobs, entropies)
                };
                let graded = at(&logprobs, &entropies);
                for place in 0..logprobs.len() {
                    let moved = |values: &[f64], by: f64| {
                        let mut values = values.to_vec();
                        values[place] += by;
                        values
                    };
                    let rise = at(&moved(&logprobs, STEP), &entropies).loss
                        - at(&moved(&logprobs, -STEP), &entropies).loss;
                    let (found, expected) = (graded.slopes[place], rise / (2.0 * STEP));
                    assert!((found - expected).abs() < 1e-7, "{loss:?}: {found} is not {expected}");
                    let rise = at(&logprobs, &moved(&entropies, STEP)).loss
                        - at(&logprobs, &moved(&entropies, -STEP)).loss;
                    let (found, expected) = (-0.3 * graded.norms[place], rise / (2.0 * STEP));
                    assert!((found - expected).abs() < 1e-7, "{loss:?}: {found} is not {expected}");
                    compared += 2;
                }
            }
        }
    }
    assert_eq!(compared, 7 * 2 * 2 * 58);
}

#[test]
fn micro_batches_add_up_to_the_batch_to_the_bit() {
    for objective in every_objective() {
        let loss = Loss { objective, kl: 0.2, entropy: 0.3, importance_cap: None };
        let (normaliser, targets, scores) = drawn(99);
        let mut whole = Statistics::default();
        let slopes = loss.grade(normaliser, &targets, &scores, &mut whole).expect("sound");
        for size in [1, 2, 5] {
            let (mut parts, mut found) = (Statistics::default(), Slopes::default());
            let mut start = 0;
            for part in targets.chunks(size) {
                let length: usize = part.iter().map(|target| target.sampled.len()).sum();
                let range = start..start + length;
                start = range.end;
                let scores = Scores {
                    logprobs: scores.logprobs[range.clone()].to_vec(),
                    entropies: scores.entropies[range].to_vec(),
                };
                let graded = loss.grade(normaliser, part, &scores, &mut parts).expect("sound");
                found.logprobs.extend(graded.logprobs);
                found.entropies.extend(graded.entropies);
            }
            assert_eq!((parts, &found), (whole, &slopes), "{objective:?} by {size}");
        }
    }
}

#[test]
fn every_machine_gets_these_bits() {
    let mut sums = Vec::new();
    for objective in every_objective() {
        let loss = Loss { objective, kl: 0.2, entropy: 0.3, importance_cap: None };
        let (normaliser, targets, scores) = drawn(7);
        let mut statistics = Statistics::default();
        loss.grade(normaliser, &targets, &scores, &mut statistics).expect("sound");
        sums.push(statistics.loss().to_bits());
    }
    assert_eq!(sums, EXPECTED_BITS, "{sums:#x?}");
}

const EXPECTED_BITS: [u64; 8] = [
    0xbfbf897d3dc0ac16,
    0xbfc3ee1b57b70784,
    0xbfc8bbd605d41b55,
    0xbfc108d2fe788dac,
    0xc002902dc0c96548,
    0xc0191b7e74fa1178,
    0xbfe788393e857419,
    0x3fed482fc5cb60ea,
];

#[test]
fn without_an_entropy_bonus_there_are_no_slopes_for_entropies() {
    let (normaliser, targets, scores) = example();
    let plain = loss(Objective::Reinforce);
    let graded = plain.grade(normaliser, &targets, &scores, &mut Statistics::default());
    assert!(graded.expect("it is sound").entropies.is_empty());
}

#[test]
fn what_does_not_fit_is_refused_with_what_was_found() {
    type Break = fn(&mut Normaliser, &mut Vec<Target>, &mut Scores);
    let breaks: [(Break, &str); 9] = [
        (|_, _, s| s.logprobs.truncate(2), "`2` log-probabilities for `3` scored tokens"),
        (|_, _, s| s.entropies.push(0.0), "`4` entropies for `3` scored tokens"),
        (|_, t, _| t[0].weights_milli.truncate(1), "`1` weights for `2` scored tokens"),
        (|_, t, _| t[1].before = Some(vec![]), "`0` earlier for `1` scored tokens"),
        (|_, t, _| t[1].reference = None, "sequence `1` has no reference to diverge from"),
        (|_, t, _| t[0].advantage = f64::NAN, "the advantage of sequence `0` is `NaN`"),
        (|_, _, s| s.logprobs[1] = f32::NEG_INFINITY, "a score of sequence `0` is `-inf`"),
        (|n, _, _| n.episodes = 0, "no token to learn from"),
        (
            |_, t, _| t[0].episode_weight_milli = 1_999,
            "the episode of sequence `0` weighs `1999` thousandths, at least `2000`",
        ),
    ];
    for (broken, says) in breaks {
        let (mut normaliser, mut targets, mut scores) = example();
        for target in &mut targets {
            target.reference = Some(vec![-1.0; target.sampled.len()]);
        }
        broken(&mut normaliser, &mut targets, &mut scores);
        let loss = Loss { kl: 0.1, ..loss(Objective::Reinforce) };
        let graded = loss.grade(normaliser, &targets, &scores, &mut Statistics::default());
        assert_eq!(graded.expect_err(says).to_string(), says);
    }
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    let dapo = |low, high| loss(Objective::Dapo { clip: Clip { low, high } });
    let wrong = [
        (dapo(1.5, 0.2), "`clip.low` is `1.5`"),
        (dapo(0.2, -0.1), "`clip.high` is `-0.1`"),
        (dapo(0.2, f64::NAN), "`clip.high` is `NaN`"),
        (loss(Objective::DrGrpo { clip: Clip::DAPO, length: 0 }), "`length` is `0`"),
        (Loss { kl: -1.0, ..dapo(0.2, 0.2) }, "`kl` is `-1`"),
        (Loss { entropy: f64::INFINITY, ..dapo(0.2, 0.2) }, "`entropy` is `inf`"),
        (Loss { importance_cap: Some(0.5), ..dapo(0.2, 0.2) }, "`importance-cap` is `0.5`"),
        (
            Loss { importance_cap: Some(2.0), ..loss(Objective::CrossEntropy) },
            "`importance-cap` is `2`, but imitation knows no sampler",
        ),
    ];
    for (loss, says) in wrong {
        let error = loss.check().expect_err(says).to_string();
        assert!(error.starts_with(says), "{error}");
    }
}
