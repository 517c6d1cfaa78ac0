//! `arena audit receipt`: one entry shown to be in a log, without the log.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use arena_audit::receipt::{self, Shown};
use arena_audit::{Finding, Step, Verdict};
use arena_core::announcement::{ANNOUNCEMENT_BYTES_MAX, Announcement};
use arena_core::config::TournamentConfig;
use arena_core::entry::{AnnouncementEntry, ENTRY_BYTES_MAX, Entry, MatchEntry, TournamentId};
use arena_core::rules::{Rules, replay};
use arena_core::transcript::Transcript;
use arena_log::bundle::ATTACHMENT_BYTES_MAX;
use arena_log::hash::Hash;
use arena_log::receipt::{FILE_SUFFIX, RECEIPT_BYTES_MAX};
use serde_json::{Value, json};

use crate::cli::audit::ReceiptArgs;
use crate::commands::log_prove::{ENTRY_SUFFIX, TRANSCRIPT_SUFFIX, with_suffix};
use crate::error::{CliError, Complaint, EXIT_FINDINGS, EXIT_OK};
use crate::escape::escape;
use crate::render::audit as render;
use crate::render::{entry, record};
use crate::screen::{self, Paint, Tone};
use crate::{files, trust};

/// Checks, prints, and returns 0 or 1.
///
/// # Errors
/// Whom to believe is not known, or a file cannot be read.
pub fn run(args: &ReceiptArgs) -> Result<u8, CliError> {
    let policy = trust::policy(&args.trust, &args.file)?;
    let bytes = files::read(&args.file, RECEIPT_BYTES_MAX as u64).map_err(CliError::Input)?;
    let given = Given::read(args)?;
    let shown = match receipt::receipt(&bytes, given.entry.as_deref(), &policy) {
        Ok(shown) => shown,
        Err(finding) => {
            let steps = [step("inclusion", failed(finding))];
            print(args, &steps, false, None)?;
            return Ok(EXIT_FINDINGS);
        }
    };
    let checked = Checked::of(&shown, &given);
    let asked = |step: &Step| match step.id {
        "transcript" => given.transcript.is_some(),
        "announcement" | "rules" => given.announcement.is_some(),
        _ => true,
    };
    let mut asked = checked.steps.iter().filter(|step| asked(step));
    let is_sound = asked.all(|step| step.verdict.is_verified());
    print(args, &checked.steps, is_sound, Some((&shown, checked.transcript.as_ref())))?;
    Ok(if is_sound { EXIT_OK } else { EXIT_FINDINGS })
}

/// What there is beside the receipt.
struct Given {
    entry: Option<Vec<u8>>,
    transcript: Option<Vec<u8>>,
    announcement: Option<Vec<u8>>,
}

impl Given {
    fn read(args: &ReceiptArgs) -> Result<Given, CliError> {
        let entry = match &args.entry {
            Some(path) if path == Path::new("-") => Some(read_stdin()?),
            named => beside(args, named, ENTRY_SUFFIX, ENTRY_BYTES_MAX)?,
        };
        let transcript = beside(args, &args.transcript, TRANSCRIPT_SUFFIX, ATTACHMENT_BYTES_MAX)?;
        let read = |path: &PathBuf| files::read(path, ANNOUNCEMENT_BYTES_MAX as u64);
        let announcement = args.announcement.as_ref().map(read).transpose();
        let announcement = announcement.map_err(CliError::Input)?;
        Ok(Given { entry, transcript, announcement })
    }
}

/// Reads the file that is named, or the one that lies beside the receipt, if there is one.
fn beside(
    args: &ReceiptArgs,
    named: &Option<PathBuf>,
    suffix: &str,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, CliError> {
    let path = match named {
        Some(path) => path.clone(),
        None => {
            let receipt = args.file.to_string_lossy();
            let Some(stem) = receipt.strip_suffix(FILE_SUFFIX) else { return Ok(None) };
            let path = with_suffix(Path::new(stem), suffix);
            if path.symlink_metadata().is_err() {
                return Ok(None);
            }
            path
        }
    };
    files::read(&path, bytes_max as u64).map(Some).map_err(CliError::Input)
}

fn read_stdin() -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(ENTRY_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::Input(Complaint::new("cannot read the entry", error)))?;
    // An entry that is too long is refused with the receipt: no log holds one.
    Ok(bytes)
}

/// What was checked of an entry that is in the log.
struct Checked {
    steps: Vec<Step>,
    transcript: Option<Transcript>,
}

impl Checked {
    fn of(shown: &Shown, given: &Given) -> Checked {
        let head = &shown.opened.head;
        let detail = format!("entry {} of {} under the root {}", shown.index, head.size, head.root);
        let mut steps = vec![step("inclusion", Verdict::Verified { detail })];
        let Entry::Match(played) = &shown.entry else {
            return Checked { steps, transcript: None };
        };
        let (verdict, transcript) = transcript(played, given.transcript.as_deref());
        steps.push(step("transcript", verdict));
        let announced = given.announcement.as_deref().map(|bytes| announced(shown, played, bytes));
        let (verdict, config) = match announced {
            None => (not_checked("no announcement was given"), None),
            Some(Ok(config)) => {
                let detail = "it is the one that the log opens with".to_owned();
                (Verdict::Verified { detail }, Some(config))
            }
            Some(Err(finding)) => (failed(finding), None),
        };
        steps.push(step("announcement", verdict));
        let verdict = match (&transcript, &config) {
            (None, _) => not_checked("there is no transcript to judge"),
            (_, None) => not_checked("the rules are in the announcement"),
            (Some(transcript), Some(config)) => judge(transcript, config, shown.index),
        };
        steps.push(step("rules", verdict));
        Checked { steps, transcript }
    }
}

