//! Bayesian: learns the opponent's reserve from its offers and plans against it (Zeng, Sycara
//! 1998; Hindriks, Tykhonov 2008).

use arena_guest::learner::{self, Learner};
use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply};

/// Prices that a plan considers, evenly spaced from the own start to the own reserve.
const PRICES: usize = 31;

/// Turns that a plan considers: this one, the middle one of those left, and the last.
const TURNS: usize = 3;

/// Hypotheses below this weight are left out of a plan: long matches would run out of fuel.
const WEIGHT_MIN: f64 = 1e-4;

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
            let least = if hidden { 1.0 / f64::from(view.turn_count) } else { 0.0 };
            Ok(Bayesian { view, learner, risk: risk.max(least) })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        self.learner.learn(&self.view);
        let (next, worth) = self.plan();
        let enough = |cents: &u32| self.view.affords(*cents) && self.view.kept(*cents) >= worth;
        let threshold = self.view.best_available().filter(enough).unwrap_or(next);
        Reply { belief: Some(self.learner.belief()), ..self.view.answer(threshold) }
    }
}

impl Bayesian {
    /// Returns the price to offer now and the kept share that is expected from it.
    fn plan(&self) -> (u32, f64) {
        // The final turn of a match is no turn to plan for: nobody can answer an offer then.
        let last = self.view.last_answered_turn().unwrap_or(0);
        let left = last.saturating_sub(self.view.turn_index);
        let waits = [0, left.div_ceil(2), left];
        let moments = waits.map(|wait| learner::conceded(&self.view, self.view.heard_count + wait));
        let discounts = waits.map(|wait| if left == 0 { 0.0 } else { self.discount(wait) });
        let share = |place| place as f64 / (PRICES - 1) as f64;
        let prices: [u32; PRICES] = std::array::from_fn(|place| self.view.concede(share(place)));
        let kept = prices.map(|cents| self.view.kept(cents));
        let mut worth = [0.0; PRICES];
        self.learner.each(&self.view, &moments, |weight, asks: [f64; TURNS]| {
            if weight >= WEIGHT_MIN {
                let asks = asks.map(|cents| self.view.kept_at(cents).max(0.0));
                for (worth, kept) in worth.iter_mut().zip(kept) {
                    *worth += weight * outcome(kept, asks, discounts);
                }
            }
        });
        let offered = self.view.own.last().copied().unwrap_or(self.view.start());
        let allowed = |place: &usize| self.view.role.likes(offered, prices[*place]);
        let better = |a: usize, b: usize| if worth[b] > worth[a] { b } else { a };
        let best = (0..PRICES).filter(allowed).reduce(better).unwrap_or(PRICES - 1);
        (prices[best], worth[best])
    }

    /// Returns what waiting that many turns leaves of a deal.
    fn discount(&self, wait: u32) -> f64 {
        (0..wait).fold(1.0, |rest, _| rest * (1.0 - self.risk))
    }
}

/// Returns what offering `kept` brings against an opponent that leaves `asks` at each turn.
fn outcome(kept: f64, asks: [f64; TURNS], discounts: [f64; TURNS]) -> f64 {
    if kept <= asks[0] {
        return kept;
    }
    // An offer is never taken back, so no later deal keeps more than this one asks for.
    let middle = discounts[1] * if kept < asks[1] { kept } else { asks[1] };
    let last = discounts[2] * if kept < asks[2] { kept } else { asks[2] };
    if middle > last { middle } else { last }
}

arena_guest::export!(Bayesian);
