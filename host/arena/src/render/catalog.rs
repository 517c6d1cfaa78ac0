//! Catalogs as text and JSON.

use arena_core::catalog::{Catalog, CatalogEntry};
use arena_core::hexadecimal::hex;
use serde_json::{Value, json};

use crate::escape::{escape, excerpt};
use crate::render::table::{Align, Table};
use crate::render::transcript::count;
use crate::screen::Paint;

/// How much of a title the table shows.
const TITLE_CHARS: usize = 48;

/// How many items a deal is worth making on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prospects {
    /// Budget above cost.
    pub feasible: u64,
    /// Budget below cost.
    pub infeasible: u64,
    /// Budget equal to cost.
    pub level: u64,
}

impl Prospects {
    /// Counts a catalog; the factor is for items whose budget is a share of their price.
    pub fn count(catalog: &Catalog, factor_milli: u32) -> Prospects {
        let mut prospects = Prospects { feasible: 0, infeasible: 0, level: 0 };
        for entry in &catalog.entries {
            let budget = entry.budget.at_factor(entry.item.list_price, factor_milli);
            match budget.cmp(&entry.cost) {
                std::cmp::Ordering::Greater => prospects.feasible += 1,
                std::cmp::Ordering::Less => prospects.infeasible += 1,
                std::cmp::Ordering::Equal => prospects.level += 1,
            }
        }
        prospects
    }

    /// Says the counts.
    pub fn words(self) -> String {
        let level = match self.level {
            0 => String::new(),
            level => format!(", {level} with budget equal to cost"),
        };
        format!("{} feasible, {} infeasible{level}", self.feasible, self.infeasible)
    }
}

/// Counts categories.
pub fn groups(number: usize) -> String {
    if number == 1 { "1 category".to_owned() } else { format!("{number} categories") }
}

/// Writes a factor in thousandths as a decimal number.
pub fn factor(milli: u32) -> String {
    let text = format!("{}.{:03}", milli / 1_000, milli % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the first items as a table.
pub fn table(catalog: &Catalog, factor_milli: u32, limit: usize, paint: Paint) -> String {
    let mut table = Table::new(&[
        ("item", Align::Right),
        ("id", Align::Left),
        ("title", Align::Left),
        ("list", Align::Right),
        ("budget", Align::Right),
        ("cost", Align::Right),
    ]);
    for (index, entry) in catalog.entries.iter().enumerate().take(limit) {
        table.row(vec![
            index.to_string().into(),
            escape(&entry.item.id).into(),
            excerpt(&entry.item.title, TITLE_CHARS).into(),
            entry.item.list_price.to_string().into(),
            entry.budget.at_factor(entry.item.list_price, factor_milli).to_string().into(),
            entry.cost.to_string().into(),
        ]);
    }
    let mut text = table.render(paint);
    let rest = catalog.entries.len().saturating_sub(limit);
    if rest > 0 {
        text.push_str(&format!("  and {}\n", count(rest as u64, "more item")));
    }
    text
}

/// Returns the whole catalog. Prices are cents.
pub fn to_json(catalog: &Catalog, factor_milli: u32) -> Value {
    let entry = |entry: &CatalogEntry| {
        let list_price = entry.item.list_price;
        json!({
            "id": entry.item.id,
            "title": entry.item.title,
            "category": entry.item.category,
            "description": entry.item.description,
            "list_price": list_price.cents(),
            "budget": entry.budget.at_factor(list_price, factor_milli).cents(),
            "cost": entry.cost.cents(),
        })
    };
    let entries: Vec<Value> = catalog.entries.iter().map(entry).collect();
    json!({ "catalog": catalog.name, "sha256": hex(&catalog.sha256()), "items": entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_prints_as_it_is_read() {
        for (milli, text) in [(800, "0.8"), (1_000, "1"), (1, "0.001"), (1_250, "1.25")] {
            assert_eq!(factor(milli), text);
        }
    }
}
