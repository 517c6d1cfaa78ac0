//! The whole record of a match as the log keeps it: beside the entry that binds it by hash.
//!
//! Test vectors of nonces (root, pair, leg):
//!
//! ```text
//! 7, 12, 1                  d137dc11894d0437d6b63b227eb5c5e1d38e5176f129c29e784d7f3689439e85
//! 00 01 .. 1f, 0, 0         3a063d3a37eb10f617a2b139253077b543420ca97d880b5057ec85090734899e
//! 00 01 .. 1f, 2^64-1, 1    e13ebfc8b463695e7c59576b0e80d08428e22d308666173fc4c333daeea99d44
//! ```
//!
//! They were computed by another implementation, written from the page of `seed` alone.

use borsh::{BorshDeserialize, BorshSerialize};
use sha2::{Digest, Sha256};

use crate::entry::{MatchEntry, TournamentId};
use crate::envelope::{self, EnvelopeError, TRANSCRIPT_KIND};
use crate::record::MatchRecord;
use crate::seed::{Root, Stream};

/// A match, withheld until the close.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Transcript {
    /// The tournament.
    pub tournament: TournamentId,
    /// Keeps the hash from giving the private values away: they have few possible values, and
    /// without a nonce they would be guessed.
    pub nonce: [u8; 32],
    /// The match.
    pub record: MatchRecord,
}

impl Transcript {
    /// Returns the transcript of a record.
    pub fn new(tournament: TournamentId, root: Root, record: MatchRecord) -> Transcript {
        let nonce = nonce(root, record.pair_index, record.leg);
        Transcript { tournament, nonce, record }
    }

    /// Returns the transcript's canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        envelope::encode(TRANSCRIPT_KIND, self)
    }

    /// Reads a transcript.
    ///
    /// # Errors
    /// Anything that [`Transcript::encode`] would not have written.
    pub fn decode(bytes: &[u8]) -> Result<Transcript, EnvelopeError> {
        envelope::decode(TRANSCRIPT_KIND, bytes)
    }

    /// Returns the entry that binds this transcript, whose encoded bytes are `bytes`.
    pub fn entry(&self, bytes: &[u8]) -> MatchEntry {
        let record = &self.record;
        MatchEntry {
            tournament: self.tournament,
            pair_index: record.pair_index,
            leg: record.leg,
            agents: record.agents,
            item_index: record.item_index,
            repetition: record.repetition,
            outcome: record.outcome,
            turn_count: u32::try_from(record.turns.len()).expect("turns are bounded"),
            transcript_sha256: Sha256::digest(bytes).into(),
        }
    }
}

/// Returns the nonce of a match: 32 bytes of the stream `nonce` at its pair and leg, as four
/// big-endian draws.
pub fn nonce(root: Root, pair_index: u64, leg: u8) -> [u8; 32] {
    let mut stream = Stream::derive(root, "nonce", &[pair_index, u64::from(leg)]);
    let mut nonce = [0; 32];
    for part in nonce.chunks_exact_mut(8) {
        part.copy_from_slice(&stream.bits().to_be_bytes());
    }
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hexadecimal::hex;

    #[test]
    fn nonces_are_as_published() {
        let master = Root::Master(std::array::from_fn(|place| place as u8));
        for (root, pair_index, leg, expected) in [
            (
                Root::Seed(7),
                12,
                1,
                "d137dc11894d0437d6b63b227eb5c5e1d38e5176f129c29e784d7f3689439e85",
            ),
            (master, 0, 0, "3a063d3a37eb10f617a2b139253077b543420ca97d880b5057ec85090734899e"),
            (
                master,
                u64::MAX,
                1,
                "e13ebfc8b463695e7c59576b0e80d08428e22d308666173fc4c333daeea99d44",
            ),
        ] {
            assert_eq!(hex(&nonce(root, pair_index, leg)), expected, "{root:?}");
        }
    }
}
