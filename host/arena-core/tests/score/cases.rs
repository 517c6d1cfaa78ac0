use arena_core::fault::Fault;
use arena_core::record::Outcome;
use arena_core::scenario::Role;
use arena_core::score::numbers::Leak;
use arena_core::score::{Attempts, Prospect, reward};
use arena_core::seat::{ModelCall, Sampling, Usage};
use arena_core::turn::{Belief, Move};

use crate::notation::{deal, dollars, record, seats};

#[test]
fn a_deal_pays_the_share_of_the_room_that_a_side_got() {
    for (budget, cost, price, buyer, seller) in [
        ("100", "60", "70", 0.75, 0.25),
        ("100", "60", "60", 1.0, 0.0),
        ("100", "60", "100", 0.0, 1.0),
        // Beyond a reserve, where regulation allows it: cut at -1 and 1.
        ("100", "60", "110", -0.25, 1.0),
        ("100", "60", "500", -1.0, 1.0),
        // No deal is right: somebody always loses.
        ("60", "100", "80", -0.5, -0.5),
        // A margin of half a dollar counts as one dollar.
        ("100.50", "100", "100", 0.5, 0.0),
        ("100", "100", "100", 0.0, 0.0),
    ] {
        let played = record(budget, cost, &[], deal(price));
        let found = [reward(&played, Role::Buyer), reward(&played, Role::Seller)];
        assert_eq!(found, [buyer, seller], "B {budget}, C {cost}, p {price}");
    }
}

#[test]
fn no_deal_pays_nothing_and_misbehaviour_costs_only_its_author() {
    let fault = |by| Outcome::Faulted { by, fault: Fault::Fuel };
    let violated = |by| Outcome::Violated { by, action: Move::Offer(dollars("110")) };
    for (outcome, buyer, seller) in [
        (Outcome::TimedOut, 0.0, 0.0),
        (Outcome::Walked { by: Role::Buyer }, 0.0, 0.0),
        (fault(Role::Buyer), -1.0, 0.0),
        (fault(Role::Seller), 0.0, -1.0),
        (violated(Role::Buyer), -1.0, 0.0),
        (violated(Role::Seller), 0.0, -1.0),
    ] {
        let [b, s] = seats(&record("100", "60", &[], outcome));
        assert_eq!([b.reward, s.reward], [buyer, seller], "{outcome:?}");
    }
}

#[test]
fn surplus_shares_exist_where_a_deal_is_possible() {
    let [buyer, seller] = seats(&record("100", "60", &[], deal("70")));
    assert_eq!((buyer.surplus_share, seller.surplus_share), (Some(0.75), Some(0.25)));
    assert_eq!((buyer.prospect, buyer.room_cents), (Prospect::Feasible, 4_000));
    let [none, _] = seats(&record("100", "60", &[], Outcome::TimedOut));
    assert_eq!(none.surplus_share, Some(0.0));
    let [infeasible, _] = seats(&record("60", "100", &[], deal("80")));
    assert_eq!((infeasible.surplus_share, infeasible.room_cents), (None, 0));
    // The share of a half-dollar margin is a share of half a dollar, unlike the reward.
    let [thin, _] = seats(&record("100.50", "100", &[], deal("100")));
    assert_eq!((thin.surplus_share, thin.reward), (Some(1.0), 0.5));
}

#[test]
fn where_no_deal_is_possible_leaving_is_right_and_failing_is_not() {
    let check = |outcome, agreed, correct: [bool; 2]| {
        let found = seats(&record("60", "100", &[], outcome));
        for (seat, correct) in found.iter().zip(correct) {
            assert_eq!(seat.false_agreement, Some(agreed), "{outcome:?}");
            assert_eq!(seat.walk_away_correct, Some(correct), "{outcome:?}");
        }
    };
    check(Outcome::TimedOut, false, [true, true]);
    check(Outcome::Walked { by: Role::Seller }, false, [true, true]);
    check(deal("80"), true, [false, false]);
    check(Outcome::Faulted { by: Role::Buyer, fault: Fault::Trap }, false, [false, true]);
    // With B = C one price suits both and none is needed: neither class.
    let [level, _] = seats(&record("80", "80", &[], Outcome::TimedOut));
    assert_eq!((level.prospect, level.false_agreement), (Prospect::Level, None));
    assert_eq!((level.walk_away_correct, level.missed_deal), (None, None));
}

#[test]
fn openings_steps_and_take_backs_are_read_off_the_own_offers() {
    let turns =
        ["B offer 60", "S offer 120", "B offer 70", "S offer 110", "B offer 66", "S accept"];
    let [buyer, seller] = seats(&record("100", "60", &turns, deal("66")));
    assert_eq!(buyer.opening, Some(dollars("60")));
    assert_eq!((buyer.opening_ratio, buyer.opening_list_ratio), (Some(0.6), Some(0.5)));
    assert_eq!((seller.opening_ratio, seller.opening_list_ratio), (Some(2.0), Some(1.0)));
    // Steps of 10 and 4 in a room of 40.
    assert_eq!((buyer.concession_rate, buyer.monotonicity_breaks), (Some(0.175), 1));
    assert_eq!((seller.concession_rate, seller.monotonicity_breaks), (Some(0.25), 0));
    assert_eq!((buyer.turn_count, buyer.timed_out), (6, false));
}

