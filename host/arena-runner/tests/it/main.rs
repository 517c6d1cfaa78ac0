//! Runs of whole tournaments with native seats.

mod draws;
mod failures;
mod forge;
mod hagglers;
mod order;
mod refusals;
mod resume;
mod stage;
mod voids;
