//! `arena audit`: checks a published tournament offline, step by step.
//!
//! Exit code 0 only if everything that was asked for is verified.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arena_audit::{Audit, AuditOptions, Step, Verdict};
use arena_core::config::{CatalogKind, TournamentConfig};
use arena_core::entry::Entry;
use arena_log::note::{NOTE_BYTES_MAX, Vkey};
use arena_log::reader::{Access, LogReader};
use serde_json::{Value, json};

use crate::advance::Advance;
use crate::cli::audit::{AuditArgs, AuditCommand, Choice};
use crate::commands::{audit_diff, audit_receipt, audit_run};
use crate::error::{CliError, Complaint, EXIT_FINDINGS, EXIT_OK};
use crate::escape::escape;
use crate::render::audit as render;
use crate::render::transcript::{count, thousands};
use crate::replays::{EVERY_MATCH, Extent, FRAUD_SHARE};
use crate::screen::{self, Paint, Tone};
use crate::training::auditing;
use crate::{files, inputs, reexecution, rescoring, shell, trust};

/// The step that is only taken where it is asked for.
const REEXECUTION: &str = "re-execution";
/// What is said where nobody asked for it.
const REEXECUTION_UNASKED: &str = "not asked for (--reexecute)";
/// The step that needs the source of the items, where they are not generated.
const CATALOG: &str = "catalog";
/// How often a log that may be being written is audited before it is said to be wrong.
const ATTEMPTS_MAX: u32 = 3;
/// Time between two of them: a writer has renamed its head into place by then.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);

/// Audits, prints, and returns 0 or 1.
///
/// # Errors
/// Whom to believe is not known, a file cannot be read, there is no log, or the machine failed.
pub fn run(args: &AuditArgs) -> Result<u8, CliError> {
    match &args.command {
        Some(AuditCommand::Diff(args)) => return audit_diff::run(args),
        Some(AuditCommand::Receipt(args)) => return audit_receipt::run(args),
        None => {}
    }
    let log = args.log.as_deref().expect("the command line asks for a log");
    if auditing::is_run(log) {
        return audit_run::run(args, log);
    }
    if args.retrain {
        let complaint =
            Complaint::new("cannot use `--retrain`", "the folder holds no training run");
        return Err(CliError::Config(complaint.hint("drop `--retrain`")));
    }
    let policy = trust::policy(&args.trust, log)?;
    let held = held(args)?;
    let authors = authors(args)?;
    let catalog = args.catalog.as_deref().map(inputs::amazon).transpose()?;
    check_folder(log)?;
    rescoring::check_places(args)?;
    let options =
        AuditOptions { policy: &policy, held: &held, authors: &authors, catalog: catalog.as_ref() };
    let (mut audit, is_growing) = check_at_rest(log, &options);
    if catalog.is_some() {
        check_catalog_is_read(&audit)?;
    }
    let asked = conclude(log, &mut audit, args)?;
    let is_verified = audit.is_verified_without(&unasked(args));
    let came = Came { is_verified, is_growing, ..asked };
    match args.json {
        true => print_json(args, &audit, came)?,
        false => print(args, &audit, &came)?,
    }
    Ok(if is_verified { EXIT_OK } else { EXIT_FINDINGS })
}

/// Takes the steps that are only taken where they are asked for, or enters that nobody asked.
fn conclude(log: &Path, audit: &mut Audit, args: &AuditArgs) -> Result<Came, CliError> {
    let mut came = Came::default();
    match args.reexecute {
        Some(choice) => {
            let outcome = reexecution::run(log, audit, choice, workers(args))?;
            audit.conclude_reexecution(outcome.verdict);
            came.extent = outcome.extent;
        }
        None => {
            let reason = REEXECUTION_UNASKED.to_owned();
            audit.conclude_reexecution(Verdict::NotChecked { reason });
        }
    }
    if args.rescore {
        let rescored = rescoring::run(log, audit, args)?;
        audit.steps.push(rescored.step);
        came.rescoring = Some(rescored.document);
    } else {
        audit.steps.extend(rescoring::unasked(audit));
    }
    Ok(came)
}

