//! The loop of a run, and how it goes on where it was stopped.
//!
//! What a step did is durable in this order: its log, the checkpoint, the ledger's entry, its line.
//! Whatever is missing behind a checkpoint is made again from the log, so a run can be killed
//! between any two of them.
//!
//! Not here: playing (`stage`), the policy's files (`policy`), screens (`progress`).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arena_log::key::SigningKey;
use arena_model::learner::Parameter;
use arena_runner::ledger::{Ledger, Step};
use arena_train::checkpoint::Checkpoint;
use arena_train::experiment::{EvaluateConfig, Experiment, Mode, Occasion, WarmStartConfig};
use arena_train::metrics::rows::{EvaluationRow, LearningMetrics, PaceMetrics, StepRow};
use arena_train::run_folder::{FolderError, RunFolder};
use arena_train::steps::PolicyFacts;
use arena_train::trainer::{Report, Trainer};
use sha2::{Digest, Sha256};

use crate::error::{CliError, Complaint};
use crate::training::account::{self, Account};
use crate::training::evaluating::{self, Measured};
use crate::training::events::Events;
use crate::training::policy::Policy;
use crate::training::progress::Progress;
use crate::training::stage::{self, PlayedLog, Stage, StageOptions};
use crate::training::updates;

/// The file of all steps' lines.
pub const STEPS: &str = "steps.jsonl";

/// Whether a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every step is done.
    Finished,
    /// It was told to stop. The same command goes on.
    Interrupted,
}

/// A run under way.
pub struct Run<'a> {
    experiment: &'a Experiment,
    folder: &'a RunFolder,
    stop: &'a AtomicBool,
    policy: Policy<'a>,
    facts: PolicyFacts,
    stage: Stage<'a>,
    trainer: Trainer,
    parameters: Vec<Parameter>,
    progress: Progress,
    events: Events,
    /// Steps that are done.
    step: u32,
    policy_sha256: [u8; 32],
}

/// Makes an error of the run's folder one of the program's.
pub fn folder_error(error: &FolderError) -> CliError {
    let complaint = Complaint::new("cannot go on with the run", error);
    match error {
        FolderError::Io { .. } => CliError::Infrastructure(complaint),
        FolderError::Locked { .. } => CliError::Infrastructure(complaint.hint("wait for it")),
        FolderError::OtherExperiment { .. } | FolderError::Foreign { .. } => {
            CliError::Config(complaint.hint("choose another folder with `--out`"))
        }
        FolderError::Damaged { .. } => CliError::Input(complaint),
    }
}

fn fails(error: &dyn std::fmt::Display) -> CliError {
    CliError::Infrastructure(Complaint::new("cannot go on with the run", error))
}

