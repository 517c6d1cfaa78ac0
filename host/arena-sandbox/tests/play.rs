//! A guest plays: what goes in, what comes out, and that it is the same every time.

mod kit;

use arena_core::config::Limits;
use arena_core::price::Price;
use arena_core::scenario::{Brief, Item, Role, RuleSet};
use arena_core::seat::Seat;
use arena_core::turn::{End, Event, Move, Turn};
use arena_sandbox::{CompileWorker, Grants, Sandbox, SandboxSettings};

fn worker() -> CompileWorker {
    CompileWorker {
        program: env!("CARGO_BIN_EXE_arena-compile-worker").into(),
        args: vec![],
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new(&SandboxSettings::new(Limits::default(), 4, worker())).unwrap()
}

fn brief() -> Brief {
    Brief {
        role: Role::Buyer,
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
        params: String::new(),
        seed: 7,
    }
}

#[test]
fn the_default_guest_offers_fifty_dollars() {
    let sandbox = sandbox();
    let agent = sandbox.load(&kit::Guest::default().component()).unwrap();
    let mut seat = sandbox.seat(&agent, &Grants::default(), 7).unwrap();
    seat.begin(&brief()).unwrap();
    let reply = seat.act(&[]).unwrap();
    assert_eq!(reply.action, Move::Offer(Price(5_000)));
    assert_eq!(reply.talk, "");
    let news = [Event::Turn(Turn {
        by: Role::Seller,
        action: Move::Offer(Price(9_000)),
        talk: "No.".to_owned(),
    })];
    seat.act(&news).unwrap();
    seat.finish(&End::Impasse);
    println!("{:?}\n{}", seat.take_usage(), sandbox.fingerprint());
}
