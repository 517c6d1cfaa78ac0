//! Receipts: one entry is in one log, checkable offline (C2SP tlog-proof).
//!
//! A receipt holds the entry's index, the proof and the checkpoint, but not the entry. One
//! receipt has one spelling. Its `extra` line is vouched for by nobody, and is carried along
//! without being looked at.
//!
//! Not here: what the entry says; whoever checks a receipt brings the hash of the leaf.

use std::fmt;

use crate::checkpoint::{Head, HeadError};
use crate::hash::Hash;
use crate::note::{NOTE_BYTES_MAX, Note, NoteError};
use crate::policy::{Opened, Policy, PolicyError};
use crate::proof::{self, PROOF_HASHES_MAX, ProofError};
use crate::text;

/// Ending of the names of receipt files.
pub const FILE_SUFFIX: &str = ".tlog-proof";
/// Most bytes of extra data.
pub const EXTRA_BYTES_MAX: usize = 64 << 10;
/// Largest receipt in bytes: the note, the extra data in base64, the proof, some words.
pub const RECEIPT_BYTES_MAX: usize = NOTE_BYTES_MAX + 2 * EXTRA_BYTES_MAX;

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1\n";

/// What shows that one entry is in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Data that nobody vouches for.
    pub extra: Option<Vec<u8>>,
    /// The entry, counted from 0.
    pub index: u64,
    /// The siblings on the way up from the leaf.
    pub proof: Vec<Hash>,
    /// The whole signed checkpoint.
    pub checkpoint: String,
}

impl Receipt {
    /// Reads a receipt. Nothing in it is verified by that.
    ///
    /// # Errors
    /// It is too large, is not in the format, or is not the only spelling of what it says.
    pub fn parse(bytes: &[u8]) -> Result<Receipt, ReceiptError> {
        if bytes.len() > RECEIPT_BYTES_MAX {
            return Err(ReceiptError::TooLarge { bytes: bytes.len() });
        }
        let whole = str::from_utf8(bytes)
            .map_err(|error| ReceiptError::NotUtf8 { offset: error.valid_up_to() })?;
        let rest = whole.strip_prefix(FIRST_LINE).ok_or(ReceiptError::FirstLine)?;
        // The blank line after the proof is the first one: no line above it can be empty.
        let (lines, checkpoint) = rest.split_once("\n\n").ok_or(ReceiptError::NoCheckpoint)?;
        let mut lines = lines.split('\n').peekable();
        let extra = match lines.peek().and_then(|line| line.strip_prefix("extra ")) {
            Some(encoded) => {
                lines.next();
                Some(extra_data(encoded)?)
            }
            None => None,
        };
        let index = index_of(lines.next().unwrap_or_default())?;
        let mut proof = Vec::new();
        for line in lines {
            if proof.len() == PROOF_HASHES_MAX {
                return Err(ReceiptError::TooManyHashes);
            }
            proof.push(
                Hash::from_base64(line)
                    .ok_or_else(|| ReceiptError::HashLine { line: text::excerpt(line) })?,
            );
        }
        let note = Note::parse(checkpoint.as_bytes()).map_err(ReceiptError::Note)?;
        Head::parse(note.text()).map_err(ReceiptError::Head)?;
        let receipt = Receipt { extra, index, proof, checkpoint: checkpoint.to_owned() };
        if receipt.to_string() != whole {
            return Err(ReceiptError::NotCanonical);
        }
        Ok(receipt)
    }

    /// Checks that the checkpoint passes `policy` and that its tree holds `leaf` at the index
    /// of this receipt.
    ///
    /// # Errors
    /// The checkpoint does not pass, or the proof does not show the leaf.
    pub fn verify(&self, leaf: Hash, policy: &Policy) -> Result<Opened, ReceiptError> {
        let opened = policy.open(self.checkpoint.as_bytes()).map_err(ReceiptError::Policy)?;
        let Head { size, root, .. } = opened.head;
        proof::verify_inclusion(leaf, self.index, size, root, &self.proof)
            .map_err(ReceiptError::Proof)?;
        Ok(opened)
    }
}

fn extra_data(encoded: &str) -> Result<Vec<u8>, ReceiptError> {
    match text::from_base64(encoded) {
        Some(extra) if extra.len() <= EXTRA_BYTES_MAX => Ok(extra),
        _ => Err(ReceiptError::Extra),
    }
}

fn index_of(line: &str) -> Result<u64, ReceiptError> {
    let index = line.strip_prefix("index ").and_then(text::from_decimal);
    index.ok_or_else(|| ReceiptError::IndexLine { line: text::excerpt(line) })
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FIRST_LINE)?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", text::base64(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        self.proof.iter().try_for_each(|hash| writeln!(f, "{}", hash.to_base64()))?;
        write!(f, "\n{}", self.checkpoint)
    }
}

/// A receipt that shows nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptError {
    /// Larger than any receipt.
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// Not UTF-8.
    NotUtf8 {
        /// The first byte that is not.
        offset: usize,
    },
    /// Not a receipt, or one of another version.
    FirstLine,
    /// No blank line with a checkpoint after it.
    NoCheckpoint,
    /// The extra data are not base64, or too long.
    Extra,
    /// The line of the index is not one.
    IndexLine {
        /// The line.
        line: String,
    },
    /// A line of the proof is not a hash.
    HashLine {
        /// The line.
        line: String,
    },
    /// More hashes than any proof has.
    TooManyHashes,
    /// Another spelling of what it says.
    NotCanonical,
    /// The checkpoint is not a note.
    Note(NoteError),
    /// The checkpoint is not a head.
    Head(HeadError),
    /// The checkpoint is not one to believe.
    Policy(PolicyError),
    /// The proof does not show the leaf.
    Proof(ProofError),
}

impl fmt::Display for ReceiptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiptError::TooLarge { bytes } => {
                write!(f, "a receipt has {bytes} bytes, the most is {RECEIPT_BYTES_MAX}")
            }
            ReceiptError::NotUtf8 { offset } => {
                write!(f, "a receipt is not UTF-8 at byte {offset}")
            }
            ReceiptError::FirstLine => write!(
                f,
                "this is not a receipt: expected `{}` in the first line",
                FIRST_LINE.trim_end()
            ),
            ReceiptError::NoCheckpoint => {
                write!(f, "a receipt has no checkpoint after a blank line")
            }
            ReceiptError::Extra => write!(
                f,
                "the extra data of a receipt are not base64 of at most {EXTRA_BYTES_MAX} bytes"
            ),
            ReceiptError::IndexLine { line } => {
                write!(f, "`{line}` in a receipt is not `index NUMBER`")
            }
            ReceiptError::HashLine { line } => {
                write!(f, "`{line}` in a receipt is not a hash: expected 32 bytes in base64")
            }
            ReceiptError::TooManyHashes => {
                write!(f, "a receipt has more than {PROOF_HASHES_MAX} hashes")
            }
            ReceiptError::NotCanonical => write!(f, "a receipt is not spelled as it should be"),
            ReceiptError::Note(error) => write!(f, "{error}"),
            ReceiptError::Head(error) => write!(f, "{error}"),
            ReceiptError::Policy(error) => write!(f, "{error}"),
            ReceiptError::Proof(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReceiptError {}
