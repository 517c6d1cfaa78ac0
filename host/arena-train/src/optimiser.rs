//! Moves parameters against their gradients: AdamW, one for all learners.
//!
//! Everything is f32 and goes through the parameters in their order and each from its first value
//! to its last, so the same gradients give the same bits everywhere; only the norm of the
//! gradients is summed in f64, in the same order.
//!
//! Not here: where gradients come from (`arena_model::learner`), files of the state (whoever writes
//! checkpoints; the state is plain lists).

use std::f64::consts::PI;
use std::fmt;

use arena_model::learner::Parameter;
use libm::{cos, pow};
use serde::{Deserialize, Serialize};

/// What PyTorch's `clip_grad_norm_` adds to the norm that it divides by.
const NORM_OFFSET: f64 = 1e-6;

/// The numbers of AdamW, arXiv 1711.05101, algorithm 2, with PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AdamW {
    /// How long the mean of the gradients remembers; 0 to below 1.
    pub beta1: f64,
    /// How long the mean of their squares remembers; 0 to below 1.
    pub beta2: f64,
    /// What is added to the root of that mean; above 0.
    pub epsilon: f64,
    /// How much of a value is taken off, times the rate; at least 0. Only tensors of two or more
    /// axes decay: a norm's scale or a bias is not shrunk to nothing.
    pub weight_decay: f64,
    /// The largest norm of all gradients together; longer ones are shortened to it. Above 0.
    pub norm_max: f64,
}

impl Default for AdamW {
    fn default() -> AdamW {
        AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01, norm_max: 1.0 }
    }
}

/// What AdamW remembers, laid out as the parameters' values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    /// Updates so far.
    pub step: u64,
    /// Running means of the gradients.
    pub first: Vec<Vec<f32>>,
    /// Running means of their squares.
    pub second: Vec<Vec<f32>>,
}

impl Moments {
    /// Returns the memory of no update yet.
    pub fn new(parameters: &[Parameter]) -> Moments {
        let length = |parameter: &Parameter| parameter.shape.iter().product();
        let zeros: Vec<Vec<f32>> =
            parameters.iter().map(|parameter| vec![0.0; length(parameter)]).collect();
        Moments { step: 0, first: zeros.clone(), second: zeros }
    }
}

/// What an update did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The norm of all gradients together, before it was shortened.
    pub gradient_norm: f64,
    /// The learning rate.
    pub rate: f64,
}

impl AdamW {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The first that is out of bounds.
    pub fn check(&self) -> Result<(), OptimiserError> {
        let below_one = 1.0 - f64::EPSILON;
        let positive = f64::MIN_POSITIVE;
        let bounds = [
            ("beta1", self.beta1, 0.0, below_one),
            ("beta2", self.beta2, 0.0, below_one),
            ("epsilon", self.epsilon, positive, f64::MAX),
            ("weight-decay", self.weight_decay, 0.0, f64::MAX),
            ("norm-max", self.norm_max, positive, f64::MAX),
        ];
        check_bounds(&bounds)
    }

    /// Updates `values` in place with learning rate `rate`. `gradients` are shortened in place
    /// where their norm is above `norm_max`.
    ///
    /// Of each value x with gradient g at update t, as PyTorch's `AdamW` computes it:
    /// x ← x (1 - rate decay); m ← m + (g - m)(1 - β₁); v ← v β₂ + (1 - β₂) g g;
    /// x ← x - rate/(1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε).
    ///
    /// # Errors
    /// The lists are not laid out as the parameters, or a gradient is not finite. Nothing has
    /// changed then.
    pub fn update(
        &self,
        rate: f64,
        parameters: &[Parameter],
        values: &mut [Vec<f32>],
        gradients: &mut [Vec<f32>],
        moments: &mut Moments,
    ) -> Result<Update, OptimiserError> {
        for (what, lists) in [
            ("values", &*values),
            ("gradients", &*gradients),
            ("first moments", &moments.first[..]),
            ("second moments", &moments.second[..]),
        ] {
            check_layout(what, parameters, lists)?;
        }
        check_bounds(&[("rate", rate, 0.0, f64::MAX)])?;
        let gradient_norm = norm(parameters, gradients)?;
        self.shorten(gradient_norm, gradients);
        moments.step += 1;
        let factors = Factors::new(self, rate, moments.step);
        for (number, parameter) in parameters.iter().enumerate() {
            let shrink = if parameter.shape.len() >= 2 { factors.shrink } else { 1.0 };
            let means = moments.first[number].iter_mut().zip(&mut moments.second[number]);
            let pairs = values[number].iter_mut().zip(&gradients[number]);
            for ((value, gradient), (first, second)) in pairs.zip(means) {
                *first += (gradient - *first) * factors.first_share;
                *second =
                    *second * factors.second_keep + factors.second_share * gradient * gradient;
                let spread = second.sqrt() / factors.second_root + factors.epsilon;
                *value = *value * shrink - factors.step * (*first / spread);
            }
        }
        Ok(Update { gradient_norm, rate })
    }

    fn shorten(&self, gradient_norm: f64, gradients: &mut [Vec<f32>]) {
        if gradient_norm <= self.norm_max {
            return;
        }
        let factor = (self.norm_max / (gradient_norm + NORM_OFFSET)) as f32;
        gradients.iter_mut().flatten().for_each(|gradient| *gradient *= factor);
    }
}

/// The numbers of one update, computed in f64 and rounded once.
struct Factors {
    shrink: f32,
    first_share: f32,
    second_keep: f32,
    second_share: f32,
    second_root: f32,
    epsilon: f32,
    step: f32,
}

