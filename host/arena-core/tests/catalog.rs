//! Generated catalogs, what is selected from them, and the scenarios that are drawn.

use std::collections::BTreeSet;

use arena_core::catalog::{
    Budget, Catalog, CatalogEntry, CatalogError, ITEMS_MAX, PRICE_CENTS_MAX, draw_scenario,
    is_test_item, synthetic, uniform,
};
use arena_core::config::{Split, TournamentConfig};
use arena_core::price::Price;
use arena_core::scenario::{Horizon, Item, Role};
use arena_core::seed::Root;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fixed(entry: &CatalogEntry) -> Price {
    match entry.budget {
        Budget::Fixed(budget) => budget,
        Budget::Factor => panic!("generated budgets are fixed"),
    }
}

fn is_feasible(entry: &CatalogEntry) -> bool {
    fixed(entry) > entry.cost
}

/// Pearson's correlation. Floats are fine here: nothing in a test is hashed.
fn correlation(left: &[f64], right: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (left_mean, right_mean) = (mean(left), mean(right));
    let pairs = || left.iter().zip(right).map(|(l, r)| (l - left_mean, r - right_mean));
    let covariance: f64 = pairs().map(|(l, r)| l * r).sum();
    let variances: (f64, f64) = pairs().fold((0.0, 0.0), |(a, b), (l, r)| (a + l * l, b + r * r));
    covariance / (variances.0 * variances.1).sqrt()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0.0; values.len()];
    for (rank, place) in order.into_iter().enumerate() {
        ranks[place] = rank as f64;
    }
    ranks
}

#[test]
fn a_synthetic_catalog_never_changes() {
    let catalog = synthetic::generate(200, 150, Root::Seed(7));
    let first = &catalog.entries[0];
    let shown = format!(
        "{} | {} | {} | {} | {} | B {} | C {}",
        first.item.id,
        first.item.title,
        first.item.category,
        first.item.description,
        first.item.list_price,
        fixed(first),
        first.cost
    );
    assert_eq!(
        shown,
        "synthetic/0 | Fennoch 397 stainless wheelbarrow | garden | Made-up product for \
         negotiation experiments. A stainless wheelbarrow: no batteries needed, low running \
         cost. | $1389.99 | B $1342.79 | C $813.81"
    );
    let expected = "e4e18a47aaf333ca6da704bd0fed008e2ce579f85525961bae1827171170aad9";
    assert_eq!(hex(&catalog.sha256()), expected);
}

#[test]
fn a_uniform_catalog_never_changes() {
    let catalog = uniform::generate(200, Price(1_000), Price(20_000), Root::Seed(7));
    let expected = "0ea5c69b5fc56a8cc450f6af080ad7831a985d371f98939c120e6a32f5a3ef29";
    assert_eq!(hex(&catalog.sha256()), expected);
}

#[test]
fn a_catalogs_identity_is_the_hash_of_its_borsh_bytes() {
    let catalog = synthetic::generate(20, 150, Root::Seed(7));
    let bytes = borsh::to_vec(&catalog).expect("memory does not fail");
    assert_eq!(hex(&catalog.sha256()), hex(&Sha256::digest(&bytes)));
    let mut changed = catalog.clone();
    changed.entries[19].cost.0 += 1;
    assert_ne!(catalog.sha256(), changed.sha256());
}

