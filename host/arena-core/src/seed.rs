//! One root, and from it a stream of draws for each purpose, by hash.
//!
//! A stream is ChaCha20 (RFC 8439 block function, 64-bit block counter from 0, stream id 0)
//! keyed with SHA-256 of: the label `arena/seed/v1`, a zero byte, the root seed (u64,
//! big-endian), the purpose, a zero byte, and each number of the address (u64, big-endian).
//! A root that is a 32-byte master takes the seed's place under the label `arena/seed/v2`.
//! Words are taken in order, two 32-bit words to a u64, low word first. `below(n)` rejects: it
//! draws u64 values until one is below the largest multiple of n, and returns it modulo n.
//!
//! Test vectors (root, purpose, address: first four values of `bits`; masters in bytes):
//!
//! ```text
//! 0, pair, [0]           5df87d6fd87ef72f a1eeaa5cae139e84 4779d6362496a98a aa42206af9cb298a
//! 7, pair, [12]          d5aa15ddc2f65f89 af102e95c0ca3b90 513e03396d4b1617 b392a58e48544a3c
//! 2^64-1, scenario, [3, 1] 4d1daa0d1018c10e 74149a2b924f35f6 00ccf2af6b426db2 1cc64b9b95e780f7
//! 00 01 .. 1f, pair, [0] 95b16ce8c8bdaf5a da2a4fb2197a16f4 f370ddd6f75810fa 868457acd7a23c06
//! ff .. ff, scenario, [3, 1] c6c323f39ab7d177 5d893e0e79f534d8 2b3d38f3be7319d4 d2957c9dbae66ad1
//! 1, demo, []            below(6): 3 3 0 1 5 4 4 1 3 4 0 3
//! 1, demo, [1]           below(2^63 + 1): 3994375553147033583 4180207489713792747
//! 1, demo, [2]           shuffle of 0..10: 8 7 3 6 2 1 4 0 9 5
//! 1, demo, [3]           sample(930, 6): 7 116 130 363 709 851
//! ```
//!
//! They were computed by another implementation, written from this page and RFC 8439 alone.
//! Why streams are addressed by hash: `host/decisions/0002-streams-by-hash.md`.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// What every draw of a tournament comes from. See [`crate::draws`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// A public number.
    Seed(u64),
    /// 32 bytes that nobody knows before the reveal.
    Master([u8; 32]),
}

/// A stream of draws that only its address determines.
#[derive(Clone, Debug)]
pub struct Stream {
    rng: ChaCha20Rng,
}

impl Stream {
    /// Returns the stream for `purpose` at `address` under a root.
    pub fn derive(root: Root, purpose: &str, address: &[u64]) -> Stream {
        let mut hash = Sha256::new();
        match root {
            Root::Seed(seed) => {
                hash.update(b"arena/seed/v1\0");
                hash.update(seed.to_be_bytes());
            }
            Root::Master(master) => {
                hash.update(b"arena/seed/v2\0");
                hash.update(master);
            }
        }
        hash.update(purpose.as_bytes());
        hash.update([0]);
        for number in address {
            hash.update(number.to_be_bytes());
        }
        Stream { rng: ChaCha20Rng::from_seed(hash.finalize().into()) }
    }

