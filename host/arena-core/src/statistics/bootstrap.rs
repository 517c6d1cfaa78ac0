//! Percentile bootstrap over blocks of pairs.
//!
//! A resample draws as many blocks as there are, with replacement; every statistic of a report
//! is computed on the same resamples. The draws come from [`Stream`], one stream per resample
//! under the purpose `bootstrap`, so the same log always gives the same intervals.
//!
//! The percentile interval is that of Efron and Tibshirani 1993, chapter 13. It needs no
//! formula for the spread of a ratio or a rating; with few blocks it is too narrow, so reports
//! warn below [`BLOCKS_TRUSTED_MIN`].

use serde::Serialize;

use crate::seed::{Root, Stream};

/// Coverage of every interval.
pub const COVERAGE: f64 = 0.95;

/// The most resamples that are drawn.
pub const RESAMPLES_MAX: u32 = 10_000;

/// Below this many blocks percentile intervals are noticeably too narrow.
pub const BLOCKS_TRUSTED_MIN: usize = 20;

/// A statistic with its interval. All values are finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The statistic on all pairs; `None` if nothing enters it.
    pub value: Option<f64>,
    /// The interval's lower end; `None` with fewer than two blocks, or if the statistic is
    /// undefined in more than half of the resamples.
    pub low: Option<f64>,
    /// The interval's upper end, `None` as for `low`.
    pub high: Option<f64>,
}

impl Estimate {
    /// Returns the statistic with the percentile interval of its resampled values.
    pub fn new(value: Option<f64>, resampled: &[Option<f64>]) -> Estimate {
        let mut defined: Vec<f64> = resampled.iter().copied().flatten().collect();
        if value.is_none() || defined.is_empty() || defined.len() * 2 < resampled.len() {
            return Estimate { value, low: None, high: None };
        }
        defined.sort_by(f64::total_cmp);
        let tail = (1.0 - COVERAGE) / 2.0;
        let low = Some(quantile(&defined, tail));
        Estimate { value, low, high: Some(quantile(&defined, 1.0 - tail)) }
    }

    /// Returns the same estimate in another unit.
    pub fn scaled(self, factor: f64) -> Estimate {
        let scale = |value: Option<f64>| value.map(|value| value * factor);
        Estimate { value: scale(self.value), low: scale(self.low), high: scale(self.high) }
    }
}

/// Returns the `share` quantile of sorted values, interpolated linearly (type 7 of Hyndman and
/// Fan 1996).
///
/// # Panics
/// If there are no values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// How often each block stands in each resample.
#[derive(Clone, Debug)]
pub struct Resamples {
    counts: Vec<Vec<u32>>,
}

impl Resamples {
    /// Draws `wanted` resamples, at most [`RESAMPLES_MAX`], of the blocks that `present` marks.
    /// There are none if fewer than two blocks are marked: one block says nothing about spread.
    pub fn draw(seed: u64, present: &[bool], wanted: u32) -> Resamples {
        let blocks: Vec<usize> = (0..present.len()).filter(|block| present[*block]).collect();
        if blocks.len() < 2 {
            return Resamples { counts: Vec::new() };
        }
        let draw_one = |number: u32| {
            let mut stream = Stream::derive(Root::Seed(seed), "bootstrap", &[u64::from(number)]);
            let mut counts = vec![0_u32; present.len()];
            for _ in 0..blocks.len() {
                counts[blocks[stream.below(blocks.len() as u64) as usize]] += 1;
            }
            counts
        };
        Resamples { counts: (0..wanted.min(RESAMPLES_MAX)).map(draw_one).collect() }
    }

    /// Returns, for each resample, how often each block stands in it.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.counts.iter().map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::metric::Mean;

    /// The interval of the mean of one value per block.
    fn interval(values: &[f64], resamples: u32) -> Estimate {
        let drawn = Resamples::draw(7, &vec![true; values.len()], resamples);
        let mean = |counts: &[u32]| {
            let mut sum = Mean::default();
            for (value, count) in values.iter().zip(counts) {
                sum.add_weighted(*value, f64::from(*count));
            }
            sum.value()
        };
        let resampled: Vec<Option<f64>> = drawn.iter().map(mean).collect();
        Estimate::new(mean(&vec![1; values.len()]), &resampled)
    }

    #[test]
    fn the_interval_of_a_coin_is_close_to_the_binomial_quantiles() {
        let mut tosses = vec![1.0; 60];
        tosses.resize(200, 0.0);
        let found = interval(&tosses, 4_000);
        // The 2.5 % and 97.5 % points of a binomial with 200 tosses and p = 0.3 are 48 and 73.
        assert_eq!(found.value, Some(0.3));
        let close = |end: Option<f64>, tosses: f64| {
            end.is_some_and(|end| (end - tosses / 200.0).abs() <= 0.005)
        };
        assert!(close(found.low, 48.0) && close(found.high, 73.0), "{found:?}");
    }

    #[test]
    fn a_constant_has_an_interval_of_width_zero() {
        let found = interval(&[0.25; 40], 200);
        assert_eq!((found.low, found.high), (Some(0.25), Some(0.25)));
    }

    #[test]
    fn one_block_has_no_interval() {
        let found = interval(&[0.25], 200);
        assert_eq!(found, Estimate { value: Some(0.25), low: None, high: None });
    }

    #[test]
    fn the_same_seed_draws_the_same_resamples() {
        let draw = |seed| Resamples::draw(seed, &[true, false, true, true], 50).counts;
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(1).iter().all(|counts| counts.iter().sum::<u32>() == 3 && counts[1] == 0));
    }

    #[test]
    fn a_statistic_that_most_resamples_lack_has_no_interval() {
        let found = Estimate::new(Some(1.0), &[Some(1.0), None, None]);
        assert_eq!((found.low, found.high), (None, None));
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[0.0, 1.0, 2.0, 3.0], 0.5), 1.5);
        assert_eq!(quantile(&[4.0], 0.975), 4.0);
    }
}
