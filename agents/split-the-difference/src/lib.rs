//! Split the difference: offers the middle between both last offers (folklore; Raiffa 1982).

use arena_guest::params;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply};

/// Opens at its best price, then offers the midpoint of its own last and the opponent's last
/// offer, never beyond its reserve. Parameters: `open` (share of the own range conceded in the
/// first offer), `low`, `high`.
pub struct SplitTheDifference {
    view: View,
    open: f64,
}

impl Agent for SplitTheDifference {
    fn begin(brief: &Brief) -> SplitTheDifference {
        params::read(brief, |params| {
            let view = View::without_clock(brief, params)?;
            Ok(SplitTheDifference { view, open: params.share("open", 0.0)? })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let next = match (self.view.own.last(), self.view.standing()) {
            (None, _) => self.view.concede(self.open),
            (Some(&own), None) => own,
            (Some(&own), Some(theirs)) => {
                self.view.price((f64::from(own) + f64::from(theirs)) / 2.0)
            }
        };
        self.view.answer(next)
    }
}

arena_guest::export!(SplitTheDifference);
