//! The updates of a run, from records alone: what trains and what repeats training both do this.
//!
//! Not here: where the records come from (`stage`).

use arena_core::record::MatchRecord;
use arena_train::experiment::{Experiment, WarmStartConfig};
use arena_train::steps::PolicyFacts;
use arena_train::trainer::{Imitation, Report, Trainer};

use crate::error::{CliError, Complaint};
use crate::training::account::Account;

/// Learns from a teacher's demonstrations. `tell` is told as [`Trainer::imitate`] says; returns
/// false where it ended this.
///
/// # Errors
/// The records cannot be learned from, or the device failed.
pub fn imitate(
    experiment: &Experiment,
    config: &WarmStartConfig,
    trainer: &mut Trainer,
    records: &[MatchRecord],
    policy: PolicyFacts,
    tell: &mut dyn FnMut(u32, u32, f64) -> bool,
) -> Result<bool, CliError> {
    let lessons = experiment.demonstrations(records, policy).map_err(|error| {
        CliError::Input(Complaint::new("cannot learn from the demonstrations", error))
    })?;
    if lessons.is_empty() {
        let fact = "the agent got no answer from the teacher in any match";
        let complaint = Complaint::new("cannot learn from the demonstrations", fact);
        return Err(CliError::Input(complaint.hint(
            "the teacher knows what `compact-buyer` asks new models and `llm-buyer` others",
        )));
    }
    let imitation = Imitation {
        adam: experiment.train.adam,
        micro_batch_tokens: experiment.train.micro_batch_tokens,
        epochs: config.epochs,
        batch: config.batch,
        learning_rate: config.learning_rate,
        warm_up: config.warm_up,
    };
    let mut stream = experiment.stream("train-imitation", 0);
    let is_done = trainer.imitate(&lessons, &imitation, &mut stream, tell);
    let is_done = is_done.map_err(|error| {
        CliError::Infrastructure(Complaint::new("cannot learn from the demonstrations", error))
    })?;
    trainer.forget();
    Ok(is_done)
}

/// Learns from the matches of a step.
///
/// # Errors
/// The records cannot be learned from, or the device failed.
pub fn learn(
    experiment: &Experiment,
    step: u32,
    trainer: &mut Trainer,
    records: &[MatchRecord],
    account: &Account,
    policy: PolicyFacts,
) -> Result<Report, CliError> {
    let failed = || format!("cannot learn from step {step}");
    let lessons = experiment.lessons(records, &account.advantages.advantages, policy);
    let lessons = lessons.map_err(|error| CliError::Input(Complaint::new(failed(), error)))?;
    let rate = experiment.learning_rate(step);
    let mut stream = experiment.stream("train-minibatches", step);
    let report = trainer.learn(&lessons, &experiment.course(), rate, &mut stream);
    report.map_err(|error| CliError::Infrastructure(Complaint::new(failed(), error)))
}
