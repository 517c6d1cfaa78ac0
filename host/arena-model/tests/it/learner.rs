//! The learner says what the engine says, and its gradients are what differences say.

use std::num::NonZeroUsize;

use arena_core::seat::Sampling;
use arena_core::seed::{Root, Stream};
use arena_kernels::isa::Isa;
use arena_llm::model::LanguageModel;
use arena_model::cpu::learner::{CpuLearner, LearnerOptions, Start};
use arena_model::executor::{AdapterId, Batch, BlockId, Executor, SequenceRows};
use arena_model::learner::{Learner, Scores, Sequence, Slopes};
use arena_model::sampler;
use arena_weights::adapter::Adapter;
use arena_weights::weights::Weights;

use crate::fixture::{PLAIN, Setup, engine, executor, path, request, weights};

const DENSE: [&str; 2] = ["tiny-llama", "tiny-qwen3"];
const RANK: usize = 3;
/// Tokens of the fixtures' tokenizers.
const TOKEN_COUNT: usize = 300;

fn options(threads: usize) -> LearnerOptions {
    LearnerOptions::new(NonZeroUsize::new(threads).expect("a test has threads"))
}

fn stream() -> Stream {
    Stream::derive(Root::Seed(5), "adapter", &[])
}

fn learner(weights: &Weights, start: Start<'_>, options: LearnerOptions) -> CpuLearner {
    CpuLearner::load(weights, start, options).expect("the fixture is sound")
}

/// A new adapter whose B is not zero, so that everything has a gradient.
fn stirred(weights: &Weights, options: LearnerOptions) -> CpuLearner {
    let start = Start::Drawn { rank: RANK, alpha: 6.0, stream: stream() };
    let mut learner = learner(weights, start, options);
    let mut values = learner.values().expect("the CPU works");
    let mut draws = Stream::derive(Root::Seed(6), "stirred", &[]);
    for (parameter, values) in learner.parameters().iter().zip(&mut values) {
        if parameter.name.ends_with("lora_B.weight") {
            values.iter_mut().for_each(|value| *value = noise(&mut draws) * 0.2);
        }
    }
    learner.set_values(&values).expect("they fit");
    learner
}

/// Draws a number between -1 and 1.
fn noise(draws: &mut Stream) -> f32 {
    (draws.below(20_001) as f32 - 10_000.0) / 10_000.0
}

/// Sequences of several lengths, of which some tokens are scored.
fn batch() -> Vec<Sequence> {
    let mut draws = Stream::derive(Root::Seed(7), "batch", &[]);
    let lens = [(1, 1.0), (19, 1.0), (2, 0.7), (40, 1.3), (33, 0.9)];
    let sequence = |(len, temperature): (u32, f32)| Sequence {
        tokens: (0..len).map(|_| draws.below(300) as u32).collect(),
        scored: (1..len).filter(|place| place % 3 != 1).collect(),
        temperature,
        experts: None,
    };
    lens.map(sequence).into()
}

/// Samples of one prompt, of which some tokens are scored, too, and a sequence that is alone.
fn group() -> Vec<Sequence> {
    let mut draws = Stream::derive(Root::Seed(9), "group", &[]);
    let mut tokens = |count: u32| (0..count).map(|_| draws.below(300) as u32).collect::<Vec<u32>>();
    let prompt = tokens(37);
    let mut group = batch()[..2].to_vec();
    for len in [1, 30, 12] {
        group.push(Sequence {
            tokens: [&prompt[..], &tokens(len)].concat(),
            scored: (20..37 + len).filter(|place| place % 2 == 0).collect(),
            temperature: 0.8,
            experts: None,
        });
    }
    group
}

/// Slopes that differ from token to token.
fn slopes(scores: &Scores) -> Slopes {
    let of = |at: usize| (at * 7 % 5) as f32 * 0.3 - 0.4;
    Slopes {
        logprobs: (0..scores.logprobs.len()).map(of).collect(),
        entropies: (0..scores.entropies.len()).map(|at| of(at + 2) * 0.5).collect(),
    }
}

