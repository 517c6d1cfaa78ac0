//! The crate from outside: what a run does with experiments, lessons and folders.

mod experiment;
mod routing;
mod run_folder;
mod steps;
mod trainer;
