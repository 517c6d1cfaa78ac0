//! `arena log witness`: cosigns a head that continues the last one that was cosigned.
//!
//! The new head is in the state file, and on the disk, before the cosignature is given out: a
//! witness that forgets what it said could be made to say two things.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arena_log::checkpoint::Head;
use arena_log::cosignature::cosign;
use arena_log::key::SigningKey;
use arena_log::note::{NOTE_BYTES_MAX, Note, Vkey};
use arena_log::proof::verify_consistency;
use arena_log::reader::{Access, LogReader};
use arena_log::tile;

use crate::cli::log::WitnessArgs;
use crate::error::{CliError, Complaint};
use crate::outputs::{self, Readers};
use crate::{clock, files, reading, screen, secrets, trust};

/// Checks, remembers, cosigns.
///
/// # Errors
/// The head is not the log's, or does not continue the last one; a file is missing or wrong.
pub fn run(args: &WitnessArgs) -> Result<(), CliError> {
    let vkey = trust::vkey(&args.log_key)?;
    let key = secrets::read_key(&args.key).map_err(CliError::Input)?;
    // One witness at a time: between reading the state and replacing it nothing may change it.
    let _lock = lock(&args.state)?;
    let before = remembered(&args.state, &vkey)?;
    let mut offered = Offered::read(&args.log)?;
    let head = Head::open(&offered.note, &vkey).map_err(|error| refuse(args, &error))?;
    if let Some((_, before)) = &before {
        offered.check_growth(before, &head).map_err(|fact| refuse(args, &fact))?;
    }
    let cosigned = cosigned(args, &key, &offered.note, &head)?;
    if before.is_none_or(|(_, before)| before != head) {
        outputs::replace(&args.state, &offered.note, Readers::Owner)?;
    }
    give_out(args, &offered, &cosigned, &head)
}

/// A head that is offered, with the log where it is at hand.
struct Offered {
    note: Vec<u8>,
    reader: Option<LogReader>,
}

impl Offered {
    fn read(log: &Path) -> Result<Offered, CliError> {
        if log.is_dir() {
            let opened = LogReader::open(log, Access::Public);
            let reader = opened.map_err(|error| reading::complain(log, &error))?;
            let note = reader.checkpoint_bytes().to_vec();
            return Ok(Offered { note, reader: Some(reader) });
        }
        let note = files::read(log, NOTE_BYTES_MAX as u64).map_err(CliError::Input)?;
        Ok(Offered { note, reader: None })
    }

    /// Checks that a head continues the one before.
    fn check_growth(&mut self, before: &Head, head: &Head) -> Result<(), String> {
        if head.size < before.size {
            let (found, before) = (head.size, before.size);
            return Err(format!(
                "it has {found} entries, the last head cosigned had {before}: the log shrank"
            ));
        }
        let proof = match &mut self.reader {
            _ if head.size == before.size || before.size == 0 => Vec::new(),
            Some(reader) => {
                reader.consistency_proof(before.size).map_err(|error| error.to_string())?
            }
            None => {
                return Err("a head alone does not show that it continues the last one: name the \
                            log's folder"
                    .to_owned());
            }
        };
        let (old, new) = ((before.size, before.root), (head.size, head.root));
        verify_consistency(old, new, &proof).map_err(|error| {
            format!(
                "it does not continue the last head cosigned, {} entries with root {}: {error}",
                before.size, before.root
            )
        })
    }
}

/// Reads the last head that was cosigned, as the log signed it; `None` for a new witness.
fn remembered(state: &Path, vkey: &Vkey) -> Result<Option<(Vec<u8>, Head)>, CliError> {
    match state.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::Input(CliError::unreadable(state, &error))),
        Ok(_) => {}
    }
    let note = files::read(state, NOTE_BYTES_MAX as u64).map_err(CliError::Input)?;
    let head = Head::open(&note, vkey).map_err(|error| {
        let failed = format!("cannot use the state file `{}`", state.display());
        let hint = "a witness needs a state file of its own for each log";
        CliError::Input(Complaint::new(failed, error).hint(hint))
    })?;
    Ok(Some((note, head)))
}

/// Returns the head as the log signed it, with the cosignature added.
fn cosigned(
    args: &WitnessArgs,
    key: &SigningKey,
    note: &[u8],
    head: &Head,
) -> Result<String, CliError> {
    let note = Note::parse(note).map_err(|error| refuse(args, &error))?;
    let cosignature = cosign(key, &args.name, head, clock::now()?).map_err(|error| {
        let complaint = Complaint::new("cannot use `--name`", error);
        CliError::Config(complaint.hint("a name such as `witness.example/w1`"))
    })?;
    let cosigned = note.with_signatures(&[cosignature]);
    cosigned.map(|note| note.to_string()).map_err(|error| refuse(args, &error))
}

fn give_out(
    args: &WitnessArgs,
    offered: &Offered,
    cosigned: &str,
    head: &Head,
) -> Result<(), CliError> {
    if offered.reader.is_none() {
        return screen::results(cosigned);
    }
    let folder = args.log.join(tile::WITNESS);
    let path = folder.join(file_name(&args.name));
    if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        let failed = format!("cannot leave the cosigned head in `{}`", folder.display());
        let fact = "it is a link or no folder: it could lead anywhere";
        return Err(CliError::Input(Complaint::new(failed, fact)));
    }
    fs::create_dir_all(&folder).map_err(|error| {
        let failed = format!("cannot make the folder `{}`", folder.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    })?;
    outputs::replace(&path, cosigned.as_bytes(), Readers::Anyone)?;
    screen::results(&format!(
        "cosigned {} entries, root {}\nin {}\n",
        head.size,
        head.root,
        path.display()
    ))
}

/// Makes one file name of a witness's name, such as `witness.example_w1`.
fn file_name(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String =
        name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
    // A file with a leading dot is one under way, at which no reader looks.
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}

/// Holds the state file's lock, beside it, until the program ends.
fn lock(state: &Path) -> Result<fs::File, CliError> {
    let mut name = state.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let path: PathBuf = state.with_file_name(name);
    let fails = |error: &dyn std::fmt::Display| {
        let failed = format!("cannot lock the state file `{}`", state.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    };
    let options = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = options.map_err(|error| fails(&error))?;
    file.lock().map_err(|error| fails(&error))?;
    Ok(file)
}

/// Refuses to cosign, which is a finding about the log.
fn refuse(args: &WitnessArgs, fact: &dyn std::fmt::Display) -> CliError {
    let failed = format!("cannot cosign the head of `{}`", args.log.display());
    let hint = "keep the head and tell others: `arena audit diff` compares two";
    CliError::Input(Complaint::new(failed, fact).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_s_name_is_one_plain_file_name() {
        for (name, file) in [
            ("witness.example/w1", "witness.example_w1"),
            ("../../etc/passwd", "_._.._etc_passwd"),
            ("żółw", "___w"),
            (".", "_"),
        ] {
            assert_eq!(file_name(name), file);
            let path = Path::new(tile::WITNESS).join(file);
            let under_way = outputs::beside(&path);
            assert_eq!(under_way.parent(), path.parent(), "a rename is within one folder");
            let named =
                |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
            assert!(tile::is_under_way(&named(&under_way)) && !tile::is_under_way(&named(&path)));
        }
    }
}
