//! How many pairs must go before somebody else leads.
//!
//! A board whose first place hangs on three pairs should say so (Broderick, Giordano and Meager
//! 2020, "An Automatic Finite-Sample Robustness Metric", measure the same for estimates). The
//! number here is found by search over sums that a one-pass tally can keep, as follows.
//!
//! For every pairing the pairs' reward sums are kept in bins of [`BIN_WIDTH`]: each bin holds
//! how many pairs fell into it and their exact sums. To move a rival above the leader one
//! removes pairs of three kinds: the leader's best against others, the rival's worst against
//! others, and their own pairs with the largest difference. A bin that is used in part counts
//! with its average; the best of its pairs do at least as well, so the number is always an
//! *upper bound*: that many pairs do suffice. It is exact where every bin used holds equal pairs,
//! the removals act separately (the two never met, or met nobody else), and the counts are small
//! enough to try all (up to [`GRID`] of each kind).
//!
//! Not here: pairs of an agent against itself, which count but are never removed.

use std::collections::BTreeMap;

/// Width of a bin of reward sums. A pair's sum for one agent lies in [-2, 2].
pub const BIN_WIDTH: f64 = 0.02;

/// How many counts of one kind are tried at once before zooming in.
pub const GRID: u64 = 64;

/// Zooms into the neighbourhood of the best count; 64 × 32⁷ exceeds any number of pairs.
const ZOOMS_MAX: u32 = 8;

/// Pairs with nearly the same sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bin {
    count: u64,
    /// Sums of the first and of the second agent.
    sums: [f64; 2],
}

/// The pairs of two agents, binned by what their removal would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairSums {
    by_first: BTreeMap<i16, Bin>,
    by_second: BTreeMap<i16, Bin>,
    by_difference: BTreeMap<i16, Bin>,
}

impl PairSums {
    /// Adds a pair: the rewards of its legs for the first and for the second agent.
    pub fn add(&mut self, sums: [f64; 2]) {
        let bins = [
            self.by_first.entry(bin_of(sums[0])).or_default(),
            self.by_second.entry(bin_of(sums[1])).or_default(),
            self.by_difference.entry(bin_of(sums[0] - sums[1])).or_default(),
        ];
        for bin in bins {
            bin.count += 1;
            bin.sums[0] += sums[0];
            bin.sums[1] += sums[1];
        }
    }
}

fn bin_of(sum: f64) -> i16 {
    // Sums lie in [-4, 4], so the quotient fits.
    (sum / BIN_WIDTH).round() as i16
}

/// What is known of one agent: its total reward and matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Sum of rewards over all matches.
    pub reward_sum: f64,
    /// Matches.
    pub match_count: f64,
    /// Matches of each pair.
    pub leg_count: f64,
}

impl Standing {
    fn mean_without(self, pair_count: u64, reward_sum: f64) -> Option<f64> {
        let left = self.match_count - self.leg_count * pair_count as f64;
        (left > 0.5).then(|| (self.reward_sum - reward_sum) / left)
    }
}

/// Returns how many pairs suffice to put `rival` strictly above `leader`, and fewer than
/// `limit`; `None` if none do. `pairings` are all pairings of different agents by number, lower
/// first.
pub fn pairs_to_overtake(
    pairings: &BTreeMap<(u16, u16), &PairSums>,
    leader: (u16, Standing),
    rival: (u16, Standing),
    limit: u64,
) -> Option<u64> {
    let of_leader = Removals::against_others(pairings, leader.0, rival.0, Order::BestFirst);
    let of_rival = Removals::against_others(pairings, rival.0, leader.0, Order::WorstFirst);
    let search = Search {
        leader: leader.1,
        rival: rival.1,
        of_leader,
        of_rival,
        shared: Removals::between(pairings, leader.0, rival.0),
    };
    search.fewest(limit)
}

/// Which pairs go first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    BestFirst,
    WorstFirst,
}

/// Pairs in the order in which they are removed, as running totals at the ends of bins.
#[derive(Clone, Debug)]
struct Removals {
    /// Pairs removed, and what they were worth; starts with nothing removed.
    totals: Vec<Bin>,
}

