//! What can be wrong with what a caller hands over.

use std::fmt;

use crate::format::Format;
use crate::isa::Isa;

/// Why a matrix or a context cannot be made.
#[derive(Debug)]
pub enum KernelsError {
    /// A row of so many columns is no whole number of the format's blocks.
    Columns {
        /// The format of the part.
        format: Format,
        /// Weights in a row.
        columns: usize,
    },
    /// The bytes of a part are not as many as its shape needs.
    Bytes {
        /// The format of the part.
        format: Format,
        /// Rows of the part.
        rows: usize,
        /// Weights in a row.
        columns: usize,
        /// Bytes that were handed over.
        bytes: usize,
    },
    /// A matrix without rows or columns, or with more than can be addressed.
    Size {
        /// Rows of the part.
        rows: usize,
        /// Weights in a row.
        columns: usize,
    },
    /// This machine does not have the instruction set.
    IsaMissing(Isa),
    /// More threads than a context may have.
    Threads {
        /// Threads that were asked for.
        threads: usize,
        /// The most that a context may have.
        max: usize,
    },
    /// The operating system did not start a thread.
    Spawn(std::io::Error),
}

impl fmt::Display for KernelsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns { format, columns } => write!(
                f,
                "a row of `{columns}` weights is no whole number of blocks of {}, which have {}",
                format.name(),
                format.block_len()
            ),
            Self::Bytes { format, rows, columns, bytes } => write!(
                f,
                "`{bytes}` bytes do not make {rows} rows of {columns} weights in {}",
                format.name()
            ),
            Self::Size { rows, columns } => {
                write!(f, "a matrix cannot have `{rows}` rows of `{columns}` weights")
            }
            Self::IsaMissing(isa) => {
                write!(f, "this machine does not have the instructions `{}`", isa.name())
            }
            Self::Threads { threads, max } => {
                write!(f, "`{threads}` threads are more than the {max} that a context may have")
            }
            Self::Spawn(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for KernelsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spawn(error) => Some(error),
            _ => None,
        }
    }
}
