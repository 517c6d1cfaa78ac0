//! Tit for tat: repeats the opponent's concessions, relative, absolute or averaged (Faratin,
//! Sierra, Jennings 1998).

use arena_guest::params::{self, ParamError, Params};
use arena_guest::rng::Rng;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply};

/// How a concession of the opponent becomes an own one. With x the own last price and y(j) the
/// opponent's price in its turn j, the latest being y(n):
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// x y(n-d) / y(n-d+1): the same percentage, d turns later.
    Relative { delay: usize },
    /// x + y(n-d) - y(n-d+1), and up to `slack` more in the opponent's favour.
    Absolute { delay: usize, slack: u32 },
    /// x y(n-g) / y(n): the percentage over a window of g turns.
    Averaged { window: usize },
}

/// Parameters: `mode` (`relative` with `delay`, d; `absolute` with `delay` and `slack`, a price;
/// `averaged` with `window`, g), `kindness` (share of the own range conceded in every turn
/// besides; without any, two of these would wait for each other for ever), `low`, `high`.
pub struct TitForTat {
    view: View,
    rng: Rng,
    mode: Mode,
    kindness: f64,
    /// The opponent's price in each of its turns; a turn without one repeats the last.
    heard: Vec<f64>,
}

/// The longest delay and window, in turns.
const TURNS_MAX: u32 = 1_000;

impl Agent for TitForTat {
    fn begin(brief: &Brief) -> TitForTat {
        params::read(brief, |params| {
            let view = View::without_clock(brief, params)?;
            Ok(TitForTat {
                rng: Rng::new(brief.seed),
                mode: Mode::take(params, view.list_price)?,
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

impl Mode {
    /// Takes `mode` and the parameters of that mode alone, so that others are refused.
    fn take(params: &mut Params, list_price: u32) -> Result<Mode, ParamError> {
        let place = params.choice("mode", &["relative", "absolute", "averaged"])?;
        if place == 2 {
            return Ok(Mode::Averaged {
                window: params.count("window", 2, [1, TURNS_MAX])? as usize,
            });
        }
        let delay = params.count("delay", 1, [1, TURNS_MAX])? as usize;
        if place == 0 {
            return Ok(Mode::Relative { delay });
        }
        let slack = params.price("slack", list_price)?.unwrap_or(0);
        Ok(Mode::Absolute { delay, slack })
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
            Mode::Relative { delay } if count > delay => {
                last * self.ratio(count - 1 - delay, count - delay)
            }
            Mode::Absolute { delay, slack } if count > delay => {
                let step = self.heard[count - 1 - delay] - self.heard[count - delay];
                let extra = f64::from(self.rng.between(0, slack));
                last + step + extra * towards.signum()
            }
            Mode::Averaged { window } if count > window => {
                last * self.ratio(count - 1 - window, count - 1)
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