fn held(args: &AuditArgs) -> Result<Vec<Vec<u8>>, CliError> {
    let read = |path: &std::path::PathBuf| files::read(path, NOTE_BYTES_MAX as u64);
    args.held.iter().map(|path| read(path).map_err(CliError::Input)).collect()
}

fn authors(args: &AuditArgs) -> Result<Vec<(String, Vkey)>, CliError> {
    let read =
        args.author.iter().map(|author| Ok((author.agent.clone(), trust::vkey(&author.key)?)));
    read.collect()
}

fn workers(args: &AuditArgs) -> NonZeroUsize {
    match args.workers.map(usize::from).and_then(NonZeroUsize::new) {
        Some(workers) => workers,
        None => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
    }
}

/// A folder that is none cannot fail a step: nothing can be said of it at all.
fn check_folder(log: &Path) -> Result<(), CliError> {
    let failed = || format!("cannot audit `{}`", log.display());
    let hint = "name the folder that the organiser published";
    match std::fs::read_dir(log) {
        Err(error) => Err(CliError::Input(Complaint::new(failed(), error).hint(hint))),
        Ok(_) if log.join(arena_log::tile::CHECKPOINT).symlink_metadata().is_err() => {
            let fact = "it holds no `checkpoint`, so it is no log";
            Err(CliError::Input(Complaint::new(failed(), fact).hint(hint)))
        }
        Ok(_) => Ok(()),
    }
}

/// Audits a log, and again a little later where it may have failed only because it is being
/// written: files come before the head that counts them. Also returns whether it failed to the
/// end while its head moved.
fn check_at_rest(log: &Path, options: &AuditOptions<'_>) -> (Audit, bool) {
    let mut newest = Newest::of(log);
    let mut has_moved = false;
    for attempt in 1.. {
        let audit = check(log, options);
        let has_failed = audit.steps.iter().any(|step| step.verdict.is_failed());
        // Nothing comes after the reveal: what was wrong then stays wrong.
        if !has_failed || newest.is_revealed {
            return (audit, false);
        }
        if attempt == ATTEMPTS_MAX {
            return (audit, has_moved || Newest::of(log).head != newest.head);
        }
        std::thread::sleep(ATTEMPT_PAUSE);
        let next = Newest::of(log);
        if next.head != newest.head {
            has_moved = true;
            screen::remark("note: the log is being written; it is audited again");
        }
        newest = next;
    }
    unreachable!("attempts are counted")
}

/// The newest head of a log at some moment.
struct Newest {
    head: Option<Vec<u8>>,
    is_revealed: bool,
}

impl Newest {
    /// Reads it. Where that fails, the audit says why.
    fn of(log: &Path) -> Newest {
        let Ok(mut reader) = LogReader::open(log, Access::Public) else {
            return Newest { head: None, is_revealed: false };
        };
        let head = Some(reader.checkpoint_bytes().to_vec());
        let last = reader.head().size.checked_sub(1);
        let last = last.and_then(|last| reader.get(last).ok());
        let last = last.and_then(|record| Entry::decode(record.entry).ok());
        Newest { head, is_revealed: matches!(last, Some(Entry::Reveal(_))) }
    }
}

fn check(log: &Path, options: &AuditOptions<'_>) -> Audit {
    let mut advance = Advance::new("checked", "entry", 0);
    arena_audit::audit(log, options, &mut |progress| {
        advance.show(progress.entries_done, progress.entry_count);
    })
}

/// Refuses a catalog that nothing was compared with: it would seem to have been looked at.
fn check_catalog_is_read(audit: &Audit) -> Result<(), CliError> {
    let file = audit.announcement.as_ref().map(|announcement| &announcement.config_toml);
    match file.and_then(|file| TournamentConfig::parse(file).ok()) {
        Some(config) if !matches!(config.catalog.kind, CatalogKind::AmazonHistoryPrice { .. }) => {
            let fact = "the tournament's items are generated, and the audit generates them again";
            let complaint = Complaint::new("cannot use `--catalog`", fact);
            Err(CliError::Config(complaint.hint("drop `--catalog`")))
        }
        _ => Ok(()),
    }
}

