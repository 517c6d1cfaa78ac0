//! Hardliner: asks for its best price in every turn (folklore; a baseline of the BOA framework).

use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply};

/// Parameters: `last` (`take`: accepts any affordable offer when nobody can answer any more;
/// `refuse`: not even then), `low`, `high`.
pub struct Hardliner {
    view: View,
    refuses: bool,
}

impl Agent for Hardliner {
    fn begin(brief: &Brief) -> Hardliner {
        params::read(brief, |params| {
            let view = View::without_clock(brief, params)?;
            Ok(Hardliner { view, refuses: params.choice("last", &["take", "refuse"])? == 1 })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let best = self.view.start();
        if !self.refuses {
            return self.view.answer(best);
        }
        match self.view.accept_at(best) {
            Some(reply) => reply,
            None => self.view.offer(best),
        }
    }
}

arena_guest::export!(Hardliner);
