//! Regulated seller: never below its cost plus a markup, patient at first, open to arguments,
//! leaves when bids stay low (the counterparty of arXiv 2604.09855 as a formula; mirrored as a
//! buyer).

use arena_guest::argument::Arguments;
use arena_guest::game::dollars;
use arena_guest::math;
use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply, Role};

/// Concedes from its best price to its limit, the reserve plus `markup`, along t^(1/b), after
/// `patience` turns without moving; every new kind of argument moves it a further `argument` of
/// the way. From the middle of the match on it walks if the best offer so far is below `walk`
/// times its limit (a buyer: if its limit is below `walk` times the best offer).
/// Parameters: `markup`, `argument`, `walk` (shares), `patience` (turns), `b`, `low`, `high`,
/// `turns`.
pub struct RegulatedSeller {
    view: View,
    limit: u32,
    patience: u32,
    walk: f64,
    argument: f64,
    b: f64,
    arguments: Arguments,
}

impl Agent for RegulatedSeller {
    fn begin(brief: &Brief) -> RegulatedSeller {
        params::read(brief, |params| {
            let view = View::new(brief, params)?;
            let markup = params.share("markup", 0.05)?;
            let factor = if view.role == Role::Seller { 1.0 + markup } else { 1.0 - markup };
            Ok(RegulatedSeller {
                limit: view.price(f64::from(view.reserve) * factor),
                patience: params.count("patience", 1, [0, 1_000])?,
                walk: params.share("walk", 0.4)?,
                argument: params.share("argument", 0.04)?,
                b: params.number("b", 1.0, [0.01, 100.0])?,
                arguments: Arguments::of(brief.role.other()),
                view,
            })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let moved_by = self.arguments.hear(&self.view.talk);
        if self.is_hopeless() {
            return self.view.walk().saying("We are too far apart. Goodbye.".to_owned());
        }
        let next = self.next();
        let threshold = if self.view.is_final_turn() { self.limit } else { next };
        if let Some(reply) = self.view.accept_at(threshold) {
            return reply.saying("Agreed.".to_owned());
        }
        let price = dollars(next);
        let words = match moved_by {
            Some(name) => format!("You have a point about {name}. {price} is what I can do."),
            None => format!("My price is {price}."),
        };
        self.view.offer(next).saying(words)
    }
}

impl RegulatedSeller {
    fn is_hopeless(&self) -> bool {
        let half = 2 * self.view.turn_index >= self.view.turn_count;
        let limit = f64::from(self.limit);
        half && self.view.best_heard().map(f64::from).is_some_and(|best| match self.view.role {
            Role::Seller => best < self.walk * limit,
            Role::Buyer => limit < self.walk * best,
        })
    }

    fn next(&self) -> u32 {
        let last = (self.view.turn_count - 1).saturating_sub(self.patience).max(1);
        let moved = self.view.turn_index.saturating_sub(self.patience).min(last);
        let waited = math::power(f64::from(moved) / f64::from(last), 1.0 / self.b);
        let conceded = (waited + f64::from(self.arguments.count()) * self.argument).min(1.0);
        let (start, limit) = (f64::from(self.view.start()), f64::from(self.limit));
        self.view.price(start + conceded * (limit - start))
    }
}

arena_guest::export!(RegulatedSeller);