#[test]
fn synthetic_prices_are_distributed_like_the_published_ones() {
    let catalog = synthetic::generate(20_000, 0, Root::Seed(1));
    let dollars = |price: Price| f64::from(price.cents()) / 100.0;
    let logs: Vec<f64> =
        catalog.entries.iter().map(|entry| dollars(entry.item.list_price).ln()).collect();
    let shares: Vec<f64> = catalog
        .entries
        .iter()
        .map(|entry| dollars(entry.cost) / dollars(entry.item.list_price))
        .collect();
    let near = |name: &str, found: f64, expected: f64, tolerance: f64| {
        assert!((found - expected).abs() < tolerance, "{name}: {found}, not {expected}");
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let deviation = |values: &[f64]| {
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / values.len() as f64).sqrt()
    };
    near("mean of ln P", mean(&logs), 5.09, 0.04);
    near("deviation of ln P", deviation(&logs), 1.23, 0.04);
    let mut sorted = shares.clone();
    sorted.sort_by(f64::total_cmp);
    let deciles = [0.260, 0.332, 0.403, 0.471, 0.508, 0.560, 0.607, 0.673, 0.750];
    for (decile, expected) in (1..).zip(deciles) {
        near(&format!("decile {decile} of C/P"), sorted[decile * 2_000], expected, 0.01);
    }
    near("mean of C/P", mean(&shares), 0.511, 0.01);
    near("deviation of C/P", deviation(&shares), 0.183, 0.01);
    near("rank correlation", correlation(&ranks(&logs), &ranks(&shares)), 0.36, 0.02);
    near("correlation of ln P and C/P", correlation(&logs, &shares), 0.36, 0.03);
}

#[test]
fn exactly_the_declared_share_of_synthetic_items_has_no_deal() {
    for (items, infeasible_milli, expected) in
        [(1_000, 150, 150), (1_000, 0, 0), (1_000, 1_000, 1_000), (7, 150, 1), (3, 150, 0)]
    {
        let catalog = synthetic::generate(items, infeasible_milli, Root::Seed(3));
        let infeasible = catalog.entries.iter().filter(|entry| !is_feasible(entry)).count();
        assert_eq!(infeasible, expected, "{items} items, {infeasible_milli} thousandths");
    }
}

#[test]
fn about_half_of_all_uniform_items_have_no_deal() {
    let catalog = uniform::generate(10_000, Price(0), Price(10_000), Root::Seed(3));
    let feasible = catalog.entries.iter().filter(|entry| is_feasible(entry)).count();
    assert!((4_800..5_200).contains(&feasible), "{feasible}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn synthetic_items_keep_every_bound(
        items in 1_u32..60,
        infeasible in 0_u32..=1_000,
        seed: u64,
    ) {
        let catalog = synthetic::generate(items, infeasible, Root::Seed(seed));
        prop_assert_eq!(catalog.entries.len(), items as usize);
        let ids: BTreeSet<_> = catalog.entries.iter().map(|entry| &entry.item.id).collect();
        prop_assert_eq!(ids.len(), items as usize);
        for entry in &catalog.entries {
            let (list_price, budget) = (entry.item.list_price.cents(), fixed(entry).cents());
            prop_assert!((599..=430_099).contains(&list_price) && list_price % 100 == 99);
            prop_assert!(0 < entry.cost.cents() && entry.cost.cents() < list_price);
            prop_assert!(0 < budget && budget <= list_price);
            prop_assert_ne!(budget, entry.cost.cents());
            prop_assert!(entry.item.title.len() <= Item::TITLE_BYTES_MAX);
            prop_assert!(entry.item.description.starts_with("Made-up product"));
        }
    }

    #[test]
    fn uniform_reserves_stay_in_their_range(
        items in 1_u32..60,
        low in 0_u32..1_000,
        width in 1_u32..1_000,
        seed: u64,
    ) {
        let (low, high) = (Price(low), Price(low + width));
        for entry in uniform::generate(items, low, high, Root::Seed(seed)).entries {
            prop_assert_eq!(entry.item.list_price, high);
            for reserve in [fixed(&entry), entry.cost] {
                prop_assert!((low..=high).contains(&reserve));
            }
        }
    }

    #[test]
    fn both_parts_together_are_the_catalog(items in 1_u32..300, seed: u64) {
        let catalog = synthetic::generate(items, 150, Root::Seed(1));
        let part = |split| match catalog.select(split, None, Root::Seed(seed)) {
            Ok(selected) => selected.entries,
            Err(error) => {
                assert_eq!(error, CatalogError::Empty);
                Vec::new()
            }
        };
        let (train, test) = (part(Split::Train), part(Split::Test));
        prop_assert!(train.iter().all(|entry| !is_test_item(&entry.item.id)));
        prop_assert!(test.iter().all(|entry| is_test_item(&entry.item.id)));
        prop_assert_eq!(train.len() + test.len(), items as usize);
        prop_assert_eq!(part(Split::All), catalog.entries.clone());
    }

    #[test]
    fn a_sample_keeps_the_order_and_depends_on_the_seed_alone(sample in 1_u32..=50, seed: u64) {
        let catalog = synthetic::generate(50, 150, Root::Seed(1));
        let draw = || catalog.select(Split::All, Some(sample), Root::Seed(seed));
        let selected = draw().expect("there are enough");
        prop_assert_eq!(selected.entries.len(), sample as usize);
        let place = |entry: &CatalogEntry| catalog.entries.iter().position(|other| other == entry);
        let places: Vec<_> = selected.entries.iter().map(place).collect();
        prop_assert!(places.is_sorted() && places[0].is_some());
        prop_assert_eq!(Ok(selected), draw());
    }
}

