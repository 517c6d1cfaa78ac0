//! The event files of a run, for TensorBoard: one for every time that the run was begun or gone on
//! with.
//!
//! Not here: their format (`arena_train::tensorboard`).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arena_train::metrics::rows::{EvaluationRow, StepRow};
use arena_train::tensorboard::{first_record, scalars_record};

use crate::clock;
use crate::error::{CliError, Complaint};

/// The folder of event files within a run.
const FOLDER: &str = "tensorboard";

/// Writes event files.
pub struct Events {
    folder: PathBuf,
    /// Opened with the first record.
    file: Option<File>,
}

impl Events {
    /// Nothing is written yet.
    pub fn new(run: &Path) -> Events {
        Events { folder: run.join(FOLDER), file: None }
    }

    /// Writes every number of a step.
    ///
    /// # Errors
    /// The disk failed.
    pub fn step(&mut self, row: &StepRow) -> Result<(), CliError> {
        self.scalars(row.step, &row.scalars())
    }

    /// Writes the means of an evaluation.
    ///
    /// # Errors
    /// The disk failed.
    pub fn evaluation(&mut self, row: &EvaluationRow) -> Result<(), CliError> {
        let EvaluationRow { step, agent, field, mode, measures, .. } = row;
        let named = [
            ("reward", measures.reward.value),
            ("deal_rate", measures.deal_rate.value),
            ("bargained_ratio", measures.bargained_ratio.value),
            ("opening_ratio", measures.opening_ratio.value),
            ("overshoot_rate", measures.overshoot_rate.value),
        ];
        let tag = |name: &str| format!("evaluation/{field}/{mode}/{agent}/{name}");
        let scalars: Vec<(String, f64)> =
            named.iter().filter_map(|(name, value)| Some((tag(name), (*value)?))).collect();
        self.scalars(*step, &scalars)
    }

    fn scalars(&mut self, step: u32, scalars: &[(String, f64)]) -> Result<(), CliError> {
        let written = self.append(clock::now()?, step, scalars);
        written.map_err(|error| {
            let failed = format!("cannot write an event file in `{}`", self.folder.display());
            CliError::Infrastructure(Complaint::new(failed, error))
        })
    }

    fn append(&mut self, seconds: u64, step: u32, scalars: &[(String, f64)]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                fs::create_dir_all(&self.folder)?;
                // TensorBoard reads the files of a folder in the order of their names.
                let name = format!("events.out.tfevents.{seconds:010}.{}", std::process::id());
                let mut file = File::create(self.folder.join(name))?;
                file.write_all(&first_record(seconds as f64))?;
                file
            }
        };
        file.write_all(&scalars_record(seconds as f64, step, scalars))?;
        self.file = Some(file);
        Ok(())
    }
}
