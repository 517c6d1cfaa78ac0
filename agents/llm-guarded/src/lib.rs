//! LLM guarded: a language model proposes, and a rule that no words reach bounds every price, deal
//! and number that leaves the seat (Boulware as the bound; Faratin, Sierra, Jennings 1998).

use arena_guest::grammar::{self, Legal, Lengths};
use arena_guest::params;
use arena_guest::prompt::Prompt;
use arena_guest::reply::{self, Answer};
use arena_guest::speaker::Speaker;
use arena_guest::tactic::Curve;
use arena_guest::trace;
use arena_guest::view::View;
use arena_guest::wording;
use arena_guest::{Agent, Brief, Event, Move, Reply, Role};

/// The rule is a curve r(t) from the own best price to the reserve, and the model moves in a
/// corridor along it. Whatever the model says:
///
/// - an offer never concedes more than r(t), lies never more than `patience` turns behind it, and
///   never takes back what an earlier one conceded;
/// - a deal is made when an offer is as good as the own next price, and no worse one; where nobody
///   can answer any more, every offer within the reserve is taken;
/// - it never leaves, since no deal is worth nothing, and never passes: it repeats its price;
/// - it says no number but public ones and its own offers (see [`arena_guest::wording`]).
///
/// Without a usable answer it plays the rule and says nothing. Parameters: `b` (0.5), `k`, `curve`,
/// `patience` (3), `persona`, `grammar`, `step`, `thought`, `talk`, `hear`, `item`, `model`,
/// `tokens`, `temperature`, `min_p`, `low`, `high`, `turns`.
pub struct LlmGuarded {
    view: View,
    curve: Curve,
    patience: u32,
    step: u32,
    lengths: Lengths,
    prompt: Prompt,
    speaker: Speaker,
    /// Amounts in the item's title, in cents.
    in_title: Vec<u32>,
}

impl Agent for LlmGuarded {
    fn begin(brief: &Brief) -> LlmGuarded {
        params::read(brief, |params| {
            let prompt = Prompt::new(brief, params)?;
            let list_price = brief.item.list_price;
            Ok(LlmGuarded {
                speaker: Speaker::new(params, prompt.negotiator(), 0.7)?,
                prompt,
                curve: Curve::take(params, 0.5)?,
                patience: params.count("patience", 3, [0, 1_000])?,
                step: params.price("step", list_price)?.unwrap_or(list_price / 100),
                lengths: Lengths::take(params)?,
                view: View::new(brief, params)?,
                in_title: wording::amounts(&brief.item.title),
            })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let rule = self.rule_at(self.view.turn_index);
        let question = self.prompt.turn(&self.view, news);
        let grammar = grammar::answer(&Legal::now(&self.view, rule, self.step), self.lengths);
        let role = self.view.role;
        let read = |text: &str| reply::read(text, role).map_err(|error| error.to_string());
        match self.speaker.ask(&question, &grammar, read) {
            Some(answer) => self.guard(&answer, rule),
            None => self.view.answer(rule),
        }
    }
}

impl LlmGuarded {
    /// The price up to which it may concede at an own turn.
    fn rule_at(&self, turn_index: u32) -> u32 {
        self.view.concede(self.curve.conceded(self.view.clock_at(turn_index)))
    }

    fn guard(&mut self, answer: &Answer, rule: u32) -> Reply {
        if !answer.thought.is_empty() {
            trace::note(&format!("thought: {}", answer.thought));
        }
        let next = self.next(answer.action, rule);
        let reply = self.view.answer(next);
        if reply.action != answer.action {
            trace::note(&format!("proposed {:?}, plays {:?}", answer.action, reply.action));
        }
        let words = wording::keep(&answer.talk, |cents| self.may_say(cents));
        let talk = &words[..words.floor_char_boundary(self.lengths.talk as usize)];
        reply.saying(talk.to_owned())
    }

    /// The own next price: what the model proposes, as far as the corridor allows.
    fn next(&self, proposed: Move, rule: u32) -> u32 {
        let view = &self.view;
        let behind = self.rule_at(view.turn_index.saturating_sub(self.patience));
        let last = view.own.last().copied().unwrap_or(view.start());
        let price = match proposed {
            _ if view.is_last_own_turn() => return rule,
            Move::Offer(cents) => cents,
            Move::Accept(_) => rule,
            Move::Reject | Move::Walk => last,
        };
        match view.role {
            Role::Buyer => price.min(rule).max(behind).max(last),
            Role::Seller => price.max(rule).min(behind).min(last),
        }
    }

    fn may_say(&self, cents: u32) -> bool {
        let view = &self.view;
        let offered = view.own.contains(&cents) || view.theirs.contains(&cents);
        let public = cents == view.list_price || self.in_title.contains(&cents);
        offered || public && cents != view.reserve
    }
}

arena_guest::export!(LlmGuarded);
