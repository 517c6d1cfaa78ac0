//! LLM haggler: does what a language model answers, told the rules, its role and its reserve and
//! given no strategy (minimal prompt baseline; Thought, Talk and Action lines of arXiv 2604.09855).

use arena_guest::chat::{self, Chat, ChatError, ChatRole, Sampling};
use arena_guest::game::dollars;
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Move, Reply, params, prompt, reply, trace};

/// How often the model is asked in one turn: once, and once more to repair its answer.
const ATTEMPTS_MAX: u32 = 2;

/// Plays the answers of a model, and notes its thoughts in the trace. An answer that cannot be
/// read, is illegal now or goes beyond the reserve is sent back once with the reason.
///
/// Without a usable answer it plays the safe rule of `linear`: it concedes evenly over its
/// turns from its best price to its reserve, takes an offer that is as good, and says nothing.
/// It does so for the turn where the repair fails, and for the rest of the match once the model
/// is not granted, refuses the conversation or has used up the budget; the trace says which.
///
/// Parameters: `model` (the first that is granted unless named), `tokens` (most of one answer),
/// `temperature` (0 to 2), `talk` (most bytes that are sent of it), `low`, `high`, `turns`.
pub struct LlmHaggler {
    brief: Brief,
    view: View,
    sampling: Sampling,
    talk_bytes_max: usize,
    /// `None` once no model can be asked.
    chat: Option<Chat>,
    /// The offer last made without the model, of which the model has not heard yet.
    stand_in: Option<u32>,
}

impl Agent for LlmHaggler {
    fn begin(brief: &Brief) -> LlmHaggler {
        let (mut agent, model) = params::read(brief, |params| {
            let tokens = params.count("tokens", 300, [1, 4_096])?;
            let temperature = params.number("temperature", 0.7, [0.0, 2.0])?;
            let agent = LlmHaggler {
                brief: brief.clone(),
                sampling: Sampling {
                    max_tokens: tokens,
                    temperature_milli: (temperature * 1_000.0 + 0.5) as u32,
                    ..Sampling::default()
                },
                talk_bytes_max: params.count("talk", 1_000, [0, 1_000])? as usize,
                chat: None,
                stand_in: None,
                view: View::new(brief, params)?,
            };
            Ok((agent, params.text("model")))
        });
        match open(brief, model) {
            Ok(chat) => agent.chat = Some(chat),
            Err(error) => trace::note(&format!("plays without a model: {error}")),
        }
        agent
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        match self.ask(news) {
            Some(reply) => reply,
            None => self.fall_back(),
        }
    }
}

/// Opens a conversation with the rules in it.
fn open(brief: &Brief, model: Option<String>) -> Result<Chat, ChatError> {
    let granted = || chat::models().into_iter().next().map(|model| model.name);
    let name = model.or_else(granted).ok_or(ChatError::ModelNotSupported)?;
    let chat = Chat::open(&name)?;
    chat.add(ChatRole::System, &prompt::system(brief))?;
    Ok(chat)
}

impl LlmHaggler {
    /// Returns the model's move, or nothing if there is none that can be made. A model that fails
    /// is not asked again: budgets do not grow and conversations do not shrink, and a host
    /// counts it as a fault to insist.
    fn ask(&mut self, news: &[Event]) -> Option<Reply> {
        let chat = self.chat.take()?;
        match self.converse(&chat, self.question(news)) {
            Ok(reply) => {
                self.chat = Some(chat);
                reply
            }
            Err(error) => {
                trace::note(&format!("plays on without a model: {error}"));
                None
            }
        }
    }

    fn question(&self, news: &[Event]) -> String {
        let turns_before = self.view.turn_index + self.view.heard_count;
        let question = prompt::turn(&self.brief, news, turns_before);
        match self.stand_in.map(dollars) {
            Some(price) => {
                format!("In place of your last answer, {price} was offered.\n{question}")
            }
            None => question,
        }
    }

    fn converse(&mut self, chat: &Chat, question: String) -> Result<Option<Reply>, ChatError> {
        let mut message = question;
        for _ in 0..ATTEMPTS_MAX {
            chat.add(ChatRole::User, &message)?;
            self.stand_in = None;
            let completion = chat.complete(&self.sampling)?;
            match self.play(&completion.text) {
                Ok(reply) => return Ok(Some(reply)),
                Err(reason) => {
                    trace::note(&format!("an answer cannot be used: {reason}"));
                    message = prompt::again(&reason);
                }
            }
        }
        trace::note("falls back for this turn");
        Ok(None)
    }

    /// Makes the move that an answer names, or says why it cannot be made.
    fn play(&mut self, text: &str) -> Result<Reply, String> {
        let answer = reply::read(text, self.brief.role).map_err(|error| error.to_string())?;
        if !answer.thought.is_empty() {
            trace::note(&format!("thought: {}", answer.thought));
        }
        let reply = self.view.attempt(answer.action).map_err(|error| error.to_string())?;
        let talk = &answer.talk[..answer.talk.floor_char_boundary(self.talk_bytes_max)];
        Ok(reply.saying(talk.to_owned()))
    }

    fn fall_back(&mut self) -> Reply {
        let reply = self.view.answer(self.view.concede(self.view.clock()));
        if let Move::Offer(cents) = reply.action {
            self.stand_in = Some(cents);
        }
        reply
    }
}

arena_guest::export!(LlmHaggler);
