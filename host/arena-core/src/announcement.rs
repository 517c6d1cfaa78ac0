//! Everything that is fixed before the first match: what the log's first entry binds.
//!
//! The complete schedule is part of it: it follows from the tournament file, the number of
//! agents and the number of items (`schedule`).

use borsh::{BorshDeserialize, BorshSerialize};

use crate::draws::Draws;
use crate::envelope::{self, ANNOUNCEMENT_KIND, EnvelopeError};

/// Largest announcement in bytes: the tournament file, and what a thousand agents may bring.
pub const ANNOUNCEMENT_BYTES_MAX: usize = 16 << 20;

/// Longest text in bytes with which a model says what computes its replies.
pub const MODEL_ENGINE_BYTES_MAX: usize = 4 << 10;

/// What is fixed before the first match.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Announcement {
    /// The tournament's name.
    pub name: String,
    /// The tournament file, as it stood.
    pub config_toml: String,
    /// Where everything that is drawn comes from.
    pub draws: Draws,
    /// What the sandbox's engine is and how it is set, one `key=value` per line.
    pub engine: String,
    /// The language models that agents may ask, in the file's order.
    pub models: Vec<ModelEntry>,
    /// Those who play, in the order that records refer to.
    pub agents: Vec<AgentEntry>,
    /// SHA-256 of the catalog's canonical bytes.
    pub catalog_sha256: [u8; 32],
    /// How many items the catalog has.
    pub item_count: u32,
    /// How many pairs are scheduled.
    pub pair_count: u64,
    /// The log's head is signed at every multiple of this many entries.
    pub checkpoint_every: u32,
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
    /// The author's signed statement, a note, as it was handed in.
    pub submission: Option<String>,
}

/// One language model of a tournament.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ModelEntry {
    /// The name that guests ask for.
    pub name: String,
    /// Tokens of a prompt and its reply together, which guests may ask for: without it, a match
    /// could not be executed again where the model is not at hand.
    pub context_tokens: u32,
    /// SHA-256 of its manifest.
    pub sha256: [u8; 32],
    /// What computes its replies, one `key=value` per line, at most [`MODEL_ENGINE_BYTES_MAX`].
    pub engine: String,
}

impl Announcement {
    /// Returns the announcement's canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        envelope::encode(ANNOUNCEMENT_KIND, self)
    }

    /// Reads an announcement.
    ///
    /// # Errors
    /// Anything that [`Announcement::encode`] would not have written.
    pub fn decode(bytes: &[u8]) -> Result<Announcement, EnvelopeError> {
        envelope::decode(ANNOUNCEMENT_KIND, bytes)
    }
}
