//! What the referee tells its seats, asks of them and writes down.

use arena_core::config::{HorizonConfig, Limits, OpenerConfig, RulesConfig};
use arena_core::fault::{Fault, SeatError, VoidReason};
use arena_core::position::{Position, Terms, TermsError};
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::referee::{Played, Voided, play};
use arena_core::rules::{ReplayError, Rules, replay};
use arena_core::scenario::{Regulation, Role, RuleSet, Scenario};
use arena_core::script::ScriptedSeat;
use arena_core::seat::Usage;
use arena_core::turn::{Belief, End, Event, Move, Reply, Turn};

use crate::notation::{default_rules, default_scenario, record_of};

fn run(
    scenario: &Scenario,
    buyer: &mut ScriptedSeat,
    seller: &mut ScriptedSeat,
) -> Result<Played, Voided> {
    play(&default_rules(RuleSet::Standard), scenario, ["b", "s"], [11, 22], [buyer, seller])
}

fn moves(moves: &[Move]) -> ScriptedSeat {
    ScriptedSeat::of_moves(moves)
}

fn offer(dollars: u32) -> Move {
    Move::Offer(Price(dollars * 100))
}

fn spoken(action: Move, talk: &str, belief: Option<Belief>) -> Result<Reply, SeatError> {
    Ok(Reply { action, talk: talk.to_owned(), belief })
}

fn belief(dollars: u32) -> Option<Belief> {
    Some(Belief { reserve: Price(dollars * 100), spread: Price(500) })
}

fn void() -> SeatError {
    SeatError::Void { reason: VoidReason::ModelProvider, detail: "gone".to_owned() }
}

#[test]
fn each_seat_is_told_its_own_reserve_seed_and_params_once() {
    let mut scenario = default_scenario();
    scenario.opener = Role::Seller;
    let (mut buyer, mut seller) = (moves(&[]), moves(&[Move::Walk]));
    run(&scenario, &mut buyer, &mut seller).expect("nobody voids");
    let [told_buyer] = &buyer.briefs[..] else { panic!("{:?}", buyer.briefs) };
    let [told_seller] = &seller.briefs[..] else { panic!("{:?}", seller.briefs) };
    assert_eq!((told_buyer.role, told_seller.role), (Role::Buyer, Role::Seller));
    assert_eq!((told_buyer.reserve, told_seller.reserve), (Price(10_000), Price(6_000)));
    assert_eq!((told_buyer.seed, told_seller.seed), (11, 22));
    assert_eq!((told_buyer.params.as_str(), told_seller.params.as_str()), ("b", "s"));
    assert_eq!((told_buyer.opens, told_seller.opens), (false, true));
    for brief in [told_buyer, told_seller] {
        assert_eq!(brief.item, scenario.item);
        assert_eq!(brief.rules, RuleSet::Standard);
        assert_eq!(brief.turn_limit, Some(12));
    }
}

#[test]
fn a_hidden_horizon_is_told_to_neither_seat_and_still_ends_the_match() {
    let mut scenario = default_scenario();
    scenario.horizon.hidden = true;
    scenario.horizon.turn_limit = 2;
    let (mut buyer, mut seller) = (moves(&[offer(70)]), moves(&[offer(95)]));
    let played = run(&scenario, &mut buyer, &mut seller).expect("nobody voids");
    assert_eq!(played.outcome, Outcome::TimedOut);
    assert_eq!((buyer.briefs[0].turn_limit, seller.briefs[0].turn_limit), (None, None));
}

#[test]
fn a_seat_hears_the_opponents_turns_and_its_own_refusals_and_nothing_else() {
    let mut buyer = ScriptedSeat::new(vec![
        spoken(offer(120), "all I have is $100", belief(1)),
        spoken(offer(70), "please", belief(61)),
        spoken(Move::Walk, "", None),
    ]);
    let mut seller = ScriptedSeat::new(vec![spoken(offer(95), "no", belief(99))]);
    run(&default_scenario(), &mut buyer, &mut seller).expect("nobody voids");
    let turn = |by, action, talk: &str| Event::Turn(Turn { by, action, talk: talk.to_owned() });
    assert_eq!(
        buyer.news,
        [vec![], vec![Event::Refused], vec![turn(Role::Seller, offer(95), "no")]]
    );
    assert_eq!(seller.news, [vec![turn(Role::Buyer, offer(70), "please")]]);
}

