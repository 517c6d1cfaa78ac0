//! Where everything that is drawn in a tournament comes from, and who could have known it.
//!
//! A *public seed* lets anyone repeat an experiment, and anyone predict its draws. With
//! *committed* draws the organiser fixes a secret before the announcement is signed and shows
//! it after the close; contributions of entrants and a round of a public random beacon, both
//! unknown when the announcement is signed, keep the organiser from choosing a secret whose
//! draws it likes.
//!
//! Test vectors. The secret, and the contribution that is committed to, are `00 01 .. 1f`; the
//! tournament's id is `aa .. aa`; the opened contributions are `01 .. 01` and `03 .. 03`, one
//! between them was not opened; the beacon's signature is `00 01 .. 2f`:
//!
//! ```text
//! commit_secret        424ffdae5a710ff26457dffd8c066ab47f028f3290e158dd466c9c2731e7a5d2
//! commit_contribution  5e4bec3a7ffcc2a3c4171f5eca2f762552cee2d667165081a7acbd1999f8bc98
//! catalog_root         5ad1738a8987773334c3d410c514d56b603fda851a17a6238a67cd8b67be0707
//! randomness           4dbdc2b2b62cb00749785bc84202236dbc3777d74660611b8e58812f0cfde6c3
//! master, secret only  ddc65e0580735d4b389cc8ec6a83c4982dc74b8f46251e3095ef68d46b7a8826
//! and contributions    c6e4634a231328f6266463b467c9bb12cfd6db9fae8192ab63dfa8c27f58b531
//! and beacon           0a53e5793212905b1c834518a660e93044effa3fcf6286b1badf31835499b31a
//! and both             d2ffc0932128adf5878872a827d4bdd54a2e7f723f6fe65a1baefab7c45e17fd
//! ```
//!
//! They were computed by another implementation, on HMAC alone.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hexadecimal::unhex;

    const TOURNAMENT: TournamentId = TournamentId([0xaa; 32]);

    fn counted<const N: usize>() -> [u8; N] {
        std::array::from_fn(|place| place as u8)
    }

    fn bytes(digits: &str) -> [u8; 32] {
        unhex(digits).expect("64 digits")
    }

    fn draw(contributions: bool, beacon: bool) -> DrawEntry {
        let opened = vec![Some([1; 32]), None, Some([3; 32])];
        let contributions = if contributions { opened } else { Vec::new() };
        let beacon = beacon.then(|| BeaconValue { round: 9, signature: counted() });
        DrawEntry { tournament: TOURNAMENT, contributions, beacon }
    }

    #[test]
    fn commitments_are_as_published() {
        let secret = "424ffdae5a710ff26457dffd8c066ab47f028f3290e158dd466c9c2731e7a5d2";
        assert_eq!(commit_secret(&counted()), bytes(secret));
        let contribution = "5e4bec3a7ffcc2a3c4171f5eca2f762552cee2d667165081a7acbd1999f8bc98";
        assert_eq!(commit_contribution(&counted()), bytes(contribution));
    }

    #[test]
    fn masters_are_as_published() {
        let master = |draw: Option<DrawEntry>| master(&counted(), TOURNAMENT, draw.as_ref());
        for (draw, expected) in [
            (None, "ddc65e0580735d4b389cc8ec6a83c4982dc74b8f46251e3095ef68d46b7a8826"),
            (
                Some(draw(true, false)),
                "c6e4634a231328f6266463b467c9bb12cfd6db9fae8192ab63dfa8c27f58b531",
            ),
            (
                Some(draw(false, true)),
                "0a53e5793212905b1c834518a660e93044effa3fcf6286b1badf31835499b31a",
            ),
            (
                Some(draw(true, true)),
                "d2ffc0932128adf5878872a827d4bdd54a2e7f723f6fe65a1baefab7c45e17fd",
            ),
        ] {
            assert_eq!(master(draw.clone()), Root::Master(bytes(expected)), "{draw:?}");
        }
    }

    #[test]
    fn the_root_of_a_catalog_is_as_published_and_a_seed_stays_itself() {
        let expected = "5ad1738a8987773334c3d410c514d56b603fda851a17a6238a67cd8b67be0707";
        assert_eq!(catalog_root(&counted()), Root::Master(bytes(expected)));
        let committed = Draws::Committed(CommittedDraws {
            secret_commitment: commit_secret(&counted()),
            contributions: Vec::new(),
            beacon: None,
        });
        assert_eq!(committed.catalog_root(Some(&counted())), catalog_root(&counted()));
        assert_eq!(committed.resampling_seed(), 0x424f_fdae_5a71_0ff2);
        let public = Draws::PublicSeed(7);
        assert_eq!((public.catalog_root(None), public.resampling_seed()), (Root::Seed(7), 7));
    }

    #[test]
    fn only_contributions_and_a_beacon_need_a_draw_entry() {
        let committed = |contributions: &[[u8; 32]], beacon| {
            let contributions = contributions.to_vec();
            Draws::Committed(CommittedDraws { secret_commitment: [0; 32], contributions, beacon })
        };
        let round = Some(BeaconRound { chain: [0; 32], round: 1 });
        assert!(!Draws::PublicSeed(0).need_draw_entry());
        assert!(!committed(&[], None).need_draw_entry());
        assert!(committed(&[[1; 32]], None).need_draw_entry());
        assert!(committed(&[], round).need_draw_entry());
    }

    #[test]
    fn a_randomness_is_the_hash_of_the_signature() {
        let value = BeaconValue { round: 1, signature: counted() };
        let expected = "4dbdc2b2b62cb00749785bc84202236dbc3777d74660611b8e58812f0cfde6c3";
        assert_eq!(value.randomness(), bytes(expected));
    }
}
