//! `arena audit diff`: two views of one log, held against each other.

use std::path::Path;

use arena_audit::diff::{Diff, Relation, View, diff};
use arena_log::note::NOTE_BYTES_MAX;
use arena_log::policy::Opened;
use arena_log::reader::{Access, LogReader};
use serde_json::{Value, json};

use crate::cli::audit::DiffArgs;
use crate::error::{CliError, EXIT_FINDINGS, EXIT_OK};
use crate::escape::{escape, harmless};
use crate::render::transcript::count;
use crate::screen::{self, Paint, Tone};
use crate::{files, reading, trust};

/// Compares, prints, and returns 0 or 1.
///
/// # Errors
/// Whom to believe is not known, or a view cannot be read.
pub fn run(args: &DiffArgs) -> Result<u8, CliError> {
    let policy = trust::policy(&args.trust, &args.a)?;
    let heads = [checkpoint(&args.a)?, checkpoint(&args.b)?];
    let [first, second] = [(&heads[0], &args.a), (&heads[1], &args.b)].map(|(head, path)| View {
        checkpoint: head,
        folder: path.is_dir().then_some(path.as_path()),
    });
    let found = match diff(first, second, &policy) {
        Ok(found) => found,
        Err(finding) => {
            let finding = harmless(&finding.to_string());
            match args.json {
                true => screen::json(&json!({ "relation": "unknown", "reason": finding }))?,
                false => screen::results(&format!("not comparable: {finding}\n"))?,
            }
            return Ok(EXIT_FINDINGS);
        }
    };
    match args.json {
        true => screen::json(&to_json(&found, &heads))?,
        false => screen::results(&words(args, &found, &heads))?,
    }
    Ok(match found.relation {
        Relation::Same | Relation::Continued => EXIT_OK,
        Relation::Forked { .. } | Relation::Unrelated | Relation::Unknown { .. } => EXIT_FINDINGS,
    })
}

/// Reads a signed head: of a log's folder, or out of a file.
fn checkpoint(path: &Path) -> Result<Vec<u8>, CliError> {
    if path.is_dir() {
        let reader = LogReader::open(path, Access::Public);
        let reader = reader.map_err(|error| reading::complain(path, &error))?;
        return Ok(reader.checkpoint_bytes().to_vec());
    }
    files::read(path, NOTE_BYTES_MAX as u64).map_err(CliError::Input)
}

fn words(args: &DiffArgs, found: &Diff, heads: &[Vec<u8>; 2]) -> String {
    let view = |path: &Path, opened: &Opened| {
        let head = &opened.head;
        let (origin, entries) = (escape(&head.origin), count(head.size, "entry"));
        format!("{}: {origin}, {entries}, root {}\n", path.display(), head.root)
    };
    let mut text = view(&args.a, &found.first);
    text.push_str(&view(&args.b, &found.second));
    let paint = Paint::of_stdout();
    let good = |line: &str| format!("{}\n", paint.paint(Tone::Good, line));
    text.push_str(&match &found.relation {
        Relation::Same => good("verdict: SAME: both heads are of the same entries"),
        Relation::Continued => {
            good("verdict: CONSISTENT: the larger one continues the smaller one")
        }
        Relation::Unrelated => "verdict: NOT COMPARABLE: they are heads of two logs\n".to_owned(),
        Relation::Unknown { reason } => {
            let reason = harmless(reason);
            format!(
                "verdict: NOT CHECKED: {reason}\n\
                 next: name the folder of the larger log, which shows whether it grew\n"
            )
        }
        Relation::Forked { size, first, second } => {
            let line = "verdict: EQUIVOCATION: the log has told two stories";
            let mut text = format!("{}\n", paint.paint(Tone::Bad, line));
            text.push_str(&format!(
                "  at {} the first has root {first}\n  and the second has root {second}\n",
                count(*size, "entry")
            ));
            for (path, head) in [(&args.a, &heads[0]), (&args.b, &heads[1])] {
                let note = harmless(&String::from_utf8_lossy(head));
                text.push_str(&format!("\nsigned head of {}:\n{note}", path.display()));
            }
            text.push_str(
                "\nnext: publish both heads; with the log's key anyone can check them, and no \
                 honest log signs both\n",
            );
            text
        }
    });
    text
}

fn to_json(found: &Diff, heads: &[Vec<u8>; 2]) -> Value {
    let view = |opened: &Opened, head: &[u8]| {
        json!({
            "origin": opened.head.origin,
            "size": opened.head.size,
            "root": opened.head.root.to_string(),
            "checkpoint": String::from_utf8_lossy(head),
        })
    };
    let mut value = match &found.relation {
        Relation::Same => json!({ "relation": "same" }),
        Relation::Continued => json!({ "relation": "continued" }),
        Relation::Unrelated => json!({ "relation": "unrelated" }),
        Relation::Unknown { reason } => json!({ "relation": "unknown", "reason": reason }),
        Relation::Forked { size, first, second } => json!({
            "relation": "forked",
            "compared_at_size": size,
            "first_root": first.to_string(),
            "second_root": second.to_string(),
        }),
    };
    value["first"] = view(&found.first, &heads[0]);
    value["second"] = view(&found.second, &heads[1]);
    value
}