/// The loss whose slopes these are.
fn loss(scores: &Scores) -> f64 {
    let Slopes { logprobs, entropies } = slopes(scores);
    let dot = |slopes: &[f32], of: &[f32]| -> f64 {
        slopes.iter().zip(of).map(|(slope, of)| f64::from(*slope) * f64::from(*of)).sum()
    };
    dot(&logprobs, &scores.logprobs) + dot(&entropies, &scores.entropies)
}

fn zeros(learner: &CpuLearner) -> Vec<Vec<f32>> {
    let len = |shape: &[usize]| shape.iter().product();
    learner.parameters().iter().map(|parameter| vec![0.0; len(&parameter.shape)]).collect()
}

fn gradients(learner: &mut CpuLearner, batch: &[Sequence]) -> Vec<Vec<f32>> {
    let mut gradients = zeros(learner);
    let mut slopes = slopes;
    learner.accumulate(batch, &mut slopes, &mut gradients).expect("the batch is sound");
    gradients
}

fn bits(values: &[Vec<f32>]) -> Vec<Vec<u32>> {
    values.iter().map(|values| values.iter().map(|value| value.to_bits()).collect()).collect()
}

/// What the executor's logits make of a token's log-probability. The fixtures' vocabulary has
/// rows without a token.
fn executed(
    executor: &mut dyn Executor,
    sequence: &Sequence,
    adapter: Option<AdapterId>,
) -> Vec<f64> {
    let batch = Batch {
        tokens: sequence.tokens.clone(),
        sequences: vec![SequenceRows {
            rows: 0..sequence.tokens.len(),
            start_position: 0,
            blocks: (0..20).map(BlockId).collect(),
            adapter,
        }],
        logits_of: sequence.scored.iter().map(|&place| place as usize - 1).collect(),
    };
    let mut logits = Vec::new();
    executor.forward(&batch, &mut logits).expect("the CPU works");
    let vocab = executor.shape().vocab;
    let rows = logits.chunks_exact(vocab).zip(&sequence.scored);
    let score = |(logits, &place): (&[f32], &u32)| {
        let token = sequence.tokens[place as usize];
        let logits = &logits[..TOKEN_COUNT];
        sampler::score(logits, token, sequence.temperature).expect("a distribution").logprob
    };
    rows.map(score).collect()
}

#[test]
fn what_was_sampled_is_scored_to_the_bit() {
    for name in DENSE {
        let weights = weights(name);
        let mut executor = executor(&weights, Setup::default());
        let engine = engine(name, Setup { threads: 2, step_tokens: 80, ..Setup::default() });
        for (index, temperature_milli) in [(0, 1_000), (1, 700), (2, 1_300)] {
            let sampling = Sampling { temperature_milli, ..PLAIN };
            let asked = request("I offer $12.50 for the hose.", 40, index);
            let reply = engine.complete(&arena_llm::request::Request { sampling, ..asked });
            let tokens = reply.expect("the request is sound").tokens.expect("the engine says them");
            let start = tokens.prompt.len() as u32;
            let output = tokens.output.iter().map(|token| token.id);
            let sequence = Sequence {
                scored: (start..start + tokens.output.len() as u32).collect(),
                tokens: tokens.prompt.iter().copied().chain(output).collect(),
                temperature: temperature_milli as f32 / 1_000.0,
                experts: None,
            };
            let exact = executed(&mut executor, &sequence, None);
            for (token, exact) in tokens.output.iter().zip(&exact) {
                let micro = (exact * 1e6).round() as i32;
                assert_eq!(token.sampled_logprob_micro, micro, "{name} at {temperature_milli}");
            }
            for start in [Start::Full, Start::Drawn { rank: 2, alpha: 4.0, stream: stream() }] {
                let mut learner = learner(&weights, start, options(2));
                let scores = learner.score(&[batch()[1].clone(), sequence.clone()]);
                let scores = scores.expect("the batch is sound").logprobs;
                let rounded: Vec<f32> = exact.iter().map(|exact| *exact as f32).collect();
                let mine = &scores[scores.len() - exact.len()..];
                assert_eq!(bits(&[mine.to_vec()]), bits(&[rounded]), "{name}");
            }
        }
    }
}

