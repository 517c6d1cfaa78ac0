//! Boulware: concedes late, by a polynomial of time (Faratin, Sierra, Jennings 1998; b = 0.2).

use arena_guest::tactic::TimeDependent;
use arena_guest::{Agent, Brief, Event, Reply};

/// Parameters: `b`, `k`, `curve`, `compat`, `low`, `high`, `turns`.
pub struct Boulware(TimeDependent);

impl Agent for Boulware {
    fn begin(brief: &Brief) -> Boulware {
        Boulware(TimeDependent::begin(brief, 0.2))
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news)
    }
}

arena_guest::export!(Boulware);
