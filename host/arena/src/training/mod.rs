//! `arena train`: joins what plays, what judges and what learns.
//!
//! A run is a loop of three: the ordinary runner plays a step's tournament with the policy, the
//! records become lessons, and a learner makes another policy of them. What each step learned from
//! is written into a signed ledger. A run that was stopped anywhere goes on as if it had not been.
//!
//! Not here: what an experiment means, rewards and updates (`arena_train`), playing
//! (`arena_runner`).

pub mod account;
pub mod auditing;
pub mod evaluating;
pub mod events;
pub mod policy;
pub mod progress;
pub mod reading;
pub mod retraining;
pub mod run;
pub mod stage;
pub mod updates;
