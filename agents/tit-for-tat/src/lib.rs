//! Tit for tat: repeats the opponent's concessions, relative, absolute or averaged (Faratin,
//! Sierra, Jennings 1998).

use arena_guest::params::{self, ParamError};
use arena_guest::rng::Rng;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply};

/// How a concession of the opponent becomes an own one. With x the own last price and y(j) the
/// opponent's price in its turn j, the latest being y(n):
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// x y(n-d) / y(n-d+1): the same percentage, d turns later.
    Relative,
    /// x + y(n-d) - y(n-d+1), and up to `slack` more in the opponent's favour.
    Absolute,
    /// x y(n-g) / y(n): the percentage over a window of g turns.
    Averaged,
}

/// Parameters: `mode` (`relative`, `absolute`, `averaged`), `delay` (d), `window` (g), `slack` (a
/// price), `kindness` (share of the own range conceded in every turn besides; without any,
/// two of these would wait for each other for ever), `low`, `high`, `turns`.
pub struct TitForTat {
    view: View,
    rng: Rng,
    mode: Mode,
    delay: usize,
    window: usize,
    slack: u32,
    kindness: f64,
    /// The opponent's price in each of its turns; a turn without one repeats the last.
    heard: Vec<f64>,
}

/// The longest delay and window, in turns.
const TURNS_MAX: u32 = 1_000;

impl Agent for TitForTat {
    fn begin(brief: &Brief) -> TitForTat {
        params::read(brief, |params| {
            let view = View::new(brief, params)?;
            let modes = [Mode::Relative, Mode::Absolute, Mode::Averaged];
            let mode = modes[params.choice("mode", &["relative", "absolute", "averaged"])?];
            Ok::<_, ParamError>(TitForTat {
                rng: Rng::new(brief.seed),
                mode,
                delay: params.count("delay", 1, [1, TURNS_MAX])? as usize,
                window: params.count("window", 2, [1, TURNS_MAX])? as usize,
                slack: params.price("slack", view.list_price)?.unwrap_or(0),
                kindness: params.share("kindness", 0.01)?,
                heard: Vec::new(),
                view,
            })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        let heard_before = self.view.heard_count;
        self.view.hear(news);
        if self.view.heard_count > heard_before
            && let Some(cents) = self.view.standing()
        {
            self.heard.push(f64::from(cents));
        }
        let next = self.next();
        self.view.answer(next)
    }
}

impl TitForTat {
    fn next(&mut self) -> u32 {
        let Some(&last) = self.view.own.last() else {
            return self.view.start();
        };
        let (last, count) = (f64::from(last), self.heard.len());
        let towards = f64::from(self.view.reserve) - f64::from(self.view.start());
        let answered = match self.mode {
            Mode::Relative if count > self.delay => {
                last * self.ratio(count - 1 - self.delay, count - self.delay)
            }
            Mode::Absolute if count > self.delay => {
                let step = self.heard[count - 1 - self.delay] - self.heard[count - self.delay];
                let extra = f64::from(self.rng.between(0, self.slack));
                last + step + extra * towards.signum()
            }
            Mode::Averaged if count > self.window => {
                last * self.ratio(count - 1 - self.window, count - 1)
            }
            _ => last,
        };
        self.view.price(answered + self.kindness * towards)
    }

    /// Returns an earlier price over a later one. A price of nothing counts as one cent.
    fn ratio(&self, earlier: usize, later: usize) -> f64 {
        self.heard[earlier].max(1.0) / self.heard[later].max(1.0)
    }
}

arena_guest::export!(TitForTat);
