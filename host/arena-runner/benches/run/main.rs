//! What a match costs besides its agents: schedule, referee, encoding, order and log.
//!
//! `cargo bench -p arena-runner`. Native seats play twenty turns without thinking, and every log
//! is a real folder in the system's folder for temporary files. `tests/bench/README.md` says how
//! to read the figures.

mod fixture;
mod runs;
mod log;
mod peers;

use criterion::{criterion_group, criterion_main};

criterion_group!(benches, runs::runs, runs::pieces, log::parts, peers::peers);
criterion_main!(benches);
