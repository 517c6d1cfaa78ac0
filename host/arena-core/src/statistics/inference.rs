//! From the sums of a tally to estimates with intervals.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bootstrap::{Estimate, Resamples};
use super::bradley_terry::{Duel, Fit, POINTS_PER_LOGIT, fit};
use super::compare::{Difference, difference};
use super::fragility::{PairSums, Standing, pairs_to_overtake};
use super::metric::{Mean, Metric};
use super::reference::References;
use super::{AgentTally, BlockSums, Tally};

/// Fits of resamples times agents cubed that a rating may take: a thousand fits up to 158
/// agents, fewer above, so that a large field is rated in seconds.
pub const RATING_WORK_MAX: usize = 4_000_000_000;

/// The fewest resamples that a rating is fitted to, however many agents there are.
pub const RATING_RESAMPLES_MIN: usize = 50;

/// An agent's headline numbers with intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AgentEstimates {
    /// Mean reward over both roles.
    pub reward: Estimate,
    /// Mean reward as buyer.
    pub buyer_reward: Estimate,
    /// Mean reward as seller.
    pub seller_reward: Estimate,
    /// SE+ over both roles.
    pub surplus_share: Estimate,
}

/// Bradley-Terry strengths with intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rating {
    /// By announcement order, on the Elo-like scale with mean 0; no value for an agent without
    /// a match against another.
    pub points: Vec<Estimate>,
    /// What being the buyer is worth, on the same scale; no value where candidates take one role
    /// only, as no match tells it from how strong they are. Points then compare agents of one side.
    pub buyer_points: Estimate,
    /// How many sets of agents there are that never met across, even indirectly. With more
    /// than one, only agents of the same set can be compared.
    pub separate_fields: usize,
}

/// How many pairs must go before somebody else has the highest mean reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fragility {
    /// Who leads.
    pub leader: u16,
    /// Who would lead instead; `None` if no removal was found that does it.
    pub successor: Option<u16>,
    /// How many pairs suffice: an upper bound, see [`super::fragility`].
    pub pair_count: Option<u64>,
}

impl Tally {
    /// Draws resamples of the blocks that hold pairs.
    pub fn resamples(&self, wanted: u32) -> Resamples {
        Resamples::draw(self.seed, &self.blocks_present, wanted)
    }

    /// Returns how many blocks hold pairs.
    pub fn blocks_present(&self) -> usize {
        self.blocks_present.iter().filter(|present| **present).count()
    }

    /// Returns each agent's headline numbers, in announcement order.
    pub fn estimates(&self, resamples: &Resamples) -> Vec<AgentEstimates> {
        self.agents.iter().map(|agent| agent.estimates(resamples)).collect()
    }

    /// Returns how much more a buyer gets than a seller on average; nothing where candidates take
    /// one role only, as who buys and who sells are then other agents. Mean buyer reward minus mean
    /// seller reward over all matches, in [-2, 2].
    pub fn role_gap(&self, resamples: &Resamples) -> Estimate {
        if self.is_one_sided() {
            return Estimate::default();
        }
        let mut blocks = vec![[Mean::default(); 2]; self.blocks_present.len()];
        for agent in &self.agents {
            for (into, sums) in blocks.iter_mut().zip(&agent.blocks) {
                into[0].merge(sums.reward[0]);
                into[1].merge(sums.reward[1]);
            }
        }
        let gap = |counts: &dyn Fn(usize) -> f64| {
            let [buyer, seller] = weighted_sums(&blocks, counts);
            Some(buyer.value()? - seller.value()?)
        };
        let resampled: Vec<Option<f64>> =
            resamples.iter().map(|counts| gap(&|block| f64::from(counts[block]))).collect();
        Estimate::new(gap(&|_| 1.0), &resampled)
    }

    /// Fits Bradley-Terry strengths to all matches and to each resample; in a very large field
    /// only to the first resamples, see [`RATING_WORK_MAX`].
    pub fn rating(&self, resamples: &Resamples) -> Rating {
        let agent_count = self.agents.len();
        let all = self.duels(&|_| 1);
        let whole = fit(agent_count, &all, None);
        let mut points: Vec<Vec<Option<f64>>> = vec![Vec::new(); agent_count];
        let mut buyer_points = Vec::new();
        let cubed = agent_count.saturating_pow(3).max(1);
        let fits = (RATING_WORK_MAX / cubed).max(RATING_RESAMPLES_MIN);
        for counts in resamples.iter().take(fits) {
            let duels = self.duels(&|block| counts[block]);
            let again = fit(agent_count, &duels, Some(&whole));
            for (agent, value) in strengths_of_rated(&again, &duels).into_iter().enumerate() {
                points[agent].push(value);
            }
            buyer_points.push((!duels.is_empty()).then_some(again.buyer_term));
        }
        let estimates = strengths_of_rated(&whole, &all).into_iter().zip(&points);
        let is_known = !all.is_empty() && !self.is_one_sided();
        let buyer_term = is_known.then_some(whole.buyer_term);
        Rating {
            points: estimates
                .map(|(value, resampled)| Estimate::new(value, resampled).scaled(POINTS_PER_LOGIT))
                .collect(),
            buyer_points: Estimate::new(buyer_term, &buyer_points).scaled(POINTS_PER_LOGIT),
            separate_fields: self.separate_fields(),
        }
    }

    /// Compares the mean rewards of two agents; `None` if one has no match.
    pub fn compare(&self, first: u16, second: u16) -> Option<Difference> {
        let blocks = |agent: u16| -> Vec<Mean> {
            let both = |sums: &BlockSums| sums.both(sums.reward);
            self.agents[usize::from(agent)].blocks.iter().map(both).collect()
        };
        difference(&blocks(first), &blocks(second))
    }

