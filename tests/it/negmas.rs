//! Boulware, linear, conceder and MiCRO in their compatibility mode make the offers that NegMAS
//! made: every price of every recorded negotiation, and how it ended.
//!
//! What was recorded, with the formulas, is described in `cases/negmas/README.md`. Strategies
//! play natively here; that components play as their native twins do is a test of its own.

use arena_core::price::Price;
use arena_core::record::Outcome;
use arena_core::referee::{Played, play};
use arena_core::rules::Rules;
use arena_core::scenario::{Horizon, Item, Regulation, Role, RuleSet, Scenario};
use arena_core::seat::Seat;
use arena_core::turn::Move;
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

fn play_again(recorded: &Match) -> Played {
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
        horizon: Horizon {
            turn_limit: recorded.turn_limit,
            hidden: false,
        },
    };
    let Match {
        low, high, tick, ..
    } = recorded;
    let params = format!("compat=negmas low={low} high={high} tick={tick}");
    let (mut buyer, mut seller) = (native(&recorded.buyer), native(&recorded.seller));
    let seats: [&mut dyn Seat; 2] = [buyer.as_mut(), seller.as_mut()];
    play(&rules, &scenario, [&params, &params], [1, 2], seats).unwrap()
}

/// Returns the turns that the record stands for.
fn turns_of(recorded: &Match) -> Vec<(Role, Move)> {
    let offers = recorded
        .offers
        .iter()
        .map(|&cents| Move::Offer(Price(cents)));
    let moves = offers.chain(recorded.deal.map(|_| Move::Accept(None)));
    let roles = [recorded.opener, recorded.opener.other()]
        .into_iter()
        .cycle();
    roles.zip(moves).collect()
}

#[test]
fn every_offer_of_the_recorded_negotiations_is_made_again() {
    let recorded = recorded();
    assert_eq!(
        (recorded.negmas.as_str(), recorded.matches.len()),
        ("0.16.0", RECORDED)
    );
    for record in &recorded.matches {
        let played = play_again(record);
        let turns: Vec<(Role, Move)> = played.turns.iter().map(|t| (t.by, t.action)).collect();
        let turns = turns.into_iter().map(|(by, action)| match action {
            // Naming the standing offer is the same acceptance.
            Move::Accept(_) => (by, Move::Accept(None)),
            _ => (by, action),
        });
        assert_eq!(turns.collect::<Vec<_>>(), turns_of(record), "{}", record.id);
        let outcome = match record.deal {
            Some(cents) => Outcome::Deal {
                price: Price(cents),
            },
            None => Outcome::TimedOut,
        };
        assert_eq!(played.outcome, outcome, "{}", record.id);
    }
}

#[test]
fn the_recorded_negotiations_are_worth_comparing() {
    let recorded = recorded();
    let deals = recorded
        .matches
        .iter()
        .filter(|record| record.deal.is_some())
        .count();
    let offers: usize = recorded
        .matches
        .iter()
        .map(|record| record.offers.len())
        .sum();
    assert!(
        deals >= 50 && deals <= RECORDED - 50,
        "{deals} deals of {RECORDED}"
    );
    assert!(offers >= 3_000, "{offers} offers");
}
