//! How much better an episode did than was to be expected of it.
//!
//! Rewards come in whole millionths and sums are taken over integers, so an advantage is one
//! correctly rounded division (with the deviation, one root more): the same bits everywhere.
//!
//! Not here: what an episode is worth (`reward`), what is done with the advantage (`objective`).

use std::fmt;

use arena_core::seed::Stream;
use serde::{Deserialize, Serialize};

use crate::reward::{MICRO, RewardMicro};

/// Most episodes of one group.
pub const GROUP_EPISODES_MAX: usize = 1 << 12;
/// Most groups of one step.
pub const GROUPS_MAX: usize = 1 << 16;

/// What is added to a group's deviation before rewards are divided by it, so that a group whose
/// rewards hardly differ is not blown up. The value is TRL's (`grpo_trainer`).
pub const DEVIATION_OFFSET: f64 = 1e-4;

/// What an episode's reward is compared with. Groups hold episodes of one scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// Its group's mean: Dr. GRPO, arXiv 2503.20783, equation 3.
    GroupMean,
    /// Its group's mean, and divided by the group's standard deviation (n - 1 in the
    /// denominator) plus [`DEVIATION_OFFSET`]: GRPO, arXiv 2402.03300, section 4.1.2.
    GroupDeviation,
    /// The mean of the others of its group: RLOO, arXiv 2402.14740, equation 6.
    LeaveOneOut,
    /// The mean of all episodes of the step: REINFORCE with a baseline.
    BatchMean,
    /// Nothing: the advantage is the reward.
    None,
}

impl Baseline {
    /// Says whether a group whose rewards are all equal has no advantage by definition.
    pub fn is_within_groups(self) -> bool {
        match self {
            Baseline::GroupMean | Baseline::GroupDeviation | Baseline::LeaveOneOut => true,
            Baseline::BatchMean | Baseline::None => false,
        }
    }
}

/// The advantages of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advantages {
    /// Of each group in order, of each of its episodes. `None` where the group was dropped.
    pub groups: Vec<Option<Vec<f64>>>,
    /// Groups whose rewards were all equal. They are dropped where the baseline lies within the
    /// group, since they teach nothing and would still be pulled at by other terms of a loss
    /// (huggingface/trl 5588).
    pub level_groups: usize,
}

impl Advantages {
    /// Returns the advantages of what was kept, in order.
    pub fn kept(&self) -> impl Iterator<Item = f64> {
        self.groups.iter().flatten().flatten().copied()
    }

    /// Returns how many groups were dropped.
    pub fn dropped_count(&self) -> usize {
        self.groups.iter().filter(|group| group.is_none()).count()
    }

    /// Deals the advantages of all kept episodes out again at random: a control in which what is
    /// learned from has lost its connection with what was done.
    pub fn shuffle(&mut self, stream: &mut Stream) {
        let mut dealt: Vec<f64> = self.kept().collect();
        stream.shuffle(&mut dealt);
        let places = self.groups.iter_mut().flatten().flatten();
        places.zip(dealt).for_each(|(place, value)| *place = value);
    }
}

/// Returns the advantages of groups of rewards.
///
/// # Errors
/// A group is empty, or there are more than [`GROUPS_MAX`] groups or [`GROUP_EPISODES_MAX`]
/// episodes of one.
pub fn advantages(
    baseline: Baseline,
    groups: &[Vec<RewardMicro>],
) -> Result<Advantages, AdvantageError> {
    if groups.len() > GROUPS_MAX {
        return Err(AdvantageError::Groups { found: groups.len() });
    }
    for (group, rewards) in groups.iter().enumerate() {
        if rewards.is_empty() || rewards.len() > GROUP_EPISODES_MAX {
            return Err(AdvantageError::Group { group, found: rewards.len() });
        }
    }
    let batch = Sums::of(groups.iter().flatten());
    let mut found = Advantages::default();
    for rewards in groups {
        let is_level = rewards.windows(2).all(|pair| pair[0] == pair[1]);
        found.level_groups += usize::from(is_level);
        let is_dropped = is_level && baseline.is_within_groups();
        found.groups.push((!is_dropped).then(|| of_group(baseline, batch, rewards)));
    }
    Ok(found)
}

