//! Entries of the log: small, public while the tournament runs, and binding everything else
//! by hash.
//!
//! Not here: their bytes (`envelope`), and what they bind (`announcement`, `transcript`).

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use sha2::{Digest, Sha256};

use crate::draws::BeaconValue;
use crate::envelope::{self, EnvelopeError};
use crate::hexadecimal::hex;
use crate::record::{Outcome, VoidRecord};

/// Largest entry in bytes, with its header: what the length prefix of an entry bundle holds.
pub const ENTRY_BYTES_MAX: usize = 65_535;

/// Longest origin of a log in bytes.
pub const ORIGIN_BYTES_MAX: usize = 255;

/// Names a tournament: the RFC 6962 leaf hash of its log's first entry.
///
/// Every later entry and every transcript carries it, so that none passes for another
/// tournament's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct TournamentId(pub [u8; 32]);

impl TournamentId {
    /// Returns the id of the tournament whose log starts with these bytes.
    pub fn of_first_entry(entry: &[u8]) -> TournamentId {
        let mut hash = Sha256::new();
        // RFC 6962 section 2.1: leaves are hashed with a 0x00 prefix.
        hash.update([0]);
        hash.update(entry);
        TournamentId(hash.finalize().into())
    }
}

impl fmt::Display for TournamentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for TournamentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One entry of a tournament's log.
///
/// The order is: announcement; a draw, where the draws need one; for each pair its voids and
/// its two matches; close; reveal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// First entry: binds everything that is fixed before the first match.
    Announcement(AnnouncementEntry),
    /// A finished match. The two legs of a pair are neighbours, leg 0 first.
    Match(MatchEntry),
    /// A pair that is played again.
    Void(VoidEntry),
    /// What the log must hold.
    Close(Close),
    /// Last entry: what was secret.
    Reveal(Reveal),
    /// What others than the organiser added to the draws after the announcement.
    Draw(DrawEntry),
}

/// The first entry.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AnnouncementEntry {
    /// The log's origin: the name under which its heads are signed.
    pub origin: String,
    /// The Ed25519 key that signs them.
    pub log_key: [u8; 32],
    /// SHA-256 of the [`crate::announcement::Announcement`]'s bytes.
    pub announcement_sha256: [u8; 32],
}

/// A finished match: what may be public while others still play.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MatchEntry {
    /// The tournament.
    pub tournament: TournamentId,
    /// The pair's place in the schedule, from 0.
    pub pair_index: u64,
    /// 0: the pair's first agent buys. 1: roles swapped.
    pub leg: u8,
    /// Agents by their place in the announcement: buyer, seller.
    pub agents: [u16; 2],
    /// The item by its place in the catalog.
    pub item_index: u32,
    /// Which repetition of the pairing on this item this is, from 0.
    pub repetition: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Delivered turns.
    pub turn_count: u32,
    /// SHA-256 of the [`crate::transcript::Transcript`]'s bytes, which hold a nonce.
    pub transcript_sha256: [u8; 32],
}

/// A pair that was played but does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VoidEntry {
    /// The tournament.
    pub tournament: TournamentId,
    /// What was voided, and why.
    pub void: VoidRecord,
}

/// What the log must hold. No match follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Close {
    /// The tournament.
    pub tournament: TournamentId,
    /// Finished matches.
    pub match_count: u64,
    /// Voided pairs.
    pub void_count: u64,
}

/// The last entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Reveal {
    /// The tournament.
    pub tournament: TournamentId,
    /// What the announcement's commitment opens to; `None` where the seed was public.
    pub secret: Option<[u8; 32]>,
}

/// What was added to the draws once the announcement was signed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct DrawEntry {
    /// The tournament.
    pub tournament: TournamentId,
    /// What the commitments of the announcement open to, in its order; `None` for those that
    /// were not opened in time, which are left out of the draws.
    pub contributions: Vec<Option<[u8; 32]>>,
    /// The round of the random beacon that the announcement names.
    pub beacon: Option<BeaconValue>,
}

impl Entry {
    /// Returns the entry's canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Entry::Announcement(body) => envelope::encode(self.kind(), body),
            Entry::Match(body) => envelope::encode(self.kind(), body),
            Entry::Void(body) => envelope::encode(self.kind(), body),
            Entry::Close(body) => envelope::encode(self.kind(), body),
            Entry::Reveal(body) => envelope::encode(self.kind(), body),
            Entry::Draw(body) => envelope::encode(self.kind(), body),
        }
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// Anything that [`Entry::encode`] would not have written, an unknown version or kind
    /// among them.
    pub fn decode(bytes: &[u8]) -> Result<Entry, EnvelopeError> {
        Ok(match envelope::kind(bytes)? {
            1 => Entry::Announcement(envelope::decode(1, bytes)?),
            2 => Entry::Match(envelope::decode(2, bytes)?),
            3 => Entry::Void(envelope::decode(3, bytes)?),
            4 => Entry::Close(envelope::decode(4, bytes)?),
            5 => Entry::Reveal(envelope::decode(5, bytes)?),
            6 => Entry::Draw(envelope::decode(6, bytes)?),
            found => return Err(EnvelopeError::Kind { found }),
        })
    }

    /// Returns the tournament that the entry says it is of; `None` for an announcement, whose
    /// hash is the id.
    pub fn tournament(&self) -> Option<TournamentId> {
        match self {
            Entry::Announcement(_) => None,
            Entry::Match(body) => Some(body.tournament),
            Entry::Void(body) => Some(body.tournament),
            Entry::Close(body) => Some(body.tournament),
            Entry::Reveal(body) => Some(body.tournament),
            Entry::Draw(body) => Some(body.tournament),
        }
    }

    fn kind(&self) -> u16 {
        match self {
            Entry::Announcement(_) => 1,
            Entry::Match(_) => 2,
            Entry::Void(_) => 3,
            Entry::Close(_) => 4,
            Entry::Reveal(_) => 5,
            Entry::Draw(_) => 6,
        }
    }
}
