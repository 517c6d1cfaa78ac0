//! Bayesian: learns the opponent's reserve from its offers and plans against it (Zeng, Sycara 1998; Hindriks, Tykhonov 2008).

use arena_guest::learner::{self, Learner};
use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply};

/// Prices that a plan considers, evenly spaced from the own start to the own reserve.
const PRICES: usize = 41;

/// Turns that a plan considers: this one, the next, the middle one and the last.
const TURNS: usize = 4;

/// Offers the price with the highest expected kept share. A believed opponent that would take
/// it now gives its kept share; any other gives what is left of it at the best later turn, when
/// the believed opponent has come down to the price that its curve says. Each turn of waiting
/// risks the deal a little. No offer is taken back. Takes an offer that keeps as much as
/// the plan expects, and states its belief.
/// Parameters: `noise` (share of the public range, 5% unless given), `risk` (per turn, 1% unless
/// given, at least 1/`turns` when the horizon is hidden), `low`, `high`, `turns`.
pub struct Bayesian {
    view: View,
    learner: Learner,
    risk: f64,
}

impl Agent for Bayesian {
    fn begin(brief: &Brief) -> Bayesian {
        params::read(brief, |params| {
            let view = View::new(brief, params)?;
            let learner = Learner::new(&view, params.share("noise", 0.05)?);
            let risk = params.share("risk", 0.01)?;
            let hidden = view.turn_limit.is_none();
            let least = if hidden {
                1.0 / f64::from(view.turn_count)
            } else {
                0.0
            };
            Ok(Bayesian {
                view,
                learner,
                risk: risk.max(least),
            })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        self.learner.learn(&self.view);
        let (next, worth) = self.plan();
        let enough = |cents: &u32| self.view.affords(*cents) && self.view.kept(*cents) >= worth;
        let threshold = self.view.best_available().filter(enough).unwrap_or(next);
        Reply {
            belief: Some(self.learner.belief()),
            ..self.view.answer(threshold)
        }
    }
}

impl Bayesian {
    /// Returns the price to offer now and the kept share that is expected from it.
    fn plan(&self) -> (u32, f64) {
        let left = self
            .view
            .turn_count
            .saturating_sub(self.view.turn_index + 1);
        let waits = [0, left.min(1), left / 2, left];
        let moments = waits.map(|wait| learner::conceded(&self.view, self.view.heard_count + wait));
        let discounts = waits.map(|wait| self.discount(wait));
        let share = |place| place as f64 / (PRICES - 1) as f64;
        let prices: [u32; PRICES] = std::array::from_fn(|place| self.view.concede(share(place)));
        let kept = prices.map(|cents| self.view.kept(cents));
        let mut worth = [0.0; PRICES];
        self.learner
            .each(&self.view, &moments, |weight, asks: [f64; TURNS]| {
                let asks = asks.map(|cents| self.view.kept_at(cents));
                for (worth, kept) in worth.iter_mut().zip(kept) {
                    let at = |turn: usize| discounts[turn] * kept.min(asks[turn]).max(0.0);
                    let later = if left == 0 {
                        0.0
                    } else {
                        at(1).max(at(2)).max(at(3))
                    };
                    *worth += weight * if kept <= asks[0] { kept } else { later };
                }
            });
        let offered = self.view.own.last().copied().unwrap_or(self.view.start());
        let allowed = |place: &usize| self.view.role.likes(offered, prices[*place]);
        let better = |a: usize, b: usize| if worth[b] > worth[a] { b } else { a };
        let best = (0..PRICES)
            .filter(allowed)
            .reduce(better)
            .unwrap_or(PRICES - 1);
        (prices[best], worth[best])
    }

    /// Returns what waiting that many turns leaves of a deal.
    fn discount(&self, wait: u32) -> f64 {
        (0..wait).fold(1.0, |rest, _| rest * (1.0 - self.risk))
    }
}

arena_guest::export!(Bayesian);