fn of_group(baseline: Baseline, batch: Sums, rewards: &[RewardMicro]) -> Vec<f64> {
    let group = Sums::of(rewards);
    let advantage = |reward: &RewardMicro| match baseline {
        Baseline::GroupMean => group.apart(*reward) / (group.count as f64 * MICRO),
        Baseline::GroupDeviation => {
            let centred = group.apart(*reward) / (group.count as f64 * MICRO);
            centred / (group.deviation() + DEVIATION_OFFSET)
        }
        // r - (sum - r) / (n - 1) = (n r - sum) / (n - 1).
        Baseline::LeaveOneOut => group.apart(*reward) / ((group.count - 1) as f64 * MICRO),
        Baseline::BatchMean => batch.apart(*reward) / (batch.count as f64 * MICRO),
        Baseline::None => f64::from(reward.0) / MICRO,
    };
    rewards.iter().map(advantage).collect()
}

/// Exact sums over rewards in millionths.
#[derive(Clone, Copy)]
struct Sums {
    count: i64,
    sum: i64,
    squares: i128,
}

impl Sums {
    fn of<'a>(rewards: impl IntoIterator<Item = &'a RewardMicro>) -> Sums {
        let mut sums = Sums { count: 0, sum: 0, squares: 0 };
        for reward in rewards {
            let micro = i64::from(reward.0);
            sums.count += 1;
            sums.sum += micro;
            sums.squares += i128::from(micro) * i128::from(micro);
        }
        sums
    }

    /// Returns n r - sum, at most 2^61: how far a reward is from the mean, n times, in millionths.
    fn apart(self, reward: RewardMicro) -> f64 {
        (self.count * i64::from(reward.0) - self.sum) as f64
    }

    /// Returns the standard deviation with n - 1 in the denominator; n is at least 2.
    fn deviation(self) -> f64 {
        let count = i128::from(self.count);
        let scatter = count * self.squares - i128::from(self.sum) * i128::from(self.sum);
        (scatter as f64 / (count * (count - 1)) as f64).sqrt() / MICRO
    }
}

/// Rewards that are no step's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdvantageError {
    /// Too many groups.
    Groups {
        /// How many.
        found: usize,
    },
    /// A group with too few or too many episodes.
    Group {
        /// Which, from 0.
        group: usize,
        /// How many episodes it has.
        found: usize,
    },
}

impl fmt::Display for AdvantageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdvantageError::Groups { found } => {
                write!(f, "a step of `{found}` groups, at most `{GROUPS_MAX}`")
            }
            AdvantageError::Group { group, found } => write!(
                f,
                "group `{group}` has `{found}` episodes, allowed are 1 to `{GROUP_EPISODES_MAX}`"
            ),
        }
    }
}

impl std::error::Error for AdvantageError {}

#[cfg(test)]
mod tests {
    use arena_core::seed::Root;

    use super::*;

    fn check(baseline: Baseline, groups: &[&[i32]], expected: &[Option<&[f64]>]) {
        let rewards = |group: &&[i32]| group.iter().map(|micro| RewardMicro(*micro)).collect();
        let rewards: Vec<Vec<RewardMicro>> = groups.iter().map(rewards).collect();
        let found = advantages(baseline, &rewards).expect("these are groups");
        assert_eq!(found.groups.len(), expected.len());
        for (found, expected) in found.groups.iter().zip(expected) {
            assert_eq!(found.is_some(), expected.is_some(), "{baseline:?}");
            let values = found.iter().flatten().zip(expected.iter().copied().flatten());
            for (found, expected) in values {
                assert!((found - expected).abs() < 1e-15, "{baseline:?}: {found}, {expected}");
            }
        }
    }

    const GROUPS: [&[i32]; 3] =
        [&[1_000_000, 0, 0, -1_000_000], &[500_000, 500_000], &[250_000, 750_000]];