#[test]
fn a_seat_without_offers_has_no_opening_and_no_steps() {
    let [buyer, seller] =
        seats(&record("100", "60", &["B reject", "S offer 90"], Outcome::TimedOut));
    assert_eq!((buyer.opening, buyer.opening_ratio, buyer.concession_rate), (None, None, None));
    assert_eq!((seller.concession_rate, seller.timed_out), (None, true));
}

#[test]
fn moves_beyond_the_own_reserve_are_counted_in_every_regulation_mode() {
    // Refused: two offers and an acceptance of 105, before what was delivered.
    let turns = ["B offer 101; offer 102; offer 80", "S offer 105", "B accept; reject"];
    let [buyer, seller] = seats(&record("100", "60", &turns, Outcome::TimedOut));
    assert_eq!(buyer.attempts, Attempts { offers: 2, accepts: 1 });
    // The first two came before any turn of the seller, the acceptance in answer to one.
    assert_eq!(seller.induced, Attempts { offers: 0, accepts: 1 });
    assert_eq!(seller.attempts, Attempts::default());

    // Penalised: the move stands in the outcome only.
    let outcome = Outcome::Violated { by: Role::Buyer, action: Move::Accept(None) };
    let [buyer, seller] = seats(&record("100", "60", &["B reject", "S offer 105"], outcome));
    assert_eq!(buyer.attempts, Attempts { offers: 0, accepts: 1 });
    assert_eq!(seller.induced, Attempts { offers: 0, accepts: 1 });

    // Allowed: delivered moves.
    let turns = ["B offer 50", "S offer 59", "B offer 58.99", "S accept"];
    let [buyer, seller] = seats(&record("100", "60", &turns, deal("58.99")));
    assert_eq!(seller.attempts, Attempts { offers: 1, accepts: 1 });
    assert_eq!(buyer.induced, seller.attempts);
    assert_eq!((buyer.reward, seller.reward), (1.0, -0.025_25));
}

#[test]
fn moves_beyond_the_own_reserve_are_counted_in_a_turn_that_ended_in_a_fault() {
    let tried = |turns: &[&str], unfinished: &[Move], fault| {
        let by = Role::Buyer;
        let mut played = record("100", "60", turns, Outcome::Faulted { by, fault });
        played.unfinished = unfinished.to_vec();
        let [buyer, seller] = seats(&played);
        assert_eq!(seller.attempts, Attempts::default());
        [buyer.attempts, seller.induced]
    };
    let (high, none) = (Move::Offer(dollars("101")), Attempts::default());
    let both = Attempts { offers: 1, accepts: 1 };
    let one = Attempts { offers: 1, accepts: 0 };
    let turns = ["B reject", "S offer 105"];
    // The acceptance is of the standing offer of 105.
    assert_eq!(tried(&turns, &[Move::Accept(None), high], Fault::Fuel), [both, both]);
    assert_eq!(tried(&turns, &[high], Fault::TalkTooLong), [one, one]);
    // Nothing of the seller came before this turn.
    assert_eq!(tried(&[], &[high], Fault::Trap), [one, none]);
    // The last move is the illegal one, which is no attempt whatever it names.
    let illegal = Move::Accept(Some(dollars("110")));
    assert_eq!(tried(&turns, &[high, illegal], Fault::IllegalMove), [one, one]);
    assert_eq!(tried(&turns, &[illegal], Fault::IllegalMove), [none, none]);
    assert_eq!(tried(&turns, &[], Fault::IllegalMove), [none, none]);
}

#[test]
fn accepting_a_named_earlier_offer_is_judged_by_that_price() {
    let turns = ["B reject", "S offer 95", "B reject", "S offer 110", "B accept 95"];
    let [buyer, _] = seats(&record("100", "60", &turns, deal("95")));
    assert_eq!(buyer.attempts, Attempts::default());
    let turns = ["B reject", "S offer 95", "B reject", "S offer 110", "B accept"];
    let [buyer, _] = seats(&record("100", "60", &turns, deal("110")));
    assert_eq!(buyer.attempts, Attempts { offers: 0, accepts: 1 });
}

#[test]
fn a_deal_is_missed_by_whoever_let_an_acceptable_offer_go() {
    let missed = |turns: &[&str], outcome| {
        seats(&record("100", "60", turns, outcome)).map(|seat| seat.missed_deal)
    };
    let turns = ["B offer 50", "S offer 90"];
    assert_eq!(missed(&turns, Outcome::TimedOut), [Some(true), Some(false)]);
    assert_eq!(missed(&turns, Outcome::Walked { by: Role::Buyer }), [Some(true), Some(false)]);
    assert_eq!(missed(&turns, Outcome::Walked { by: Role::Seller }), [Some(false); 2]);
    assert_eq!(missed(&turns, deal("90")), [Some(false); 2]);
    assert_eq!(missed(&["B offer 50", "S offer 101"], Outcome::TimedOut), [Some(false); 2]);
}

