//! Whole reports: their shape, their order, and that odd results leave no NaN in them.

use arena_core::announcement::{AgentEntry, Announcement};
use arena_core::catalog::uniform;
use arena_core::config::Roles;
use arena_core::draws::Draws;
use arena_core::fault::Fault;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome};
use arena_core::report::{Report, ReportOptions};
use arena_core::scenario::{Horizon, Role};
use arena_core::seat::Usage;
use arena_core::seed::Root;
use arena_core::statistics::Tally;
use arena_core::statistics::metric::Metric;
use arena_core::statistics::reference::SECOND_BEST_UNIFORM;
use arena_core::turn::Move;
use proptest::prelude::*;

const OPTIONS: ReportOptions = ReportOptions { resamples: 60 };

fn announcement(names: &[&str], config_toml: &str) -> Announcement {
    let entry = |(place, name): (usize, &&str)| AgentEntry {
        name: (*name).to_owned(),
        component_sha256: [u8::try_from(place).expect("few agents"); 32],
        params: String::new(),
        submission: None,
    };
    Announcement {
        name: "test".to_owned(),
        config_toml: config_toml.to_owned(),
        draws: Draws::PublicSeed(3),
        engine: String::new(),
        models: Vec::new(),
        agents: names.iter().enumerate().map(entry).collect(),
        catalog_sha256: [0; 32],
        item_count: 50,
        pair_count: 500,
        checkpoint_every: 4_096,
    }
}

/// Both legs of a pair over a cost of $100 and a budget of $200.
fn pair(item_index: u32, agents: [u16; 2], outcomes: [Outcome; 2]) -> [MatchRecord; 2] {
    [0_u8, 1].map(|leg| MatchRecord {
        pair_index: 0,
        leg,
        agents: if leg == 0 { agents } else { [agents[1], agents[0]] },
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
        outcome: outcomes[usize::from(leg)],
        usage: [Usage::default(), Usage::default()],
    })
}

fn seller_gets(hundredths: u32) -> Outcome {
    Outcome::Deal { price: Price(10_000 + 100 * hundredths) }
}

/// Three agents over 30 items: the last loses to both others, who are as good as each other.
fn three_agents() -> Tally {
    let mut tally = Tally::new(3, Roles::Both, 3);
    for item in 0..30 {
        let swing = item * 17 % 40;
        let pairs = [
            pair(item, [0, 1], [seller_gets(30 + swing), seller_gets(30 + swing)]),
            pair(item, [2, 0], [seller_gets(80), seller_gets(20)]),
            pair(item, [2, 1], [seller_gets(80), seller_gets(20)]),
        ];
        pairs.iter().for_each(|pair| tally.add_pair(pair).expect("a pair"));
    }
    tally
}

#[test]
fn rows_stand_by_mean_reward_and_share_letters_where_they_cannot_be_told_apart() {
    let names = ["first", "second", "weak"];
    let report = Report::build(&announcement(&names, ""), &three_agents(), &OPTIONS);
    let rows: Vec<(usize, &str, &str)> = report
        .rows
        .iter()
        .map(|row| (row.rank, row.name.as_str(), row.group_letters.as_str()))
        .collect();
    assert_eq!(rows, [(1, "first", "a"), (2, "second", "a"), (3, "weak", "b")]);
    let differ: Vec<(u16, u16, bool)> =
        report.comparisons.iter().map(|entry| (entry.ahead, entry.behind, entry.differ)).collect();
    assert_eq!(differ, [(0, 1, false), (0, 2, true), (1, 2, true)]);
    assert_eq!(report.head_to_head[0][2].map(|meeting| meeting.match_count), Some(60));
    assert_eq!(report.head_to_head[2][2], None);
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    assert_eq!(report.header.block_count, 30);
}

#[test]
fn both_legs_of_an_agent_against_itself_stand_on_the_diagonal() {
    let mut tally = Tally::new(1, Roles::Both, 3);
    tally.add_pair(&pair(0, [0, 0], [seller_gets(25), seller_gets(50)])).expect("a pair");
    let report = Report::build(&announcement(&["alone"], ""), &tally, &OPTIONS);
    let found = report.head_to_head[0][0].expect("it met itself");
    assert_eq!((found.match_count, found.reward), (2, 0.5));
    assert_eq!((found.as_buyer, found.as_seller), (Some(0.625), Some(0.375)));
}

