//! `arena train run`, `sft` and `evaluate`: trains the policy of an experiment.
//!
//! Not here: the loop (`training::run`).

use std::fs;
use std::path::{Path, PathBuf};

use arena_core::config::ConfigError;
use arena_log::key::SigningKey;
use arena_train::experiment::{EXPERIMENT_BYTES_MAX, Experiment};
use arena_train::run_folder::RunFolder;
use serde_json::json;

use crate::cli::train::{TrainBeginArgs, TrainEvaluateArgs};
use crate::error::{CliError, Complaint, EXIT_INTERRUPTED, EXIT_OK};
use crate::secrets::{self, PRIVATE_DIR, Secrets};
use crate::training::evaluating;
use crate::training::run::{Outcome, Run, folder_error};
use crate::training::stage::StageOptions;
use crate::{engines, files, inputs, interrupt, screen, shell};

/// Keeps the folder against which paths of the experiment are resolved.
const FOLDER_FILE: &str = "experiment-folder";
/// The file of the run's key, in its private folder.
const KEY_FILE: &str = "key.pem";
/// Longest path that is kept, in bytes.
const PATH_BYTES_MAX: u64 = 4_096;

/// How far a run is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// To what the first step begins with.
    WarmStart,
    /// To the last step.
    Whole {
        /// Whether the newest evaluation is printed as JSON.
        json: bool,
    },
}

/// Trains, or goes on training.
///
/// # Errors
/// The experiment, a file that it names or the run's folder is wrong, or the machine failed.
pub fn run(args: &TrainBeginArgs, extent: Extent) -> Result<u8, CliError> {
    // Before anything else, so that a Ctrl-C while models load is heard too.
    let stop = interrupt::stop_flag()?;
    let (experiment, text) = read(args)?;
    let key = keep_secrets(args)?;
    let folder = RunFolder::begin(&args.out, &text).map_err(|error| folder_error(&error))?;
    let options = options(args, &args.out)?;
    let mut run = Run::open(&experiment, &folder, options, &stop)?;
    say_what_is_trained(&experiment, &run, &args.out);
    match extent {
        Extent::WarmStart if run.begin()? => {
            let [file, out] = [&args.experiment, &args.out].map(|path| path.to_string_lossy());
            let next = shell::command_line(["train", "run", &*file, "--out", &*out]);
            screen::remark(&format!("the first step can begin\nnext: {next}"));
            Ok(EXIT_OK)
        }
        Extent::Whole { json } if run.train(&key)? == Outcome::Finished => {
            report(&folder, json)?;
            Ok(EXIT_OK)
        }
        Extent::WarmStart | Extent::Whole { .. } => Ok(interrupted()),
    }
}

/// Evaluates the newest policy of a run.
///
/// # Errors
/// As [`run`].
pub fn evaluate(args: &TrainEvaluateArgs) -> Result<u8, CliError> {
    let stop = interrupt::stop_flag()?;
    let folder = RunFolder::open(&args.run).map_err(|error| folder_error(&error))?;
    let text = folder.experiment().map_err(|error| folder_error(&error))?;
    let path = args.run.join("experiment.toml");
    let experiment = Experiment::parse(&text).map_err(|error| explain(&path, error))?;
    let base = args.run.join(PRIVATE_DIR).join(FOLDER_FILE);
    let base = files::read_text(&base, PATH_BYTES_MAX).map_err(CliError::Input)?;
    let options = StageOptions {
        folder: PathBuf::from(base),
        catalog: args.catalog.clone(),
        key: args.run.join(PRIVATE_DIR).join(KEY_FILE),
        workers: args.workers,
        threads: engines::threads(args.threads),
    };
    let mut run = Run::open(&experiment, &folder, options, &stop)?;
    if !run.begin()? || !run.evaluate()? {
        return Ok(interrupted());
    }
    report(&folder, args.json)?;
    Ok(EXIT_OK)
}

/// Reads the experiment, with what the command line puts in place of the file's.
fn read(args: &TrainBeginArgs) -> Result<(Experiment, String), CliError> {
    let bytes_max = EXPERIMENT_BYTES_MAX as u64;
    let text = files::read_text(&args.experiment, bytes_max).map_err(CliError::Config)?;
    let explain = |error| explain(&args.experiment, error);
    let text = Experiment::with(&text, args.seed, args.steps).map_err(explain)?;
    Ok((Experiment::parse(&text).map_err(explain)?, text))
}

fn explain(path: &Path, error: ConfigError) -> CliError {
    CliError::Config(inputs::explain(path, error))
}

/// Finds or makes the key, and keeps what a later command needs to go on.
fn keep_secrets(args: &TrainBeginArgs) -> Result<SigningKey, CliError> {
    let secrets = Secrets::find(None, None, &args.out, false)?;
    secrets.keep(&args.out)?;
    let folder = args.experiment.parent().unwrap_or(Path::new(""));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let path = args.out.join(PRIVATE_DIR).join(FOLDER_FILE);
    let fails = |error: std::io::Error| {
        let failed = format!("cannot write `{}`", path.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    };
    let folder = folder.canonicalize().map_err(fails)?;
    fs::write(&path, folder.to_string_lossy().as_bytes()).map_err(fails)?;
    secrets::read_key(&args.out.join(PRIVATE_DIR).join(KEY_FILE)).map_err(CliError::Input)
}

fn options(args: &TrainBeginArgs, out: &Path) -> Result<StageOptions, CliError> {
    let folder = args.experiment.parent().unwrap_or(Path::new("")).to_owned();
    Ok(StageOptions {
        folder,
        catalog: args.catalog.clone(),
        key: out.join(PRIVATE_DIR).join(KEY_FILE),
        workers: args.workers,
        threads: engines::threads(args.threads),
    })
}

fn say_what_is_trained(experiment: &Experiment, run: &Run<'_>, out: &Path) {
    let train = &experiment.train;
    let matches = train.items * train.group_size * train.opponents.len() as u32;
    let done = match run.step() {
        0 => String::new(),
        done => format!("{done} done, "),
    };
    screen::remark(&format!(
        "{name}: seed {seed}, {steps} steps of {matches} matches, {done}run in {out}",
        name = experiment.name,
        seed = experiment.seed,
        steps = train.steps,
        out = out.display(),
    ));
}

fn interrupted() -> u8 {
    screen::remark("interrupted; the same command goes on");
    EXIT_INTERRUPTED
}

/// Prints the rows of the newest evaluation.
fn report(folder: &RunFolder, json: bool) -> Result<(), CliError> {
    let rows = evaluating::read_rows(folder)?;
    let newest = rows.iter().map(|row| row.step).max();
    let rows: Vec<_> = rows.iter().filter(|row| Some(row.step) == newest).collect();
    if json {
        return screen::json(&json!({ "run": folder.path(), "evaluation": rows }));
    }
    let mut text = String::new();
    for row in rows {
        let value =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        text.push_str(&format!(
            "{:<8} {:<16} {:<16} reward {} [{}, {}]\n",
            row.mode,
            row.agent,
            row.field,
            value(row.measures.reward.value),
            value(row.measures.reward.low),
            value(row.measures.reward.high),
        ));
    }
    let folder = folder.path().to_string_lossy();
    let next = shell::command_line(["train", "plot", &*folder]);
    text.push_str(&format!("next: {next}\n"));
    screen::results(&text)
}