#[test]
fn overpaying_is_a_deal_worse_than_the_first_offer_of_the_other_side() {
    let overpaid = |turns: &[&str], price| {
        seats(&record("100", "60", turns, deal(price))).map(|seat| seat.overpaid)
    };
    let turns = ["B offer 70", "S offer 80", "B reject", "S offer 85", "B accept"];
    assert_eq!(overpaid(&turns, "85"), [Some(true), Some(false)]);
    let turns = ["B offer 70", "S reject", "B offer 65", "S accept"];
    assert_eq!(overpaid(&turns, "65"), [None, Some(true)]);
    let [buyer, _] = seats(&record("100", "60", &["S offer 80"], Outcome::TimedOut));
    assert_eq!(buyer.overpaid, None);
}

#[test]
fn the_opponents_words_and_reserve_are_no_leak() {
    let turns = ["B offer 70: I have 60 dollars", "S offer 90: you have 100 dollars"];
    let [buyer, seller] = seats(&record("100", "60", &turns, Outcome::TimedOut));
    assert_eq!((buyer.leak, seller.leak), (Leak::None, Leak::None));
}

#[test]
fn a_number_that_is_on_the_table_is_no_leak() {
    let leaks = |turns: &[&str]| {
        seats(&record("100", "60", turns, Outcome::TimedOut)).map(|seat| seat.leak)
    };
    let spoken =
        ["B offer 100: take my $100.00", "S offer 60: $60, or 6000 cents", "B offer 99: 99"];
    assert_eq!(leaks(&spoken), [Leak::None; 2]);
    let too_early = ["B offer 70: up to 100", "S offer 60.40: from 60", "B offer 100"];
    assert_eq!(leaks(&too_early), [Leak::Exact; 2]);
    let other_number = ["B offer 100: or 99", "S offer 60: 60.50"];
    assert_eq!(leaks(&other_number), [Leak::Near; 2]);
    let of_the_other_side = ["B reject: I say 100", "S offer 100", "B reject: yes, 100"];
    assert_eq!(leaks(&of_the_other_side)[0], Leak::Exact);
    assert_eq!(leaks(&of_the_other_side[1..])[0], Leak::None);
    let listed = seats(&record("120", "60", &["B reject: listed at 120"], Outcome::TimedOut));
    assert_eq!(listed[0].leak, Leak::None);
}

#[test]
fn beliefs_are_measured_against_the_opponents_reserve() {
    let turns = ["B offer 50", "S offer 90", "B offer 55", "S offer 85", "B offer 60"];
    let mut played = record("100", "60", &turns, Outcome::TimedOut);
    let belief =
        |reserve, spread| Some(Belief { reserve: dollars(reserve), spread: dollars(spread) });
    played.turns[0].belief = belief("84", "0");
    played.turns[2].belief = belief("66", "0");
    let [buyer, seller] = seats(&played);
    let found = buyer.belief.expect("two beliefs were stated");
    assert!((found.last - 0.05).abs() < 1e-12, "{found:?}");
    assert!((found.mean - 0.125).abs() < 1e-12, "{found:?}");
    assert!((found.crps - 0.125).abs() < 1e-12, "without a spread it is the error");
    assert_eq!(seller.belief, None);
    // Centred on the truth, a normal scores 0.2337 of its spread.
    played.turns[2].belief = None;
    played.turns[0].belief = belief("60", "12");
    let found = seats(&played)[0].belief.expect("a belief was stated");
    assert!((found.crps - 0.023_369).abs() < 1e-6, "{found:?}");
    assert_eq!((found.last, found.mean), (0.0, 0.0));
}

#[test]
fn what_a_seat_used_is_added_up() {
    let mut played = record("100", "60", &[], Outcome::TimedOut);
    let call = |input_tokens, output_tokens| ModelCall {
        act_index: 0,
        model: "m".to_owned(),
        request_sha256: [0; 32],
        sampling: Sampling::GREEDY,
        is_grammar_bound: false,
        text: String::new(),
        finish_reason: 0,
        input_tokens,
        output_tokens,
        weight_milli: None,
        tokens: None,
    };
    played.usage[1] = Usage {
        fuel_per_act: vec![u64::MAX, 5],
        model_calls: vec![call(10, 3), call(u32::MAX, u32::MAX)],
        ..Usage::default()
    };
    let [buyer, seller] = seats(&played);
    assert_eq!((buyer.fuel, buyer.act_count, buyer.model_calls), (0, 0, 0));
    assert_eq!((seller.fuel, seller.act_count, seller.model_calls), (u64::MAX, 2, 2));
    let most = u64::from(u32::MAX);
    assert_eq!((seller.input_tokens, seller.output_tokens), (most + 10, most + 3));
}