impl Factors {
    fn new(adam: &AdamW, rate: f64, step: u64) -> Factors {
        let bias = |beta: f64| 1.0 - pow(beta, step as f64);
        Factors {
            shrink: (1.0 - rate * adam.weight_decay) as f32,
            first_share: (1.0 - adam.beta1) as f32,
            second_keep: adam.beta2 as f32,
            second_share: (1.0 - adam.beta2) as f32,
            second_root: bias(adam.beta2).sqrt() as f32,
            epsilon: adam.epsilon as f32,
            step: (rate / bias(adam.beta1)) as f32,
        }
    }
}

/// Returns the Euclidean norm of all gradients together.
fn norm(parameters: &[Parameter], gradients: &[Vec<f32>]) -> Result<f64, OptimiserError> {
    let mut squares = 0.0_f64;
    for (parameter, gradient) in parameters.iter().zip(gradients) {
        for value in gradient {
            squares += f64::from(*value) * f64::from(*value);
        }
        if !squares.is_finite() {
            return Err(OptimiserError::NotFinite { parameter: parameter.name.clone() });
        }
    }
    Ok(squares.sqrt())
}

/// How the learning rate changes after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// It stays.
    Constant,
    /// It falls in a straight line.
    Linear,
    /// It falls along half a cosine. arXiv 1608.03983, equation 5.
    Cosine,
}

/// The learning rate of every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The highest rate; above 0.
    pub peak: f64,
    /// Steps in which it rises in a straight line: the first step has 1/n of the peak, the n-th all
    /// of it. 0 starts at the peak.
    pub warmup_steps: u32,
    /// How it goes on.
    pub decay: Decay,
    /// Steps of the run. The step after the last would have the final rate.
    pub step_count: u32,
    /// What is left at the end, as a share of the peak; 0 to 1. [`Decay::Constant`] has 1.
    pub final_share: f64,
}

impl Schedule {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The first that is out of bounds or does not go with the others.
    pub fn check(&self) -> Result<(), OptimiserError> {
        let least = if self.decay == Decay::Constant { 1.0 } else { 0.0 };
        check_bounds(&[
            ("rate", self.peak, f64::MIN_POSITIVE, f64::MAX),
            ("warmup-steps", self.warmup_steps.into(), 0.0, self.step_count.into()),
            ("final-share", self.final_share, least, 1.0),
        ])
    }

    /// Returns the rate of a step, from 0. Steps after the last keep the final rate.
    pub fn rate(&self, step: u32) -> f64 {
        if step < self.warmup_steps {
            return self.peak * f64::from(step + 1) / f64::from(self.warmup_steps);
        }
        let span = f64::from(self.step_count.saturating_sub(self.warmup_steps).max(1));
        let progress = (f64::from(step - self.warmup_steps) / span).min(1.0);
        let left = match self.decay {
            Decay::Constant => 1.0,
            Decay::Linear => 1.0 - progress,
            Decay::Cosine => 0.5 * (1.0 + cos(PI * progress)),
        };
        self.peak * (self.final_share + (1.0 - self.final_share) * left)
    }
}

fn check_bounds(bounds: &[(&'static str, f64, f64, f64)]) -> Result<(), OptimiserError> {
    match bounds.iter().find(|(_, found, least, most)| !(least..=most).contains(&found)) {
        None => Ok(()),
        Some(&(name, found, least, most)) => {
            Err(OptimiserError::Value { name, found, least, most })
        }
    }
}

fn check_layout(
    what: &'static str,
    parameters: &[Parameter],
    lists: &[Vec<f32>],
) -> Result<(), OptimiserError> {
    if lists.len() != parameters.len() {
        let (found, expected) = (lists.len(), parameters.len());
        return Err(OptimiserError::Count { what, found, expected });
    }
    for (parameter, list) in parameters.iter().zip(lists) {
        let expected = parameter.shape.iter().product();
        if list.len() != expected {
            let parameter = parameter.name.clone();
            return Err(OptimiserError::Length { what, parameter, found: list.len(), expected });
        }
    }
    Ok(())
}

/// An update that cannot be made.
#[derive(Clone, Debug, PartialEq)]
pub enum OptimiserError {
    /// A number is out of bounds.
    Value {
        /// Its key.
        name: &'static str,
        /// What it is.
        found: f64,
        /// The least.
        least: f64,
        /// The most.
        most: f64,
    },
    /// Lists for another number of parameters.
    Count {
        /// What is listed.
        what: &'static str,
        /// For how many.
        found: usize,
        /// How many there are.
        expected: usize,
    },
    /// A list of another length than its parameter.
    Length {
        /// What is listed.
        what: &'static str,
        /// Whose.
        parameter: String,
        /// How long it is.
        found: usize,
        /// How long it should be.
        expected: usize,
    },
    /// A gradient that is no number.
    NotFinite {
        /// Whose.
        parameter: String,
    },
}

impl fmt::Display for OptimiserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptimiserError::Value { name, found, least, most } => {
                write!(f, "`{name}` is `{found}`, allowed are `{least:e}` to `{most:e}`")
            }
            OptimiserError::Count { what, found, expected } => {
                write!(f, "{what} of `{found}` parameters for `{expected}`")
            }
            OptimiserError::Length { what, parameter, found, expected } => {
                write!(f, "`{found}` {what} for the `{expected}` of `{parameter}`")
            }
            OptimiserError::NotFinite { parameter } => {
                write!(f, "a gradient of `{parameter}` is not a finite number")
            }
        }
    }
}

impl std::error::Error for OptimiserError {}

#[cfg(test)]
mod tests;
