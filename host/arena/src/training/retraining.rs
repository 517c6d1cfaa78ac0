//! Repeats every update of a run from its logs, and compares the policies that come of it with
//! those that the ledger names.
//!
//! On the device `cpu` updates are the same to the bit on every machine; on others this may fail
//! where nothing is wrong.
//!
//! Not here: whether the logs are honest (`auditing`).

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use arena_audit::{Finding, Verdict};
use arena_core::config::models::Device;
use arena_core::hexadecimal::hex;
use arena_core::ledger::{LedgerEntry, LedgerOpening, StepEntry};
use arena_log::reader::{Access, LogReader};
use arena_train::experiment::{Experiment, Occasion};
use arena_train::run_folder::RunFolder;
use arena_train::trainer::Trainer;

use crate::advance::Advance;
use crate::engines;
use crate::error::{CliError, Complaint};
use crate::secrets;
use crate::training::policy::Policy;
use crate::training::run::folder_error;
use crate::training::{account, stage, updates};

/// Repeats the updates of the run in a folder, whose experiment this is.
///
/// # Errors
/// A log or the policy's weights cannot be read, or the machine failed.
pub fn run(folder: &Path, experiment: &Experiment, text: &str) -> Result<Verdict, CliError> {
    let (opening, steps) = ledger(&folder.join("ledger"))?;
    let scratch = Scratch::new()?;
    let begun = RunFolder::begin(&scratch.path, text).map_err(|error| folder_error(&error))?;
    let resolve = |path: &str| folder.join(path);
    let policy = Policy::find(experiment, &begun, &resolve, engines::threads(None))?;
    let mut repeated = Repeated::new(experiment, &scratch, policy)?;
    if let Some(finding) = repeated.begin(folder, &opening)? {
        return Ok(failed(finding));
    }
    let mut advance = Advance::new("repeated", "update", steps.len() as u64);
    for (done, entry) in (1..).zip(&steps) {
        if let Some(finding) = repeated.step(folder, entry)? {
            return Ok(failed(finding));
        }
        advance.show(done, steps.len() as u64);
    }
    let count = steps.len();
    let device = experiment.device.name();
    Ok(Verdict::Verified { detail: format!("{count} updates repeated on `{device}`") })
}

fn failed(finding: Finding) -> Verdict {
    Verdict::Failed { findings: vec![finding], finding_count: 1 }
}

/// A run that is repeated.
struct Repeated<'a> {
    experiment: &'a Experiment,
    scratch: &'a Scratch,
    policy: Policy<'a>,
    trainer: Trainer,
}

impl<'a> Repeated<'a> {
    fn new(
        experiment: &'a Experiment,
        scratch: &'a Scratch,
        policy: Policy<'a>,
    ) -> Result<Repeated<'a>, CliError> {
        let trainer = Trainer::new(policy.learner()?).map_err(|error| {
            CliError::Infrastructure(Complaint::new("cannot repeat the updates", error))
        })?;
        Ok(Repeated { experiment, scratch, policy, trainer })
    }

    /// Makes what the first step begins with.
    fn begin(
        &mut self,
        folder: &Path,
        opening: &LedgerOpening,
    ) -> Result<Option<Finding>, CliError> {
        if let Some(config) = &self.experiment.warm_start {
            let records = stage::read(&folder.join(Occasion::WarmStart.folder()))?.records;
            let facts = self.policy.facts();
            let mut advance = Advance::new("repeated", "update of the warm start", 0);
            let mut tell = |done: u32, all: u32, _| {
                advance.show(done.into(), all.into());
                true
            };
            let trainer = &mut self.trainer;
            updates::imitate(self.experiment, config, trainer, &records, facts, &mut tell)?;
        }
        self.trainer.refer_to(self.trainer.state().values.clone());
        self.compare(0, "the policy before the first step", opening.policy_sha256)
    }

    fn step(&mut self, folder: &Path, entry: &StepEntry) -> Result<Option<Finding>, CliError> {
        let step = entry.step;
        let records = stage::read(&folder.join(Occasion::Step { step }.folder()))?.records;
        let facts = self.policy.facts();
        let account = account::account(self.experiment, step, &records, facts)?;
        updates::learn(self.experiment, step, &mut self.trainer, &records, &account, facts)?;
        let what = format!("the policy after step {step}");
        self.compare(step, &what, entry.policy_after)
    }

    /// Compares the policy with the one that the ledger names in an entry.
    fn compare(
        &self,
        entry: u32,
        what: &str,
        wanted: [u8; 32],
    ) -> Result<Option<Finding>, CliError> {
        let folder = self.scratch.path.join("policy");
        let fails = |error: &dyn std::fmt::Display| {
            CliError::Infrastructure(Complaint::new("cannot repeat the updates", error))
        };
        fs::create_dir(&folder).map_err(|error| fails(&error))?;
        let parameters = self.trainer.learner().parameters();
        let written = self.policy.write(&folder, parameters, &self.trainer.state().values);
        written.map_err(|error| folder_error(&error))?;
        let found = self.policy.sha256(&folder)?;
        fs::remove_dir_all(&folder).map_err(|error| fails(&error))?;
        let finding = || {
            let mut what = what.to_owned();
            if self.experiment.device != Device::Cpu {
                what.push_str(", on a device that may compute otherwise");
            }
            Finding::new(what, hex(&wanted), hex(&found)).at(entry.into())
        };
        Ok((found != wanted).then(finding))
    }
}

/// Reads what a ledger opens with, and its steps.
fn ledger(folder: &Path) -> Result<(LedgerOpening, Vec<StepEntry>), CliError> {
    let fails = |error: &dyn std::fmt::Display| {
        let failed = format!("cannot read the ledger in `{}`", folder.display());
        CliError::Input(Complaint::new(failed, error))
    };
    let mut reader = LogReader::open(folder, Access::Public).map_err(|error| fails(&error))?;
    let (mut opening, mut steps) = (None, Vec::new());
    while let Some(record) = reader.next_record().map_err(|error| fails(&error))? {
        match LedgerEntry::decode(record.entry).map_err(|error| fails(&error))? {
            LedgerEntry::Opening(entry) => opening = Some(entry),
            LedgerEntry::Step(entry) => steps.push(entry),
            LedgerEntry::Close(_) => {}
        }
    }
    Ok((opening.ok_or_else(|| fails(&"it has no opening"))?, steps))
}

/// A folder that is removed again.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Result<Scratch, CliError> {
        let name = hex(&secrets::random_value()?[..8]);
        let path = std::env::temp_dir().join(format!("arena-retrain-{name}"));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            let failed = format!("cannot create `{}`", path.display());
            CliError::Infrastructure(Complaint::new(failed, error))
        })?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left there is in nobody's way.
        let _ = fs::remove_dir_all(&self.path);
    }
}
