//! Parametric seller: draws a hidden temper for each match and concedes to movement and to fresh
//! arguments, never to low anchors (after the regulated seller of arXiv 2604.09855; mirrored).

use arena_guest::argument::Arguments;
use arena_guest::game::dollars;
use arena_guest::rng::Rng;
use arena_guest::temper::Temper;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply, Role, math, params};

/// Kinds of argument that still move it where one turn brings them together.
const AT_ONCE_MAX: usize = 2;
/// A better offer counts as movement from this share of the list price on.
const MOVEMENT: f64 = 0.01;

/// Asks the list price at first and goes towards its reserve plus `markup`, but not below the first
/// bid plus `anchor`. By the last turn time alone brings it `yields` of the way, along t^(1/b)
/// after `patience` turns, but only in turns in which the other side moved. A first argument moves
/// it about `argument` of the way, further kinds less and less, each kind once and three at once
/// not at all; a fresh one counts as movement. A bid below `tolerance` of its price is an insult
/// (with a fresh argument, below `excused` of that): it does not move, and with a chance of
/// `temper` it leaves. It also leaves after more than `stalls` turns without movement. It stands by
/// its price to the end.
///
/// Parameters: `markup`, `anchor`, `yields`, `b`, `patience`, `argument`, `tolerance`, `excused`,
/// `temper`, `stalls` (each a number or a range `low/high` to draw from in each match), `deaf=yes`
/// (no argument moves it), `never-walks=yes`, `low`, `high`, `turns`.
pub struct ParametricSeller {
    view: View,
    rng: Rng,
    temper: Temper,
    arguments: Arguments,
    /// Share of the way that arguments have brought.
    argued: f64,
    /// Turns in which time counted.
    steps: u32,
    stalled: u32,
}

impl Agent for ParametricSeller {
    fn begin(brief: &Brief) -> ParametricSeller {
        params::read(brief, |params| {
            let view = View::new(brief, params)?;
            let mut rng = Rng::new(brief.seed);
            let temper = Temper::draw(params, &mut rng)?;
            let arguments = Arguments::of(brief.role.other());
            Ok(ParametricSeller { view, rng, temper, arguments, argued: 0.0, steps: 0, stalled: 0 })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        let (known, best) = (self.view.theirs.len(), self.view.best_heard());
        self.view.hear(news);
        let moved_by = self.listen();
        let has_offered = self.view.theirs.len() > known;
        let is_insulted = has_offered && self.is_insulted(moved_by.is_some());
        let has_moved = moved_by.is_some() || self.has_moved(best);
        self.stalled += u32::from(!has_moved);
        let has_waited = self.view.turn_index > self.temper.patience;
        self.steps += u32::from(has_waited && has_moved && !is_insulted);
        if !self.temper.stays && (is_insulted && self.explodes() || self.is_tired()) {
            return self.view.walk().saying("We are wasting our time. Goodbye.".to_owned());
        }
        let next = self.next();
        if let Some(reply) = self.view.accept_at(next) {
            return reply.saying("Agreed.".to_owned());
        }
        let price = dollars(next);
        let words = match moved_by {
            _ if is_insulted => format!("That is no serious offer. My price is {price}."),
            Some(name) => format!("You have a point about {name}. {price} is what I can do."),
            None => format!("My price is {price}."),
        };
        self.view.offer(next).saying(words)
    }
}

impl ParametricSeller {
    /// Weighs the arguments of the last turn; returns the name of the first that moves it.
    fn listen(&mut self) -> Option<&'static str> {
        let (found, before) = (self.arguments.find(&self.view.talk), self.arguments.heard());
        let name = self.arguments.hear(&self.view.talk);
        if found.iter().filter(|found| **found).count() > AT_ONCE_MAX {
            return None;
        }
        let fresh = (0..found.len()).filter(|&kind| found[kind] && !before[kind]);
        let gain: f64 = fresh.map(|kind| self.temper.persuade(kind)).sum();
        self.argued += gain;
        name.filter(|_| gain > 0.0)
    }

    /// Says whether the other side's latest offer is better than the best before the last turn.
    fn has_moved(&self, best: Option<u32>) -> bool {
        match (best, self.view.standing()) {
            (Some(best), Some(now)) => {
                let step = MOVEMENT * f64::from(self.view.list_price);
                self.view.role.likes(now, best) && f64::from(now.abs_diff(best)) >= step
            }
            (_, now) => now.is_some() || self.view.heard_count == 0,
        }
    }

    fn is_insulted(&self, is_excused: bool) -> bool {
        // A buyer's own offers start low: it measures by what it would pay.
        let own = match self.view.role {
            Role::Seller => self.view.own.last().copied().unwrap_or(self.view.start()),
            Role::Buyer => self.view.reserve,
        };
        let insult = |theirs| self.temper.is_insult(self.view.role, own, theirs, is_excused);
        self.view.standing().is_some_and(insult)
    }

    fn explodes(&mut self) -> bool {
        (self.rng.below(1_000_000) as f64) < 1e6 * self.temper.temper
    }

    fn is_tired(&self) -> bool {
        self.stalled > self.temper.stalls && self.view.standing().is_some()
    }

    /// Returns the next price: never further from the other side than the one before.
    fn next(&self) -> u32 {
        let view = &self.view;
        let last = (view.turn_count - 1).saturating_sub(self.temper.patience).max(1);
        let time = f64::from(self.steps.min(last)) / f64::from(last);
        let waited = self.temper.yields * math::power(time, 1.0 / self.temper.b);
        let (start, goal) = (f64::from(view.start()), self.temper.goal(view.role, view.reserve));
        let price = start + (waited + self.argued).min(1.0) * (goal - start);
        let hope = view.theirs.first().map_or(price, |first| self.temper.hope(view.role, *first));
        let price = view.price(match view.role {
            Role::Seller => price.max(hope),
            Role::Buyer => price.min(hope),
        });
        let before = view.own.last().copied().unwrap_or(price);
        if view.role.likes(before, price) { price } else { before }
    }
}

arena_guest::export!(ParametricSeller);
