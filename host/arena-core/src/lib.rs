//! The game of arena and everything that is computed from it.
//!
//! Every function here takes values and returns values: the same input gives the same
//! output on any machine, which is what lets a stranger recompute a tournament.
//!
//! Not here: files, clocks, threads, WebAssembly and language models. Readers of files
//! and folders hand their text to the parsers in [`config`] and [`catalog`].

pub mod price;
pub mod scenario;
pub mod turn;
pub mod fault;
pub mod seat;
pub mod rules;
pub mod position;
pub mod referee;
pub mod script;
pub mod record;
pub mod envelope;
pub mod entry;
pub mod announcement;
pub mod transcript;
pub mod ledger;
pub mod submission;
pub mod dialogue;
pub mod draws;
pub mod seed;
pub mod catalog;
pub mod config;
pub mod schedule;
pub mod score;
pub mod statistics;
pub mod report;
pub mod hexadecimal;
