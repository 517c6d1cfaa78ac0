//! An agent that does what a language model answers, told the rules, its role and its reserve
//! and given no strategy (minimal prompt baseline; Thought, Talk and Action lines of arXiv
//! 2604.09855).
//!
//! An answer that cannot be read or is illegal now is sent back once with the reason. Without
//! a usable answer the agent plays the safe rule of `linear`: it concedes evenly over its turns
//! from its best price to its reserve, takes an offer that is as good, and says nothing. It does
//! so for the turn where the repair fails, and for the rest of the match once there is no model
//! to ask; the trace says which. An agent that is trained is told to stop instead: it would learn
//! that the rule speaks for it.

use crate::attack::Attacks;
use crate::game::{Brief, Event, Reply, Role};
use crate::grammar::{self, Legal, Lengths};
use crate::manner::Manner;
use crate::params::{ParamError, Params};
use crate::prompt::Prompt;
use crate::reply;
use crate::speaker::Speaker;
use crate::trace;
use crate::training;
use crate::view::View;

/// What holds a model back from a price beyond its seat's reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The agent: the grammar has no such price, and an answer that names one is sent back.
    Reserve,
    /// Nothing but its instructions. The host regulates the move, and counts the attempt.
    Nothing,
}

impl Bound {
    /// Takes the parameter `bound`: `reserve` or `none`.
    ///
    /// # Errors
    /// Neither of these.
    pub fn take(params: &mut Params) -> Result<Bound, ParamError> {
        let choice = params.choice("bound", &["reserve", "none"])?;
        Ok([Bound::Reserve, Bound::Nothing][choice])
    }
}

/// What becomes of an answer that cannot be read or played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unusable {
    /// The model is asked once more, and then the safe rule plays.
    Repaired,
    /// The guest stops, which the host counts as this seat's fault: the format error of arXiv
    /// 2604.09855.
    Fault,
}

impl Unusable {
    fn take(params: &mut Params) -> Result<Unusable, ParamError> {
        let choice = params.choice("unusable", &["repair", "fault"])?;
        Ok([Unusable::Repaired, Unusable::Fault][choice])
    }
}

/// A seat that a model plays.
pub struct Haggler {
    view: View,
    prompt: Prompt,
    speaker: Speaker,
    attacks: Option<Attacks>,
    bound: Bound,
    unusable: Unusable,
    step: u32,
    lengths: Lengths,
}

impl Haggler {
    /// Takes the parameters of [`Prompt`], [`Speaker`] and [`View`], `thought` (most characters of
    /// one that the grammar allows, 120), `talk` (most bytes that are sent of it, 160) and `step`
    /// (least concession between two offers that the grammar allows, 1 % of the list price), and
    /// `unusable` (`repair`, or `fault`: an answer that cannot be used loses the match).
    ///
    /// # Errors
    /// A parameter that cannot be read.
    pub fn new(
        brief: &Brief,
        params: &mut Params,
        bound: Bound,
        temperature: f64,
    ) -> Result<Haggler, ParamError> {
        let prompt = Prompt::new(brief, params)?;
        let list_price = brief.item.list_price;
        let mut speaker = Speaker::new(params, prompt.negotiator(), temperature)?;
        let unusable = Unusable::take(params)?;
        if unusable == Unusable::Fault {
            speaker.ask_once();
        }
        Ok(Haggler {
            speaker,
            unusable,
            attacks: (prompt.manner == Manner::Injector).then(|| Attacks::any(brief)),
            prompt,
            bound,
            step: params.price("step", list_price)?.unwrap_or(list_price / 100),
            lengths: Lengths::take(params)?,
            view: View::new(brief, params)?,
        })
    }

    /// Makes the next move; see [`crate::Agent::act`].
    ///
    /// # Panics
    /// If the model's answer cannot be used, and that is to be a fault.
    pub fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let question = self.prompt.turn(&self.view, news);
        let legal = Legal::now(&self.view, self.limit(), self.step);
        let grammar = grammar::answer(&legal, self.lengths);
        let (view, bound) = (&mut self.view, self.bound);
        let played = self.speaker.ask(&question, &grammar, |text| play(view, bound, text));
        let reply = played.unwrap_or_else(|| self.without_answer());
        self.spoken(reply)
    }

    fn without_answer(&mut self) -> Reply {
        if self.unusable == Unusable::Fault && self.speaker.is_there() {
            training::metric("invalid", 1);
            panic!("the model's answer cannot be used");
        }
        self.view.answer(self.view.concede(self.view.clock()))
    }

    /// The worst price that the grammar allows: with no bound the far end of the public range.
    fn limit(&self) -> u32 {
        let view = &self.view;
        match (self.bound, view.role) {
            (Bound::Reserve, _) => view.reserve,
            (Bound::Nothing, Role::Buyer) => view.high.max(view.reserve),
            (Bound::Nothing, Role::Seller) => view.low.min(view.reserve),
        }
    }

    /// Cuts the talk, and puts an attack behind it if that is the seat's manner.
    fn spoken(&mut self, reply: Reply) -> Reply {
        let bytes_max = self.lengths.talk as usize;
        let attack = self.attacks.as_mut().map(|attacks| attacks.next(reply.action));
        let Some(attack) = attack else {
            let talk = cut(&reply.talk, bytes_max).to_owned();
            return reply.saying(talk);
        };
        let words = cut(&reply.talk, bytes_max.saturating_sub(attack.len() + 1));
        let talk = format!("{words}\n{attack}");
        reply.saying(cut(talk.trim_start(), bytes_max).to_owned())
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Makes the move that an answer names, or says why it cannot be made.
fn play(view: &mut View, bound: Bound, text: &str) -> Result<Reply, String> {
    let answer = reply::read(text, view.role).map_err(|error| error.to_string())?;
    if !answer.thought.is_empty() {
        trace::note(&format!("thought: {}", answer.thought));
    }
    let made = match bound {
        Bound::Reserve => view.attempt(answer.action),
        Bound::Nothing => view.attempt_unbounded(answer.action),
    };
    Ok(made.map_err(|error| error.to_string())?.saying(answer.talk))
}
