//! Offers computed by hand from each strategy's formula. Unless a test says otherwise the buyer
//! has a budget of 8000 cents, the seller a cost of 4000, the list price is 10000, and the
//! opponent does not come near enough to be accepted.

use arena_guest::argument::Arguments;
use arena_guest::{Move, Role};

use crate::kit::{ALL, Start, brief, check, heard, replies, start};

/// An opponent that never comes near, for each role of the strategy under test.
fn far(role: Role) -> [u32; 1] {
    [if role == Role::Buyer { 20_000 } else { 1 }]
}

/// Checks the five offers of a ten-turn match (t = 0, 1/4, 1/2, 3/4, 1) in both roles.
fn check_curve(start: Start, params: &str, buyer: &str, seller: &str) {
    for (role, expected) in [(Role::Buyer, buyer), (Role::Seller, seller)] {
        check(start, &brief(role, 10, &format!("low=0 {params}")), &far(role), expected);
    }
}

#[test]
fn boulware_concedes_the_fifth_power_of_time() {
    // t^5 is 1/1024, 1/32, 243/1024 of 8000 down from above, of 6000 down from 10000.
    let (buyer, seller) = ("0, 7, 250, 1898, 8000", "10000, 9995, 9813, 8577, 4000");
    check_curve(start::<boulware::Boulware>, "", buyer, seller);
}

#[test]
fn linear_concedes_evenly() {
    let (buyer, seller) = ("0, 2000, 4000, 6000, 8000", "10000, 8500, 7000, 5500, 4000");
    check_curve(start::<linear::Linear>, "", buyer, seller);
}

#[test]
fn conceder_concedes_the_fifth_root_of_time() {
    // The fifth roots of 1/4, 1/2 and 3/4 are 0.757858, 0.870551 and 0.944088.
    let (buyer, seller) = ("0, 6062, 6964, 7552, 8000", "10000, 5453, 4777, 4336, 4000");
    check_curve(start::<conceder::Conceder>, "", buyer, seller);
}

#[test]
fn the_exponential_curve_starts_at_k() {
    // 0.01^(1-t) is 0.01, 0.0316228, 0.1, 0.316228, 1.
    let (buyer, seller) = ("80, 252, 800, 2529, 8000", "9940, 9811, 9400, 8103, 4000");
    check_curve(start::<linear::Linear>, "curve=exponential k=0.01", buyer, seller);
}

#[test]
fn k_is_conceded_at_once() {
    let (buyer, seller) = ("2000, 3500, 5000, 6500, 8000", "8500, 7375, 6250, 5125, 4000");
    check_curve(start::<linear::Linear>, "k=0.25", buyer, seller);
}

#[test]
fn a_time_dependent_agent_accepts_what_is_as_good_as_its_next_offer() {
    let buyer = brief(Role::Buyer, 10, "low=0");
    check(start::<linear::Linear>, &buyer, &[9_000, 2_001, 4_000], "0, 2000, accept");
    let seller = brief(Role::Seller, 10, "low=0");
    check(start::<linear::Linear>, &seller, &[1_000, 8_499, 7_000], "10000, 8500, accept");
}

#[test]
fn tit_for_tat_repeats_concessions() {
    let asks = [10_000, 9_000, 9_000, 8_100];
    let buyer = |params: &str| brief(Role::Buyer, 8, &format!("low=1000 kindness=0% {params}"));
    let tit_for_tat: Start = start::<tit_for_tat::TitForTat>;
    // 10000/9000, then nothing, then 9000/8100, each rounded down.
    check(tit_for_tat, &buyer(""), &asks, "1000, 1111, 1111, 1234");
    check(tit_for_tat, &buyer("mode=absolute"), &asks, "1000, 2000, 2000, 2900");
    check(tit_for_tat, &buyer("mode=absolute delay=2"), &asks, "1000, 1000, 2000, 2000");
    // Over a window of two turns: 10000/9000, then 9000/8100.
    check(tit_for_tat, &buyer("mode=averaged window=2"), &asks, "1000, 1000, 1111, 1234");
    let seller = brief(Role::Seller, 8, "kindness=0%");
    check(tit_for_tat, &seller, &[1_000, 1_250, 1_250, 1_500], "10000, 8000, 8000, 6667");
    let seller = brief(Role::Seller, 8, "kindness=0% mode=absolute");
    check(tit_for_tat, &seller, &[1_000, 1_250, 1_250, 1_500], "10000, 9750, 9750, 9500");
}

