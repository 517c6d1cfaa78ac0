//! The learner on the CPU kernels: Llama and Qwen3.
//!
//! It goes forward through the kernels that the executor uses, in the same order, so what it says
//! of a token is to the bit what the engine says that samples. It goes backward by hand, over
//! kernels whose sums have one order: the gradients of a batch are the same bits on every machine,
//! on any number of threads, whatever is kept or computed again.
//!
//! Not here: the arithmetic (`arena_kernels`), objectives and optimisers (`arena-train`), mixtures
//! of experts, which burn trains (`arena-burn`).

mod backward;
mod forward;
mod head;
mod model;
mod parameters;
mod rows;

use std::num::NonZeroUsize;
use std::ops::Range;

use arena_core::seed::Stream;
use arena_kernels::context::Context;
use arena_kernels::isa::Isa;
use arena_kernels::matrix::ADDED_COLUMNS_MAX;
use arena_weights::adapter::Adapter;
use arena_weights::config::ModelConfig;
use arena_weights::weights::Weights;

use crate::error::EngineError;
use crate::executor::ExecutorError;
use crate::learner::{Learner, Parameter, Scores, Sequence, Slopes, check};

use self::head::{Score, check_slopes};
use self::model::{Model, Work};
use self::parameters::Values;
use self::rows::Rows;
use super::ARITHMETIC;

/// The widest bottleneck of an adapter that is trained.
pub const LEARNED_RANK_MAX: usize = ADDED_COLUMNS_MAX;
/// Rows that are scored together, if there is more than one sequence.
const SCORE_ROWS_MAX: usize = 4_096;

/// What is trained, and from where.
#[derive(Clone, Debug)]
pub enum Start<'a> {
    /// Every weight, from what the files say.
    Full,
    /// A new adapter on every linear layer, the head excepted: A drawn evenly from
    /// `-1 / sqrt(inputs)` to `1 / sqrt(inputs)`, as PEFT does, layer by layer from the stream; B
    /// is zero.
    Drawn {
        /// Width of the bottleneck, from 1 to [`LEARNED_RANK_MAX`].
        rank: usize,
        /// The numerator of the scale.
        alpha: f32,
        /// Where draws come from.
        stream: Stream,
    },
    /// An adapter that there is. What it does not adapt begins with zeros in B and draws for A as
    /// a new one's.
    Adapter {
        /// The adapter.
        adapter: &'a Adapter,
        /// Where draws come from.
        stream: Stream,
    },
}

/// How a learner computes; nothing of it changes a result.
#[derive(Clone, Copy, Debug)]
pub struct LearnerOptions {
    /// Threads, the caller's among them.
    pub threads: NonZeroUsize,
    /// Instructions.
    pub isa: Isa,
    /// Keep of each layer what went into it alone, and compute the rest again: a third more
    /// operations, for a small part of the memory.
    pub recompute: bool,
}

impl LearnerOptions {
    /// Returns options for this machine's instructions, with everything kept.
    pub fn new(threads: NonZeroUsize) -> LearnerOptions {
        LearnerOptions { threads, isa: Isa::best(), recompute: false }
    }
}

/// Trains a model on the CPU.
pub struct CpuLearner {
    model: Model,
    parameters: Vec<Parameter>,
    values: Values,
    recompute: bool,
    work: Work,
}

impl CpuLearner {
    /// Reads a model's weights, and begins.
    ///
    /// # Errors
    /// The files cannot be used, the model is a mixture of experts, the adapter does not fit, the
    /// threads cannot be started.
    pub fn load(
        weights: &Weights,
        start: Start<'_>,
        options: LearnerOptions,
    ) -> Result<CpuLearner, EngineError> {
        let config = weights.config().clone();
        if config.moe.is_some() {
            let architecture = config.architecture.name();
            return Err(ExecutorError::Untrained { architecture }.into());
        }
        let context = Context::new(options.threads, options.isa)?;
        let (parameters, values) = parameters::begin(weights, start)?;
        let token_count = weights.tokenizer()?.vocab().min(config.vocab);
        let model = Model::new(config, context, token_count, weights, &values)?;
        let recompute = options.recompute;
        Ok(CpuLearner { model, parameters, values, recompute, work: Work::default() })
    }

    /// Returns the scale of the adapter, if one is trained.
    pub fn scale(&self) -> Option<f32> {
        self.model.scale()
    }

