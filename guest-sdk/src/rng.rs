//! The one source of randomness: xoshiro256** seeded by SplitMix64.
//!
//! Both are public domain (Blackman, Vigna 2018; Steele, Lea, Flood 2014; `prng.di.unimi.it`).
//! Natively and in WebAssembly the same seed gives the same numbers.
//!
//! Not here: secrecy. Whoever knows the seed knows the numbers.

/// A stream of numbers that only its seed determines.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Returns the stream of a seed: four outputs of SplitMix64 are the state.
    pub fn new(seed: u64) -> Rng {
        let mut mixer = seed;
        Rng { state: std::array::from_fn(|_| split_mix(&mut mixer)) }
    }

    /// Draws 64 bits.
    pub fn bits(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// Draws a number in `0..bound` without bias.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw needs at least one possibility");
        // Values beyond the largest multiple of `bound` are drawn again, or the low results
        // would come up more often.
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
    /// If `low > high`.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        assert!(low <= high, "a range runs from low to high");
        low + self.below(u64::from(high - low) + 1) as u32
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_published_numbers() {
        let mut state = 1_234_567;
        let drawn: [u64; 5] = std::array::from_fn(|_| split_mix(&mut state));
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, published);
    }

    #[test]
    fn xoshiro_gives_the_published_numbers() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let drawn: [u64; 5] = std::array::from_fn(|_| rng.bits());
        let published =
            [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240, 1_216_172_134_540_287_360];
        assert_eq!(drawn, published);
    }

    #[test]
    fn every_face_of_a_die_comes_up_about_as_often() {
        let mut rng = Rng::new(7);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        // Nine standard deviations of a fair die: a biased draw fails, chance does not.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 830), "{counts:?}");
    }

    #[test]
    fn a_range_includes_both_ends() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u32> = (0..200).map(|_| rng.between(5, 7)).collect();
        assert!((5..=7).all(|price| drawn.contains(&price)));
        assert!(drawn.iter().all(|price| (5..=7).contains(price)));
        assert_eq!(rng.between(u32::MAX, u32::MAX), u32::MAX);
    }
}