impl<'a> Run<'a> {
    /// Loads what the experiment names, and goes on from the newest checkpoint if there is one.
    ///
    /// # Errors
    /// The policy or a checkpoint is missing or wrong, or the machine failed.
    pub fn open(
        experiment: &'a Experiment,
        folder: &'a RunFolder,
        options: StageOptions,
        stop: &'a AtomicBool,
    ) -> Result<Run<'a>, CliError> {
        let base = options.folder.clone();
        let resolve = |path: &str| base.join(path);
        let policy = Policy::find(experiment, folder, &resolve, options.threads)?;
        let trainer = Trainer::new(policy.learner()?).map_err(|error| fails(&error))?;
        let parameters = trainer.learner().parameters().to_vec();
        let facts = policy.facts();
        let stage = Stage::new(experiment, folder, options);
        let progress = Progress::new(experiment.train.steps);
        let newest = folder.newest_checkpoint(&parameters).map_err(|error| folder_error(&error))?;
        let mut run = Run {
            experiment,
            folder,
            stop,
            policy,
            facts,
            stage,
            trainer,
            parameters,
            progress,
            events: Events::new(folder.path()),
            step: 0,
            policy_sha256: [0; 32],
        };
        if let Some(checkpoint) = newest {
            run.go_on(checkpoint)?;
        }
        Ok(run)
    }

    /// Does everything that the experiment says and the folder does not hold yet.
    ///
    /// # Errors
    /// A file is damaged, a tournament cannot be played, nothing can be learned from it, or the
    /// machine failed.
    pub fn train(&mut self, key: &SigningKey) -> Result<Outcome, CliError> {
        if !self.begin()? {
            return Ok(Outcome::Interrupted);
        }
        let mut ledger = self.open_ledger(key)?;
        self.repair(&mut ledger)?;
        loop {
            if self.evaluation_is_due() && !self.evaluate()? {
                return Ok(Outcome::Interrupted);
            }
            if self.step == self.experiment.train.steps {
                break;
            }
            if self.stop.load(Ordering::SeqCst) || !self.take_step(&mut ledger)? {
                return Ok(Outcome::Interrupted);
            }
        }
        if !ledger.is_closed() {
            ledger.close().map_err(|error| fails(&error))?;
        }
        Ok(Outcome::Finished)
    }

    /// Makes what the first step begins with. Returns false where it was told to stop.
    ///
    /// # Errors
    /// As [`Run::train`].
    pub fn begin(&mut self) -> Result<bool, CliError> {
        let steps = self.folder.checkpoint_steps().map_err(|error| folder_error(&error))?;
        if steps.is_empty() {
            if let Some(config) = &self.experiment.warm_start
                && !self.warm_up(config)?
            {
                return Ok(false);
            }
            self.write_checkpoint(0, "")?;
        }
        if self.experiment.train.loss.kl > 0.0 {
            let first = self.folder.checkpoint(0, &self.parameters);
            let first = first.map_err(|error| folder_error(&error))?;
            self.trainer.refer_to(first.state.values);
        }
        Ok(true)
    }

    fn go_on(&mut self, checkpoint: Checkpoint) -> Result<(), CliError> {
        let Checkpoint { step, policy_sha256, state, .. } = checkpoint;
        self.trainer.resume(state).map_err(|error| fails(&error))?;
        (self.step, self.policy_sha256) = (step, policy_sha256);
        Ok(())
    }

    /// Learns from a teacher.
    fn warm_up(&mut self, config: &WarmStartConfig) -> Result<bool, CliError> {
        let teacher = self.policy.teacher()?;
        let occasion = Occasion::WarmStart;
        let played = self.stage.play(occasion, [0; 32], &teacher, self.stop, &mut |_| {})?;
        let Some(PlayedLog { records, .. }) = played else {
            return Ok(false);
        };
        let (stop, progress) = (self.stop, &mut self.progress);
        let mut tell = |done, all, loss| {
            progress.imitation(done, all, loss);
            !stop.load(Ordering::SeqCst)
        };
        let trainer = &mut self.trainer;
        let experiment = self.experiment;
        updates::imitate(experiment, config, trainer, &records, self.facts, &mut tell)
    }

    /// Plays a step, learns from it and writes it down. Returns false where it was told to stop.
    fn take_step(&mut self, ledger: &mut Ledger) -> Result<bool, CliError> {
        let step = self.step + 1;
        let started = Instant::now();
        let answering = self.policy.answering(&self.folder.policy(self.step))?;
        let occasion = Occasion::Step { step };
        let sha256 = self.policy_sha256;
        let Some(played) = self.stage.play(occasion, sha256, &answering, self.stop, &mut |_| {})?
        else {
            return Ok(false);
        };
        let rollout_seconds = started.elapsed().as_secs_f64();
        let account = account::account(self.experiment, step, &played.records, self.facts)?;
        let updating = Instant::now();
        let (experiment, trainer) = (self.experiment, &mut self.trainer);
        let records = &played.records;
        let report = updates::learn(experiment, step, trainer, records, &account, self.facts)?;
        let update_seconds = updating.elapsed().as_secs_f64();
        let seconds = started.elapsed().as_secs_f64();
        let row = StepRow {
            step,
            play: account.play.clone(),
            learning: self.learning(step, &account, &report),
            pace: PaceMetrics {
                seconds: Some(seconds),
                rollout_seconds: Some(rollout_seconds),
                update_seconds: Some(update_seconds),
                tokens_per_second: Some(report.token_count as f64 / seconds),
            },
        };
        let line = serde_json::to_string(&row).expect("a row is plain numbers");
        self.write_checkpoint(step, &line)?;
        self.account_for(ledger, &played, &account, &line)?;
        self.folder
            .prune_checkpoints(self.experiment.checkpoint_every)
            .map_err(|error| folder_error(&error))?;
        self.events.step(&row)?;
        self.progress.step(&row);
        Ok(true)
    }

    fn learning(&self, step: u32, account: &Account, report: &Report) -> LearningMetrics {
        let advantages = &account.advantages;
        let groups = u64::from(advantages.group_count);
        let level = f64::from(advantages.level_groups);
        let mut learning = LearningMetrics {
            groups,
            level_group_share: (groups > 0).then(|| level / groups as f64),
            learning_rate: Some(self.experiment.learning_rate(step)),
            gradient_norm: (report.update_count > 0).then_some(report.gradient_norm),
            ..LearningMetrics::default()
        };
        learning.take(&report.statistics);
        learning
    }

    fn write_checkpoint(&mut self, step: u32, line: &str) -> Result<(), CliError> {
        let (policy, parameters) = (&self.policy, &self.parameters);
        let state = self.trainer.state();
        let mut write = |folder: &Path| {
            policy.write(folder, parameters, &state.values)?;
            policy.sha256(folder).map_err(|error| FolderError::Damaged {
                path: folder.to_owned(),
                detail: error.complaint().map_or(String::new(), ToString::to_string),
            })
        };
        let written = self.folder.write_checkpoint(step, line, state, parameters, &mut write);
        self.policy_sha256 = written.map_err(|error| folder_error(&error))?;
        self.step = step;
        Ok(())
    }

    /// Writes a step into the ledger and its line into the file of lines.
    fn account_for(
        &self,
        ledger: &mut Ledger,
        played: &PlayedLog,
        account: &Account,
        line: &str,
    ) -> Result<(), CliError> {
        if ledger.step_count() < self.step {
            let step = Step {
                tournament: played.tournament,
                head: &played.head,
                policy_after: self.policy_sha256,
                matches: account.matches(),
                dropped_groups: account.advantages.dropped_groups,
                learning_rate: self.experiment.learning_rate(self.step),
            };
            ledger.append(step).map_err(|error| fails(&error))?;
        }
        let before = self.step as usize - 1;
        self.folder.write_line(STEPS, before, line).map_err(|error| folder_error(&error))
    }

    fn open_ledger(&self, key: &SigningKey) -> Result<Ledger, CliError> {
        let text = self.folder.experiment().map_err(|error| folder_error(&error))?;
        let first = self.folder.checkpoint(0, &self.parameters);
        let first = first.map_err(|error| folder_error(&error))?;
        let opening = account::opening(
            self.experiment,
            Sha256::digest(text.as_bytes()).into(),
            key.public().to_bytes(),
            first.policy_sha256,
            self.trainer.learner().description(),
        );
        Ledger::open(&self.folder.ledger(), &opening, key).map_err(|error| {
            let failed = format!("cannot go on with `{}`", self.folder.ledger().display());
            CliError::Input(Complaint::new(failed, error))
        })
    }

    /// Makes up for what a run that was killed left out behind its last checkpoint.
    fn repair(&self, ledger: &mut Ledger) -> Result<(), CliError> {
        let done = ledger.step_count();
        if done > self.step || done + 1 < self.step {
            let failed = format!("cannot go on with `{}`", self.folder.path().display());
            let fact = format!("the ledger has {done} steps, the checkpoint {}", self.step);
            return Err(CliError::Input(Complaint::new(failed, fact)));
        }
        if self.step == 0 {
            return Ok(());
        }
        let played = stage::read(&self.folder.log(Occasion::Step { step: self.step }))?;
        let account = account::account(self.experiment, self.step, &played.records, self.facts)?;
        let checkpoint = self.folder.checkpoint(self.step, &self.parameters);
        let line = checkpoint.map_err(|error| folder_error(&error))?.line;
        self.account_for(ledger, &played, &account, &line)
    }

    fn evaluation_is_due(&self) -> bool {
        let last = self.step == self.experiment.train.steps;
        let every = self.experiment.evaluate.as_ref().map(|config| config.every);
        every.is_some_and(|every| last || self.step.is_multiple_of(every))
    }

    /// Evaluates the policy in every mode that there is no row of. Returns false where it was told
    /// to stop.
    ///
    /// # Errors
    /// As [`Run::train`].
    pub fn evaluate(&mut self) -> Result<bool, CliError> {
        let experiment = self.experiment;
        let Some(config) = &experiment.evaluate else {
            let fact = "the experiment has no `[evaluate]`";
            return Err(CliError::Config(Complaint::new("cannot evaluate", fact)));
        };
        let mut rows = evaluating::read_rows(self.folder)?;
        for &mode in &config.modes {
            let is_done = |row: &EvaluationRow| row.step == self.step && row.mode == mode.name();
            if rows.iter().any(is_done) {
                continue;
            }
            let Some(found) = self.evaluate_mode(config, mode)? else {
                return Ok(false);
            };
            for row in &found {
                self.events.evaluation(row)?;
                self.progress.evaluation(row);
            }
            rows.extend(found);
            evaluating::write_rows(self.folder, &rows)?;
        }
        Ok(true)
    }

    fn evaluate_mode(
        &mut self,
        config: &EvaluateConfig,
        mode: Mode,
    ) -> Result<Option<Vec<EvaluationRow>>, CliError> {
        let step = self.step;
        let answering = self.policy.answering(&self.folder.policy(step))?;
        let (occasion, sha256) = (Occasion::Evaluation { step, mode }, self.policy_sha256);
        let played = self.stage.play(occasion, sha256, &answering, self.stop, &mut |_| {})?;
        let Some(PlayedLog { records, .. }) = played else {
            return Ok(None);
        };
        let role = self.experiment.learner.role;
        let first: Option<Vec<Measured>> = match step {
            0 => None,
            _ => {
                let log = self.folder.log(Occasion::Evaluation { step: 0, mode });
                Some(evaluating::measure(stage::read(&log)?.records, role))
            }
        };
        let matches = evaluating::measure(records, role);
        let rows =
            evaluating::rows(self.experiment, config, step, mode, &matches, first.as_deref());
        Ok(Some(rows))
    }

    /// Returns how many steps are done.
    pub fn step(&self) -> u32 {
        self.step
    }
}