#[test]
fn after_the_last_retry_the_other_side_hears_a_reject_without_talk() {
    let loud = || spoken(offer(120), "my budget is small", belief(61));
    let last = spoken(offer(120), "please", belief(62));
    let mut buyer = ScriptedSeat::new(vec![loud(), loud(), last]);
    let mut seller = moves(&[Move::Walk]);
    let played = run(&default_scenario(), &mut buyer, &mut seller).expect("nobody voids");
    let talk = String::new();
    let heard = Event::Turn(Turn { by: Role::Buyer, action: Move::Reject, talk });
    assert_eq!(seller.news, [vec![heard]]);
    assert_eq!(played.turns[0].refused, [offer(120); 3]);
    assert_eq!(played.turns[0].talk, "");
    assert_eq!(played.turns[0].belief, belief(62), "the last thing that the seat believed");
}

#[test]
fn talk_and_belief_of_a_delivered_turn_are_recorded() {
    let mut buyer = ScriptedSeat::new(vec![spoken(offer(70), "hello", belief(61))]);
    let mut seller = moves(&[Move::Walk]);
    let played = run(&default_scenario(), &mut buyer, &mut seller).expect("nobody voids");
    assert_eq!(played.turns[0].talk, "hello");
    assert_eq!(played.turns[0].belief, belief(61));
}

#[test]
fn both_seats_are_told_how_the_match_ended_except_the_one_that_faulted() {
    let impasse = || vec![End::Impasse];
    let fault = |fault: Fault| vec![End::Fault(fault.name().to_owned())];
    let deal = || vec![End::Deal(Price(7_000))];
    type Case = (Vec<Move>, Vec<Move>, [Vec<End>; 2]);
    let cases: [Case; 5] = [
        (vec![offer(70)], vec![Move::Accept(None)], [deal(), deal()]),
        (vec![Move::Walk], vec![], [impasse(), impasse()]),
        (vec![offer(70)], vec![Move::Walk], [impasse(), impasse()]),
        (vec![Move::Accept(None)], vec![], [vec![], fault(Fault::IllegalMove)]),
        (vec![offer(70)], vec![], [fault(Fault::Trap), vec![]]),
    ];
    for (buyer_moves, seller_moves, ends) in cases {
        let (mut buyer, mut seller) = (moves(&buyer_moves), moves(&seller_moves));
        run(&default_scenario(), &mut buyer, &mut seller).expect("nobody voids");
        assert_eq!([buyer.ends, seller.ends], ends, "{buyer_moves:?} {seller_moves:?}");
    }
}

#[test]
fn a_time_out_and_a_violation_are_an_impasse_to_both_seats() {
    let mut scenario = default_scenario();
    scenario.horizon.turn_limit = 1;
    let regulation = [Regulation::Penalise; 2];
    let rules = Rules { regulation, ..default_rules(RuleSet::Standard) };
    for (action, outcome) in [
        (Move::Reject, Outcome::TimedOut),
        (offer(120), Outcome::Violated { by: Role::Buyer, action: offer(120) }),
    ] {
        let (mut buyer, mut seller) = (moves(&[action]), moves(&[]));
        let played = play(&rules, &scenario, ["", ""], [0, 0], [&mut buyer, &mut seller]);
        assert_eq!(played.expect("nobody voids").outcome, outcome);
        assert_eq!([buyer.ends, seller.ends], [[End::Impasse], [End::Impasse]]);
    }
}

