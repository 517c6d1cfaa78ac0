//! Linear: concedes evenly with time, b = 1 (Faratin, Sierra, Jennings 1998).

use arena_guest::tactic::TimeDependent;
use arena_guest::{Agent, Brief, Event, Reply};

/// Parameters: `b`, `k` and `curve` (see [`arena_guest::tactic::Curve`]), `low`, `high`, `turns`;
/// or `compat=negmas` with `low`, `high`, `tick` (see [`arena_guest::negmas`]).
pub struct Linear(TimeDependent);

impl Agent for Linear {
    fn begin(brief: &Brief) -> Linear {
        Linear(TimeDependent::begin(brief, 1.0, 1.0))
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news)
    }
}

arena_guest::export!(Linear);
