//! The built-in strategies, played natively against hand-computed numbers and against each other,
//! and what is true of them as components.

#![allow(clippy::unwrap_used)]

mod components;
mod golden;
mod kit;
mod sound;
