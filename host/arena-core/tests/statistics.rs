//! What a tally says of whole tournaments: by hand, by simulation, and for odd results.

use arena_core::config::Roles;
use arena_core::fault::{Fault, VoidReason};
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, VoidRecord};
use arena_core::scenario::{Horizon, Role};
use arena_core::seat::Usage;
use arena_core::seed::{Root, Stream};
use arena_core::statistics::metric::Metric;
use arena_core::statistics::reference::{Ladder, SCENARIOS_MAX, SECOND_BEST_UNIFORM};
use arena_core::statistics::{BLOCKS_MAX, PairError, Tally};
use arena_core::turn::Move;

/// A match over a cost of $100 and a budget of $200, so that a price of $100 + x pays the
/// seller x % and the buyer the rest.
fn leg(item_index: u32, leg: u8, agents: [u16; 2], outcome: Outcome) -> MatchRecord {
    MatchRecord {
        pair_index: 0,
        leg,
        agents,
        item_index,
        repetition: 0,
        list_price: Price(20_000),
        budget: Price(20_000),
        cost: Price(10_000),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 12, hidden: false },
        seeds: [0, 0],
        turns: Vec::new(),
        unfinished: Vec::new(),
        outcome,
        usage: [Usage::default(), Usage::default()],
    }
}

/// Both legs of a pair; the first agent buys in the first.
fn pair(item_index: u32, agents: [u16; 2], outcomes: [Outcome; 2]) -> [MatchRecord; 2] {
    let [first, second] = agents;
    [
        leg(item_index, 0, [first, second], outcomes[0]),
        leg(item_index, 1, [second, first], outcomes[1]),
    ]
}

/// A deal that gives the seller so many hundredths.
fn seller_gets(hundredths: u32) -> Outcome {
    Outcome::Deal { price: Price(10_000 + 100 * hundredths) }
}

fn tally(agent_count: usize, pairs: &[[MatchRecord; 2]]) -> Tally {
    let mut tally = Tally::new(agent_count, Roles::Both, 5);
    for pair in pairs {
        tally.add_pair(pair).expect("the pair is well formed");
    }
    tally
}

fn close(found: Option<f64>, expected: f64) {
    assert!(
        found.is_some_and(|found| (found - expected).abs() < 1e-9),
        "{found:?} is not {expected}"
    );
}

#[test]
fn means_are_those_of_a_tournament_added_up_by_hand() {
    let tally = tally(
        3,
        &[
            // 0 buys at 0.7 to itself and sells for 0.4; so 1 gets 0.3 and 0.6.
            pair(0, [0, 1], [seller_gets(30), seller_gets(40)]),
            pair(1, [0, 2], [Outcome::TimedOut, seller_gets(100)]),
            pair(
                2,
                [2, 1],
                [Outcome::Faulted { by: Role::Seller, fault: Fault::Fuel }, seller_gets(50)],
            ),
        ],
    );
    let estimates = tally.estimates(&tally.resamples(100));
    close(estimates[0].reward.value, (0.7 + 0.4 + 0.0 + 1.0) / 4.0);
    close(estimates[0].buyer_reward.value, 0.35);
    close(estimates[0].seller_reward.value, 0.7);
    close(estimates[1].reward.value, (0.3 + 0.6 - 1.0 + 0.5) / 4.0);
    close(estimates[2].reward.value, (0.0 + 0.0 + 0.0 + 0.5) / 4.0);
    close(
        tally.role_gap(&tally.resamples(0)).value,
        (0.7 + 0.6 + 0.5 - 0.4 - 0.3 - 1.0 - 0.5 + 1.0) / 6.0,
    );
    assert_eq!(tally.agents()[1].faults[Fault::Fuel as usize], 1);
    assert_eq!(tally.agents()[0].both_roles().get(Metric::DealRate), Some(0.75));
    let [buyer, seller] = tally.rewards_between(0, 1);
    assert_eq!((buyer.value(), seller.value()), (Some(0.7), Some(0.3)));
    assert_eq!(tally.rewards_between(1, 1)[0].value(), None);
}

