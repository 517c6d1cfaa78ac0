//! Where everything that is drawn in a tournament comes from, and who could have known it.
//!
//! A *public seed* lets anyone repeat an experiment, and anyone predict its draws. With
//! *committed* draws the organiser fixes a secret before the announcement is signed and shows
//! it after the close; contributions of entrants and a round of a public random beacon, both
//! unknown when the announcement is signed, keep the organiser from choosing a secret whose
//! draws it likes.
//!
//! Not here: drawing (`seed`), files, and checking a beacon's signature (`arena-audit`).

use borsh::{BorshDeserialize, BorshSerialize};
use hkdf::Hkdf;
use sha2::{Digest, Sha256};

use crate::entry::{DrawEntry, TournamentId};
use crate::seed::Root;

/// Where the draws come from, as announced.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Draws {
    /// A number that everybody knows.
    PublicSeed(u64),
    /// A secret, and what is added to it.
    Committed(CommittedDraws),
}

/// What is announced of draws that nobody can know yet.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CommittedDraws {
    /// [`commit_secret`] of the organiser's secret.
    pub secret_commitment: [u8; 32],
    /// [`commit_contribution`] of each entrant's contribution, all different.
    pub contributions: Vec<[u8; 32]>,
    /// A round of a random beacon that is not out yet.
    pub beacon: Option<BeaconRound>,
}

/// One round of a random beacon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct BeaconRound {
    /// The drand chain, by its hash.
    pub chain: [u8; 32],
    /// The round.
    pub round: u64,
}

/// What a random beacon published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct BeaconValue {
    /// The round.
    pub round: u64,
    /// The chain's signature of the round (BLS on G1, compressed). Its SHA-256 is the round's
    /// randomness.
    pub signature: [u8; 48],
}

impl Draws {
    /// Returns whether a draw entry follows the announcement.
    pub fn need_draw_entry(&self) -> bool {
        match self {
            Draws::PublicSeed(_) => false,
            Draws::Committed(committed) => {
                !committed.contributions.is_empty() || committed.beacon.is_some()
            }
        }
    }

    /// Returns what the resampling behind intervals is drawn from: the public seed, or the first
    /// eight bytes of the secret's commitment, since intervals may be computed by anyone and
    /// before the reveal.
    pub fn resampling_seed(&self) -> u64 {
        match self {
            Draws::PublicSeed(seed) => *seed,
            Draws::Committed(committed) => {
                let (first, _) = committed.secret_commitment.split_at(8);
                u64::from_be_bytes(first.try_into().expect("split at eight bytes"))
            }
        }
    }

    /// Returns the root from which a catalog is generated and sampled. It is needed before
    /// the announcement, which holds the catalog's hash, so beacon and contributions have no
    /// part in it.
    ///
    /// # Panics
    /// If the draws are committed and no secret is given.
    pub fn catalog_root(&self, secret: Option<&[u8; 32]>) -> Root {
        match self {
            Draws::PublicSeed(seed) => Root::Seed(*seed),
            Draws::Committed(_) => catalog_root(secret.expect("committed draws have a secret")),
        }
    }
}

/// Returns the root from which a catalog is generated and sampled under committed draws:
/// HKDF-SHA256 of the secret, without salt, for `arena/catalog/v1`.
pub fn catalog_root(secret: &[u8; 32]) -> Root {
    Root::Master(derive(None, secret, &[b"arena/catalog/v1"]))
}

/// Returns the root of every other draw under committed draws.
///
/// HKDF-SHA256 (RFC 5869) with the beacon's randomness as salt (none without a beacon), the
/// secret and then the opened contributions as input, for `arena/master/v1` and the
/// tournament's id.
pub fn master(secret: &[u8; 32], tournament: TournamentId, draw: Option<&DrawEntry>) -> Root {
    let mut input = secret.to_vec();
    for contribution in draw.iter().flat_map(|draw| draw.contributions.iter().flatten()) {
        input.extend_from_slice(contribution);
    }
    let salt = draw.and_then(|draw| draw.beacon.as_ref()).map(BeaconValue::randomness);
    Root::Master(derive(salt, &input, &[b"arena/master/v1", &tournament.0]))
}

impl BeaconValue {
    /// Returns the round's randomness: SHA-256 of the signature.
    pub fn randomness(&self) -> [u8; 32] {
        Sha256::digest(self.signature).into()
    }
}

fn derive(salt: Option<[u8; 32]>, input: &[u8], info: &[&[u8]]) -> [u8; 32] {
    let salt = salt.as_ref().map(<[u8; 32]>::as_slice);
    let mut output = [0; 32];
    Hkdf::<Sha256>::new(salt, input)
        .expand_multi_info(info, &mut output)
        .expect("32 bytes are within what HKDF gives");
    output
}

/// Returns the commitment to an organiser's secret.
pub fn commit_secret(secret: &[u8; 32]) -> [u8; 32] {
    commit(b"arena/secret/v1\0", secret)
}

/// Returns the commitment to an entrant's contribution.
pub fn commit_contribution(contribution: &[u8; 32]) -> [u8; 32] {
    commit(b"arena/contribution/v1\0", contribution)
}

fn commit(domain: &[u8], value: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(domain);
    hash.update(value);
    hash.finalize().into()
}
