//! Lines to read results against, computed from the scenarios that were played.
//!
//! None is a cap or a score; they say what a simple or an ideal behaviour would have got on
//! exactly these items.
//!
//! - *First best*: every feasible match ends at the opponent's reserve. The mean reward of a
//!   seat that gets all of it; two opposed seats cannot both.
//! - *Midpoint*: every feasible match ends half way between the reserves, where the Nash,
//!   Kalai-Smorodinsky and egalitarian solutions coincide for one linear issue.
//! - *Second best*: the largest share of the gains from trade that any incentive-compatible,
//!   individually rational and budget-balanced mechanism reaches when reserves are private:
//!   27/32 for reserves drawn independently and uniformly (Myerson and Satterthwaite 1983,
//!   section 5). Compare it with allocative efficiency. Elsewhere it is not computed: what the
//!   two sides want of a product is not independent given its public price, and the bound for
//!   independent draws would say nothing about it.
//! - *Best fixed ladder*: the best of a grid of offer sequences that never listen, chosen after
//!   the fact, against an opponent that takes anything not worse than its own reserve. The
//!   buyer's k-th offer is list price × (opening + k × step), the seller's list price × (opening
//!   − k × step), each stopped at the own reserve; a seat makes as many offers as the horizon
//!   lets the opponent answer. It shows how much of a result needs no negotiation at all.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metric::Mean;
use crate::record::MatchRecord;
use crate::scenario::Role;
use crate::score::ROOM_CENTS_MIN;

/// Share of first-best gains at second best with independent uniform reserves.
pub const SECOND_BEST_UNIFORM: f64 = 27.0 / 32.0;

/// The most different scenarios that are kept for the ladder. Of a longer tournament it sees
/// the first ones, which cover all items evenly since repetitions are outermost in a schedule.
pub const SCENARIOS_MAX: usize = 16_384;

/// Openings of the ladder grid, in thousandths of the list price: first, last, step.
const OPENINGS_MILLI: (u32, u32, u32) = (50, 1_500, 50);

/// Steps of the ladder grid, in thousandths of the list price: first, last, step.
const STEPS_MILLI: (u32, u32, u32) = (0, 200, 10);

/// The lines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct References {
    /// Share of feasible matches.
    pub feasible_rate: Option<f64>,
    /// Mean reward of a seat that gets the whole surplus of every feasible match. Below the
    /// feasible rate only where a margin is under a dollar.
    pub first_best_reward: Option<f64>,
    /// Mean reward of either seat at the midpoint.
    pub midpoint_reward: Option<f64>,
    /// The second-best share of the gains from trade, where it is known.
    pub second_best_efficiency: Option<f64>,
    /// The buyer's and the seller's best fixed ladder; `None` before the first pair.
    pub ladders: Option<[Ladder; 2]>,
    /// Whether more scenarios were played than the ladders were chosen on.
    pub ladders_sampled: bool,
}

/// A sequence of offers that never listens, and what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// The first offer, in thousandths of the list price.
    pub opening_milli: u32,
    /// The step between offers, in thousandths of the list price.
    pub step_milli: u32,
    /// Mean reward over all scenarios.
    pub reward: f64,
    /// Share of scenarios with a deal.
    pub deal_rate: f64,
}

/// The scenarios that were played, with their weights.
#[derive(Clone, Debug, Default)]
pub struct Scenarios {
    kept: BTreeMap<(u32, u32), Weighted>,
    sampled: bool,
    feasible: Mean,
    first_best: Mean,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Weighted {
    list_cents: u64,
    budget: u64,
    cost: u64,
    /// Offers that the opponent can answer: buyer's, seller's.
    offer_counts: [u64; 2],
    pair_count: u64,
}

impl Scenarios {
    /// Adds the scenario of a pair, given one of its legs.
    pub fn add(&mut self, leg: &MatchRecord) {
        let room = leg.budget.minus(leg.cost).max(0) as f64;
        self.feasible.add(if room > 0.0 { 1.0 } else { 0.0 });
        self.first_best.add(room / room.max(ROOM_CENTS_MIN as f64));
        let key = (leg.item_index, leg.repetition);
        if let Some(known) = self.kept.get_mut(&key) {
            known.pair_count += 1;
        } else if self.kept.len() < SCENARIOS_MAX {
            self.kept.insert(key, Weighted::new(leg));
        } else {
            self.sampled = true;
        }
    }