/// Returns the steps that may stay unchecked, because nobody asked for them.
fn unasked(args: &AuditArgs) -> Vec<&'static str> {
    let steps = [
        (REEXECUTION, args.reexecute.is_none()),
        (CATALOG, args.catalog.is_none()),
        (rescoring::RESCORING, !args.rescore),
    ];
    steps.into_iter().filter(|(_, is_unasked)| *is_unasked).map(|(id, _)| id).collect()
}

/// The steps that were not checked.
struct Unchecked<'a> {
    /// Those that nobody asked for.
    unasked: Vec<&'a str>,
    /// Those that could not be.
    impossible: Vec<&'a str>,
}

impl Unchecked<'_> {
    fn of<'a>(args: &AuditArgs, audit: &'a Audit) -> Unchecked<'a> {
        let unasked = unasked(args);
        let is_open = |step: &&Step| matches!(step.verdict, Verdict::NotChecked { .. });
        let is_unasked = |step: &&Step| {
            // Where there are tables, nothing is withheld: only the source is missing.
            let could_be = step.id != CATALOG || audit.report.is_some();
            unasked.contains(&step.id) && could_be
        };
        let (unasked, impossible): (Vec<_>, Vec<_>) =
            audit.steps.iter().filter(is_open).partition(is_unasked);
        let ids = |steps: Vec<&'a Step>| steps.into_iter().map(|step| step.id).collect();
        Unchecked { unasked: ids(unasked), impossible: ids(impossible) }
    }
}

fn print_json(args: &AuditArgs, audit: &Audit, came: Came) -> Result<(), CliError> {
    let unchecked = Unchecked::of(args, audit);
    screen::json(&json!({
        "verified": came.is_verified,
        "not_asked_for": unchecked.unasked,
        "could_not_be_checked": unchecked.impossible,
        "head": audit.opened.as_ref().map(render::head_to_json),
        "tournament": audit.tournament.map(|id| id.to_string()),
        "steps": render::to_json(&audit.steps),
        "voids": render::voids_to_json(&audit.voids),
        "reexecution": came.extent.map(extent_to_json),
        "rescoring": came.rescoring,
        "limits": audit.limits,
    }))
}

fn extent_to_json(extent: Extent) -> Value {
    let Extent { chosen, match_count, scheduled_count, detection_probability } = extent;
    let fraud_share = detection_probability.map(|_| FRAUD_SHARE);
    json!({
        "chosen": chosen,
        "matches": match_count,
        "scheduled_matches": scheduled_count,
        "fraud_share": fraud_share,
        "detection_probability": detection_probability,
    })
}

/// What came of an audit beside its steps.
#[derive(Default)]
struct Came {
    /// How much was run again, if anything was.
    extent: Option<Extent>,
    /// What was scored again, if anything was.
    rescoring: Option<Value>,
    is_verified: bool,
    is_growing: bool,
}

fn print(args: &AuditArgs, audit: &Audit, came: &Came) -> Result<(), CliError> {
    let log = args.log.as_deref().expect("the command line asks for a log");
    let paint = Paint::of_stdout();
    let mut text = heading(log, audit);
    text.push_str(&render::steps(&audit.steps, paint));
    text.push_str(&render::voids(&audit.voids));
    text.push_str(&format!("\n{}\n", paint.paint(Tone::Bold, "No offline audit can show:")));
    for limit in audit.limits {
        text.push_str(&format!("  - {limit}\n"));
    }
    text.push('\n');
    text.push_str(&verdict(args, log, audit, came, paint));
    screen::results(&text)
}

fn heading(log: &Path, audit: &Audit) -> String {
    let mut text = format!("audit of {}\n", log.display());
    if let Some(head) = audit.head() {
        let (origin, entries) = (escape(&head.origin), count(head.size, "entry"));
        text.push_str(&format!(
            "  log         {origin}\n  head        {entries}, root {}\n",
            head.root
        ));
    }
    if let Some(opened) = &audit.opened
        && !opened.cosigned.is_empty()
    {
        let names: Vec<String> = opened.cosigned.iter().map(|by| escape(&by.witness)).collect();
        text.push_str(&format!("  witnesses   {}\n", names.join(", ")));
    }
    if let Some(tournament) = audit.tournament {
        text.push_str(&format!("  tournament  {tournament}\n"));
    }
    text
}

