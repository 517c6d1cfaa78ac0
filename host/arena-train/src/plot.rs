//! Draws a run's curves, or those of several seeds, as one HTML page.
//!
//! The page is complete in itself: no scripts, nothing loaded from elsewhere, and a policy that
//! forbids both. Names come from files and are escaped. The same rows give the same bytes.
//!
//! Thin lines are steps as they were, thick ones their moving median over the phase detector's
//! window, so that what is drawn is what phases are told by.
//!
//! Not here: reading rows, labelling phases (`phase`), one drawing (`panel`).

mod measures;
mod panel;

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::metrics::evaluation::Interval;
use crate::metrics::rows::StepRow;
use crate::phase::{Phases, STEPS_MAX};
use crate::runs::{EVALUATIONS_MAX, Run};
use measures::{EVALUATED, Evaluated, MEASURES, Measure};
use panel::{Band, Line, Panel, Point, Stroke};

/// Most runs on one page.
pub const RUNS_MAX: usize = 16;

/// Most panels of evaluations, one for each field and measure.
const FIELDS_MAX: usize = 32;

/// Returns the page. `learner` is the name of the trained agent in evaluations; other agents are
/// drawn as level lines.
///
/// # Errors
/// There is no run, or more runs or rows than [`RUNS_MAX`], [`STEPS_MAX`], [`EVALUATIONS_MAX`].
pub fn page(title: &str, learner: &str, runs: &[Run]) -> Result<String, PlotError> {
    check(runs)?;
    let mut body = String::new();
    legend(&mut body, runs);
    phases(&mut body, runs);
    section(&mut body, "Training", &MEASURES.iter().map(|it| curve(it, runs)).collect::<Vec<_>>());
    let evaluations = evaluation_panels(learner, runs);
    if !evaluations.is_empty() {
        section(&mut body, "Evaluations", &evaluations);
    }
    last_values(&mut body, runs);
    let title = escape(title);
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\
         </body>\n</html>\n",
        include_str!("plot/page.css")
    ))
}

fn check(runs: &[Run]) -> Result<(), PlotError> {
    let bounded =
        |what, found: usize, least: usize, most: usize| match (least..=most).contains(&found) {
            true => Ok(()),
            false => Err(PlotError { what, found, least, most }),
        };
    bounded("runs", runs.len(), 1, RUNS_MAX)?;
    for run in runs {
        bounded("steps of a run", run.steps.len(), 0, STEPS_MAX)?;
        bounded("evaluations of a run", run.evaluations.len(), 0, EVALUATIONS_MAX)?;
    }
    Ok(())
}

/// Draws the panels that have values, and names the others.
fn section(body: &mut String, title: &str, panels: &[Panel]) {
    append(body, format_args!("<h2>{title}</h2>\n<div class=\"panels\">\n"));
    let mut empty = Vec::new();
    for panel in panels {
        if !panel.draw(body) {
            empty.push(escape(&panel.title));
        }
    }
    body.push_str("</div>\n");
    if !empty.is_empty() {
        append(body, format_args!("<p>Without values: {}.</p>\n", empty.join("; ")));
    }
}

fn legend(body: &mut String, runs: &[Run]) {
    body.push_str("<ul class=\"legend\">\n");
    for (number, run) in runs.iter().enumerate() {
        let (class, name) = (Stroke::of_run(number).class(), escape(&run.name));
        let steps = run.steps.len();
        append(
            body,
            format_args!(
                "<li><svg viewBox=\"0 0 24 8\"><line class=\"median {class}\" x1=\"0\" y1=\"4\" \
                 x2=\"24\" y2=\"4\"/></svg>{name} ({steps} steps)</li>\n"
            ),
        );
    }
    body.push_str("</ul>\n");
}

/// Draws one row of phases for each run that has them.
fn phases(body: &mut String, runs: &[Run]) {
    let last = last_step(runs);
    body.push_str("<h2>Phases</h2>\n<table class=\"phases\">\n");
    for run in runs {
        append(body, format_args!("<tr><th scope=\"row\">{}</th><td>", escape(&run.name)));
        match &run.phases {
            None => body.push_str("too short to be labelled"),
            Some(phases) => phase_strip(body, phases, run, last),
        }
        body.push_str("</td></tr>\n");
    }
    body.push_str("</table>\n");
}

fn phase_strip(body: &mut String, phases: &Phases, run: &Run, last: u32) {
    const WIDTH: f64 = 720.0;
    let at = |step: u32| WIDTH * f64::from(step) / f64::from(last.max(1));
    append(body, format_args!("<svg class=\"strip\" viewBox=\"0 0 {WIDTH} 22\" role=\"img\">"));
    let mut spoken = Vec::new();
    for (phase, start, end) in run.spans() {
        let (x, width) = (at(start), at(end) - at(start));
        spoken.push(format!("{phase} from step {start}"));
        append(
            body,
            format_args!(
                "<rect class=\"{phase}\" x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"22\"/>\
                 <text x=\"{:.1}\" y=\"15\">{}</text>",
                x + 4.0,
                if width > 70.0 { phase.name() } else { "" },
            ),
        );
    }
    let held = if phases.holds_at_end { "" } else { "; the last does not hold at the end" };
    append(body, format_args!("</svg><br>{}{held}", spoken.join(", ")));
}