#[test]
fn records_that_are_no_pair_are_refused_and_change_nothing() {
    let good = pair(0, [0, 1], [Outcome::TimedOut; 2]);
    let mut tally = Tally::new(2, Roles::Both, 0);
    let mut check = |change: &dyn Fn(&mut [MatchRecord; 2]), expected: PairError| {
        let mut legs = good.clone();
        change(&mut legs);
        assert_eq!(tally.add_pair(&legs), Err(expected));
        assert_eq!(tally.pair_count(), 0);
    };
    let legs = PairError::Legs { pair_index: 0, leg_count: 2 };
    check(&|legs| legs[1].agents = [0, 1], legs.clone());
    check(&|legs| legs[1].pair_index = 9, legs.clone());
    check(&|legs| legs[1].item_index = 9, legs.clone());
    check(&|legs| legs.swap(0, 1), legs);
    let unknown = PairError::Agent { pair_index: 0, found: 2, agent_count: 2 };
    check(&|legs| legs[0].agents[1] = 2, unknown);
}

#[test]
fn where_a_pair_has_one_leg_it_is_counted_as_one() {
    let mut tally = Tally::new(3, Roles::CandidatesBuy, 5);
    for (item, candidate, hundredths) in [(0, 0, 30), (0, 1, 50), (1, 0, 20), (1, 1, 60)] {
        let leg = leg(item, 0, [candidate, 2], seller_gets(hundredths));
        tally.add_pair(std::slice::from_ref(&leg)).expect("one leg");
    }
    assert_eq!((tally.pair_count(), tally.match_count()), (4, 4));
    let estimates = tally.estimates(&tally.resamples(50));
    close(estimates[0].reward.value, 0.75);
    close(estimates[0].buyer_reward.value, 0.75);
    assert_eq!(estimates[0].seller_reward.value, None);
    close(estimates[1].reward.value, 0.45);
    close(estimates[2].reward.value, 0.4);
    // Block means of the two buyers: 0.7 and 0.8 against 0.5 and 0.4, so 0.2 and 0.4 apart.
    let found = tally.compare(0, 1).expect("both played");
    close(Some(found.value), 0.3);
    close(found.standard_error, 0.1);
    // A removed pair takes one match with it: without item 1, buyer 0 still leads; no removal
    // lets buyer 1 lead, as its best is below the other's worst.
    assert_eq!(tally.fragility(&[0, 1]).expect("two").pair_count, None);
}

#[test]
fn a_pair_of_one_leg_is_removed_as_one_match() {
    let mut tally = Tally::new(3, Roles::CandidatesSell, 5);
    // Seller 0 gets 0.9 once and 0.1 twice, seller 1 gets 0.3 three times: without the one match
    // of 0.9, seller 1 leads.
    for (item, hundredths) in [(0, [90, 30]), (1, [10, 30]), (2, [10, 30])] {
        for (candidate, hundredths) in [0, 1].into_iter().zip(hundredths) {
            let leg = leg(item, 0, [2, candidate], seller_gets(hundredths));
            tally.add_pair(std::slice::from_ref(&leg)).expect("one leg");
        }
    }
    let found = tally.fragility(&[0, 1]).expect("two");
    assert_eq!((found.successor, found.pair_count), (Some(1), Some(1)));
}

#[test]
fn what_a_side_is_worth_is_not_said_where_nobody_changed_it() {
    let mut tally = Tally::new(2, Roles::CandidatesBuy, 5);
    for item in 0..30 {
        let leg = leg(item, 0, [0, 1], seller_gets(30));
        tally.add_pair(std::slice::from_ref(&leg)).expect("one leg");
    }
    let resamples = tally.resamples(50);
    assert_eq!(tally.role_gap(&resamples).value, None);
    let rating = tally.rating(&resamples);
    assert_eq!((rating.buyer_points.value, rating.buyer_points.low), (None, None));
    assert!(rating.points.iter().all(|points| points.value.is_some()));
}

#[test]
fn legs_that_are_not_as_many_as_a_pair_has_are_refused() {
    let both = pair(0, [0, 1], [Outcome::TimedOut; 2]);
    let mut tally = Tally::new(2, Roles::CandidatesBuy, 0);
    let one = PairError::Legs { pair_index: 0, leg_count: 1 };
    assert_eq!(tally.add_pair(&both), Err(one.clone()));
    assert_eq!(tally.add_pair(&both[1..]), Err(one.clone()));
    assert_eq!(one.to_string(), "pair `0`: the record is not its only leg");
    assert_eq!(tally.add_pair(&both[..1]), Ok(()));
    let mut tally = Tally::new(2, Roles::Both, 0);
    let two = PairError::Legs { pair_index: 0, leg_count: 2 };
    assert_eq!(tally.add_pair(&both[..1]), Err(two));
    assert_eq!(tally.pair_count(), 0);
}

