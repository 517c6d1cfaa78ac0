//! `arena model list`: the models of the store.

use serde_json::json;

use crate::cli::model::ListArgs;
use crate::error::CliError;
use crate::escape::{escape, excerpt};
use crate::model_files;
use crate::render::table::{Align, Cell, Table};
use crate::render::transcript::count;
use crate::screen::{self, Paint, Tone};
use crate::store::{Source, Store, Stored};

/// Most characters of what is written beside a model that the table shows: more than this program
/// writes there, and a bound for others.
const TEXT_CHARS_MAX: usize = 300;
/// Digits of a hash that the table shows.
const DIGITS: usize = 8;
/// Stands for a hash that nobody wrote down. It takes long to compute.
const UNKNOWN: &str = "unknown";

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
    let (about, digits, origin) = match &model.source {
        Ok(Source { origin, manifest_sha256, about }) => {
            let digits = manifest_sha256.get(..DIGITS).unwrap_or(UNKNOWN);
            (about.clone(), digits, origin.clone())
        }
        Err(why) => (about(model), UNKNOWN, format!("unknown: {why}")),
    };
    vec![
        Cell::from(escape(&model.name)),
        excerpt(&about, TEXT_CHARS_MAX).into(),
        Cell::toned(escape(digits), Tone::Dim),
        excerpt(&origin, TEXT_CHARS_MAX).into(),
    ]
}

/// Returns what a model is of which that is not written down.
fn about(model: &Stored) -> String {
    match model_files::open(&model.path) {
        Ok(weights) => model_files::about(&weights),
        Err(_) => "no model that can be loaded".to_owned(),
    }
}

fn to_json(model: &Stored) -> serde_json::Value {
    let source = model.source.as_ref().ok();
    json!({
        "name": model.name,
        "path": model.path.display().to_string(),
        "linked": model.is_linked,
        "about": source.map(|source| &source.about),
        "manifest_sha256": source.map(|source| &source.manifest_sha256),
        "origin": source.map(|source| &source.origin),
        "source_unknown": model.source.as_ref().err(),
    })
}
