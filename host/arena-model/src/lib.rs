//! The engine of language models: batching, KV cache, sampling, on the CPU kernels.
