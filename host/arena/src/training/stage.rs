//! Plays the tournaments of a run, one after the other, in one sandbox.
//!
//! Components are compiled once, and models other than the policy are loaded once.
//!
//! Not here: what is played (`arena_train::experiment`), learning from it (`run`).

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arena_core::config::TournamentConfig;
use arena_core::entry::TournamentId;
use arena_core::record::MatchRecord;
use arena_core::seed::Root;
use arena_log::checkpoint::Head;
use arena_log::reader::{Access, LogReader};
use arena_runner::event::{RunEvent, RunStatus};
use arena_sandbox::Sandbox;
use arena_train::experiment::{Experiment, Occasion};
use arena_train::run_folder::RunFolder;

use crate::commands::tournament_show;
use crate::engines::{self, Answering, Computing};
use crate::error::{CliError, Complaint};
use crate::inputs::TournamentFile;
use crate::preparation::{self, Components, Setting};
use crate::secrets::Secrets;
use crate::{playing, reading, results, sandbox};

/// Where tournaments are played.
pub struct Stage<'a> {
    experiment: &'a Experiment,
    run: &'a RunFolder,
    /// What paths of the experiment are resolved against.
    folder: PathBuf,
    /// The catalog's folder, in place of the experiment's.
    catalog: Option<PathBuf>,
    key: PathBuf,
    workers: Option<u16>,
    threads: NonZeroUsize,
    /// What is set up with the first tournament.
    set_up: Option<SetUp>,
    components: Components,
}

struct SetUp {
    sandbox: Arc<Sandbox>,
    workers: NonZeroUsize,
    others: Vec<Answering>,
}

/// What the command line says of how a run is played.
pub struct StageOptions {
    /// What paths of the experiment are resolved against.
    pub folder: PathBuf,
    /// The catalog's folder, in place of the experiment's.
    pub catalog: Option<PathBuf>,
    /// The file of the key that signs.
    pub key: PathBuf,
    /// Matches that are played at the same time.
    pub workers: Option<u16>,
    /// Threads that compute models.
    pub threads: NonZeroUsize,
}

/// A tournament that was played to its end.
pub struct PlayedLog {
    /// Its name in every entry.
    pub tournament: TournamentId,
    /// The newest head of its log.
    pub head: Head,
    /// Every match, in the order of the log.
    pub records: Vec<MatchRecord>,
}

impl<'a> Stage<'a> {
    /// Nothing is loaded before the first tournament.
    pub fn new(experiment: &'a Experiment, run: &'a RunFolder, options: StageOptions) -> Stage<'a> {
        let StageOptions { folder, catalog, key, workers, threads } = options;
        Stage {
            experiment,
            run,
            folder,
            catalog,
            key,
            workers,
            threads,
            set_up: None,
            components: Components::new(),
        }
    }

    /// Plays what the log of an occasion does not hold yet. `None` where it was told to stop.
    ///
    /// # Errors
    /// A component, a model, the catalog or the log is wrong, or the machine failed.
    pub fn play(
        &mut self,
        occasion: Occasion,
        policy_sha256: [u8; 32],
        policy: &Answering,
        stop: &AtomicBool,
        events: &mut dyn FnMut(RunEvent),
    ) -> Result<Option<PlayedLog>, CliError> {
        let text = self.experiment.tournament(occasion, policy_sha256);
        let config = TournamentConfig::parse(&text).expect("it was parsed with the experiment");
        let label = config.name.clone();
        let seed = config.seed.expect("tournaments of a run have a seed");
        let file = TournamentFile::of(config, text, &self.folder);
        let catalog_root = Root::Seed(seed);
        let catalog = file.catalog(self.catalog.as_deref(), catalog_root)?;
        let schedule = preparation::schedule(&label, &file.config, &catalog)?;
        let out_dir = self.run.log(occasion);
        let secrets = Secrets::find(Some(&self.key), None, &out_dir, false)?;
        let is_first = self.set_up.is_none();
        let (sandbox, workers, models) = self.set_up(&file, policy)?;
        let setting = Setting {
            file,
            catalog,
            catalog_root,
            schedule,
            secrets,
            out_dir,
            models,
            workers,
            sandbox,
        };
        let prepared = preparation::assemble(setting, &mut self.components)?;
        if is_first {
            playing::brief_once(&prepared);
        }
        let summary = playing::play(&prepared, None, stop, events)?;
        if summary.status == RunStatus::Interrupted {
            return Ok(None);
        }
        publish(&prepared.out_dir)?;
        read(&prepared.out_dir).map(Some)
    }

    fn set_up(
        &mut self,
        file: &TournamentFile,
        policy: &Answering,
    ) -> Result<(Arc<Sandbox>, NonZeroUsize, Vec<Answering>), CliError> {
        if self.set_up.is_none() {
            let computing = Computing { device: None, threads: self.threads };
            // The first is the policy.
            let others = &file.config.models[1..];
            let others = engines::load(others, &|path| file.resolve(path), &computing)?;
            let slots = self.experiment.policy.slots as usize;
            let standing_in = Answering { slots, ..policy.clone() };
            let all: Vec<Answering> =
                std::iter::once(standing_in).chain(others.iter().cloned()).collect();
            let workers = preparation::workers(self.workers, &all);
            let sandbox = Arc::new(sandbox::open(&file.config.limits, workers)?);
            self.set_up = Some(SetUp { sandbox, workers, others });
        }
        let SetUp { sandbox, workers, others } =
            self.set_up.as_ref().expect("it was set up just now");
        let models = std::iter::once(policy.clone()).chain(others.iter().cloned()).collect();
        Ok((Arc::clone(sandbox), *workers, models))
    }
}

/// Publishes a finished log's tables, so that its audit has something to compare with.
fn publish(log: &Path) -> Result<(), CliError> {
    let reading = reading::read(log)?;
    let report = tournament_show::build(&reading);
    results::publish(log, &report.document(reading.is_closed()))
}

/// Reads a log that is finished.
///
/// # Errors
/// There is none, or it is damaged.
pub fn read(log: &Path) -> Result<PlayedLog, CliError> {
    let fails = |error: &dyn std::fmt::Display| {
        CliError::Input(Complaint::new(
            format!("cannot read the log in `{}`", log.display()),
            error,
        ))
    };
    let records = reading::records(log)?;
    let mut reader = LogReader::open(log, Access::Owner).map_err(|error| fails(&error))?;
    let head = reader.head().clone();
    let first = reader.next_record().map_err(|error| fails(&error))?;
    let first = first.ok_or_else(|| fails(&"it has no entry"))?;
    Ok(PlayedLog { tournament: TournamentId::of_first_entry(first.entry), head, records })
}
