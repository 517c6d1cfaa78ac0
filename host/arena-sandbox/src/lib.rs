//! Runs WebAssembly components as seats, with no ambient authority.
//!
//! A component that is not ours is hostile until shown otherwise. It is measured before anything
//! interprets it, compiled by a child process that may die, and played in an instance of its
//! own with fuel, memory, handles, host calls and words counted. The same component, seed and
//! news give the same replies, the same fuel and the same fault on any machine.
//!
//! ```no_run
//! use arena_core::config::Limits;
//! use arena_sandbox::{CompileWorker, Grants, Sandbox, SandboxSettings};
//!
//! let program = "target/debug/arena-compile-worker".into();
//! let worker = CompileWorker { program, args: vec![] };
//! // Small limits and few slots make a sandbox for tests; several may live in one process.
//! let limits = Limits { fuel_turn_max: 100_000, ..Limits::default() };
//! let sandbox = Sandbox::new(&SandboxSettings::new(limits, 2, worker)).expect("a pool");
//! let component = std::fs::read("agent.wasm").expect("a component");
//! let agent = sandbox.load(&component).expect("an agent");
//! let seat = sandbox.seat(&agent, &Grants::default(), 7);
//! ```
//!
//! Not here: outcomes. A seat reports a `Fault`; what it costs is `arena_core`'s.

mod bindings;
mod cache;
mod compile;
mod engine;
mod imports;
mod inference;
mod meter;
pub mod precheck;
mod refusal;
mod sandbox;
mod seat;
mod state;
mod wasi;
pub mod worker;

pub use compile::{CODE_BYTES_MAX, CompileLimits, CompileWorker};
pub use engine::THREAD_STACK_BYTES;
pub use inference::{CHATS_BYTES_MAX, TURNED_AWAY_MAX};
pub use refusal::{CompileBound, LoadError, Refusal, SandboxError};
pub use sandbox::{LoadedAgent, Sandbox, SandboxSettings, watchdog_for};
pub use seat::GuestSeat;
pub use state::{Grants, TrainingMode};
