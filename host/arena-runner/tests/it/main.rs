//! Runs of whole tournaments with native seats.

mod failures;
mod hagglers;
mod order;
mod resume;
mod stage;
mod voids;
