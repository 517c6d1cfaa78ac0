//! `arena audit` of a training run: every step's log, every reward and every advantage again.
//!
//! Exit code 0 only if everything that was asked for is verified.

use std::path::Path;

use arena_audit::Verdict;
use arena_audit::training::RunAudit;
use arena_log::note::NOTE_BYTES_MAX;
use serde_json::json;

use crate::cli::audit::AuditArgs;
use crate::error::{CliError, EXIT_FINDINGS, EXIT_OK};
use crate::escape::escape;
use crate::render::audit as render;
use crate::render::transcript::{count, thousands};
use crate::screen::{self, Paint, Tone};
use crate::training::auditing;
use crate::{files, inputs, trust};

/// The step that is only taken where it is asked for.
const UPDATES: &str = "updates";

/// Audits, prints, and returns 0 or 1.
///
/// # Errors
/// Whom to believe is not known, a flag has no effect on a run, or a file cannot be read.
pub fn run(args: &AuditArgs, folder: &Path) -> Result<u8, CliError> {
    auditing::refuse_flags(&[
        ("--author", !args.author.is_empty()),
        ("--reexecute", args.reexecute.is_some()),
        ("--rescore", args.rescore),
    ])?;
    let policy = trust::policy(&args.trust, folder)?;
    let read = |path: &std::path::PathBuf| files::read(path, NOTE_BYTES_MAX as u64);
    let held: Result<Vec<Vec<u8>>, _> = args.held.iter().map(read).collect();
    let held = held.map_err(CliError::Input)?;
    let catalog = args.catalog.as_deref().map(inputs::amazon).transpose()?;
    let audit = auditing::run(folder, &policy, &held, catalog.as_ref(), args.retrain)?;
    let unasked: &[&str] = if args.retrain { &[] } else { &[UPDATES] };
    let is_verified = audit.is_verified_without(unasked);
    match args.json {
        true => screen::json(&json!({
            "verified": is_verified,
            "not_asked_for": unasked,
            "head": audit.opened.as_ref().map(render::head_to_json),
            "run": audit.run.map(|run| run.to_string()),
            "training_steps": audit.step_count,
            "matches": audit.match_count,
            "steps": render::to_json(&audit.steps),
            "limits": audit.limits,
        }))?,
        false => print(folder, &audit, is_verified)?,
    }
    Ok(if is_verified { EXIT_OK } else { EXIT_FINDINGS })
}

fn print(folder: &Path, audit: &RunAudit, is_verified: bool) -> Result<(), CliError> {
    let paint = Paint::of_stdout();
    let mut text = format!("audit of the training run {}\n", folder.display());
    if let Some(opened) = &audit.opened {
        let (origin, entries) = (escape(&opened.head.origin), count(opened.head.size, "entry"));
        let root = &opened.head.root;
        text.push_str(&format!("  ledger   {origin}\n  head     {entries}, root {root}\n"));
    }
    if let Some(run) = audit.run {
        text.push_str(&format!("  run      {run}\n"));
    }
    let steps = count(u64::from(audit.step_count), "step");
    text.push_str(&format!("  learned  {steps} from {} matches\n", thousands(audit.match_count)));
    text.push_str(&render::steps(&audit.steps, paint));
    text.push_str(&format!("\n{}\n", paint.paint(Tone::Bold, "No offline audit can show:")));
    for limit in audit.limits {
        text.push_str(&format!("  - {limit}\n"));
    }
    text.push_str(&format!("\n{}\n", verdict(audit, is_verified, paint)));
    screen::results(&text)
}

fn verdict(audit: &RunAudit, is_verified: bool, paint: Paint) -> String {
    let of = |wanted: fn(&Verdict) -> bool| -> Vec<&str> {
        audit.steps.iter().filter(|step| wanted(&step.verdict)).map(|step| step.id).collect()
    };
    let failed = of(Verdict::is_failed);
    let unchecked = of(|verdict| matches!(verdict, Verdict::NotChecked { .. }));
    if !failed.is_empty() {
        let line = paint.paint(Tone::Bad, &format!("verdict: FAILED: {}", failed.join(", ")));
        return format!("{line}\nnext: do not rely on this run; keep a copy of it");
    }
    if !is_verified {
        let what = unchecked.join(", ");
        let line =
            paint.paint(Tone::Note, &format!("verdict: NOT VERIFIED: not checked are {what}"));
        return format!("{line}\nnext: read above why, and audit again when that can be checked");
    }
    let (line, next) = match unchecked.is_empty() {
        true => ("verdict: VERIFIED: all of it", "audit the log of one step with --reexecute"),
        false => (
            "verdict: VERIFIED: all that was asked for; not checked are updates",
            "add --retrain, which repeats every update",
        ),
    };
    format!("{}\nnext: {next}", paint.paint(Tone::Good, line))
}
