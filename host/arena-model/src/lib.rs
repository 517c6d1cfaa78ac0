//! The engine of language models: batching, KV cache, sampling, on the CPU kernels.
//!
//! [`engine::Engine`] is a [`arena_llm::model::LanguageModel`] that many threads ask at once. It
//! computes through an [`executor::Executor`], of which [`cpu::CpuExecutor`] is the one that runs
//! on the CPU. The same request gives the same tokens whoever else asks, and the same
//! log-probabilities to the bit.
//!
//! Not here: model files (`arena-weights`), arithmetic (`arena-kernels`), other devices
//! (`arena-burn`), matches.

pub mod engine;
pub mod event;
pub mod bench;
mod worker;
mod schedule;
mod sequence;
mod cache;
mod grammar;
pub mod sampler;
mod text;
mod vocabulary;
pub mod executor;
pub mod learner;
pub mod cpu;
pub mod statistics;
pub mod error;
