//! Updates a policy: episodes go in, other values of its parameters come out.
//!
//! The same learner, episodes and settings give the same values to the bit: everything happens in
//! the order of the episodes. A trainer that is given the state of another goes on as that one
//! would have.
//!
//! Not here: what computes the model (`arena_model::learner`), what the episodes are worth
//! (`reward`, `advantage`), files (`checkpoint`).

use std::fmt;

use arena_core::seed::Stream;
use arena_model::executor::ExecutorError;
use arena_model::learner::{Learner, Scores, Sequence, Slopes};

use crate::example::Example;
use crate::objective::statistics::Statistics;
use crate::objective::{Loss, Normaliser, Objective, ObjectiveError, Target};
use crate::optimiser::{AdamW, Decay, Moments, OptimiserError, Schedule};

/// One episode to learn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// What the policy said in it, at least one sequence.
    pub examples: Vec<Example>,
    /// How much better than expected it went. Imitation does not ask.
    pub advantage: f64,
}

impl Lesson {
    fn weight_milli(&self) -> u64 {
        self.examples.iter().map(Example::weight_milli).sum()
    }
}

/// How lessons are learned from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// What is minimised.
    pub loss: Loss,
    /// The optimiser.
    pub adam: AdamW,
    /// Tokens that are computed together; a longer sequence is computed alone.
    pub micro_batch_tokens: usize,
    /// Passes over the lessons, at least 1.
    pub epochs: u32,
    /// Parts of a pass, each of which makes an update; at least 1.
    pub minibatches: u32,
    /// What chooses a mixture's experts after the first update.
    pub routing: Routing,
}

/// What chooses the experts of a mixture after the first of several updates from one step's
/// episodes. A dense model has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The router as it was before the first update, which is the one that sampled (rollout routing
    /// replay, arXiv 2510.11370): ratios compare the same experts.
    Replay,
    /// The router as it is.
    Anew,
}

/// How demonstrations are learned from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imitation {
    /// The optimiser.
    pub adam: AdamW,
    /// Tokens that are computed together; a longer sequence is computed alone.
    pub micro_batch_tokens: usize,
    /// Passes over the demonstrations.
    pub epochs: u32,
    /// Demonstrations of one update, at least 1.
    pub batch: u32,
    /// The highest learning rate; it falls in a line to 0.
    pub learning_rate: f64,
    /// Updates over which it rises to that.
    pub warm_up: u32,
}

/// What changes while a policy is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainerState {
    /// The parameters' values, as [`Learner::values`].
    pub values: Vec<Vec<f32>>,
    /// What the optimiser remembers.
    pub moments: Moments,
}

/// What some lessons did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Of the scored tokens of all updates.
    pub statistics: Statistics,
    /// Updates that were made.
    pub update_count: u32,
    /// The norm of the last update's gradients, before it was shortened.
    pub gradient_norm: f64,
    /// Tokens that the model went through, forward and backward.
    pub token_count: u64,
}

/// A policy in training.
pub struct Trainer {
    learner: Box<dyn Learner>,
    state: TrainerState,
    gradients: Vec<Vec<f32>>,
    /// The values that the divergence is taken from.
    reference: Option<Vec<Vec<f32>>>,
}

/// Sequences with what is known of them, in the order of their lessons.
struct Material {
    sequences: Vec<Sequence>,
    targets: Vec<Target>,
    /// Where each lesson's sequences begin, and the end of all.
    starts: Vec<usize>,
}

impl Trainer {
    /// Begins with the learner's own values.
    ///
    /// # Errors
    /// The device failed.
    pub fn new(learner: Box<dyn Learner>) -> Result<Trainer, TrainError> {
        let state =
            TrainerState { values: learner.values()?, moments: Moments::new(learner.parameters()) };
        let gradients = state.values.iter().map(|values| vec![0.0; values.len()]).collect();
        Ok(Trainer { learner, state, gradients, reference: None })
    }

    /// Returns the learner, which holds the state's values.
    pub fn learner(&self) -> &dyn Learner {
        &*self.learner
    }

    /// Returns what training has changed.
    pub fn state(&self) -> &TrainerState {
        &self.state
    }

    /// Goes on from another state.
    ///
    /// # Errors
    /// It is not this learner's, or the device failed.
    pub fn resume(&mut self, state: TrainerState) -> Result<(), TrainError> {
        let parameters = self.learner.parameters();
        let lists = [&state.values, &state.moments.first, &state.moments.second];
        let lengths: Vec<usize> =
            parameters.iter().map(|parameter| parameter.shape.iter().product()).collect();
        for list in lists {
            if !list.iter().map(Vec::len).eq(lengths.iter().copied()) {
                return Err(TrainError::OtherParameters);
            }
        }
        self.learner.set_values(&state.values)?;
        self.state = state;
        Ok(())
    }

    /// Forgets what the optimiser remembers.
    pub fn forget(&mut self) {
        self.state.moments = Moments::new(self.learner.parameters());
    }

    /// Takes the values that divergences are taken from.
    pub fn refer_to(&mut self, values: Vec<Vec<f32>>) {
        self.reference = Some(values);
    }

