//! What can be wrong with a model's files, with the facts that a person needs.
//!
//! Every variant names the file and the place in it: a tensor, a key, or the part of the header.
//! Texts that a file chose are shortened and escaped before they are shown.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Characters of a file's own text that an error shows.
const SHOWN_CHARS_MAX: usize = 200;

/// A model, a tokenizer or an adapter that cannot be used.
#[derive(Debug)]
pub enum WeightsError {
    /// The operating system refused.
    Io {
        /// What was tried, such as `read`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The path is neither a GGUF file nor a folder with safetensors.
    NotAModel {
        /// The path.
        path: PathBuf,
        /// What was looked for and not found.
        missing: &'static str,
    },
    /// The file ends before something that it announces.
    Truncated {
        /// The file.
        path: PathBuf,
        /// What was being read.
        place: String,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// A number is larger than is ever read.
    Limit {
        /// The file.
        path: PathBuf,
        /// What is counted, and where.
        place: String,
        /// What the file says.
        value: u64,
        /// The most.
        most: u64,
    },
    /// Something in a file is not what it must be.
    Malformed {
        /// The file.
        path: PathBuf,
        /// The tensor, the key, or the part of the file.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A file is sound, but asks for what is not done here.
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The key, the tensor, or the part of the file.
        place: String,
        /// What it asks for.
        value: String,
    },
    /// A tensor that the architecture needs is not there.
    MissingTensor {
        /// The file or folder.
        path: PathBuf,
        /// Its canonical name.
        tensor: String,
    },
    /// A tensor has another shape than the architecture's numbers give it.
    Shape {
        /// The file or folder.
        path: PathBuf,
        /// Its canonical name.
        tensor: String,
        /// Outermost first.
        expected: Vec<usize>,
        /// Outermost first.
        found: Vec<usize>,
    },
    /// A text is longer than is ever made into tokens.
    TextTooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// The crate that encodes text refused.
    Tokenizer {
        /// What it says.
        detail: String,
    },
    /// The chat template refused the messages, or cannot be used for them.
    Template {
        /// What it says, or what went wrong.
        detail: String,
    },
}

impl WeightsError {
    pub(crate) fn malformed(
        path: &std::path::Path,
        place: impl Into<String>,
        detail: impl Into<String>,
    ) -> WeightsError {
        let (place, detail) = (place.into(), detail.into());
        WeightsError::Malformed { path: path.to_path_buf(), place, detail }
    }

    pub(crate) fn unsupported(
        path: &std::path::Path,
        place: impl Into<String>,
        value: impl Into<String>,
    ) -> WeightsError {
        let (place, value) = (place.into(), value.into());
        WeightsError::Unsupported { path: path.to_path_buf(), place, value }
    }
}

/// Shortens a text that a file chose, and writes out what is not printable.
pub(crate) fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        out.push('…');
    }
    out
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WeightsError::Io { doing, path, source } => {
                write!(f, "cannot {doing} `{}`: {source}", path.display())
            }
            WeightsError::NotAModel { path, missing } => {
                write!(f, "no model at `{}`: {missing}", path.display())
            }
            WeightsError::Truncated { path, place, needed, left } => write!(
                f,
                "`{}` is truncated: {place} takes {needed} bytes, {left} are left",
                path.display()
            ),
            WeightsError::Limit { path, place, value, most } => {
                write!(f, "`{}`: {place} is {value}, at most {most} is read", path.display())
            }
            WeightsError::Malformed { path, place, detail } => {
                write!(f, "`{}`: {place}: {detail}", path.display())
            }
            WeightsError::Unsupported { path, place, value } => {
                write!(f, "`{}`: {place}: `{value}` is not supported", path.display())
            }
            WeightsError::MissingTensor { path, tensor } => {
                write!(f, "`{}`: tensor `{tensor}` is missing", path.display())
            }
            WeightsError::Shape { path, tensor, expected, found } => write!(
                f,
                "`{}`: tensor `{tensor}` is {found:?}, the model's numbers make it {expected:?}",
                path.display()
            ),
            WeightsError::TextTooLong { bytes, most } => {
                write!(f, "text of {bytes} bytes is longer than {most}")
            }
            WeightsError::Tokenizer { detail } => write!(f, "tokenizer: {detail}"),
            WeightsError::Template { detail } => write!(f, "chat template: {detail}"),
        }
    }
}

impl std::error::Error for WeightsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WeightsError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
