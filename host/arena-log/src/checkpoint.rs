//! The signed head of a log (C2SP tlog-checkpoint v1.0.0).
//!
//! A head is three lines: the log's origin, its size, its root. Further lines are refused,
//! because no auditor could check what they claim. One head has one text, and a text that is
//! not exactly that is no head.
//!
//! Not here: which key a head should be signed with (`policy`).

use std::fmt;

use crate::hash::Hash;
use crate::key::SigningKey;
use crate::note::{Note, NoteError, Vkey, check_name};
use crate::text;

/// What a log says of itself: it has this many entries, and this is the root over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The log's identity, which is also the name of its key.
    pub origin: String,
    /// How many entries.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Hash,
}

impl Head {
    /// Returns the text that is signed: three lines.
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, self.root.to_base64())
    }

    /// Reads what [`Head::text`] gives; nothing else.
    ///
    /// # Errors
    /// There are fewer or more than three lines, the size is not a decimal below 2^64 without
    /// leading zeros, the root is not a hash, or a head of size 0 has another root than the
    /// empty tree.
    pub fn parse(head: &str) -> Result<Head, HeadError> {
        let mut lines = head.split('\n');
        let (Some(origin), Some(size), Some(root), Some(rest)) =
            (lines.next(), lines.next(), lines.next(), lines.next())
        else {
            return Err(HeadError::Lines { found: head.matches('\n').count() });
        };
        if !rest.is_empty() || lines.next().is_some() {
            return Err(HeadError::Extension { line: text::excerpt(rest) });
        }
        check_name(origin).map_err(HeadError::Note)?;
        let size = text::from_decimal(size)
            .ok_or_else(|| HeadError::Size { line: text::excerpt(size) })?;
        let root =
            Hash::from_base64(root).ok_or_else(|| HeadError::Root { line: text::excerpt(root) })?;
        if size == 0 && root != Hash::EMPTY_TREE {
            return Err(HeadError::EmptyRoot { root });
        }
        let parsed = Head { origin: origin.to_owned(), size, root };
        assert_eq!(parsed.text(), head, "three lines, each with one spelling, have one spelling");
        Ok(parsed)
    }

    /// Signs the head and returns the whole note. The signature is verified before it is given
    /// out, so that a fault of the machine does not sign something else.
    ///
    /// # Errors
    /// The origin cannot name a key, or this is no head that would be read back.
    pub fn sign(&self, key: &SigningKey) -> Result<String, HeadError> {
        let text = self.text();
        Head::parse(&text)?;
        let vkey = key.vkey(&self.origin).map_err(HeadError::Note)?;
        let signature = key.sign_note(&self.origin, &text).map_err(HeadError::Note)?;
        let note = Note::new(text, vec![signature]).map_err(HeadError::Note)?;
        note.verify(&vkey).map_err(HeadError::Note)?;
        Ok(note.to_string())
    }

    /// Reads a checkpoint and checks that it is of the log that `vkey` names, signed by it.
    ///
    /// # Errors
    /// The note or the head is malformed, of another log, or not signed by this key.
    pub fn open(bytes: &[u8], vkey: &Vkey) -> Result<Head, HeadError> {
        let note = Note::parse(bytes).map_err(HeadError::Note)?;
        let head = Head::parse(note.text())?;
        if head.origin != vkey.name() {
            return Err(HeadError::Origin {
                found: text::excerpt(&head.origin),
                wanted: vkey.name().to_owned(),
            });
        }
        note.verify(vkey).map_err(HeadError::Note)?;
        Ok(head)
    }
}

/// A checkpoint that is not to be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// The note around the head is wrong.
    Note(NoteError),
    /// Too few lines.
    Lines {
        /// How many.
        found: usize,
    },
    /// A line after the third.
    Extension {
        /// The line.
        line: String,
    },
    /// The second line is not a size.
    Size {
        /// The line.
        line: String,
    },
    /// The third line is not a hash.
    Root {
        /// The line.
        line: String,
    },
    /// A log without entries with a root of something.
    EmptyRoot {
        /// The root.
        root: Hash,
    },
    /// The head of another log.
    Origin {
        /// The origin found.
        found: String,
        /// The name of the key.
        wanted: String,
    },
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeadError::Note(error) => write!(f, "{error}"),
            HeadError::Lines { found } => {
                write!(f, "a checkpoint has {found} lines of text, expected 3: origin, size, root")
            }
            HeadError::Extension { line } => {
                write!(f, "a checkpoint has the extension line `{line}`, which nobody can check")
            }
            HeadError::Size { line } => {
                write!(f, "`{line}` is not the size of a log: expected a decimal number")
            }
            HeadError::Root { line } => {
                write!(f, "`{line}` is not a root: expected 32 bytes in base64")
            }
            HeadError::EmptyRoot { root } => write!(
                f,
                "a checkpoint of size 0 has the root {root}, the empty tree has {}",
                Hash::EMPTY_TREE
            ),
            HeadError::Origin { found, wanted } => {
                write!(f, "the checkpoint is of the log `{found}`, the key of `{wanted}`")
            }
        }
    }
}

impl std::error::Error for HeadError {}
