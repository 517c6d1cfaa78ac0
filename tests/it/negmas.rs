//! Boulware, linear, conceder and MiCRO in their compatibility mode make the offers that NegMAS
//! made: every price of every recorded negotiation, and how it ended.
//!
//! What was recorded, with the formulas, is described in `cases/negmas/README.md`. Strategies
//! play as plain Rust and as components in the sandbox, so the two also play alike.

use std::collections::BTreeMap;

use arena_core::config::Limits;
use arena_core::price::Price;
use arena_core::record::Outcome;
use arena_core::referee::{Played, play};
use arena_core::rules::Rules;
use arena_core::scenario::{Horizon, Item, Regulation, Role, RuleSet, Scenario};
use arena_core::seat::Seat;
use arena_core::turn::Move;
use arena_sandbox::Grants;
use arena_tests::native::NativeSeat;
use serde::Deserialize;

/// How many negotiations are recorded: sixteen pairs on nine scenarios.
const RECORDED: usize = 144;

#[derive(Deserialize)]
struct Recorded {
    negmas: String,
    matches: Vec<Match>,
}

#[derive(Deserialize)]
struct Match {
    id: String,
    buyer: String,
    seller: String,
    opener: Role,
    low: u32,
    high: u32,
    tick: u32,
    budget: u32,
    cost: u32,
    turn_limit: u32,
    offers: Vec<u32>,
    deal: Option<u32>,
}

fn recorded() -> Recorded {
    let path = crate::kit::root().join("tests/cases/negmas/offers.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn native(name: &str) -> Box<dyn Seat> {
    match name {
        "boulware" => Box::new(NativeSeat::<boulware::Boulware>::new()),
        "linear" => Box::new(NativeSeat::<linear::Linear>::new()),
        "conceder" => Box::new(NativeSeat::<conceder::Conceder>::new()),
        "micro" => Box::new(NativeSeat::<micro::Micro>::new()),
        other => panic!("`{other}` has no counterpart in NegMAS"),
    }
}

fn play_again<'a>(recorded: &Match, seat: &dyn Fn(&str) -> Box<dyn Seat + 'a>) -> Played {
    let rules = Rules {
        set: RuleSet::Standard,
        regulation: [Regulation::Refuse; 2],
        retries: 0,
        talk_bytes_max: 1_024,
    };
    let item = Item {
        id: recorded.id.clone(),
        title: "Token".to_owned(),
        category: "token".to_owned(),
        description: String::new(),
        list_price: Price(recorded.high),
    };
    let scenario = Scenario {
        item,
        budget: Price(recorded.budget),
        cost: Price(recorded.cost),
        opener: recorded.opener,
        horizon: Horizon { turn_limit: recorded.turn_limit, hidden: false },
    };
    let Match { low, high, tick, .. } = recorded;
    let params = format!("compat=negmas low={low} high={high} tick={tick}");
    let (mut buyer, mut seller) = (seat(&recorded.buyer), seat(&recorded.seller));
    let seats: [&mut dyn Seat; 2] = [buyer.as_mut(), seller.as_mut()];
    play(&rules, &scenario, [&params, &params], [1, 2], seats).unwrap()
}

/// Returns the turns that the record stands for.
fn turns_of(recorded: &Match) -> Vec<(Role, Move)> {
    let offers = recorded.offers.iter().map(|&cents| Move::Offer(Price(cents)));
    let moves = offers.chain(recorded.deal.map(|_| Move::Accept(None)));
    let roles = [recorded.opener, recorded.opener.other()].into_iter().cycle();
    roles.zip(moves).collect()
}

fn check<'a>(seat: &dyn Fn(&str) -> Box<dyn Seat + 'a>) {
    let recorded = recorded();
    assert_eq!((recorded.negmas.as_str(), recorded.matches.len()), ("0.16.0", RECORDED));
    for record in &recorded.matches {
        let played = play_again(record, seat);
        let turns = played.turns.iter().map(|turn| match turn.action {
            // Naming the standing offer is the same acceptance.
            Move::Accept(_) => (turn.by, Move::Accept(None)),
            action => (turn.by, action),
        });
        let outcome = match record.deal {
            Some(cents) => Outcome::Deal { price: Price(cents) },
            None => Outcome::TimedOut,
        };
        assert_eq!(turns.collect::<Vec<_>>(), turns_of(record), "{}", record.id);
        assert_eq!(played.outcome, outcome, "{}", record.id);
    }
}

#[test]
fn native_strategies_make_every_offer_that_negmas_made() {
    check(&native);
}

#[test]
fn components_make_every_offer_that_negmas_made() {
    let sandbox = crate::kit::sandbox(Limits::default());
    let names = ["boulware", "conceder", "linear", "micro"];
    let agents = BTreeMap::from(names.map(|name| {
        let builtin = arena_agents::find(name).unwrap();
        (name, sandbox.load(builtin.component).unwrap())
    }));
    check(&|name| {
        let seat = sandbox.seat(&agents[name], &Grants::default(), 1);
        Box::new(seat.unwrap())
    });
}

#[test]
fn the_recorded_negotiations_are_worth_comparing() {
    let recorded = recorded();
    let deals = recorded.matches.iter().filter(|record| record.deal.is_some()).count();
    let offers: usize = recorded.matches.iter().map(|record| record.offers.len()).sum();
    assert!((50..=RECORDED - 50).contains(&deals), "{deals} deals of {RECORDED}");
    assert!(offers >= 3_000, "{offers} offers");
}
