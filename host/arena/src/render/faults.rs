//! Who misbehaved, how, and in which matches it can be seen.

use std::fmt::Write;

use arena_core::record::Outcome;
use arena_core::report::Report;

use crate::reading::{Example, Reading};
use crate::render::transcript::{count, movement, thousands};
use crate::screen::{Paint, Tone};

/// Returns a list of the agents that misbehaved, with examples; nothing if none did.
pub fn render(report: &Report, reading: &Reading, paint: Paint) -> String {
    let mut text = String::new();
    for row in &report.rows {
        let faults = row.faults.iter();
        let mut kinds: Vec<String> =
            faults.map(|entry| format!("{} {}", thousands(entry.count), entry.fault)).collect();
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
        let _ = writeln!(text, "  for example {}", describe(example, reading));
    }
    format!("\n{}\n{text}", paint.paint(Tone::Bold, "faults and penalised moves"))
}

fn describe(example: &Example, reading: &Reading) -> String {
    let name = |agent: u16| reading.announcement.agents[usize::from(agent)].name.as_str();
    let [buyer, seller] = example.agents.map(name);
    let what = match example.outcome {
        Outcome::Faulted { by, fault } => format!("the {by} faulted, {fault}"),
        Outcome::Violated { by, action } => {
            format!("the {by} {} beyond its reserve", movement(action))
        }
        Outcome::Deal { .. } | Outcome::Walked { .. } | Outcome::TimedOut => String::new(),
    };
    let (pair, leg) = (example.pair_index, example.leg);
    format!("pair {pair}, leg {leg}: {buyer} bought from {seller}; {what}")
}
