//! Asks language models again how likely their recorded replies are, and says what that shows.
//!
//! A model is found by its name in the store or where the command line says, and must have the
//! hash that was announced. It reads each recorded prompt and reply at once; what comes out is
//! compared with the record. Without a model nothing is said of it, and never that it is fine.
//!
//! Not here: judging scores (`arena_audit::rescore`) and computing them (`arena_model`).

mod pass;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_audit::rescore::{Rescoring, Scores, Statement};
use arena_audit::sample::Sample;
use arena_audit::{Audit, Finding, Step, Verdict};
use arena_core::announcement::{Announcement, ModelEntry};
use arena_core::config::models::{WeightsConfig, WeightsSource};
use arena_core::config::{ModelConfig, ModelSource, TournamentConfig};
use arena_core::hexadecimal::hex;
use arena_model::engine::Engine;
use serde_json::{Value, json};

use crate::cli::audit::AuditArgs;
use crate::engines::{self, Computing};
use crate::error::{CliError, Complaint};
use crate::model_files::Named;
use crate::render::transcript::{count, thousands};
use crate::rescoring::pass::Pass;
use crate::{model_files, reading, reexecution, secrets};

/// The step.
pub const RESCORING: &str = "re-scoring";
/// What it is, for people.
const TITLE: &str = "the recorded replies are what the announced models say";
/// What is said where nobody asked for it.
const UNASKED: &str = "not asked for (--rescore)";
/// Steps without which scoring again would mean nothing.
const GROUNDS: [&str; 2] = ["announcement", "usage"];

/// What came of it.
pub struct Rescored {
    /// The step, to be entered with the others.
    pub step: Step,
    /// What was compared, for programs.
    pub document: Value,
}

/// One model, and what is known of it.
struct Subject {
    name: String,
    /// What scores its replies, or why nothing does, as what is said of the model.
    engine: Result<Arc<Engine>, String>,
    rescoring: Rescoring,
}

/// Refuses places of models at which there is none, before an audit begins that may take long.
///
/// # Errors
/// A model is named twice, or its file or folder is missing or wrong.
pub fn check_places(args: &AuditArgs) -> Result<(), CliError> {
    for (index, place) in args.model.iter().enumerate() {
        if args.model[..index].iter().any(|earlier| earlier.name == place.name) {
            let fact = format!("it says twice where the model `{}` is", place.name);
            return Err(CliError::Config(Complaint::new("cannot use `--model`", fact)));
        }
        let named = model_files::find(&WeightsSource::parse(&place.place))?;
        model_files::open(&named.path)?;
    }
    Ok(())
}

/// Returns the step where nobody asked for it; nothing where no reply of the tournament could be
/// scored.
pub fn unasked(audit: &Audit) -> Option<Step> {
    let announcement = audit.announcement.as_ref()?;
    let config = TournamentConfig::parse(&announcement.config_toml).ok()?;
    let has_scores = |model: &ModelConfig| !matches!(model.source, ModelSource::Script(_));
    config.models.iter().any(has_scores).then(|| not_checked(UNASKED.to_owned()).step)
}

/// Scores the chosen matches' calls again.
///
/// # Errors
/// The command line names a model that the tournament does not have, the log cannot be read any
/// more, or the machine failed. What is wrong with the log, or with the models at hand, is a
/// verdict and no error.
pub fn run(log: &Path, audit: &Audit, args: &AuditArgs) -> Result<Rescored, CliError> {
    for id in GROUNDS {
        if !audit.step(id).is_some_and(|step| step.verdict.is_verified()) {
            return Ok(not_checked(format!("step `{id}` is not verified")));
        }
    }
    let (Some(announcement), Some(tournament), Some(head)) =
        (&audit.announcement, audit.tournament, audit.head())
    else {
        return Ok(not_checked("there is no announcement to go by".to_owned()));
    };
    let config = TournamentConfig::parse(&announcement.config_toml)
        .map_err(|error| reading::complain(log, &error.message))?;
    check_names(args, &config)?;
    if config.models.is_empty() {
        return Ok(not_checked("no agent was lent a model".to_owned()));
    }
    let schedule = reexecution::schedule(log, announcement, &config)?;
    let match_count = schedule.match_count();
    let sample = match args.rescore_sample {
        // Nobody who made the log could know which matches these will be.
        Some(number) => Sample::of(&schedule, number.into(), secrets::random_value()?),
        None => Sample::All,
    };
    let mut subjects = subjects(args, announcement, &config)?;
    let scored = Pass { log, head, tournament, sample: &sample, match_count };
    let matches = match scored.score(&mut subjects)? {
        Ok(matches) => matches,
        Err(finding) => {
            let failed = Verdict::Failed { findings: vec![finding], finding_count: 1 };
            return Ok(Rescored { step: step(failed), document: Value::Null });
        }
    };
    Ok(Rescored {
        step: step(verdict(&subjects, matches)),
        document: to_json(&subjects, announcement, matches),
    })
}

