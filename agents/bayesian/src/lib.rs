//! Bayesian: learns the opponent's reserve from its offers and plans against it (Zeng, Sycara 1998; Hindriks, Tykhonov 2008).

use arena_guest::learner::{self, Learner};
use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply};

/// Prices that a plan considers besides the own start, evenly spaced to the own reserve.
const PRICES: u32 = 40;

/// Own turns that a plan looks ahead, spread over those that are left.
const AHEAD_MAX: u32 = 6;

/// Plans by backward induction over the turns left: an offer is worth
/// P(accepted) x kept share + P(not) x what the next turn is worth, with today's beliefs in all of
/// them. Takes an offer that keeps as much as the plan is worth. States its belief.
/// Parameters: `noise` (share of the public range, 5% unless given), `low`, `high`, `turns`.
pub struct Bayesian {
    view: View,
    learner: Learner,
}

impl Agent for Bayesian {
    fn begin(brief: &Brief) -> Bayesian {
        params::read(brief, |params| {
            let view = View::new(brief, params)?;
            let learner = Learner::new(&view, params.share("noise", 0.05)?);
            Ok(Bayesian { view, learner })
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
    /// Returns the price to offer now and the kept share that offering it is worth.
    fn plan(&self) -> (u32, f64) {
        let left = self
            .view
            .turn_count
            .saturating_sub(self.view.turn_index + 1);
        let ahead = left.min(AHEAD_MAX);
        let (mut best, mut worth) = (self.view.reserve, 0.0);
        for step in (0..=ahead).rev() {
            let turn = self.view.heard_count + left * step / ahead.max(1);
            let (later, conceded) = (worth, learner::conceded(&self.view, turn));
            worth = -1.0;
            for place in 0..=PRICES {
                let cents = self.view.concede(f64::from(place) / f64::from(PRICES));
                let chance = self.learner.chance(&self.view, cents, &conceded);
                let value = chance * self.view.kept(cents) + (1.0 - chance) * later;
                if value > worth {
                    (best, worth) = (cents, value);
                }
            }
        }
        (best, worth)
    }
}

arena_guest::export!(Bayesian);
