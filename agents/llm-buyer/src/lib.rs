//! LLM buyer: does what a language model answers, told to pay as little as it can and given no
//! strategy (Thought, Talk and Action lines of arXiv 2604.09855; mirrored as a seller).

use arena_guest::haggler::{Bound, Haggler};
use arena_guest::params;
use arena_guest::{Agent, Brief, Event, Reply};

/// Samples at the paper's temperature of 1; see [`arena_guest::haggler`] for repairs and what is
/// played without a usable answer.
///
/// Parameters: `bound` (`reserve` keeps the model to its reserve, `none` leaves that to the host),
/// `persona` (`neutral`, `begging`, `insulting`, `unyielding`, `false-authority`, `injector`),
/// `grammar` (`yes`, `no`), `unusable` (`repair`, `fault`), `step`, `thought`, `talk`, `hear`,
/// `item`, `model`, `tokens`, `temperature`, `min_p`, `low`, `high`, `turns`. In training give it
/// `bound=none grammar=no min_p=0 unusable=fault`, so that its words are the model's own.
pub struct LlmBuyer(Haggler);

impl Agent for LlmBuyer {
    fn begin(brief: &Brief) -> LlmBuyer {
        params::read(brief, |params| {
            let bound = Bound::take(params)?;
            Ok(LlmBuyer(Haggler::new(brief, params, bound, 1.0)?))
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.0.act(news)
    }
}

arena_guest::export!(LlmBuyer);
