//! `arena tournament run`: plays a tournament file and prints its tables.
//!
//! Nothing is written before the file, the catalog and every agent are loaded and checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arena_core::catalog::{Catalog, draw_scenario};
use arena_core::config::TournamentConfig;
use arena_core::entry::{AgentEntry, Announcement};
use arena_core::fault::SeatError;
use arena_core::hexadecimal::hex;
use arena_core::referee;
use arena_core::rules::Rules;
use arena_core::scenario::Role;
use arena_core::schedule::Schedule;
use arena_core::seat::Seat;
use arena_llm::model::LanguageModel;
use arena_log::plain::error::LogError;
use arena_runner::error::RunError;
use arena_runner::event::{RunStatus, Summary};
use arena_runner::{Job, SeatRequest};
use arena_sandbox::{Grants, LoadedAgent, Sandbox, TrainingMode};
use sha2::{Digest, Sha256};

use crate::cli::RunArgs;
use crate::commands::tournament_show;
use crate::error::{CliError, Complaint, EXIT_INTERRUPTED, EXIT_OK};
use crate::examination::last_words;
use crate::inputs::TournamentFile;
use crate::progress::Progress;
use crate::render::transcript::{count, thousands};
use crate::{interrupt, reading, sandbox, screen};

/// Folder for logs, where the command line names none.
const OUT_DIR: &str = "arena-out";

/// Everything that was loaded.
struct Prepared {
    config: TournamentConfig,
    catalog: Catalog,
    schedule: Schedule,
    sandbox: Sandbox,
    agents: Vec<Entrant>,
    announcement: Announcement,
    workers: NonZeroUsize,
}

/// An agent that is ready to be seated.
struct Entrant {
    component: LoadedAgent,
    grants: Grants,
}

/// Plays what the log does not hold yet, and prints the tables.
///
/// # Errors
/// An input is wrong, the log is another tournament's, or the machine failed.
pub fn run(args: &RunArgs) -> Result<u8, CliError> {
    // Before anything else, so that a Ctrl-C while agents compile is heard too.
    let stop = interrupt::stop_flag()?;
    let prepared = prepare(args)?;
    let named = format!("{}-{}", prepared.config.name, prepared.config.seed);
    let out_dir = args.out.clone().unwrap_or_else(|| PathBuf::from(OUT_DIR).join(named));
    announce(&prepared, &out_dir);
    brief_once(&prepared);
    if stop.load(Ordering::SeqCst) {
        screen::remark(&format!("interrupted before the first match\nnext: {}", same_command()));
        return Ok(EXIT_INTERRUPTED);
    }
    let summary = play(&prepared, &out_dir, &stop)?;
    if summary.status == RunStatus::Interrupted {
        say_how_to_go_on(&summary);
        return Ok(EXIT_INTERRUPTED);
    }
    let reading = reading::read(&out_dir)?;
    tournament_show::tables(&reading, args.full, args.json)?;
    Ok(EXIT_OK)
}

fn prepare(args: &RunArgs) -> Result<Prepared, CliError> {
    let mut file = TournamentFile::read(&args.file)?;
    if let Some(seed) = args.seed {
        file.config.seed = seed;
    }
    let catalog = file.catalog(args.catalog.as_deref())?;
    let item_count = u32::try_from(catalog.entries.len()).expect("catalogs are bounded");
    let schedule = Schedule::new(&file.config, item_count).map_err(|error| {
        let failed = format!("cannot schedule `{}`", args.file.display());
        CliError::Config(Complaint::new(failed, error))
    })?;
    let workers = match args.workers.map(usize::from).and_then(NonZeroUsize::new) {
        Some(workers) => workers,
        None => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
    };
    let models = file.models()?;
    let sandbox = sandbox::open(&file.config.limits, workers)?;
    let agents = load_agents(&file, &sandbox, &models)?;
    let entry = |(agent, entrant): (&arena_core::config::AgentConfig, &Entrant)| AgentEntry {
        name: agent.name.clone(),
        component_sha256: entrant.component.sha256(),
        params: agent.params.clone(),
    };
    let announcement = Announcement {
        name: file.config.name.clone(),
        config_toml: file.text,
        seed: file.config.seed,
        engine: engine_lines(&sandbox, &models),
        agents: file.config.agents.iter().zip(&agents).map(entry).collect(),
        catalog_sha256: catalog.sha256(),
        item_count,
        pair_count: schedule.pair_count(),
    };
    let config = file.config;
    Ok(Prepared { config, catalog, schedule, sandbox, agents, announcement, workers })
}

/// Names what decides over moves besides the agents: the sandbox, and each model with its hash.
/// A run does not go on with a log that was begun with another.
fn engine_lines(sandbox: &Sandbox, models: &[Arc<dyn LanguageModel>]) -> String {
    let mut lines = sandbox.fingerprint();
    for info in models.iter().map(|model| model.info()) {
        let _ = writeln!(lines, "model.{}={}", info.name, hex(&info.sha256));
    }
    lines
}

