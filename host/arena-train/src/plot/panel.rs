//! One drawing: axes, lines, points with intervals, bands.
//!
//! Not here: what is drawn (`measures`), the page around it.

use super::{append, escape};
use crate::phase::Phase;

/// Most points of one line; longer ones are thinned evenly, their ends kept.
const POINTS_MAX: usize = 400;
/// Colours, after which they come again with dashes.
const COLOURS: usize = 8;
/// Steps between the grid's lines, about.
const TICKS: f64 = 5.0;

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;

/// Which values an axis shows at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Those that are there.
    Free,
    /// 0 and those that are there.
    FromZero,
    /// 0 to 1 and those that are there.
    Share,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stroke {
    colour: Option<usize>,
    is_dashed: bool,
}

impl Stroke {
    /// Returns the stroke of a run, by its place on the page.
    pub fn of_run(number: usize) -> Stroke {
        Stroke { colour: Some(number % COLOURS), is_dashed: number >= COLOURS }
    }

    /// Returns the stroke of what does not change.
    pub fn level() -> Stroke {
        Stroke { colour: None, is_dashed: true }
    }

    /// Returns the same stroke, dashed.
    pub fn dashed(self) -> Stroke {
        Stroke { is_dashed: true, ..self }
    }

    /// Returns its classes in the page's style.
    pub fn class(self) -> String {
        let colour = self.colour.map_or("level".to_owned(), |colour| format!("run{colour}"));
        if self.is_dashed { format!("{colour} dashed") } else { colour }
    }
}

/// A value of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The step.
    pub step: u32,
    /// The value; what is not finite is not drawn.
    pub value: f64,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
}

/// A line through points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Shown where the pointer rests; empty for none.
    pub name: String,
    /// Written above its end; empty for none.
    pub label: String,
    /// In the order of their steps.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Whether it is thin.
    pub is_raw: bool,
}

/// A background from one step to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Which phase it stands for.
    pub phase: Phase,
    /// Its first step.
    pub start: u32,
    /// The step after its last.
    pub end: u32,
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Below its title.
    pub note: String,
    /// What the upright axis shows at least.
    pub range: Range,
    /// Where the level axis ends.
    pub last_step: u32,
    /// From back to front.
    pub lines: Vec<Line>,
    /// Behind the lines.
    pub bands: Vec<Band>,
}

impl Panel {
    /// Draws it at the end of a page, and says whether there was anything to draw.
    pub fn draw(&self, page: &mut String) -> bool {
        let Some(scale) = self.scale() else {
            return false;
        };
        let title = escape(&self.title);
        append(
            page,
            format_args!(
                "<figure><figcaption><b>{title}</b> {}</figcaption>\
                 <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n",
                escape(&self.note)
            ),
        );
        self.draw_bands(page, &scale);
        scale.draw_axes(page);
        self.lines.iter().for_each(|line| draw_line(page, &scale, line));
        page.push_str("</svg></figure>\n");
        true
    }

    /// Returns the axes; `None` where there is nothing to draw.
    fn scale(&self) -> Option<Scale> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let values = points.flat_map(|point| {
            let ends = point.ends.map(|(low, high)| [low, high]);
            ends.into_iter().flatten().chain([point.value])
        });
        let values = values.filter(|value| value.is_finite());
        let (low, high) = values.fold(None, |range: Option<(f64, f64)>, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })?;
        let (low, high) = match self.range {
            Range::Free => (low, high),
            Range::FromZero => (low.min(0.0), high.max(0.0)),
            Range::Share => (low.min(0.0), high.max(1.0)),
        };
        Some(Scale::new(low, high, self.last_step))
    }

    fn draw_bands(&self, page: &mut String, scale: &Scale) {
        for Band { phase, start, end } in &self.bands {
            let (from, to) = (scale.x(*start), scale.x((*end).min(self.last_step)));
            let height = HEIGHT - TOP - BOTTOM;
            append(
                page,
                format_args!(
                    "<rect class=\"band {phase}\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" \
                     height=\"{height}\"><title>{phase}</title></rect>\n",
                    (to - from).max(0.0)
                ),
            );
        }
    }
}

