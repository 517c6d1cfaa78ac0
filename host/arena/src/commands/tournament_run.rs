//! `arena tournament run`: plays a tournament file and prints its tables.
//!
//! Nothing is written before the file, the catalog and every agent are loaded and checked.

use std::sync::atomic::{AtomicBool, Ordering};

use arena_core::draws::Draws;
use arena_core::entry::DrawEntry;
use arena_runner::event::{RunStatus, Summary};

use crate::cli::RunArgs;
use crate::commands::tournament_show;
use crate::drawing::{self, Drawing};
use crate::error::{CliError, Complaint, EXIT_INTERRUPTED, EXIT_OK};
use crate::preparation::{self, Prepared};
use crate::progress::Progress;
use crate::render::transcript::{count, thousands};
use crate::{engines, interrupt, playing, reading, results, screen, shell};

/// Plays what the log does not hold yet, and prints the tables.
///
/// # Errors
/// An input is wrong, the log is another tournament's, or the machine failed.
pub fn run(args: &RunArgs) -> Result<u8, CliError> {
    // Before anything else, so that a Ctrl-C while agents compile is heard too.
    let stop = interrupt::stop_flag()?;
    let prepared = preparation::prepare(args)?;
    say_what_is_played(&prepared);
    let drawing = drawing::open(&prepared, args)?;
    playing::brief_once(&prepared);
    if stop.load(Ordering::SeqCst) {
        screen::remark(&format!("interrupted before the first match\nnext: {}", same_command()));
        return Ok(EXIT_INTERRUPTED);
    }
    prepared.secrets.keep(&prepared.out_dir)?;
    let draw = match drawing {
        Drawing::Open(draw) => draw,
        Drawing::Awaited(awaited) => return announce(&prepared, &awaited),
    };
    let summary = play(&prepared, draw.as_ref(), &stop)?;
    if summary.status == RunStatus::Interrupted {
        say_how_to_go_on(&summary);
        return Ok(EXIT_INTERRUPTED);
    }
    let reading = reading::read(&prepared.out_dir)?;
    let report = tournament_show::build(&reading);
    results::publish(&prepared.out_dir, &report.document(reading.is_closed()))?;
    tournament_show::tables(&reading, &report, args.full, args.json)?;
    Ok(EXIT_OK)
}

fn say_what_is_played(prepared: &Prepared) {
    screen::remark(&format!(
        "{name}: {agents}, {items}, {matches}, {draws}, {workers}; log in {out}",
        name = prepared.config.name,
        agents = count(prepared.entrants.len() as u64, "agent"),
        items = count(prepared.catalog.entries.len() as u64, "item"),
        matches = count(prepared.schedule.match_count(), "match"),
        draws = match prepared.announcement.draws {
            Draws::PublicSeed(seed) => format!("seed {seed}"),
            Draws::Committed(_) => "committed draws".to_owned(),
        },
        workers = workers(prepared),
        out = prepared.out_dir.display(),
    ));
}

fn workers(prepared: &Prepared) -> String {
    let workers = count(prepared.workers.get() as u64, "worker");
    match engines::slots(&prepared.models) {
        0 => workers,
        slots => format!("{workers} for {} of models", count(slots as u64, "slot")),
    }
}

/// Signs the announcement and says what the draws still need.
fn announce(prepared: &Prepared, awaited: &[String]) -> Result<u8, CliError> {
    let head = playing::announce(prepared)?;
    let vkey = prepared.secrets.key.vkey(&head.origin).map_err(|error| {
        CliError::Infrastructure(Complaint::new("cannot write out the log's key", error))
    })?;
    let mut text = format!(
        "announced and signed; nothing is played before the draws are open\n\
         log: {}\nkey: {vkey}\nawaited:\n",
        prepared.out_dir.display()
    );
    for what in awaited {
        text.push_str(&format!("  {what}\n"));
    }
    text.push_str(&format!("next: {} with these files", same_command()));
    screen::remark(&text);
    Ok(EXIT_OK)
}

fn play(
    prepared: &Prepared,
    draw: Option<&DrawEntry>,
    stop: &AtomicBool,
) -> Result<Summary, CliError> {
    let mut progress = Progress::new(engines::meter(&prepared.models));
    let outcome = playing::play(prepared, draw, stop, &mut |event| progress.show(&event));
    progress.clear();
    outcome
}

fn say_how_to_go_on(summary: &Summary) {
    let done = thousands(summary.counts.pairs_done);
    let all = count(summary.pair_count, "pair");
    let next = same_command();
    screen::remark(&format!(
        "interrupted; the log is sound and holds {done} of {all}\nnext: {next}"
    ));
}

/// Returns the command line that this program was started with.
fn same_command() -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    shell::command_line(words.iter().map(String::as_str))
}
