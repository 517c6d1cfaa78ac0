//! Nice tit for tat: concedes towards the fair point as far as the opponent does (Baarslag,
//! Hindriks, Jonker 2013).

use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply};

/// The own target, as the kept share u of the own range, is 1 - f (1 - u_Nash), where f is how
/// far the opponent has come from its first offer towards the Nash point. With one price and
/// linear utilities that point is the middle of both reserves; the other one is unknown and taken
/// to lie at the own best price, so u_Nash = 1/2. From t = 0.9 on a bonus lets the target fall
/// by up to `bonus` of itself. Accepts by AC_combi: what is as good as the own next offer or,
/// late, as the best offer of a window as long as the time left.
/// Parameters: `bonus` (a share, 50% unless given), `low`, `high`, `turns`.
pub struct NiceTitForTat {
    view: View,
    bonus: f64,
}

/// The kept share of the own range at the Nash point.
const NASH: f64 = 0.5;

/// When the end is near, on the clock.
const LATE: f64 = 0.9;

impl Agent for NiceTitForTat {
    fn begin(brief: &Brief) -> NiceTitForTat {
        params::read(brief, |params| {
            let view = View::new(brief, params)?;
            Ok(NiceTitForTat { view, bonus: params.share("bonus", 0.5)? })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let next = self.view.concede(1.0 - self.target());
        match self.late_bargain() {
            Some(cents) => self.view.answer(cents),
            None => self.view.answer(next),
        }
    }
}

impl NiceTitForTat {
    fn target(&self) -> f64 {
        let mirrored = 1.0 - self.conceded() * (1.0 - NASH);
        let late = ((self.view.clock() - LATE) / (1.0 - LATE)).max(0.0);
        mirrored * (1.0 - self.bonus * late)
    }

    /// Returns the share of the way from the opponent's first offer to the Nash point that its
    /// best offer has covered.
    fn conceded(&self) -> f64 {
        let kept = self.view.theirs.iter().map(|cents| self.view.kept(*cents));
        let (Some(first), Some(best)) = (kept.clone().next(), kept.reduce(f64::max)) else {
            return 0.0;
        };
        // An opponent that opens beyond the fair point has conceded all that can be asked.
        if first >= NASH { 1.0 } else { ((best - first) / (NASH - first)).clamp(0.0, 1.0) }
    }

    /// Returns the standing offer if it is late and no offer of the last window was better.
    fn late_bargain(&self) -> Option<u32> {
        let left = (self.view.turn_count - self.view.turn_index.min(self.view.turn_count)) as usize;
        let standing = self.view.standing().filter(|cents| self.view.affords(*cents))?;
        let mut window = self.view.theirs.iter().rev().take(left + 1);
        let best = window.all(|cents| self.view.role.likes(standing, *cents));
        (self.view.clock() >= LATE && best).then_some(standing)
    }
}

arena_guest::export!(NiceTitForTat);
