//! The rules of play, from single cases to every small game.

mod cases;
mod notation;
mod properties;
mod referee;
mod small_games;
mod tape;
