//! What a run came to: numbers out of its rows, and no others.
//!
//! Nothing is tested and nothing is estimated anew: intervals are those of the rows, and that one
//! reward is above another says that the number is larger.
//!
//! Not here: phases (`phase`), layout.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::LEARNER;
use crate::metrics::evaluation::{Evaluation, Interval};
use crate::metrics::rows::EvaluationRow;
use crate::runs::Run;

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Steps that were made.
    pub steps: u32,
    /// Of all steps together; `None` where no step says.
    pub seconds: Option<f64>,
    /// The learner, by field and mode, in the order of the rows.
    pub learner: Vec<Learned>,
    /// Everyone else in the first evaluation: by field in the order of the rows, the best of each
    /// field first.
    pub baselines: Vec<Baseline>,
}

/// The learner against one field in one mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Learned {
    /// Whom it met.
    pub field: String,
    /// How it answered.
    pub mode: String,
    /// The reward before the first step.
    pub start: Interval,
    /// The steps before the newest evaluation.
    pub step: u32,
    /// What is measured in the newest evaluation.
    #[serde(flatten)]
    pub measures: Evaluation,
    /// What the reward gained since the start, over the same items.
    pub gain: Interval,
    /// The best baseline against the field.
    pub best_baseline: Option<String>,
    /// Whether the reward is above the best baseline's.
    pub is_above: Option<bool>,
}

/// Another agent in the learner's place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Baseline {
    /// Whom it met.
    pub field: String,
    /// Its name.
    pub agent: String,
    /// How the field's evaluation was made.
    pub mode: String,
    /// What is measured.
    #[serde(flatten)]
    pub measures: Evaluation,
}

impl Summary {
    /// Sums up a run.
    pub fn of(run: &Run) -> Summary {
        let seconds = run.steps.iter().filter_map(|row| row.pace.seconds);
        let baselines = baselines(&run.evaluations);
        Summary {
            steps: run.steps.last().map_or(0, |row| row.step),
            seconds: seconds.reduce(|sum, seconds| sum + seconds),
            learner: learner(&run.evaluations, &baselines),
            baselines,
        }
    }
}

fn learner(rows: &[EvaluationRow], baselines: &[Baseline]) -> Vec<Learned> {
    let mut best: BTreeMap<&str, &Baseline> = BTreeMap::new();
    for baseline in baselines {
        best.entry(&baseline.field).or_insert(baseline);
    }
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut found: Vec<Learned> = Vec::new();
    for row in rows.iter().filter(|row| row.agent == LEARNER) {
        let place = *places.entry((&row.field, &row.mode)).or_insert(found.len());
        if place == found.len() {
            let (field, mode) = (row.field.clone(), row.mode.clone());
            found.push(Learned { field, mode, ..Learned::default() });
        }
        let learned = &mut found[place];
        if row.step == 0 {
            learned.start = row.measures.reward;
        }
        if row.step >= learned.step {
            learned.step = row.step;
            learned.measures = row.measures.clone();
            learned.gain = row.improvement.unwrap_or_default();
        }
    }
    for learned in &mut found {
        let best = best.get(&learned.field[..]);
        let rewards = best
            .and_then(|best| Some((learned.measures.reward.value?, best.measures.reward.value?)));
        learned.best_baseline = best.map(|best| best.agent.clone());
        learned.is_above = rewards.map(|(own, best)| own > best);
    }
    found
}

fn baselines(rows: &[EvaluationRow]) -> Vec<Baseline> {
    let mut fields: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found: Vec<(usize, Baseline)> = Vec::new();
    for row in rows {
        let count = fields.len();
        let field = *fields.entry(&row.field).or_insert(count);
        if row.step == 0 && row.agent != LEARNER {
            let baseline = Baseline {
                field: row.field.clone(),
                agent: row.agent.clone(),
                mode: row.mode.clone(),
                measures: row.measures.clone(),
            };
            found.push((field, baseline));
        }
    }
    // Whoever has no reward comes last.
    let reward = |baseline: &Baseline| baseline.measures.reward.value.unwrap_or(f64::NEG_INFINITY);
    found.sort_by(|(one, a), (other, b)| {
        one.cmp(other).then_with(|| reward(b).total_cmp(&reward(a)))
    });
    found.into_iter().map(|(_, baseline)| baseline).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::rows::StepRow;

    fn reward(value: f64) -> Interval {
        Interval { value: Some(value), low: Some(value - 0.1), high: Some(value + 0.1) }
    }

    /// A row in four words: `STEP AGENT FIELD REWARD`.
    fn row(text: &str) -> EvaluationRow {
        let words: Vec<&str> = text.split(' ').collect();
        let step = words[0].parse().expect("a step");
        let own = words[3].parse().expect("a reward");
        EvaluationRow {
            step,
            agent: words[1].to_owned(),
            field: words[2].to_owned(),
            mode: "greedy".to_owned(),
            measures: Evaluation { reward: reward(own), ..Evaluation::default() },
            improvement: (step > 0).then(|| reward(own - 0.1)),
        }
    }

    fn summary(rows: &[&str]) -> Summary {
        let evaluations = rows.iter().map(|text| row(text)).collect();
        let mut steps = vec![StepRow { step: 1, ..StepRow::default() }; 2];
        steps[1].step = 2;
        steps[1].pace.seconds = Some(1.5);
        Summary::of(&Run { name: "run".to_owned(), steps, evaluations, phases: None })
    }

    #[test]
    fn the_newest_evaluation_stands_beside_the_first_and_the_best_baseline() {
        let found = summary(&[
            "0 learner seen 0.1",
            "0 learner unseen 0.1",
            "0 low seen 0.2",
            "0 high unseen 0.6",
            "0 high seen 0.3",
            "5 learner seen 0.4",
            "5 learner unseen 0.4",
            "10 learner seen 0.5",
        ]);
        let seen = &found.learner[0];
        assert_eq!((seen.step, seen.start, seen.gain), (10, reward(0.1), reward(0.4)));
        assert_eq!((seen.measures.reward, seen.is_above), (reward(0.5), Some(true)));
        let unseen = &found.learner[1];
        assert_eq!((unseen.step, unseen.is_above), (5, Some(false)));
        assert_eq!(unseen.best_baseline.as_deref(), Some("high"));
        let order: Vec<[&str; 2]> =
            found.baselines.iter().map(|it| [&it.field[..], &it.agent[..]]).collect();
        assert_eq!(order, [["seen", "high"], ["seen", "low"], ["unseen", "high"]]);
        assert_eq!((found.steps, found.seconds), (2, Some(1.5)));
    }

    #[test]
    fn what_a_run_does_not_say_has_no_value() {
        let found = summary(&["0 learner seen 0.1"]);
        let learned = &found.learner[0];
        assert_eq!((learned.step, learned.gain.value, learned.is_above), (0, None, None));
        let empty = Run { name: String::new(), steps: vec![], evaluations: vec![], phases: None };
        assert_eq!(Summary::of(&empty), Summary::default());
    }
}
