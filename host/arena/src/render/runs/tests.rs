//! Runs that were made up.

use arena_train::metrics::evaluation::Evaluation;
use arena_train::metrics::rows::EvaluationRow;

use super::*;

fn around(value: f64) -> Interval {
    Interval { value: Some(value), low: Some(value - 0.1), high: Some(value + 0.1) }
}

fn row(step: u32, agent: &str, reward: f64) -> EvaluationRow {
    let measures =
        Evaluation { reward: around(reward), deal_rate: around(0.5), ..Evaluation::default() };
    EvaluationRow {
        step,
        agent: agent.to_owned(),
        field: "unseen".to_owned(),
        mode: "greedy".to_owned(),
        measures,
        improvement: (step > 0).then(|| around(0.25)),
    }
}

fn shown(name: &str, steps: u32, evaluations: Vec<EvaluationRow>) -> ShownRun {
    let step = |step: u32| {
        let mut row = StepRow { step, ..StepRow::default() };
        row.play.reward = Some(-0.00001);
        row.play.opening_ratio = Some(0.9);
        row.pace.seconds = Some(1.234_56);
        row
    };
    let run = Run {
        name: name.to_owned(),
        steps: (1..=steps).map(step).collect(),
        evaluations,
        phases: None,
    };
    ShownRun {
        summary: Summary::of(&run),
        run,
        experiment: "tiny".to_owned(),
        seed: 5,
        steps_wanted: 30,
        policy: (steps > 0).then_some((steps, [0xab; 32])),
        ledger: (steps > 0).then_some((u64::from(steps) + 1, Hash([0xcd; 32]))),
    }
}

/// A run of two steps, and one that has not begun.
fn two() -> [ShownRun; 2] {
    let rows = vec![
        row(0, "learner", 0.1),
        row(0, "low", 0.2),
        row(0, "high", 0.3),
        row(2, "learner", 0.35),
    ];
    [shown("one", 2, rows), shown("none", 0, vec![])]
}

#[test]
fn a_run_stands_beside_one_that_has_nothing_yet() {
    let expected = "\
2 runs
  run   experiment  seed  steps  of  seconds
  one   tiny           5      2  30      2.5
  none  tiny           5      0  30        -

field unseen, greedy: reward before the first step and in the newest evaluation
  run  step  start 95% interval  reward 95% interval     gain 95% interval   deals opening \
overshoot invalid turns
  one     2 +0.100 0.000..+0.200 +0.350 +0.250..+0.450 +0.250 +0.150..+0.350 50.0%       -         \
-       -     -
  none    -      - -                  - -                   - -                  -       -         \
-       -     -

field unseen: baselines in the learner's place
  run  baseline  reward  95% interval    deals  opening  turns
  one  high      +0.300  +0.200..+0.400  50.0%        -      -
  one  low       +0.200  +0.100..+0.300  50.0%        -      -

field unseen: the learner and the best baseline
  run  mode    reward  best baseline  reward  above
  one  greedy  +0.350  high           +0.300  yes

phases: the step with which each begins
  run   naive  anchoring  deadlock  persuasion  last holds
  one       -          -         -           -  -
  none      -          -         -           -  -
  Labelled by decision 0009, from 21 steps on; no run has as many.

newest policies, as tournaments name them
  run   after step  SHA-256
  one            2  abababababababababababababababababababababababababababababababab
  none           -  -

newest heads of the ledgers
  run   entries  root
  one         3  cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
  none        -  -
";
    assert_eq!(text(&two(), None, Paint::OFF), expected);
}

#[test]
fn phases_are_the_steps_with_which_they_begin() {
    let mut shown = [shown("long", 30, vec![])];
    let mut runs = [shown[0].run.clone()];
    let noise = arena_train::runs::label_phases(&mut runs);
    [shown[0].run] = runs;
    let text = text(&shown, noise, Paint::OFF);
    let row = "  long      1          -         -           -  yes\n";
    assert!(text.contains(row) && text.contains("noise of 1 run: opening 0.0000"), "{text}");
    let starts = &json(&shown, noise)["runs"][0]["phases"]["starts"];
    assert_eq!(starts, &json!([{ "phase": "naive", "step": 1 }]));
}

#[test]
fn programs_get_what_people_get() {
    let value = json(&two(), None);
    let [one, none] = [&value["runs"][0], &value["runs"][1]];
    assert_eq!((&one["seed"], &one["seconds"]), (&json!(5), &json!(2.469_12)));
    assert_eq!(one["learner"][0]["gain"]["value"], json!(0.25));
    assert_eq!(one["learner"][0]["is_above"], json!(true));
    assert_eq!(one["baselines"][0]["agent"], json!("high"));
    assert_eq!(one["policy"]["sha256"], json!("ab".repeat(32)));
    assert_eq!((&none["learner"], &none["policy"]), (&json!([]), &Value::Null));
}

#[test]
fn curves_are_rounded_and_empty_where_nothing_is_known() {
    let expected = "\"one\",1,0,,,0.9,,,,,,,,,,1.2346,\r\n\"one\",2,0,,,0.9,,,,,,,,,,1.2346,\r\n";
    assert_eq!(curves(&two()[0]), expected);
    let cells = expected.lines().next().expect("a line").split(',').count();
    assert_eq!(cells, CURVES.len());
    assert_eq!(rounded(1e308), rows::Value::Real(1e308));
}

#[test]
fn names_of_strangers_are_one_line() {
    let mut hostile = row(0, "learner", 0.1);
    hostile.field = "\n\u{1b}[2J".to_owned();
    let text = text(&[shown("a\nb", 1, vec![hostile])], None, Paint::OFF);
    assert!(!text.contains('\u{1b}') && text.contains("a\\nb") && text.contains("field \\n"));
}
