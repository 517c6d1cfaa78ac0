//! Where in an experiment file something stands that a tournament file took over.
//!
//! Not here: what is wrong with it (`arena_core::config`).

use arena_core::config::error::{ConfigError, Mistake};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table};

use super::POLICY;

/// Who plays in a tournament file, after the learner.
pub(super) struct Parts {
    /// How many baselines come first.
    pub(super) baselines: usize,
    /// Places of the opponents that follow.
    pub(super) opponents: Vec<usize>,
}

/// Takes a catalog, of which a run chooses the part.
pub(super) fn check_catalog(given: Spanned<Table>) -> Result<Table, Mistake> {
    for key in ["split", "sample"] {
        if given.get_ref().contains_key(key) {
            let message = format!("`catalog.{key}` is chosen by what items are played for");
            return Err(Mistake::at(given.span(), message).hint(
                "steps play `train.items` of the training part, evaluations `evaluate.items` of \
                 the test part"
                    .to_owned(),
            ));
        }
    }
    Ok(given.into_inner())
}

/// Takes the models of others than the learner.
pub(super) fn check_models(given: Vec<Spanned<Table>>) -> Result<Vec<Table>, Mistake> {
    for model in &given {
        if model.get_ref().get("name").and_then(|name| name.as_str()) == Some(POLICY) {
            let message = format!("`{POLICY}` is the name of the learner's model");
            return Err(Mistake::at(model.span(), message));
        }
    }
    Ok(given.into_iter().map(Spanned::into_inner).collect())
}

/// Says of a mistake in a tournament file where it is in the experiment file `text`.
pub(super) fn in_experiment(error: ConfigError, parts: &Parts, text: &str) -> ConfigError {
    let steps = translate(&error.key, parts);
    let table = DeTable::parse(text);
    let span = table.ok().and_then(|table| find(table.get_ref(), &steps)).unwrap_or(0..0);
    let mistake = Mistake { hint: error.hint, ..Mistake::at(span, error.message) };
    mistake.locate(text)
}

/// A way into a TOML document.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Place(usize),
}

/// Turns a key such as `agents[2].params` of a tournament file into the experiment's.
fn translate(key: &str, parts: &Parts) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for part in key.split(['.', '[']).filter(|part| !part.is_empty()) {
        steps.push(match part.strip_suffix(']').and_then(|number| number.parse().ok()) {
            Some(place) => Step::Place(place),
            None => Step::Key(part.to_owned()),
        });
    }
    let named = |name: &str| Step::Key(name.to_owned());
    let head: Vec<Step> = match (steps.first(), steps.get(1)) {
        (Some(Step::Key(list)), Some(Step::Place(place))) if list == "agents" => {
            match place.checked_sub(1) {
                None => vec![named("learner")],
                Some(place) if place < parts.baselines => {
                    vec![named("baselines"), Step::Place(place)]
                }
                Some(place) => {
                    let place = parts.opponents.get(place - parts.baselines).copied();
                    vec![named("opponents"), Step::Place(place.unwrap_or(0))]
                }
            }
        }
        (Some(Step::Key(list)), Some(Step::Place(place))) if list == "models" => {
            match place.checked_sub(1) {
                None => vec![named("policy")],
                Some(place) => vec![named("models"), Step::Place(place)],
            }
        }
        _ => return steps,
    };
    head.into_iter().chain(steps.into_iter().skip(2)).collect()
}

/// Returns the place of the last step that leads somewhere.
fn find(table: &DeTable<'_>, steps: &[Step]) -> Option<std::ops::Range<usize>> {
    let Some(Step::Key(key)) = steps.first() else {
        return None;
    };
    let (_, value) = table.iter().find(|(found, _)| found.get_ref().as_ref() == key)?;
    Some(within(value, &steps[1..]))
}

fn within(value: &Spanned<DeValue<'_>>, steps: &[Step]) -> std::ops::Range<usize> {
    let inner = match (value.get_ref(), steps.first()) {
        (DeValue::Table(table), Some(Step::Key(_))) => find(table, steps),
        (DeValue::Array(values), Some(Step::Place(place))) => {
            values.get(*place).map(|value| within(value, &steps[1..]))
        }
        _ => None,
    };
    inner.unwrap_or_else(|| value.span())
}