#[test]
fn a_sample_larger_than_its_part_is_refused() {
    let catalog = synthetic::generate(50, 150, Root::Seed(1));
    let expected = CatalogError::SampleTooLarge { sample: 51, available: 50 };
    assert_eq!(catalog.select(Split::All, Some(51), Root::Seed(0)), Err(expected));
    let nothing = Catalog { name: "empty".to_owned(), entries: Vec::new() };
    assert_eq!(nothing.select(Split::All, None, Root::Seed(0)), Err(CatalogError::Empty));
}

#[test]
fn another_seed_draws_another_sample() {
    let catalog = synthetic::generate(500, 150, Root::Seed(1));
    let select =
        |seed| catalog.select(Split::All, Some(20), Root::Seed(seed)).expect("there are enough");
    assert_ne!(select(1), select(2));
}

fn config(rules: &str, catalog: &str) -> TournamentConfig {
    let text = format!(
        "name = 'case'\nself_play = true\n[rules]\n{rules}\n[catalog]\n{catalog}\n\
         [[agents]]\nname = 'a'\ncomponent = 'builtin:a'\n"
    );
    TournamentConfig::parse(&text).expect("the case is a tournament")
}

const SYNTHETIC: &str = "kind = 'synthetic'\nitems = 50";

/// One item with a list price of $1.01 whose budget is a share of it.
fn factor_catalog() -> Catalog {
    let mut catalog = synthetic::generate(1, 0, Root::Seed(1));
    catalog.entries[0].item.list_price = Price(101);
    catalog.entries[0].budget = Budget::Factor;
    catalog
}

#[test]
fn a_scenario_takes_its_item_and_fixed_values_from_the_catalog() {
    let config = config("opener = 'seller'\nhorizon = { turns = 9 }", SYNTHETIC);
    let catalog = synthetic::generate(50, 150, Root::Seed(1));
    let scenario = draw_scenario(&config, &catalog, Root::Seed(5), 31, 2);
    let entry = &catalog.entries[31];
    assert_eq!(scenario.item, entry.item);
    assert_eq!((scenario.budget, scenario.cost), (fixed(entry), entry.cost));
    assert_eq!(scenario.opener, Role::Seller);
    assert_eq!(scenario.horizon, Horizon { turn_limit: 9, hidden: false });
}

#[test]
fn a_budget_is_rounded_up_to_the_cent() {
    let amazon =
        |factor| format!("kind = 'amazon-history-price'\nfolder = 'p'\nbudget_factor = {factor}");
    let budget = |factor| {
        let config = config("", &amazon(factor));
        draw_scenario(&config, &factor_catalog(), Root::Seed(0), 0, 0).budget
    };
    assert_eq!(budget("0.8"), Price(81), "0.8 of $1.01 is 80.8 cents");
    assert_eq!(budget("1"), Price(101));
    assert_eq!(budget("0.001"), Price(1));
    assert_eq!(budget("1.5"), Price(152));
}

