//! `arena train plot`: draws the curves of one or several runs on a page.
//!
//! Runs that go on are read as they are.

use std::path::Path;

use arena_train::experiment::LEARNER;
use arena_train::plot;
use arena_train::runs::{self, Run};

use crate::cli::train::TrainPlotArgs;
use crate::error::{CliError, Complaint};
use crate::screen;
use crate::training::reading;

/// Draws the page.
///
/// # Errors
/// A run's files are missing or damaged, there are too many, or the page cannot be written.
pub fn run(args: &TrainPlotArgs) -> Result<(), CliError> {
    let runs: Result<Vec<Run>, CliError> = args.runs.iter().map(|run| read(run)).collect();
    let mut runs = runs?;
    runs::label_phases(&mut runs);
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
    let (steps, evaluations) = (reading::steps(run)?, reading::evaluations(run)?);
    Ok(Run { name: reading::name(run), steps, evaluations, phases: None })
}
