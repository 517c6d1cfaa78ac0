//! Pages of rows that were made up.

use super::panel::number;
use super::*;
use crate::metrics::evaluation::Evaluation;
use crate::metrics::rows::EvaluationRow;
use crate::phase::{noise, phases as label};

fn run(name: &str, steps: u32) -> Run {
    let row = |step: u32| {
        let mut row = StepRow { step, ..StepRow::default() };
        let share = f64::from(step) / f64::from(steps);
        row.play.reward = Some(share - 0.2);
        row.play.deal_rate = Some(0.6);
        row.play.opening_ratio = Some(0.9 - 0.5 * share);
        row.learning.learning_rate = Some(3e-5);
        row
    };
    let steps: Vec<StepRow> = (1..=steps).map(row).collect();
    let curve: Vec<_> = steps.iter().map(StepRow::curve_step).collect();
    let phases = noise(std::slice::from_ref(&curve)).and_then(|noise| label(&curve, noise)).ok();
    let evaluation = |step, agent: &str, mode: &str| EvaluationRow {
        step,
        agent: agent.to_owned(),
        field: "unseen".to_owned(),
        mode: mode.to_owned(),
        measures: Evaluation {
            reward: Interval { value: Some(0.4), low: Some(0.3), high: Some(0.5) },
            ..Evaluation::default()
        },
        improvement: None,
    };
    let evaluations = vec![
        evaluation(0, "ladder", "greedy"),
        evaluation(0, "learner", "greedy"),
        evaluation(0, "learner", "sampled"),
        evaluation(30, "learner", "greedy"),
    ];
    Run { name: name.to_owned(), steps, evaluations, phases }
}

fn drawn(runs: &[Run]) -> String {
    page("Compact", "learner", runs).expect("it can be drawn")
}

/// Checks that every element that is opened is closed, in order.
fn check_elements(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).expect("a tag has a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "in <{tag}>");
        } else if !tag.ends_with('/') && !matches!(name, "meta" | "!DOCTYPE" | "br") {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn a_page_loads_nothing_and_runs_nothing() {
    let page = drawn(&[run("seed 1", 60), run("seed 2", 60)]);
    check_elements(&page);
    for forbidden in ["<script", "http://", "https://", "src=", "href=", "url(", "@import", "NaN"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("default-src 'none'") && page.contains("prefers-color-scheme: dark"));
}

#[test]
fn every_measure_has_a_row_and_with_values_a_panel_with_a_line_for_each_run() {
    let page = drawn(&[run("seed 1", 60), run("seed 2", 40)]);
    for measure in &MEASURES {
        let row = format!("<th scope=\"row\">{}</th>", measure.title);
        assert!(page.contains(&row), "{}", measure.title);
    }
    assert_eq!(page.matches("<title>seed 1: 0.75 at step 60</title>").count(), 1, "of the reward");
    assert!(page.contains("<title>seed 2: 0.725 at step 40</title>"));
    assert!(page.contains("<b>Learning rate</b>") && !page.contains("<b>Entropy</b>"));
    assert!(page.contains("Without values: Bargained ratio; Overshoot rate; "), "{page}");
}

#[test]
fn phases_are_a_strip_for_each_run_and_bands_for_one_alone() {
    let alone = drawn(&[run("seed 1", 60)]);
    assert!(alone.contains("naive from step 1, anchoring from step "), "{alone}");
    assert!(alone.contains("class=\"band anchoring\""));
    let several = drawn(&[run("seed 1", 60), run("short", 20)]);
    assert!(!several.contains("class=\"band") && several.contains("class=\"strip\""));
    assert!(several.contains("too short to be labelled"));
}

#[test]
fn evaluations_are_points_with_intervals_and_baselines_are_level() {
    let page = drawn(&[run("seed 1", 60)]);
    assert!(page.contains("<b>Reward, field unseen</b>"));
    assert!(page.contains("<title>seed 1 learner greedy: 0.4 at step 30</title>"));
    assert!(
        page.contains("class=\"median level dashed\"><title>seed 1 ladder greedy: 0.4 at step 60")
    );
    assert!(page.contains("class=\"median run0 dashed\"><title>seed 1 learner sampled"));
    assert_eq!(page.matches("<circle").count(), 3);
}

#[test]
fn names_are_text_wherever_they_stand() {
    let hostile = "</title><script>alert('x')</script>\"&";
    let mut run = run(hostile, 30);
    run.evaluations[1].field = hostile.to_owned();
    run.evaluations[1].agent = hostile.to_owned();
    let page = page(hostile, "learner", &[run]).expect("it can be drawn");
    check_elements(&page);
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(&#39;x&#39;)"));
}

#[test]
fn rows_of_any_numbers_are_drawn_within_the_frame() {
    let mut odd = run("odd", 30);
    odd.steps[3].play.reward = Some(f64::NAN);
    odd.steps[4].play.reward = Some(f64::MAX);
    odd.steps[5].play.reward = Some(f64::MIN);
    odd.steps[6].learning.gradient_norm = Some(f64::INFINITY);
    odd.steps[7].step = u32::MAX;
    let page = drawn(&[odd, Run { steps: vec![], phases: None, ..run("empty", 1) }]);
    check_elements(&page);
    let tags = page.split('<').filter(|part| part.contains("=\""));
    assert!(tags.clone().count() > 100);
    tags.for_each(|tag| assert!(!tag.contains("inf") && !tag.contains("NaN"), "{tag}"));
}

#[test]
fn long_runs_are_thinned_to_their_ends() {
    let page = drawn(&[run("long", 30_000)]);
    assert!(page.len() < 600_000, "{} bytes", page.len());
    assert!(page.contains("at step 30000</title>"));
}

#[test]
fn no_runs_and_too_many_are_refused() {
    let refused = |runs: &[Run], says: &str| {
        assert_eq!(page("", "", runs).expect_err(says).to_string(), says);
    };
    refused(&[], "`0` runs, drawn are `1` to `16`");
    refused(&vec![run("seed", 1); 17], "`17` runs, drawn are `1` to `16`");
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    assert_eq!(drawn(&[run("seed 1", 60)]), drawn(&[run("seed 1", 60)]));
}

#[test]
fn numbers_are_short() {
    let shown = [0.0, 0.25, 1.0, 12.3456, 1234.5, 3e-5, -0.5, 1e9].map(number);
    assert_eq!(shown, ["0", "0.25", "1", "12.346", "1234", "3.0e-5", "-0.5", "1.0e9"]);
}
