//! The one random beacon that is known here: drand's chain `quicknet`.
//!
//! Its hash and key are written down here, so that a log cannot bring its own. A round's
//! signature is checked offline; the round's randomness is the SHA-256 of the signature, which is
//! the only one that the key can make for the round.
//!
//! Not here: fetching a round, and when it came out.

use arena_core::draws::{BeaconRound, BeaconValue};
use drand_verify::{G2PubkeyRfc, Pubkey};

use crate::verdict::Finding;

/// The chain's name.
pub const QUICKNET: &str = "quicknet";

/// The chain's hash, which binds its key, period and first moment.
pub const QUICKNET_CHAIN: [u8; 32] = [
    0x52, 0xdb, 0x9b, 0xa7, 0x0e, 0x0c, 0xc0, 0xf6, 0xea, 0xf7, 0x80, 0x3d, 0xd0, 0x74, 0x47, 0xa1,
    0xf5, 0x47, 0x77, 0x35, 0xfd, 0x3f, 0x66, 0x17, 0x92, 0xba, 0x94, 0x60, 0x0c, 0x84, 0xe9, 0x71,
];

/// The chain's public key, a point on G2 (scheme `bls-unchained-g1-rfc9380`).
pub const QUICKNET_KEY: [u8; 96] = [
    0x83, 0xcf, 0x0f, 0x28, 0x96, 0xad, 0xee, 0x7e, 0xb8, 0xb5, 0xf0, 0x1f, 0xca, 0xd3, 0x91, 0x22,
    0x12, 0xc4, 0x37, 0xe0, 0x07, 0x3e, 0x91, 0x1f, 0xb9, 0x00, 0x22, 0xd3, 0xe7, 0x60, 0x18, 0x3c,
    0x8c, 0x4b, 0x45, 0x0b, 0x6a, 0x0a, 0x6c, 0x3a, 0xc6, 0xa5, 0x77, 0x6a, 0x2d, 0x10, 0x64, 0x51,
    0x0d, 0x1f, 0xec, 0x75, 0x8c, 0x92, 0x1c, 0xc2, 0x2b, 0x0e, 0x17, 0xe6, 0x3a, 0xaf, 0x4b, 0xcb,
    0x5e, 0xd6, 0x63, 0x04, 0xde, 0x9c, 0xf8, 0x09, 0xbd, 0x27, 0x4c, 0xa7, 0x3b, 0xab, 0x4a, 0xf5,
    0xa6, 0xe9, 0xc7, 0x6a, 0x4b, 0xc0, 0x9e, 0x76, 0xea, 0xe8, 0x99, 0x1e, 0xf5, 0xec, 0xe4, 0x5a,
];

/// When round 1 came out, in seconds since 1970.
pub const QUICKNET_GENESIS: u64 = 1_692_803_367;

/// Seconds between two rounds.
pub const QUICKNET_PERIOD: u64 = 3;

/// Returns when a round comes out, in seconds since 1970; `None` for round 0, which there is not,
/// and for rounds beyond all time.
pub fn round_time(round: u64) -> Option<u64> {
    round.checked_sub(1)?.checked_mul(QUICKNET_PERIOD)?.checked_add(QUICKNET_GENESIS)
}

/// Returns whether `value` is what quicknet published for its round.
pub fn is_signed(value: &BeaconValue) -> bool {
    let key = G2PubkeyRfc::from_fixed(QUICKNET_KEY).expect("the chain's key is a point");
    key.verify(value.round, b"", &value.signature).unwrap_or(false)
}

/// Checks that `value` is the announced round, of the chain that is known here, and signed by it.
///
/// # Errors
/// The first of these that does not hold.
pub fn check(announced: &BeaconRound, value: &BeaconValue) -> Result<(), Finding> {
    use arena_core::hexadecimal::hex;
    if announced.chain != QUICKNET_CHAIN {
        let (found, wanted) = (hex(&announced.chain), hex(&QUICKNET_CHAIN));
        return Err(Finding::new("the beacon's chain", found, wanted));
    }
    if value.round != announced.round {
        return Err(Finding::new("the beacon's round", value.round, announced.round));
    }
    if !is_signed(value) {
        let found = hex(&value.signature);
        let wanted = format!("quicknet's signature of round {}", value.round);
        return Err(Finding::new("the beacon's signature", found, wanted));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arena_core::hexadecimal::hex;
    use sha2::{Digest, Sha256};

    use super::*;

    /// Rounds as drand published them, and the randomness of the second one.
    const ROUNDS: [(u64, &str); 2] = [
        (
            123,
            "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482\
             e26cd02df835d3546d23c4b13e0dfc92",
        ),
        (
            657_413,
            "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be\
             41076862b98fad56e91a6b85b89cd97b",
        ),
    ];
    const RANDOMNESS: &str = "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587";

    fn value(round: u64, signature: &str) -> BeaconValue {
        let bytes: Vec<u8> = (0..signature.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&signature[at..at + 2], 16).expect("hexadecimal"))
            .collect();
        BeaconValue { round, signature: bytes.try_into().expect("48 bytes") }
    }

    #[test]
    fn published_rounds_are_signed_and_nothing_else_is() {
        for (round, signature) in ROUNDS {
            let published = value(round, signature);
            assert!(is_signed(&published), "{round}");
            assert!(!is_signed(&BeaconValue { round: round + 1, ..published }), "{round}");
            for bit in 0..48 * 8 {
                let mut changed = published;
                changed.signature[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_signed(&changed), "{round} with bit {bit} flipped");
            }
        }
        assert_eq!(hex(&value(ROUNDS[1].0, ROUNDS[1].1).randomness()), RANDOMNESS);
        assert!(!is_signed(&BeaconValue { round: 123, signature: [0; 48] }));
        assert!(!is_signed(&BeaconValue { round: 123, signature: [0xff; 48] }));
    }

    #[test]
    fn the_chains_hash_binds_the_key_that_is_written_here() {
        // As drand computes it: period, first moment, key, the group's hash, the beacon's id.
        let group = "f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e";
        let group = arena_core::hexadecimal::unhex(group).expect("32 bytes");
        let mut hash = Sha256::new();
        hash.update((QUICKNET_PERIOD as u32).to_be_bytes());
        hash.update((QUICKNET_GENESIS as i64).to_be_bytes());
        hash.update(QUICKNET_KEY);
        hash.update(group);
        hash.update(QUICKNET);
        assert_eq!(hex(&hash.finalize()), hex(&QUICKNET_CHAIN));
    }

    #[test]
    fn rounds_come_out_every_three_seconds() {
        assert_eq!(round_time(0), None);
        assert_eq!(round_time(1), Some(QUICKNET_GENESIS));
        assert_eq!(round_time(657_413), Some(QUICKNET_GENESIS + 657_412 * 3));
        assert_eq!(round_time(u64::MAX), None);
    }
}