impl Removals {
    /// Collects the pairs of `agent` against everybody but `except`; both sums are its own.
    fn against_others(
        pairings: &BTreeMap<(u16, u16), &PairSums>,
        agent: u16,
        except: u16,
        order: Order,
    ) -> Removals {
        let mut merged: BTreeMap<i16, Bin> = BTreeMap::new();
        for (&(first, second), sums) in pairings {
            let (bins, own) = match agent {
                agent if agent == first && except != second => (&sums.by_first, 0),
                agent if agent == second && except != first => (&sums.by_second, 1),
                _ => continue,
            };
            for (key, bin) in bins {
                let into = merged.entry(*key).or_default();
                into.count += bin.count;
                into.sums[0] += bin.sums[own];
                into.sums[1] += bin.sums[own];
            }
        }
        match order {
            Order::BestFirst => Removals::in_order(merged.into_values().rev()),
            Order::WorstFirst => Removals::in_order(merged.into_values()),
        }
    }

    /// Collects the pairs between leader and rival, those that favoured the leader most first;
    /// the first sum is the leader's.
    fn between(pairings: &BTreeMap<(u16, u16), &PairSums>, leader: u16, rival: u16) -> Removals {
        let bins = pairings.get(&(leader.min(rival), leader.max(rival)));
        let bins = bins.into_iter().flat_map(|sums| sums.by_difference.values().copied());
        if leader < rival {
            let mut ordered: Vec<Bin> = bins.collect();
            ordered.reverse();
            return Removals::in_order(ordered.into_iter());
        }
        let swapped = |bin: Bin| Bin { count: bin.count, sums: [bin.sums[1], bin.sums[0]] };
        Removals::in_order(bins.map(swapped))
    }

    fn in_order(bins: impl Iterator<Item = Bin>) -> Removals {
        let mut totals = vec![Bin::default()];
        let mut running = Bin::default();
        for bin in bins {
            running.count += bin.count;
            running.sums[0] += bin.sums[0];
            running.sums[1] += bin.sums[1];
            totals.push(running);
        }
        Removals { totals }
    }

    fn pair_count(&self) -> u64 {
        self.totals.last().map_or(0, |total| total.count)
    }

    /// Returns what the first `count` pairs are worth; within a bin, at its average.
    fn worth(&self, count: u64) -> [f64; 2] {
        let after = self.totals.partition_point(|total| total.count < count);
        let Some(end) = self.totals.get(after) else {
            return self.totals.last().map_or([0.0; 2], |total| total.sums);
        };
        if after == 0 {
            return end.sums;
        }
        let start = self.totals[after - 1];
        let share = (count - start.count) as f64 / (end.count - start.count) as f64;
        [0, 1].map(|place| start.sums[place] + share * (end.sums[place] - start.sums[place]))
    }
}

/// The search for the fewest removals.
struct Search {
    leader: Standing,
    rival: Standing,
    of_leader: Removals,
    of_rival: Removals,
    shared: Removals,
}

/// How many pairs to remove: shared ones, the leader's, and all in total.
#[derive(Clone, Copy, Debug)]
struct Plan {
    shared: u64,
    of_leader: u64,
    total: u64,
}

impl Search {
    fn fewest(&self, limit: u64) -> Option<u64> {
        let mut best: Option<Plan> = None;
        let mut shared = Range::whole(self.shared.pair_count());
        let mut of_leader = Range::whole(self.of_leader.pair_count());
        for _ in 0..ZOOMS_MAX {
            self.try_all(&shared, &of_leader, limit, &mut best);
            let at = best?;
            if shared.step == 1 && of_leader.step == 1 {
                break;
            }
            shared = shared.around(at.shared);
            of_leader = of_leader.around(at.of_leader);
        }
        best.map(|plan| plan.total)
    }

