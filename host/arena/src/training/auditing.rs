//! Audits a training run: what `arena audit RUN` does where the folder holds one.
//!
//! The experiment file says what every step had to play and what its matches were worth; the
//! ledger and the logs say what was.
//!
//! Not here: the steps of the audit (`arena_audit::training`), a tournament's audit
//! (`commands::audit`).

use std::path::Path;

use arena_audit::training::{
    Course, ExperimentFacts, Lesson, Rewarded as Found, RunAudit, RunAuditOptions, audit,
};
use arena_core::catalog::Catalog;
use arena_core::config::models::WeightsSource;
use arena_core::record::MatchRecord;
use arena_log::policy::Policy;
use arena_train::compact::vocabulary::TOKEN_COUNT;
use arena_train::experiment::{EXPERIMENT_BYTES_MAX, Experiment, Occasion, POLICY, PolicySource};
use arena_train::reward::{RewardKind, RewardMicro};
use arena_train::steps::{PolicyFacts, Rewarded};
use sha2::{Digest, Sha256};

use crate::advance::Advance;
use crate::error::{CliError, Complaint};
use crate::training::retraining;
use crate::{files, inputs, model_files};

/// The ledger of a run, in its folder.
const LEDGER: &str = "ledger";
/// The step without which updates are not repeated.
const ADVANTAGES: &str = "advantages";
/// The experiment of a run, in its folder.
const EXPERIMENT: &str = "experiment.toml";

/// Says whether a folder holds a training run.
pub fn is_run(folder: &Path) -> bool {
    folder.join(LEDGER).is_dir() && folder.join(EXPERIMENT).is_file()
}

/// Audits the run in a folder, and repeats its updates if that is asked for.
///
/// # Errors
/// The experiment file cannot be read.
pub fn run(
    folder: &Path,
    policy: &Policy,
    held: &[Vec<u8>],
    catalog: Option<&Catalog>,
    is_repeated: bool,
) -> Result<RunAudit, CliError> {
    let path = folder.join(EXPERIMENT);
    let text = files::read_text(&path, EXPERIMENT_BYTES_MAX as u64).map_err(CliError::Input)?;
    let experiment =
        Experiment::parse(&text).map_err(|error| CliError::Input(inputs::explain(&path, error)))?;
    let facts = ExperimentFacts {
        sha256: Sha256::digest(text.as_bytes()).into(),
        name: experiment.name.clone(),
        reward: experiment.reward_name().to_owned(),
        objective: experiment.objective_name().to_owned(),
        seed: experiment.seed,
        step_count: experiment.train.steps,
        // A warm start may have come before it.
        policy_sha256: None,
    };
    let vocabulary = vocabulary(&experiment);
    let course = Course {
        log: &|step| folder.join(Occasion::Step { step }.folder()),
        tournament: &|step, policy| experiment.tournament(Occasion::Step { step }, policy),
        model: POLICY,
        reward: &|record| reward(&experiment, record, vocabulary),
        lesson: &|step, matches| lesson(&experiment, step, matches),
    };
    let ledger = folder.join(LEDGER);
    let options = RunAuditOptions {
        ledger: &ledger,
        policy,
        held,
        catalog,
        experiment: &facts,
        course: &course,
    };
    let mut advance = Advance::new("checked", "step", 0);
    let mut audit = audit(&options, &mut |progress| {
        advance.show(progress.steps_done.into(), progress.step_count.into());
    });
    drop(advance);
    let follows = audit.step(ADVANTAGES).is_some_and(|step| step.verdict.is_verified());
    // Where what was learned from is not what is written, there is nothing to repeat.
    if is_repeated && follows {
        audit.conclude_updates(retraining::run(folder, &experiment, &text)?);
    }
    Ok(audit)
}

/// Returns the rows of the policy's embedding; `None` where its weights are not on this machine.
fn vocabulary(experiment: &Experiment) -> Option<u32> {
    match &experiment.policy.source {
        PolicySource::Compact(_) => Some(TOKEN_COUNT),
        PolicySource::Weights(named) => {
            let found = model_files::find(&WeightsSource::parse(named)).ok()?;
            let weights = model_files::open(&found.path).ok()?;
            u32::try_from(weights.config().vocab).ok()
        }
    }
}

fn reward(
    experiment: &Experiment,
    record: &MatchRecord,
    vocabulary: Option<u32>,
) -> Result<i32, String> {
    if vocabulary.is_none() && experiment.train.reward == RewardKind::SelfCertainty {
        return Err("the policy's weights are not on this machine".to_owned());
    }
    // Rewards look at no context.
    let policy = PolicyFacts { context_tokens: 0, vocabulary: vocabulary.unwrap_or(0) };
    let reward = experiment.reward(record, policy);
    reward.map(|reward| reward.0).map_err(|error| error.to_string())
}

fn lesson(experiment: &Experiment, step: u32, matches: &[Found]) -> Result<Lesson, String> {
    let rewarded: Vec<Rewarded> = matches
        .iter()
        .map(|found| Rewarded {
            agents: found.agents,
            item_index: found.item_index,
            repetition: found.repetition,
            reward: RewardMicro(found.reward_micro),
        })
        .collect();
    let advantages = experiment.advantages(step, &rewarded).map_err(|error| error.to_string())?;
    Ok(Lesson {
        advantages: advantages.advantages,
        dropped_groups: advantages.dropped_groups,
        learning_rate: experiment.learning_rate(step),
    })
}

/// Refuses what only makes sense for a tournament's log.
///
/// # Errors
/// A flag has no effect on a run.
pub fn refuse_flags(given: &[(&str, bool)]) -> Result<(), CliError> {
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            let fact = "the folder holds a training run";
            let complaint = Complaint::new(format!("cannot use `{flag}`"), fact);
            Err(CliError::Config(
                complaint.hint("audit the log of one step with it: RUN/steps/NNNNNN"),
            ))
        }
    }
}
