//! Cosignatures: a witness states that it saw a head at a time (C2SP tlog-cosignature v1.0.1,
//! Ed25519, kind 0x04).
//!
//! Signed are the words `cosignature/v1`, the time, and the whole text of the checkpoint. The
//! witness is not named in it, so one key serves one witness. The time is a claim of the
//! witness, no more.
//!
//! Not here: how many witnesses are enough (`policy`), and what a witness must have checked.

use crate::checkpoint::Head;
use crate::key::SigningKey;
use crate::note::{KeyKind, Note, NoteError, NoteSignature, Vkey};

/// Latest time that a cosignature can state, in seconds since 1970.
pub const TIME_MAX: u64 = i64::MAX as u64;

/// Cosigns `head` as the witness `name`, at `time` in seconds since 1970. Whoever calls this
/// has checked that the head continues the last one that it cosigned.
///
/// # Errors
/// The name cannot name a key, or the time is after [`TIME_MAX`].
pub fn cosign(
    key: &SigningKey,
    name: &str,
    head: &Head,
    time: u64,
) -> Result<NoteSignature, NoteError> {
    let vkey = key.cosigner_vkey(name)?;
    if time > TIME_MAX {
        return Err(NoteError::Time { time });
    }
    let signed = key.sign(&message(time, &head.text()));
    let signature = [&time.to_be_bytes()[..], &signed].concat();
    Ok(NoteSignature { name: name.to_owned(), key_id: vkey.key_id(), signature })
}

/// Checks that the witness `vkey` cosigned the text of `note`, and returns the time that it
/// stated, in seconds since 1970: the earliest where it stated several.
///
/// # Errors
/// The witness did not cosign, a cosignature of it is not one of this text, or the key is a
/// log's.
pub fn verify(note: &Note, vkey: &Vkey) -> Result<u64, NoteError> {
    if vkey.kind() != KeyKind::Witness {
        return Err(NoteError::WrongUse { vkey: vkey.to_string(), wanted: KeyKind::Witness });
    }
    let mut earliest = TIME_MAX;
    for line in note.lines_of(vkey)? {
        let bad = || NoteError::BadSignature { name: vkey.name().to_owned() };
        let (time, signature) = line.signature.split_first_chunk().ok_or_else(bad)?;
        let time = u64::from_be_bytes(*time);
        if time > TIME_MAX {
            return Err(NoteError::Time { time });
        }
        if !vkey.key().verifies(&message(time, note.text()), signature) {
            return Err(bad());
        }
        earliest = earliest.min(time);
    }
    Ok(earliest)
}

fn message(time: u64, text: &str) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}
