//! Reads what runs say of themselves, for those who look at them.
//!
//! No lock is taken: runs that go on are read as they are. Every file is bounded.
//!
//! Not here: a run that goes on (`training::run`).

use std::path::Path;

use arena_train::metrics::rows::{EvaluationRow, StepRow};
use arena_train::phase::STEPS_MAX;
use arena_train::run_folder::LINES_BYTES_MAX;
use arena_train::runs::EVALUATIONS_MAX;
use serde::de::DeserializeOwned;

use crate::error::{CliError, Complaint};
use crate::files;
use crate::training::evaluating::EVALUATIONS;
use crate::training::run::STEPS;

/// Returns what a run is called: the last part of its path.
pub fn name(run: &Path) -> String {
    run.file_name().unwrap_or(run.as_os_str()).to_string_lossy().into_owned()
}

/// Reads a run's steps.
///
/// # Errors
/// The file is missing, damaged or too long.
pub fn steps(run: &Path) -> Result<Vec<StepRow>, CliError> {
    rows(&run.join(STEPS), STEPS_MAX)
}

/// Reads a run's evaluations; none where none was made yet.
///
/// # Errors
/// The file is damaged or too long.
pub fn evaluations(run: &Path) -> Result<Vec<EvaluationRow>, CliError> {
    match run.join(EVALUATIONS).exists() {
        true => rows(&run.join(EVALUATIONS), EVALUATIONS_MAX),
        false => Ok(Vec::new()),
    }
}

/// Reads a file of at most so many rows, the last of which may be being written.
fn rows<T: DeserializeOwned>(path: &Path, count_max: usize) -> Result<Vec<T>, CliError> {
    let text = files::read_text(path, LINES_BYTES_MAX).map_err(CliError::Input)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let fails = |number: usize, fact: &dyn std::fmt::Display| {
        let failed = format!("cannot read `{}`", path.display());
        CliError::Input(Complaint::new(failed, format!("line {}: {fact}", number + 1)))
    };
    let read = |(number, line): (usize, &str)| {
        if number >= count_max {
            return Err(fails(number, &format!("there may be `{count_max}`")));
        }
        serde_json::from_str(line).map_err(|error| fails(number, &error))
    };
    whole.lines().enumerate().map(read).collect()
}
