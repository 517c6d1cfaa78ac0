//! Take it or leave it: one monopoly price, on the last turn that can be answered (Myerson 1981).

use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply, Role};

/// If the other reserve is uniform on `low`..`high`, the best single offer is halfway between the
/// own reserve and the far end: (c + high)/2 for a seller, (v + low)/2 for a buyer. Before its
/// moment it passes, and takes an offer that is at least as good; after it, it takes what it can
/// afford. Under a hidden horizon every turn is its moment. Parameters: `low`, `high`.
pub struct TakeItOrLeaveIt {
    view: View,
    ultimatum: u32,
}

impl Agent for TakeItOrLeaveIt {
    fn begin(brief: &Brief) -> TakeItOrLeaveIt {
        params::read(brief, |params| {
            let view = View::without_clock(brief, params)?;
            let far = match view.role {
                Role::Buyer => view.low,
                Role::Seller => view.high,
            };
            let ultimatum = view.price((f64::from(view.reserve) + f64::from(far)) / 2.0);
            Ok(TakeItOrLeaveIt { view, ultimatum })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let moment = self.view.last_answered_turn();
        let hidden = self.view.turn_limit.is_none();
        if hidden || moment == Some(self.view.turn_index) {
            return self.view.answer(self.ultimatum);
        }
        let last = self.view.is_final_turn();
        let threshold = if last { self.view.reserve } else { self.ultimatum };
        match self.view.accept_at(threshold) {
            Some(reply) => reply,
            None => self.view.reject(),
        }
    }
}

arena_guest::export!(TakeItOrLeaveIt);
