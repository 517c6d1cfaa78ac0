//! Support for the tests and benchmarks: strategies as native seats, without a sandbox.
//!
//! Not here: tests (`it`), benchmarks (`benches`).

pub mod native;