#[test]
fn where_candidates_only_buy_agents_are_compared_within_their_side() {
    // Agents 1 and 3 are the candidates; the sellers get more than either.
    let mut tally = Tally::new(5, Roles::CandidatesBuy, 3);
    for item in 0..30 {
        let swing = item * 17 % 40;
        for (buyer, seller, hundredths) in
            [(1, 0, 60 + swing), (3, 0, 50 + swing), (1, 2, 58 + swing), (3, 2, 48 + swing)]
        {
            let [leg, _] = pair(item, [buyer, seller], [seller_gets(hundredths); 2]);
            tally.add_pair(std::slice::from_ref(&leg)).expect("one leg");
        }
    }
    let names = ["a", "new", "b", "newer", "idle"];
    let report = Report::build(&announcement(&names, ""), &tally, &OPTIONS);
    let rows: Vec<(usize, &str, &str)> = report
        .rows
        .iter()
        .map(|row| (row.rank, row.name.as_str(), row.group_letters.as_str()))
        .collect();
    let wanted =
        [(1, "newer", "a"), (2, "new", "b"), (3, "a", "c"), (4, "b", "d"), (5, "idle", "")];
    assert_eq!(rows, wanted, "candidates stand first, whatever the others get");
    let compared: Vec<(u16, u16)> =
        report.comparisons.iter().map(|entry| (entry.ahead, entry.behind)).collect();
    assert_eq!(compared, [(3, 1), (0, 2)], "nobody is compared across");
    assert_eq!((report.header.pairs_played, report.header.matches_played), (120, 120));
    let effect = report.role_effect;
    assert_eq!((effect.buyer_reward_lead.value, effect.buyer_points.value), (None, None));
    assert_eq!(report.fragility.expect("two candidates").leader, 3);
    let met = report.head_to_head[0][2].expect("they met");
    assert_eq!((met.match_count, met.as_seller), (30, None));
    let warning = "candidates only buy: they stand first, and only agents of one side are compared";
    assert!(report.warnings.iter().any(|said| said.starts_with(warning)), "{:?}", report.warnings);
}

#[test]
fn the_same_pairs_give_the_same_report() {
    let names = ["first", "second", "weak"];
    let build = || Report::build(&announcement(&names, ""), &three_agents(), &OPTIONS);
    let text = |report: &Report| serde_json::to_string(report).expect("a report is plain");
    assert_eq!(text(&build()), text(&build()));
}

#[test]
fn a_report_of_nothing_is_whole() {
    let report =
        Report::build(&announcement(&["a", "b"], ""), &Tally::new(2, Roles::Both, 0), &OPTIONS);
    assert_eq!(report.rows.len(), 2);
    assert!(report.comparisons.is_empty() && report.groups.is_empty());
    assert_eq!(report.fragility, None);
    assert_eq!(report.warnings, ["`a` has no match", "`b` has no match"]);
    let json = serde_json::to_value(&report).expect("a report is plain");
    assert_eq!(json["rows"][0]["metrics"]["reward"], serde_json::Value::Null);
    assert_eq!(json["rows"][0]["estimates"]["reward"]["value"], serde_json::Value::Null);
}

#[test]
fn entering_twice_and_few_items_are_warned_of() {
    let mut twice = announcement(&["a", "b", "c"], "");
    twice.agents[2].component_sha256 = twice.agents[0].component_sha256;
    let mut tally = Tally::new(3, Roles::Both, 0);
    tally.add_pair(&pair(0, [0, 1], [Outcome::TimedOut; 2])).expect("a pair");
    tally.add_pair(&pair(0, [0, 2], [Outcome::TimedOut; 2])).expect("a pair");
    let same = "`a` and `c` are the same component with the same parameters";
    let one_item = "all pairs are on one item, so there are no intervals";
    assert_eq!(Report::build(&twice, &tally, &OPTIONS).warnings, [same, one_item]);
    // Other parameters make another agent out of the same component.
    twice.agents[2].params = "beta = 2".to_owned();
    assert_eq!(Report::build(&twice, &tally, &OPTIONS).warnings, [one_item]);
}

