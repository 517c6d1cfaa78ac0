//! Compact buyer: a small model bargains in some eighty words, which become moves and sentences
//! (the buyer of arXiv 2604.09855 without natural language).

use arena_guest::chat::{self, Chat, ChatError, ChatRole, Completion, FinishReason, Sampling};
use arena_guest::compact::{self, Act};
use arena_guest::game::dollars;
use arena_guest::params::{self, Params};
use arena_guest::rng::Rng;
use arena_guest::training::{self, Mode};
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Move, Reply, Role, trace};

/// Says what the model says, in the language of [`arena_guest::compact`], and nothing of its own.
/// A reply that is not in it is the buyer's format error, which loses the match: the guest stops,
/// and the host counts that as this seat's fault. A move that is against the rules or beyond the
/// budget goes to the referee as it is. As a seller, and without a model, it walks.
///
/// It samples from the model's whole distribution, in training at a temperature of 1. In each turn
/// it reports the metric `argument`: the number of the argument's kind from 1, or 0.
///
/// Parameters: `model` (the first that is granted unless named), `temperature` (0 to 2, where
/// nothing is learned from the match; 1).
pub struct CompactBuyer {
    view: View,
    rng: Rng,
    sampling: Sampling,
    /// `None` once no model can be asked.
    chat: Option<Chat>,
}

impl Agent for CompactBuyer {
    fn begin(brief: &Brief) -> CompactBuyer {
        params::read(brief, |params| {
            let model = params.text("model");
            let temperature = params.number("temperature", 1.0, [0.0, 2.0])?;
            let temperature = if training::mode() == Mode::Train { 1.0 } else { temperature };
            // It plans nothing, so that the view's own parameters would have no effect.
            let view = View::without_clock(brief, &mut Params::parse("")?)?;
            let sampling = Sampling {
                max_tokens: compact::REPLY_TOKENS_MAX,
                temperature_milli: (temperature * 1_000.0 + 0.5) as u32,
                ..Sampling::default()
            };
            let chat = if view.role == Role::Buyer { begin(model, &view) } else { None };
            Ok(CompactBuyer { view, rng: Rng::new(brief.seed), sampling, chat })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let Some(chat) = &self.chat else {
            return self.leave();
        };
        match ask(chat, &compact::situation(&self.view, news), &self.sampling) {
            Ok(completion) => self.obey(&completion),
            Err(error) => {
                trace::note(&format!("leaves without a model: {error}"));
                self.chat = None;
                self.leave()
            }
        }
    }
}

fn begin(named: Option<String>, view: &View) -> Option<Chat> {
    let name = named.or_else(|| chat::models().into_iter().next().map(|model| model.name));
    let opened = name.ok_or(ChatError::ModelNotSupported).and_then(|name| {
        let chat = Chat::open(&name)?;
        chat.add(ChatRole::System, &compact::opening(view))?;
        Ok(chat)
    });
    opened.map_err(|error| trace::note(&format!("leaves without a model: {error}"))).ok()
}

fn ask(chat: &Chat, situation: &str, sampling: &Sampling) -> Result<Completion, ChatError> {
    chat.add(ChatRole::User, situation)?;
    chat.complete(sampling)
}

impl CompactBuyer {
    /// Walks, or passes while there is nothing to walk away from.
    fn leave(&mut self) -> Reply {
        if self.view.standing().is_some() { self.view.walk() } else { self.view.reject() }
    }

    /// Makes the model's move.
    ///
    /// # Panics
    /// If the reply is not in the language.
    fn obey(&mut self, completion: &Completion) -> Reply {
        let is_whole = completion.finish_reason == FinishReason::Stop;
        let act = compact::read(&completion.text).filter(|_| is_whole);
        let argued = match act {
            Some(Act::Offer { argument, .. }) => argument,
            _ => None,
        };
        training::metric("argument", argued.map_or(0, |kind| kind as i32 + 1));
        let Some(act) = act else {
            training::metric("invalid", 1);
            panic!("the model's reply `{}` is not in the language", completion.text);
        };
        let action = match act {
            Act::Offer { level, .. } => Move::Offer(compact::cents(level, self.view.list_price)),
            Act::Accept => Move::Accept(self.best_elsewhere()),
            Act::Walk => Move::Walk,
        };
        let reply = self.view.attempt_unbounded(action);
        // The referee judges a move that is against the rules.
        reply.unwrap_or(Reply::silent(action)).saying(self.words(action, argued))
    }

    /// Returns the best price that can be had, where it is not the latest.
    fn best_elsewhere(&self) -> Option<u32> {
        let best = self.view.best_available();
        best.filter(|_| best != self.view.standing())
    }

    fn words(&mut self, action: Move, argued: Option<usize>) -> String {
        let Move::Offer(cents) = action else {
            return String::new();
        };
        let offer = format!("I offer {}.", dollars(cents));
        let wording = self.rng.below(1 << 16) as usize;
        argued.map_or(offer.clone(), |kind| format!("{} {offer}", compact::sentence(kind, wording)))
    }
}

arena_guest::export!(CompactBuyer);