#[test]
fn drawn_factors_cover_their_range_evenly() {
    let catalog_text = "kind = 'amazon-history-price'\nfolder = 'p'\nbudget_factor = [0.4, 0.409]";
    let config = config("", catalog_text);
    let mut catalog = factor_catalog();
    // With a price of $10, a thousandth is a cent.
    catalog.entries[0].item.list_price = Price(1_000);
    let mut counts = [0_u32; 10];
    for repetition in 0..5_000 {
        let budget = draw_scenario(&config, &catalog, Root::Seed(3), 0, repetition).budget;
        counts[budget.cents() as usize - 400] += 1;
    }
    assert!(counts.iter().all(|count| (400..600).contains(count)), "{counts:?}");
}

#[test]
fn the_repetitions_of_a_group_share_one_scenario_that_is_drawn_at_its_number() {
    let amazon = "kind = 'amazon-history-price'\nfolder = 'p'\nbudget_factor = [0.4, 1.2]";
    let rules = "opener = 'drawn'\nhorizon = { mean_turns = 8, max_turns = 30 }";
    let alone = config(rules, amazon);
    let grouped = TournamentConfig { repetitions: 12, scenario_group: 4, ..alone.clone() };
    let mut catalog = factor_catalog();
    catalog.entries[0].item.list_price = Price(100_000);
    let draw = |config, repetition| draw_scenario(config, &catalog, Root::Seed(3), 0, repetition);
    let found: Vec<_> = (0..12).map(|repetition| draw(&grouped, repetition)).collect();
    let wanted: Vec<_> = (0..12).map(|repetition| draw(&alone, repetition / 4)).collect();
    assert_eq!(found, wanted);
    assert_ne!(found[3].budget, found[4].budget, "groups differ");
}

#[test]
fn a_drawn_opener_is_either_side_about_as_often() {
    let config = config("opener = 'drawn'", SYNTHETIC);
    let catalog = synthetic::generate(50, 150, Root::Seed(1));
    let scenarios =
        (0..2_000).map(|repetition| draw_scenario(&config, &catalog, Root::Seed(3), 0, repetition));
    let buyers = scenarios.filter(|scenario| scenario.opener == Role::Buyer).count();
    assert!((900..1_100).contains(&buyers), "{buyers}");
}

#[test]
fn a_hidden_horizon_is_geometric_up_to_its_cap() {
    let config = config("horizon = { mean_turns = 4, max_turns = 12 }", SYNTHETIC);
    let catalog = synthetic::generate(50, 150, Root::Seed(1));
    let draws = 20_000;
    let mut counts = [0_u32; 13];
    for repetition in 0..draws {
        let horizon = draw_scenario(&config, &catalog, Root::Seed(3), 0, repetition).horizon;
        assert!(horizon.hidden);
        counts[horizon.turn_limit as usize] += 1;
    }
    assert_eq!(counts[0], 0, "there is always a first turn");
    let mut left = 1.0;
    for (turn, &count) in counts.iter().enumerate().skip(1) {
        let expected = if turn == 12 { left } else { left / 4.0 };
        let found = f64::from(count) / f64::from(draws);
        assert!((found - expected).abs() < 0.01, "turn {turn}: {found}, not {expected}");
        left -= expected;
    }
}

#[test]
fn scenarios_differ_by_item_repetition_and_seed_only() {
    let config = config("horizon = { mean_turns = 500, max_turns = 1000 }", SYNTHETIC);
    let mut catalog = synthetic::generate(2, 0, Root::Seed(1));
    catalog.entries[1] = catalog.entries[0].clone();
    let turns = |seed, item, repetition| {
        draw_scenario(&config, &catalog, Root::Seed(seed), item, repetition).horizon.turn_limit
    };
    let drawn = [turns(1, 0, 0), turns(2, 0, 0), turns(1, 1, 0), turns(1, 0, 1)];
    assert_eq!(drawn, [turns(1, 0, 0), turns(2, 0, 0), turns(1, 1, 0), turns(1, 0, 1)]);
    let distinct: BTreeSet<u32> = drawn.into_iter().collect();
    assert_eq!(distinct.len(), 4, "{drawn:?}");
}

