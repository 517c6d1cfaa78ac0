//! `arena train plot`: draws the curves of one or several runs on a page.
//!
//! Runs that go on are read as they are.

use std::path::Path;

use arena_train::experiment::LEARNER;
use arena_train::metrics::rows::{EvaluationRow, StepRow};
use arena_train::phase::{self, CurveStep};
use arena_train::plot::{self, Run};
use arena_train::run_folder::LINES_BYTES_MAX;
use serde::de::DeserializeOwned;

use crate::cli::train::TrainPlotArgs;
use crate::error::{CliError, Complaint};
use crate::training::evaluating::EVALUATIONS;
use crate::training::run::STEPS;
use crate::{files, screen};

/// Draws the page.
///
/// # Errors
/// A run's files are missing or damaged, there are too many, or the page cannot be written.
pub fn run(args: &TrainPlotArgs) -> Result<(), CliError> {
    let runs: Result<Vec<Run>, CliError> = args.runs.iter().map(|run| read(run)).collect();
    let mut runs = runs?;
    label_phases(&mut runs);
    let fails = |error: &dyn std::fmt::Display| Complaint::new("cannot draw the runs", error);
    let page = plot::page("Training", LEARNER, &runs);
    let page = page.map_err(|error| CliError::Input(fails(&error)))?;
    std::fs::write(&args.out, page).map_err(|error| {
        let failed = format!("cannot write `{}`", args.out.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    })?;
    screen::remark(&format!("drawn on {}", args.out.display()));
    Ok(())
}

fn read(run: &Path) -> Result<Run, CliError> {
    let steps: Vec<StepRow> = rows(&run.join(STEPS))?;
    let evaluations: Vec<EvaluationRow> = match run.join(EVALUATIONS).exists() {
        true => rows(&run.join(EVALUATIONS))?,
        false => Vec::new(),
    };
    let name = run.file_name().unwrap_or(run.as_os_str()).to_string_lossy().into_owned();
    Ok(Run { name, steps, evaluations, phases: None })
}

/// Labels the phases of runs that are long enough; the noise is that of all of them.
fn label_phases(runs: &mut [Run]) {
    let curve =
        |run: &Run| -> Vec<CurveStep> { run.steps.iter().map(StepRow::curve_step).collect() };
    let curves: Vec<Vec<CurveStep>> = runs.iter().map(curve).collect();
    let Ok(noise) = phase::noise(&curves) else {
        return;
    };
    for (run, curve) in runs.iter_mut().zip(&curves) {
        run.phases = phase::phases(curve, noise).ok();
    }
}

/// Reads a file of rows, the last of which may be being written.
fn rows<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, CliError> {
    let text = files::read_text(path, LINES_BYTES_MAX).map_err(CliError::Input)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            let failed = format!("cannot read `{}`", path.display());
            CliError::Input(Complaint::new(failed, format!("line {}: {error}", number + 1)))
        })
    };
    whole.lines().enumerate().map(read).collect()
}
