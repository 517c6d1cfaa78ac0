//! What the trainer does with lessons, on a model small enough to be written down.

use arena_core::seed::{Root, Stream};
use arena_model::executor::ExecutorError;
use arena_model::learner::{self, Learner, Parameter, Scores, Sequence, Slopes};
use arena_train::advantage::{Baseline, advantages};
use arena_train::example::Example;
use arena_train::objective::{Clip, Loss, Objective};
use arena_train::optimiser::AdamW;
use arena_train::reward::RewardMicro;
use arena_train::trainer::{Course, Imitation, Lesson, Routing, Trainer, TrainerState};
use arena_weights::config::{Architecture, ModelConfig};

/// Tokens: a question, and four answers to it.
const VOCABULARY: usize = 5;
const BEST: u32 = 3;
const GROUPS: usize = 4;
const GROUP_SIZE: usize = 8;

/// A table of logits: what follows depends on the last token alone.
struct Bigram {
    shape: ModelConfig,
    parameters: Vec<Parameter>,
    table: Vec<f32>,
}

impl Bigram {
    fn new() -> Bigram {
        let shape = ModelConfig {
            architecture: Architecture::Llama,
            hidden: 4,
            layers: 1,
            heads: 1,
            kv_heads: 1,
            head_dim: 4,
            ffn: 4,
            vocab: VOCABULARY,
            context_tokens: 8,
            rope_theta: 10_000.0,
            rms_eps: 1.0e-5,
            tied_embeddings: true,
            moe: None,
            bos: None,
            eos: Vec::new(),
        };
        let parameter = Parameter { name: "table".to_owned(), shape: vec![VOCABULARY; 2] };
        Bigram { shape, parameters: vec![parameter], table: vec![0.0; VOCABULARY * VOCABULARY] }
    }

    /// Returns the row of a token's logits and the probabilities of what follows it.
    fn row(&self, sequence: &Sequence, place: u32) -> (usize, Vec<f64>) {
        let row = sequence.tokens[place as usize - 1] as usize * VOCABULARY;
        let logits = self.table[row..row + VOCABULARY].iter();
        let parts: Vec<f64> =
            logits.map(|x| libm::exp(f64::from(x / sequence.temperature))).collect();
        let sum: f64 = parts.iter().sum();
        (row, parts.into_iter().map(|part| part / sum).collect())
    }
}

fn entropy(shares: &[f64]) -> f64 {
    -shares.iter().map(|share| share * libm::log(*share)).sum::<f64>()
}

impl Learner for Bigram {
    fn shape(&self) -> &ModelConfig {
        &self.shape
    }