fn step(id: &'static str, verdict: Verdict) -> Step {
    let title = match id {
        "inclusion" => "the entry is in the log, under a head to believe",
        "transcript" => "the transcript is the one that the entry binds",
        "announcement" => "the announcement is the one that the log opens with",
        _ => "every move is what the rules allow",
    };
    Step { id, title, verdict }
}

fn failed(finding: Finding) -> Verdict {
    Verdict::Failed { findings: vec![finding], finding_count: 1 }
}

fn not_checked(reason: &str) -> Verdict {
    Verdict::NotChecked { reason: reason.to_owned() }
}

fn transcript(played: &MatchEntry, bytes: Option<&[u8]>) -> (Verdict, Option<Transcript>) {
    let Some(bytes) = bytes else {
        return (not_checked("no transcript was given: it is withheld until the close"), None);
    };
    match receipt::transcript(played, bytes) {
        Ok(transcript) => {
            let detail = format!("{} bytes, {}", bytes.len(), Hash(played.transcript_sha256));
            (Verdict::Verified { detail }, Some(transcript))
        }
        Err(finding) => (failed(finding), None),
    }
}

/// Checks that an announcement is the tournament's, and reads its tournament file.
///
/// The tournament's id is the hash of the log's first entry, and that entry has nothing in it
/// but the log's name, its key and the announcement's hash. So the entry can be made again.
fn announced(
    shown: &Shown,
    played: &MatchEntry,
    bytes: &[u8],
) -> Result<TournamentConfig, Finding> {
    let opening = Entry::Announcement(AnnouncementEntry {
        origin: shown.opened.head.origin.clone(),
        log_key: shown.opened.log.key().to_bytes(),
        announcement_sha256: Hash::of(bytes).0,
    });
    let id = TournamentId::of_first_entry(&opening.encode());
    if id != played.tournament {
        return Err(Finding::new("the announcement's tournament", id, played.tournament));
    }
    let announcement = Announcement::decode(bytes)
        .map_err(|error| Finding::new("the announcement", error, "one in canonical form"))?;
    TournamentConfig::parse(&announcement.config_toml)
        .map_err(|error| Finding::new("the tournament file", error, "a sound one"))
}

fn judge(transcript: &Transcript, config: &TournamentConfig, index: u64) -> Verdict {
    let rules = Rules::new(&config.rules, &config.limits);
    match replay(&rules, &transcript.record) {
        Ok(()) => Verdict::Verified { detail: "every move is what the rules allow".to_owned() },
        Err(error) => failed(Finding::new("the match", error, "one by the rules").at(index)),
    }
}

fn print(
    args: &ReceiptArgs,
    steps: &[Step],
    is_sound: bool,
    shown: Option<(&Shown, Option<&Transcript>)>,
) -> Result<(), CliError> {
    let entry = shown.map(|(shown, transcript)| entry_json(shown, transcript));
    if args.json {
        return screen::json(&json!({
            "verified": is_sound,
            "head": shown.map(|(shown, _)| render::head_to_json(&shown.opened)),
            "steps": render::to_json(steps),
            "entry": entry,
        }));
    }
    let mut text = format!("receipt {}\n", args.file.display());
    if let Some((shown, _)) = shown {
        text.push_str(&format!("  log  {}\n", escape(&shown.opened.head.origin)));
    }
    let paint = Paint::of_stdout();
    text.push_str(&render::steps(steps, paint));
    if let Some(entry) = &entry {
        text.push_str(&format!("\n{}", entry::lines(entry)));
    }
    text.push_str(&format!("\n{}\n", verdict(steps, is_sound, paint)));
    screen::results(&text)
}

/// Says in a line what all of it means.
fn verdict(steps: &[Step], is_sound: bool, paint: Paint) -> String {
    let of = |wanted: fn(&Verdict) -> bool| -> Vec<&str> {
        steps.iter().filter(|step| wanted(&step.verdict)).map(|step| step.id).collect()
    };
    let failed = of(Verdict::is_failed);
    let unchecked = of(|verdict| matches!(verdict, Verdict::NotChecked { .. })).join(", ");
    let (tone, line) = match (is_sound, unchecked.as_str()) {
        (true, "") => (Tone::Good, "VERIFIED".to_owned()),
        (true, _) => {
            (Tone::Good, format!("VERIFIED: all that was given; not checked: {unchecked}"))
        }
        (false, _) if failed.is_empty() => {
            (Tone::Note, format!("NOT VERIFIED: not checked: {unchecked}"))
        }
        (false, _) => (Tone::Bad, format!("FAILED: {}", failed.join(", "))),
    };
    paint.paint(tone, &format!("verdict: {line}"))
}

fn entry_json(shown: &Shown, transcript: Option<&Transcript>) -> Value {
    let mut value = entry::to_json(&shown.entry);
    value["index"] = json!(shown.index);
    if let Some(transcript) = transcript {
        // Without the announcement nobody knows what the agents are called.
        let names = transcript.record.agents.map(|agent| format!("agent {agent}"));
        value["transcript"] = record::to_json(&transcript.record, [&names[0], &names[1]]);
    }
    value
}
