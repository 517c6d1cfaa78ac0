//! What holds for any match: its record replays, a changed record replays only if it is what
//! the rules produce, and the rules favour neither role.

use arena_core::fault::{Fault, SeatError};
use arena_core::position::{Position, Terms};
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::referee::{Played, play};
use arena_core::rules::{Rules, replay};
use arena_core::scenario::{Horizon, Regulation, Role, RuleSet, Scenario};
use arena_core::script::ScriptedSeat;
use arena_core::turn::{Belief, Move, Reply};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::notation::{default_rules, default_scenario, record_of};
use crate::tape::{Answer, play_tape};

const TALK_BYTES_MAX: u32 = 4;
/// Prices are few, so that accepts often name one that was offered.
const PRICE_TOP: u32 = 6;

fn price() -> impl Strategy<Value = Price> {
    (0..=PRICE_TOP).prop_map(Price)
}

fn role() -> impl Strategy<Value = Role> {
    select(&Role::BOTH[..])
}

fn action() -> impl Strategy<Value = Move> {
    prop_oneof![
        6 => price().prop_map(Move::Offer),
        2 => option::of(price()).prop_map(Move::Accept),
        3 => Just(Move::Reject),
        1 => Just(Move::Walk),
    ]
}

fn talk() -> impl Strategy<Value = String> {
    prop_oneof![9 => "[a-z]{0,4}", 1 => "[a-zä]{3,5}"]
}

fn belief() -> impl Strategy<Value = Option<Belief>> {
    option::of((price(), price()).prop_map(|(reserve, spread)| Belief { reserve, spread }))
}

fn answer() -> impl Strategy<Value = Answer> {
    let reply = (action(), talk(), belief())
        .prop_map(|(action, talk, belief)| Ok(Reply { action, talk, belief }));
    // Whether a move is legal is the referee's to say, not a seat's.
    let faults: Vec<Fault> =
        Fault::ALL.into_iter().filter(|fault| *fault != Fault::IllegalMove).collect();
    let fault = select(faults).prop_map(|fault| Err(SeatError::Fault(fault)));
    prop_oneof![30 => reply, 1 => fault]
}

fn rules() -> impl Strategy<Value = Rules> {
    let sets = select(&[RuleSet::Standard, RuleSet::AmazonHistoryPrice][..]);
    let regulation = || select(&[Regulation::Refuse, Regulation::Penalise, Regulation::Allow][..]);
    (sets, [regulation(), regulation()], 0..3_u32).prop_map(|(set, regulation, retries)| Rules {
        regulation,
        retries,
        talk_bytes_max: TALK_BYTES_MAX,
        ..default_rules(set)
    })
}

fn game() -> impl Strategy<Value = (Rules, Scenario)> {
    (rules(), [price(), price()], role(), 1..8_u32).prop_map(|(rules, reserves, opener, turns)| {
        let mut scenario = default_scenario();
        [scenario.budget, scenario.cost] = reserves;
        scenario.horizon = Horizon { turn_limit: turns, hidden: false };
        if rules.set == RuleSet::Standard {
            scenario.opener = opener;
        }
        (rules, scenario)
    })
}

/// A game with enough answers on the tape to end it: the last one is a trap.
fn played() -> impl Strategy<Value = (Rules, MatchRecord)> {
    (game(), vec(answer(), 0..24)).prop_map(|((rules, scenario), mut answers)| {
        answers.push(Err(SeatError::Fault(Fault::Trap)));
        let played = play_tape(&rules, &scenario, answers).played.expect("nobody voids");
        (rules, record_of(&scenario, &played))
    })
}

