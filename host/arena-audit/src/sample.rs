//! Which matches are played again, and what that shows.
//!
//! A sample is drawn with the auditor's own randomness, after the close: nobody who made the log
//! could know it. All matches of those who may be in the lead can be chosen instead, because that
//! is where fraud pays.
//!
//! Not here: playing them.

use std::collections::BTreeSet;

use arena_core::report::{Report, Row};
use arena_core::schedule::Schedule;
use arena_core::seed::{Root, Stream};

/// Most matches that a drawn sample holds: they are kept in memory.
pub const SAMPLE_MATCHES_MAX: u64 = 10_000_000;

/// Matches of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Every match.
    All,
    /// Matches by twice the pair's index, and one more for its second leg.
    Drawn(BTreeSet<u64>),
    /// Every match in which one of these agents sits, by their place in the announcement.
    Agents(BTreeSet<u16>),
}

impl Sample {
    /// Draws `count` different matches out of those of `schedule`, or all where there are no more.
    /// The same 32 bytes of randomness draw the same sample.
    pub fn of(schedule: &Schedule, count: u64, randomness: [u8; 32]) -> Sample {
        let (match_count, leg_count) = (schedule.match_count(), u64::from(schedule.leg_count()));
        let places = Sample::draw_places(count, match_count, randomness);
        places.map_or(Sample::All, |places| {
            let address = |place: u64| place / leg_count * 2 + place % leg_count;
            Sample::Drawn(places.into_iter().map(address).collect())
        })
    }

    fn draw_places(count: u64, match_count: u64, randomness: [u8; 32]) -> Option<BTreeSet<u64>> {
        if count >= match_count {
            return None;
        }
        let count = count.min(SAMPLE_MATCHES_MAX);
        let mut stream = Stream::derive(Root::Master(randomness), "audit-sample", &[]);
        let mut drawn = BTreeSet::new();
        // Floyd's method (Bentley and Floyd 1987): every set is equally likely, in one draw
        // for each of its members.
        for last in match_count - count..match_count {
            let place = stream.below(last + 1);
            drawn.insert(if drawn.contains(&place) { last } else { place });
        }
        Some(drawn)
    }

    /// Chooses every match of the leader and of each agent whose interval of the mean reward
    /// reaches up into the leader's, on its side where candidates take one role only. Without
    /// intervals, every match.
    pub fn top(report: &Report) -> Sample {
        let played = || report.rows.iter().filter(|row| row.match_count > 0);
        let roles = |row: &Row| {
            let estimates = &row.estimates;
            [estimates.buyer_reward.value.is_some(), estimates.seller_reward.value.is_some()]
        };
        let leader = played().next();
        let Some((leader, floor)) = leader.and_then(|row| Some((row, row.estimates.reward.low?)))
        else {
            return Sample::All;
        };
        let reaches = |row: &&Row| row.estimates.reward.high.is_none_or(|high| high >= floor);
        let rivals = played().filter(|row| roles(row) == roles(leader)).filter(reaches);
        Sample::Agents(rivals.map(|row| row.agent).collect())
    }

    /// Returns whether a match is in the sample.
    pub fn contains(&self, pair_index: u64, leg: u8, agents: [u16; 2]) -> bool {
        match self {
            Sample::All => true,
            Sample::Drawn(places) => pair_index
                .checked_mul(2)
                .and_then(|place| place.checked_add(u64::from(leg)))
                .is_some_and(|place| places.contains(&place)),
            Sample::Agents(chosen) => agents.iter().any(|agent| chosen.contains(agent)),
        }
    }
}

/// Returns the probability that at least one of `count` randomly drawn matches is forged, where a
/// share `fraud_share` of all is: 1 - (1 - f)^n. Drawing without replacement finds a little more.
pub fn detection_probability(fraud_share: f64, count: u64) -> f64 {
    let share = fraud_share.clamp(0.0, 1.0);
    1.0 - (1.0 - share).powf(count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_sample_has_its_size_and_stays_within_the_log() {
        for count in [0, 1, 7, 99] {
            let places = Sample::draw_places(count, 100, [7; 32]).expect("some are not drawn");
            assert_eq!(places.len() as u64, count);
            assert!(places.iter().all(|place| *place < 100), "{places:?}");
        }
        assert_eq!(Sample::draw_places(100, 100, [7; 32]), None);
    }

    #[test]
    fn every_match_is_drawn_about_equally_often() {
        let mut counts = [0_u32; 10];
        for seed in 0..2_000_u64 {
            let mut randomness = [0; 32];
            randomness[..8].copy_from_slice(&seed.to_be_bytes());
            let places = Sample::draw_places(3, 10, randomness).expect("seven are not drawn");
            places.iter().for_each(|place| counts[*place as usize] += 1);
        }
        assert!(counts.iter().all(|count| (520..680).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_fraud_of_one_in_a_thousand_needs_4603_matches_for_99_percent() {
        assert!(detection_probability(0.001, 4_603) >= 0.99);
        assert!(detection_probability(0.001, 4_602) < 0.99);
        assert_eq!(detection_probability(0.0, 1_000), 0.0);
        assert_eq!(detection_probability(1.0, 1), 1.0);
    }
}
