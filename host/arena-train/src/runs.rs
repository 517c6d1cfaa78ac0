//! Runs as their rows tell them: what pages and tables of runs are made of.
//!
//! Not here: reading rows, the rule of the phases (`phase`).

use crate::metrics::rows::{EvaluationRow, StepRow};
use crate::phase::{self, CurveStep, Noise, Phase, Phases, STEPS_MIN, Stretch};

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

/// Labels the phases of runs that are long enough; the noise is that of all of these, and is
/// returned. `None` where no run is.
pub fn label_phases(runs: &mut [Run]) -> Option<Noise> {
    let mut long: Vec<&mut Run> =
        runs.iter_mut().filter(|run| run.steps.len() >= STEPS_MIN).collect();
    if long.is_empty() {
        return None;
    }
    let curve =
        |run: &&mut Run| -> Vec<CurveStep> { run.steps.iter().map(StepRow::curve_step).collect() };
    let curves: Vec<Vec<CurveStep>> = long.iter().map(curve).collect();
    let noise = phase::noise(&curves).ok()?;
    for (run, curve) in long.iter_mut().zip(&curves) {
        run.phases = phase::phases(curve, noise).ok();
    }
    Some(noise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: usize) -> Run {
        let mut row = StepRow::default();
        row.play.opening_ratio = Some(0.8);
        Run { name: "run".to_owned(), steps: vec![row; steps], evaluations: vec![], phases: None }
    }

    #[test]
    fn a_run_that_is_too_short_leaves_the_labels_of_others_as_they_are() {
        let mut alone = [run(STEPS_MIN)];
        let noise = label_phases(&mut alone);
        let mut both = [run(0), run(STEPS_MIN)];
        assert_eq!(label_phases(&mut both), noise);
        assert_eq!(both[0].phases, None);
        assert!(both[1].phases.is_some() && both[1].phases == alone[0].phases);
        assert_eq!(label_phases(&mut both[..1]), None);
    }
}
