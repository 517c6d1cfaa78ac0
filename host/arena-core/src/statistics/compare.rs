//! Which mean rewards differ: tests paired on blocks, Holm's correction, and groups.
//!
//! Two agents meet the same items, so their means move together; a test that ignores this
//! finds too little. For agent a with block sums Sₐ and match counts Nₐ, each block's pull on
//! the mean m is u = (Sₐ − m Nₐ) / ΣNₐ, and the difference of two means has the variance
//! G/(G−1) Σ (uₐ − u_b)² over the G blocks: the usual linearisation of a ratio with clusters
//! (Cochran 1977, section 6.3). With equally large blocks this is exactly the paired t-test on
//! block means.

use libm::ldexp;

use super::metric::Mean;
use super::special::student_two_sided;

/// The chance of at least one false difference in the whole table, after correction.
pub const SIGNIFICANCE: f64 = 0.05;

/// Differences below this are rounding, not results.
const ROUNDING: f64 = 1e-12;

/// A difference of two mean rewards and how surprising it is if there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// First mean minus second.
    pub value: f64,
    /// Its standard error; `None` with fewer than two blocks.
    pub standard_error: Option<f64>,
    /// Two-sided p of a t-test with G − 1 degrees of freedom, at least 2^(1−G): no test that
    /// assumes no more than symmetry can go below that on G blocks. 1 with fewer than two.
    pub p: f64,
}

/// Compares the means of two agents, given their sums per block; `None` if one has no match.
pub fn difference(first: &[Mean], second: &[Mean]) -> Option<Difference> {
    let pulls = [Pulls::new(first)?, Pulls::new(second)?];
    let value = pulls[0].mean - pulls[1].mean;
    let mut block_count = 0_u32;
    let mut squares = 0.0;
    for block in 0..first.len().max(second.len()) {
        let [a, b] = [first.get(block), second.get(block)].map(|sums| sums.copied());
        let [a, b] = [a.unwrap_or_default(), b.unwrap_or_default()];
        if a.weight + b.weight > 0.0 {
            block_count += 1;
            let apart = pulls[0].of(a) - pulls[1].of(b);
            squares += apart * apart;
        }
    }
    if block_count < 2 {
        return Some(Difference { value, standard_error: None, p: 1.0 });
    }
    let blocks = f64::from(block_count);
    let standard_error = (blocks / (blocks - 1.0) * squares).sqrt();
    let p = if value.abs() < ROUNDING {
        1.0
    } else {
        let least = ldexp(1.0, 1 - i32::try_from(block_count).expect("blocks are bounded"));
        student_two_sided(value / standard_error, blocks - 1.0).max(least)
    };
    Some(Difference { value, standard_error: Some(standard_error), p })
}

/// How each block pulls on a mean.
struct Pulls {
    mean: f64,
    weight: f64,
}

impl Pulls {
    fn new(blocks: &[Mean]) -> Option<Pulls> {
        let mut total = Mean::default();
        blocks.iter().for_each(|block| total.merge(*block));
        total.value().map(|mean| Pulls { mean, weight: total.weight })
    }

    fn of(&self, block: Mean) -> f64 {
        (block.sum - self.mean * block.weight) / self.weight
    }
}

/// Returns Holm's adjusted p-values, in the order given: with the p-values sorted, the k-th of m
/// is the largest of (m − j + 1) pⱼ over j ≤ k, at most 1. Holm 1979. Rejecting those up to α
/// keeps the chance of any false rejection at α, whatever the dependence.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        let tests_left = (p_values.len() - rank) as f64;
        largest = largest.max(tests_left * p_values[place]).min(1.0);
        adjusted[place] = largest;
    }
    adjusted
}

/// Returns the maximal runs of consecutive ranks in which no two differ: first and last rank,
/// from 0, both included. `differ` is asked for a lower and a higher rank.
///
/// These are the lines of a compact letter display (Piepho 2004) for ranked means. Where two
/// neighbours differ although ones further apart do not, a run still holds no differing two.
pub fn groups(rank_count: usize, differ: &dyn Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for first in 0..rank_count {
        let mut last = first;
        while last + 1 < rank_count && (first..=last).all(|rank| !differ(rank, last + 1)) {
            last += 1;
        }
        if found.last().is_none_or(|(_, end)| last > *end) {
            found.push((first, last));
        }
    }
    found
}

