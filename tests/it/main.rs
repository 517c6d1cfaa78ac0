//! Whole-program tests of arena, in one binary so that everything is linked once.

#![allow(clippy::unwrap_used)]

mod forging;
mod kit;
mod logs;
mod models;

mod audit;
mod bombs;
mod cli;
mod compact;
mod draws;
mod golden;
mod hostile;
mod hostile_logs;
mod llm;
mod llm_guarded;
mod llm_matches;
mod log_commands;
mod mixture;
mod model_failures;
mod model_records;
mod negmas;
mod one_sided;
mod readme;
mod resume;
mod second_drawer;
mod second_reader;
mod submit;
mod tampering;
mod teacher_talk;
mod tidy;
mod training;
mod verifiers;
