//! `arena model list`: the models of the store.

use serde_json::json;

use crate::cli::model::ListArgs;
use crate::error::CliError;
use crate::escape::{escape, excerpt};
use crate::render::table::{Align, Cell, Table};
use crate::render::transcript::count;
use crate::screen::{self, Paint, Tone};
use crate::store::{Store, Stored};

/// How much of a model's origin the table shows, in characters.
const ORIGIN_CHARS: usize = 50;
/// The same of what it is.
const ABOUT_CHARS: usize = 40;
/// Digits of a hash that the table shows.
const DIGITS: usize = 8;
/// Stands for what nobody wrote down.
const UNKNOWN: &str = "-";

/// Prints the list.
///
/// # Errors
/// The store cannot be read, or standard output not be written.
pub fn run(args: &ListArgs) -> Result<(), CliError> {
    let store = Store::find()?;
    let models = store.list()?;
    if args.json {
        let models: Vec<_> = models.iter().map(to_json).collect();
        let folder = store.folder().display().to_string();
        return screen::json(&json!({ "store": folder, "models": models }));
    }
    let head = format!("{} in {}", count(models.len() as u64, "model"), store.folder().display());
    if models.is_empty() {
        return screen::results(&format!("{head}\nnext: arena model pull smollm2\n"));
    }
    let mut table = Table::new(&[
        ("model", Align::Left),
        ("what it is", Align::Left),
        ("sha-256", Align::Left),
        ("from", Align::Left),
    ]);
    for model in &models {
        table.row(row(model));
    }
    screen::results(&format!(
        "{head}\n{}\nnext: arena model show {}\n",
        table.render(Paint::of_stdout()),
        models[0].name,
    ))
}

fn row(model: &Stored) -> Vec<Cell> {
    let source = model.source.as_ref();
    let text = |value: Option<&String>, chars: usize| match value {
        Some(value) => excerpt(value, chars),
        None => UNKNOWN.to_owned(),
    };
    let digits = source.and_then(|source| source.manifest_sha256.get(..DIGITS));
    vec![
        Cell::from(escape(&model.name)),
        text(source.map(|source| &source.about), ABOUT_CHARS).into(),
        Cell::toned(digits.map_or_else(|| UNKNOWN.to_owned(), escape), Tone::Dim),
        text(source.map(|source| &source.origin), ORIGIN_CHARS).into(),
    ]
}

fn to_json(model: &Stored) -> serde_json::Value {
    json!({
        "name": model.name,
        "path": model.path.display().to_string(),
        "linked": model.is_linked,
        "about": model.source.as_ref().map(|source| &source.about),
        "manifest_sha256": model.source.as_ref().map(|source| &source.manifest_sha256),
        "origin": model.source.as_ref().map(|source| &source.origin),
    })
}
