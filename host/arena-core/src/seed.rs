//! One root seed, and from it a stream of draws for each purpose, by hash.
//!
//! A stream is ChaCha20 (RFC 8439 block function, 64-bit block counter from 0, stream id 0) keyed
//! with SHA-256 of: the label `arena/seed/v1`, a zero byte, the root seed (u64, big-endian), the
//! purpose, a zero byte, and each number of the address (u64, big-endian). Words are taken in
//! order, two 32-bit words to a u64, low word first. `below(n)` rejects: it draws u64 values until one is
//! below the largest multiple of n, and returns it modulo n.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// A stream of draws that only its address determines.
#[derive(Clone, Debug)]
pub struct Stream {
    rng: ChaCha20Rng,
}

impl Stream {
    /// Returns the stream for `purpose` at `address` under a root seed.
    pub fn derive(root: u64, purpose: &str, address: &[u64]) -> Stream {
        let mut hash = Sha256::new();
        hash.update(b"arena/seed/v1\0");
        hash.update(root.to_be_bytes());
        hash.update(purpose.as_bytes());
        hash.update([0]);
        for number in address {
            hash.update(number.to_be_bytes());
        }
        Stream {
            rng: ChaCha20Rng::from_seed(hash.finalize().into()),
        }
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
        assert!(
            count <= bound,
            "a sample is no larger than what it is drawn from"
        );
        let mut numbers: Vec<u32> = (0..bound).collect();
        for place in 0..count {
            let other = u64::from(place) + self.below(u64::from(bound - place));
            numbers.swap(
                place as usize,
                usize::try_from(other).expect("below a length"),
            );
        }
        numbers.truncate(count as usize);
        numbers.sort_unstable();
        numbers
    }
}
