//! `arena train show`: what one or several runs came to, from their folders alone.
//!
//! Runs that go on are read as they are. Nothing is verified.

use std::path::{Path, PathBuf};

use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::reader::{Access, LogReader};
use arena_train::checkpoint::newest_policy;
use arena_train::experiment::{EXPERIMENT_BYTES_MAX, Experiment};
use arena_train::runs::{self, Run};
use arena_train::summary::Summary;

use crate::cli::train::TrainShowArgs;
use crate::error::{CliError, Complaint};
use crate::render::rows::csv_head;
use crate::render::runs::{CURVES, ShownRun, curves, json, text};
use crate::screen::{self, Paint};
use crate::training::reading;
use crate::training::run::STEPS;
use crate::{files, inputs, shell};

/// Most runs that are shown together.
const RUNS_MAX: usize = 64;

/// Prints what was asked for.
///
/// # Errors
/// A folder is no run, its files are damaged, or there are too many.
pub fn run(args: &TrainShowArgs) -> Result<(), CliError> {
    let found = args.runs.len();
    if found > RUNS_MAX {
        let fact = format!("`{found}` runs, shown are `1` to `{RUNS_MAX}`");
        return Err(CliError::Config(Complaint::new("cannot show the runs", fact)));
    }
    let read: Result<Vec<Run>, CliError> =
        args.runs.iter().map(|path| read(path, &args.runs)).collect();
    let mut read = read?;
    let noise = runs::label_phases(&mut read);
    let shown: Result<Vec<ShownRun>, CliError> =
        args.runs.iter().zip(read).map(|(path, run)| show(path, run)).collect();
    let shown = shown?;
    if args.json {
        return screen::json(&json(&shown, noise));
    }
    if args.csv {
        screen::results(&csv_head(CURVES))?;
        return shown.iter().try_for_each(|shown| screen::results(&curves(shown)));
    }
    let tables = text(&shown, noise, Paint::of_stdout());
    screen::results(&format!("{tables}\n{}", next(&args.runs)))
}

/// Reads a run that may have no step yet. Runs whose folders are called alike have their paths as
/// names.
fn read(path: &Path, all: &[PathBuf]) -> Result<Run, CliError> {
    let name = reading::name(path);
    let is_alone = all.iter().filter(|other| reading::name(other) == name).count() == 1;
    let name = if is_alone { name } else { path.to_string_lossy().into_owned() };
    let steps = match path.join(STEPS).exists() {
        true => reading::steps(path)?,
        false => Vec::new(),
    };
    Ok(Run { name, steps, evaluations: reading::evaluations(path)?, phases: None })
}

/// Adds what a run's folder says besides its rows.
fn show(path: &Path, run: Run) -> Result<ShownRun, CliError> {
    let file = path.join("experiment.toml");
    let text = files::read_text(&file, EXPERIMENT_BYTES_MAX as u64).map_err(|complaint| {
        let hint = "a run is a folder that `arena train run EXPERIMENT --out RUN` wrote";
        CliError::Input(complaint.hint(hint))
    })?;
    let experiment =
        Experiment::parse(&text).map_err(|error| CliError::Input(inputs::explain(&file, error)))?;
    let policy = newest_policy(path).map_err(|error| fails(path, &error))?;
    Ok(ShownRun {
        summary: Summary::of(&run),
        run,
        experiment: experiment.name,
        seed: experiment.seed,
        steps_wanted: experiment.train.steps,
        policy,
        ledger: ledger(path)?,
    })
}

/// Returns the size and root of the newest head of a run's ledger, if it has one.
fn ledger(path: &Path) -> Result<Option<(u64, Hash)>, CliError> {
    let folder = path.join("ledger");
    if !folder.exists() {
        return Ok(None);
    }
    match LogReader::open(&folder, Access::Public) {
        Ok(reader) => Ok(Some((reader.head().size, reader.head().root))),
        Err(LogError::Missing { .. } | LogError::NoHead { .. }) => Ok(None),
        Err(error) => Err(fails(path, &error)),
    }
}

fn fails(path: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::Input(Complaint::new(format!("cannot show the run `{}`", path.display()), error))
}

fn next(runs: &[PathBuf]) -> String {
    let paths: Vec<_> = runs.iter().map(|path| path.to_string_lossy()).collect();
    let key = runs[0].join("ledger/log.vkey");
    let key = key.to_string_lossy();
    let audit = shell::command_line(["audit", &*paths[0], "--key", &*key]);
    let plot = ["train", "plot"].into_iter().chain(paths.iter().map(|path| &**path));
    let plot = shell::command_line(plot);
    format!("nothing is checked here: {audit}\nnext: {plot}\n")
}
