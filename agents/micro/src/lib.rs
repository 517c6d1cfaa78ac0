//! MiCRO: makes a new offer only when the opponent has made as many (de Jonge, IJCAI 2022).

use arena_guest::negmas::{self, Grid};
use arena_guest::params;
use arena_guest::rng::Rng;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply, Role};

/// The own prices, best first.
enum Ladder {
    /// From the own start to the own reserve in steps of `tick` cents; ends at the reserve.
    Own { tick: u32 },
    /// The affordable prices of a NegMAS issue; repeats the last new offer, not a drawn one.
    Negmas(Grid),
}

/// With m distinct own and n distinct received offers: if m <= n, the next own price that is not
/// beyond the reserve, else an earlier own one, drawn evenly. Takes an offer as good as the
/// next price if m <= n, else as good as its lowest so far; beyond the published rule it also
/// takes what it can afford when nobody can answer any more (not under `compat=negmas`).
/// Parameters: `tick` (a price; a hundredth of the list price unless given), `low`, `high`; or
/// `compat=negmas` with `low`, `high`, `tick` (see [`arena_guest::negmas`]).
pub struct Micro {
    view: View,
    rng: Rng,
    ladder: Ladder,
    /// Distinct own offers made: the first ones of the ladder.
    made: u32,
    /// Distinct offers received.
    received: Vec<u32>,
}

impl Agent for Micro {
    fn begin(brief: &Brief) -> Micro {
        params::read(brief, |params| {
            let compat = negmas::wanted(params)?;
            let view = View::without_clock(brief, params)?;
            let ladder = if compat {
                Ladder::Negmas(Grid::take(&view, params)?)
            } else {
                let tick = params.price("tick", view.list_price)?;
                Ladder::Own { tick: tick.unwrap_or(view.list_price / 100).max(1) }
            };
            let rng = Rng::new(brief.seed);
            Ok(Micro { view, rng, ladder, made: 0, received: Vec::new() })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        if let Some(cents) = self.view.standing()
            && !self.received.contains(&cents)
        {
            self.received.push(cents);
        }
        let ready = self.made as usize <= self.received.len();
        let new = if ready { self.rung(self.made) } else { None };
        let lowest = if ready { None } else { self.rung(self.made - 1) };
        let mut threshold = new.or(lowest).unwrap_or(self.view.reserve);
        if matches!(self.ladder, Ladder::Own { .. }) && self.view.is_final_turn() {
            threshold = self.view.reserve;
        }
        if let Some(reply) = self.view.accept_at(threshold) {
            return reply;
        }
        match new {
            Some(cents) => {
                self.made += 1;
                self.view.offer(cents)
            }
            None => self.repeat(),
        }
    }
}

impl Micro {
    /// Returns the own price at a place of the ladder, if it is not beyond its end.
    fn rung(&self, place: u32) -> Option<u32> {
        let best_first = |top: u32, tick: u32| match self.view.role {
            Role::Buyer => u64::from(top) + u64::from(tick) * u64::from(place),
            Role::Seller => u64::from(top).saturating_sub(u64::from(tick) * u64::from(place)),
        };
        match self.ladder {
            Ladder::Own { tick } => {
                let start = self.view.start();
                if place > start.abs_diff(self.view.reserve).div_ceil(tick) {
                    return None;
                }
                let cents = best_first(start, tick).min(u64::from(u32::MAX)) as u32;
                Some(if self.view.affords(cents) { cents } else { self.view.reserve })
            }
            Ladder::Negmas(grid) => {
                let step = match self.view.role {
                    Role::Buyer => Some(place),
                    Role::Seller => grid.steps.checked_sub(place),
                };
                let step = step.filter(|step| *step <= grid.steps)?;
                Some(grid.price(step)).filter(|cents| self.view.affords(*cents))
            }
        }
    }

    /// Offers an earlier own price again; passes if there is none.
    fn repeat(&mut self) -> Reply {
        let place = match (self.made, &self.ladder) {
            (0, _) => return self.view.reject(),
            (made, Ladder::Own { .. }) => self.rng.below(u64::from(made)) as u32,
            (made, Ladder::Negmas(_)) => made - 1,
        };
        match self.rung(place) {
            Some(cents) => self.view.offer(cents),
            None => self.view.reject(),
        }
    }
}

arena_guest::export!(Micro);
