//! A sandbox, a brief and a match of one seat against nobody, for the tests of this crate.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a sandbox that cannot be set up is a broken test")]

use arena_core::config::Limits;
use arena_core::fault::{Fault, SeatError};
use arena_core::price::Price;
use arena_core::scenario::{Brief, Item, Role, RuleSet};
use arena_core::seat::{Seat, Usage};
use arena_core::turn::{End, Event, Move, Reply, Turn};
use arena_sandbox::{CompileWorker, Grants, LoadedAgent, Sandbox, SandboxSettings};

pub fn worker() -> CompileWorker {
    CompileWorker { program: env!("CARGO_BIN_EXE_arena-compile-worker").into(), args: vec![] }
}

pub fn settings(limits: Limits) -> SandboxSettings {
    SandboxSettings::new(limits, 4, worker())
}

pub fn sandbox(limits: Limits) -> Sandbox {
    Sandbox::new(&settings(limits)).unwrap()
}

pub fn brief(role: Role, seed: u64) -> Brief {
    Brief {
        role,
        item: Item {
            id: "test/0".to_owned(),
            title: "A lamp".to_owned(),
            category: "light".to_owned(),
            description: "It shines.".to_owned(),
            list_price: Price(10_000),
        },
        reserve: Price(8_000),
        turn_limit: Some(20),
        opens: true,
        rules: RuleSet::Standard,
        params: "firm".to_owned(),
        seed,
    }
}

pub fn opponent_offers(cents: u32, talk: &str) -> Event {
    Event::Turn(Turn { by: Role::Seller, action: Move::Offer(Price(cents)), talk: talk.to_owned() })
}

/// What a seat did in a match of `turns` turns, and how it ended if it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    pub replies: Vec<Reply>,
    pub error: Option<SeatError>,
    pub usage: Usage,
}

/// Seats an agent and asks it for its turns.
pub fn play(sandbox: &Sandbox, agent: &LoadedAgent, grants: &Grants, turns: u32) -> Played {
    let mut seat = sandbox.seat(agent, grants, 7).unwrap();
    let mut replies = Vec::new();
    let mut error = seat.begin(&brief(Role::Buyer, 7)).err();
    for turn in 0..turns {
        if error.is_some() {
            break;
        }
        match seat.act(&[opponent_offers(9_000 - turn, "No.")]) {
            Ok(reply) => replies.push(reply),
            Err(found) => error = Some(found),
        }
    }
    if error.is_none() {
        seat.finish(&End::Impasse);
    }
    Played { replies, error, usage: seat.take_usage() }
}

/// Loads a component and plays it without grants.
pub fn load_and_play(limits: Limits, component: &[u8], turns: u32) -> Played {
    let sandbox = sandbox(limits);
    let agent = sandbox.load(component).unwrap();
    play(&sandbox, &agent, &Grants::default(), turns)
}

/// Checks that a component's match ends with a fault, three times the same, and that a
/// well-behaved agent on the same sandbox is not affected.
pub fn check_fault(name: &str, limits: Limits, component: &[u8], turns: u32, fault: Fault) {
    let sandbox = sandbox(limits);
    let honest = sandbox.load(&crate::kit::Guest::default().component()).unwrap();
    let before = play(&sandbox, &honest, &Grants::default(), 3);
    let agent = sandbox.load(component).unwrap_or_else(|error| panic!("{name}: {error}"));
    let first = play(&sandbox, &agent, &Grants::default(), turns);
    assert_eq!(first.error, Some(SeatError::Fault(fault)), "{name}");
    for _ in 0..2 {
        assert_eq!(play(&sandbox, &agent, &Grants::default(), turns), first, "{name}");
    }
    assert_eq!(play(&sandbox, &honest, &Grants::default(), 3), before, "{name}");
    assert_eq!(before.error, None, "{name}");
}