/// One change of a record.
#[derive(Clone, Debug)]
enum Change {
    By(usize),
    Action(usize, Move),
    Talk(usize, String),
    Refuse(usize, Move),
    Unrefuse(usize),
    Try(usize, Move),
    Untry(usize),
    Belief(usize, Option<Belief>),
    Remove(usize),
    Duplicate(usize),
    Swap(usize, usize),
    Truncate(usize),
    Outcome(Outcome),
    TurnLimit(u32),
    Opener(Role),
    Budget(Price),
    Cost(Price),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        price().prop_map(|price| Outcome::Deal { price }),
        role().prop_map(|by| Outcome::Walked { by }),
        Just(Outcome::TimedOut),
        (role(), action()).prop_map(|(by, action)| Outcome::Violated { by, action }),
        (role(), select(&Fault::ALL[..])).prop_map(|(by, fault)| Outcome::Faulted { by, fault }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let index = || 0..8_usize;
    prop_oneof![
        index().prop_map(Change::By),
        (index(), action()).prop_map(|(at, action)| Change::Action(at, action)),
        (index(), talk()).prop_map(|(at, talk)| Change::Talk(at, talk)),
        (index(), action()).prop_map(|(at, action)| Change::Refuse(at, action)),
        index().prop_map(Change::Unrefuse),
        (index(), action()).prop_map(|(at, action)| Change::Try(at, action)),
        index().prop_map(Change::Untry),
        (index(), belief()).prop_map(|(at, belief)| Change::Belief(at, belief)),
        index().prop_map(Change::Remove),
        index().prop_map(Change::Duplicate),
        (index(), index()).prop_map(|(one, other)| Change::Swap(one, other)),
        index().prop_map(Change::Truncate),
        outcome().prop_map(Change::Outcome),
        (0..9_u32).prop_map(Change::TurnLimit),
        role().prop_map(Change::Opener),
        price().prop_map(Change::Budget),
        price().prop_map(Change::Cost),
    ]
}

fn apply(record: &mut MatchRecord, change: Change) {
    let (count, tried) = (record.turns.len(), record.unfinished.len());
    let turns = &mut record.turns;
    match change {
        Change::Outcome(outcome) => record.outcome = outcome,
        Change::TurnLimit(turn_limit) => record.horizon.turn_limit = turn_limit,
        Change::Opener(opener) => record.opener = opener,
        Change::Budget(budget) => record.budget = budget,
        Change::Cost(cost) => record.cost = cost,
        Change::Try(at, action) => record.unfinished.insert(at.min(tried), action),
        Change::Untry(_) if tried == 0 => (),
        Change::Untry(at) => drop(record.unfinished.remove(at % tried)),
        _ if count == 0 => (),
        Change::By(at) => turns[at % count].by = turns[at % count].by.other(),
        Change::Action(at, action) => turns[at % count].action = action,
        Change::Talk(at, talk) => turns[at % count].talk = talk,
        Change::Refuse(at, action) => turns[at % count].refused.push(action),
        Change::Unrefuse(at) => drop(turns[at % count].refused.pop()),
        Change::Belief(at, belief) => turns[at % count].belief = belief,
        Change::Remove(at) => drop(turns.remove(at % count)),
        Change::Duplicate(at) => turns.insert(at % count, turns[at % count].clone()),
        Change::Swap(one, other) => turns.swap(one % count, other % count),
        Change::Truncate(at) => turns.truncate(at % count),
    }
}

/// Plays what a record says that its seats did.
fn play_again(rules: &Rules, record: &MatchRecord) -> Option<Played> {
    Position::start(*rules, Terms::of_record(record)).ok()?;
    let mut seats = [ScriptedSeat::of_moves(&[]), ScriptedSeat::of_moves(&[])];
    for turn in &record.turns {
        let answers = &mut seats[turn.by.index()].answers;
        answers.extend(answers_of(rules, turn).into_iter().map(Ok));
    }
    let silent = |&action: &Move| Ok(Reply { action, talk: String::new(), belief: None });
    match &record.outcome {
        Outcome::Violated { by, action } => {
            let tried = record.unfinished.iter().chain([action]);
            seats[by.index()].answers.extend(tried.map(silent));
        }
        Outcome::Faulted { by, fault } => {
            let seat = &mut seats[by.index()];
            let at_once = record.turns.is_empty() && record.unfinished.is_empty();
            seat.answers.extend(record.unfinished.iter().map(silent));
            match fault {
                // The last of the moves that were tried is the fault.
                Fault::IllegalMove => (),
                Fault::TalkTooLong => seat.answers.push_back(Err(SeatError::Fault(*fault))),
                _ if at_once => seat.on_begin = Err(SeatError::Fault(*fault)),
                _ => seat.answers.push_back(Err(SeatError::Fault(*fault))),
            }
        }
        Outcome::Deal { .. } | Outcome::Walked { .. } | Outcome::TimedOut => (),
    }
    let scenario = Scenario {
        budget: record.budget,
        cost: record.cost,
        opener: record.opener,
        horizon: record.horizon,
        ..default_scenario()
    };
    let [buyer, seller] = &mut seats;
    let played = play(rules, &scenario, ["", ""], [1, 2], [buyer, seller]);
    Some(played.expect("scripts do not void"))
}

fn answers_of(rules: &Rules, turn: &TurnRecord) -> Vec<Reply> {
    let silent = |&action: &Move| Reply { action, talk: String::new(), belief: None };
    let mut replies: Vec<Reply> = turn.refused.iter().map(silent).collect();
    if replies.len() < rules.attempts_max() {
        let (action, talk) = (turn.action, turn.talk.clone());
        replies.push(Reply { action, talk, belief: None });
    }
    replies.last_mut().expect("a turn has an attempt").belief = turn.belief;
    replies
}

/// The same move seen from the other side of the table.
fn mirrored_move(action: Move) -> Move {
    match action {
        Move::Offer(price) => Move::Offer(mirrored(price)),
        Move::Accept(named) => Move::Accept(named.map(mirrored)),
        Move::Reject | Move::Walk => action,
    }
}

fn mirrored(price: Price) -> Price {
    Price(PRICE_TOP - price.cents())
}

fn mirrored_outcome(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Deal { price } => Outcome::Deal { price: mirrored(price) },
        Outcome::Walked { by } => Outcome::Walked { by: by.other() },
        Outcome::TimedOut => Outcome::TimedOut,
        Outcome::Violated { by, action } => {
            Outcome::Violated { by: by.other(), action: mirrored_move(action) }
        }
        Outcome::Faulted { by, fault } => Outcome::Faulted { by: by.other(), fault },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn every_match_that_was_played_replays((rules, record) in played()) {
        prop_assert_eq!(replay(&rules, &record), Ok(()));
    }

    #[test]
    fn a_changed_record_replays_only_if_its_moves_lead_to_it(
        (rules, mut record) in played(),
        changes in vec(change(), 1..3),
    ) {
        for change in changes {
            apply(&mut record, change);
        }
        let again = play_again(&rules, &record);
        let same = again.is_some_and(|played| {
            played.turns == record.turns
                && played.unfinished == record.unfinished
                && played.outcome == record.outcome
        });
        prop_assert_eq!(replay(&rules, &record).is_ok(), same, "{:?}", replay(&rules, &record));
    }

    #[test]
    fn swapping_the_sides_and_mirroring_the_prices_mirrors_the_outcome(
        (rules, scenario) in game(),
        moves in vec(action(), 0..24),
    ) {
        // The other rule set favours the buyer by design: it opens, and not with a walk.
        let rules = Rules { set: RuleSet::Standard, ..rules };
        let tape = |moves: &[Move]| {
            let mut answers: Vec<Answer> = moves
                .iter()
                .map(|&action| Ok(Reply { action, talk: String::new(), belief: None }))
                .collect();
            answers.push(Err(SeatError::Fault(Fault::Trap)));
            answers
        };
        let played = play_tape(&rules, &scenario, tape(&moves)).played.expect("nobody voids");

        let [buyer, seller] = rules.regulation;
        let other_rules = Rules { regulation: [seller, buyer], ..rules };
        let mut other = scenario.clone();
        other.budget = mirrored(scenario.cost);
        other.cost = mirrored(scenario.budget);
        other.opener = scenario.opener.other();
        let moves: Vec<Move> = moves.into_iter().map(mirrored_move).collect();
        let mirror = play_tape(&other_rules, &other, tape(&moves)).played.expect("nobody voids");
        prop_assert_eq!(mirror.outcome, mirrored_outcome(played.outcome));
        prop_assert_eq!(mirror.turns.len(), played.turns.len());
    }
}
