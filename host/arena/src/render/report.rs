//! A tournament's tables. Every number comes out of the report; what has no value is `-`.

use std::fmt::Write;

use arena_core::record::Outcome;
use arena_core::report::{Report, Row};
use arena_core::statistics::metric::Metric;

use crate::reading::{Example, Reading};
use crate::render::table::{Align, Cell, Table};
use crate::render::transcript::{count, movement, thousands};
use crate::screen::{Paint, Tone};

/// Agents up to which everyone's result against everyone is printed.
const HEAD_TO_HEAD_MAX: usize = 14;

/// Returns all tables of a tournament, the line before them and what to run next.
pub fn render(report: &Report, reading: &Reading, full: bool, paint: Paint) -> String {
    let mut text = heading(report, reading, paint);
    text.push('\n');
    text.push_str(&standings(report, paint));
    text.push_str(LEGEND);
    if report.rows.len() <= HEAD_TO_HEAD_MAX {
        let _ = writeln!(
            text,
            "\n{}",
            paint.paint(Tone::Bold, "mean reward of row against column")
        );
        text.push_str(&head_to_head(report, paint));
    }
    if full {
        let _ = writeln!(
            text,
            "\n{}",
            paint.paint(Tone::Bold, "every metric, mean per match")
        );
        text.push_str(&every_metric(report, paint));
    }
    text.push_str(&misbehaviour(report, reading, paint));
    for warning in &report.warnings {
        let _ = writeln!(text, "{} {warning}", paint.paint(Tone::Note, "note:"));
    }
    text.push_str(&next(reading, full));
    text
}

const LEGEND: &str = "\
  SE+, AGR+: surplus share and agreement where a deal is possible; FAGR-: agreement where none is
";

fn heading(report: &Report, reading: &Reading, paint: Paint) -> String {
    let header = &report.header;
    let mut text = format!(
        "{}: {}, {}, {}, seed {}\n",
        paint.paint(Tone::Bold, &header.tournament),
        count(header.agent_count as u64, "agent"),
        count(u64::from(header.item_count), "item"),
        count(header.matches_played, "match"),
        header.seed
    );
    if !reading.closed {
        let (played, all) = (
            thousands(header.pairs_played),
            count(header.pair_count, "pair"),
        );
        let line = format!("unfinished: {played} of {all}; the order may still change");
        let _ = writeln!(text, "{}", paint.paint(Tone::Bad, &line));
    }
    if let Some(torn) = &reading.torn {
        let _ = writeln!(text, "{torn}; the same run goes on from there");
    }
    let voids = header.voids_model_provider + header.voids_host;
    if voids > 0 {
        let _ = writeln!(
            text,
            "{} played again, because the host or a model failed",
            count(voids, "pair")
        );
    }
    text
}

fn standings(report: &Report, paint: Paint) -> String {
    let mut table = Table::new(&[
        ("#", Align::Right),
        ("agent", Align::Left),
        ("reward", Align::Right),
        ("buying", Align::Right),
        ("selling", Align::Right),
        ("SE+", Align::Right),
        ("deals", Align::Right),
        ("AGR+", Align::Right),
        ("FAGR-", Align::Right),
        ("turns", Align::Right),
        ("faults", Align::Right),
    ]);
    for row in &report.rows {
        table.row(standing(row));
    }
    table.render(paint)
}

fn standing(row: &Row) -> Vec<Cell> {
    let faults: u64 = row.faults.iter().map(|entry| entry.count).sum();
    let tone = if faults > 0 { Tone::Bad } else { Tone::Plain };
    vec![
        row.rank.to_string().into(),
        row.name.as_str().into(),
        signed(row.metrics.get(Metric::Reward)).into(),
        signed(row.buyer.get(Metric::Reward)).into(),
        signed(row.seller.get(Metric::Reward)).into(),
        decimal(row.metrics.get(Metric::SurplusShare)).into(),
        percent(row.metrics.get(Metric::DealRate)).into(),
        percent(row.metrics.get(Metric::Agreement)).into(),
        percent(row.metrics.get(Metric::FalseAgreement)).into(),
        tenth(row.metrics.get(Metric::Turns)).into(),
        Cell::toned(thousands(faults), tone),
    ]
}