#[test]
fn a_catalog_is_read_as_it_was_written() {
    for catalog in [
        synthetic::generate(20, 150, Root::Seed(7)),
        uniform::generate(3, Price(0), Price(1_000), Root::Master([7; 32])),
        factor_catalog(),
        Catalog { name: String::new(), entries: Vec::new() },
    ] {
        let bytes = catalog.encode();
        assert_eq!(hex(&Sha256::digest(&bytes)), hex(&catalog.sha256()));
        assert_eq!(Catalog::decode(&bytes), Ok(catalog));
    }
}

#[test]
fn bytes_that_are_no_catalog_are_refused() {
    let bytes = synthetic::generate(2, 0, Root::Seed(1)).encode();
    let refused = |bytes: &[u8]| match Catalog::decode(bytes) {
        Err(CatalogError::Encoding { .. }) => (),
        other => panic!("{other:?}"),
    };
    for end in 0..bytes.len() {
        refused(&bytes[..end]);
    }
    refused(&[&bytes[..], &[0]].concat());
    // The budget of the last item is a tag and an amount; tags are 0 and 1.
    let tag = bytes.len() - 5;
    assert_eq!(bytes[tag], 0);
    refused(&[&bytes[..tag], &[2], &bytes[tag + 1..]].concat());
    // Four billion entries, and then nothing.
    refused(&[&bytes[..13], &[0xff; 4]].concat());
    // No UTF-8 in the name.
    refused(&[1, 0, 0, 0, 0xff, 0, 0, 0, 0]);
}

#[test]
fn a_catalog_beyond_its_bounds_is_refused() {
    let sound = synthetic::generate(2, 0, Root::Seed(1));
    let high = Price(PRICE_CENTS_MAX + 1);
    type Change = fn(&mut CatalogEntry, Price);
    let changes: [(Change, bool); 8] = [
        (|entry, _| entry.item.id = "i".repeat(129), false),
        (|entry, _| entry.item.title = "t".repeat(1_025), false),
        (|entry, _| entry.item.category = "c".repeat(129), false),
        (|entry, _| entry.item.description = "d".repeat(8_193), false),
        (|entry, high| entry.item.list_price = high, false),
        (|entry, high| entry.cost = high, false),
        (|entry, high| entry.budget = Budget::Fixed(high), false),
        (|entry, high| entry.budget = Budget::Fixed(Price(high.cents() - 1)), true),
    ];
    for (place, (change, fits)) in changes.into_iter().enumerate() {
        let mut catalog = sound.clone();
        change(&mut catalog.entries[1], high);
        let read = Catalog::decode(&catalog.encode());
        if fits {
            assert_eq!(read, Ok(catalog), "change {place}");
        } else {
            let detail = "item 1 is beyond the bounds of items".to_owned();
            assert_eq!(read, Err(CatalogError::Encoding { detail }), "change {place}");
        }
    }
}

#[test]
fn a_catalog_of_too_many_items_is_refused() {
    let entry = synthetic::generate(1, 0, Root::Seed(1)).entries.remove(0);
    let count = ITEMS_MAX as usize;
    let mut catalog = Catalog { name: "many".to_owned(), entries: vec![entry.clone(); count] };
    assert!(Catalog::decode(&catalog.encode()).is_ok());
    catalog.entries.push(entry);
    let detail = "more than `100000` items".to_owned();
    let expected = Err(CatalogError::Encoding { detail });
    let bytes = catalog.encode();
    assert_eq!(Catalog::decode(&bytes), expected);
    // Its number of items is enough to refuse it.
    let head = 4 + catalog.name.len() + 4;
    assert_eq!(Catalog::decode(&bytes[..head]), expected);
}

proptest! {
    #[test]
    fn bytes_that_decode_as_a_catalog_are_its_one_encoding(
        bytes in proptest::collection::vec(prop_oneof![3 => 0..3_u8, 1 => any::<u8>()], 0..200),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut damaged = synthetic::generate(1, 0, Root::Seed(1)).encode();
        for (place, byte) in flips {
            let place = place.index(damaged.len());
            damaged[place] = byte;
        }
        for bytes in [bytes, damaged] {
            if let Ok(catalog) = Catalog::decode(&bytes) {
                prop_assert_eq!(catalog.encode(), bytes);
            }
        }
    }
}
