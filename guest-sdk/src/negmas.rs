//! NegMAS 0.16's time-based negotiators on a grid of prices, offer for offer.
//!
//! With `compat=negmas low=CENTS high=CENTS tick=CENTS` an agent plays as its NegMAS namesake
//! does on the price issue `low, low + tick, ..., high` with linear utilities. Its clock counts
//! pairs of turns: t = (i + 1)/(T + 1) with i own turns made of T, so it is never 0 and never 1.
//! The formulas and the recorded negotiations that they are held to are described in
//! `tests/cases/negmas/README.md`.
//!
//! Not here: the last-turn rule of [`View::answer`]. NegMAS has none.

use crate::game::{Brief, Reply, Role};
use crate::math;
use crate::params::{ParamError, Params};
use crate::view::View;

/// The tolerance of the strategy.
const STRATEGY_TOLERANCE: f64 = 0.000_1;

/// The tolerance of the search among the sorted prices.
const SEARCH_TOLERANCE: f64 = 0.000_001;

/// Takes the parameter `compat`: `none` or `negmas`.
///
/// # Errors
/// Neither of the two.
pub fn wanted(params: &mut Params) -> Result<bool, ParamError> {
    Ok(params.choice("compat", &["none", "negmas"])? == 1)
}

/// A price issue with evenly spaced values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The lowest price in cents.
    pub low: u32,
    /// The distance between neighbours in cents, at least 1.
    pub tick: u32,
    /// How many steps lie between the lowest and the highest price, at least 1.
    pub steps: u32,
}

impl Grid {
    /// Takes the parameter `tick`, the range from the view.
    ///
    /// # Errors
    /// A tick that cannot be read or does not divide the range evenly.
    pub fn take(view: &View, params: &mut Params) -> Result<Grid, ParamError> {
        let tick = params.count("tick", 1, [1, u32::MAX])?;
        let range = view.high - view.low;
        if range == 0 || !range.is_multiple_of(tick) {
            let expected = format!("a divisor of the range from {} to {}", view.low, view.high);
            return Err(ParamError::Value { key: "tick", value: tick.to_string(), expected });
        }
        Ok(Grid { low: view.low, tick, steps: range / tick })
    }

    /// Returns the price after `step` steps from the lowest, in cents.
    pub fn price(self, step: u32) -> u32 {
        self.low + step.min(self.steps) * self.tick
    }

    /// Returns the utility of a price in cents: 1 at the own best end, 0 at the other.
    pub fn utility(self, role: Role, cents: u32) -> f64 {
        let above = f64::from(cents) - f64::from(self.low);
        let share = above / (f64::from(self.steps) * f64::from(self.tick));
        match role {
            Role::Buyer => 1.0 - share,
            Role::Seller => share,
        }
    }
}

/// NegMAS's aspiration-based negotiators: Boulware (e = 4), linear (1), Conceder (1/4).
#[derive(Clone, Copy, Debug)]
pub struct Aspiration {
    grid: Grid,
    e: f64,
}

impl Aspiration {
    /// Takes the parameter `tick`.
    ///
    /// # Errors
    /// A grid that is not even, or a turn limit that is hidden or odd.
    pub fn new(
        brief: &Brief,
        view: &View,
        params: &mut Params,
        e: f64,
    ) -> Result<Aspiration, ParamError> {
        if brief.turn_limit.is_none_or(|limit| !limit.is_multiple_of(2)) {
            let expected = "a known, even turn limit for that".to_owned();
            return Err(ParamError::Value { key: "compat", value: "negmas".to_owned(), expected });
        }
        Ok(Aspiration { grid: Grid::take(view, params)?, e })
    }

    /// Accepts what reaches the aspiration, or offers the worst own price that does.
    pub fn act(&self, view: &mut View) -> Reply {
        let t = f64::from(view.turn_index + 1) / f64::from(view.turn_count + 1);
        let floor = self.grid.utility(view.role, view.reserve).max(0.0);
        let aspired = floor + (1.0 - floor) * (1.0 - math::power(t, self.e));
        let least = (aspired - STRATEGY_TOLERANCE).max(floor).min(1.0);
        let good = |cents: u32| (least..=1.0).contains(&self.grid.utility(view.role, cents));
        if let Some(cents) = view.standing().filter(|cents| good(*cents))
            && let Some(reply) = view.accept_at(cents)
        {
            return reply;
        }
        let steps = f64::from(self.grid.steps);
        let step = match view.role {
            Role::Buyer => (steps * (1.0 - least + SEARCH_TOLERANCE)).floor(),
            Role::Seller => (steps * (least - SEARCH_TOLERANCE)).ceil(),
        };
        view.offer(self.grid.price(step.max(0.0).min(steps) as u32))
    }
}
