//! Items whose budget and cost are independent and uniform: theory's favourite.
//!
//! Myerson and Satterthwaite's second best, 27/32 of all gains from trade, holds exactly in
//! the limit of fine prices. About half of the items allow no deal.

use crate::catalog::{Budget, Catalog, CatalogEntry, ITEMS_MAX, PRICE_CENTS_MAX};
use crate::price::Price;
use crate::scenario::Item;
use crate::seed::{Root, Stream};

/// Generates items. Item i takes its budget, then its cost, from the stream `uniform` at i,
/// each uniformly from `low` to `high`; the list price is `high`.
///
/// # Panics
/// If there are no or more than [`ITEMS_MAX`] items, or not `low < high <= PRICE_CENTS_MAX`.
pub fn generate(items: u32, low: Price, high: Price, root: Root) -> Catalog {
    assert!((1..=ITEMS_MAX).contains(&items), "the number of items is bounded");
    assert!(low < high, "the range of reserves is not empty");
    assert!(high.cents() <= PRICE_CENTS_MAX, "catalog prices are bounded");
    let entries = (0..items).map(|index| entry(index, low, high, root)).collect();
    Catalog { name: "uniform".to_owned(), entries }
}

fn entry(index: u32, low: Price, high: Price, root: Root) -> CatalogEntry {
    let mut stream = Stream::derive(root, "uniform", &[u64::from(index)]);
    let mut reserve = || {
        let cents = stream.between(u64::from(low.cents()), u64::from(high.cents()));
        Price(u32::try_from(cents).expect("between two prices"))
    };
    let budget = reserve();
    let cost = reserve();
    let item = Item {
        id: format!("uniform/{index}"),
        title: format!("Token {}", index + 1),
        category: "uniform".to_owned(),
        description: format!(
            "A token of no other use. Both reserves are drawn evenly from {low} to {high}."
        ),
        list_price: high,
    };
    CatalogEntry { item, cost, budget: Budget::Fixed(budget) }
}
