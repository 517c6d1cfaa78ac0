//! `arena catalog import`: validates an AmazonHistoryPrice folder and counts what it holds.

use std::collections::BTreeMap;

use arena_core::catalog::Catalog;
use arena_core::hexadecimal::hex;
use serde_json::json;

use crate::cli::ImportArgs;
use crate::error::CliError;
use crate::inputs;
use crate::render::catalog::{self, Prospects};
use crate::render::table::{Align, Table};
use crate::render::transcript::count;
use crate::screen::{self, Paint};

/// Prints what the folder holds.
///
/// # Errors
/// The folder is missing, or something in it is wrong.
pub fn run(args: &ImportArgs) -> Result<(), CliError> {
    let imported = inputs::amazon(&args.dir)?;
    let prospects = Prospects::count(&imported, args.factor.milli);
    let categories = categories(&imported);
    let sha256 = hex(&imported.sha256());
    if args.json {
        return screen::json(&json!({
            "catalog": imported.name,
            "items": imported.entries.len(),
            "factor_milli": args.factor.milli,
            "feasible": prospects.feasible,
            "infeasible": prospects.infeasible,
            "level": prospects.level,
            "categories": categories,
            "sha256": sha256,
        }));
    }
    let mut table = Table::new(&[("category", Align::Left), ("items", Align::Right)]);
    for (category, items) in &categories {
        table.row(vec![crate::escape::escape(category).into(), items.to_string().into()]);
    }
    let folder = args.dir.display();
    screen::results(&format!(
        "{folder} is a valid catalog: {items} in {groups}\n{table}\n\
         at budget factor {factor}: {prospects}\nsha-256 {sha256}\n\
         next: arena tournament run tournaments/amazon.toml --catalog {folder}\n",
        items = count(imported.entries.len() as u64, "item"),
        groups = catalog::groups(categories.len()),
        table = table.render(Paint::of_stdout()),
        factor = catalog::factor(args.factor.milli),
        prospects = prospects.words(),
    ))
}

fn categories(catalog: &Catalog) -> BTreeMap<&str, u64> {
    let mut categories = BTreeMap::new();
    for entry in &catalog.entries {
        *categories.entry(entry.item.category.as_str()).or_insert(0) += 1;
    }
    categories
}