    /// Learns from lessons at a learning rate. `stream` deals them into parts, where a pass has
    /// more than one. No lessons change nothing.
    ///
    /// # Errors
    /// The lessons do not fit the model or the loss, or the device failed. Nothing more can be
    /// learned then.
    ///
    /// # Panics
    /// If a lesson has no sequence.
    pub fn learn(
        &mut self,
        lessons: &[Lesson],
        course: &Course,
        rate: f64,
        stream: &mut Stream,
    ) -> Result<Report, TrainError> {
        course.loss.check()?;
        course.adam.check()?;
        let mut report = Report::default();
        if lessons.is_empty() {
            return Ok(report);
        }
        let mut material = Material::of(lessons);
        if course.epochs * course.minibatches > 1 {
            if course.routing == Routing::Replay && self.learner.shape().moe.is_some() {
                self.keep_routes(&mut material.sequences, course.micro_batch_tokens)?;
            }
            material.remember(&self.score(&material.sequences, course.micro_batch_tokens)?);
        }
        if course.loss.kl > 0.0 {
            let scores = self.score_reference(&material.sequences, course.micro_batch_tokens)?;
            material.refer(&scores);
        }
        let mut order: Vec<usize> = (0..lessons.len()).collect();
        for _ in 0..course.epochs {
            let parts = usize::try_from(course.minibatches).expect("few parts").min(order.len());
            if parts > 1 {
                stream.shuffle(&mut order);
            }
            for part in order.chunks(order.len().div_ceil(parts)) {
                self.update(&material.part(part, lessons), course, rate, &mut report)?;
            }
        }
        Ok(report)
    }

