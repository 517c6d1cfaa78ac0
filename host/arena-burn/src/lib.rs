//! The transformer in burn, for its CPU backend and for GPUs.
//!
//! A second opinion on the CPU kernels, and the way to a GPU. Results agree with the CPU engine's
//! to rounding, not to the bit, and may differ in rounding with the rest of a batch: which order a
//! device adds in is its own business. Fusion and autotuning stay off.
//!
//! Not here: batching and who is served when (`arena-model`), model files (`arena-weights`), what
//! is learned (`arena-train`).

pub mod adapter;
pub mod device;
pub mod error;
pub mod executor;
#[cfg(feature = "autodiff")]
pub mod learner;
pub mod loading;
pub mod memory;
pub mod transformer;

mod cache;
mod plan;