    /// Draws 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Draws a number in `0..bound` without bias.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw needs at least one possibility");
        let excess = (u64::MAX % bound + 1) % bound;
        loop {
            let value = self.bits();
            if value <= u64::MAX - excess {
                return value % bound;
            }
        }
    }

    /// Draws a number in `low..=high` without bias.
    ///
    /// # Panics
    /// If `low > high`, or the range is all of u64.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "a range runs from low to high");
        low + self.below(high - low + 1)
    }

    /// Puts values in random order: Fisher-Yates from the back. For each place from the last
    /// down to the second, one `below(place + 1)` says which value moves there.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for place in (1..values.len()).rev() {
            let other = self.below(place as u64 + 1);
            values.swap(place, usize::try_from(other).expect("below a length"));
        }
    }

    /// Draws `count` different numbers of `0..bound`, in ascending order.
    ///
    /// This is a Fisher-Yates shuffle of `0..bound` from the front, stopped after `count`
    /// places: for each place from the first, `place + below(bound - place)` says which value
    /// moves there.
    ///
    /// # Panics
    /// If `count > bound`.
    pub fn sample(&mut self, bound: u32, count: u32) -> Vec<u32> {
        assert!(count <= bound, "a sample is no larger than what it is drawn from");
        let mut numbers: Vec<u32> = (0..bound).collect();
        for place in 0..count {
            let other = u64::from(place) + self.below(u64::from(bound - place));
            numbers.swap(place as usize, usize::try_from(other).expect("below a length"));
        }
        numbers.truncate(count as usize);
        numbers.sort_unstable();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hexadecimal::hex;

    #[test]
    fn streams_give_the_published_bits() {
        let vectors: [(u64, &str, &[u64], [u64; 4]); 3] = [
            (
                0,
                "pair",
                &[0],
                [0x5df87d6fd87ef72f, 0xa1eeaa5cae139e84, 0x4779d6362496a98a, 0xaa42206af9cb298a],
            ),
            (
                7,
                "pair",
                &[12],
                [0xd5aa15ddc2f65f89, 0xaf102e95c0ca3b90, 0x513e03396d4b1617, 0xb392a58e48544a3c],
            ),
            (
                u64::MAX,
                "scenario",
                &[3, 1],
                [0x4d1daa0d1018c10e, 0x74149a2b924f35f6, 0x00ccf2af6b426db2, 0x1cc64b9b95e780f7],
            ),
        ];
        for (root, purpose, address, expected) in vectors {
            let mut stream = Stream::derive(Root::Seed(root), purpose, address);
            assert_eq!(expected.map(|_| stream.bits()), expected, "{root} {purpose} {address:?}");
        }
    }

    #[test]
    fn streams_of_a_master_give_the_published_bits() {
        let counted = std::array::from_fn(|place| place as u8);
        type Vector<'a> = ([u8; 32], &'a str, &'a [u64], [u64; 4]);
        let vectors: [Vector<'_>; 2] = [
            (
                counted,
                "pair",
                &[0],
                [0x95b16ce8c8bdaf5a, 0xda2a4fb2197a16f4, 0xf370ddd6f75810fa, 0x868457acd7a23c06],
            ),
            (
                [0xff; 32],
                "scenario",
                &[3, 1],
                [0xc6c323f39ab7d177, 0x5d893e0e79f534d8, 0x2b3d38f3be7319d4, 0xd2957c9dbae66ad1],
            ),
        ];
        for (master, purpose, address, expected) in vectors {
            let mut stream = Stream::derive(Root::Master(master), purpose, address);
            assert_eq!(expected.map(|_| stream.bits()), expected, "{purpose} {address:?}");
        }
    }

    #[test]
    fn a_stream_goes_on_past_the_first_block_as_published() {
        let mut stream = Stream::derive(Root::Seed(7), "pair", &[12]);
        let drawn: Vec<u64> = (0..20).map(|_| stream.bits()).collect();
        assert_eq!(drawn[7..10], [0xef0be1faf23e48d7, 0x5cbfa1f2d0cd986c, 0x118bec77bb048fdd]);
        assert_eq!(drawn[19], 0x3751307358365efe);
    }

    #[test]
    fn bounded_draws_are_as_published() {
        let mut stream = Stream::derive(Root::Seed(1), "demo", &[]);
        let expected = [3, 3, 0, 1, 5, 4, 4, 1, 3, 4, 0, 3];
        assert_eq!(expected.map(|_: u64| stream.below(6)), expected);
    }

    #[test]
    fn values_beyond_the_largest_multiple_are_drawn_again() {
        // With this bound about half of all values are rejected, here the first, the second,
        // the third, the sixth and the seventh.
        let mut stream = Stream::derive(Root::Seed(1), "demo", &[1]);
        let bound = (1 << 63) + 1;
        let expected =
            [3994375553147033583, 4180207489713792747, 6312537964309860600, 8125125094384670991];
        assert_eq!(expected.map(|_: u64| stream.below(bound)), expected);
    }

    #[test]
    fn shuffles_and_samples_are_as_published() {
        let mut values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        Stream::derive(Root::Seed(1), "demo", &[2]).shuffle(&mut values);
        assert_eq!(values, [8, 7, 3, 6, 2, 1, 4, 0, 9, 5]);
        let sampled = Stream::derive(Root::Seed(1), "demo", &[3]).sample(930, 6);
        assert_eq!(sampled, [7, 116, 130, 363, 709, 851]);
    }

    #[test]
    fn purpose_and_address_cannot_pose_as_each_other() {
        // Purposes are fixed texts without zero bytes, so the zero byte after them is a border.
        let bits = |root, purpose, address: &[u64]| {
            Stream::derive(Root::Seed(root), purpose, address).bits()
        };
        let all = [
            bits(1, "pair", &[]),
            bits(1, "pair", &[0]),
            bits(1, "pair", &[0, 0]),
            bits(1, "pai", &[]),
            bits(2, "pair", &[]),
            bits(1, "", &[0x7061_6972_0000_0000]),
        ];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    /// The block function of RFC 8439 section 2.3, from its text.
    fn rfc_8439_block(key: [u8; 32], counter: u32, nonce: [u8; 12]) -> [u8; 64] {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let constants = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];
        let mut start: Vec<u32> = constants.to_vec();
        start.extend(key.chunks(4).map(word));
        start.push(counter);
        start.extend(nonce.chunks(4).map(word));
        let mut state = start.clone();
        let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
            for (target, source, rotated, by) in
                [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]
            {
                state[target] = state[target].wrapping_add(state[source]);
                state[rotated] = (state[rotated] ^ state[target]).rotate_left(by);
            }
        };
        for _ in 0..10 {
            (0..4).for_each(|i| quarter(i, i + 4, i + 8, i + 12));
            (0..4).for_each(|i| quarter(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12));
        }
        let mut bytes = [0; 64];
        for (place, (word, start)) in state.iter().zip(&start).enumerate() {
            let sum = word.wrapping_add(*start);
            bytes[place * 4..place * 4 + 4].copy_from_slice(&sum.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn the_reference_block_function_passes_the_vectors_of_the_rfc() {
        // RFC 8439 section 2.3.2.
        let key: [u8; 32] = std::array::from_fn(|place| place as u8);
        let nonce = [0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0];
        assert_eq!(
            hex(&rfc_8439_block(key, 1, nonce)),
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e\
             d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
        );
        // RFC 8439 appendix A.1, test vector 1.
        assert_eq!(
            hex(&rfc_8439_block([0; 32], 0, [0; 12])),
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
             da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        );
    }

    proptest! {
        #[test]
        fn the_keystream_is_that_of_rfc_8439(key: [u8; 32]) {
            let mut rng = ChaCha20Rng::from_seed(key);
            // Six blocks reach past the four that the implementation makes at once.
            for counter in 0..6 {
                for expected in rfc_8439_block(key, counter, [0; 12]).chunks(8) {
                    prop_assert_eq!(&rng.next_u64().to_le_bytes()[..], expected);
                }
            }
        }

        #[test]
        fn bounded_draws_stay_below_their_bound(root: u64, bound in 1..=u64::MAX) {
            let mut stream = Stream::derive(Root::Seed(root), "bound", &[]);
            for _ in 0..16 {
                prop_assert!(stream.below(bound) < bound);
            }
        }

        #[test]
        fn every_value_below_a_small_bound_is_about_as_frequent(root: u64, bound in 2_u64..12) {
            let mut stream = Stream::derive(Root::Seed(root), "frequency", &[]);
            let mut counts = vec![0_u64; bound as usize];
            let expected = 500;
            for _ in 0..expected * bound {
                counts[stream.below(bound) as usize] += 1;
            }
            let squares: u64 = counts.iter().map(|count| count.abs_diff(expected).pow(2)).sum();
            // Chi-square with at most 10 degrees of freedom passes 60 once in 10^8.
            prop_assert!(squares < 60 * expected, "root {root}: {counts:?}");
        }

        #[test]
        fn a_sample_is_ascending_and_below_its_bound(
            root: u64,
            bound in 0_u32..200,
            share in 0..=100_u32,
        ) {
            let count = bound * share / 100;
            let sampled = Stream::derive(Root::Seed(root), "sample", &[]).sample(bound, count);
            prop_assert_eq!(sampled.len(), count as usize);
            prop_assert!(sampled.is_sorted_by(|left, right| left < right));
            prop_assert!(sampled.iter().all(|&number| number < bound));
        }

        #[test]
        fn a_shuffle_keeps_every_value(root: u64, length in 0_usize..100) {
            let mut values: Vec<usize> = (0..length).collect();
            Stream::derive(Root::Seed(root), "shuffle", &[]).shuffle(&mut values);
            values.sort_unstable();
            prop_assert!(values.into_iter().eq(0..length));
        }
    }

    #[test]
    fn every_order_of_three_values_is_about_as_frequent() {
        let mut counts = std::collections::BTreeMap::new();
        for root in 0..6_000 {
            let mut values = [0, 1, 2];
            Stream::derive(Root::Seed(root), "order", &[]).shuffle(&mut values);
            *counts.entry(values).or_insert(0_u64) += 1;
        }
        assert_eq!(counts.len(), 6, "{counts:?}");
        let squares: u64 = counts.values().map(|count| count.abs_diff(1_000).pow(2)).sum();
        assert!(squares < 40 * 1_000, "{counts:?}");
    }
}
