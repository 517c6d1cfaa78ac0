//! The engine with real model files: tiny random ones of every architecture, and SmolLM2 if it is
//! on this machine.

mod engine;
mod failures;
mod fixture;
mod learner;
mod parity;
mod smollm2;
