//! Generated items whose prices are distributed like published ones.
//!
//! The same number, share and seed give the same items on any machine: everything is integer
//! arithmetic on two tables, because prices are hashed and logarithms differ in the last bit.
//!
//! - List price P: the logarithm of P in dollars is normal with mean 5.09 and standard
//!   deviation 1.23, cut to $5 .. $4,300 ([`PRICE_QUANTILES`], linear between its points),
//!   then set to the 99 cents of its dollar.
//! - Cost C: the share C/P goes through the published deciles ([`COST_QUANTILES`]).
//! - Dear items have higher cost shares: the rank of C/P is the rank of P, moved by an even
//!   draw from `-RANK_SHIFT..=RANK_SHIFT` and reflected at both ends. Reflection keeps the
//!   distribution even; with shifts of up to 0.70 of all ranks, the rank correlation is
//!   (96/pi^4) x the sum over odd k of sin(0.7 k pi)/(0.7 k pi)/k^4 = 0.36, as published.
//! - Budget B: with a possible deal even in `max(C + 1, 0.6 P)..=P`, without one even in
//!   `0.6 C..=C - 1` (cents). Which items have none is a sample of exactly the declared share.
//!
//! Not here: product texts of the real world. Brands, titles and descriptions are made up
//! from word lists, and each description says so.

use crate::catalog::{Budget, Catalog, CatalogEntry, ITEMS_MAX};
use crate::price::Price;
use crate::scenario::Item;
use crate::seed::{Root, Stream};

/// The number of ranks that quantile tables are read at.
pub const RANKS: u64 = 1 << 20;
/// The largest shift between the rank of an item's price and that of its cost share.
pub const RANK_SHIFT: u64 = RANKS * 70 / 100;

/// Quantiles of the list price in cents, at 0/64, 1/64 .. 64/64.
///
/// Point i is 100 exp(5.09 + 1.23 z(a + (b - a) i/64)), rounded, with z the standard normal's
/// quantile function, a = 0.002329 and b = 0.996136 the normal's shares below $5 and $4,300.
pub const PRICE_QUANTILES: [u64; 65] = [
    500, 1_227, 1_703, 2_120, 2_508, 2_883, 3_251, 3_616, 3_982, 4_350, 4_721, 5_099, 5_482, 5_874,
    6_274, 6_684, 7_105, 7_537, 7_982, 8_441, 8_914, 9_402, 9_908, 10_431, 10_974, 11_537, 12_123,
    12_732, 13_366, 14_028, 14_720, 15_443, 16_201, 16_995, 17_830, 18_709, 19_635, 20_613, 21_648,
    22_745, 23_911, 25_153, 26_480, 27_901, 29_427, 31_072, 32_852, 34_786, 36_896, 39_210, 41_762,
    44_596, 47_766, 51_342, 55_419, 60_123, 65_630, 72_199, 80_218, 90_313, 103_579, 122_150,
    151_008, 206_266, 430_000,
];

/// Quantiles of C/P in millionths, at 0/10, 1/10 .. 10/10. The inner nine are the published
/// deciles; the ends are where the published mean, 0.511, and most of its spread are met.
pub const COST_QUANTILES: [u64; 11] = [
    130_000, 260_000, 332_000, 403_000, 471_000, 508_000, 560_000, 607_000, 673_000, 750_000,
    860_000,
];

/// The lowest budget as a share of the list price (or of the cost, where there is no possible
/// deal), in thousandths.
const BUDGET_SHARE_MIN: u64 = 600;

/// Generates items, `infeasible_milli` thousandths of which (rounded to the nearest whole)
/// allow no deal.
///
/// # Panics
/// If there are no or more than [`ITEMS_MAX`] items, or the share is more than 1,000.
pub fn generate(items: u32, infeasible_milli: u32, root: Root) -> Catalog {
    assert!((1..=ITEMS_MAX).contains(&items), "the number of items is bounded");
    assert!(infeasible_milli <= 1_000, "a share is at most 1,000 thousandths");
    let rounded = (u64::from(items) * u64::from(infeasible_milli) + 500) / 1_000;
    let count = u32::try_from(rounded).expect("a share of a number of 32 bits");
    let infeasible = Stream::derive(root, "synthetic-infeasible", &[]).sample(items, count);
    let entry = |index: u32| entry(index, infeasible.binary_search(&index).is_err(), root);
    Catalog { name: "synthetic".to_owned(), entries: (0..items).map(entry).collect() }
}