/// Says in a line what all of it means, and in another what to do next.
fn verdict(args: &AuditArgs, log: &Path, audit: &Audit, came: &Came, paint: Paint) -> String {
    let failed: Vec<&str> =
        audit.steps.iter().filter(|step| step.verdict.is_failed()).map(|step| step.id).collect();
    let Unchecked { unasked, impossible } = Unchecked::of(args, audit);
    let unasked = match unasked.is_empty() {
        true => String::new(),
        false => format!("; not asked for: {}", unasked.join(", ")),
    };
    let (steps, log) = (count(audit.steps.len() as u64, "step"), log.display());
    if !failed.is_empty() {
        let line = format!("verdict: FAILED: {}", failed.join(", "));
        let next = match came.is_growing {
            true => {
                "the log is being written, its head moved meanwhile: copy it when it is at rest, \
                 and audit the copy"
            }
            false => {
                "do not rely on this log; keep a copy of it and show it to the organiser and to \
                 others who hold the log"
            }
        };
        return format!("{}\nnext: {next}\n", paint.paint(Tone::Bad, &line));
    }
    if !came.is_verified {
        let impossible = impossible.join(", ");
        let line = format!("verdict: NOT VERIFIED: could not be checked: {impossible}{unasked}");
        return format!(
            "{}\nnext: read above why, and audit again when that can be checked\n",
            paint.paint(Tone::Note, &line)
        );
    }
    let but = match unasked.is_empty() {
        true => format!("all {steps}"),
        false => format!("all that was asked for{unasked}"),
    };
    let notes = notes(args, audit, came.extent);
    let line = paint.paint(Tone::Good, &format!("verdict: VERIFIED: {but}{notes}"));
    let next = match args.reexecute {
        Some(Choice::All) => {
            format!("keep {log}/checkpoint, and name it with --held when you audit again")
        }
        _ => with_reexecution(args),
    };
    format!("{line}\nnext: {next}\n")
}

/// Says what the verdict of a log that is verified does not cover.
fn notes(args: &AuditArgs, audit: &Audit, extent: Option<Extent>) -> String {
    let mut notes = String::new();
    if let Some(Extent { chosen, match_count, scheduled_count, .. }) = extent
        && chosen != EVERY_MATCH
    {
        let (ran, all) = (thousands(match_count), count(scheduled_count, "match"));
        notes.push_str(&format!("; re-execution covered {ran} of {all}"));
    }
    let catalog = audit.step(CATALOG).map(|step| &step.verdict);
    // Where there are tables, nothing is withheld: only the source is missing.
    if args.catalog.is_none()
        && audit.report.is_some()
        && matches!(catalog, Some(Verdict::NotChecked { .. }))
    {
        notes.push_str("; `--catalog DIR` names the source of the items");
    }
    notes
}

/// Returns the command line that audits as this one did, and runs all agents again.
fn with_reexecution(args: &AuditArgs) -> String {
    let shown = |path: &PathBuf| path.to_string_lossy().into_owned();
    let mut words = vec!["audit".to_owned()];
    words.extend(args.log.as_ref().map(shown));
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    args.trust.key.iter().for_each(|key| flag("--key", key.clone()));
    args.trust.policy.iter().for_each(|path| flag("--policy", shown(path)));
    args.held.iter().for_each(|path| flag("--held", shown(path)));
    args.author.iter().for_each(|by| flag("--author", format!("{}={}", by.agent, by.key)));
    args.catalog.iter().for_each(|path| flag("--catalog", shown(path)));
    args.workers.iter().for_each(|workers| flag("--workers", workers.to_string()));
    args.model.iter().for_each(|model| flag("--model", format!("{}={}", model.name, model.place)));
    args.rescore_sample.iter().for_each(|number| flag("--rescore-sample", number.to_string()));
    if args.rescore {
        words.push("--rescore".to_owned());
    }
    words.push("--reexecute".to_owned());
    shell::command_line(words.iter().map(String::as_str))
}
