//! The seam between agents and language models.
//!
//! A [`model::LanguageModel`] answers a [`request::Request`] with a [`model::Completion`].
//! The same request to the same model gives the same completion, whatever else the model is
//! doing: a request carries the key of its own randomness.
//!
//! Not here: engines (weights, HTTP), matches and WebAssembly. The models of this crate are
//! [`scripted::ScriptedModel`], which answers from a table, and [`recorded::Recorded`], which
//! answers from a match's record.

pub mod allowance;
pub mod model;
pub mod recorded;
pub mod request;
pub mod scripted;
pub mod tokens;