#[test]
fn metrics_are_written_by_name_in_table_order() {
    let names = ["first", "second", "weak"];
    let report = Report::build(&announcement(&names, ""), &three_agents(), &OPTIONS);
    let text = serde_json::to_string(&report.rows[0].metrics).expect("metrics are plain");
    let start = "{\"reward\":0.65,\"deal-rate\":1.0,\"surplus-share\":0.65,\"agreement\":1.0,";
    assert!(text.starts_with(start), "{text}");
}

/// A tournament file whose catalog is of this kind.
fn file(catalog: &str) -> String {
    let agent = |name| format!("[[agents]]\nname = '{name}'\ncomponent = 'builtin:linear'\n");
    format!("name = 'test'\n[catalog]\n{catalog}\n{}{}", agent("a"), agent("b"))
}

#[test]
fn the_second_best_line_is_drawn_on_the_uniform_catalog_only() {
    let line = |catalog: &str| {
        let announcement = announcement(&["a", "b"], &file(catalog));
        Report::build(&announcement, &Tally::new(2, Roles::Both, 0), &OPTIONS)
            .references
            .second_best_efficiency
    };
    let uniform = "kind = 'uniform'\nitems = 10\nlow = '$0'\nhigh = '$100'";
    assert_eq!(line(uniform), Some(0.843_75));
    assert_eq!(line("kind = 'synthetic'\nitems = 10"), None);
}

#[test]
fn the_linear_equilibrium_is_at_the_second_best_line() {
    // Chatterjee and Samuelson 1983: with reserves uniform on [0, 1] and the price half way
    // between the offers, the buyer offers 2v/3 + 1/12 and the seller asks 2c/3 + 1/4; they
    // trade where the offer is not below, which is where v - c is at least 1/4.
    let catalog = uniform::generate(20_000, Price(0), Price(1_000_000), Root::Seed(1));
    let mut tally = Tally::new(2, Roles::Both, 0);
    for (item, entry) in (0_u32..).zip(&catalog.entries) {
        let budget = entry.budget.at_factor(entry.item.list_price, 1_000);
        let offer = 8 * u64::from(budget.cents()) + 1_000_000;
        let ask = 8 * u64::from(entry.cost.cents()) + 3_000_000;
        let price = Price(u32::try_from((offer + ask) / 24).expect("below the highest reserve"));
        let outcome = if offer >= ask { Outcome::Deal { price } } else { Outcome::TimedOut };
        let mut legs = pair(item, [0, 1], [outcome; 2]);
        for leg in &mut legs {
            (leg.budget, leg.cost, leg.list_price) = (budget, entry.cost, entry.item.list_price);
        }
        tally.add_pair(&legs).expect("a pair");
    }
    let report = Report::build(&announcement(&["a", "b"], ""), &tally, &OPTIONS);
    for row in &report.rows {
        let found = row.metrics.get(Metric::AllocativeEfficiency).expect("half is feasible");
        assert!((found - SECOND_BEST_UNIFORM).abs() < 0.01, "{found}");
        let deals = row.metrics.get(Metric::DealRate).expect("matches were played");
        assert!((deals - 9.0 / 32.0).abs() < 0.01, "{deals}");
        assert_eq!(row.metrics.get(Metric::FalseAgreement), Some(0.0));
    }
    assert!(report.references.feasible_rate.is_some_and(|rate| (rate - 0.5).abs() < 0.01));
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let role = || prop_oneof![Just(Role::Buyer), Just(Role::Seller)];
    prop_oneof![
        (0..=u32::MAX).prop_map(|cents| Outcome::Deal { price: Price(cents) }),
        (0..=100_u32).prop_map(seller_gets),
        Just(seller_gets(0)),
        role().prop_map(|by| Outcome::Walked { by }),
        Just(Outcome::TimedOut),
        role().prop_map(|by| Outcome::Violated { by, action: Move::Offer(Price(u32::MAX)) }),
        role().prop_map(|by| Outcome::Faulted { by, fault: Fault::Trap }),
    ]
}