    fn try_all(&self, shared: &Range, of_leader: &Range, limit: u64, best: &mut Option<Plan>) {
        for shared in shared.values() {
            for of_leader in of_leader.values() {
                let bound = best.map_or(limit, |plan| plan.total);
                if shared + of_leader >= bound {
                    break;
                }
                if let Some(of_rival) = self.rivals_needed(shared, of_leader) {
                    let total = shared + of_leader + of_rival;
                    if total < bound {
                        *best = Some(Plan { shared, of_leader, total });
                    }
                }
            }
        }
    }

    /// Returns how many of the rival's worst pairs must go as well.
    fn rivals_needed(&self, shared: u64, of_leader: u64) -> Option<u64> {
        let together = self.shared.worth(shared);
        let own = self.of_leader.worth(of_leader)[0];
        let target = self.leader.mean_without(shared + of_leader, together[0] + own)?;
        let mean = |count: u64| {
            let gone = together[1] + self.of_rival.worth(count)[1];
            self.rival.mean_without(shared + count, gone)
        };
        let above = |count: u64| mean(count).is_some_and(|mean| mean > target + ROUNDING);
        // Taking the worst away lifts the mean until the worst left is as good as the mean;
        // find that turning point, then the first count before it that is enough.
        let lifts = |count: u64| match (mean(count), mean(count + 1)) {
            (Some(now), Some(next)) => next > now,
            _ => false,
        };
        let peak = first_where(self.of_rival.pair_count(), &|count| !lifts(count));
        let needed = first_where(peak, &above);
        above(needed).then_some(needed)
    }
}

/// Means closer than this are taken as equal.
const ROUNDING: f64 = 1e-12;

/// Returns the first count up to `last` from which on `holds` is true, `last` if none.
fn first_where(last: u64, holds: &dyn Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, last);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// Counts to try: from `first` to `last` in steps, and `last`.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u64,
    last: u64,
    step: u64,
    most: u64,
}

impl Range {
    fn whole(most: u64) -> Range {
        Range { first: 0, last: most, step: (most / GRID).max(1), most }
    }

    /// Zooms to one step on either side of a count.
    fn around(self, centre: u64) -> Range {
        let first = centre.saturating_sub(self.step);
        let last = (centre + self.step).min(self.most);
        Range { first, last, step: ((last - first) / GRID).max(1), most: self.most }
    }

