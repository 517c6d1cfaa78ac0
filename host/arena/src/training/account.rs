//! What is said of a step and what it learned from: rewards, advantages, the ledger's entry.
//!
//! Not here: the ledger's format (`arena_core::ledger`), rewards (`arena_train::reward`).

use arena_core::ledger::{LedgerOpening, StepMatch};
use arena_core::record::MatchRecord;
use arena_train::experiment::Experiment;
use arena_train::metrics::{PlayMetrics, Played, play_metrics};
use arena_train::reward::RewardMicro;
use arena_train::steps::{PolicyFacts, Rewarded, StepAdvantages};

use crate::error::{CliError, Complaint};

/// What a step's matches were worth.
pub struct Account {
    /// Of every match, in the order of the log.
    pub rewards: Vec<RewardMicro>,
    /// What is learned from each.
    pub advantages: StepAdvantages,
    /// What was played.
    pub play: PlayMetrics,
}

/// Computes what a step's matches were worth.
///
/// # Errors
/// A record does not hold what the reward is computed from.
pub fn account(
    experiment: &Experiment,
    step: u32,
    records: &[MatchRecord],
    policy: PolicyFacts,
) -> Result<Account, CliError> {
    let fails = |error: &dyn std::fmt::Display| {
        CliError::Input(Complaint::new(format!("cannot learn from step {step}"), error))
    };
    let rewards: Result<Vec<RewardMicro>, _> =
        records.iter().map(|record| experiment.reward(record, policy)).collect();
    let rewards = rewards.map_err(|error| fails(&error))?;
    let rewarded: Vec<Rewarded> = records
        .iter()
        .zip(&rewards)
        .map(|(record, reward)| Rewarded {
            agents: record.agents,
            item_index: record.item_index,
            repetition: record.repetition,
            reward: *reward,
        })
        .collect();
    let advantages = experiment.advantages(step, &rewarded).map_err(|error| fails(&error))?;
    let role = experiment.learner.role;
    let played = records.iter().zip(&rewards);
    let play =
        play_metrics(played.map(|(record, reward)| Played { record, role, reward: *reward }));
    Ok(Account { rewards, advantages, play })
}

impl Account {
    /// Returns what the ledger says of the matches.
    pub fn matches(&self) -> Vec<StepMatch> {
        let pairs = self.rewards.iter().zip(&self.advantages.advantages);
        pairs
            .map(|(reward, advantage)| StepMatch {
                reward_micro: reward.0,
                advantage_bits: advantage.map(f64::to_bits),
            })
            .collect()
    }
}

/// Returns what a ledger opens with.
pub fn opening(
    experiment: &Experiment,
    experiment_sha256: [u8; 32],
    log_key: [u8; 32],
    policy_sha256: [u8; 32],
    engine: String,
) -> LedgerOpening {
    LedgerOpening {
        origin: format!("arena.local/{}/{}/ledger", experiment.name, experiment.seed),
        log_key,
        name: experiment.name.clone(),
        experiment_sha256,
        reward: experiment.reward_name().to_owned(),
        objective: experiment.objective_name().to_owned(),
        policy_sha256,
        seed: experiment.seed,
        engine,
    }
}