fn head_to_head(report: &Report, paint: Paint) -> String {
    let numbers: Vec<String> = report.rows.iter().map(|row| row.rank.to_string()).collect();
    let mut heads = vec![("#", Align::Right), ("agent", Align::Left)];
    heads.extend(numbers.iter().map(|number| (number.as_str(), Align::Right)));
    let mut table = Table::new(&heads);
    for (row, meetings) in report.rows.iter().zip(&report.head_to_head) {
        let mut cells = vec![row.rank.to_string().into(), row.name.as_str().into()];
        cells.extend(meetings.iter().map(|met| {
            let reward = met.as_ref().map(|meeting| meeting.reward);
            Cell::from(reward.map_or_else(|| "-".to_owned(), |value| format!("{value:+.2}")))
        }));
        table.row(cells);
    }
    table.render(paint)
}

/// Metrics are rows here and agents columns, since there are more metrics than fit in a line.
fn every_metric(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    for rows in report.rows.chunks(AGENTS_PER_TABLE) {
        let mut heads = vec![("metric", Align::Left)];
        heads.extend(rows.iter().map(|row| (row.name.as_str(), Align::Right)));
        let mut table = Table::new(&heads);
        for metric in Metric::ALL {
            let mut cells = vec![Cell::from(metric.name())];
            cells.extend(
                rows.iter()
                    .map(|row| Cell::from(plain(row.metrics.get(metric)))),
            );
            table.row(cells);
        }
        text.push_str(&table.render(paint));
        text.push('\n');
    }
    text
}

/// How many agents stand side by side in the table of every metric.
const AGENTS_PER_TABLE: usize = 6;

fn misbehaviour(report: &Report, reading: &Reading, paint: Paint) -> String {
    let mut text = String::new();
    for row in &report.rows {
        let mut kinds: Vec<String> = row
            .faults
            .iter()
            .map(|entry| format!("{} {}", entry.count, entry.fault))
            .collect();
        if row.violations > 0 {
            kinds.push(count(row.violations, "penalised move"));
        }
        if !kinds.is_empty() {
            let matches = count(row.match_count, "match");
            let _ = writeln!(text, "  {}: {} in {matches}", row.name, kinds.join(", "));
        }
    }
    if text.is_empty() {
        return text;
    }
    for example in &reading.examples {
        let _ = writeln!(text, "  {}", describe(example, reading));
    }
    format!(
        "\n{}\n{text}",
        paint.paint(Tone::Bold, "faults and penalised moves")
    )
}

fn describe(example: &Example, reading: &Reading) -> String {
    let name = |agent: u16| {
        reading.announcement.agents[usize::from(agent)]
            .name
            .as_str()
    };
    let [buyer, seller] = example.agents.map(name);
    let what = match example.outcome {
        Outcome::Faulted { by, fault } => format!("the {by} faulted, {fault}"),
        Outcome::Violated { by, action } => {
            format!("the {by} {} beyond its reserve", movement(action))
        }
        _ => String::new(),
    };
    let (pair, leg) = (example.pair_index, example.leg);
    format!("pair {pair}, leg {leg}: {buyer} bought from {seller}; {what}")
}

fn next(reading: &Reading, full: bool) -> String {
    let log = reading.path.parent().unwrap_or(&reading.path).display();
    let pair = reading
        .examples
        .first()
        .map_or(0, |example| example.pair_index);
    let more = if full { "--json" } else { "--full" };
    format!(
        "\nlog: {}\nnext: arena tournament show {log} {more}, or --pair {pair} to read a game\n",
        reading.path.display()
    )
}

fn decimal(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

fn signed(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:+.3}"))
}

fn tenth(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}%", value * 100.0))
}

/// Writes a number of any size in a few digits.
fn plain(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 1_000.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.3}"),
    }
}