/// Generates item `index` from the stream `synthetic` at its index. Draws are in this order:
/// rank of the price, shift of the rank of C/P, budget, words.
fn entry(index: u32, feasible: bool, root: Root) -> CatalogEntry {
    let mut stream = Stream::derive(root, "synthetic", &[u64::from(index)]);
    let rank = stream.below(RANKS);
    let quantile = interpolate(&PRICE_QUANTILES, rank);
    let list_price = quantile - quantile % 100 + 99;
    let shifted = reflect(rank, stream.between(0, 2 * RANK_SHIFT));
    let cost = list_price * interpolate(&COST_QUANTILES, shifted) / 1_000_000;
    let budget = if feasible {
        stream.between((cost + 1).max(list_price * BUDGET_SHARE_MIN / 1_000), list_price)
    } else {
        stream.between(cost * BUDGET_SHARE_MIN / 1_000, cost - 1)
    };
    let price = |cents: u64| Price(u32::try_from(cents).expect("the tables hold small prices"));
    CatalogEntry {
        item: describe(index, price(list_price), &mut stream),
        cost: price(cost),
        budget: Budget::Fixed(price(budget)),
    }
}

/// Reads a table of evenly spaced quantiles at a rank, linearly between its points.
fn interpolate(table: &[u64], rank: u64) -> u64 {
    let position = rank * (table.len() as u64 - 1);
    let below = usize::try_from(position / RANKS).expect("a place in a table");
    let above = table[below + 1] - table[below];
    table[below] + above * (position % RANKS) / RANKS
}

/// Moves a rank by `shift - RANK_SHIFT` and folds it back at both ends.
fn reflect(rank: u64, shift: u64) -> u64 {
    let moved = rank + shift;
    match moved.checked_sub(RANK_SHIFT) {
        None => RANK_SHIFT - 1 - moved,
        Some(inside) if inside < RANKS => inside,
        Some(beyond) => 2 * RANKS - 1 - beyond,
    }
}

/// Makes up an item's texts. Draws are in this order: category, thing, brand, quality, model
/// number, two features.
fn describe(index: u32, list_price: Price, stream: &mut Stream) -> Item {
    let (category, things) = pick(&CATEGORIES, stream);
    let thing = pick(things, stream);
    let brand = pick(&BRANDS, stream);
    let quality = pick(&QUALITIES, stream);
    let model = stream.between(100, 999);
    let first = pick(&FEATURES, stream);
    let second = pick(&FEATURES, stream);
    let also = if first == second { "sold as one piece" } else { second };
    Item {
        id: format!("synthetic/{index}"),
        title: format!("{brand} {model} {quality} {thing}"),
        category: (*category).to_owned(),
        description: format!(
            "Made-up product for negotiation experiments. A {quality} {thing}: {first}, {also}."
        ),
        list_price,
    }
}

fn pick<'a, T>(values: &'a [T], stream: &mut Stream) -> &'a T {
    let place = stream.below(values.len() as u64);
    &values[usize::try_from(place).expect("a place in a list")]
}

const CATEGORIES: [(&str, [&str; 6]); 8] = [
    ("audio", ["headphones", "speaker", "turntable", "microphone", "amplifier", "radio"]),
    ("garden", ["hedge trimmer", "hose reel", "greenhouse", "bench", "lantern", "wheelbarrow"]),
    ("kitchen", ["kettle", "blender", "knife block", "coffee grinder", "toaster", "scale"]),
    ("office", ["desk lamp", "chair", "label printer", "shredder", "whiteboard", "shelf"]),
    ("outdoors", ["tent", "sleeping bag", "head torch", "rucksack", "camp stove", "hammock"]),
    ("sports", ["rowing machine", "bicycle helmet", "yoga mat", "racket", "kettlebell", "skates"]),
    ("tools", ["drill", "workbench", "laser level", "socket set", "sander", "vice"]),
    ("toys", ["train set", "puzzle", "building kit", "kite", "board game", "telescope"]),
];

const BRANDS: [&str; 16] = [
    "Velora", "Ostrin", "Quandle", "Brimsol", "Tavico", "Nerrow", "Halvek", "Pinquil", "Dorvane",
    "Sulmet", "Yarrick", "Corvalo", "Mistrel", "Ubrano", "Fennoch", "Zelquist",
];

const QUALITIES: [&str; 12] = [
    "compact",
    "cordless",
    "folding",
    "heavy-duty",
    "insulated",
    "lightweight",
    "modular",
    "portable",
    "quiet",
    "rechargeable",
    "stainless",
    "weatherproof",
];

const FEATURES: [&str; 12] = [
    "two-year guarantee",
    "spare parts included",
    "assembled in ten minutes",
    "carrying case",
    "printed manual in four languages",
    "repairable with common tools",
    "low running cost",
    "tested to a published standard",
    "no batteries needed",
    "stackable",
    "machine washable",
    "made from recycled material",
];