#[test]
fn an_adapter_of_peft_is_scored_as_the_executor_does_to_the_bit() {
    let weights = weights("tiny-llama");
    let adapter = Adapter::open(&path("tiny-llama-adapter"), weights.config()).expect("sound");
    let mut executor = executor(&weights, Setup::default());
    executor.set_adapter(AdapterId(1), Some(&adapter)).expect("it fits");
    let start = Start::Adapter { adapter: &adapter, stream: stream() };
    let mut learner = learner(&weights, start, options(1));
    let batch = batch();
    let scores = learner.score(&batch).expect("the batch is sound");
    let exact = batch.iter().flat_map(|of| executed(&mut executor, of, Some(AdapterId(1))));
    let exact: Vec<f32> = exact.map(|exact| exact as f32).collect();
    assert_eq!(bits(&[scores.logprobs]), bits(&[exact]));
}

/// Compares the gradient of every parameter with differences along two directions.
fn check_gradients(name: &str, mut learner: CpuLearner) {
    let batch = batch();
    let gradients = gradients(&mut learner, &batch);
    let before = learner.values().expect("the CPU works");
    let parameters = learner.parameters().to_vec();
    let mut draws = Stream::derive(Root::Seed(8), "directions", &[]);
    for (index, parameter) in parameters.iter().enumerate() {
        let gradient = &gradients[index];
        let norm = |of: &[f32]| of.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let size = norm(gradient);
        assert!(size > 1e-3, "{name}: {} has no gradient", parameter.name);
        let random: Vec<f32> = gradient.iter().map(|_| noise(&mut draws)).collect();
        for (direction, what) in [(gradient, "itself"), (&random, "a random direction")] {
            let unit = 1.0 / norm(direction);
            // Large enough for f32, small enough for a straight line.
            let step = (0.2 / size).clamp(1e-3, 2e-2);
            let mut at = |by: f64| {
                let mut values = before.clone();
                for (value, direction) in values[index].iter_mut().zip(direction) {
                    *value = (f64::from(*value) + by * unit * f64::from(*direction)) as f32;
                }
                learner.set_values(&values).expect("they fit");
                loss(&learner.score(&batch).expect("the batch is sound"))
            };
            let slope = (at(step) - at(-step)) / (2.0 * step);
            let dot = gradient.iter().zip(direction);
            let dot: f64 = dot.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let expected = dot * unit;
            let close = (slope - expected).abs() < 0.01 * size + 1e-3;
            let parameter = &parameter.name;
            assert!(close, "{name}: {parameter} along {what}: {slope}, not {expected} ({size})");
        }
    }
    learner.set_values(&before).expect("they fit");
}

#[test]
fn gradients_of_every_weight_are_what_differences_say() {
    for name in DENSE {
        let weights = weights(name);
        check_gradients(name, learner(&weights, Start::Full, options(2)));
    }
}

#[test]
fn gradients_of_every_factor_of_an_adapter_are_what_differences_say() {
    for name in DENSE {
        check_gradients(name, stirred(&weights(name), options(2)));
    }
}

#[test]
fn gradients_are_the_same_bits_on_any_threads_whatever_is_kept() {
    for name in DENSE {
        let weights = weights(name);
        let all: [&dyn Fn(LearnerOptions) -> CpuLearner; 2] =
            [&|options| learner(&weights, Start::Full, options), &|options| {
                stirred(&weights, options)
            }];
        for make in all {
            let batch = || [batch(), group()].concat();
            let expected = bits(&gradients(&mut make(options(1)), &batch()));
            for others in [
                options(2),
                options(3),
                LearnerOptions { recompute: true, ..options(2) },
                LearnerOptions { isa: Isa::Portable, ..options(3) },
            ] {
                let mut learner = make(others);
                assert!(bits(&gradients(&mut learner, &batch())) == expected, "{name} {others:?}");
                // What was left in the buffers changes nothing.
                assert!(bits(&gradients(&mut learner, &batch())) == expected, "{name} {others:?}");
            }
        }
    }
}

