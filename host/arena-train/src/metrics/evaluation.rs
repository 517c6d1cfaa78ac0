//! Statistics of an evaluation, with intervals.
//!
//! Intervals are percentile bootstraps over items (`arena_core::statistics::bootstrap`): episodes
//! over one item are not independent.
//!
//! Not here: which matches an evaluation plays.

use std::collections::BTreeMap;

use arena_core::statistics::bootstrap::{Estimate, Resamples};
use arena_core::statistics::metric::Mean;
use serde::{Deserialize, Serialize};

use super::{MEASURE_COUNT, Played, observe};

/// Resamples of every interval.
pub const RESAMPLES: u32 = 2_000;

/// A statistic with its 95 % interval; the ends are `None` with fewer than two items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The statistic; `None` if nothing enters it.
    pub value: Option<f64>,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl From<Estimate> for Interval {
    fn from(estimate: Estimate) -> Interval {
        let Estimate { value, low, high } = estimate;
        Interval { value, low, high }
    }
}

/// What is measured of an evaluation. The statistics are those of [`super::PlayMetrics`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// How many matches there were.
    pub episodes: u64,
    /// How many different items.
    pub items: u64,
    /// Mean reward.
    pub reward: Interval,
    /// Share with a deal.
    pub deal_rate: Interval,
    /// Share of the surplus over feasible deals.
    pub bargained_ratio: Interval,
    /// First own offer over own reserve.
    pub opening_ratio: Interval,
    /// Share with a move beyond the own reserve.
    pub overshoot_rate: Interval,
    /// Share that ended in an own fault.
    pub invalid_rate: Interval,
    /// Turns of both sides.
    pub turns: Interval,
}

/// Evaluates episodes. `seed` moves the resampling alone.
pub fn evaluate<'a>(episodes: impl IntoIterator<Item = Played<'a>>, seed: u64) -> Evaluation {
    let blocks = Blocks::new(episodes);
    let resamples = Resamples::draw(seed, &vec![true; blocks.sums.len()], RESAMPLES);
    let interval = |measure: usize| Interval::from(blocks.estimate(measure, &resamples));
    // Places in what `observe` returns.
    let [reward, deal_rate, bargained_ratio, opening_ratio] = [0, 1, 2, 3].map(interval);
    let [overshoot_rate, invalid_rate, turns] = [5, 6, 8].map(interval);
    Evaluation {
        episodes: blocks.episodes,
        items: blocks.sums.len() as u64,
        reward,
        deal_rate,
        bargained_ratio,
        opening_ratio,
        overshoot_rate,
        invalid_rate,
        turns,
    }
}

/// Returns the mean reward of `after` minus that of `before`, resampled over the items that both
/// have; episodes over others do not count.
pub fn improvement<'a>(
    before: impl IntoIterator<Item = Played<'a>>,
    after: impl IntoIterator<Item = Played<'a>>,
    seed: u64,
) -> Interval {
    let (before, after) = (Blocks::new(before), Blocks::new(after));
    let shared = before
        .sums
        .iter()
        .filter_map(|(item, sums)| after.sums.get(item).map(|others| (sums[0], others[0])));
    let pairs: Vec<(Mean, Mean)> = shared.collect();
    let difference = |counts: &[u32]| {
        let (mut first, mut second) = (Mean::default(), Mean::default());
        for ((before, after), count) in pairs.iter().zip(counts) {
            let times = f64::from(*count);
            first.merge(Mean { sum: before.sum * times, weight: before.weight * times });
            second.merge(Mean { sum: after.sum * times, weight: after.weight * times });
        }
        Some(second.value()? - first.value()?)
    };
    let resamples = Resamples::draw(seed, &vec![true; pairs.len()], RESAMPLES);
    let resampled: Vec<Option<f64>> = resamples.iter().map(difference).collect();
    Estimate::new(difference(&vec![1; pairs.len()]), &resampled).into()
}

/// Sums over episodes, item by item.
struct Blocks {
    episodes: u64,
    sums: BTreeMap<u32, [Mean; MEASURE_COUNT]>,
}

impl Blocks {
    fn new<'a>(episodes: impl IntoIterator<Item = Played<'a>>) -> Blocks {
        let mut blocks = Blocks { episodes: 0, sums: BTreeMap::new() };
        for episode in episodes {
            blocks.episodes += 1;
            let sums = blocks.sums.entry(episode.record.item_index).or_default();
            for (mean, value) in sums.iter_mut().zip(observe(&episode)) {
                if let Some(value) = value {
                    mean.add(value);
                }
            }
        }
        blocks
    }

    fn estimate(&self, measure: usize, resamples: &Resamples) -> Estimate {
        let mean = |counts: &[u32]| {
            let mut total = Mean::default();
            for (sums, count) in self.sums.values().zip(counts) {
                let (times, sum) = (f64::from(*count), sums[measure]);
                total.merge(Mean { sum: sum.sum * times, weight: sum.weight * times });
            }
            total.value()
        };
        let resampled: Vec<Option<f64>> = resamples.iter().map(mean).collect();
        Estimate::new(mean(&vec![1; self.sums.len()]), &resampled)
    }
}