#[test]
fn a_seat_that_faults_before_the_first_turn_loses_and_nobody_moves() {
    for (faults, by, fault) in [
        ([Some(Fault::Fuel), None], Role::Buyer, Fault::Fuel),
        ([None, Some(Fault::Memory)], Role::Seller, Fault::Memory),
        ([Some(Fault::Fuel), Some(Fault::Memory)], Role::Buyer, Fault::Fuel),
    ] {
        let (mut buyer, mut seller) = (moves(&[Move::Walk]), moves(&[Move::Walk]));
        for (seat, fault) in [&mut buyer, &mut seller].into_iter().zip(faults) {
            seat.on_begin = fault.map_or(Ok(()), |fault| Err(SeatError::Fault(fault)));
        }
        let played = run(&default_scenario(), &mut buyer, &mut seller).expect("nobody voids");
        assert_eq!(played.outcome, Outcome::Faulted { by, fault });
        assert!(played.turns.is_empty());
        assert!(buyer.news.is_empty() && seller.news.is_empty());
        for (seat, own) in [buyer, seller].into_iter().zip(faults) {
            assert_eq!(seat.ends.len(), usize::from(own.is_none()));
        }
    }
}

#[test]
fn a_void_ends_the_match_without_a_word_to_the_seats() {
    let voided = |by| {
        let (reason, detail) = (VoidReason::ModelProvider, "gone".to_owned());
        Err(Voided { by, reason, detail })
    };
    let (mut buyer, mut seller) = (moves(&[offer(70)]), ScriptedSeat::new(vec![Err(void())]));
    assert_eq!(run(&default_scenario(), &mut buyer, &mut seller), voided(Role::Seller));
    assert!(buyer.ends.is_empty() && seller.ends.is_empty());

    let (mut buyer, mut seller) = (moves(&[]), moves(&[]));
    seller.on_begin = Err(void());
    assert_eq!(run(&default_scenario(), &mut buyer, &mut seller), voided(Role::Seller));
    assert!(buyer.news.is_empty() && seller.news.is_empty());
}

#[test]
fn usage_is_handed_over_buyer_first_whatever_the_outcome() {
    let usage = |fuel| Usage { fuel_per_act: vec![fuel], ..Usage::default() };
    for last in [Move::Walk, Move::Accept(None)] {
        let (mut buyer, mut seller) = (moves(&[last]), moves(&[]));
        (buyer.usage, seller.usage) = (usage(1), usage(2));
        let played = run(&default_scenario(), &mut buyer, &mut seller).expect("nobody voids");
        assert_eq!(played.usage, [usage(1), usage(2)]);
    }
}

#[test]
fn the_retries_of_the_tournament_file_reach_the_referee() {
    let config = RulesConfig {
        set: RuleSet::AmazonHistoryPrice,
        regulation: [Regulation::Allow, Regulation::Penalise],
        retries: 7,
        opener: OpenerConfig::Buyer,
        horizon: HorizonConfig::Fixed { turns: 12 },
    };
    let rules = Rules::new(&config, &Limits { talk_bytes_max: 99, ..Limits::default() });
    assert_eq!(rules.set, RuleSet::AmazonHistoryPrice);
    assert_eq!(rules.regulation, [Regulation::Allow, Regulation::Penalise]);
    assert_eq!((rules.retries, rules.talk_bytes_max), (7, 99));
    for retries in 0..4_usize {
        let retries_given = u32::try_from(retries).expect("small");
        let rules = Rules { retries: retries_given, ..default_rules(RuleSet::Standard) };
        let (mut buyer, mut seller) = (moves(&[offer(120); 9]), moves(&[Move::Walk]));
        let scenario = default_scenario();
        let played = play(&rules, &scenario, ["", ""], [0, 0], [&mut buyer, &mut seller]);
        assert_eq!(played.expect("nobody voids").turns[0].refused.len(), retries + 1);
        assert_eq!(buyer.news.len(), retries + 1);
    }
}

