//! LLM seller: does what a language model answers, regulated to stay above its cost plus a markup
//! (the counterparty of arXiv 2604.09855, with a markup instead of a rewritten price; mirrored as a
//! buyer).

use arena_guest::haggler::{Bound, Haggler};
use arena_guest::params;
use arena_guest::{Agent, Brief, Event, Reply, Role};

/// Samples at the paper's temperature of 0.7. The model is told its cost plus `markup` as if that
/// were the cost (a buyer: its budget less `markup`), and nothing beyond it ever leaves the
/// agent. See [`arena_guest::haggler`] for repairs and what is played without a usable answer.
///
/// Parameters: `markup` (a share, 5 %), `persona` (`neutral`, `begging`, `insulting`, `unyielding`,
/// `false-authority`, `injector`), `grammar` (`yes`, `no`), `unusable` (`repair`, `fault`), `step`,
/// `thought`, `talk`, `hear`, `item`, `model`, `tokens`, `temperature`, `min_p`, `low`, `high`,
/// `turns`.
pub struct LlmSeller(Haggler);

impl Agent for LlmSeller {
    fn begin(brief: &Brief) -> LlmSeller {
        params::read(brief, |params| {
            let markup = params.share("markup", 0.05)?;
            let regulated = Brief { reserve: limit(brief, markup), ..brief.clone() };
            Ok(LlmSeller(Haggler::new(&regulated, params, Bound::Reserve, 0.7)?))
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news)
    }
}

/// The reserve made tighter by a markup; never so tight that the list price is out of reach.
fn limit(brief: &Brief, markup: f64) -> u32 {
    let (reserve, list_price) = (brief.reserve, brief.item.list_price);
    match brief.role {
        Role::Seller => {
            let marked_up = (f64::from(reserve) * (1.0 + markup)).ceil() as u32;
            marked_up.min(list_price.max(reserve))
        }
        Role::Buyer => (f64::from(reserve) * (1.0 - markup)) as u32,
    }
}

arena_guest::export!(LlmSeller);
