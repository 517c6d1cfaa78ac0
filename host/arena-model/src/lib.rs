//! The engine of language models: batching, KV cache, sampling, on the CPU kernels.
//!
//! Not here: model files (`arena-weights`), arithmetic (`arena-kernels`), matches.

pub mod executor;
