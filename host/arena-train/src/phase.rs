//! Labels the phases of a run by rule instead of by eye.
//!
//! One pure function from a run's curves to phases. The thresholds were fixed before any run that
//! is reported, and why they are what they are stands in `host/decisions/0009-phases-by-rule.md`.
//! A change of one of them is a change of that page.
//!
//! The phases are those that arXiv 2604.09855 describes: naive bargaining, aggressive opening
//! prices, deadlock, persuasion.
//!
//! Not here: how curves come from records (`metrics`), pictures (`plot`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Steps of the moving median that every curve is smoothed with. At the ends of a curve the
/// window is shifted inwards, never shortened, so that three odd steps move no median anywhere.
pub const WINDOW: usize = 7;

/// Smoothed steps in a row for which a phase's condition must hold before the phase begins.
pub const HOLD: usize = 3;

/// Fewest steps of a run that is labelled.
pub const STEPS_MIN: usize = 3 * WINDOW;

/// Most steps of a run.
pub const STEPS_MAX: usize = 1_000_000;

/// How many times the noise something must differ by: the k of "beyond k sigma".
pub const NOISE_FACTOR: f64 = 3.0;

/// The least fall of the opening ratio that begins phase 2, however little noise there is.
pub const OPENING_DROP_MIN: f64 = 0.05;

/// Phase 2: deals are intact at this share of their running maximum or more.
pub const DEALS_INTACT: f64 = 0.8;

/// Phase 3: deals are at this share of their running maximum or less, a fall of 30 %.
pub const DEALS_DEADLOCKED: f64 = 0.7;

/// Phase 4: deals are back at this share of the maximum that they had fallen from.
pub const DEALS_RECOVERED: f64 = 0.8;

/// The noise of a smoothed step over that of one: of a median of normal values √(π/2), of seven of
/// them that over √7.
const SMOOTHED_NOISE: f64 = 0.473_708_216_1;

/// What is looked at of one step. Everything finite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CurveStep {
    /// Mean of first own offer over own reserve; `None` where nobody made an offer.
    pub opening: Option<f64>,
    /// Share of episodes with a deal.
    pub deal_rate: f64,
    /// Mean share of the surplus, (B - p)/(B - C) for a buyer, over feasible deals; `None` without
    /// any.
    pub surplus: Option<f64>,
    /// How much more the opponent gave way after an argument than without; `None` where one of
    /// the two never happened.
    pub lift: Option<f64>,
}

/// How much one step moves when nothing changes but the seed: standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Of the opening ratio.
    pub opening: f64,
    /// Of the argument lift.
    pub lift: f64,
}

/// A phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// 1: opens where it began.
    Naive,
    /// 2: opens lower, and deals are intact.
    Anchoring,
    /// 3: opens low, and deals are lost.
    Deadlock,
    /// 4: deals are back, at a better price, and arguments move the opponent.
    Persuasion,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Phase; 4] =
        [Phase::Naive, Phase::Anchoring, Phase::Deadlock, Phase::Persuasion];

    /// Returns the name used in files and on plots.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Naive => "naive",
            Phase::Anchoring => "anchoring",
            Phase::Deadlock => "deadlock",
            Phase::Persuasion => "persuasion",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Steps of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Which.
    pub phase: Phase,
    /// Its first step, from 0.
    pub start: usize,
    /// The step after its last.
    pub end: usize,
}

/// The phases of a run. They come in order; one that did not come has no stretch, and none that
/// would follow it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// From the first step to the last without gaps, at least one.
    pub stretches: Vec<Stretch>,
    /// Whether the condition of the last phase still holds in the last smoothed step.
    pub holds_at_end: bool,
    /// The smoothed opening ratio at or below which openings are low.
    pub opening_low: f64,
    /// The argument lift above which arguments move the opponent.
    pub lift_low: f64,
}

impl Phases {
    /// Returns the first step of a phase; `None` if it did not come.
    pub fn start_of(&self, phase: Phase) -> Option<usize> {
        self.stretches.iter().find(|stretch| stretch.phase == phase).map(|stretch| stretch.start)
    }
}