    /// Returns how fragile the first place of `ranked` is: agents with at least one match, best
    /// mean reward first. `None` with fewer than two.
    pub fn fragility(&self, ranked: &[u16]) -> Option<Fragility> {
        let (&leader, rivals) = ranked.split_first()?;
        if rivals.is_empty() {
            return None;
        }
        let others = self.pairings.iter().filter(|((first, second), _)| first != second);
        let pairings: BTreeMap<(u16, u16), &PairSums> =
            others.map(|(agents, pairing)| (*agents, &pairing.sums)).collect();
        let standing = |agent: u16| {
            let sums = self.agents[usize::from(agent)].both_roles().mean(Metric::Reward);
            let leg_count = f64::from(self.roles().leg_count());
            (agent, Standing { reward_sum: sums.sum, match_count: sums.weight, leg_count })
        };
        let mut found = Fragility { leader, successor: None, pair_count: None };
        for &rival in rivals {
            let limit = found.pair_count.unwrap_or(u64::MAX);
            let count = pairs_to_overtake(&pairings, standing(leader), standing(rival), limit);
            if count.is_some() {
                found = Fragility { leader, successor: Some(rival), pair_count: count };
            }
        }
        Some(found)
    }

    /// Returns the reference lines of the scenarios played.
    pub fn references(&self, second_best_efficiency: Option<f64>) -> References {
        self.scenarios.references(second_best_efficiency)
    }

    /// Adds up the matches between different agents with each block taken so many times.
    fn duels(&self, times: &dyn Fn(usize) -> u32) -> Vec<Duel> {
        let mut duels = Vec::with_capacity(self.pairings.len() * 2);
        for (&(low, high), pairing) in &self.pairings {
            let (low, high) = (usize::from(low), usize::from(high));
            let mut sums = [(0_u64, 0_u64); 2];
            for (block, wins) in pairing.blocks.iter().enumerate() {
                let weight = u64::from(times(block));
                for (sum, wins) in sums.iter_mut().zip(wins) {
                    sum.0 += weight * u64::from(wins.match_count);
                    sum.1 += weight * u64::from(wins.buyer_halves);
                }
            }
            for ((count, halves), (buyer, seller)) in
                sums.into_iter().zip([(low, high), (high, low)])
            {
                if count > 0 && low != high {
                    let (count, won) = (count as f64, halves as f64 / 2.0);
                    duels.push(Duel { buyer, seller, count, won });
                }
            }
        }
        duels
    }

    /// Returns whether each agent takes one role only.
    pub fn is_one_sided(&self) -> bool {
        self.roles().of_candidates().is_some()
    }

    fn separate_fields(&self) -> usize {
        // Each agent's field is named by its lowest member that was found so far.
        let mut field: Vec<usize> = (0..self.agents.len()).collect();
        let mut rated = vec![false; self.agents.len()];
        for (first, second) in self.pairings.keys().filter(|(first, second)| first != second) {
            let (first, second) = (usize::from(*first), usize::from(*second));
            rated[first] = true;
            rated[second] = true;
            let (keep, drop) = (field[first].min(field[second]), field[first].max(field[second]));
            field.iter_mut().filter(|name| **name == drop).for_each(|name| *name = keep);
        }
        (0..field.len()).filter(|agent| rated[*agent] && field[*agent] == *agent).count()
    }
}

impl AgentTally {
    fn estimates(&self, resamples: &Resamples) -> AgentEstimates {
        let rows: Vec<[Mean; 4]> = self
            .blocks
            .iter()
            .map(|sums| {
                let shares = sums.both(sums.surplus_share);
                [sums.both(sums.reward), sums.reward[0], sums.reward[1], shares]
            })
            .collect();
        let whole = weighted_sums(&rows, &|_| 1.0).map(Mean::value);
        let mut resampled: [Vec<Option<f64>>; 4] = Default::default();
        for counts in resamples.iter() {
            let sums = weighted_sums(&rows, &|block| f64::from(counts[block]));
            for (column, sum) in resampled.iter_mut().zip(sums) {
                column.push(sum.value());
            }
        }
        let estimate = |column: usize| Estimate::new(whole[column], &resampled[column]);
        AgentEstimates {
            reward: estimate(0),
            buyer_reward: estimate(1),
            seller_reward: estimate(2),
            surplus_share: estimate(3),
        }
    }
}

impl BlockSums {
    fn both(&self, mut by_role: [Mean; 2]) -> Mean {
        let seller = by_role[1];
        by_role[0].merge(seller);
        by_role[0]
    }
}

/// Adds up columns of blocks with each block taken so many times.
fn weighted_sums<const N: usize>(blocks: &[[Mean; N]], times: &dyn Fn(usize) -> f64) -> [Mean; N] {
    let mut sums = [Mean::default(); N];
    for (block, row) in blocks.iter().enumerate() {
        let times = times(block);
        for (sum, mean) in sums.iter_mut().zip(row) {
            sum.sum += times * mean.sum;
            sum.weight += times * mean.weight;
        }
    }
    sums
}

/// Returns the strengths of those who stand in a duel.
fn strengths_of_rated(fit: &Fit, duels: &[Duel]) -> Vec<Option<f64>> {
    let mut rated = vec![None; fit.strengths.len()];
    for agent in duels.iter().flat_map(|duel| [duel.buyer, duel.seller]) {
        rated[agent] = Some(fit.strengths[agent]);
    }
    rated
}
