//! What is measured of the episodes of a step or an evaluation, from their records.
//!
//! Sums over episodes in the order in which they come, so the same records give the same bits.
//! Nothing is NaN or infinite: what has no value is `None`.
//!
//! Not here: what is said of tokens (`objective::statistics`), labels of phases (`phase`).

pub mod arguments;
pub mod evaluation;
pub mod rows;

use arena_core::record::{MatchRecord, Outcome};
use arena_core::scenario::Role;
use arena_core::score::{SeatMeasures, measure};
use arena_core::statistics::metric::Mean;
use serde::{Deserialize, Serialize};

use crate::reward::RewardMicro;
use arguments::ArgumentTally;

/// A finished episode and what it was worth.
#[derive(Clone, Copy, Debug)]
pub struct Played<'a> {
    /// What happened.
    pub record: &'a MatchRecord,
    /// Where the trained seat sits.
    pub role: Role,
    /// What it was worth to it.
    pub reward: RewardMicro,
}

/// What is measured of some episodes, as means over them. Rates are shares, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayMetrics {
    /// How many there were.
    pub episodes: u64,
    /// Mean reward.
    pub reward: Option<f64>,
    /// Share with a deal.
    pub deal_rate: Option<f64>,
    /// The trained seat's share of the surplus, (B - p)/(B - C) for a buyer, over feasible deals.
    pub bargained_ratio: Option<f64>,
    /// First own offer over own reserve, over episodes with an own offer.
    pub opening_ratio: Option<f64>,
    /// First own offer over list price, likewise.
    pub opening_list_ratio: Option<f64>,
    /// Share with an own offer or acceptance beyond the own reserve, refused ones included.
    pub overshoot_rate: Option<f64>,
    /// Share that ended in an own fault: replies that are no move, moves that are not allowed.
    pub invalid_rate: Option<f64>,
    /// Share that ended in a fault of the opponent.
    pub opponent_invalid_rate: Option<f64>,
    /// Turns of both sides.
    pub turns: Option<f64>,
    /// Share in which the turns ran out.
    pub timeout_rate: Option<f64>,
    /// Share that the buyer walked out of.
    pub buyer_walk_rate: Option<f64>,
    /// Share that the seller walked out of.
    pub seller_walk_rate: Option<f64>,
    /// Share of the trained seat's turns that carry an argument.
    pub argument_share: Option<f64>,
    /// See [`arguments`].
    pub argument_lift: Option<f64>,
    /// Episodes whose turns could not be told to carry an argument or not.
    pub untagged_episodes: u64,
}

/// Measures episodes.
pub fn play_metrics<'a>(episodes: impl IntoIterator<Item = Played<'a>>) -> PlayMetrics {
    let mut sums = Sums::default();
    let mut arguments = ArgumentTally::default();
    for episode in episodes {
        sums.add(&episode);
        arguments.add(episode.record, episode.role);
    }
    let [
        reward,
        deal_rate,
        bargained_ratio,
        opening_ratio,
        opening_list_ratio,
        overshoot_rate,
        invalid_rate,
        opponent_invalid_rate,
        turns,
        timeout_rate,
        buyer_walk_rate,
        seller_walk_rate,
    ] = sums.means.map(Mean::value);
    PlayMetrics {
        episodes: sums.episodes,
        reward,
        deal_rate,
        bargained_ratio,
        opening_ratio,
        opening_list_ratio,
        overshoot_rate,
        invalid_rate,
        opponent_invalid_rate,
        turns,
        timeout_rate,
        buyer_walk_rate,
        seller_walk_rate,
        argument_share: arguments.share(),
        argument_lift: arguments.lift(),
        untagged_episodes: arguments.untagged_count(),
    }
}

/// Means that are kept of episodes, in the order of [`observe`].
const MEASURE_COUNT: usize = 12;

/// Sums over episodes.
#[derive(Clone, Debug, Default)]
struct Sums {
    episodes: u64,
    means: [Mean; MEASURE_COUNT],
}

impl Sums {
    fn add(&mut self, episode: &Played<'_>) {
        self.episodes += 1;
        for (mean, value) in self.means.iter_mut().zip(observe(episode)) {
            if let Some(value) = value {
                mean.add(value);
            }
        }
    }
}

/// Returns what one episode adds to each mean; `None` where it does not enter it.
fn observe(episode: &Played<'_>) -> [Option<f64>; MEASURE_COUNT] {
    let Played { record, role, reward } = *episode;
    let seats: [SeatMeasures; 2] = measure(record);
    let seat = &seats[role.index()];
    let flag = |holds: bool| Some(if holds { 1.0 } else { 0.0 });
    let faulted =
        |role: Role| flag(matches!(record.outcome, Outcome::Faulted { by, .. } if by == role));
    let walked = |role: Role| flag(record.outcome == Outcome::Walked { by: role });
    [
        Some(reward.value()),
        flag(seat.deal),
        seat.surplus_share.filter(|_| seat.deal),
        seat.opening_ratio,
        seat.opening_list_ratio,
        flag(seat.attempts.total() > 0),
        faulted(role),
        faulted(role.other()),
        Some(f64::from(seat.turn_count)),
        flag(seat.timed_out),
        walked(Role::Buyer),
        walked(Role::Seller),
    ]
}

#[cfg(test)]
mod tests;