/// Pairs among four agents; agents against themselves, constant and lopsided results included.
fn any_pairs() -> impl Strategy<Value = Vec<[MatchRecord; 2]>> {
    let free = (0..5_u32, 0..4_u16, 0..4_u16, any_outcome(), any_outcome());
    let free = free.prop_map(|(item, a, b, x, y)| pair(item, [a, b], [x, y]));
    let reserves = (any::<u32>(), any::<u32>(), any::<u32>());
    let odd = (free, reserves).prop_map(|(mut legs, (budget, cost, list))| {
        for leg in &mut legs {
            (leg.budget, leg.cost, leg.list_price) = (Price(budget), Price(cost), Price(list));
        }
        legs
    });
    let constant = (0..4_u16, 0..4_u16, any_outcome(), 0..30_u32).prop_map(|(a, b, x, count)| {
        (0..count).map(|item| pair(item, [a, b], [x, x])).collect::<Vec<_>>()
    });
    let loose = proptest::collection::vec(odd, 0..12);
    (loose, proptest::collection::vec(constant, 0..4))
        .prop_map(|(loose, constant)| [loose, constant.concat()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_nan_reaches_a_report(pairs in any_pairs()) {
        let mut tally = Tally::new(4, Roles::Both, 1);
        pairs.iter().for_each(|pair| tally.add_pair(pair).expect("a pair"));
        let report = Report::build(&announcement(&["a", "b", "c", "d"], ""), &tally, &OPTIONS);
        // JSON would show NaN as null, the debug text shows it as it is.
        let shown = format!("{report:?}");
        prop_assert!(!shown.contains("NaN") && !shown.contains("inf"), "{}", shown);
        for estimate in report.rows.iter().flat_map(|row| [row.rating, row.estimates.reward]) {
            prop_assert_eq!(estimate.low.is_some(), estimate.high.is_some());
            prop_assert!(estimate.low <= estimate.high, "{:?}", estimate);
        }
        let means = report.rows.iter().map(|row| row.estimates.reward.value);
        let means: Vec<f64> = means.flatten().collect();
        prop_assert!(means.is_sorted_by(|a, b| a >= b), "{:?}", means);
        prop_assert_eq!(report.comparisons.len(), means.len() * means.len().saturating_sub(1) / 2);
        prop_assert!(report.comparisons.iter().all(|entry| entry.p_holm >= entry.p));
        let lettered = report.rows.iter().filter(|row| !row.group_letters.is_empty());
        prop_assert_eq!(lettered.count(), means.len());
    }

    #[test]
    fn fragility_is_the_fewest_pairs_whose_removal_changes_the_leader(
        rewards in proptest::collection::vec((0..=100_u32, 0..=100_u32), 2..9),
    ) {
        // Two agents alone, so the pairs to remove are those with the largest difference.
        let pairs: Vec<[MatchRecord; 2]> = (0..).zip(&rewards)
            .map(|(item, (a, b))| pair(item, [0, 1], [seller_gets(*a), seller_gets(*b)]))
            .collect();
        let mut tally = Tally::new(2, Roles::Both, 1);
        pairs.iter().for_each(|pair| tally.add_pair(pair).expect("a pair"));
        let report = Report::build(&announcement(&["a", "b"], ""), &tally, &OPTIONS);
        let found = report.fragility.expect("two agents played");
        // What each pair gives the first agent beyond the second, in hundredths of a reward.
        let mut leads: Vec<i64> = rewards.iter()
            .map(|(a, b)| 2 * (i64::from(*b) - i64::from(*a)))
            .map(|lead| if found.leader == 0 { lead } else { -lead })
            .collect();
        leads.sort_unstable();
        let fewest = (0..leads.len()).find(|gone| {
            leads[..leads.len() - gone].iter().sum::<i64>() < 0
        });
        // All differences are multiples of the bin width, so the bound is exact.
        prop_assert_eq!(found.pair_count, fewest.map(|gone| gone as u64));
    }
}