    #[test]
    fn a_groups_mean_is_taken_off_and_level_groups_are_dropped() {
        check(
            Baseline::GroupMean,
            &GROUPS,
            &[Some(&[1.0, 0.0, 0.0, -1.0]), None, Some(&[-0.25, 0.25])],
        );
    }

    #[test]
    fn leaving_one_out_compares_with_the_others() {
        // 1 - (0 + 0 - 1)/3 = 4/3; 0 - (1 + 0 - 1)/3 = 0.
        check(
            Baseline::LeaveOneOut,
            &GROUPS,
            &[Some(&[4.0 / 3.0, 0.0, 0.0, -4.0 / 3.0]), None, Some(&[-0.5, 0.5])],
        );
    }

    #[test]
    fn the_deviation_has_one_less_in_its_denominator() {
        // Squares 1 + 0 + 0 + 1 over 3.
        let deviation = (2.0_f64 / 3.0).sqrt();
        let scaled = 1.0 / (deviation + DEVIATION_OFFSET);
        let narrow = 0.125_f64.sqrt();
        let small = 0.25 / (narrow + DEVIATION_OFFSET);
        check(
            Baseline::GroupDeviation,
            &GROUPS,
            &[Some(&[scaled, 0.0, 0.0, -scaled]), None, Some(&[-small, small])],
        );
    }

    #[test]
    fn a_baseline_over_the_batch_keeps_level_groups() {
        // The mean of all eight is 2/8.
        check(
            Baseline::BatchMean,
            &GROUPS,
            &[Some(&[0.75, -0.25, -0.25, -1.25]), Some(&[0.25, 0.25]), Some(&[0.0, 0.5])],
        );
        check(
            Baseline::None,
            &GROUPS,
            &[Some(&[1.0, 0.0, 0.0, -1.0]), Some(&[0.5, 0.5]), Some(&[0.25, 0.75])],
        );
    }

    #[test]
    fn a_group_of_one_teaches_nothing_within_groups() {
        for baseline in [Baseline::GroupMean, Baseline::GroupDeviation, Baseline::LeaveOneOut] {
            check(baseline, &[&[900_000]], &[None]);
        }
    }

    #[test]
    fn rewards_of_any_size_neither_overflow_nor_lose_their_order() {
        let group = vec![RewardMicro(i32::MAX); GROUP_EPISODES_MAX / 2];
        let mut groups = vec![group; 2];
        groups[1][0] = RewardMicro(i32::MIN);
        for baseline in [Baseline::GroupMean, Baseline::GroupDeviation, Baseline::BatchMean] {
            let found = advantages(baseline, &groups).expect("within bounds");
            let last = found.groups[1].as_deref().expect("its rewards differ");
            assert!(
                last[0] < last[1] && last.iter().all(|value| value.is_finite()),
                "{baseline:?}"
            );
            assert_eq!(found.level_groups, 1);
        }
    }

    #[test]
    fn what_is_no_group_is_refused() {
        let error = advantages(Baseline::None, &[vec![]]).expect_err("nobody played");
        assert_eq!(error.to_string(), "group `0` has `0` episodes, allowed are 1 to `4096`");
    }

    #[test]
    fn shuffling_keeps_the_values_and_the_dropped_groups() {
        let rewards: Vec<Vec<RewardMicro>> = vec![
            (0..16).map(RewardMicro).collect(),
            vec![RewardMicro(0); 4],
            (40..56).map(RewardMicro).collect(),
        ];
        let before = advantages(Baseline::GroupMean, &rewards).expect("these are groups");
        let mut after = before.clone();
        after.shuffle(&mut Stream::derive(Root::Seed(1), "test", &[]));
        assert_ne!(before, after);
        assert_eq!(after.groups[1], None);
        let sorted = |advantages: &Advantages| {
            let mut values: Vec<f64> = advantages.kept().collect();
            values.sort_by(f64::total_cmp);
            values
        };
        assert_eq!(sorted(&before), sorted(&after));
    }
}
