//! What is drawn, in the order of the page.

use super::panel::Range;
use crate::metrics::evaluation::{Evaluation, Interval};
use crate::metrics::rows::StepRow;

/// A curve of training.
pub struct Measure {
    /// Its heading.
    pub title: &'static str,
    /// What it is, in a sentence.
    pub note: &'static str,
    /// The values that are shown at least.
    pub range: Range,
    /// Its value in a step.
    pub pick: fn(&StepRow) -> Option<f64>,
}

/// A statistic of evaluations.
pub struct Evaluated {
    /// Its heading.
    pub title: &'static str,
    /// What it is, in a sentence.
    pub note: &'static str,
    /// The values that are shown at least.
    pub range: Range,
    /// Its value.
    pub pick: fn(&Evaluation) -> Interval,
}

const fn measure(
    title: &'static str,
    note: &'static str,
    range: Range,
    pick: fn(&StepRow) -> Option<f64>,
) -> Measure {
    Measure { title, note, range, pick }
}

/// Every curve of training.
pub const MEASURES: [Measure; 25] = [
    measure("Reward", "Mean over the episodes of a step.", Range::Free, |row| row.play.reward),
    measure("Deal rate", "Share of episodes with a deal.", Range::Share, |row| row.play.deal_rate),
    measure(
        "Bargained ratio",
        "Own share of the surplus, over feasible deals.",
        Range::Share,
        |row| row.play.bargained_ratio,
    ),
    measure("Opening ratio", "First own offer over own reserve.", Range::Share, |row| {
        row.play.opening_ratio
    }),
    measure(
        "Overshoot rate",
        "Share of episodes with an offer or acceptance beyond the own reserve.",
        Range::FromZero,
        |row| row.play.overshoot_rate,
    ),
    measure(
        "Invalid rate",
        "Share of episodes that ended in an own fault.",
        Range::FromZero,
        |row| row.play.invalid_rate,
    ),
    measure("Turns", "Turns of both sides together.", Range::FromZero, |row| row.play.turns),
    measure("Time-out rate", "Share of episodes whose turns ran out.", Range::Share, |row| {
        row.play.timeout_rate
    }),
    measure("Buyer walks", "Share that the buyer walked out of.", Range::Share, |row| {
        row.play.buyer_walk_rate
    }),
    measure("Seller walks", "Share that the seller walked out of.", Range::Share, |row| {
        row.play.seller_walk_rate
    }),
    measure("Argument share", "Share of own turns with an argument.", Range::Share, |row| {
        row.play.argument_share
    }),
    measure(
        "Argument lift",
        "Concession of the opponent after an argument over that without, same turn.",
        Range::Free,
        |row| row.play.argument_lift,
    ),
    measure("Entropy", "Nats per scored token.", Range::FromZero, |row| row.learning.entropy),
    measure("Clip fraction, low", "Share of tokens cut below 1.", Range::FromZero, |row| {
        row.learning.clip_fraction_low
    }),
    measure("Clip fraction, high", "Share of tokens cut above 1.", Range::FromZero, |row| {
        row.learning.clip_fraction_high
    }),
    measure("Level groups", "Share of groups whose rewards were all equal.", Range::Share, |row| {
        row.learning.level_group_share
    }),
    measure("Effective sample", "As a share of the tokens.", Range::Share, |row| {
        row.learning.effective_share
    }),
    measure("KL to the sampler", "Nats per token.", Range::FromZero, |row| {
        row.learning.sampler_divergence
    }),
    measure("KL to the reference", "Nats per token.", Range::FromZero, |row| {
        row.learning.reference_divergence
    }),
    measure(
        "Trainer and sampler",
        "Largest difference of log-probabilities before the update.",
        Range::FromZero,
        |row| row.learning.sampler_gap_max,
    ),
    measure("Loss", "Of the last update's objective.", Range::Free, |row| row.learning.loss),
    measure("Gradient norm", "Before it was shortened.", Range::FromZero, |row| {
        row.learning.gradient_norm
    }),
    measure("Learning rate", "Of the step.", Range::FromZero, |row| row.learning.learning_rate),
    measure("Step time", "Seconds.", Range::FromZero, |row| row.pace.seconds),
    measure("Tokens per second", "Over the whole step.", Range::FromZero, |row| {
        row.pace.tokens_per_second
    }),
];

/// Every statistic of evaluations that is drawn.
pub const EVALUATED: [Evaluated; 5] = [
    Evaluated {
        title: "Reward",
        note: "Mean over held-out matches.",
        range: Range::Free,
        pick: |it| it.reward,
    },
    Evaluated {
        title: "Deal rate",
        note: "Share with a deal.",
        range: Range::Share,
        pick: |it| it.deal_rate,
    },
    Evaluated {
        title: "Bargained ratio",
        note: "Own share of the surplus, over feasible deals.",
        range: Range::Share,
        pick: |it| it.bargained_ratio,
    },
    Evaluated {
        title: "Overshoot rate",
        note: "Share with a move beyond the own reserve.",
        range: Range::FromZero,
        pick: |it| it.overshoot_rate,
    },
    Evaluated {
        title: "Invalid rate",
        note: "Share that ended in an own fault.",
        range: Range::FromZero,
        pick: |it| it.invalid_rate,
    },
];