#[test]
fn tit_for_tat_is_kind_and_slack_in_the_opponents_favour() {
    let kind = brief(Role::Buyer, 6, "low=0 kindness=10%");
    check(start::<tit_for_tat::TitForTat>, &kind, &[9_000], "0, 800, 1600");
    for (role, offer) in [(Role::Buyer, 9_000), (Role::Seller, 100)] {
        let slack = brief(role, 60, "low=0 kindness=0% mode=absolute slack=50");
        let offers = replies(start::<tit_for_tat::TitForTat>, &slack, &[offer]);
        let prices: Vec<u32> = offers.iter().map(|reply| price(reply.action)).collect();
        let steps = prices.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
        assert!(prices.windows(2).all(|pair| role.likes(pair[0], pair[1])), "{prices:?}");
        assert!(steps.clone().all(|step| step <= 50) && steps.max() > Some(25), "{prices:?}");
    }
}

fn price(action: Move) -> u32 {
    match action {
        Move::Offer(cents) => cents,
        other => panic!("{other:?} is not an offer"),
    }
}

#[test]
fn micro_makes_as_many_new_offers_as_it_receives() {
    let micro: Start = start::<micro::Micro>;
    let buyer = brief(Role::Buyer, 10, "low=0 tick=1000");
    check(micro, &buyer, &[10_000, 9_500, 9_000, 8_500, 8_200], "0, 1000, 2000, 3000, 4000");
    check(micro, &buyer, &[10_000, 9_000, 9_000, 3_000], "0, 1000, 2000, accept");
    let seller = brief(Role::Seller, 8, "tick=2500");
    check(micro, &seller, &[1, 2, 3, 4], "10000, 7500, 5000, 4000");
}

#[test]
fn micro_repeats_an_earlier_offer_while_it_waits() {
    let buyer = brief(Role::Buyer, 60, "low=0 tick=1000");
    let made = replies(start::<micro::Micro>, &buyer, &[9_000]);
    let prices: Vec<u32> = made.iter().map(|reply| price(reply.action)).collect();
    assert_eq!(prices[..2], [0, 1_000]);
    let repeated = &prices[2..];
    assert!(repeated.iter().all(|cents| [0, 1_000].contains(cents)), "{prices:?}");
    assert!(repeated.contains(&0) && repeated.contains(&1_000), "{prices:?}");
}

#[test]
fn the_hardliner_never_moves() {
    let hardliner: Start = start::<hardliner::Hardliner>;
    let buyer = brief(Role::Buyer, 6, "low=1000");
    check(hardliner, &buyer, &[5_000, 1_001, 8_001], "1000, 1000, 1000");
    check(hardliner, &buyer, &[5_000, 5_000, 5_000], "1000, 1000, accept");
    check(hardliner, &buyer, &[5_000, 1_000], "1000, accept");
    let stubborn = brief(Role::Buyer, 6, "low=1000 last=refuse");
    check(hardliner, &stubborn, &[5_000, 5_000, 5_000], "1000, 1000, 1000");
}

#[test]
fn zero_intelligence_draws_over_its_whole_range_and_takes_what_it_can_afford() {
    for (role, low, high) in [(Role::Buyer, 2_000, 8_000), (Role::Seller, 4_000, 10_000)] {
        let brief = brief(role, 1_000, "");
        let made = replies(start::<zero_intelligence::ZeroIntelligence>, &brief, &far(role));
        let prices: Vec<u32> = made.iter().map(|reply| price(reply.action)).collect();
        assert!(prices.iter().all(|cents| (low..=high).contains(cents)));
        assert!(*prices.iter().min().unwrap() < low + 300);
        assert!(*prices.iter().max().unwrap() > high - 300);
    }
    let buyer = brief(Role::Buyer, 10, "");
    check(start::<zero_intelligence::ZeroIntelligence>, &buyer, &[8_000], "accept");
}

#[test]
fn split_the_difference_meets_in_the_middle() {
    let split: Start = start::<split_the_difference::SplitTheDifference>;
    let buyer = brief(Role::Buyer, 10, "low=0");
    check(split, &buyer, &[10_000, 9_000, 7_001, 5_000], "0, 4500, 5750, accept");
    let seller = brief(Role::Seller, 10, "open=50%");
    check(split, &seller, &[1_000, 2_001, 2_000, 3_000, 1], "7000, 4501, 4000, 4000, 4000");
}

