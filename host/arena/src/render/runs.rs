//! Training runs as tables, JSON and CSV. Every number comes out of a run's rows; what has no
//! value is `-`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use arena_core::hexadecimal::hex;
use arena_core::statistics::bootstrap::Estimate;
use arena_log::hash::Hash;
use arena_train::metrics::evaluation::Interval;
use arena_train::metrics::rows::StepRow;
use arena_train::phase::{Noise, Phase, STEPS_MIN};
use arena_train::runs::Run;
use arena_train::summary::{Baseline, Learned, Summary};
use serde_json::{Value, json};

use crate::escape::{escape, excerpt};
use crate::render::number::{decimal, interval, interval_head, percent, signed, tenth};
use crate::render::rows;
use crate::render::table::{Align, Cell, Table};
use crate::render::transcript::count;
use crate::screen::{Paint, Tone};

/// How much of a name out of a run's rows is shown, in characters.
const NAME_CHARS: usize = 40;

/// A run, and what its folder says of it.
#[derive(Clone, Debug)]
pub struct ShownRun {
    /// Its rows and phases.
    pub run: Run,
    /// What it came to.
    pub summary: Summary,
    /// Its experiment's name.
    pub experiment: String,
    /// Its seed.
    pub seed: u64,
    /// The steps that it is to have.
    pub steps_wanted: u32,
    /// The steps before its newest policy, and the hash that names the policy.
    pub policy: Option<(u32, [u8; 32])>,
    /// The size and root of its ledger's newest head.
    pub ledger: Option<(u64, Hash)>,
}

/// What one run says of one field.
#[derive(Clone, Debug, Default)]
struct OfField<'a> {
    learner: Vec<&'a Learned>,
    baselines: Vec<&'a Baseline>,
}

/// Returns the tables of runs.
pub fn text(runs: &[ShownRun], noise: Option<Noise>, paint: Paint) -> String {
    let mut text = overview(runs, paint);
    let by_field: Vec<BTreeMap<&str, OfField<'_>>> =
        runs.iter().map(|shown| by_field(&shown.summary)).collect();
    for field in fields(runs) {
        let met: Vec<(&ShownRun, OfField<'_>)> = runs
            .iter()
            .zip(&by_field)
            .map(|(shown, fields)| (shown, fields.get(field).cloned().unwrap_or_default()))
            .collect();
        text.push_str(&learner(&met, field, paint));
        text.push_str(&baselines(&met, field, paint));
    }
    text.push_str(&phases(runs, noise, paint));
    text.push_str(&policies(runs, paint));
    text
}

fn by_field(summary: &Summary) -> BTreeMap<&str, OfField<'_>> {
    let mut fields: BTreeMap<&str, OfField<'_>> = BTreeMap::new();
    for learned in &summary.learner {
        fields.entry(&learned.field).or_default().learner.push(learned);
    }
    for baseline in &summary.baselines {
        fields.entry(&baseline.field).or_default().baselines.push(baseline);
    }
    fields
}

/// Returns the fields of all runs, in the order in which they come.
fn fields(runs: &[ShownRun]) -> Vec<&str> {
    let names = runs.iter().flat_map(|ShownRun { summary, .. }| {
        let learner = summary.learner.iter().map(|learned| &learned.field[..]);
        learner.chain(summary.baselines.iter().map(|baseline| &baseline.field[..]))
    });
    first_of_each(names)
}

fn first_of_each<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

fn heading(text: &str, paint: Paint) -> String {
    format!("\n{}\n", paint.paint(Tone::Bold, text))
}

fn overview(runs: &[ShownRun], paint: Paint) -> String {
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("experiment", Align::Left),
        ("seed", Align::Right),
        ("steps", Align::Right),
        ("of", Align::Right),
        ("seconds", Align::Right),
    ]);
    for shown in runs {
        table.row(vec![
            name(shown),
            escape(&shown.experiment).into(),
            shown.seed.to_string().into(),
            shown.summary.steps.to_string().into(),
            shown.steps_wanted.to_string().into(),
            tenth(shown.summary.seconds).into(),
        ]);
    }
    let title = paint.paint(Tone::Bold, &count(runs.len() as u64, "run"));
    format!("{title}\n{}", table.render(paint))
}

fn name(shown: &ShownRun) -> Cell {
    escape(&shown.run.name).into()
}