#[test]
fn a_batch_that_is_cut_has_the_same_gradients_to_the_bit() {
    let weights = weights("tiny-qwen3");
    for mut learner in [stirred(&weights, options(2)), learner(&weights, Start::Full, options(2))] {
        let whole = gradients(&mut learner, &batch());
        let mut cut = zeros(&learner);
        let all = slopes(&learner.score(&batch()).expect("the batch is sound"));
        let mut first = 0;
        for sequence in batch() {
            let mut slopes = |scores: &Scores| {
                let range = first..first + scores.logprobs.len();
                first = range.end;
                let (logprobs, entropies) = (&all.logprobs, &all.entropies);
                let logprobs = logprobs[range.clone()].to_vec();
                Slopes { logprobs, entropies: entropies[range].to_vec() }
            };
            learner.accumulate(&[sequence], &mut slopes, &mut cut).expect("it is sound");
        }
        assert!(bits(&whole) == bits(&cut), "{}", learner.description());
    }
}

#[test]
fn more_scored_tokens_than_are_computed_at_once_have_the_same_scores_and_gradients() {
    let weights = weights("tiny-qwen3");
    let mut learner = learner(&weights, Start::Full, options(2));
    let mut draws = Stream::derive(Root::Seed(10), "many", &[]);
    let mut sequence = |_| Sequence {
        tokens: (0..250).map(|_| draws.below(300) as u32).collect(),
        scored: (1..250).collect(),
        temperature: 1.0,
        experts: None,
    };
    let batch: Vec<Sequence> = (0..5).map(&mut sequence).collect();
    let mut flat = |scores: &Scores| Slopes {
        logprobs: vec![-0.5; scores.logprobs.len()],
        entropies: vec![0.1; scores.entropies.len()],
    };
    let (mut whole, mut cut) = (zeros(&learner), zeros(&learner));
    let scores = learner.accumulate(&batch, &mut flat, &mut whole).expect("it is sound");
    assert_eq!(scores.logprobs.len(), 5 * 249);
    let mut first = 0;
    for sequence in batch.chunks(1) {
        let alone = learner.accumulate(sequence, &mut flat, &mut cut).expect("it is sound");
        assert_eq!(alone.logprobs, scores.logprobs[first..first + 249]);
        first += 249;
    }
    assert!(bits(&whole) == bits(&cut));
}

#[test]
fn samples_that_share_their_prompt_have_the_scores_and_gradients_of_each_alone() {
    for name in DENSE {
        let weights = weights(name);
        for mut learner in
            [stirred(&weights, options(2)), learner(&weights, Start::Full, options(2))]
        {
            let together = learner.score(&group()).expect("the batch is sound");
            let mut alone = Scores::default();
            let mut gradients_alone = zeros(&learner);
            let all = slopes(&together);
            for sequence in group() {
                let batch = std::slice::from_ref(&sequence);
                let first = alone.logprobs.len();
                let mut slopes = |scores: &Scores| Slopes {
                    logprobs: all.logprobs[first..][..scores.logprobs.len()].to_vec(),
                    entropies: all.entropies[first..][..scores.logprobs.len()].to_vec(),
                };
                let scores = learner.accumulate(batch, &mut slopes, &mut gradients_alone);
                let scores = scores.expect("it is sound");
                alone.logprobs.extend(scores.logprobs);
                alone.entropies.extend(scores.entropies);
            }
            assert_eq!(bits(&[together.logprobs]), bits(&[alone.logprobs]), "{name}");
            assert_eq!(bits(&[together.entropies]), bits(&[alone.entropies]), "{name}");
            let gradients = gradients(&mut learner, &group());
            for (index, parameter) in learner.parameters().iter().enumerate() {
                let (of, alone) = (&gradients[index], &gradients_alone[index]);
                let size = of.iter().fold(0.0_f32, |size, of| size.max(of.abs()));
                for (of, alone) in of.iter().zip(alone) {
                    let close = (of - alone).abs() <= 1e-4 * size;
                    assert!(close, "{name} {}: {of} {alone} of {size}", parameter.name);
                }
            }
        }
    }
}