#[test]
fn chatterjee_samuelson_names_the_equilibrium_price() {
    let sealed: Start = start::<chatterjee_samuelson::ChatterjeeSamuelson>;
    // On [0, 12000]: a buyer at 2/3 asks 2/3 2/3 + 1/12 = 19/36, a seller at 1/3 17/36.
    let buyer = brief(Role::Buyer, 6, "low=0 high=12000");
    check(sealed, &buyer, &[9_000, 6_334, 6_333], "6333, 6333, accept");
    let seller = brief(Role::Seller, 6, "low=0 high=12000");
    check(sealed, &seller, &[5_000], "5667, 5667, 5667");
    // k = 1 pays the bid: the buyer halves its value, the seller is truthful.
    check(sealed, &brief(Role::Buyer, 2, "low=0 high=12000 k=1"), &[9_000], "4000");
    check(sealed, &brief(Role::Seller, 2, "low=0 high=12000 k=1"), &[1], "4000");
}

#[test]
fn take_it_or_leave_it_waits_for_the_last_turn_that_can_be_answered() {
    let ultimatum: Start = start::<take_it_or_leave_it::TakeItOrLeaveIt>;
    // Answering in a match of even length, its last turn is the final one.
    let buyer = brief(Role::Buyer, 8, "low=0");
    check(ultimatum, &buyer, &[9_000, 9_000, 4_001, 8_001], "reject, reject, 4000, reject");
    check(ultimatum, &buyer, &[9_000, 9_000, 9_000, 8_000], "reject, reject, 4000, accept");
    check(ultimatum, &buyer, &[9_000, 4_000], "reject, accept");
    let seller = brief(Role::Seller, 7, "");
    check(ultimatum, &seller, &[1, 1, 6_999], "reject, reject, 7000");
    let hidden = arena_guest::Brief { turn_limit: None, ..seller };
    check(ultimatum, &hidden, &[1, 7_000], "7000, accept");
}

#[test]
fn the_fixed_ladder_climbs_its_rungs() {
    let ladder: Start = start::<fixed_ladder::FixedLadder>;
    let buyer = brief(Role::Buyer, 12, "");
    check(ladder, &buyer, &[9_000], "3520, 5040, 6000, 6720, 7200, 7600");
    let seller = brief(Role::Seller, 12, "");
    check(ladder, &seller, &[1], "10000, 8500, 7300, 6400, 5500, 4600");
    let two = brief(Role::Buyer, 8, "rungs=50%/75%");
    check(ladder, &two, &[9_000], "4000, 4000, 6000, 6000");
    check(ladder, &two, &[4_001, 4_001, 6_000], "4000, 4000, accept");
}

#[test]
fn the_fixed_ladder_argues_in_its_first_offers_if_told_to() {
    let ladder: Start = start::<fixed_ladder::FixedLadder>;
    let said = |params: &str| -> Vec<usize> {
        let made = replies(ladder, &brief(Role::Buyer, 12, params), &[9_000]);
        let kinds = |talk: &str| Arguments::of(Role::Buyer).find(talk);
        let found = made.iter().map(|reply| kinds(&reply.talk));
        found.map(|kinds| kinds.iter().filter(|kind| **kind).count()).collect()
    };
    assert_eq!(said(""), [0; 6]);
    assert_eq!(said("arguments=2"), [1, 1, 0, 0, 0, 0]);
    assert_eq!(said("arguments=5"), [1, 1, 1, 1, 1, 0]);
}

#[test]
fn nice_tit_for_tat_mirrors_progress_towards_the_middle() {
    let nice: Start = start::<nice_tit_for_tat::NiceTitForTat>;
    // The middle is 4000. From 10000 to 7000 is half of the way to it, so the target falls to 3/4.
    let buyer = brief(Role::Buyer, 24, "low=0");
    let made = replies(nice, &buyer, &[10_000, 7_000, 7_000, 8_500, 4_600]);
    let prices: Vec<u32> = made[..4].iter().map(|reply| price(reply.action)).collect();
    assert_eq!(prices, [0, 2_000, 2_000, 2_000]);
    assert_eq!(price(made[4].action), 3_600);
    // On its last turn it takes the best offer of the window.
    assert_eq!(made.last().unwrap().action, Move::Accept(None));
}

#[test]
fn the_bayesian_learns_a_linear_sellers_cost() {
    // From 10000 towards a cost of 3000 in six turns.
    let buyer = brief(Role::Buyer, 12, "low=0");
    let made = replies(start::<bayesian::Bayesian>, &buyer, &[10_000, 8_600, 7_200, 5_800]);
    let beliefs: Vec<_> = made.iter().map(|reply| reply.belief.unwrap()).collect();
    assert!(beliefs[0].reserve.abs_diff(5_000) < 100, "{beliefs:?}");
    assert!(beliefs[3].reserve.abs_diff(3_000) < 500, "{beliefs:?}");
    assert!(beliefs[3].spread < beliefs[0].spread / 2, "{beliefs:?}");
}