/// Returns a table for each mode in which the learner met a field.
fn learner(met: &[(&ShownRun, OfField<'_>)], field: &str, paint: Paint) -> String {
    let modes = met.iter().flat_map(|(_, found)| &found.learner);
    let mut text = String::new();
    for mode in first_of_each(modes.map(|learned| &learned.mode[..])) {
        let title = format!(
            "field {}, {}: reward before the first step and in the newest evaluation",
            excerpt(field, NAME_CHARS),
            excerpt(mode, NAME_CHARS)
        );
        let mut table = learner_table();
        for (shown, found) in met {
            let learned = found.learner.iter().find(|learned| learned.mode == mode);
            table.row(learner_row(shown, learned.copied()));
        }
        text.push_str(&heading(&title, paint));
        text.push_str(&table.render(paint));
    }
    text
}

fn learner_table() -> Table {
    let ends = interval_head();
    Table::new(&[
        ("run", Align::Left),
        ("step", Align::Right),
        ("start", Align::Right),
        (&ends, Align::Left),
        ("reward", Align::Right),
        (&ends, Align::Left),
        ("gain", Align::Right),
        (&ends, Align::Left),
        ("deals", Align::Right),
        ("opening", Align::Right),
        ("overshoot", Align::Right),
        ("invalid", Align::Right),
        ("turns", Align::Right),
    ])
    .tight()
}

fn learner_row(shown: &ShownRun, learned: Option<&Learned>) -> Vec<Cell> {
    let none = Learned::default();
    let step = learned.map_or("-".to_owned(), |learned| learned.step.to_string());
    let Learned { start, measures, gain, .. } = learned.unwrap_or(&none);
    let reward = &measures.reward;
    vec![
        name(shown),
        step.into(),
        signed(start.value).into(),
        ends(start).into(),
        signed(reward.value).into(),
        ends(reward).into(),
        signed(gain.value).into(),
        ends(gain).into(),
        percent(measures.deal_rate.value).into(),
        decimal(measures.opening_ratio.value).into(),
        percent(measures.overshoot_rate.value).into(),
        percent(measures.invalid_rate.value).into(),
        tenth(measures.turns.value).into(),
    ]
}

fn ends(found: &Interval) -> String {
    let Interval { value, low, high } = *found;
    interval(&Estimate { value, low, high }, signed)
}

/// Returns the baselines of a field, and whether the learner is above the best of them.
fn baselines(met: &[(&ShownRun, OfField<'_>)], field: &str, paint: Paint) -> String {
    if met.iter().all(|(_, found)| found.baselines.is_empty()) {
        return String::new();
    }
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("baseline", Align::Left),
        ("reward", Align::Right),
        (&interval_head(), Align::Left),
        ("deals", Align::Right),
        ("opening", Align::Right),
        ("turns", Align::Right),
    ]);
    for (shown, found) in met {
        for baseline in &found.baselines {
            let measures = &baseline.measures;
            table.row(vec![
                name(shown),
                excerpt(&baseline.agent, NAME_CHARS).into(),
                signed(measures.reward.value).into(),
                ends(&measures.reward).into(),
                percent(measures.deal_rate.value).into(),
                decimal(measures.opening_ratio.value).into(),
                tenth(measures.turns.value).into(),
            ]);
        }
    }
    let field = excerpt(field, NAME_CHARS);
    let title = heading(&format!("field {field}: baselines in the learner's place"), paint);
    let against = heading(&format!("field {field}: the learner and the best baseline"), paint);
    format!("{title}{}{against}{}", table.render(paint), against_best(met).render(paint))
}

fn against_best(met: &[(&ShownRun, OfField<'_>)]) -> Table {
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("mode", Align::Left),
        ("reward", Align::Right),
        ("best baseline", Align::Left),
        ("reward", Align::Right),
        ("above", Align::Left),
    ]);
    for (shown, found) in met {
        let best = found.baselines.first();
        let best_name = best.map_or("-".to_owned(), |best| excerpt(&best.agent, NAME_CHARS));
        for learned in &found.learner {
            table.row(vec![
                name(shown),
                excerpt(&learned.mode, NAME_CHARS).into(),
                signed(learned.measures.reward.value).into(),
                best_name.as_str().into(),
                signed(best.and_then(|best| best.measures.reward.value)).into(),
                yes_or_no(learned.is_above).into(),
            ]);
        }
    }
    table
}

fn yes_or_no(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    }
}

/// Returns the step with which each phase of each run begins.
fn phases(runs: &[ShownRun], noise: Option<Noise>, paint: Paint) -> String {
    let mut heads = vec![("run", Align::Left)];
    heads.extend(Phase::ALL.map(|phase| (phase.name(), Align::Right)));
    heads.push(("last holds", Align::Left));
    let mut table = Table::new(&heads);
    for shown in runs {
        let spans = shown.run.spans();
        let start = |phase: Phase| -> Cell {
            let found = spans.iter().find(|(found, ..)| *found == phase);
            found.map_or("-".to_owned(), |(_, start, _)| start.to_string()).into()
        };
        let mut row = vec![name(shown)];
        row.extend(Phase::ALL.map(start));
        row.push(yes_or_no(shown.run.phases.as_ref().map(|found| found.holds_at_end)).into());
        table.row(row);
    }
    let title = heading("phases: the step with which each begins", paint);
    let mut legend = format!("  Labelled by decision 0009, from {STEPS_MIN} steps on");
    match noise {
        Some(Noise { opening, lift }) => {
            let long = runs.iter().filter(|shown| shown.run.steps.len() >= STEPS_MIN).count();
            let long = count(long as u64, "run");
            let _ = writeln!(legend, "; noise of {long}: opening {opening:.4}, lift {lift:.4}.");
        }
        None => legend.push_str("; no run has as many.\n"),
    }
    format!("{title}{}{}", table.render(paint), paint.paint(Tone::Dim, &legend))
}

/// Returns what names each run's newest policy and its ledger.
fn policies(runs: &[ShownRun], paint: Paint) -> String {
    let mut newest =
        Table::new(&[("run", Align::Left), ("after step", Align::Right), ("SHA-256", Align::Left)]);
    let mut ledgers =
        Table::new(&[("run", Align::Left), ("entries", Align::Right), ("root", Align::Left)]);
    let row = |shown: &ShownRun, found: Option<(String, String)>| -> Vec<Cell> {
        let (number, hash) = found.unwrap_or(("-".to_owned(), "-".to_owned()));
        vec![name(shown), number.into(), hash.into()]
    };
    for shown in runs {
        let policy = shown.policy.map(|(step, sha256)| (step.to_string(), hex(&sha256)));
        newest.row(row(shown, policy));
        let ledger = shown.ledger.map(|(size, root)| (size.to_string(), root.to_string()));
        ledgers.row(row(shown, ledger));
    }
    let titles = ["newest policies, as tournaments name them", "newest heads of the ledgers"];
    let [of_newest, of_ledgers] = titles.map(|title| heading(title, paint));
    format!("{of_newest}{}{of_ledgers}{}", newest.render(paint), ledgers.render(paint))
}

/// Returns the same facts for programs.
pub fn json(runs: &[ShownRun], noise: Option<Noise>) -> Value {
    let run = |shown: &ShownRun| {
        let spans = shown.run.spans().into_iter();
        let phases = shown.run.phases.as_ref().map(|found| {
            json!({
                "starts": spans
                    .map(|(phase, start, _)| json!({ "phase": phase, "step": start }))
                    .collect::<Vec<Value>>(),
                "holds_at_end": found.holds_at_end,
                "opening_low": found.opening_low,
                "lift_low": found.lift_low,
            })
        });
        json!({
            "run": shown.run.name,
            "experiment": shown.experiment,
            "seed": shown.seed,
            "steps": shown.summary.steps,
            "steps_wanted": shown.steps_wanted,
            "seconds": shown.summary.seconds,
            "learner": shown.summary.learner,
            "baselines": shown.summary.baselines,
            "phases": phases,
            "policy": shown.policy.map(|(step, sha256)| {
                json!({ "step": step, "sha256": hex(&sha256) })
            }),
            "ledger": shown.ledger.map(|(size, root)| {
                json!({ "size": size, "root": root.to_string() })
            }),
        })
    };
    json!({ "runs": runs.iter().map(run).collect::<Vec<Value>>(), "noise": noise })
}

/// The columns of curves.
pub const CURVES: &[rows::Column] = &[
    column("run", rows::Kind::Text),
    column("step", rows::Kind::Number),
    column("reward", rows::Kind::Real),
    column("deal_rate", rows::Kind::Real),
    column("bargained_ratio", rows::Kind::Real),
    column("opening_ratio", rows::Kind::Real),
    column("overshoot_rate", rows::Kind::Real),
    column("invalid_rate", rows::Kind::Real),
    column("turns", rows::Kind::Real),
    column("argument_share", rows::Kind::Real),
    column("argument_lift", rows::Kind::Real),
    column("entropy", rows::Kind::Real),
    column("clip_fraction_low", rows::Kind::Real),
    column("clip_fraction_high", rows::Kind::Real),
    column("level_group_share", rows::Kind::Real),
    column("seconds", rows::Kind::Real),
    column("tokens_per_second", rows::Kind::Real),
];

const fn column(name: &'static str, kind: rows::Kind) -> rows::Column {
    rows::Column { name, kind }
}

/// Returns a line for each step of a run, in the order of [`CURVES`].
pub fn curves(shown: &ShownRun) -> String {
    let name = escape(&shown.run.name);
    let line = |row: &StepRow| {
        let (play, learning, pace) = (&row.play, &row.learning, &row.pace);
        let reals = [
            play.reward,
            play.deal_rate,
            play.bargained_ratio,
            play.opening_ratio,
            play.overshoot_rate,
            play.invalid_rate,
            play.turns,
            play.argument_share,
            play.argument_lift,
            learning.entropy,
            learning.clip_fraction_low,
            learning.clip_fraction_high,
            learning.level_group_share,
            pace.seconds,
            pace.tokens_per_second,
        ];
        let mut values =
            vec![rows::Value::Text(name.as_str().into()), rows::Value::Number(row.step.into())];
        values.extend(reals.map(|real| real.map_or(rows::Value::Null, rounded)));
        rows::csv_line(&values)
    };
    shown.run.steps.iter().map(line).collect()
}

/// Four decimals; a number for which there are none stays as it is.
fn rounded(value: f64) -> rows::Value<'static> {
    let scaled = (value * 1e4).round();
    // Adding zero makes a negative zero positive.
    let value = if scaled.is_finite() { scaled / 1e4 + 0.0 } else { value };
    rows::Value::Real(value)
}

#[cfg(test)]
mod tests;
