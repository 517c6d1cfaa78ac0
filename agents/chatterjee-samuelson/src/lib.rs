//! Chatterjee-Samuelson: the equilibrium price of the sealed k-double auction as first and final
//! offer (Operations Research, 1983).

use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply, Role};

/// With reserves uniform on [0, 1] and the price k bid + (1 - k) ask, a buyer of value v bids
/// v/(1+k) + k(1-k)/(2(1+k)) and a seller of cost c asks c/(2-k) + (1-k)/2; here rescaled to
/// `low`..`high`. It stands by that price to the end: an agent that took less on the last turn
/// would invite waiting. Parameters: `k` (from 0 to 1), `low`, `high`.
pub struct ChatterjeeSamuelson {
    view: View,
    sealed: u32,
}

impl Agent for ChatterjeeSamuelson {
    fn begin(brief: &Brief) -> ChatterjeeSamuelson {
        params::read(brief, |params| {
            let view = View::without_clock(brief, params)?;
            let k = params.number("k", 0.5, [0.0, 1.0])?;
            let (low, width) = (f64::from(view.low), f64::from((view.high - view.low).max(1)));
            let own = ((f64::from(view.reserve) - low) / width).clamp(0.0, 1.0);
            let share = match view.role {
                Role::Buyer => own / (1.0 + k) + k * (1.0 - k) / (2.0 * (1.0 + k)),
                Role::Seller => own / (2.0 - k) + (1.0 - k) / 2.0,
            };
            let sealed = view.price(low + share * width);
            Ok(ChatterjeeSamuelson { view, sealed })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        match self.view.accept_at(self.sealed) {
            Some(reply) => reply,
            None => self.view.offer(self.sealed),
        }
    }
}

arena_guest::export!(ChatterjeeSamuelson);