#[test]
fn the_bayesian_never_takes_an_offer_back() {
    for (role, offers) in [
        (Role::Buyer, [20_000, 12_000, 11_000, 10_000, 9_500, 9_000]),
        (Role::Seller, [1, 1_000, 1_500, 2_500, 3_000, 3_500]),
    ] {
        let made = replies(start::<bayesian::Bayesian>, &brief(role, 12, "low=0"), &offers);
        let prices: Vec<u32> = made.iter().map(|reply| price(reply.action)).collect();
        assert!(prices.windows(2).all(|pair| role.likes(pair[0], pair[1])), "{prices:?}");
        assert!(prices[0] != prices[5], "{prices:?}");
    }
}

#[test]
fn the_regulated_seller_stays_above_its_markup_and_waits_first() {
    let regulated: Start = start::<regulated_seller::RegulatedSeller>;
    // To 4200 in thirds after two turns at the top; the buyer to 7600 from 2000.
    let seller = brief(Role::Seller, 10, "walk=0%");
    check(regulated, &seller, &[2_000], "10000, 10000, 8067, 6134, 4200");
    check(
        regulated,
        &seller,
        &[2_000, 2_000, 2_000, 2_000, 4_199],
        "10000, 10000, 8067, 6134, 4200",
    );
    check(
        regulated,
        &seller,
        &[2_000, 2_000, 2_000, 2_000, 4_200],
        "10000, 10000, 8067, 6134, accept",
    );
    let buyer = brief(Role::Buyer, 10, "");
    check(regulated, &buyer, &[9_000], "2000, 2000, 3866, 5733, 7600");
}

#[test]
fn the_regulated_seller_walks_away_from_low_bids_in_the_second_half() {
    let regulated: Start = start::<regulated_seller::RegulatedSeller>;
    let seller = brief(Role::Seller, 10, "walk=50%");
    check(regulated, &seller, &[2_099], "10000, 10000, 8067, walk");
    check(regulated, &seller, &[2_100, 1], "10000, 10000, 8067, 6134, 4200");
    let buyer = brief(Role::Buyer, 10, "walk=50%");
    check(regulated, &buyer, &[15_201], "2000, 2000, 3866, walk");
}

#[test]
fn an_argument_moves_the_regulated_seller_once() {
    let brief = brief(Role::Seller, 10, "walk=0% argument=10%");
    let mut seller = start::<regulated_seller::RegulatedSeller>(&brief);
    let mut say = |talk| seller.act(&[heard(&brief, Move::Offer(2_000), talk)]);
    let moved = say("I saw it cheaper elsewhere.");
    // A tenth of the way from 10000 to 4200.
    assert_eq!(moved.action, Move::Offer(9_420));
    assert!(moved.talk.contains("other sellers"), "{}", moved.talk);
    assert_eq!(say("Cheaper, I say!").action, Move::Offer(9_420));
}

/// A parametric seller without chance: to 4200 in four even steps, by time alone to half of it.
const PLAIN: &str = "markup=5% anchor=0% yields=50% b=1 patience=0 argument=0 tolerance=0 stalls=9";

#[test]
fn the_parametric_seller_concedes_only_to_movement() {
    let parametric: Start = start::<parametric_seller::ParametricSeller>;
    // Eighths of 5800 off 10000, in the turns in which the bid was raised by a percent or more.
    let seller = brief(Role::Seller, 10, PLAIN);
    check(
        parametric,
        &seller,
        &[2_000, 2_100, 2_199, 2_300, 2_400],
        "10000, 9275, 9275, 8550, 7825",
    );
    check(parametric, &seller, &[2_000, 2_100, 8_549, 8_600], "10000, 9275, 8550, accept");
    let buyer = brief(Role::Buyer, 10, PLAIN);
    check(parametric, &buyer, &[9_900, 9_800, 9_800, 9_700], "2000, 2700, 2700, 3400, 3400");
}

#[test]
fn the_parametric_seller_leaves_those_who_stay_where_they_are() {
    let parametric: Start = start::<parametric_seller::ParametricSeller>;
    let tired = PLAIN.replace("stalls=9", "stalls=1");
    let stays = format!("{tired} never-walks=yes");
    check(parametric, &brief(Role::Seller, 10, &tired), &[2_000], "10000, 10000, walk");
    check(
        parametric,
        &brief(Role::Seller, 10, &stays),
        &[2_000],
        "10000, 10000, 10000, 10000, 10000",
    );
}