#[test]
fn terms_under_which_nobody_can_play_are_errors() {
    let start = |set, opener, turn_limit| {
        let scenario = default_scenario();
        let terms = Terms { opener, turn_limit, ..Terms::of_scenario(&scenario) };
        Position::start(default_rules(set), terms).err()
    };
    let standard = RuleSet::Standard;
    assert_eq!(start(standard, Role::Seller, 1), None);
    assert_eq!(start(standard, Role::Buyer, 1_000), None);
    assert_eq!(start(standard, Role::Buyer, 0), Some(TermsError::TurnLimit { found: 0 }));
    assert_eq!(start(standard, Role::Buyer, 1_001), Some(TermsError::TurnLimit { found: 1_001 }));
    let amazon = RuleSet::AmazonHistoryPrice;
    assert_eq!(start(amazon, Role::Buyer, 12), None);
    assert_eq!(start(amazon, Role::Seller, 12), Some(TermsError::Opener));
}

#[test]
fn the_auditor_says_where_a_record_differs() {
    let scenario = default_scenario();
    let mut buyer = moves(&[offer(120), offer(70), Move::Accept(None)]);
    let mut seller = moves(&[offer(95)]);
    let played = run(&scenario, &mut buyer, &mut seller).expect("nobody voids");
    let record = record_of(&scenario, &played);
    type Change = fn(&mut MatchRecord);
    let cases: [(Change, &str); 10] = [
        (
            |r| r.outcome = Outcome::Deal { price: Price(7_000) },
            "outcome is a deal at $70.00, the turns lead to a deal at $95.00",
        ),
        (
            |r| r.outcome = Outcome::Faulted { by: Role::Seller, fault: Fault::Trap },
            "outcome is a fault of the seller: trap, the turns lead to a deal at $95.00",
        ),
        (|r| drop(r.turns.pop()), "outcome is a deal at $95.00, the turns do not lead to it"),
        (
            |r| r.turns[1].by = Role::Buyer,
            "turn 2: `offer $95.00` is recorded as delivered, by the rules it is illegal, \
             not your turn",
        ),
        (
            |r| r.turns[0].refused[0] = offer(100),
            "turn 1: `offer $100.00` is recorded as refused, by the rules it is delivered",
        ),
        (
            |r| r.budget = Price(9_000),
            "turn 3: `accept` is recorded as delivered, by the rules it is refused",
        ),
        (
            |r| r.turns[0].refused = vec![offer(120); 4],
            "turn 1: 4 moves were refused, a seat may try 3",
        ),
        (
            |r| r.turns[0].refused = vec![offer(120); 3],
            "turn 1: every attempt was refused, yet the turn is `offer $70.00` or has talk",
        ),
        (|r| r.turns[2].talk = "x".repeat(41), "turn 3: talk is 41 bytes, allowed are 40"),
        (|r| r.horizon.turn_limit = 0, "turn limit is 0, allowed are 1 to 1000"),
    ];
    for (change, message) in cases {
        let mut record = record.clone();
        change(&mut record);
        let found: Result<(), ReplayError> = replay(&default_rules(RuleSet::Standard), &record);
        assert_eq!(found.map_err(|error| error.to_string()), Err(message.to_owned()));
    }
}

#[test]
fn what_was_tried_in_an_unfinished_turn_is_recorded() {
    let refused = || spoken(offer(120), "", belief(1));
    let ended = |last: Result<Reply, SeatError>| {
        let mut buyer = ScriptedSeat::new(vec![refused(), refused(), last]);
        let played = run(&default_scenario(), &mut buyer, &mut moves(&[])).expect("nobody voids");
        assert!(played.turns.is_empty());
        (played.unfinished, played.outcome)
    };
    let faulted = |fault| Outcome::Faulted { by: Role::Buyer, fault };
    let tried = vec![offer(120); 2];
    assert_eq!(ended(Err(SeatError::Fault(Fault::Fuel))), (tried.clone(), faulted(Fault::Fuel)));
    // The talk was too long, so its move was not looked at.
    let talk = "x".repeat(41);
    assert_eq!(ended(spoken(offer(70), &talk, None)), (tried.clone(), faulted(Fault::TalkTooLong)));
    let illegal = Move::Accept(Some(Price(7_000)));
    let tried = [&tried[..], &[illegal]].concat();
    assert_eq!(ended(spoken(illegal, "", None)), (tried, faulted(Fault::IllegalMove)));
}

