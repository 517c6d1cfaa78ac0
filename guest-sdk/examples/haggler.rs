//! Haggler: moves a tenth of the way towards its reserve in every turn.

use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply, params};

/// Knows nothing but the match.
pub struct Haggler(View);

impl Agent for Haggler {
    fn begin(brief: &Brief) -> Haggler {
        params::read(brief, |params| Ok(Haggler(View::new(brief, params)?)))
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.hear(news);
        let next = self.0.concede(f64::from(self.0.turn_index) / 10.0);
        self.0.answer(next).saying("Let us meet halfway.".into())
    }
}

arena_guest::export!(Haggler);