#[test]
fn voids_are_counted_by_reason() {
    let mut tally = Tally::new(2, Roles::Both, 0);
    for reason in [VoidReason::Host, VoidReason::Host, VoidReason::ModelProvider] {
        tally.add_void(&VoidRecord { pair_index: 0, attempt: 0, reason });
    }
    let counts =
        [VoidReason::Host, VoidReason::ModelProvider].map(|reason| tally.void_count(reason));
    assert_eq!(counts, [2, 1]);
}

#[test]
fn intervals_cover_the_truth_about_as_often_as_they_say() {
    // Each item moves both legs of its pair, as real items do; the true mean reward is 0.5.
    let mut covered = 0;
    for seed in 0..200 {
        let mut stream = Stream::derive(Root::Seed(seed), "coverage-test", &[]);
        let pairs: Vec<[MatchRecord; 2]> = (0..60)
            .map(|item| {
                let luck = stream.below(61) as u32;
                let draw = |stream: &mut Stream| seller_gets(luck + stream.below(41) as u32);
                pair(item, [0, 1], [draw(&mut stream), seller_gets(50)])
            })
            .collect();
        let tally = tally(2, &pairs);
        let found = tally.estimates(&tally.resamples(400))[0].reward;
        let (low, high) = (found.low.expect("many blocks"), found.high.expect("many blocks"));
        covered += u32::from(low <= 0.5 && 0.5 <= high);
    }
    // 95 % of 200 is 190, with a standard deviation of 3.
    assert!((180..=198).contains(&covered), "{covered} of 200");
}

#[test]
fn repeating_an_item_does_not_narrow_its_interval() {
    let outcomes = |item: u32| [seller_gets(item * 13 % 100), seller_gets(50)];
    let once: Vec<_> = (0..40).map(|item| pair(item, [0, 1], outcomes(item))).collect();
    let often: Vec<_> = (0..400).map(|n| pair(n % 40, [0, 1], outcomes(n % 40))).collect();
    let width = |pairs: &[[MatchRecord; 2]]| {
        let tally = tally(2, pairs);
        let found = tally.estimates(&tally.resamples(500))[0].reward;
        found.high.expect("many blocks") - found.low.expect("many blocks")
    };
    assert!((width(&once) - width(&often)).abs() < 1e-9);
}

#[test]
fn items_beyond_the_block_limit_share_blocks() {
    let last = u32::try_from(BLOCKS_MAX).expect("small") + 1;
    let pairs: Vec<_> = (0..last).map(|item| pair(item, [0, 1], [Outcome::TimedOut; 2])).collect();
    assert_eq!(tally(2, &pairs).blocks_present(), BLOCKS_MAX);
}

#[test]
fn more_pairs_take_no_more_memory() {
    // Every distinct thing that is kept shows up as a brace in the debug text.
    let things = |tally: &Tally| format!("{tally:?}").matches('{').count();
    let mut tally = Tally::new(3, Roles::Both, 0);
    let mut stream = Stream::derive(Root::Seed(3), "memory-test", &[]);
    let mut play = |tally: &mut Tally, pairs: u32| {
        for number in 0..pairs {
            let agents = [[0, 1], [1, 2], [2, 0]][number as usize % 3];
            let outcomes = [0; 2].map(|_| seller_gets(stream.below(101) as u32));
            tally.add_pair(&pair(number % 2_000, agents, outcomes)).expect("a pair");
        }
    };
    play(&mut tally, 100_000);
    let before = things(&tally);
    play(&mut tally, 100_000);
    assert!(things(&tally) <= before + 5, "{before} things became {}", things(&tally));
}

