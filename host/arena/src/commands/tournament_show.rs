//! `arena tournament show`: the tables again, or one pair, from the log alone.

use arena_core::config::TournamentConfig;
use arena_core::report::{Report, ReportOptions};
use arena_core::rules::Rules;
use serde_json::{Value, json};

use crate::cli::ShowArgs;
use crate::error::{CliError, Complaint};
use crate::reading::{self, Reading};
use crate::render::{record, report, transcript};
use crate::screen::{self, Paint, Tone};

/// Prints what the log says.
///
/// # Errors
/// The log is missing or damaged, or does not hold the pair.
pub fn run(args: &ShowArgs) -> Result<(), CliError> {
    if let Some(pair_index) = args.pair {
        return show_pair(args, pair_index);
    }
    let reading = reading::read(&args.log)?;
    tables(&reading, &build(&reading), args.full, args.json)
}

/// Computes the report of a log that was read.
pub fn build(reading: &Reading) -> Report {
    Report::build(&reading.announcement, &reading.tally, &ReportOptions::default())
}

/// Prints the tables of a log that was read.
///
/// # Errors
/// Standard output cannot be written.
pub fn tables(reading: &Reading, built: &Report, full: bool, json: bool) -> Result<(), CliError> {
    if json {
        return screen::results(&built.document(reading.is_closed()));
    }
    screen::results(&report::render(built, reading, full, Paint::of_stdout()))
}

fn show_pair(args: &ShowArgs, pair_index: u64) -> Result<(), CliError> {
    let found = reading::find_pair(&args.log, pair_index)?;
    let announcement = &found.announcement;
    let config = TournamentConfig::parse(&announcement.config_toml).map_err(|error| {
        let failed = format!("cannot read the log `{}`", args.log.display());
        CliError::Input(Complaint::new(failed, format!("the announced file: {error}")))
    })?;
    let rules = Rules::new(&config.rules, &config.limits);
    let names = |agents: [u16; 2]| {
        agents.map(|agent| announcement.agents[usize::from(agent)].name.as_str())
    };
    if args.json {
        let legs = found.legs.iter().map(|leg| record::to_json(leg, names(leg.agents)));
        return screen::json(&json!({ "legs": legs.collect::<Vec<Value>>() }));
    }
    let paint = Paint::of_stdout();
    let mut text = String::new();
    for leg in &found.legs {
        let heading = format!("pair {pair_index}, leg {}", leg.leg);
        let names = names(leg.agents);
        let scene = transcript::Scene { names, item: None, rules: &rules, trace: args.trace };
        text.push_str(&format!("{}\n", paint.paint(Tone::Bold, &heading)));
        text.push_str(&transcript::render(leg, &scene, paint));
        text.push('\n');
    }
    screen::results(&text)
}