    /// Learns to say what demonstrations say. `tell` is told after each update how many are done,
    /// of how many, and the mean negative log-probability of its tokens; where it returns false,
    /// this ends in the middle and returns false.
    ///
    /// # Errors
    /// As [`Trainer::learn`].
    pub fn imitate(
        &mut self,
        lessons: &[Lesson],
        imitation: &Imitation,
        stream: &mut Stream,
        tell: &mut dyn FnMut(u32, u32, f64) -> bool,
    ) -> Result<bool, TrainError> {
        let Imitation { adam, micro_batch_tokens, epochs, batch, learning_rate, warm_up } =
            *imitation;
        let objective = Objective::CrossEntropy;
        let loss = Loss { objective, kl: 0.0, entropy: 0.0, importance_cap: None };
        // One update from each batch, for which nothing was sampled.
        let course = Course {
            loss,
            adam,
            micro_batch_tokens,
            epochs: 1,
            minibatches: 1,
            routing: Routing::Anew,
        };
        let per_epoch = lessons.len().div_ceil(batch as usize);
        let update_count = u32::try_from(per_epoch).expect("runs have few matches") * epochs;
        let schedule = Schedule {
            peak: learning_rate,
            warmup_steps: warm_up.min(update_count),
            decay: Decay::Linear,
            step_count: update_count,
            final_share: 0.0,
        };
        let mut order: Vec<usize> = (0..lessons.len()).collect();
        let mut done = 0;
        for _ in 0..epochs {
            stream.shuffle(&mut order);
            for part in order.chunks(batch as usize) {
                let part: Vec<Lesson> = part.iter().map(|&place| lessons[place].clone()).collect();
                let report = self.learn(&part, &course, schedule.rate(done), stream)?;
                done += 1;
                if !tell(done, update_count, report.statistics.loss()) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Makes one update.
    fn update(
        &mut self,
        part: &Part,
        course: &Course,
        rate: f64,
        report: &mut Report,
    ) -> Result<(), TrainError> {
        self.gradients.iter_mut().flatten().for_each(|gradient| *gradient = 0.0);
        for range in micro_batches(&part.sequences, course.micro_batch_tokens) {
            let (batch, targets) = (&part.sequences[range.clone()], &part.targets[range]);
            let mut failure = None;
            let mut grade = |scores: &Scores| {
                let graded =
                    course.loss.grade(part.normaliser, targets, scores, &mut report.statistics);
                graded.unwrap_or_else(|error| {
                    failure = Some(error);
                    // The learner goes backward all the same; nothing comes of it.
                    Slopes { logprobs: vec![0.0; scores.logprobs.len()], entropies: Vec::new() }
                })
            };
            self.learner.accumulate(batch, &mut grade, &mut self.gradients)?;
            if let Some(error) = failure {
                return Err(error.into());
            }
            report.token_count += batch.iter().map(|one| one.tokens.len() as u64).sum::<u64>();
        }
        let TrainerState { values, moments } = &mut self.state;
        let parameters = self.learner.parameters();
        let update = course.adam.update(rate, parameters, values, &mut self.gradients, moments)?;
        self.learner.set_values(&self.state.values)?;
        report.gradient_norm = update.gradient_norm;
        report.update_count += 1;
        Ok(())
    }

    /// Writes down which experts the tokens go through with the values as they are.
    fn keep_routes(
        &mut self,
        sequences: &mut [Sequence],
        tokens_max: usize,
    ) -> Result<(), TrainError> {
        for range in micro_batches(sequences, tokens_max) {
            let part = &mut sequences[range];
            let routes = self.learner.route(part)?;
            for (sequence, experts) in part.iter_mut().zip(routes) {
                sequence.experts = Some(experts);
            }
        }
        Ok(())
    }

    /// Scores sequences with the values as they are.
    fn score(&mut self, sequences: &[Sequence], tokens_max: usize) -> Result<Scores, TrainError> {
        let mut all = Scores::default();
        for range in micro_batches(sequences, tokens_max) {
            let scores = self.learner.score(&sequences[range])?;
            all.logprobs.extend(scores.logprobs);
            all.entropies.extend(scores.entropies);
        }
        Ok(all)
    }

    fn score_reference(
        &mut self,
        sequences: &[Sequence],
        tokens_max: usize,
    ) -> Result<Scores, TrainError> {
        let reference = self.reference.take().ok_or(TrainError::NoReference)?;
        self.learner.set_values(&reference)?;
        let scores = self.score(sequences, tokens_max);
        self.reference = Some(reference);
        self.learner.set_values(&self.state.values)?;
        scores
    }
}

/// What one update learns from.
struct Part {
    sequences: Vec<Sequence>,
    targets: Vec<Target>,
    normaliser: Normaliser,
}

impl Material {
    fn of(lessons: &[Lesson]) -> Material {
        let mut material = Material { sequences: vec![], targets: vec![], starts: vec![0] };
        for lesson in lessons {
            assert!(!lesson.examples.is_empty(), "a lesson has a sequence");
            let episode_weight_milli = lesson.weight_milli();
            for example in &lesson.examples {
                material.sequences.push(example.sequence.clone());
                material.targets.push(Target {
                    sampled: example.sampled_logprobs.clone(),
                    before: None,
                    reference: None,
                    weights_milli: example.weights_milli.clone(),
                    advantage: lesson.advantage,
                    episode_weight_milli,
                });
            }
            material.starts.push(material.sequences.len());
        }
        material
    }

    /// Keeps what the model says before the first update.
    fn remember(&mut self, scores: &Scores) {
        self.each(scores, |target, logprobs| target.before = Some(logprobs));
    }

    /// Keeps what a reference says.
    fn refer(&mut self, scores: &Scores) {
        self.each(scores, |target, logprobs| target.reference = Some(logprobs));
    }

    fn each(&mut self, scores: &Scores, set: fn(&mut Target, Vec<f32>)) {
        let mut rest = &scores.logprobs[..];
        for target in &mut self.targets {
            let (own, others) = rest.split_at(target.sampled.len());
            set(target, own.to_vec());
            rest = others;
        }
    }

    fn part(&self, chosen: &[usize], lessons: &[Lesson]) -> Part {
        let places: Vec<usize> = chosen
            .iter()
            .flat_map(|&lesson| self.starts[lesson]..self.starts[lesson + 1])
            .collect();
        Part {
            sequences: places.iter().map(|&place| self.sequences[place].clone()).collect(),
            targets: places.iter().map(|&place| self.targets[place].clone()).collect(),
            normaliser: Normaliser {
                weight_milli: chosen.iter().map(|&lesson| lessons[lesson].weight_milli()).sum(),
                episodes: u32::try_from(chosen.len()).expect("steps have few episodes"),
            },
        }
    }
}

/// Divides sequences into runs of at most so many tokens, of at least one sequence each.
fn micro_batches(sequences: &[Sequence], tokens_max: usize) -> Vec<std::ops::Range<usize>> {
    let mut batches = Vec::new();
    let (mut start, mut tokens) = (0, 0);
    for (place, sequence) in sequences.iter().enumerate() {
        if place > start && tokens + sequence.tokens.len() > tokens_max {
            batches.push(start..place);
            (start, tokens) = (place, 0);
        }
        tokens += sequence.tokens.len();
    }
    if start < sequences.len() {
        batches.push(start..sequences.len());
    }
    batches
}

/// Why nothing more can be learned.
#[derive(Debug)]
pub enum TrainError {
    /// A state of other parameters than the learner's.
    OtherParameters,
    /// A loss that needs a reference, of which none was given.
    NoReference,
    /// The loss cannot be computed.
    Objective(ObjectiveError),
    /// The update cannot be made.
    Optimiser(OptimiserError),
    /// The model cannot be computed.
    Learner(ExecutorError),
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrainError::OtherParameters => write!(f, "a state of other parameters"),
            TrainError::NoReference => write!(f, "no reference to compare the policy with"),
            TrainError::Objective(error) => write!(f, "{error}"),
            TrainError::Optimiser(error) => write!(f, "{error}"),
            TrainError::Learner(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TrainError {}

impl From<ObjectiveError> for TrainError {
    fn from(error: ObjectiveError) -> TrainError {
        TrainError::Objective(error)
    }
}

impl From<OptimiserError> for TrainError {
    fn from(error: OptimiserError) -> TrainError {
        TrainError::Optimiser(error)
    }
}

impl From<ExecutorError> for TrainError {
    fn from(error: ExecutorError) -> TrainError {
        TrainError::Learner(error)
    }
}