/// Measures the noise of runs that differ in their seed alone, or of one run.
///
/// Its square is taken from differences of neighbouring steps, Σ (x' - x)²/(2n) (von Neumann
/// 1941), which a slow trend hardly moves. For openings the noise is at least the standard
/// deviation between the runs' first windows.
///
/// # Errors
/// See [`PhaseError`].
pub fn noise(curves: &[Vec<CurveStep>]) -> Result<Noise, PhaseError> {
    curves.iter().try_for_each(|curve| check_curve(curve))?;
    let of_one_step = |pick: fn(&CurveStep) -> Option<f64>| {
        let (mut squares, mut count) = (0.0, 0_u32);
        for pair in curves.iter().flat_map(|curve| curve.windows(2)) {
            if let (Some(before), Some(after)) = (pick(&pair[0]), pick(&pair[1])) {
                squares += (after - before) * (after - before);
                count += 1;
            }
        }
        if count == 0 { 0.0 } else { (squares / (2.0 * f64::from(count))).sqrt() }
    };
    let starts: Vec<f64> = curves
        .iter()
        .filter_map(|curve| median(curve[..WINDOW].iter().filter_map(|step| step.opening)))
        .collect();
    let opening = of_one_step(|step| step.opening).max(deviation(&starts));
    Ok(Noise { opening, lift: of_one_step(|step| step.lift) })
}

/// Labels a run's phases.
///
/// All curves are smoothed by a moving median of [`WINDOW`] steps. A phase begins at the first
/// smoothed step from which its condition holds [`HOLD`] times in a row, after the phase before:
/// - 2: the opening ratio is below its first value by [`NOISE_FACTOR`] times the noise of one step
///   and by [`OPENING_DROP_MIN`], and the deal rate is at least [`DEALS_INTACT`] of its running
///   maximum;
/// - 3: the opening ratio is as low, and the deal rate at most [`DEALS_DEADLOCKED`] of its running
///   maximum;
/// - 4: the deal rate is at least [`DEALS_RECOVERED`] of the maximum that phase 3 fell from, the
///   surplus above its highest value in phase 2, and the argument lift above [`NOISE_FACTOR`]
///   times the noise of a smoothed step.
///
/// # Errors
/// See [`PhaseError`].
pub fn phases(curve: &[CurveStep], noise: Noise) -> Result<Phases, PhaseError> {
    check_curve(curve)?;
    let smooth = Smoothed::new(curve);
    let first = smooth.opening[0].ok_or(PhaseError::NoOpening)?;
    let opening_low = first - (NOISE_FACTOR * noise.opening).max(OPENING_DROP_MIN);
    let lift_low = NOISE_FACTOR * SMOOTHED_NOISE * noise.lift;
    let is_low = |step: usize| smooth.opening[step].is_some_and(|opening| opening <= opening_low);
    let deals = |step: usize, share: f64| smooth.deals[step] >= share * smooth.deals_best[step];
    let is_anchoring = |step: usize| is_low(step) && deals(step, DEALS_INTACT);
    let is_deadlocked = |step: usize| {
        let lost = smooth.deals[step] <= DEALS_DEADLOCKED * smooth.deals_best[step];
        is_low(step) && smooth.deals_best[step] > 0.0 && lost
    };
    let count = curve.len();
    let mut starts = vec![(Phase::Naive, 0)];
    let mut holds_at_end = true;
    if let Some(second) = onset(0..count, is_anchoring) {
        starts.push((Phase::Anchoring, second));
        holds_at_end = is_anchoring(count - 1);
        if let Some(third) = onset(second + 1..count, is_deadlocked) {
            starts.push((Phase::Deadlock, third));
            holds_at_end = is_deadlocked(count - 1);
            let peak = smooth.surplus[second..third].iter().copied().flatten().reduce(f64::max);
            let deals_back = DEALS_RECOVERED * smooth.deals_best[third];
            let is_persuading = |step: usize| {
                let surplus = smooth.surplus[step].zip(peak);
                smooth.deals[step] >= deals_back
                    && surplus.is_some_and(|(surplus, peak)| surplus > peak)
                    && smooth.lift[step].is_some_and(|lift| lift > lift_low)
            };
            if let Some(fourth) = onset(third + 1..count, is_persuading) {
                starts.push((Phase::Persuasion, fourth));
                holds_at_end = is_persuading(count - 1);
            }
        }
    }
    let ends = starts.iter().skip(1).map(|(_, start)| *start).chain([count]);
    let stretches = starts.iter().zip(ends);
    let stretches = stretches.map(|(&(phase, start), end)| Stretch { phase, start, end }).collect();
    Ok(Phases { stretches, holds_at_end, opening_low, lift_low })
}