fn draw_line(page: &mut String, scale: &Scale, line: &Line) {
    let drawn: Vec<Point> =
        line.points.iter().filter(|point| point.value.is_finite()).copied().collect();
    let Some(last) = drawn.last() else {
        return;
    };
    let class = line.stroke.class();
    let weight = if line.is_raw { "raw" } else { "median" };
    append(page, format_args!("<g class=\"{weight} {class}\">"));
    if !line.name.is_empty() {
        let (name, value) = (escape(&line.name), number(last.value));
        append(page, format_args!("<title>{name}: {value} at step {}</title>", last.step));
    }
    page.push_str("<polyline points=\"");
    for point in thinned(&drawn) {
        append(page, format_args!("{:.1},{:.1} ", scale.x(point.step), scale.y(point.value)));
    }
    page.push_str("\"/>");
    for point in drawn.iter().filter(|_| drawn.len() <= POINTS_MAX) {
        let (x, y) = (scale.x(point.step), scale.y(point.value));
        if let Some((low, high)) = point.ends {
            let (low, high) = (scale.y(low), scale.y(high));
            append(
                page,
                format_args!(
                    "<line x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\"/>\
                     <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>"
                ),
            );
        }
    }
    if !line.label.is_empty() {
        let (x, y) = (scale.x(last.step), scale.y(last.value) - 4.0);
        let label = escape(&line.label);
        append(
            page,
            format_args!("<text class=\"value\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>"),
        );
    }
    page.push_str("</g>\n");
}

/// Returns points at even distances, the first and the last among them.
fn thinned(points: &[Point]) -> impl Iterator<Item = &Point> {
    let count = points.len().min(POINTS_MAX);
    let gaps = count.saturating_sub(1).max(1);
    (0..count).map(move |place| &points[place * (points.len() - 1) / gaps])
}

/// Where values lie in a drawing.
struct Scale {
    low: f64,
    high: f64,
    tick: f64,
    last_step: u32,
}

impl Scale {
    fn new(low: f64, high: f64, last_step: u32) -> Scale {
        // Bounded so that a span of what is drawn is a number itself.
        let bounded = |value: f64| value.clamp(-1e300, 1e300);
        let (low, mut high) = (bounded(low), bounded(high));
        if high - low <= low.abs() * 1e-9 {
            high = low + low.abs().max(1.0) * 0.1;
        }
        let tick = round_step((high - low) / TICKS);
        let (low, high) = ((low / tick).floor() * tick, (high / tick).ceil() * tick);
        Scale { low, high, tick, last_step: last_step.max(1) }
    }

    fn x(&self, step: u32) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * f64::from(step) / f64::from(self.last_step)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share.clamp(0.0, 1.0)
    }

    fn draw_axes(&self, page: &mut String) {
        let count = ((self.high - self.low) / self.tick).round() as u32;
        for tick in 0..=count.min(20) {
            let value = self.low + f64::from(tick) * self.tick;
            // What is left of 0 after additions is no number to show.
            let value = if value.abs() < self.tick * 1e-6 { 0.0 } else { value };
            let y = self.y(value);
            append(
                page,
                format_args!(
                    "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\"/>\
                     <text class=\"value\" x=\"{}\" y=\"{:.1}\">{}</text>\n",
                    WIDTH - RIGHT,
                    LEFT - 5.0,
                    y + 4.0,
                    number(value)
                ),
            );
        }
        let step = round_step(f64::from(self.last_step) / TICKS).max(1.0) as u32;
        for tick in (0..=self.last_step).step_by(step as usize) {
            let x = self.x(tick);
            append(
                page,
                format_args!(
                    "<text class=\"step\" x=\"{x:.1}\" y=\"{}\">{tick}</text>\n",
                    HEIGHT - 8.0
                ),
            );
        }
    }
}

/// Returns 1, 2 or 5 times a power of ten: the next that is not smaller.
fn round_step(wanted: f64) -> f64 {
    let power = libm::exp10(libm::log10(wanted.max(1e-300)).floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= wanted * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// Writes a value with about three significant digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{value:.1e}")
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}