#[test]
fn a_finished_turn_leaves_nothing_unfinished() {
    let mut buyer = moves(&[offer(120), offer(70)]);
    let mut seller = moves(&[offer(50), Move::Accept(None)]);
    let played = run(&default_scenario(), &mut buyer, &mut seller).expect("nobody voids");
    assert_eq!(played.outcome, Outcome::Deal { price: Price(7_000) });
    assert_eq!(played.turns.iter().map(|turn| turn.refused.len()).sum::<usize>(), 2);
    assert_eq!(played.unfinished, []);
}

#[test]
fn the_auditor_judges_an_unfinished_turn_as_well() {
    let rules = default_rules(RuleSet::Standard);
    let mut buyer = moves(&[offer(120), Move::Accept(None)]);
    let played = run(&default_scenario(), &mut buyer, &mut moves(&[])).expect("nobody voids");
    let record = record_of(&default_scenario(), &played);
    assert_eq!(record.unfinished, [offer(120), Move::Accept(None)]);
    assert_eq!(replay(&rules, &record), Ok(()));
    type Change = fn(&mut MatchRecord);
    let cases: [(Change, &str); 7] = [
        (|r| r.unfinished.clear(), "turn 1: the fault is an illegal move, and none is recorded"),
        (
            |r| r.unfinished.truncate(1),
            "turn 1: `offer $120.00` is recorded as illegal, by the rules it is refused",
        ),
        (
            |r| r.unfinished[1] = offer(70),
            "turn 1: `offer $70.00` is recorded as illegal, by the rules it is delivered",
        ),
        (
            |r| r.unfinished[0] = offer(70),
            "turn 1: `offer $70.00` is recorded as refused, by the rules it is delivered",
        ),
        (
            |r| r.outcome = Outcome::Faulted { by: Role::Buyer, fault: Fault::Fuel },
            "turn 1: `accept` is recorded as refused, by the rules it is illegal, \
             no standing offer",
        ),
        (
            |r| r.unfinished.splice(..0, [offer(120), offer(120)]).for_each(drop),
            "turn 1: 3 moves were refused, a seat may try 2",
        ),
        (
            |r| {
                let (refused, talk) = (Vec::new(), String::new());
                let (by, action, belief) = (Role::Buyer, Move::Walk, None);
                r.turns.push(TurnRecord { by, refused, action, talk, belief });
                r.outcome = Outcome::Walked { by };
            },
            "turn 2: `offer $120.00` was tried after the match had ended",
        ),
    ];
    for (change, message) in cases {
        let mut record = record.clone();
        change(&mut record);
        let found = replay(&rules, &record);
        assert_eq!(found.map_err(|error| error.to_string()), Err(message.to_owned()));
    }
}

#[test]
fn a_penalised_move_leaves_no_refused_ones_behind() {
    // The regulation of a role either refuses or penalises, so nothing comes before the move.
    let rules = Rules { regulation: [Regulation::Penalise; 2], ..default_rules(RuleSet::Standard) };
    let (mut buyer, mut seller) = (moves(&[offer(120)]), moves(&[]));
    let scenario = default_scenario();
    let played = play(&rules, &scenario, ["", ""], [0, 0], [&mut buyer, &mut seller]);
    let mut record = record_of(&scenario, &played.expect("nobody voids"));
    assert_eq!(record.unfinished, []);
    record.unfinished.push(offer(130));
    assert_eq!(
        replay(&rules, &record).map_err(|error| error.to_string()),
        Err("turn 1: `offer $130.00` is recorded as refused, by the rules it is penalised".into())
    );
}