#[test]
fn the_rating_orders_agents_by_wins_and_takes_the_role_out() {
    // The buyer wins 3 of 4 between equals; agent 2 always loses.
    let mut pairs = Vec::new();
    for item in 0..40 {
        let luck = |lucky: bool| seller_gets(if lucky { 30 } else { 70 });
        pairs.push(pair(item, [0, 1], [luck(item % 4 > 0), luck((item + 1) % 4 > 0)]));
        pairs.push(pair(item, [2, 0], [seller_gets(90), seller_gets(10)]));
        pairs.push(pair(item, [1, 2], [seller_gets(10), seller_gets(90)]));
    }
    let tally = tally(3, &pairs);
    let rating = tally.rating(&tally.resamples(200));
    let points: Vec<f64> =
        rating.points.iter().map(|points| points.value.expect("rated")).collect();
    assert!((points[0] - points[1]).abs() < 1e-6, "{points:?}");
    assert!(points[1] > points[2] + 400.0, "{points:?}");
    assert!(points.iter().sum::<f64>().abs() < 1e-6, "{points:?}");
    // Between the equals the role term is ln 3 = 191 points; who always loses adds little.
    let role = rating.buyer_points;
    assert!(role.value.is_some_and(|value| (value - 191.0).abs() < 25.0), "{role:?}");
    assert!(role.low <= role.value && role.value <= role.high, "{role:?}");
    assert_eq!(rating.separate_fields, 1);
}

#[test]
fn fields_that_never_met_are_told_apart() {
    let even = [seller_gets(50); 2];
    let islands = [pair(0, [0, 1], even), pair(1, [3, 2], even), pair(2, [4, 4], even)];
    let rating = tally(5, &islands).rating(&Tally::new(5, Roles::Both, 0).resamples(0));
    assert_eq!(rating.separate_fields, 2);
    assert_eq!(rating.points[4].value, None, "who only met itself is not rated");
    let joined = [&islands[..], &[pair(3, [1, 2], even)]].concat();
    assert_eq!(
        tally(5, &joined).rating(&Tally::new(5, Roles::Both, 0).resamples(0)).separate_fields,
        1
    );
}

#[test]
fn fragility_names_who_would_lead_and_how_many_pairs_it_takes() {
    // 0 is a little worse than 1 against 2, but for one splendid pair.
    let mut pairs = Vec::new();
    for item in 0..10 {
        pairs.push(pair(item, [0, 2], [seller_gets(42), seller_gets(58)]));
        pairs.push(pair(item, [1, 2], [seller_gets(41), seller_gets(60)]));
    }
    pairs.push(pair(10, [0, 2], [seller_gets(0), seller_gets(100)]));
    let found = tally(3, &pairs).fragility(&[0, 1, 2]).expect("three agents played");
    assert_eq!((found.leader, found.successor, found.pair_count), (0, Some(1), Some(1)));
    assert_eq!(tally(3, &pairs).fragility(&[0]), None);
}

/// A pair over other reserves, list price and horizon, without a deal.
fn scenario(
    number: u32,
    reserves: [u32; 2],
    list: u32,
    opener: Role,
    turns: u32,
) -> [MatchRecord; 2] {
    let mut legs = pair(number, [0, 1], [Outcome::TimedOut; 2]);
    for leg in &mut legs {
        (leg.budget, leg.cost) = (Price(reserves[0]), Price(reserves[1]));
        leg.list_price = Price(list);
        leg.opener = opener;
        leg.horizon = Horizon { turn_limit: turns, hidden: false };
    }
    legs
}

/// Plays a ladder turn by turn against an opponent that takes anything within its reserve.
fn play_ladder(legs: &[MatchRecord; 2], role: Role, opening: u64, step: u64) -> Option<u32> {
    let [leg, _] = legs;
    let (budget, cost, list) =
        (leg.budget.cents(), leg.cost.cents(), u64::from(leg.list_price.cents()));
    let mut offers = 0;
    let mut standing = None;
    for turn in 0..leg.horizon.turn_limit {
        let mover = if turn.is_multiple_of(2) { leg.opener } else { leg.opener.other() };
        if mover != role {
            let taken = standing.filter(|price| match role {
                Role::Buyer => *price >= cost,
                Role::Seller => *price <= budget,
            });
            if taken.is_some() {
                return taken;
            }
            continue;
        }
        let rung = match role {
            Role::Buyer => list * (opening + offers * step) / 1_000,
            Role::Seller => list * opening.saturating_sub(offers * step) / 1_000,
        };
        let rung = u32::try_from(rung).expect("small prices");
        standing = Some(match role {
            Role::Buyer => rung.min(budget),
            Role::Seller => rung.max(cost),
        });
        offers += 1;
    }
    None
}