    fn description(&self) -> String {
        "device=table".to_owned()
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn values(&self) -> Result<Vec<Vec<f32>>, ExecutorError> {
        Ok(vec![self.table.clone()])
    }

    fn set_values(&mut self, values: &[Vec<f32>]) -> Result<(), ExecutorError> {
        self.table.clone_from(&values[0]);
        Ok(())
    }

    fn score(&mut self, batch: &[Sequence]) -> Result<Scores, ExecutorError> {
        learner::check(batch, &self.shape)?;
        let mut scores = Scores::default();
        for sequence in batch {
            for &place in &sequence.scored {
                let (_, shares) = self.row(sequence, place);
                let chosen = shares[sequence.tokens[place as usize] as usize];
                scores.logprobs.push(libm::log(chosen) as f32);
                scores.entropies.push(entropy(&shares) as f32);
            }
        }
        Ok(scores)
    }

    fn accumulate(
        &mut self,
        batch: &[Sequence],
        slopes: &mut dyn FnMut(&Scores) -> Slopes,
        gradients: &mut [Vec<f32>],
    ) -> Result<Scores, ExecutorError> {
        let scores = self.score(batch)?;
        let slopes = slopes(&scores);
        let scored = batch.iter().flat_map(|one| one.scored.iter().map(move |place| (one, *place)));
        for (token, (sequence, place)) in scored.enumerate() {
            let (row, shares) = self.row(sequence, place);
            let said = sequence.tokens[place as usize] as usize;
            for (other, share) in shares.iter().enumerate() {
                let hit = if other == said { 1.0 } else { 0.0 };
                let mut slope = f64::from(slopes.logprobs[token]) * (hit - share);
                if let Some(of_entropy) = slopes.entropies.get(token) {
                    let bend = -share * (libm::log(*share) + entropy(&shares));
                    slope += f64::from(*of_entropy) * bend;
                }
                gradients[0][row + other] += (slope / f64::from(sequence.temperature)) as f32;
            }
        }
        Ok(scores)
    }
}

fn course(change: impl FnOnce(&mut Course)) -> Course {
    let objective = Objective::Dapo { clip: Clip::DAPO };
    let mut course = Course {
        loss: Loss { objective, kl: 0.0, entropy: 0.0, importance_cap: None },
        adam: AdamW { weight_decay: 0.0, ..AdamW::default() },
        micro_batch_tokens: 10,
        epochs: 1,
        minibatches: 1,
        routing: Routing::Replay,
    };
    change(&mut course);
    course
}

/// Answers the question; returns the answer and the logarithm of its probability.
fn answer(table: &[f32], stream: &mut Stream) -> (u32, f64) {
    let mut bigram = Bigram::new();
    bigram.table = table.to_vec();
    let question =
        Sequence { tokens: vec![0, 0], scored: vec![1], temperature: 1.0, experts: None };
    let (_, shares) = bigram.row(&question, 1);
    let mut left = stream.below(1 << 53) as f64 / (1_u64 << 53) as f64;
    let last = VOCABULARY - 1;
    let said = (0..last).find(|&token| {
        left -= shares[token];
        left < 0.0
    });
    let said = said.unwrap_or(last);
    (said as u32, libm::log(shares[said]))
}

/// Plays one step of a bandit that pays for one answer. Returns the lessons and the mean reward.
fn play(state: &TrainerState, seed: u64, is_shuffled: bool) -> (Vec<Lesson>, f64) {
    let mut stream = Stream::derive(Root::Seed(seed), "test", &[]);
    let answers: Vec<(u32, f64)> =
        (0..GROUPS * GROUP_SIZE).map(|_| answer(&state.values[0], &mut stream)).collect();
    let rewards: Vec<RewardMicro> = answers
        .iter()
        .map(|(said, _)| RewardMicro(if *said == BEST { 1_000_000 } else { 0 }))
        .collect();
    let groups: Vec<Vec<RewardMicro>> = rewards.chunks(GROUP_SIZE).map(<[_]>::to_vec).collect();
    let mut found = advantages(Baseline::GroupMean, &groups).expect("these are groups");
    if is_shuffled {
        found.shuffle(&mut stream);
    }
    let mut lessons = Vec::new();
    for (group, answers) in found.groups.iter().zip(answers.chunks(GROUP_SIZE)) {
        for (advantage, (said, logprob)) in group.iter().flatten().zip(answers) {
            let tokens = vec![0, *said];
            let sequence = Sequence { tokens, scored: vec![1], temperature: 1.0, experts: None };
            let example = Example {
                sequence,
                sampled_logprobs: vec![*logprob],
                weights_milli: vec![1_000],
                is_cut: false,
            };
            lessons.push(Lesson { examples: vec![example], advantage: *advantage });
        }
    }
    let mean = rewards.iter().map(|reward| reward.value()).sum::<f64>() / rewards.len() as f64;
    (lessons, mean)
}

/// Trains from step `first` on; returns the mean rewards of the steps.
fn train(
    trainer: &mut Trainer,
    steps: std::ops::Range<u64>,
    course: &Course,
    is_shuffled: bool,
) -> Vec<f64> {
    let learn = |step: u64| {
        let (lessons, mean) = play(trainer.state(), step, is_shuffled);
        let mut stream = Stream::derive(Root::Seed(step), "deal", &[]);
        let report = trainer.learn(&lessons, course, 0.1, &mut stream).expect("lessons fit");
        assert!(report.statistics.sampler_gap_max() < 1e-6, "the sampler is the same model");
        mean
    };
    steps.map(learn).collect()
}

fn trainer() -> Trainer {
    Trainer::new(Box::new(Bigram::new())).expect("a table does not fail")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn what_pays_is_learned() {
    for (name, course) in [
        ("one update", course(|_| {})),
        ("four updates", course(|course| (course.epochs, course.minibatches) = (2, 2))),
    ] {
        let rewards = train(&mut trainer(), 0..40, &course, false);
        assert!(rewards[0] < 0.5, "{name}: {rewards:?}");
        assert!(mean(&rewards[30..]) > 0.9, "{name}: {rewards:?}");
    }
}

#[test]
fn shuffled_advantages_teach_nothing() {
    // Noise leads somewhere: each run comes to rest at some answer, one in five at the best.
    let ends: Vec<f64> = (0..20)
        .map(|run| {
            let steps = 100 * run..100 * run + 40;
            mean(&train(&mut trainer(), steps, &course(|_| {}), true)[30..])
        })
        .collect();
    assert!(mean(&ends) < 0.4, "{ends:?}");
}

#[test]
fn a_resumed_training_is_the_uninterrupted_one_to_the_bit() {
    let course = course(|course| (course.epochs, course.minibatches) = (2, 2));
    let mut whole = trainer();
    train(&mut whole, 0..6, &course, false);
    let mut first = trainer();
    train(&mut first, 0..3, &course, false);
    let mut second = trainer();
    second.resume(first.state().clone()).expect("it is the same model's");
    train(&mut second, 3..6, &course, false);
    assert_eq!(whole.state(), second.state());
}

#[test]
fn a_divergence_keeps_the_policy_near_its_reference() {
    let trained = |kl: f64| {
        let mut trainer = trainer();
        trainer.refer_to(trainer.state().values.clone());
        let rewards = train(&mut trainer, 0..40, &course(|course| course.loss.kl = kl), false);
        mean(&rewards[30..])
    };
    let (free, held) = (trained(0.0), trained(2.0));
    assert!(free > 0.9 && held < 0.7, "{free} {held}");
}

#[test]
fn a_divergence_without_a_reference_is_refused() {
    let mut trainer = trainer();
    let (lessons, _) = play(trainer.state(), 0, false);
    let course = course(|course| course.loss.kl = 0.1);
    let mut stream = Stream::derive(Root::Seed(0), "deal", &[]);
    let error = trainer.learn(&lessons, &course, 0.1, &mut stream).expect_err("none was given");
    assert_eq!(error.to_string(), "no reference to compare the policy with");
}

#[test]
fn no_lessons_change_nothing() {
    let mut trainer = trainer();
    let before = trainer.state().clone();
    let mut stream = Stream::derive(Root::Seed(0), "deal", &[]);
    let report = trainer.learn(&[], &course(|_| {}), 0.1, &mut stream).expect("nothing is wrong");
    assert_eq!((report.update_count, trainer.state()), (0, &before));
}

#[test]
fn a_state_of_another_model_is_refused() {
    let mut trainer = trainer();
    let mut state = trainer.state().clone();
    state.values[0].pop();
    assert!(trainer.resume(state).is_err());
}

#[test]
fn demonstrations_are_imitated_until_it_is_told_to_stop() {
    let demonstrate = |said: u32| {
        let tokens = vec![0, said];
        let sequence = Sequence { tokens, scored: vec![1], temperature: 1.0, experts: None };
        let example = Example {
            sequence,
            sampled_logprobs: vec![0.0],
            weights_milli: vec![1_000],
            is_cut: false,
        };
        Lesson { examples: vec![example], advantage: 0.0 }
    };
    let lessons: Vec<Lesson> =
        (0..40).map(|place| demonstrate(1 + u32::from(place % 4 == 0))).collect();
    let imitation = Imitation {
        adam: AdamW { weight_decay: 0.0, ..AdamW::default() },
        micro_batch_tokens: 10,
        epochs: 20,
        batch: 8,
        learning_rate: 0.2,
        warm_up: 5,
    };
    let mut whole = trainer();
    let mut losses = Vec::new();
    let mut stream = Stream::derive(Root::Seed(1), "test", &[]);
    let is_done = whole.imitate(&lessons, &imitation, &mut stream, &mut |done, all, loss| {
        assert_eq!((done as usize, all), (losses.len() + 1, 100));
        losses.push(loss);
        true
    });
    assert!(is_done.expect("lessons fit"));
    // A quarter of them differs, so that the least mean is that of a biased coin.
    let least = -(0.75 * libm::log(0.75) + 0.25 * libm::log(0.25));
    assert!(losses[0] > 1.5 && mean(&losses[90..]) < least + 0.05, "{losses:?}");
    let mut stream = Stream::derive(Root::Seed(1), "test", &[]);
    let stopped = trainer().imitate(&lessons, &imitation, &mut stream, &mut |done, _, _| done < 3);
    assert!(!stopped.expect("lessons fit"));
}