    /// Computes the lines. `second_best_efficiency` is known to whoever knows the catalog.
    pub fn references(&self, second_best_efficiency: Option<f64>) -> References {
        let first_best_reward = self.first_best.value();
        let ladders = Role::BOTH.map(|role| self.best_ladder(role));
        let ladders = match ladders {
            [Some(buyer), Some(seller)] => Some([buyer, seller]),
            _ => None,
        };
        References {
            feasible_rate: self.feasible.value(),
            first_best_reward,
            midpoint_reward: first_best_reward.map(|reward| reward / 2.0),
            second_best_efficiency,
            ladders,
            ladders_sampled: self.sampled,
        }
    }

    /// Returns the grid's ladder with the highest mean reward; of equals, the one that opens
    /// lowest, with the smallest step.
    fn best_ladder(&self, role: Role) -> Option<Ladder> {
        let mut best: Option<Ladder> = None;
        for opening in grid(OPENINGS_MILLI) {
            for step in grid(STEPS_MILLI) {
                let found = self.climb(role, opening, step);
                if let Some(found) = found
                    && best.is_none_or(|best| found.reward > best.reward)
                {
                    best = Some(found);
                }
            }
        }
        best
    }

    fn climb(&self, role: Role, opening_milli: u32, step_milli: u32) -> Option<Ladder> {
        let (mut rewards, mut deals) = (Mean::default(), Mean::default());
        for scenario in self.kept.values() {
            let weight = scenario.pair_count as f64;
            let price = scenario.ladder_price(role, opening_milli, step_milli);
            rewards.add_weighted(price.map_or(0.0, |price| scenario.reward(role, price)), weight);
            deals.add_weighted(if price.is_some() { 1.0 } else { 0.0 }, weight);
        }
        let (reward, deal_rate) = (rewards.value()?, deals.value()?);
        Some(Ladder { opening_milli, step_milli, reward, deal_rate })
    }
}

fn grid((first, last, step): (u32, u32, u32)) -> impl Iterator<Item = u32> {
    (first..=last).step_by(step as usize)
}

impl Weighted {
    fn new(leg: &MatchRecord) -> Weighted {
        let turns = u64::from(leg.horizon.turn_limit);
        // An offer needs a turn after it, or nobody can accept it.
        let answered = |role| {
            if leg.opener == role { turns / 2 } else { turns.saturating_sub(1) / 2 }
        };
        Weighted {
            list_cents: u64::from(leg.list_price.cents()),
            budget: u64::from(leg.budget.cents()),
            cost: u64::from(leg.cost.cents()),
            offer_counts: Role::BOTH.map(answered),
            pair_count: 1,
        }
    }

    fn reward(&self, role: Role, price: u64) -> f64 {
        let room = self.budget.abs_diff(self.cost).max(ROOM_CENTS_MIN as u64);
        let gain = match role {
            Role::Buyer => self.budget.saturating_sub(price),
            Role::Seller => price.saturating_sub(self.cost),
        };
        gain as f64 / room as f64
    }

    /// Returns the price of the first rung that the opponent takes.
    fn ladder_price(&self, role: Role, opening_milli: u32, step_milli: u32) -> Option<u64> {
        // Thousandths of a cent, so that a rung is exact before it is cut to cents.
        let opening = self.list_cents * u64::from(opening_milli);
        let step = self.list_cents * u64::from(step_milli);
        if self.budget < self.cost {
            return None;
        }
        let rung = match role {
            Role::Buyer => rungs((self.cost * 1_000).saturating_sub(opening), step)?,
            Role::Seller => rungs((opening + 1).saturating_sub((self.budget + 1) * 1_000), step)?,
        };
        let in_time = rung < self.offer_counts[role.index()];
        in_time.then(|| match role {
            Role::Buyer => ((opening + rung * step) / 1_000).min(self.budget),
            Role::Seller => (opening.saturating_sub(rung * step) / 1_000).max(self.cost),
        })
    }
}

/// Returns how many steps cover a distance, `None` if none do.
fn rungs(distance: u64, step: u64) -> Option<u64> {
    match (distance, step) {
        (0, _) => Some(0),
        (_, 0) => None,
        _ => Some(distance.div_ceil(step)),
    }
}
