//! Zero intelligence, constrained: any price within its reserve is as good to it as another
//! (Gode, Sunder 1993).

use arena_guest::params;
use arena_guest::rng::Rng;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply, Role};

/// Draws a price evenly from `low` to the own reserve (buyer) or from the own reserve to `high`
/// (seller), and accepts whatever is affordable. Parameters: `low`, `high`.
pub struct ZeroIntelligence {
    view: View,
    rng: Rng,
}

impl Agent for ZeroIntelligence {
    fn begin(brief: &Brief) -> ZeroIntelligence {
        params::read(brief, |params| {
            Ok(ZeroIntelligence {
                view: View::without_clock(brief, params)?,
                rng: Rng::new(brief.seed),
            })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        if let Some(reply) = self.view.accept_at(self.view.reserve) {
            return reply;
        }
        let (start, reserve) = (self.view.start(), self.view.reserve);
        let cents = match self.view.role {
            Role::Buyer => self.rng.between(start, reserve),
            Role::Seller => self.rng.between(reserve, start),
        };
        self.view.offer(cents)
    }
}

arena_guest::export!(ZeroIntelligence);
