//! What trains: its scores against the engines', its gradients against differences of its scores.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::slice;

use arena_burn::device::BurnDevice;
use arena_burn::executor::BurnExecutor;
use arena_burn::learner::{BurnLearner, LearnerParts};
use arena_burn::loading;
use arena_burn::memory::Activations;
use arena_core::seed::{Root, Stream};
use arena_model::cpu::CpuExecutor;
use arena_model::cpu::learner::{CpuLearner, LearnerOptions, Start};
use arena_model::executor::{AdapterId, BLOCK_TOKENS, Executor as _};
use arena_model::learner::{Learner, Parameter, Scores, Sequence, Slopes};
use arena_weights::adapter::Adapter;
use arena_weights::config::Architecture;
use arena_weights::tensor::Tensor;
use arena_weights::weights::Weights;
use arena_weights::write::{self, AdapterSettings};

use crate::tiny::{self, ARCHITECTURES, Random, piece, run};

/// What is trained in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Full,
    /// An adapter of rank 3, its values random.
    Adapter,
}

impl What {
    fn start(self) -> Start<'static> {
        match self {
            What::Full => Start::Full,
            What::Adapter => Start::Drawn { rank: 3, alpha: 1.5, stream: stream() },
        }
    }
}

fn stream() -> Stream {
    Stream::derive(Root::Seed(7), "test", &[1])
}

/// How far a weight is moved, along a direction of random numbers.
const STEP: f32 = 1.0e-3;

/// Returns a learner of a tiny model, its adapter's values random.
fn learner(
    architecture: Architecture,
    device: BurnDevice,
    trained: What,
    activations: Activations,
) -> BurnLearner {
    let parts = parts(architecture, device);
    let mut learner =
        BurnLearner::new(parts, device, trained.start(), activations).expect("the device is there");
    if trained == What::Adapter {
        fill(&mut learner);
    }
    learner
}

fn parts(architecture: Architecture, device: BurnDevice) -> LearnerParts {
    let config = tiny::config(architecture);
    let model = tiny::model(architecture, &device.open().expect("the device is there"));
    LearnerParts { token_count: config.vocab, config, model }
}

/// Gives all parameters random values.
fn fill(learner: &mut BurnLearner) {
    let values: Vec<Vec<f32>> = learner
        .parameters()
        .iter()
        .map(|Parameter { name, shape }| {
            let values = tiny::tensor(name, shape);
            values.iter().map(|value| 0.5 * value).collect()
        })
        .collect();
    learner.set_values(&values).expect("they fit");
}

fn sequence(seed: u64, count: usize, scored: &[u32], temperature: f32) -> Sequence {
    let (tokens, scored) = (Random(seed).tokens(count), scored.to_vec());
    Sequence { tokens, scored, temperature, experts: None }
}

/// Returns sequences of different lengths, some of which attend together.
fn batch() -> Vec<Sequence> {
    vec![
        sequence(1, 9, &[1, 2, 8], 1.0),
        sequence(2, 14, &[5, 6, 7, 13], 0.7),
        sequence(3, 4, &[], 1.0),
        sequence(4, 12, &[3, 11], 1.3),
        sequence(5, 2, &[1], 1.0),
    ]
}

/// Returns how a loss changes with scores: one that weighs every score differently.
fn slopes(scores: &Scores) -> Slopes {
    let count = scores.logprobs.len();
    let (logprobs, entropies) = (Random(21).floats(count), Random(22).floats(count));
    Slopes { logprobs, entropies }
}