/// Returns the moving median of a curve over [`WINDOW`] steps, or over all of a shorter one. Steps
/// without a value leave a window smaller.
pub fn smooth(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let width = WINDOW.min(values.len());
    let window = |step: usize| {
        let start = step.saturating_sub(WINDOW / 2).min(values.len() - width);
        median(values[start..start + width].iter().copied().flatten())
    };
    (0..values.len()).map(window).collect()
}

/// Returns the first step of a range from which a condition holds [`HOLD`] times in a row.
fn onset(range: std::ops::Range<usize>, holds: impl Fn(usize) -> bool) -> Option<usize> {
    let end = range.end;
    range.into_iter().find(|start| start + HOLD <= end && (*start..start + HOLD).all(&holds))
}

/// A run's curves, smoothed.
struct Smoothed {
    opening: Vec<Option<f64>>,
    deals: Vec<f64>,
    /// The largest smoothed deal rate so far.
    deals_best: Vec<f64>,
    surplus: Vec<Option<f64>>,
    lift: Vec<Option<f64>>,
}

impl Smoothed {
    fn new(curve: &[CurveStep]) -> Smoothed {
        let smooth = |pick: fn(&CurveStep) -> Option<f64>| {
            smooth(&curve.iter().map(pick).collect::<Vec<_>>())
        };
        let deals: Vec<f64> = smooth(|step| Some(step.deal_rate)).into_iter().flatten().collect();
        let best = deals.iter().scan(0.0_f64, |best, deals| {
            *best = best.max(*deals);
            Some(*best)
        });
        Smoothed {
            opening: smooth(|step| step.opening),
            deals_best: best.collect(),
            deals,
            surplus: smooth(|step| step.surplus),
            lift: smooth(|step| step.lift),
        }
    }
}

/// Returns the middle value, the mean of the middle two of an even number.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Returns the standard deviation with n - 1 in the denominator; 0 of fewer than two values.
fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    (squares / (values.len() - 1) as f64).sqrt()
}

fn check_curve(curve: &[CurveStep]) -> Result<(), PhaseError> {
    let found = curve.len();
    if !(STEPS_MIN..=STEPS_MAX).contains(&found) {
        return Err(PhaseError::Steps { found });
    }
    for (step, values) in curve.iter().enumerate() {
        let CurveStep { opening, deal_rate, surplus, lift } = *values;
        let all = [opening, Some(deal_rate), surplus, lift];
        if let Some(found) = all.into_iter().flatten().find(|value| !value.is_finite()) {
            return Err(PhaseError::NotFinite { step, found });
        }
    }
    Ok(())
}

/// Curves that cannot be labelled.
#[derive(Clone, Debug, PartialEq)]
pub enum PhaseError {
    /// Too few or too many steps.
    Steps {
        /// How many.
        found: usize,
    },
    /// Nobody made an offer in the first window, so there is nothing for openings to fall from.
    NoOpening,
    /// A value that is no number.
    NotFinite {
        /// The step, from 0.
        step: usize,
        /// What it is.
        found: f64,
    },
}

impl fmt::Display for PhaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PhaseError::Steps { found } => write!(
                f,
                "a run of `{found}` steps has no phases, it takes `{STEPS_MIN}` to `{STEPS_MAX}`"
            ),
            PhaseError::NoOpening => write!(f, "nobody made an offer in the first {WINDOW} steps"),
            PhaseError::NotFinite { step, found } => {
                write!(f, "a value of step `{step}` is `{found}`")
            }
        }
    }
}

impl std::error::Error for PhaseError {}

#[cfg(test)]
mod tests;
