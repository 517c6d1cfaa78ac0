//! Runs as their rows tell them: what pages and tables of runs are made of.
//!
//! Not here: reading rows, the rule of the phases (`phase`).

use crate::metrics::rows::{EvaluationRow, StepRow};
use crate::phase::{self, CurveStep, Noise, Phase, Phases, Stretch};

/// Most evaluations of one run.
pub const EVALUATIONS_MAX: usize = 100_000;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What it is called.
    pub name: String,
    /// Its steps, in order.
    pub steps: Vec<StepRow>,
    /// Its evaluations, in order.
    pub evaluations: Vec<EvaluationRow>,
    /// Its phases, where it is long enough to have any.
    pub phases: Option<Phases>,
}

impl Run {
    /// Returns the phases with the number of their first step and of the step after their last.
    pub fn spans(&self) -> Vec<(Phase, u32, u32)> {
        let number = |place: usize| match self.steps.get(place) {
            Some(row) => row.step,
            None => self.steps.last().map_or(0, |row| row.step.saturating_add(1)),
        };
        let span = |it: &Stretch| (it.phase, number(it.start), number(it.end));
        self.phases.iter().flat_map(|phases| &phases.stretches).map(span).collect()
    }
}

/// Labels the phases of runs that are long enough; the noise is that of all of them, and is
/// returned.
pub fn label_phases(runs: &mut [Run]) -> Option<Noise> {
    let curve =
        |run: &Run| -> Vec<CurveStep> { run.steps.iter().map(StepRow::curve_step).collect() };
    let curves: Vec<Vec<CurveStep>> = runs.iter().map(curve).collect();
    let noise = phase::noise(&curves).ok()?;
    for (run, curve) in runs.iter_mut().zip(&curves) {
        run.phases = phase::phases(curve, noise).ok();
    }
    Some(noise)
}