    /// Computes the log-probabilities of some sequences, which need not be kept.
    fn score_rows(&mut self, rows: &Rows) -> Result<Vec<Score>, ExecutorError> {
        let mut x = std::mem::take(&mut self.work.residual);
        self.model.embed(rows, &mut x);
        for layer in 0..self.model.config.layers {
            let mut kept = std::mem::take(&mut self.work.kept);
            self.model.forward(layer, rows, &mut x, &mut kept, &mut self.work);
            self.work.kept = kept;
        }
        let scores = self.model.score(rows, &x, &mut self.work);
        self.work.residual = x;
        scores
    }
}

impl Learner for CpuLearner {
    fn shape(&self) -> &ModelConfig {
        &self.model.config
    }

    fn description(&self) -> String {
        let trained = match &self.values {
            Values::Full { .. } => "all".to_owned(),
            Values::Adapter { rank, .. } => format!("adapter:{rank}"),
        };
        [
            "device=cpu".to_owned(),
            format!("arithmetic={ARITHMETIC}"),
            format!("architecture={}", self.model.config.architecture.name()),
            format!("weights={}", self.model.formats()),
            format!("trained={trained}"),
        ]
        .join("\n")
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn values(&self) -> Result<Vec<Vec<f32>>, ExecutorError> {
        Ok(self.values.all().to_vec())
    }

    fn set_values(&mut self, values: &[Vec<f32>]) -> Result<(), ExecutorError> {
        self.values.set(&self.parameters, values)?;
        self.model.take(&self.values)
    }

    fn score(&mut self, batch: &[Sequence]) -> Result<Scores, ExecutorError> {
        check(batch, &self.model.config)?;
        let mut scores = Scores::default();
        for range in runs(batch, SCORE_ROWS_MAX) {
            let first = range.start;
            let rows = Rows::new(&batch[range], first, self.model.token_count)?;
            head::push(&self.score_rows(&rows)?, &mut scores);
        }
        Ok(scores)
    }

    fn accumulate(
        &mut self,
        batch: &[Sequence],
        slopes: &mut dyn FnMut(&Scores) -> Slopes,
        gradients: &mut [Vec<f32>],
    ) -> Result<Scores, ExecutorError> {
        check(batch, &self.model.config)?;
        parameters::check_sizes(&self.parameters, gradients)?;
        let rows = Rows::new(batch, 0, self.model.token_count)?;
        if rows.scored.is_empty() {
            check_slopes(&slopes(&Scores::default()), 0)?;
            return Ok(Scores::default());
        }
        let layers = self.model.config.layers;
        let mut trace = std::mem::take(&mut self.work.trace);
        trace.resize(layers, self.recompute);
        let mut x = std::mem::take(&mut self.work.residual);
        self.model.embed(&rows, &mut x);
        for layer in 0..layers {
            let (input, kept) = trace.of(layer);
            input.clear();
            input.extend_from_slice(&x);
            self.model.forward(layer, &rows, &mut x, kept, &mut self.work);
        }
        let scored = self.model.score(&rows, &x, &mut self.work)?;
        let mut scores = Scores::default();
        head::push(&scored, &mut scores);
        let slopes = slopes(&scores);
        check_slopes(&slopes, scored.len())?;
        let mut dx = std::mem::take(&mut self.work.dx);
        let values = &self.values;
        let sums = &mut parameters::Sums { values, gradients };
        self.model.head_backward(&rows, &x, (&scored, &slopes), &mut dx, sums, &mut self.work);
        for layer in (0..layers).rev() {
            let (input, kept) = trace.of(layer);
            if self.recompute {
                x.clone_from(input);
                self.model.forward(layer, &rows, &mut x, kept, &mut self.work);
            }
            self.model.backward(layer, &rows, (input, kept), &mut dx, sums, &mut self.work);
        }
        sums.add_embedding(&rows, &dx, self.model.config.hidden);
        (self.work.trace, self.work.residual, self.work.dx) = (trace, x, dx);
        Ok(scores)
    }
}

/// Cuts a batch into runs of sequences of at most `most` tokens, or of one sequence.
fn runs(batch: &[Sequence], most: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut tokens = 0;
    for (index, sequence) in batch.iter().enumerate() {
        tokens += sequence.tokens.len();
        match runs.last_mut() {
            Some(run) if tokens <= most => run.end = index + 1,
            _ => {
                tokens = sequence.tokens.len();
                runs.push(index..index + 1);
            }
        }
    }
    runs
}