/// Returns the letter of the n-th group, from 0: a to z, then aa, ab and so on.
pub fn letter(group: usize) -> String {
    let mut rest = group + 1;
    let mut letters = Vec::new();
    while rest > 0 {
        letters.push(char::from(b'a' + ((rest - 1) % 26) as u8));
        rest = (rest - 1) / 26;
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(values: &[(f64, f64)]) -> Vec<Mean> {
        values.iter().map(|(sum, weight)| Mean { sum: *sum, weight: *weight }).collect()
    }

    #[test]
    fn equal_blocks_give_the_paired_t_test() {
        // Differences of block means 1, 2, 3, 4, 5: mean 3, standard deviation √2.5.
        let first = blocks(&[(2.0, 2.0), (4.0, 2.0), (6.0, 2.0), (8.0, 2.0), (10.0, 2.0)]);
        let second = blocks(&[(0.0, 2.0); 5]);
        let found = difference(&first, &second).expect("both have matches");
        assert!((found.value - 3.0).abs() < 1e-12);
        assert!(
            (found.standard_error.expect("five blocks have one") - (2.5_f64 / 5.0).sqrt()).abs()
                < 1e-12
        );
        // t = 4.2426 with 4 degrees of freedom has p = 0.01324, but five blocks cannot show
        // less than 1/16.
        assert_eq!(found.p, 1.0 / 16.0);
    }

    #[test]
    fn pairing_finds_a_small_difference_under_large_item_noise() {
        let noise = |block: u32| f64::from(block * 37 % 100);
        let wiggle = |block: u32| if block.is_multiple_of(2) { 0.01 } else { 0.03 };
        let first: Vec<Mean> =
            (0..40).map(|block| Mean { sum: noise(block) + wiggle(block), weight: 1.0 }).collect();
        let second: Vec<Mean> =
            (0..40).map(|block| Mean { sum: noise(block), weight: 1.0 }).collect();
        assert!(difference(&first, &second).expect("both have matches").p < 1e-6);
    }

    #[test]
    fn equal_agents_and_single_blocks_do_not_differ() {
        let same = blocks(&[(0.3, 1.0), (0.1, 1.0), (0.7, 3.0)]);
        assert_eq!(difference(&same, &same).expect("both have matches").p, 1.0);
        let one =
            difference(&blocks(&[(1.0, 1.0)]), &blocks(&[(0.0, 1.0)])).expect("both have matches");
        assert_eq!((one.p, one.standard_error), (1.0, None));
        assert_eq!(difference(&[], &same), None);
    }

    #[test]
    fn a_constant_difference_is_as_sure_as_its_blocks_allow() {
        let found = difference(&blocks(&[(0.5, 1.0); 8]), &blocks(&[(0.25, 1.0); 8]))
            .expect("both have matches");
        assert_eq!((found.value, found.p), (0.25, 1.0 / 128.0));
    }

    #[test]
    fn holm_agrees_with_a_hand_example() {
        // Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, then made monotone.
        let found = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (value, expected) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((value - expected).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn groups_are_the_maximal_runs_without_a_difference() {
        let differ = |a: usize, b: usize| b - a >= 2;
        assert_eq!(groups(4, &differ), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(groups(3, &|_, _| false), [(0, 2)]);
        assert_eq!(groups(3, &|_, _| true), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(groups(0, &|_, _| true), []);
        // Ranks 1 and 2 differ, so no run holds both.
        assert_eq!(groups(4, &|a, b| (a, b) == (1, 2)), [(0, 1), (2, 3)]);
    }

    #[test]
    fn letters_go_on_after_z() {
        let shown: Vec<String> = [0, 25, 26, 27, 701, 702].map(letter).to_vec();
        assert_eq!(shown, ["a", "z", "aa", "ab", "zz", "aaa"]);
    }
}
