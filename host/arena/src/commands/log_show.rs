//! `arena log show`: the head of a log, a count of its entries, or one entry with what it binds.
//!
//! Nothing is verified here but that a transcript is the one that its entry binds.

use std::collections::BTreeMap;

use arena_core::entry::{AnnouncementEntry, Entry, MatchEntry, TournamentId};
use arena_log::hash::Hash;
use arena_log::note::Note;
use arena_log::reader::LogReader;
use serde_json::{Value, json};

use crate::cli::log::LogShowArgs;
use crate::error::{CliError, Complaint};
use crate::escape::{escape, harmless};
use crate::reading;
use crate::render::entry::{self, lines};
use crate::render::record;
use crate::render::transcript::{count, thousands};
use crate::screen;

/// Prints what was asked for.
///
/// # Errors
/// There is no log, it is damaged, or it has no such entry.
pub fn run(args: &LogShowArgs) -> Result<(), CliError> {
    let mut reader = reading::open(&args.log)?;
    match (args.entry, args.head) {
        (Some(index), _) => show_entry(args, &mut reader, index),
        (None, true) => show_head(args, &reader),
        (None, false) => show_log(args, &mut reader),
    }
}

fn show_head(args: &LogShowArgs, reader: &LogReader) -> Result<(), CliError> {
    let note = note(args, reader)?;
    match args.json {
        true => screen::json(&head_json(reader, &note)),
        // Printed to be kept as a file, which it can be where no name in it misleads.
        false => screen::results(&harmless(&note.to_string())),
    }
}

fn note(args: &LogShowArgs, reader: &LogReader) -> Result<Note, CliError> {
    Note::parse(reader.checkpoint_bytes()).map_err(|error| reading::complain(&args.log, &error))
}

fn head_json(reader: &LogReader, note: &Note) -> Value {
    let head = reader.head();
    let signatures = note.signatures().iter().map(|signature| {
        json!({ "name": signature.name, "key_id": arena_core::hexadecimal::hex(&signature.key_id) })
    });
    json!({
        "origin": head.origin,
        "size": head.size,
        "root": head.root.to_string(),
        "signatures": signatures.collect::<Vec<Value>>(),
    })
}

fn show_log(args: &LogShowArgs, reader: &mut LogReader) -> Result<(), CliError> {
    let note = note(args, reader)?;
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut size = 0_u64;
    loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => return Err(reading::complain(&args.log, &error)),
        };
        let entry = decode(args, record.index, record.entry)?;
        *kinds.entry(entry::kind(&entry)).or_insert(0) += 1;
        size += 1;
    }
    let mut value = head_json(reader, &note);
    value["entries"] = json!(kinds);
    value["unsigned_entries"] = json!(size.saturating_sub(reader.head().size));
    value["transcripts_withheld"] = json!(reader.is_withheld());
    if args.json {
        return screen::json(&value);
    }
    let named = |(kind, entries): (&&str, &u64)| count(*entries, kind);
    let kinds: Vec<String> = kinds.iter().map(named).collect();
    let signers: Vec<String> =
        note.signatures().iter().map(|signature| escape(&signature.name)).collect();
    let (head, log) = (reader.head(), args.log.display());
    let beyond = size.saturating_sub(head.size);
    screen::results(&format!(
        "{log}: {entries}, signed by {signers}; nothing of this is verified\n  \
         origin   {origin}\n  root     {root}\n  entries  {kinds}{unsigned}\n\
         next: arena audit {log} --key VKEY\n",
        entries = count(head.size, "entry"),
        signers = signers.join(", "),
        origin = escape(&head.origin),
        root = head.root,
        kinds = kinds.join(", "),
        unsigned = match beyond {
            0 => String::new(),
            beyond => format!(", the last {} of them not signed", thousands(beyond)),
        },
    ))
}

fn decode(args: &LogShowArgs, index: u64, bytes: &[u8]) -> Result<Entry, CliError> {
    Entry::decode(bytes)
        .map_err(|error| reading::complain(&args.log, &format!("entry {index}: {error}")))
}

fn show_entry(args: &LogShowArgs, reader: &mut LogReader, index: u64) -> Result<(), CliError> {
    let size = reader.head().size;
    if index >= size {
        let fact = format!("the log has {} signed, counted from 0", count(size, "entry"));
        return Err(CliError::Config(Complaint::new(format!("cannot show entry {index}"), fact)));
    }
    let found = reader.get(index).map_err(|error| reading::complain(&args.log, &error))?;
    let (bytes, attachment) = (found.entry.to_vec(), found.attachment.map(<[u8]>::to_vec));
    let entry = decode(args, index, &bytes)?;
    let mut value = entry::to_json(&entry);
    value["index"] = json!(index);
    value["leaf_hash"] = json!(Hash::leaf(&bytes).to_string());
    match &entry {
        Entry::Announcement(opening) => {
            value["tournament"] = json!(TournamentId::of_first_entry(&bytes).to_string());
            value["announcement"] = announcement(reader, opening)?;
        }
        Entry::Match(played) => {
            value["transcript"] = transcript(args, reader, played, attachment.as_deref())?;
        }
        _ => {}
    }
    match args.json {
        true => screen::json(&value),
        false => {
            let heading = format!("entry {index} of {}", thousands(size));
            screen::results(&format!("{heading}\n{}", lines(&value)))
        }
    }
}

fn announcement(reader: &LogReader, opening: &AnnouncementEntry) -> Result<Value, CliError> {
    let announcement = reading::read_announcement(reader, opening)?;
    Ok(entry::announcement(&announcement))
}

fn transcript(
    args: &LogShowArgs,
    reader: &mut LogReader,
    played: &MatchEntry,
    attachment: Option<&[u8]>,
) -> Result<Value, CliError> {
    let Some(bytes) = attachment else {
        return Ok(json!("withheld"));
    };
    let record = reading::read_transcript(played.tournament, played, bytes)
        .map_err(|fact| reading::complain(&args.log, &fact))?;
    let (_, opening) = reading::read_opening(reader)?;
    let announcement = reading::read_announcement(reader, &opening)?;
    let agents = &announcement.agents;
    let name = |agent: u16| agents.get(usize::from(agent)).map(|agent| agent.name.as_str());
    let names = record.agents.map(|agent| name(agent).unwrap_or("unknown"));
    Ok(record::to_json(&record, names))
}
