//! Loads everything that a tournament needs and fixes what its log will announce.
//!
//! Nothing is written here: a mistake in any input is told before there is a log.
//!
//! Not here: opening the draws (`drawing`), and playing (`arena_runner`).

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_core::announcement::{AgentEntry, Announcement, ModelEntry};
use arena_core::catalog::Catalog;
use arena_core::config::{ModelConfig, ModelSource, TournamentConfig, Training};
use arena_core::draws::{BeaconRound, CommittedDraws, Draws, commit_secret};
use arena_core::entry::AnnouncementEntry;
use arena_core::hexadecimal::hex;
use arena_core::rules::Rules;
use arena_core::schedule::Schedule;
use arena_core::seed::Root;
use arena_llm::model::{LanguageModel, ModelInfo};
use arena_sandbox::{Grants, LoadedAgent, Sandbox, TrainingMode};
use sha2::{Digest, Sha256};

use crate::cli::RunArgs;
use crate::engines::{self, Answering, Computing};
use crate::error::{CliError, Complaint};
use crate::inputs::TournamentFile;
use crate::lending::{self, Borrower};
use crate::secrets::Secrets;
use crate::submissions::{self, Signed};
use crate::{sandbox, screen};

/// Folder for logs, where the command line names none.
const OUT_DIR: &str = "arena-out";
/// Digits of the secret's commitment in the origin of a log that the file does not name.
const ORIGIN_DIGITS: usize = 16;

/// A tournament that is ready to be announced.
pub struct Prepared {
    /// What the file says, with the command line's seed.
    pub config: TournamentConfig,
    /// The rules of play.
    pub rules: Rules,
    /// The items that are played.
    pub catalog: Catalog,
    /// Who meets whom.
    pub schedule: Schedule,
    /// Where agents run.
    pub sandbox: Arc<Sandbox>,
    /// Those who play, in the file's order.
    pub entrants: Vec<Entrant>,
    /// What is fixed before the first match.
    pub announcement: Announcement,
    /// The log's first entry.
    pub opening: AnnouncementEntry,
    /// What only the organiser has.
    pub secrets: Secrets,
    /// The folder of the log.
    pub out_dir: PathBuf,
    /// The models that agents may ask.
    pub models: Vec<Answering>,
    /// Matches that are played at the same time.
    pub workers: NonZeroUsize,
    /// What the announcement names by hash: each component once, then the catalog.
    pub blobs: Vec<Vec<u8>>,
    /// Where the catalog came from. It does not depend on what is added to the draws later.
    pub catalog_root: Root,
}

/// An agent that is ready to be seated.
pub struct Entrant {
    /// Its component.
    pub component: LoadedAgent,
    /// What it is lent.
    pub grants: Grants,
    signed: Option<Signed>,
}

/// A tournament file, with everything that it needs besides its agents.
pub struct Setting {
    /// The file.
    pub file: TournamentFile,
    /// The items that are played.
    pub catalog: Catalog,
    /// Where the catalog came from.
    pub catalog_root: Root,
    /// Who meets whom.
    pub schedule: Schedule,
    /// What only the organiser has.
    pub secrets: Secrets,
    /// The folder of the log.
    pub out_dir: PathBuf,
    /// The models that agents may ask.
    pub models: Vec<Answering>,
    /// Matches that are played at the same time.
    pub workers: NonZeroUsize,
    /// Where agents run.
    pub sandbox: Arc<Sandbox>,
}

/// Components that were loaded, by hash; several tournaments may share them.
pub type Components = BTreeMap<[u8; 32], LoadedAgent>;

/// Loads a tournament.
///
/// # Errors
/// The file, a flag, the catalog, a component, a model, a submission, the key or the secret is
/// wrong.
pub fn prepare(args: &RunArgs) -> Result<Prepared, CliError> {
    let file = read_file(args)?;
    let is_committed = file.config.seed.is_none();
    let out_dir = out_dir(args, &file.config);
    let secrets =
        Secrets::find(args.key.as_deref(), args.secret.as_deref(), &out_dir, is_committed)?;
    let catalog_root = catalog_root(&file.config, &secrets);
    let catalog = file.catalog(args.catalog.as_deref(), catalog_root)?;
    let schedule = schedule(&args.file.display().to_string(), &file.config, &catalog)?;
    let computing = computing(args, &file)?;
    let models = engines::load(&file.config.models, &|path| file.resolve(path), &computing)?;
    let workers = workers(args.workers, &models);
    let sandbox = Arc::new(sandbox::open(&file.config.limits, workers)?);
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
    let prepared = assemble(setting, &mut Components::new())?;
    remark_lending(&prepared.config, &prepared.entrants);
    Ok(prepared)
}