fn loss(scores: &Scores) -> f64 {
    let Slopes { logprobs, entropies } = slopes(scores);
    let sum = |slopes: &[f32], scores: &[f32]| -> f64 {
        slopes.iter().zip(scores).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    sum(&logprobs, &scores.logprobs) + sum(&entropies, &scores.entropies)
}

fn zeros(learner: &dyn Learner) -> Vec<Vec<f32>> {
    let count = |parameter: &Parameter| parameter.shape.iter().product();
    learner.parameters().iter().map(|parameter| vec![0.0; count(parameter)]).collect()
}

/// Returns the scores and the gradients of a batch.
fn gradients(learner: &mut dyn Learner, batch: &[Sequence]) -> (Scores, Vec<Vec<f32>>) {
    let mut gradients = zeros(learner);
    let scores = learner
        .accumulate(batch, &mut |scores| slopes(scores), &mut gradients)
        .expect("the batch fits");
    (scores, gradients)
}

/// Holds numbers against those of another way to compute them: `share` is of the greatest.
#[track_caller]
fn assert_near(found: &[f32], expected: &[f32], share: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let greatest = expected.iter().fold(0.0, |most: f32, value| most.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        let difference = (found - expected).abs();
        assert!(difference <= share * greatest + 1.0e-6, "{what}: {found}, not {expected}");
    }
}

#[track_caller]
fn assert_same_learning(
    (scores, gradients): &(Scores, Vec<Vec<f32>>),
    (expected_scores, expected): &(Scores, Vec<Vec<f32>>),
    what: &str,
) {
    assert_near(&scores.logprobs, &expected_scores.logprobs, 1.0e-5, what);
    assert_near(&scores.entropies, &expected_scores.entropies, 1.0e-5, what);
    for (found, expected) in gradients.iter().zip(expected) {
        assert_near(found, expected, 1.0e-4, what);
    }
}

/// Runs a check of every architecture, with all of it trained and with an adapter.
fn on_all(check: impl Fn(Architecture, BurnDevice, What, &str)) {
    for device in tiny::devices() {
        for architecture in ARCHITECTURES {
            for trained in [What::Full, What::Adapter] {
                let what = format!("{architecture:?}, {trained:?} on {device}");
                check(architecture, device, trained, &what);
            }
        }
    }
}

/// Lets a mixture go through the experts that it likes best now, whatever becomes of it.
fn replayed(learner: &mut BurnLearner, batch: Vec<Sequence>) -> Vec<Sequence> {
    let experts = learner.route(&batch).expect("the batch fits");
    let replay = |(sequence, experts): (Sequence, Vec<u16>)| Sequence {
        experts: (!experts.is_empty()).then_some(experts),
        ..sequence
    };
    batch.into_iter().zip(experts).map(replay).collect()
}

#[test]
fn gradients_say_how_the_loss_changes_with_every_parameter() {
    on_all(|architecture, device, trained, what| {
        let mut learner = learner(architecture, device, trained, Activations::Kept);
        // The loss jumps where a row changes its experts.
        let batch = replayed(&mut learner, batch());
        let (_, gradients) = gradients(&mut learner, &batch);
        let values = learner.values().expect("the device works");
        let mut reached = 0;
        for (at, gradient) in gradients.iter().enumerate() {
            let direction = Random(at as u64).floats(gradient.len());
            let expected: f64 =
                gradient.iter().zip(&direction).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let mut moved = |step: f32| {
                let mut values = values.clone();
                let moves = values[at].iter_mut().zip(&direction);
                moves.for_each(|(value, direction)| *value += step * direction);
                learner.set_values(&values).expect("they fit");
                loss(&learner.score(&batch).expect("the batch fits"))
            };
            let found = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
            let name = &learner.parameters()[at].name;
            assert!(
                (found - expected).abs() <= 0.02 * expected.abs() + 6.0e-3,
                "{what}, {name}: {found} by difference, {expected} by gradient"
            );
            reached += usize::from(expected.abs() > 0.05);
        }
        assert!(reached * 2 > gradients.len(), "{what}: {reached} of {}", gradients.len());
    });
}

#[test]
fn layers_computed_again_give_the_same_gradients() {
    on_all(|architecture, device, trained, what| {
        let kept =
            gradients(&mut learner(architecture, device, trained, Activations::Kept), &batch());
        let again = gradients(
            &mut learner(architecture, device, trained, Activations::Recomputed),
            &batch(),
        );
        assert_same_learning(&again, &kept, what);
    });
}

#[test]
fn a_batch_learns_what_its_sequences_learn_alone() {
    on_all(|architecture, device, trained, what| {
        let mut learner = learner(architecture, device, trained, Activations::Kept);
        let batch = batch();
        let together = gradients(&mut learner, &batch);
        let mut alone = (Scores::default(), zeros(&learner));
        for sequence in &batch {
            let at = alone.0.logprobs.len();
            let all = slopes(&together.0);
            let mut of_sequence = |scores: &Scores| {
                let places = at..at + scores.logprobs.len();
                Slopes {
                    logprobs: all.logprobs[places.clone()].to_vec(),
                    entropies: all.entropies[places].to_vec(),
                }
            };
            let scores = learner
                .accumulate(slice::from_ref(sequence), &mut of_sequence, &mut alone.1)
                .expect("the sequence fits");
            alone.0.logprobs.extend(scores.logprobs);
            alone.0.entropies.extend(scores.entropies);
        }
        assert_same_learning(&together, &alone, what);
        assert_eq!(learner.score(&batch).expect("the batch fits").logprobs.len(), 10);
    });
}

#[test]
fn an_adapter_scores_like_weights_that_it_was_added_to() {
    for device in tiny::devices() {
        for architecture in ARCHITECTURES {
            let mut adapted = learner(architecture, device, What::Adapter, Activations::Kept);
            let mut merged = learner(architecture, device, What::Full, Activations::Kept);
            let plain = merged.score(&batch()).expect("the batch fits");
            let factors = adapted.values().expect("the device works");
            let mut weights = merged.values().expect("the device works");
            let pairs = adapted.parameters().chunks_exact(2).zip(factors.chunks_exact(2));
            for (parameters, factors) in pairs {
                let name = &parameters[0].name;
                let module = name
                    .strip_prefix("base_model.model.")
                    .and_then(|name| name.strip_suffix(".lora_A.weight"))
                    .expect("PEFT's name of the first factor");
                let name = format!("{module}.weight");
                let at = merged.parameters().iter().position(|parameter| parameter.name == name);
                let weight = &mut weights[at.expect("the adapted weight is one of the model's")];
                let columns = parameters[0].shape[1];
                for (at, weight) in weight.iter_mut().enumerate() {
                    let (row, column) = (at / columns, at % columns);
                    let change =
                        |r: usize| factors[1][row * 3 + r] * factors[0][r * columns + column];
                    *weight += 0.5 * (0..3).map(change).sum::<f32>();
                }
            }
            merged.set_values(&weights).expect("they fit");
            let what = format!("{architecture:?} on {device}");
            let found = adapted.score(&batch()).expect("the batch fits");
            let expected = merged.score(&batch()).expect("the batch fits");
            assert_near(&found.logprobs, &expected.logprobs, 1.0e-4, &what);
            assert_near(&found.entropies, &expected.entropies, 1.0e-4, &what);
            let changes = plain.logprobs.iter().zip(&found.logprobs).map(|(a, b)| (a - b).abs());
            assert!(changes.fold(0.0, f32::max) > 0.1, "{what}");
        }
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/fixtures").join(name)
}

fn load(name: &str, device: BurnDevice, trained: What) -> (Weights, BurnLearner) {
    let weights = Weights::open(&fixture(name)).expect("the fixture is sound");
    let learner = BurnLearner::load(&weights, device, trained.start(), Activations::Recomputed)
        .expect("the device is there");
    (weights, learner)
}

/// Returns what logits say of a token, `(logprob, entropy)`, in `f64`.
fn of_logits(logits: &[f32], temperature: f32, token: u32) -> (f32, f32) {
    let scaled: Vec<f64> =
        logits.iter().map(|logit| f64::from(*logit) / f64::from(temperature)).collect();
    let greatest = scaled.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = scaled.iter().map(|logit| (logit - greatest).exp()).sum();
    let logprob = |logit: f64| logit - greatest - sum.ln();
    let entropy: f64 = scaled.iter().map(|&logit| -logprob(logit).exp() * logprob(logit)).sum();
    (logprob(scaled[token as usize]) as f32, entropy as f32)
}

#[test]
fn scores_are_those_of_the_engine_that_samples() {
    for device in tiny::devices() {
        for name in ["tiny-llama", "tiny-qwen3", "tiny-qwen3-moe", "tiny-qwen3-moe-raw"] {
            let (weights, mut learner) = load(name, device, What::Full);
            let mut engine = CpuExecutor::load(&weights, NonZeroUsize::MIN, 1 << 20)
                .expect("the fixture can be loaded");
            let found = learner.score(&batch()).expect("the batch fits");
            let mut expected = Scores::default();
            let tokens = weights.tokenizer().expect("the fixture is sound").vocab();
            for sequence in batch() {
                assert!(sequence.tokens.len() <= BLOCK_TOKENS);
                let logits = run(&mut engine, &[piece(0, &sequence.tokens, &[0])]);
                for &place in &sequence.scored {
                    let place = place as usize;
                    let vocab = learner.shape().vocab;
                    let row = &logits[(place - 1) * vocab..][..tokens];
                    let (logprob, entropy) =
                        of_logits(row, sequence.temperature, sequence.tokens[place]);
                    expected.logprobs.push(logprob);
                    expected.entropies.push(entropy);
                }
            }
            assert_near(&found.logprobs, &expected.logprobs, 1.0e-4, name);
            assert_near(&found.entropies, &expected.entropies, 1.0e-4, name);
        }
    }
}

#[test]
fn an_executor_of_the_learners_model_samples_from_what_is_trained() {
    on_all(|architecture, device, trained, what| {
        let mut learner = learner(architecture, device, trained, Activations::Kept);
        let plain = learner.model().clone();
        let mut values = learner.values().expect("the device works");
        values.iter_mut().flatten().for_each(|value| *value *= 0.5);
        learner.set_values(&values).expect("they fit");
        let sequence = sequence(8, 11, &[1, 5, 10], 1.0);
        let found = learner.score(slice::from_ref(&sequence)).expect("it fits");
        let mut before = tiny::serve(plain, architecture, device);
        let mut now = tiny::serve(learner.model().clone(), architecture, device);
        let logprobs = |engine: &mut BurnExecutor| {
            let logits = run(engine, &[piece(0, &sequence.tokens, &[0])]);
            [1, 5, 10].map(|place: usize| {
                let row = &logits[(place - 1) * 91..place * 91];
                of_logits(row, 1.0, sequence.tokens[place]).0
            })
        };
        assert_near(&found.logprobs, &logprobs(&mut now), 1.0e-4, what);
        assert_ne!(logprobs(&mut now), logprobs(&mut before), "{what}");
    });
}

#[test]
fn an_adapter_of_peft_is_one_that_can_be_trained_on() {
    for device in tiny::devices() {
        let weights = Weights::open(&fixture("tiny-llama")).expect("the fixture is sound");
        let adapter = Adapter::open(&fixture("tiny-llama-adapter"), weights.config())
            .expect("the fixture is sound");
        let start = Start::Adapter { adapter: &adapter, stream: stream() };
        let mut learner = BurnLearner::load(&weights, device, start, Activations::Kept)
            .expect("the adapter fits");
        let values = learner.values().expect("the device works");
        let mut given = 0;
        for (Parameter { name, .. }, values) in learner.parameters().iter().zip(values) {
            let module = name.strip_prefix("base_model.model.").expect("PEFT wraps the model");
            let (module, factor) = module.split_once(".lora_").expect("it is a factor");
            match (adapter.layers.get(&format!("{module}.weight")), factor) {
                (Some(layer), "A.weight") => assert_eq!(values, layer.a, "{name}"),
                (Some(layer), _) => assert_eq!(values, layer.b, "{name}"),
                (None, _) => continue,
            }
            given += 1;
        }
        assert_eq!(given, 2 * adapter.layers.len());

        let mut engine =
            BurnExecutor::load(&weights, device, 1 << 20).expect("the device is there");
        engine.set_adapter(AdapterId(0), Some(&adapter)).expect("it fits the model");
        let sequence = sequence(6, 13, &[4, 12], 1.0);
        let mut adapted = piece(0, &sequence.tokens, &[0]);
        adapted.adapter = Some(AdapterId(0));
        let logits = run(&mut engine, &[adapted]);
        let vocab = learner.shape().vocab;
        let tokens = weights.tokenizer().expect("the fixture is sound").vocab();
        let expected = [4usize, 12].map(|place| {
            let row = &logits[(place - 1) * vocab..][..tokens];
            of_logits(row, 1.0, sequence.tokens[place]).0
        });
        let found = learner.score(&[sequence]).expect("it fits");
        assert_near(&found.logprobs, &expected, 1.0e-4, "with the adapter");
    }
}

/// Writes what a learner learned as PEFT does, and reads it.
fn written(learner: &BurnLearner) -> Adapter {
    let values = learner.values().expect("the device works");
    let tensors: Vec<Tensor> = { learner.parameters().iter() }
        .zip(values)
        .map(|(it, values)| Tensor::of_f32(&it.name, &it.shape, &values))
        .collect();
    let folder = tempfile::tempdir().expect("there is a place for files");
    let settings = AdapterSettings { rank: 3, alpha: 1.5, base_model: "tiny" };
    write::adapter(settings, &tensors, learner.shape(), folder.path()).expect("it is new");
    Adapter::open(folder.path(), learner.shape()).expect("what was written can be read")
}

#[test]
fn a_written_adapter_of_a_mixture_applies_to_its_own_rows() {
    for device in tiny::devices() {
        let (weights, mut learner) = load("tiny-qwen3-moe", device, What::Adapter);
        let sequences = [sequence(11, 9, &[3, 8], 1.0), sequence(12, 7, &[2, 6], 1.0)];
        let plain = learner.score(&sequences[1..]).expect("they fit");
        fill(&mut learner);
        let trained = learner.score(&sequences[..1]).expect("they fit");
        let adapter = written(&learner);
        assert_eq!(adapter.layers.len(), learner.parameters().len() / 2);
        let start = Start::Adapter { adapter: &adapter, stream: stream() };
        let again = BurnLearner::load(&weights, device, start, Activations::Kept);
        assert_eq!(by_name(&again.expect("it fits")), by_name(&learner));

        let mut engine =
            BurnExecutor::load(&weights, device, 1 << 20).expect("the device is there");
        engine.set_adapter(AdapterId(3), Some(&adapter)).expect("it fits the model");
        let mut pieces =
            [piece(0, &sequences[0].tokens, &[0]), piece(0, &sequences[1].tokens, &[1])];
        pieces[0].adapter = Some(AdapterId(3));
        let logits = run(&mut engine, &pieces);
        let vocab = learner.shape().vocab;
        let tokens = weights.tokenizer().expect("the fixture is sound").vocab();
        let logprob = |first: usize, sequence: &Sequence, place: usize| {
            let row = &logits[(first + place - 1) * vocab..][..tokens];
            of_logits(row, 1.0, sequence.tokens[place]).0
        };
        let found = [3, 8].map(|place| logprob(0, &sequences[0], place));
        assert_near(&found, &trained.logprobs, 1.0e-4, "with the adapter");
        let found = [2, 6].map(|place| logprob(9, &sequences[1], place));
        assert_near(&found, &plain.logprobs, 1.0e-4, "without it");
    }
}

#[test]
fn weights_kept_as_they_are_stored_give_the_same_results() {
    let device = BurnDevice::Flex.open().expect("it is there");
    for name in ["tiny-qwen3-moe", "tiny-qwen3"] {
        let weights = Weights::open(&fixture(name)).expect("the fixture is sound");
        let narrow = loading::load_as_stored(&weights, &device).expect("the fixture is sound");
        let parts = LearnerParts::new(&weights, narrow).expect("the fixture is sound");
        let new = |trained: What| {
            let start = trained.start();
            BurnLearner::new(parts.clone(), BurnDevice::Flex, start, Activations::Recomputed)
        };
        let mut narrow = new(What::Adapter).expect("an adapter can be trained");
        let (_, mut wide) = load(name, BurnDevice::Flex, What::Adapter);
        for learner in [&mut narrow, &mut wide] {
            fill(learner);
        }
        assert!(wide.description().contains("weights=f32\n"));
        assert!(narrow.description().contains("weights=bf16"), "{}", narrow.description());
        assert_eq!(gradients(&mut narrow, &batch()), gradients(&mut wide, &batch()), "{name}");
        let refused = new(What::Full).err().expect("it has no `f32` to be trained");
        let formats = narrow.model().formats();
        assert_eq!(
            refused.to_string(),
            format!("weights in `{formats}` can only be trained with an adapter, not in full")
        );
    }
}

#[test]
fn replayed_experts_that_would_be_chosen_anyway_change_nothing() {
    for device in tiny::devices() {
        for name in ["tiny-qwen3-moe", "tiny-qwen3-moe-raw"] {
            let (_, mut learner) = load(name, device, What::Adapter);
            fill(&mut learner);
            let batch_again = replayed(&mut learner, batch());
            let moe = learner.shape().moe.expect("it is a mixture");
            let of_token = learner.shape().layers * moe.experts_per_token;
            assert_eq!(batch_again[1].experts.as_ref().map(Vec::len), Some(14 * of_token));
            let anew = gradients(&mut learner, &batch());
            assert_same_learning(&gradients(&mut learner, &batch_again), &anew, name);

            // And others do: each expert's neighbour.
            let other = |sequence: &Sequence| {
                let experts = sequence.experts.iter().flatten();
                let experts =
                    Some(experts.map(|expert| (expert + 1) % moe.experts as u16).collect());
                Sequence { experts, ..sequence.clone() }
            };
            let others: Vec<Sequence> = batch_again.iter().map(other).collect();
            let scores = learner.score(&others).expect("the batch fits");
            let changes = scores.logprobs.iter().zip(&anew.0.logprobs).map(|(a, b)| (a - b).abs());
            assert!(changes.fold(0.0, f32::max) > 1.0e-3, "{name}");
            assert_eq!(
                learner.route(&others).expect("the batch fits"),
                others.iter().flat_map(|it| it.experts.clone()).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn experts_that_no_token_goes_through_get_no_gradient() {
    let (_, mut learner) = load("tiny-qwen3-moe", BurnDevice::Flex, What::Full);
    let mut only = sequence(7, 5, &[2, 4], 1.0);
    only.experts = Some([3, 1].repeat(5 * 2));
    let (_, gradients) = gradients(&mut learner, &[only]);
    for (Parameter { name, .. }, gradient) in learner.parameters().iter().zip(gradients) {
        let is_zero = gradient.iter().all(|slope| *slope == 0.0);
        let is_chosen = ["experts.1.", "experts.3."].iter().any(|expert| name.contains(expert));
        assert_eq!(is_zero, name.contains(".experts.") && !is_chosen, "{name}");
    }
}

#[test]
fn what_is_trained_has_the_names_of_files() {
    let names = |architecture, trained: What| -> Vec<String> {
        let learner = learner(architecture, BurnDevice::Flex, trained, Activations::Kept);
        let named = |parameter: &Parameter| format!("{} {:?}", parameter.name, parameter.shape);
        learner.parameters().iter().map(named).collect()
    };
    let (weights, learner) = load("tiny-qwen3", BurnDevice::Flex, What::Full);
    let mut found: Vec<(&str, &[usize])> =
        learner.parameters().iter().map(|it| (it.name.as_str(), it.shape.as_slice())).collect();
    found.sort();
    let tensors = weights.tensors().iter();
    let expected: Vec<(&str, &[usize])> =
        tensors.map(|it| (it.name.as_str(), it.shape.as_slice())).collect();
    assert_eq!(found, expected);

    let of_mixture = names(Architecture::Qwen3Moe, What::Full);
    assert_eq!(of_mixture.len(), 3 + 2 * (4 + 4 + 1 + 6 * 3));
    assert!(of_mixture.contains(&"model.layers.1.mlp.experts.5.down_proj.weight [36, 20]".into()));
    assert!(of_mixture.contains(&"model.layers.0.mlp.gate.weight [6, 36]".into()));

    let adapter = names(Architecture::Qwen3Moe, What::Adapter);
    assert_eq!(adapter.len(), 2 * (4 + 6 * 3) * 2);
    let layer = "base_model.model.model.layers.1";
    for expected in [
        "self_attn.o_proj.lora_A.weight [3, 60]",
        "self_attn.o_proj.lora_B.weight [36, 3]",
        "mlp.experts.5.gate_proj.lora_A.weight [3, 36]",
        "mlp.experts.5.gate_proj.lora_B.weight [20, 3]",
    ] {
        assert!(adapter.contains(&format!("{layer}.{expected}")), "{expected}");
    }
    assert!(!adapter.iter().any(|name| name.contains("mlp.gate.")), "the router is frozen");
}

#[test]
fn the_learner_on_the_cpu_learns_the_same() {
    for device in tiny::devices() {
        for name in ["tiny-llama", "tiny-qwen3"] {
            for trained in [What::Full, What::Adapter] {
                let (weights, mut burn) = load(name, device, trained);
                let options = LearnerOptions::new(NonZeroUsize::MIN);
                let mut cpu = CpuLearner::load(&weights, trained.start(), options)
                    .expect("the fixture can be loaded");
                let what = format!("{name}, {trained:?} on {device}");
                assert_eq!(by_name(&burn), by_name(&cpu), "{what}");
                if trained == What::Adapter {
                    fill(&mut burn);
                    let values = by_name(&burn);
                    let value = |parameter: &Parameter| values[&parameter.name].clone();
                    let values: Vec<Vec<f32>> = cpu.parameters().iter().map(value).collect();
                    cpu.set_values(&values).expect("they fit");
                }
                let (found_scores, found) = gradients(&mut burn, &batch());
                let (scores, expected) = gradients(&mut cpu, &batch());
                assert_near(&found_scores.logprobs, &scores.logprobs, 1.0e-5, &what);
                assert_near(&found_scores.entropies, &scores.entropies, 1.0e-5, &what);
                let expected = named(&cpu, expected);
                for (name, found) in named(&burn, found) {
                    let what = format!("{what}, {name}");
                    assert_near(&found, &expected[&name], 1.0e-4, &what);
                }
            }
        }
    }
}

fn named(learner: &dyn Learner, values: Vec<Vec<f32>>) -> BTreeMap<String, Vec<f32>> {
    let names = learner.parameters().iter().map(|parameter| parameter.name.clone());
    names.zip(values).collect()
}

fn by_name(learner: &dyn Learner) -> BTreeMap<String, Vec<f32>> {
    named(learner, learner.values().expect("the device works"))
}

#[test]
fn a_batch_without_scored_tokens_teaches_nothing() {
    let mut learner = learner(Architecture::Llama, BurnDevice::Flex, What::Full, Activations::Kept);
    for batch in [vec![], vec![sequence(1, 5, &[], 1.0)]] {
        let (scores, gradients) = gradients(&mut learner, &batch);
        assert_eq!(scores, Scores::default());
        assert!(gradients.iter().flatten().all(|slope| *slope == 0.0));
        assert_eq!(learner.score(&batch).expect("it fits"), Scores::default());
    }
}

#[test]
fn a_batch_that_does_not_fit_is_refused_with_its_sequence() {
    let mut learner =
        learner(Architecture::Qwen3Moe, BurnDevice::Flex, What::Adapter, Activations::Kept);
    let mut refused = |change: &dyn Fn(&mut Sequence), expected: &str| {
        let mut batch = batch();
        change(&mut batch[1]);
        let mut gradients = zeros(&learner);
        let error = learner.score(&batch).expect_err("it does not fit").to_string();
        assert_eq!(error, format!("sequence 1: {expected}"));
        assert_eq!(learner.route(&batch).expect_err("likewise").to_string(), error);
        let again = learner.accumulate(&batch, &mut |_| unreachable!(), &mut gradients);
        assert_eq!(again.expect_err("likewise").to_string(), error);
    };
    refused(&|it| it.tokens[3] = 91, "token 91 is not one of 91");
    refused(&|it| it.tokens = vec![1; 257], "257 tokens, the model takes 1 to 256");
    refused(&|it| it.scored[0] = 0, "scored place 0 is not one of 1 to 13");
    refused(&|it| it.scored = vec![14], "scored place 14 is not one of 1 to 13");
    refused(&|it| it.temperature = f32::INFINITY, "temperature inf is not above 0");
    refused(
        &|it| it.experts = Some([0, 5].repeat(14 * 2)),
        "of a batch, all sequences have experts or none",
    );
}

#[test]
fn a_token_that_is_never_sampled_is_not_scored() {
    let parts = parts(Architecture::Llama, BurnDevice::Flex);
    let parts = LearnerParts { token_count: 90, ..parts };
    let mut learner = BurnLearner::new(parts, BurnDevice::Flex, Start::Full, Activations::Kept)
        .expect("the device is there");
    let mut sequence = sequence(1, 4, &[2], 1.0);
    sequence.tokens = vec![90, 1, 90, 90];
    let error = learner.score(slice::from_ref(&sequence)).expect_err("it cannot be sampled");
    assert_eq!(
        error.to_string(),
        "sequence 0: token 90 is never sampled: it is none of the 90 of the tokenizer"
    );
    // As context it is a token like any other.
    sequence.tokens[2] = 1;
    let likelihood = |token: u32| {
        let mut sequence = sequence.clone();
        sequence.tokens[2] = token;
        f64::from(learner.score(&[sequence]).expect("it can be sampled").logprobs[0]).exp()
    };
    let sum: f64 = (0..90).map(likelihood).sum();
    assert!((sum - 1.0).abs() < 1.0e-5, "{sum}");
}

#[test]
fn slopes_that_are_not_one_for_each_score_are_refused() {
    let mut learner = learner(Architecture::Llama, BurnDevice::Flex, What::Full, Activations::Kept);
    let mut gradients = zeros(&learner);
    let mut few =
        |scores: &Scores| Slopes { logprobs: scores.logprobs[1..].to_vec(), entropies: Vec::new() };
    let error = learner.accumulate(&batch(), &mut few, &mut gradients).expect_err("one misses");
    assert_eq!(error.to_string(), "device failed: 9 and 0 slopes of 10 scores");
}

#[test]
fn values_that_do_not_fit_name_the_tensor() {
    let mut learner =
        learner(Architecture::Llama, BurnDevice::Flex, What::Adapter, Activations::Kept);
    let before = learner.values().expect("the device works");
    let mut wrong = before.clone();
    wrong[3].push(0.0);
    assert_eq!(
        learner.set_values(&wrong).expect_err("one is too long").to_string(),
        "tensor `base_model.model.model.layers.0.self_attn.k_proj.lora_B.weight`: 61 values are \
         given, its shape is [20, 3]"
    );
    let error = learner.set_values(&before[1..]).expect_err("one is missing");
    assert_eq!(error.to_string(), "tensor `all`: 27 tensors are given, 28 are trained");
    assert_eq!(learner.values().expect("the device works"), before);
}

#[test]
fn an_adapter_that_there_is_not_is_refused() {
    for (rank, alpha) in [(0, 1.0), (1025, 1.0), (4, f32::NAN)] {
        let start = Start::Drawn { rank, alpha, stream: stream() };
        let parts = parts(Architecture::Llama, BurnDevice::Flex);
        let refused = BurnLearner::new(parts, BurnDevice::Flex, start, Activations::Kept);
        assert_eq!(
            refused.err().expect("there is none").to_string(),
            format!(
                "no adapter of rank `{rank}` and alpha `{alpha}`: ranks are 1 to 1024, and alphas \
                 are finite"
            )
        );
    }
}

#[test]
fn a_learner_says_what_computes() {
    let learner =
        learner(Architecture::Llama, BurnDevice::Flex, What::Adapter, Activations::Recomputed);
    assert_eq!(
        learner.description(),
        "device=flex\nkernels=burn 0.22.1\nweights=f32\ntrained=adapter of rank 3, alpha 1.5\n\
         activations=recomputed\n"
    );
}
