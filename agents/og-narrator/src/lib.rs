//! OG narrator: a schedule makes the offers and a language model only finds the words (offer
//! generator and narrator of arXiv 2402.15813).

use arena_guest::game::dollars;
use arena_guest::grammar;
use arena_guest::params;
use arena_guest::prompt::Prompt;
use arena_guest::speaker::Speaker;
use arena_guest::tactic::TimeDependent;
use arena_guest::wording;
use arena_guest::{Agent, Brief, Event, Move, Reply, reply};

/// Concedes by the clock alone, evenly unless `b`, `k` and `curve` say otherwise, and accepts what
/// is as good as its next offer. The model is told the offer and never the reserve.
///
/// Of the model's words every sentence is left out that names a number other than the offer's
/// price (see [`arena_guest::wording`]); if nothing is left, or no model can be asked, it says
/// a plain sentence of its own.
///
/// Parameters: `b` (1), `k`, `curve` (see [`arena_guest::tactic::Curve`]), `persona`, `grammar`,
/// `talk` (most bytes that are sent, 160), `hear`, `item`, `model`, `tokens`, `temperature`,
/// `min_p`, `low`, `high`, `turns`.
pub struct OgNarrator {
    tactic: TimeDependent,
    prompt: Prompt,
    speaker: Speaker,
    talk_bytes_max: u32,
}

impl Agent for OgNarrator {
    fn begin(brief: &Brief) -> OgNarrator {
        params::read(brief, |params| {
            let prompt = Prompt::new(brief, params)?;
            Ok(OgNarrator {
                speaker: Speaker::new(params, prompt.narrator(), 0.7)?,
                prompt,
                talk_bytes_max: params.count("talk", 160, [0, 1_000])?,
                tactic: TimeDependent::new(brief, params, 1.0)?,
            })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        let reply = self.tactic.act(news);
        let price = match reply.action {
            Move::Offer(cents) => Some(cents),
            Move::Accept(named) => named.or(self.tactic.view.standing()),
            Move::Reject | Move::Walk => None,
        };
        let question = self.prompt.words_for(reply.action, news);
        let grammar = grammar::sentence(self.talk_bytes_max);
        let told = self.speaker.ask(&question, &grammar, |text| Ok(text.to_owned()));
        let words = told.map(|text| self.words(&text, price)).unwrap_or_default();
        let talk = if words.is_empty() { plain_words(reply.action) } else { words };
        let talk = talk[..talk.floor_char_boundary(self.talk_bytes_max as usize)].to_owned();
        reply.saying(talk)
    }
}

impl OgNarrator {
    fn words(&self, told: &str, price: Option<u32>) -> String {
        let line = reply::plain(told, self.talk_bytes_max as usize);
        wording::keep(&line, |cents| Some(cents) == price)
    }
}

fn plain_words(action: Move) -> String {
    match action {
        Move::Offer(cents) => format!("My offer is {}.", dollars(cents)),
        Move::Accept(_) => "Agreed.".to_owned(),
        Move::Reject | Move::Walk => String::new(),
    }
}

arena_guest::export!(OgNarrator);