/// Returns the schedule of a tournament over its items; `label` names it in messages.
///
/// # Errors
/// There is nothing to play, or more than can be counted.
pub fn schedule(
    label: &str,
    config: &TournamentConfig,
    catalog: &Catalog,
) -> Result<Schedule, CliError> {
    let item_count = u32::try_from(catalog.entries.len()).expect("catalogs are bounded");
    Schedule::new(config, item_count).map_err(|error| {
        CliError::Config(Complaint::new(format!("cannot schedule `{label}`"), error))
    })
}

/// Loads the agents and fixes what the log will announce.
///
/// # Errors
/// A component or a submission is wrong.
pub fn assemble(setting: Setting, components: &mut Components) -> Result<Prepared, CliError> {
    let Setting { file, catalog, catalog_root, schedule, secrets, .. } = setting;
    let Setting { out_dir, models, workers, sandbox, .. } = setting;
    let (entrants, mut blobs) = load_agents(&file, &sandbox, &models, components)?;
    blobs.push(catalog.encode());
    let draws = announce_draws(&file.config, &secrets, &entrants)?;
    let announcement = Announcement {
        name: file.config.name.clone(),
        config_toml: file.text,
        draws,
        engine: sandbox.fingerprint(),
        models: models.iter().map(|answering| announce_model(answering.model.as_ref())).collect(),
        agents: announce_agents(&file.config, &entrants),
        catalog_sha256: catalog.sha256(),
        item_count: u32::try_from(catalog.entries.len()).expect("catalogs are bounded"),
        pair_count: schedule.pair_count(),
        checkpoint_every: file.config.log.checkpoint_every,
    };
    let opening = AnnouncementEntry {
        origin: origin(&file.config, &announcement.draws),
        log_key: secrets.key.public().to_bytes(),
        announcement_sha256: Sha256::digest(announcement.encode()).into(),
    };
    let config = file.config;
    let rules = Rules::new(&config.rules, &config.limits);
    Ok(Prepared {
        config,
        rules,
        catalog,
        schedule,
        sandbox,
        entrants,
        announcement,
        opening,
        secrets,
        out_dir,
        models,
        workers,
        blobs,
        catalog_root,
    })
}

/// Returns what computes. A device that nothing is computed on would be ignored.
fn computing(args: &RunArgs, file: &TournamentFile) -> Result<Computing, CliError> {
    let is_weights = |model: &ModelConfig| matches!(model.source, ModelSource::Weights(_));
    if !file.config.models.iter().any(is_weights) {
        for (flag, is_given) in
            [("--device", args.device.is_some()), ("--threads", args.threads.is_some())]
        {
            if is_given {
                let fact = "no model of the file has weights";
                let complaint = Complaint::new(format!("cannot use `{flag}`"), fact);
                return Err(CliError::Config(complaint.hint(format!("drop `{flag}`"))));
            }
        }
    }
    Ok(Computing::new(args.device.map(|device| device.0), args.threads))
}

/// Returns how many matches are played at once. With models, enough to fill their slots: a match
/// waits for one reply at a time.
pub fn workers(asked: Option<u16>, models: &[Answering]) -> NonZeroUsize {
    let asked = asked.map(usize::from).and_then(NonZeroUsize::new);
    asked.unwrap_or_else(|| {
        let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let slots = engines::slots(models).min(arena_runner::WORKERS_MAX);
        NonZeroUsize::new(slots).map_or(processors, |slots| slots.max(processors))
    })
}

fn read_file(args: &RunArgs) -> Result<TournamentFile, CliError> {
    let mut file = TournamentFile::read(&args.file)?;
    if args.seed.is_some() {
        if file.config.beacon_round.is_some() {
            let fact = "the file mixes a beacon's round into draws that come from a secret";
            let complaint = Complaint::new("cannot use `--seed`", fact)
                .hint("drop `--seed`, or leave `beacon_round` out of the file");
            return Err(CliError::Config(complaint));
        }
        file.config.seed = args.seed;
    }
    Ok(file)
}

fn out_dir(args: &RunArgs, config: &TournamentConfig) -> PathBuf {
    let named = match config.seed {
        Some(seed) => format!("{}-{seed}", config.name),
        None => config.name.clone(),
    };
    args.out.clone().unwrap_or_else(|| Path::new(OUT_DIR).join(named))
}

fn catalog_root(config: &TournamentConfig, secrets: &Secrets) -> Root {
    match (config.seed, &secrets.secret) {
        (Some(seed), _) => Root::Seed(seed),
        (None, Some(secret)) => arena_core::draws::catalog_root(secret),
        (None, None) => unreachable!("draws without a seed have a secret"),
    }
}

