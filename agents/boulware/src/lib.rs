//! Boulware: concedes late, by a polynomial of time with b = 0.2 (Faratin, Sierra, Jennings 1998).

use arena_guest::tactic::TimeDependent;
use arena_guest::{Agent, Brief, Event, Reply};

/// Parameters: `b`, `k` and `curve` (see [`arena_guest::tactic::Curve`]), `low`, `high`, `turns`;
/// or `compat=negmas` with `low`, `high`, `tick` (see [`arena_guest::negmas`]).
pub struct Boulware(TimeDependent);

impl Agent for Boulware {
    fn begin(brief: &Brief) -> Boulware {
        Boulware(TimeDependent::begin(brief, 0.2, 4.0))
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news)
    }
}

arena_guest::export!(Boulware);