#[test]
fn scores_are_the_same_with_and_without_gradients() {
    let weights = weights("tiny-qwen3");
    let mut learner = stirred(&weights, options(2));
    let scores = learner.score(&batch()).expect("the batch is sound");
    let mut gradients = zeros(&learner);
    let mut none = |scores: &Scores| Slopes {
        logprobs: vec![0.0; scores.logprobs.len()],
        entropies: Vec::new(),
    };
    let again = learner.accumulate(&batch(), &mut none, &mut gradients).expect("it is sound");
    assert_eq!(scores, again);
    assert!(gradients.iter().flatten().all(|gradient| *gradient == 0.0));
}

#[test]
fn an_adapter_is_worth_its_merged_weights() {
    let weights = weights("tiny-llama");
    let mut adapted = stirred(&weights, options(1));
    let mut merged = learner(&weights, Start::Full, options(1));
    let factors = adapted.values().expect("the CPU works");
    let mut values = merged.values().expect("the CPU works");
    let scale = adapted.scale().expect("an adapter is trained");
    for (index, parameter) in adapted.parameters().iter().enumerate().step_by(2) {
        let module = parameter.name.strip_prefix("base_model.model.").expect("PEFT's name");
        let module = module.strip_suffix(".lora_A.weight").expect("A comes first");
        let place = merged
            .parameters()
            .iter()
            .position(|of| of.name.strip_suffix(".weight") == Some(module));
        let place = place.expect("the adapted weight is there");
        let (a, b) = (&factors[index], &factors[index + 1]);
        let columns = parameter.shape[1];
        for (at, weight) in values[place].iter_mut().enumerate() {
            let (row, column) = (at / columns, at % columns);
            let change: f32 = (0..RANK).map(|r| b[row * RANK + r] * a[r * columns + column]).sum();
            *weight += scale * change;
        }
    }
    merged.set_values(&values).expect("they fit");
    let adapted = adapted.score(&batch()).expect("the batch is sound");
    let merged = merged.score(&batch()).expect("the batch is sound");
    for (adapted, merged) in adapted.logprobs.iter().zip(&merged.logprobs) {
        assert!((adapted - merged).abs() < 1e-4, "{adapted} {merged}");
    }
}

#[test]
fn a_step_along_the_gradient_lowers_the_loss() {
    let weights = weights("tiny-llama");
    let start = Start::Drawn { rank: 4, alpha: 8.0, stream: stream() };
    let mut learner = learner(&weights, start, options(2));
    let before = loss(&learner.score(&batch()).expect("the batch is sound"));
    for _ in 0..3 {
        let gradients = gradients(&mut learner, &batch());
        let mut values = learner.values().expect("the CPU works");
        for (value, gradient) in values.iter_mut().flatten().zip(gradients.iter().flatten()) {
            *value -= 0.01 * gradient;
        }
        learner.set_values(&values).expect("they fit");
    }
    let after = loss(&learner.score(&batch()).expect("the batch is sound"));
    assert!(after < before - 0.1, "{before} {after}");
}

