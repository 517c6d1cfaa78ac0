//! Entries of the log: a versioned envelope around borsh.
//!
//! Layout: `ARNA`, version (u16, big-endian), kind (u16, big-endian), borsh body. Reading
//! decodes, encodes again and compares, so that a record has exactly one encoding.

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::record::{MatchRecord, VoidRecord};

/// First bytes of every entry.
pub const MAGIC: [u8; 4] = *b"ARNA";
/// The layout of bodies. Any change to a hashed type raises it.
pub const VERSION: u16 = 1;

/// One entry of a tournament's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// First entry: everything that is fixed before the first match.
    Announcement(Announcement),
    /// A finished match. The two legs of a pair are neighbours, leg 0 first.
    Match(MatchRecord),
    /// A pair that is played again.
    Void(VoidRecord),
    /// Last entry.
    Close(Close),
}

/// What is fixed before the first match.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Announcement {
    /// The tournament's name.
    pub name: String,
    /// The tournament file, as it stood.
    pub config_toml: String,
    /// The root seed in force (the file's, or the one given on the command line).
    pub seed: u64,
    /// What the sandbox's engine is and how it is set, then the hash of each language model
    /// (`model.NAME`), one `key=value` per line.
    pub engine: String,
    /// Those who play, in the order that records refer to.
    pub agents: Vec<AgentEntry>,
    /// SHA-256 of the catalog's canonical bytes.
    pub catalog_sha256: [u8; 32],
    /// How many items the catalog has.
    pub item_count: u32,
    /// How many pairs are scheduled.
    pub pair_count: u64,
}

/// One agent of a tournament.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AgentEntry {
    /// A label. The identity is the component's hash.
    pub name: String,
    /// SHA-256 of the component.
    pub component_sha256: [u8; 32],
    /// Parameters, as given to the guest.
    pub params: String,
}

/// The last entry: what the log must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Close {
    /// Finished matches.
    pub match_count: u64,
    /// Voided pairs.
    pub void_count: u64,
}

/// Bytes that are not an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// The first four bytes are not [`MAGIC`].
    Magic,
    /// Written in another layout.
    Version {
        /// The version found.
        found: u16,
    },
    /// An unknown kind.
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

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryError::Magic => write!(f, "does not start with `ARNA`"),
            EntryError::Version { found } => {
                write!(f, "layout version is {found}, this program reads {VERSION}")
            }
            EntryError::Kind { found } => write!(f, "unknown kind {found}"),
            EntryError::Body { detail } => write!(f, "body does not decode: {detail}"),
            EntryError::NotCanonical => write!(f, "body is not in canonical form"),
        }
    }
}

impl std::error::Error for EntryError {}

impl Entry {
    /// Returns the entry's canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1_024);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&self.kind().to_be_bytes());
        let written = match self {
            Entry::Announcement(body) => body.serialize(&mut bytes),
            Entry::Match(body) => body.serialize(&mut bytes),
            Entry::Void(body) => body.serialize(&mut bytes),
            Entry::Close(body) => body.serialize(&mut bytes),
        };
        written.expect("writing to memory cannot fail");
        bytes
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// Anything that [`Entry::encode`] would not have written.
    pub fn decode(bytes: &[u8]) -> Result<Entry, EntryError> {
        let (header, body) = bytes.split_at_checked(8).ok_or(EntryError::Magic)?;
        if header[..4] != MAGIC {
            return Err(EntryError::Magic);
        }
        let version = u16::from_be_bytes([header[4], header[5]]);
        if version != VERSION {
            return Err(EntryError::Version { found: version });
        }
        let entry = match u16::from_be_bytes([header[6], header[7]]) {
            1 => Entry::Announcement(read(body)?),
            2 => Entry::Match(read(body)?),
            3 => Entry::Void(read(body)?),
            4 => Entry::Close(read(body)?),
            found => return Err(EntryError::Kind { found }),
        };
        if entry.encode() != bytes {
            return Err(EntryError::NotCanonical);
        }
        Ok(entry)
    }

    fn kind(&self) -> u16 {
        match self {
            Entry::Announcement(_) => 1,
            Entry::Match(_) => 2,
            Entry::Void(_) => 3,
            Entry::Close(_) => 4,
        }
    }
}

fn read<T: BorshDeserialize>(body: &[u8]) -> Result<T, EntryError> {
    T::try_from_slice(body).map_err(|error| EntryError::Body { detail: error.to_string() })
}
