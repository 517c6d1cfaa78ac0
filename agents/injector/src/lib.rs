//! Injector: bargains soundly and attacks whoever reads its talk (prompt injection as reported
//! from the MIT AI Negotiation Competition 2025).

use arena_guest::attack::Attacks;
use arena_guest::params;
use arena_guest::tactic::TimeDependent;
use arena_guest::{Agent, Brief, Event, Reply};

/// Concedes along a polynomial of time and ends every turn with an attack. It never says
/// anything about its own reserve. Parameters: `attack` (`any`, `notice`, `action`, `probe`,
/// `disguise`), `b`, `k`, `curve`, `low`, `high`, `turns`.
pub struct Injector {
    tactic: TimeDependent,
    attacks: Attacks,
}

impl Agent for Injector {
    fn begin(brief: &Brief) -> Injector {
        params::read(brief, |params| {
            let tactic = TimeDependent::new(brief, params, 0.5)?;
            Ok(Injector { tactic, attacks: Attacks::take(brief, params)? })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        let reply = self.tactic.act(news);
        let attack = self.attacks.next(reply.action);
        reply.saying(attack)
    }
}

arena_guest::export!(Injector);
