//! What everything that is hashed is written in: a versioned envelope around borsh.
//!
//! Layout: `ARNA`, version (u16, big-endian), kind (u16, big-endian), borsh body. Reading
//! decodes, encodes again and compares, so that a value has exactly one encoding. Kinds below
//! 256 are entries of a log, the others are bound by one. Kinds 32 to 34 and 258 are those of a
//! training run's ledger (`ledger`).

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};

/// First bytes of every envelope.
pub const MAGIC: [u8; 4] = *b"ARNA";
/// The layout of bodies. Any change to a hashed type raises it.
pub const VERSION: u16 = 3;
/// Bytes before the body.
pub const HEADER_BYTES: usize = 8;

/// The kind of an [`crate::announcement::Announcement`].
pub const ANNOUNCEMENT_KIND: u16 = 256;
/// The kind of a [`crate::transcript::Transcript`].
pub const TRANSCRIPT_KIND: u16 = 257;

/// Bytes that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeError {
    /// The first four bytes are not [`MAGIC`].
    Magic,
    /// Written in another layout.
    Version {
        /// The version found.
        found: u16,
    },
    /// An unknown kind, or not the one that belongs here.
    Kind {
        /// The kind found.
        found: u16,
    },
    /// The body does not decode.
    Body {
        /// What borsh says.
        detail: String,
    },
    /// The body decodes but is not how this value is encoded.
    NotCanonical,
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnvelopeError::Magic => write!(f, "does not start with `ARNA`"),
            EnvelopeError::Version { found } => {
                write!(f, "layout version is {found}, this program reads {VERSION}")
            }
            EnvelopeError::Kind { found } => write!(f, "unexpected kind {found}"),
            EnvelopeError::Body { detail } => write!(f, "body does not decode: {detail}"),
            EnvelopeError::NotCanonical => write!(f, "body is not in canonical form"),
        }
    }
}

impl std::error::Error for EnvelopeError {}

/// Returns the canonical bytes of a value of a kind.
pub fn encode<T: BorshSerialize>(kind: u16, body: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&kind.to_be_bytes());
    body.serialize(&mut bytes).expect("writing to memory cannot fail");
    bytes
}

/// Returns the kind that an envelope says it has.
///
/// # Errors
/// Too short, another magic or another version.
pub fn kind(bytes: &[u8]) -> Result<u16, EnvelopeError> {
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(EnvelopeError::Magic)?;
    if header[..4] != MAGIC {
        return Err(EnvelopeError::Magic);
    }
    let version = u16::from_be_bytes([header[4], header[5]]);
    if version != VERSION {
        return Err(EnvelopeError::Version { found: version });
    }
    Ok(u16::from_be_bytes([header[6], header[7]]))
}

/// Reads a value of a kind.
///
/// # Errors
/// Anything that [`encode`] would not have written for this kind.
pub fn decode<T: BorshSerialize + BorshDeserialize>(
    wanted: u16,
    bytes: &[u8],
) -> Result<T, EnvelopeError> {
    let found = kind(bytes)?;
    if found != wanted {
        return Err(EnvelopeError::Kind { found });
    }
    let body = T::try_from_slice(&bytes[HEADER_BYTES..])
        .map_err(|error| EnvelopeError::Body { detail: error.to_string() })?;
    if encode(wanted, &body) != bytes {
        return Err(EnvelopeError::NotCanonical);
    }
    Ok(body)
}
