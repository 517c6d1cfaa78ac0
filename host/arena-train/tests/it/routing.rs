//! What chooses a mixture's experts while several updates learn from the same episodes.

use std::sync::{Arc, Mutex};

use arena_core::seed::{Root, Stream};
use arena_model::executor::ExecutorError;
use arena_model::learner::{self, Learner, Parameter, Scores, Sequence, Slopes};
use arena_train::example::Example;
use arena_train::objective::{Clip, Loss, Objective};
use arena_train::optimiser::AdamW;
use arena_train::trainer::{Course, Lesson, Routing, Trainer};
use arena_weights::config::{Architecture, ModelConfig, Moe};

/// What each update was given, in order.
type Seen = Arc<Mutex<Vec<Option<Vec<u16>>>>>;

/// A mixture of one layer whose router changes with every update.
struct Wandering {
    shape: ModelConfig,
    parameters: Vec<Parameter>,
    value: f32,
    updates: u16,
    seen: Seen,
}

impl Wandering {
    fn new(seen: Seen) -> Wandering {
        let moe = Moe { experts: 16, experts_per_token: 1, ffn: 4, normalise: true };
        let shape = ModelConfig {
            architecture: Architecture::Qwen3Moe,
            hidden: 4,
            layers: 1,
            heads: 1,
            kv_heads: 1,
            head_dim: 4,
            ffn: 0,
            vocab: 4,
            context_tokens: 8,
            rope_theta: 10_000.0,
            rms_eps: 1.0e-5,
            tied_embeddings: true,
            moe: Some(moe),
            bos: None,
            eos: Vec::new(),
        };
        let parameter = Parameter { name: "value".to_owned(), shape: vec![1] };
        Wandering { shape, parameters: vec![parameter], value: 0.0, updates: 0, seen }
    }
}

impl Learner for Wandering {
    fn shape(&self) -> &ModelConfig {
        &self.shape
    }

    fn description(&self) -> String {
        "device=none".to_owned()
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn values(&self) -> Result<Vec<Vec<f32>>, ExecutorError> {
        Ok(vec![vec![self.value]])
    }

    fn set_values(&mut self, values: &[Vec<f32>]) -> Result<(), ExecutorError> {
        (self.value, self.updates) = (values[0][0], self.updates + 1);
        Ok(())
    }

    fn score(&mut self, batch: &[Sequence]) -> Result<Scores, ExecutorError> {
        learner::check(batch, &self.shape)?;
        let count = batch.iter().map(|sequence| sequence.scored.len()).sum();
        Ok(Scores { logprobs: vec![-1.0 + self.value; count], entropies: vec![1.0; count] })
    }

    fn route(&mut self, batch: &[Sequence]) -> Result<Vec<Vec<u16>>, ExecutorError> {
        Ok(batch.iter().map(|sequence| vec![self.updates; sequence.tokens.len()]).collect())
    }

    fn accumulate(
        &mut self,
        batch: &[Sequence],
        slopes: &mut dyn FnMut(&Scores) -> Slopes,
        gradients: &mut [Vec<f32>],
    ) -> Result<Scores, ExecutorError> {
        let scores = self.score(batch)?;
        gradients[0][0] += slopes(&scores).logprobs.iter().sum::<f32>();
        let mut seen = self.seen.lock().expect("nobody panicked");
        seen.extend(batch.iter().map(|sequence| sequence.experts.clone()));
        Ok(scores)
    }
}

/// Learns twice from two episodes; returns the experts that each sequence was learned with.
fn learned_with(routing: Routing) -> Vec<Option<Vec<u16>>> {
    let seen = Seen::default();
    let mut trainer =
        Trainer::new(Box::new(Wandering::new(Arc::clone(&seen)))).expect("it has values");
    let lesson = |tokens: Vec<u32>, advantage| {
        let sequence = Sequence { tokens, scored: vec![1], temperature: 1.0, experts: None };
        let sampled_logprobs = vec![-1.0];
        let example =
            Example { sequence, sampled_logprobs, weights_milli: vec![1_000], is_cut: false };
        Lesson { examples: vec![example], advantage }
    };
    let objective = Objective::Dapo { clip: Clip::DAPO };
    let course = Course {
        loss: Loss { objective, kl: 0.0, entropy: 0.0, importance_cap: None },
        adam: AdamW { weight_decay: 0.0, ..AdamW::default() },
        micro_batch_tokens: 2,
        epochs: 2,
        minibatches: 1,
        routing,
    };
    let lessons = [lesson(vec![0, 1], 1.0), lesson(vec![0, 2, 3], -0.5)];
    let mut stream = Stream::derive(Root::Seed(1), "test", &[]);
    trainer.learn(&lessons, &course, 0.01, &mut stream).expect("lessons fit");
    seen.lock().expect("nobody panicked").clone()
}

#[test]
fn replayed_routes_are_those_from_before_the_first_update() {
    let [short, long] = [vec![0; 2], vec![0; 3]].map(Some);
    let expected = [short.clone(), long.clone(), short, long];
    assert_eq!(learned_with(Routing::Replay), expected);
}

#[test]
fn routed_anew_no_experts_are_given() {
    assert_eq!(learned_with(Routing::Anew), vec![None; 4]);
}
