//! Runs of whole tournaments with native seats.

mod draws;
mod faults;
mod failures;
mod forge;
mod hagglers;
mod ledgers;
mod one_sided;
mod order;
mod refusals;
mod replays;
mod resume;
mod stage;
mod stopping;
mod voids;

// The disk that fails is the one that the log itself is tested with. Some of it is only used
// there.
#[allow(dead_code)]
#[path = "../../../arena-log/tests/storage/faulty.rs"]
mod faulty;
