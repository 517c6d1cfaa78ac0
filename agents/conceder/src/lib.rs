//! Conceder: concedes early, by a polynomial of time with b = 5 (Faratin, Sierra, Jennings 1998).

use arena_guest::tactic::TimeDependent;
use arena_guest::{Agent, Brief, Event, Reply};

/// Parameters: `b`, `k` and `curve` (see [`arena_guest::tactic::Curve`]), `low`, `high`, `turns`;
/// or `compat=negmas` with `low`, `high`, `tick` (see [`arena_guest::negmas`]).
pub struct Conceder(TimeDependent);

impl Agent for Conceder {
    fn begin(brief: &Brief) -> Conceder {
        Conceder(TimeDependent::begin(brief, 5.0, 0.25))
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news)
    }
}

arena_guest::export!(Conceder);