/// Says where the draws come from.
fn announce_draws(
    config: &TournamentConfig,
    secrets: &Secrets,
    entrants: &[Entrant],
) -> Result<Draws, CliError> {
    let signed: Vec<&Signed> =
        entrants.iter().filter_map(|entrant| entrant.signed.as_ref()).collect();
    let contributions = submissions::contributions(&signed)?;
    match (config.seed, &secrets.secret) {
        (None, Some(secret)) => Ok(Draws::Committed(CommittedDraws {
            secret_commitment: commit_secret(secret),
            contributions,
            beacon: config
                .beacon_round
                .map(|round| BeaconRound { chain: arena_audit::beacon::QUICKNET_CHAIN, round }),
        })),
        (Some(_), _) if !contributions.is_empty() => {
            let fact = "submissions contribute to the draws, which come from a public seed";
            let complaint = Complaint::new("cannot use the seed", fact)
                .hint("leave the seed out, or ask the authors for submissions without one");
            Err(CliError::Config(complaint))
        }
        (Some(seed), _) => Ok(Draws::PublicSeed(seed)),
        (None, None) => unreachable!("draws without a seed have a secret"),
    }
}

/// Says which agents get less of language models than they ask for.
fn remark_lending(config: &TournamentConfig, entrants: &[Entrant]) {
    let borrowers: Vec<Borrower<'_>> = config
        .agents
        .iter()
        .zip(entrants)
        .map(|(agent, entrant)| Borrower {
            name: &agent.name,
            asks_models: entrant.component.asks_models(),
            models: &agent.models,
        })
        .collect();
    let unlent = lending::note_unlent(&borrowers, "`models` of an `[[agents]]` lends them");
    for note in unlent.into_iter().chain(lending::note_limited(&config.models, &borrowers)) {
        screen::remark(&note);
    }
}

/// Returns what the sandbox lends of the training interface.
pub fn training(granted: Training) -> Option<TrainingMode> {
    match granted {
        Training::None => None,
        Training::Evaluate => Some(TrainingMode::Evaluate),
        Training::Train => Some(TrainingMode::Train),
    }
}

fn announce_model(model: &dyn LanguageModel) -> ModelEntry {
    let ModelInfo { name, context_tokens, sha256, engine } = model.info();
    ModelEntry { name, context_tokens, sha256, engine }
}

fn announce_agents(config: &TournamentConfig, entrants: &[Entrant]) -> Vec<AgentEntry> {
    let agents = config.agents.iter().zip(entrants);
    agents
        .map(|(agent, entrant)| AgentEntry {
            name: agent.name.clone(),
            component_sha256: entrant.component.sha256(),
            params: agent.params.clone(),
            submission: entrant.signed.as_ref().map(|signed| signed.note.clone()),
        })
        .collect()
}

/// Returns the name of the log: the file's, or one that no other tournament of this organiser
/// has.
fn origin(config: &TournamentConfig, draws: &Draws) -> String {
    if let Some(origin) = &config.log.origin {
        return origin.clone();
    }
    let distinct = match draws {
        Draws::PublicSeed(seed) => seed.to_string(),
        Draws::Committed(committed) => {
            hex(&committed.secret_commitment)[..ORIGIN_DIGITS].to_owned()
        }
    };
    format!("arena.local/{}/{distinct}", config.name)
}

/// Loads every agent; a component that several agents share is compiled once, and one of an earlier
/// tournament not again. Returns the different components beside the agents.
fn load_agents(
    file: &TournamentFile,
    sandbox: &Sandbox,
    models: &[Answering],
    loaded: &mut Components,
) -> Result<(Vec<Entrant>, Vec<Vec<u8>>), CliError> {
    let mut entrants = Vec::with_capacity(file.config.agents.len());
    let mut components = BTreeMap::new();
    let mut order = Vec::new();
    for agent in &file.config.agents {
        let bytes = file.component(agent).map_err(|mut complaint| {
            complaint.failed = format!("agent `{}`: {}", agent.name, complaint.failed);
            CliError::Input(complaint)
        })?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let signed = submissions::read(file, agent, digest)?;
        let component = match loaded.get(&digest) {
            Some(component) => component.clone(),
            None => {
                let component = sandbox::load(sandbox, &format!("agent `{}`", agent.name), &bytes)?;
                loaded.insert(digest, component.clone());
                component
            }
        };
        if components.insert(digest, bytes).is_none() {
            order.push(digest);
        }
        // In the order in which the file grants them, so that an agent's first is its own first.
        let granted = agent.models.iter().filter_map(|name| {
            let named = |answering: &&Answering| answering.model.info().name == *name;
            models.iter().find(named).map(|answering| Arc::clone(&answering.model))
        });
        let grants = Grants { models: granted.collect(), training: training(agent.training) };
        entrants.push(Entrant { component, grants, signed });
    }
    let take = |digest| components.remove(&digest).expect("it was put there");
    Ok((entrants, order.into_iter().map(take).collect()))
}
