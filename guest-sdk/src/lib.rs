//! Everything that an agent needs: a trait to implement, one macro to export it, typed moves.
//!
//! An agent is compiled to a WebAssembly component and plays one seat of one match. It has no
//! clock, no files, no network and no randomness but the seed in its brief, so the same
//! brief and the same events always give the same moves. The same source compiles natively,
//! where [`export!`] expands to nothing; strategies are tested and measured that way.
//!
//! Not here: the referee. Nothing that an agent does can reach its opponent except moves and talk.

pub mod argument;
pub mod attack;
pub mod chat;
pub mod compact;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod component;
pub mod game;
pub mod grammar;
pub mod haggler;
pub mod learner;
pub mod manner;
pub mod math;
pub mod negmas;
pub mod params;
pub mod phrase;
pub mod prompt;
pub mod reply;
pub mod rng;
pub mod speaker;
pub mod tactic;
pub mod temper;
pub mod trace;
pub mod training;
pub mod view;
pub mod wording;

pub use game::{Agent, Belief, Brief, End, Event, Item, Move, Reply, Role, Turn};

/// Makes a type that implements [`Agent`] the agent of this component.
///
/// Once per crate. On targets other than WebAssembly it expands to nothing.
#[cfg(not(target_arch = "wasm32"))]
#[macro_export]
macro_rules! export {
    ($agent:ty) => {};
}
