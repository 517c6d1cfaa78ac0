//! Reinforcement learning with verifiable rewards over arena's records.
//!
//! Rewards, advantages, losses and phases are pure functions of records and numbers, so that
//! whoever holds a run's logs computes what was learned from. The model's gradients come from an
//! [`arena_model::learner::Learner`].
//!
//! Not here: playing (`arena-runner`, joined in `arena`), arithmetic of models (`arena-model`),
//! screens.

pub mod reward;
pub mod judge;
pub mod example;
pub mod advantage;
pub mod objective;
pub mod optimiser;
pub mod metrics;
pub mod phase;
pub mod runs;
pub mod summary;
pub mod plot;
pub mod experiment;
pub mod steps;
pub mod trainer;
pub mod run_folder;
pub mod checkpoint;
pub mod tensorboard;
pub mod compact;
pub mod teacher;

#[cfg(test)]
mod fixture;
