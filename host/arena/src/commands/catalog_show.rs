//! `arena catalog show`: the items of a generated catalog or of a folder.

use std::path::Path;

use arena_core::catalog::{self, Catalog};
use arena_core::hexadecimal::hex;
use arena_core::price::Price;
use arena_core::seed::Root;

use crate::cli::CatalogShowArgs;
use crate::error::{CliError, Complaint};
use crate::escape::escape;
use crate::inputs;
use crate::render::catalog::{self as render, Prospects};
use crate::render::transcript::count;
use crate::screen::{self, Paint};

/// Budget factor of a folder's items when none is given, in thousandths.
const FACTOR_MILLI: u32 = 800;
/// Items that are generated when no number is given.
const ITEMS: u32 = 1_000;
/// Share of generated items without a possible deal when none is given, in thousandths.
const INFEASIBLE_MILLI: u32 = 100;
/// Lowest and highest reserve of a uniform catalog.
const UNIFORM_RESERVES: [Price; 2] = [Price(0), Price(10_000)];

/// Prints the catalog.
///
/// # Errors
/// A flag that this kind of catalog has no use for; a folder that is missing or wrong.
pub fn run(args: &CatalogShowArgs) -> Result<(), CliError> {
    let shown = load(args)?;
    let factor_milli = args.factor.map_or(FACTOR_MILLI, |factor| factor.milli);
    if args.json {
        return screen::json(&render::to_json(&shown, factor_milli));
    }
    screen::results(&format!(
        "{name}: {items}, {prospects}, sha-256 {sha256}\n{table}",
        name = shown.name,
        items = count(shown.entries.len() as u64, "item"),
        prospects = Prospects::count(&shown, factor_milli).words(),
        sha256 = &hex(&shown.sha256())[..16],
        table = render::table(&shown, factor_milli, args.limit, Paint::of_stdout()),
    ))
}

fn load(args: &CatalogShowArgs) -> Result<Catalog, CliError> {
    let items = args.items.unwrap_or(ITEMS);
    let root = Root::Seed(args.seed.unwrap_or(1));
    match args.catalog.as_str() {
        "synthetic" => {
            refuse(args.factor.is_some(), "--factor", "synthetic")?;
            let infeasible_milli = args.infeasible_milli.unwrap_or(INFEASIBLE_MILLI);
            Ok(catalog::synthetic::generate(items, infeasible_milli, root))
        }
        "uniform" => {
            refuse(args.factor.is_some(), "--factor", "uniform")?;
            refuse(args.infeasible_milli.is_some(), "--infeasible-milli", "uniform")?;
            let [low, high] = UNIFORM_RESERVES;
            Ok(catalog::uniform::generate(items, low, high, root))
        }
        folder => {
            refuse(args.items.is_some(), "--items", "folder")?;
            refuse(args.infeasible_milli.is_some(), "--infeasible-milli", "folder")?;
            refuse(args.seed.is_some(), "--seed", "folder")?;
            let path = Path::new(folder);
            if !path.exists() {
                let failed = format!("cannot show the catalog `{}`", escape(folder));
                let complaint = Complaint::new(failed, "no such kind and no such folder");
                return Err(CliError::Input(
                    complaint.hint("give `synthetic`, `uniform` or an AmazonHistoryPrice folder"),
                ));
            }
            inputs::amazon(path)
        }
    }
}

/// Complains about a flag that would be ignored.
fn refuse(given: bool, flag: &str, kind: &str) -> Result<(), CliError> {
    if !given {
        return Ok(());
    }
    let fact = format!("a {kind} catalog has no use for it");
    Err(CliError::Config(Complaint::new(format!("cannot use `{flag}`"), fact)))
}