#[test]
fn a_generous_first_bid_is_what_the_parametric_seller_holds_on_to() {
    let parametric: Start = start::<parametric_seller::ParametricSeller>;
    let params = PLAIN.replace("anchor=0%", "anchor=10%");
    let offers = [8_000, 8_100, 8_200, 8_300, 8_799];
    check(parametric, &brief(Role::Seller, 10, &params), &offers, "10000, 9275, 8800, 8800, 8800");
}

#[test]
fn an_insult_angers_the_parametric_seller_unless_an_argument_comes_with_it() {
    let params = PLAIN
        .replace("tolerance=0", "tolerance=50% excused=80%")
        .replace("argument=0", "argument=10%");
    let answers = |temper: &str, talk: &str| {
        let brief = brief(Role::Seller, 10, &format!("{params} {temper}"));
        let mut seller = start::<parametric_seller::ParametricSeller>(&brief);
        let bids = [4_500, 4_600];
        bids.map(|bid| seller.act(&[heard(&brief, Move::Offer(bid), talk)]).action)
    };
    // It stays, and does not move.
    assert_eq!(answers("temper=0", ""), [10_000, 10_000].map(Move::Offer));
    assert_eq!(answers("temper=100%", "")[0], Move::Walk);
    let excused = answers("temper=100%", "It is cheaper elsewhere.");
    assert!(price(excused[0]) < 10_000, "{excused:?}");
    let deaf = answers("temper=100% deaf=yes", "It is cheaper elsewhere.");
    assert_eq!(deaf[0], Move::Walk);
}

#[test]
fn a_fresh_argument_moves_the_parametric_seller_and_three_at_once_do_not() {
    let params = PLAIN.replace("argument=0", "argument=10%");
    let after = |talks: &[&str]| {
        let brief = brief(Role::Seller, 10, &params);
        let mut seller = start::<parametric_seller::ParametricSeller>(&brief);
        let mut say = |talk: &&str| seller.act(&[heard(&brief, Move::Offer(2_000), talk)]);
        price(talks.iter().map(&mut say).last().unwrap().action)
    };
    // Between half and one and a half tenths of 5800 below 10000; a second kind brings less.
    let first = after(&["I can pay cash."]);
    assert!((9_130..=9_710).contains(&first), "{first}");
    let both = after(&["I can pay cash. It has a scratch."]);
    assert!(both < first, "{both}");
    assert_eq!(after(&["I pay cash. A scratch. Cheaper elsewhere."]), 10_000);
    // The second time it is neither an argument nor movement.
    assert_eq!(after(&["I can pay cash.", "I can pay cash."]), first);
}

#[test]
fn the_compact_buyer_leaves_as_soon_as_it_may_without_a_model() {
    let compact: Start = start::<compact_buyer::CompactBuyer>;
    check(compact, &brief(Role::Buyer, 10, ""), &[5_000], "walk");
    let mut opener = compact(&arena_guest::Brief { opens: true, ..brief(Role::Buyer, 10, "") });
    assert_eq!(opener.act(&[]).action, Move::Reject);
}

#[test]
fn hostile_personas_bargain_by_their_curve_and_talk_in_every_turn() {
    let personas = [("begging", 0.5), ("insulting", 0.3), ("unyielding", 0.05), ("injector", 0.5)];
    for (name, b) in personas {
        let persona = ALL.iter().find(|(known, _)| *known == name).unwrap().1;
        for role in [Role::Buyer, Role::Seller] {
            let curve = brief(role, 10, &format!("b={b}"));
            let silent = replies(start::<linear::Linear>, &curve, &far(role));
            let talking = replies(persona, &brief(role, 10, ""), &far(role));
            let moves =
                |made: &[arena_guest::Reply]| made.iter().map(|r| r.action).collect::<Vec<_>>();
            assert_eq!(moves(&silent), moves(&talking), "{name}");
            assert!(talking.iter().all(|reply| !reply.talk.is_empty()), "{name}");
        }
    }
}

#[test]
fn the_injector_has_four_kinds_of_attack() {
    let told = ["Host notice", "Action: [QUIT]", "system prompt", "\u{200b}"];
    for (kind, mark) in ["notice", "action", "probe", "disguise"].into_iter().zip(told) {
        let brief = brief(Role::Buyer, 60, &format!("attack={kind}"));
        let made = replies(start::<injector::Injector>, &brief, &[20_000]);
        assert!(made.iter().any(|reply| reply.talk.contains(mark)), "{kind}");
    }
}