#[test]
fn ladders_are_those_that_playing_them_finds() {
    let mut stream = Stream::derive(Root::Seed(11), "ladder-test", &[]);
    let scenarios: Vec<[MatchRecord; 2]> = (0..60)
        .map(|number| {
            let mut draw = |low, high| stream.between(low, high) as u32;
            let reserves = [draw(40, 30_000), draw(40, 25_000)];
            let opener = if draw(0, 1) == 0 { Role::Buyer } else { Role::Seller };
            scenario(number, reserves, draw(100, 40_000), opener, draw(1, 14))
        })
        .collect();
    let found = tally(2, &scenarios).references(None).ladders.expect("scenarios were played");
    for (role, found) in Role::BOTH.into_iter().zip(found) {
        let mut best: Option<Ladder> = None;
        for opening in (50..=1_500).step_by(50) {
            for step in (0..=200).step_by(10) {
                let prices = scenarios.iter().map(|legs| play_ladder(legs, role, opening, step));
                let deals: Vec<f64> = scenarios
                    .iter()
                    .zip(prices)
                    .filter_map(|(legs, price)| {
                        let mut played = legs[0].clone();
                        played.outcome = Outcome::Deal { price: Price(price?) };
                        Some(arena_core::score::reward(&played, role))
                    })
                    .collect();
                let reward = deals.iter().sum::<f64>() / 60.0;
                if best.is_none_or(|best| reward > best.reward + 1e-12) {
                    let (opening_milli, step_milli) = (opening as u32, step as u32);
                    let deal_rate = deals.len() as f64 / 60.0;
                    best = Some(Ladder { opening_milli, step_milli, reward, deal_rate });
                }
            }
        }
        let best = best.expect("the grid is not empty");
        assert!((found.reward - best.reward).abs() < 1e-9, "{role}: {found:?} {best:?}");
        assert!((found.deal_rate - best.deal_rate).abs() < 1e-9, "{role}: {found:?} {best:?}");
    }
}

#[test]
fn theory_lines_follow_from_the_scenarios() {
    let buyer = Role::Buyer;
    let scenarios = [
        scenario(0, [20_000, 10_000], 20_000, buyer, 12),
        scenario(1, [20_000, 19_950], 20_000, buyer, 12),
        scenario(2, [10_000, 20_000], 20_000, buyer, 12),
        scenario(3, [10_000, 10_000], 20_000, buyer, 12),
    ];
    let found = tally(2, &scenarios).references(Some(SECOND_BEST_UNIFORM));
    assert_eq!(found.feasible_rate, Some(0.5));
    // The half-dollar margin is worth half a reward.
    assert_eq!((found.first_best_reward, found.midpoint_reward), (Some(0.375), Some(0.1875)));
    assert_eq!(found.second_best_efficiency, Some(0.843_75));
    assert!(!found.ladders_sampled);
}

#[test]
fn ladders_are_chosen_on_a_bounded_number_of_scenarios() {
    let most = u32::try_from(SCENARIOS_MAX).expect("small");
    let mut tally = Tally::new(2, Roles::Both, 0);
    for number in 0..=most {
        let legs = scenario(number, [20_000, 10_000], 20_000, Role::Buyer, 2);
        tally.add_pair(&legs).expect("a pair");
    }
    assert!(tally.references(None).ladders_sampled);
}

#[test]
fn an_empty_tally_has_no_numbers_and_does_not_fail() {
    let tally = Tally::new(2, Roles::Both, 0);
    let resamples = tally.resamples(100);
    assert!(tally.estimates(&resamples).iter().all(|agent| agent.reward.value.is_none()));
    assert_eq!(tally.role_gap(&resamples).value, None);
    assert_eq!(tally.rating(&resamples).buyer_points.value, None);
    assert_eq!(tally.compare(0, 1), None);
    let references = tally.references(None);
    assert_eq!((references.first_best_reward, references.ladders), (None, None));
    assert_eq!(tally.fragility(&[]), None);
}

#[test]
fn penalised_moves_are_counted_for_their_author() {
    let outcome = Outcome::Violated { by: Role::Buyer, action: Move::Offer(Price(20_001)) };
    let tally = tally(2, &[pair(0, [0, 1], [outcome, Outcome::TimedOut])]);
    let found: Vec<u64> = tally.agents().iter().map(|agent| agent.violations).collect();
    assert_eq!(found, [1, 0]);
}