#[test]
fn what_does_not_fit_is_an_error_and_changes_nothing() {
    let weights = weights("tiny-llama");
    let mut learner = learner(&weights, Start::Full, options(1));
    let sound = batch()[1].clone();
    let cases = [
        (Sequence { scored: vec![0], ..sound.clone() }, "sequence 1: scored place 0"),
        (Sequence { scored: vec![19], ..sound.clone() }, "sequence 1: scored place 19"),
        (Sequence { scored: vec![3, 3], ..sound.clone() }, "sequence 1: scored place 3"),
        (Sequence { tokens: vec![304; 19], ..sound.clone() }, "sequence 1: token 304"),
        (Sequence { tokens: vec![1; 257], ..sound.clone() }, "sequence 1: 257 tokens"),
        (Sequence { tokens: vec![], scored: vec![], ..sound.clone() }, "sequence 1: 0 tokens"),
        (Sequence { temperature: 0.0, ..sound.clone() }, "sequence 1: temperature 0"),
        (Sequence { temperature: f32::NAN, ..sound.clone() }, "sequence 1: temperature NaN"),
    ];
    for (case, expected) in cases {
        let batch = [sound.clone(), case];
        let error = learner.score(&batch).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
        let mut gradients = zeros(&learner);
        let error = learner.accumulate(&batch, &mut slopes, &mut gradients).expect_err(expected);
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(gradients.iter().flatten().all(|gradient| *gradient == 0.0));
    }
    let mut few = |_: &Scores| Slopes { logprobs: vec![1.0], entropies: vec![] };
    let mut gradients = zeros(&learner);
    let error = learner
        .accumulate(std::slice::from_ref(&sound), &mut few, &mut gradients)
        .expect_err("few");
    assert!(error.to_string().contains("12 scores have 1 slopes"), "{error}");
    let error = learner.accumulate(&[sound], &mut slopes, &mut gradients[1..]).expect_err("few");
    assert!(error.to_string().contains("values of 19 parameters"), "{error}");
    let mut values = learner.values().expect("the CPU works");
    values[0].pop();
    let error = learner.set_values(&values).expect_err("one is missing").to_string();
    assert!(error.contains("tensor `model.embed_tokens.weight`: 19455 values"), "{error}");
    learner.score(&batch()).expect("it still works");
}

#[test]
fn what_is_not_trained_here_is_refused_by_name() {
    let moe = weights("tiny-qwen3-moe");
    let error = CpuLearner::load(&moe, Start::Full, options(1)).err().expect("refused");
    assert!(error.to_string().contains("`qwen3moe` is not trained on the CPU"), "{error}");
    let dense = weights("tiny-llama");
    let cases = [(0, 1.0, "rank 0"), (513, 1.0, "rank 513"), (4, f32::NAN, "scale NaN")];
    for (rank, alpha, expected) in cases {
        let start = Start::Drawn { rank, alpha, stream: stream() };
        let error = CpuLearner::load(&dense, start, options(1)).err().expect("refused");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn no_scored_token_is_no_gradient() {
    let weights = weights("tiny-llama");
    let mut learner = learner(&weights, Start::Full, options(2));
    let none = [Sequence { scored: vec![], ..batch()[1].clone() }];
    assert_eq!(learner.score(&none).expect("it is sound"), Scores::default());
    assert_eq!(learner.score(&[]).expect("it is sound"), Scores::default());
    for batch in [&none[..], &[]] {
        let gradients = gradients(&mut learner, batch);
        assert!(gradients.iter().flatten().all(|gradient| *gradient == 0.0));
    }
}

#[test]
fn a_new_adapter_changes_nothing_and_is_drawn_as_peft_does() {
    let weights = weights("tiny-llama");
    let mut plain = learner(&weights, Start::Full, options(1));
    let start = || Start::Drawn { rank: 8, alpha: 16.0, stream: stream() };
    let mut new = learner(&weights, start(), options(1));
    assert_eq!(plain.score(&batch()).expect("sound"), new.score(&batch()).expect("sound"));
    let (again, values) = (learner(&weights, start(), options(1)), new.values());
    let values = values.expect("the CPU works");
    assert_eq!(bits(&again.values().expect("the CPU works")), bits(&values));
    for (parameter, values) in new.parameters().iter().zip(&values) {
        if parameter.name.ends_with("lora_B.weight") {
            assert!(values.iter().all(|value| *value == 0.0), "{}", parameter.name);
            continue;
        }
        let bound = 1.0 / (parameter.shape[1] as f32).sqrt();
        assert!(values.iter().all(|value| value.abs() <= bound), "{}", parameter.name);
        let square = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
        // An even distribution's variance is a third of its bound's square.
        assert!((square * 3.0 / (bound * bound) - 1.0).abs() < 0.2, "{}", parameter.name);
    }
}