/// Refuses a model that the tournament does not have: nothing would be compared with it.
fn check_names(args: &AuditArgs, config: &TournamentConfig) -> Result<(), CliError> {
    let known = |name: &str| config.models.iter().any(|model| model.name == name);
    match args.model.iter().find(|place| !known(&place.name)) {
        None => Ok(()),
        Some(place) => {
            let fact = format!("the tournament has no model `{}`", place.name);
            let names: Vec<&str> = config.models.iter().map(|model| model.name.as_str()).collect();
            let complaint = Complaint::new("cannot use `--model`", fact);
            Err(CliError::Config(complaint.hint(match names.is_empty() {
                true => "it has none".to_owned(),
                false => format!("it has `{}`", names.join("`, `")),
            })))
        }
    }
}

fn subjects(
    args: &AuditArgs,
    announcement: &Announcement,
    config: &TournamentConfig,
) -> Result<Vec<Subject>, CliError> {
    let mut subjects = Vec::with_capacity(config.models.len());
    for (announced, configured) in announcement.models.iter().zip(&config.models) {
        let engine = engine(args, announced, configured)?;
        let rescoring = Rescoring::new(&announced.name, announcement.agents.len());
        subjects.push(Subject { name: announced.name.clone(), engine, rescoring });
    }
    Ok(subjects)
}

/// Starts what scores a model's replies, or says why nothing does.
fn engine(
    args: &AuditArgs,
    announced: &ModelEntry,
    configured: &ModelConfig,
) -> Result<Result<Arc<Engine>, String>, CliError> {
    let place = args.model.iter().find(|place| place.name == announced.name);
    let elsewhere = format!("`--model {}=PATH` says where it is", announced.name);
    let source = match (&configured.source, place) {
        (ModelSource::Script(_), None) => {
            return Ok(Err("is a script, which has no scores".to_owned()));
        }
        (ModelSource::Script(_), Some(_)) => {
            let fact = format!("the model `{}` is a script, which has no scores", announced.name);
            return Err(CliError::Config(Complaint::new("cannot use `--model`", fact)));
        }
        (ModelSource::Weights(weights), _) if weights.adapter.is_some() => {
            return Ok(Err("was played with an adapter, which is not compared".to_owned()));
        }
        (_, Some(place)) => WeightsSource::parse(&place.place),
        (ModelSource::Weights(weights), None) => weights.weights.clone(),
        (ModelSource::Remote(_), None) => {
            return Ok(Err(format!("is not at hand: a server answered; {elsewhere}")));
        }
    };
    if place.is_none() && matches!(source, WeightsSource::Path(_)) {
        return Ok(Err(format!("is not at hand: the file names a path; {elsewhere}")));
    }
    let opened = model_files::find(&source).and_then(|named| open(&named, announced, configured));
    match opened {
        Ok(engine) => Ok(engine),
        Err(CliError::Config(complaint) | CliError::Input(complaint)) => {
            let facts = complaint.facts.join("; ");
            let hint = if place.is_none() { format!("; {elsewhere}") } else { String::new() };
            Ok(Err(format!("is not at hand: {}: {facts}{hint}", complaint.failed)))
        }
        Err(failure) => Err(failure),
    }
}