    fn values(self) -> impl Iterator<Item = u64> {
        let step = usize::try_from(self.step).unwrap_or(usize::MAX);
        let last = !(self.last - self.first).is_multiple_of(self.step);
        (self.first..=self.last).step_by(step).chain(last.then_some(self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{Root, Stream};

    /// A pair: the two agents and their reward sums.
    type Pair = ([u16; 2], [f64; 2]);

    fn standing(pairs: &[Pair], agent: u16) -> Standing {
        let own = pairs.iter().flat_map(|(agents, sums)| agents.iter().zip(sums));
        let own: Vec<f64> = own.filter(|(name, _)| **name == agent).map(|(_, sum)| *sum).collect();
        let (reward_sum, leg_count) = (own.iter().sum(), 2.0);
        Standing { reward_sum, match_count: leg_count * own.len() as f64, leg_count }
    }

    fn mean(pairs: &[Pair], agent: u16) -> Option<f64> {
        standing(pairs, agent).mean_without(0, 0.0)
    }

    fn found(pairs: &[Pair], leader: u16, rival: u16) -> Option<u64> {
        let mut kept: BTreeMap<(u16, u16), PairSums> = BTreeMap::new();
        for (agents, sums) in pairs {
            assert!(agents[0] < agents[1], "test pairs name the lower agent first");
            kept.entry((agents[0], agents[1])).or_default().add(*sums);
        }
        let borrowed = kept.iter().map(|(agents, sums)| (*agents, sums)).collect();
        let at = |agent| (agent, standing(pairs, agent));
        pairs_to_overtake(&borrowed, at(leader), at(rival), u64::MAX)
    }

    /// The fewest removals by trying every subset.
    fn exhaustive(pairs: &[Pair], leader: u16, rival: u16) -> Option<u64> {
        let subsets = 0_u32..1 << pairs.len();
        let works = |subset: &u32| {
            let kept = (0..pairs.len()).filter(|place| subset >> place & 1 == 0);
            let kept: Vec<Pair> = kept.map(|place| pairs[place]).collect();
            match (mean(&kept, leader), mean(&kept, rival)) {
                (Some(leader), Some(rival)) => rival > leader + ROUNDING,
                _ => false,
            }
        };
        subsets.filter(works).map(|subset| u64::from(subset.count_ones())).min()
    }

    fn sum_of(stream: &mut Stream) -> f64 {
        (stream.below(21) as f64 - 8.0) / 10.0
    }

    #[test]
    fn agents_that_never_met_are_exact() {
        for seed in 0..40 {
            let mut stream = Stream::derive(Root::Seed(seed), "fragility-test", &[0]);
            let mut pairs: Vec<Pair> = Vec::new();
            for _ in 0..6 {
                pairs.push(([0, 2], [sum_of(&mut stream) + 0.4, 0.0]));
                pairs.push(([1, 2], [sum_of(&mut stream), 0.0]));
            }
            assert_eq!(found(&pairs, 0, 1), exhaustive(&pairs, 0, 1), "seed {seed}");
        }
    }

    #[test]
    fn two_agents_alone_are_exact() {
        for seed in 0..40 {
            let mut stream = Stream::derive(Root::Seed(seed), "fragility-test", &[1]);
            let draw = |_| ([0, 1], [sum_of(&mut stream) + 0.3, sum_of(&mut stream)]);
            let pairs: Vec<Pair> = (0..11).map(draw).collect();
            assert_eq!(found(&pairs, 0, 1), exhaustive(&pairs, 0, 1), "seed {seed}");
            assert_eq!(found(&pairs, 1, 0), exhaustive(&pairs, 1, 0), "seed {seed}");
        }
    }

    #[test]
    fn a_round_robin_is_never_below_and_seldom_above_the_truth() {
        let mut exact = 0;
        for seed in 0..60 {
            let mut stream = Stream::derive(Root::Seed(seed), "fragility-test", &[2]);
            let mut pairs: Vec<Pair> = Vec::new();
            for agents in [[0, 1], [0, 2], [1, 2]] {
                for _ in 0..4 {
                    pairs.push((agents, [sum_of(&mut stream), sum_of(&mut stream)]));
                }
            }
            let (bound, truth) = (found(&pairs, 0, 1), exhaustive(&pairs, 0, 1));
            match (bound, truth) {
                (Some(bound), Some(truth)) => assert!(bound >= truth, "seed {seed}"),
                (Some(_), None) => panic!("seed {seed}: claims what no removal does"),
                _ => {}
            }
            exact += u32::from(bound == truth);
        }
        assert!(exact >= 50, "only {exact} of 60 are exact");
    }

    #[test]
    fn a_leader_that_is_better_in_every_pair_cannot_be_overtaken() {
        let pairs = vec![([0, 1], [1.5, 0.5]); 9];
        assert_eq!(found(&pairs, 0, 1), None);
    }

    #[test]
    fn equal_agents_are_one_pair_apart() {
        let pairs = [([0, 1], [1.5, 0.5]), ([0, 1], [0.5, 1.5])];
        assert_eq!(found(&pairs, 0, 1), Some(1));
    }

    #[test]
    fn a_million_pairs_are_searched_by_zooming_in() {
        // 600,000 pairs favour the leader by 1, 400,000 the rival by 1: at least 200,001 go.
        let mut sums = PairSums::default();
        for number in 0..1_000_000_u32 {
            sums.add(if number % 5 < 3 { [1.5, 0.5] } else { [0.5, 1.5] });
        }
        let pairings = BTreeMap::from([((0, 1), &sums)]);
        let standing = |reward_sum| Standing { reward_sum, match_count: 2e6, leg_count: 2.0 };
        let [leader, rival] = [(0, standing(1.1e6)), (1, standing(0.9e6))];
        assert_eq!(pairs_to_overtake(&pairings, leader, rival, u64::MAX), Some(200_001));
        assert_eq!(pairs_to_overtake(&pairings, leader, rival, 200_001), None);
    }
}
