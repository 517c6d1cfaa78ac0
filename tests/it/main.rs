//! Whole-program tests of arena, in one binary so that everything is linked once.

#![allow(clippy::unwrap_used)]

mod kit;
mod logs;
mod models;

mod bombs;
mod cli;
mod golden;
mod hostile;
mod hostile_logs;
mod llm;
mod llm_matches;
mod model_failures;
mod negmas;
mod resume;
mod tidy;
mod verifiers;