fn last_step(runs: &[Run]) -> u32 {
    let steps = runs.iter().flat_map(|run| run.steps.iter().map(|row| row.step));
    let evaluations = runs.iter().flat_map(|run| run.evaluations.iter().map(|row| row.step));
    steps.chain(evaluations).max().unwrap_or(0)
}

fn curve(measure: &Measure, runs: &[Run]) -> Panel {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let stroke = Stroke::of_run(number);
        let values: Vec<Option<f64>> = run.steps.iter().map(measure.pick).collect();
        let point = |(row, value): (&StepRow, &Option<f64>)| {
            value.map(|value| Point { step: row.step, value, ends: None })
        };
        let raw = run.steps.iter().zip(&values).filter_map(point).collect();
        lines.push(Line { points: raw, stroke, is_raw: true, ..Line::default() });
        let smooth = crate::phase::smooth(&values);
        let smooth = run.steps.iter().zip(&smooth).filter_map(point).collect();
        lines.push(Line { name: run.name.clone(), points: smooth, stroke, ..Line::default() });
    }
    // Bands of several runs would lie over each other.
    let bands = match runs {
        [run] => {
            let band = |(phase, start, end)| Band { phase, start, end };
            run.spans().into_iter().map(band).collect()
        }
        _ => Vec::new(),
    };
    Panel {
        title: measure.title.to_owned(),
        note: measure.note.to_owned(),
        range: measure.range,
        last_step: last_step(runs),
        lines,
        bands,
    }
}

/// Returns a panel for each field and measure that was evaluated.
fn evaluation_panels(learner: &str, runs: &[Run]) -> Vec<Panel> {
    let mut fields: Vec<&str> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.evaluations) {
        if !fields.contains(&row.field.as_str()) && fields.len() < FIELDS_MAX {
            fields.push(&row.field);
        }
    }
    let panel = |field: &str, measure: &Evaluated| Panel {
        title: format!("{}, field {field}", measure.title),
        note: format!("{} Solid: greedy. Dashed: sampled. Bars: 95 %.", measure.note),
        range: measure.range,
        last_step: last_step(runs),
        lines: evaluation_lines(learner, field, measure, runs),
        bands: Vec::new(),
    };
    let of_field = |field: &&str| EVALUATED.iter().map(|measure| panel(field, measure)).collect();
    fields.iter().flat_map(|field| -> Vec<Panel> { of_field(field) }).collect()
}

fn evaluation_lines(learner: &str, field: &str, measure: &Evaluated, runs: &[Run]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let mut series: BTreeMap<(&str, &str), Vec<Point>> = BTreeMap::new();
        for row in run.evaluations.iter().filter(|row| row.field == field) {
            let Interval { value, low, high } = (measure.pick)(&row.measures);
            if let Some(value) = value {
                let point = Point { step: row.step, value, ends: low.zip(high) };
                series.entry((&row.agent, &row.mode)).or_default().push(point);
            }
        }
        for ((agent, mode), mut points) in series {
            let name = format!("{} {agent} {mode}", run.name);
            let is_learner = agent == learner;
            if let (false, Some(first)) = (is_learner, points.first().copied()) {
                let level = |step| Point { step, value: first.value, ends: None };
                points = vec![level(0), level(last_step(runs).max(1))];
            }
            let stroke = match (is_learner, mode) {
                (false, _) => Stroke::level(),
                (true, "sampled") => Stroke::of_run(number).dashed(),
                (true, _) => Stroke::of_run(number),
            };
            // Baselines of several runs lie close together.
            let is_labelled = !is_learner && number == 0;
            let label = if is_labelled { agent.to_owned() } else { String::new() };
            lines.push(Line { name, label, points, stroke, is_raw: false });
        }
    }
    lines
}

/// Lists the smoothed last value of everything, for those who read tables.
fn last_values(body: &mut String, runs: &[Run]) {
    body.push_str("<h2>Last smoothed values</h2>\n<table>\n<tr><th></th>");
    for run in runs {
        append(body, format_args!("<th scope=\"col\">{}</th>", escape(&run.name)));
    }
    body.push_str("</tr>\n");
    for measure in &MEASURES {
        append(body, format_args!("<tr><th scope=\"row\">{}</th>", measure.title));
        for run in runs {
            let values: Vec<Option<f64>> = run.steps.iter().map(measure.pick).collect();
            let last = crate::phase::smooth(&values).last().copied().flatten();
            let shown = last.map_or("-".to_owned(), panel::number);
            append(body, format_args!("<td>{shown}</td>"));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</table>\n");
}

/// Writes text so that it is text in HTML, inside quotation marks too.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn append(text: &mut String, what: fmt::Arguments<'_>) {
    text.write_fmt(what).expect("writing into memory does not fail");
}

/// Too little or too much to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlotError {
    /// Of what.
    pub what: &'static str,
    /// How many there are.
    pub found: usize,
    /// The least.
    pub least: usize,
    /// The most.
    pub most: usize,
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlotError { what, found, least, most } = self;
        write!(f, "`{found}` {what}, drawn are `{least}` to `{most}`")
    }
}

impl std::error::Error for PlotError {}

#[cfg(test)]
mod tests;
