//! `arena log prove`: writes receipts, for whoever does not have the log.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use arena_core::entry::Entry;
use arena_log::note::{NOTE_BYTES_MAX, Note, NoteSignature, SIGNATURES_MAX};
use arena_log::reader::LogReader;
use arena_log::receipt::{FILE_SUFFIX, Receipt};
use arena_log::tile;

use crate::cli::log::ProveArgs;
use crate::error::{CliError, Complaint};
use crate::outputs::{self, Readers};
use crate::render::transcript::count;
use crate::{files, reading, screen};

/// Ending of the files of entries.
pub const ENTRY_SUFFIX: &str = ".entry";
/// Ending of the files of transcripts.
pub const TRANSCRIPT_SUFFIX: &str = ".transcript";

/// Writes a receipt with its entry and, where it is published, its transcript.
///
/// # Errors
/// There is no log, it is damaged, it has no such entry, or a file exists.
pub fn run(args: &ProveArgs) -> Result<(), CliError> {
    let mut reader = reading::open(&args.log)?;
    let wanted = match (args.entry, args.pair) {
        (Some(index), _) => vec![(index, args.out.clone())],
        (None, Some(pair)) => find_pair(args, &mut reader, pair)?,
        (None, None) => unreachable!("the command line asks for an entry or a pair"),
    };
    let mut written = String::new();
    for (index, out) in &wanted {
        let files = prove(args, &mut reader, *index, out)?;
        written.push_str(&format!("entry {index}: {}\n", files.join(", ")));
    }
    let receipt = with_suffix(&wanted[0].1, FILE_SUFFIX);
    let receipt = receipt.display();
    screen::results(&format!("{written}next: arena audit receipt {receipt} --key VKEY\n"))
}

/// Finds the entries of a pair's matches, and names the files of their receipts.
fn find_pair(
    args: &ProveArgs,
    reader: &mut LogReader,
    pair_index: u64,
) -> Result<Vec<(u64, PathBuf)>, CliError> {
    let size = reader.head().size;
    let mut found = Vec::new();
    loop {
        let record = match reader.next_record() {
            Ok(Some(record)) if record.index < size => record,
            Ok(_) => break,
            Err(error) => return Err(reading::complain(&args.log, &error)),
        };
        let index = record.index;
        let entry = Entry::decode(record.entry)
            .map_err(|error| reading::complain(&args.log, &format!("entry {index}: {error}")))?;
        let Entry::Match(played) = entry else { continue };
        if played.pair_index == pair_index && args.leg.is_none_or(|leg| leg == played.leg) {
            let out = match args.leg {
                Some(_) => args.out.clone(),
                None => with_suffix(&args.out, &format!("-leg-{}", played.leg)),
            };
            found.push((index, out));
        }
        // A pair has two matches at most, and they are neighbours.
        if found.len() == 2 || (args.leg.is_some() && found.len() == 1) {
            break;
        }
    }
    if found.is_empty() {
        let fact = format!("it is not among the {} that are signed", count(size, "entry"));
        let failed = format!("cannot prove pair {pair_index}");
        return Err(CliError::Config(Complaint::new(failed, fact)));
    }
    Ok(found)
}

/// Writes the files of one receipt and returns their names.
fn prove(
    args: &ProveArgs,
    reader: &mut LogReader,
    index: u64,
    out: &Path,
) -> Result<Vec<String>, CliError> {
    let size = reader.head().size;
    if index >= size {
        let fact = format!("the log has {} signed, counted from 0", count(size, "entry"));
        return Err(CliError::Config(Complaint::new(format!("cannot prove entry {index}"), fact)));
    }
    let fails = |error: arena_log::error::LogError| reading::complain(&args.log, &error);
    let is_withheld = reader.is_withheld();
    let record = reader.get(index).map_err(fails)?;
    let entry = record.entry.to_vec();
    let transcript = record.attachment.filter(|bytes| !bytes.is_empty()).map(<[u8]>::to_vec);
    let proof = reader.inclusion_proof(index).map_err(fails)?;
    let note = Note::parse(reader.checkpoint_bytes()).expect("a head that was read is a note");
    let checkpoint = cosigned(&args.log, note).to_string();
    let receipt = Receipt { extra: None, index, proof, checkpoint };
    let mut files = vec![(FILE_SUFFIX, receipt.to_string().into_bytes()), (ENTRY_SUFFIX, entry)];
    // What is private, because the log is not closed, is nobody's but the organiser's.
    let is_public = !is_withheld && args.log.join(arena_log::tile::ATTACHMENT).is_dir();
    files.extend(transcript.filter(|_| is_public).map(|bytes| (TRANSCRIPT_SUFFIX, bytes)));
    let mut names = Vec::with_capacity(files.len());
    for (suffix, bytes) in files {
        let path = with_suffix(out, suffix);
        outputs::create(&path, &bytes, Readers::Anyone)?;
        names.push(path.display().to_string());
    }
    Ok(names)
}

/// Adds the signatures that witnesses left on the same head beside the log.
///
/// What else lies there is passed over: it is anyone's, and the receipt is sound without it. So
/// are signatures beyond what a note can hold, and those under the name of who signed already,
/// since a wrong one would spoil the receipt.
fn cosigned(log: &Path, head: Note) -> Note {
    let own = head.signatures().to_vec();
    let is_own =
        |by: &NoteSignature| own.iter().any(|own| (&own.name, own.key_id) == (&by.name, by.key_id));
    let mut note = head;
    for added in witnessed(log, note.text()).into_iter().filter(|added| !is_own(added)) {
        if note.signatures().len() >= SIGNATURES_MAX {
            break;
        }
        match note.clone().with_signatures(&[added]) {
            Ok(more) if more.to_string().len() <= NOTE_BYTES_MAX => note = more,
            _ => {}
        }
    }
    note
}

/// Returns the signatures on this text in the folder of the witnesses, in the files' order.
fn witnessed(log: &Path, text: &str) -> Vec<NoteSignature> {
    let folder = log.join(tile::WITNESS);
    // A link could lead anywhere.
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Vec::new();
    }
    let items = std::fs::read_dir(&folder).into_iter().flatten().take(2 * tile::WITNESS_NAMES_MAX);
    let mut names: Vec<OsString> = items.flatten().map(|item| item.file_name()).collect();
    names.retain(|name| !tile::is_under_way(&name.to_string_lossy()));
    names.sort();
    names.truncate(tile::WITNESS_NAMES_MAX);
    let mut signatures = Vec::new();
    for path in names.iter().map(|name| folder.join(name)) {
        if !path.symlink_metadata().is_ok_and(|found| found.is_file()) {
            continue;
        }
        let Ok(bytes) = files::read(&path, NOTE_BYTES_MAX as u64) else { continue };
        match Note::parse(&bytes) {
            Ok(note) if note.text() == text => signatures.extend_from_slice(note.signatures()),
            _ => {}
        }
    }
    signatures
}

/// Appends to the last part of a path.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