/// Loads every agent; a component that several agents share is compiled once.
fn load_agents(
    file: &TournamentFile,
    sandbox: &Sandbox,
    models: &[Arc<dyn LanguageModel>],
) -> Result<Vec<Entrant>, CliError> {
    let mut loaded: BTreeMap<[u8; 32], LoadedAgent> = BTreeMap::new();
    let mut entrants = Vec::with_capacity(file.config.agents.len());
    for agent in &file.config.agents {
        let bytes = file.component(agent).map_err(|mut complaint| {
            complaint.failed = format!("agent `{}`: {}", agent.name, complaint.failed);
            CliError::Input(complaint)
        })?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let component = match loaded.get(&digest) {
            Some(component) => component.clone(),
            None => sandbox::load(sandbox, &format!("agent `{}`", agent.name), &bytes)?,
        };
        loaded.insert(digest, component.clone());
        // In the order in which the file grants them, so that an agent's first is its own first.
        let granted = agent.models.iter().filter_map(|name| {
            models.iter().find(|model| model.info().name == *name).map(Arc::clone)
        });
        let grants = Grants {
            models: granted.collect(),
            training: agent.training.then_some(TrainingMode::Evaluate),
        };
        entrants.push(Entrant { component, grants });
    }
    Ok(entrants)
}

fn announce(prepared: &Prepared, out_dir: &Path) {
    screen::remark(&format!(
        "{name}: {agents}, {items}, {matches}, seed {seed}, {workers}; log in {out}",
        name = prepared.config.name,
        agents = count(prepared.agents.len() as u64, "agent"),
        items = count(prepared.catalog.entries.len() as u64, "item"),
        matches = count(prepared.schedule.match_count(), "match"),
        seed = prepared.config.seed,
        workers = count(prepared.workers.get() as u64, "worker"),
        out = out_dir.display(),
    ));
}

/// Briefs every agent as its matches will, and says who faults at that. A mistake in its parameters
/// would otherwise show only as a table full of faults. The agent plays all the same, and loses.
fn brief_once(prepared: &Prepared) {
    let rules = Rules::new(&prepared.config.rules, &prepared.config.limits);
    let seed = prepared.config.seed;
    let scenario = draw_scenario(&prepared.config, &prepared.catalog, seed, 0, 0);
    for (agent, entrant) in prepared.config.agents.iter().zip(&prepared.agents) {
        let faults = Role::BOTH.into_iter().find_map(|role| {
            let brief = referee::brief(&rules, &scenario, role, &agent.params, seed);
            let mut seat = prepared.sandbox.seat(&entrant.component, &entrant.grants, seed).ok()?;
            match seat.begin(&brief) {
                Err(SeatError::Fault(fault)) => Some((fault, seat.take_usage().trace)),
                _ => None,
            }
        });
        if let Some((fault, trace)) = faults {
            screen::remark(&format!(
                "warning: agent `{}` faults when it is briefed: {fault}{}\n  \
                 hint: check its `params`; as they are, it loses every match",
                agent.name,
                last_words(&trace),
            ));
        }
    }
}

fn play(prepared: &Prepared, out_dir: &Path, stop: &AtomicBool) -> Result<Summary, CliError> {
    let rules = Rules::new(&prepared.config.rules, &prepared.config.limits);
    let seats = |request: SeatRequest| -> Result<Box<dyn Seat + '_>, SeatError> {
        let entrant = &prepared.agents[usize::from(request.agent)];
        let seat = prepared.sandbox.seat(&entrant.component, &entrant.grants, request.seed)?;
        Ok(Box::new(seat))
    };
    let job = Job {
        announcement: &prepared.announcement,
        rules: &rules,
        schedule: &prepared.schedule,
        catalog: &prepared.catalog,
        config: &prepared.config,
        out_dir,
        workers: prepared.workers,
        seats: &seats,
    };
    let mut progress = Progress::new();
    let outcome = arena_runner::run(&job, stop, &mut |event| progress.show(&event));
    progress.clear();
    outcome.map_err(|error| judge(&error, out_dir))
}

/// Gives a failed run its kind: the log's content is input, everything else the machine.
fn judge(error: &RunError, out_dir: &Path) -> CliError {
    let mut complaint = Complaint::new("cannot play the tournament", error);
    complaint.facts.push(format!("log folder: {}", out_dir.display()));
    complaint.hint = error.hint().map(str::to_owned);
    match error {
        RunError::AnnouncementDiffers { .. }
        | RunError::Entry { .. }
        | RunError::Misplaced { .. }
        | RunError::Log(
            LogError::ForeignFile { .. }
            | LogError::NotALog { .. }
            | LogError::Version { .. }
            | LogError::TornTail { .. }
            | LogError::Damaged { .. },
        ) => CliError::Input(complaint),
        _ => CliError::Infrastructure(complaint),
    }
}

fn say_how_to_go_on(summary: &Summary) {
    let done = thousands(summary.counts.pairs_done);
    let all = count(summary.pair_count, "pair");
    let next = same_command();
    screen::remark(&format!(
        "interrupted; the log is sound and holds {done} of {all}\nnext: {next}"
    ));
}

/// Returns the command line that this program was started with.
fn same_command() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    let command: Vec<String> = std::iter::once("arena".to_owned()).chain(words).collect();
    command.join(" ")
}

/// Quotes a word for a shell where that is needed.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