/// Starts an engine, or says why these weights are not the announced ones.
fn open(
    named: &Named,
    announced: &ModelEntry,
    configured: &ModelConfig,
) -> Result<Result<Arc<Engine>, String>, CliError> {
    let path = named.path.as_path();
    let weights = model_files::open(path)?;
    let found = model_files::manifest(path, &weights)?.sha256();
    // What a server says of itself is not the hash of any files.
    let is_comparable = matches!(configured.source, ModelSource::Weights(_));
    if is_comparable && found != announced.sha256 {
        let (path, found, wanted) = (path.display(), hex(&found), hex(&announced.sha256));
        return Ok(Err(format!(
            "is not at hand: `{path}` has hash {found}, announced is {wanted}"
        )));
    }
    // A server may have announced more than these weights were made for.
    let context_max = u32::try_from(weights.config().context_tokens).unwrap_or(u32::MAX);
    let context_tokens = announced.context_tokens.min(context_max);
    drop(weights);
    let config =
        WeightsConfig { context_tokens: Some(context_tokens), ..engines::weights_at(path) };
    let computing = Computing::new(None, None);
    let loaded =
        engines::weights(&announced.name, &config, &|path| PathBuf::from(path), &computing, None)?;
    Ok(Ok(loaded.engine.expect("weights are computed by an engine")))
}

fn step(verdict: Verdict) -> Step {
    Step { id: RESCORING, title: TITLE, verdict }
}

fn not_checked(reason: String) -> Rescored {
    Rescored { step: step(Verdict::NotChecked { reason }), document: Value::Null }
}

/// What is inconsistent fails; what nothing can be said of is not checked; only where all is
/// consistent is the step verified.
fn verdict(subjects: &[Subject], matches: u64) -> Verdict {
    let mut findings = Vec::new();
    let mut open = Vec::new();
    let mut fine = Vec::new();
    for Subject { name, engine, rescoring } in subjects {
        let scores = rescoring.all();
        match (engine, scores.statement()) {
            (Err(why), _) => open.push(format!("model `{name}` {why}")),
            (Ok(_), Statement::None { because }) => {
                open.push(format!("model `{name}`: no statement: {because}"));
            }
            (Ok(_), Statement::Inconsistent { because }) => {
                let what = format!("the replies of `{name}`: inconsistent");
                findings.push(Finding::new(what, because, "what the model says of them"));
            }
            (Ok(_), Statement::Consistent) => {
                fine.push(format!("model `{name}`: consistent: {}", figures(scores)));
            }
        }
    }
    match (findings.is_empty(), open.is_empty()) {
        (false, _) => Verdict::Failed { finding_count: findings.len() as u64, findings },
        (true, false) => Verdict::NotChecked { reason: [open, fine].concat().join("; ") },
        (true, true) => {
            let detail = format!("{}: {}", count(matches, "match"), fine.join("; "));
            Verdict::Verified { detail }
        }
    }
}

fn figures(scores: &Scores) -> String {
    format!(
        "{}, {}, {} of them equal to the last digit",
        count(scores.calls, "call"),
        count(scores.tokens, "token"),
        thousands(scores.equal),
    )
}

fn to_json(subjects: &[Subject], announcement: &Announcement, matches: u64) -> Value {
    let of_agents = |rescoring: &Rescoring| {
        let agents = announcement.agents.iter().zip(rescoring.agents());
        let asked = agents.filter(|(_, scores)| scores.calls + scores.calls_without_tokens > 0);
        asked
            .map(|(agent, scores)| {
                let mut value = scores_to_json(scores);
                value["agent"] = json!(agent.name);
                value
            })
            .collect::<Vec<_>>()
    };
    let models = subjects.iter().map(|subject| {
        json!({
            "model": subject.name,
            "not_scored": subject.engine.as_ref().err(),
            "all": scores_to_json(subject.rescoring.all()),
            "agents": of_agents(&subject.rescoring),
        })
    });
    json!({ "matches": matches, "models": models.collect::<Vec<_>>() })
}

fn scores_to_json(scores: &Scores) -> Value {
    let (statement, because) = match scores.statement() {
        Statement::Consistent => ("consistent", None),
        Statement::Inconsistent { because } => ("inconsistent", Some(because)),
        Statement::None { because } => ("no statement", Some(because)),
    };
    json!({
        "statement": statement,
        "because": because,
        "calls": scores.calls,
        "calls_without_tokens": scores.calls_without_tokens,
        "tokens": scores.tokens,
        "equal": scores.equal,
        "ranks": scores.ranks,
        "greedy": scores.greedy,
        "greedy_misses": scores.greedy_misses,
        "gross": scores.gross,
        "median_difference_micro": scores.difference_micro(500),
        "p99_difference_micro": scores.difference_micro(990),
    })
}
