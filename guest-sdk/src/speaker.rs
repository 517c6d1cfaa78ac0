//! A conversation with a language model over a whole match, with everything that can go wrong.
//!
//! The model is asked once a turn and once more to repair an answer that cannot be used. A model
//! that is not granted, refuses the conversation or has used up its budget is not asked again,
//! since a host counts it as a fault to insist; the trace says why. Not every model can be held to
//! a grammar or takes min-p, and a refusal does not say what was too much: a refused request that
//! asks for them is made once more without, and so are all later ones. A conversation that would
//! not fit the model's context any more is begun anew from the first message: each turn's message
//! says where the match stands, so only what was said is forgotten.
//!
//! Not here: what is asked (`prompt`), what answers mean (`reply`), and what to do without one.

use crate::chat::{self, Chat, ChatError, ChatRole, Completion, ModelInfo, Sampling};
use crate::params::{ParamError, Params};
use crate::prompt;
use crate::trace;

/// How often the model is asked in one turn: once, and once more to repair its answer.
const ATTEMPTS_MAX: u32 = 2;

/// How often a conversation is begun anew in one match.
const RESTARTS_MAX: u32 = 16;

/// A model that speaks for one seat.
pub struct Speaker {
    opening: String,
    /// Its grammar is that of the last turn, and `None` where answers are not bound by one.
    sampling: Sampling,
    /// `None` once no model can be asked.
    conversation: Option<Conversation>,
    attempts_max: u32,
    restarts_left: u32,
}

struct Conversation {
    model: ModelInfo,
    chat: Chat,
    /// Tokens of everything said so far, as the model last counted them.
    tokens: u32,
}

impl Speaker {
    /// Begins a conversation with its first message. Takes the parameters `model` (the first that
    /// is granted unless named), `tokens` (most of one answer, 300), `temperature` (0 to 2),
    /// `min_p` (least probability of a token as a share of the likeliest one's, 0.05) and `grammar`
    /// (`yes` binds answers by a grammar if the model can be held to one, `no` does not).
    ///
    /// # Errors
    /// A parameter that cannot be read.
    pub fn new(
        params: &mut Params,
        opening: String,
        temperature: f64,
    ) -> Result<Speaker, ParamError> {
        let max_tokens = params.count("tokens", 300, [1, 4_096])?;
        let temperature = params.number("temperature", temperature, [0.0, 2.0])?;
        let min_p = params.number("min_p", 0.05, [0.0, 1.0])?;
        let sampling = Sampling {
            max_tokens,
            temperature_milli: thousandths(temperature),
            min_p_milli: thousandths(min_p),
            grammar: (params.choice("grammar", &["yes", "no"])? == 0).then(String::new),
            ..Sampling::default()
        };
        let conversation = match find(params.text("model")).and_then(|m| begin(m, &opening)) {
            Ok(conversation) => Some(conversation),
            Err(error) => {
                trace::note(&format!("plays without a model: {error}"));
                None
            }
        };
        Ok(Speaker {
            opening,
            sampling,
            conversation,
            attempts_max: ATTEMPTS_MAX,
            restarts_left: RESTARTS_MAX,
        })
    }

    /// Asks for no repairs from now on.
    pub fn ask_once(&mut self) {
        self.attempts_max = 1;
    }

    /// Says whether there is a model that can still be asked.
    pub fn is_there(&self) -> bool {
        self.conversation.is_some()
    }

    /// Asks, and returns what `read` makes of the answer, or nothing if there is no answer that
    /// it can use. The reason why it cannot use one goes back to the model.
    pub fn ask<T>(
        &mut self,
        question: &str,
        grammar: &str,
        read: impl FnMut(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.conversation.as_ref()?;
        match self.converse(question, grammar, read) {
            Ok(found) => found,
            Err(error) => {
                trace::note(&format!("plays on without a model: {error}"));
                self.conversation = None;
                None
            }
        }
    }

    fn converse<T>(
        &mut self,
        question: &str,
        grammar: &str,
        mut read: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ChatError> {
        self.make_room(question)?;
        let Some(conversation) = &mut self.conversation else {
            return Ok(None);
        };
        if let Some(bound) = &mut self.sampling.grammar {
            grammar.clone_into(bound);
        }
        let mut message = question.to_owned();
        for _ in 0..self.attempts_max {
            conversation.chat.add(ChatRole::User, &message)?;
            let completion = complete(&conversation.chat, &mut self.sampling)?;
            conversation.tokens = completion.input_tokens.saturating_add(completion.output_tokens);
            match read(&completion.text) {
                Ok(found) => return Ok(Some(found)),
                Err(reason) => {
                    trace::note(&format!("an answer cannot be used: {reason}"));
                    message = prompt::again(&reason);
                }
            }
        }
        trace::note("has no usable answer for this turn");
        Ok(None)
    }

    /// Begins the conversation anew if the question and its answer might not fit behind it. A
    /// question has at most as many tokens as bytes.
    fn make_room(&mut self, question: &str) -> Result<(), ChatError> {
        let Some(Conversation { model, tokens, .. }) = &self.conversation else {
            return Ok(());
        };
        let added = u32::try_from(question.len()).unwrap_or(u32::MAX);
        let needed = tokens.saturating_add(added).saturating_add(self.sampling.max_tokens);
        if *tokens == 0 || needed <= model.context_tokens || self.restarts_left == 0 {
            return Ok(());
        }
        trace::note("begins the conversation anew: the model's context is full");
        self.restarts_left -= 1;
        let model = model.clone();
        self.conversation = None;
        self.conversation = Some(begin(model, &self.opening)?);
        Ok(())
    }
}

/// Asks for a reply; if that is refused, for one without what not every model offers, and forgets
/// for good that it was wanted. A host that executes the match again from its record refuses the
/// first request as the model did, since only the second one stands there.
fn complete(chat: &Chat, sampling: &mut Sampling) -> Result<Completion, ChatError> {
    let asks_more = sampling.grammar.is_some() || sampling.min_p_milli > 0;
    match chat.complete(sampling) {
        Err(ChatError::InvalidInput(_)) if asks_more => {
            trace::note("a request is refused: asks on without a grammar and with min_p 0");
            sampling.grammar = None;
            sampling.min_p_milli = 0;
            chat.complete(sampling)
        }
        asked => asked,
    }
}

fn thousandths(number: f64) -> u32 {
    (number * 1_000.0 + 0.5) as u32
}

fn find(named: Option<String>) -> Result<ModelInfo, ChatError> {
    let mut granted = chat::models().into_iter();
    let found = match named {
        Some(name) => granted.find(|model| model.name == name),
        None => granted.next(),
    };
    found.ok_or(ChatError::ModelNotSupported)
}

fn begin(model: ModelInfo, opening: &str) -> Result<Conversation, ChatError> {
    let chat = Chat::open(&model.name)?;
    chat.add(ChatRole::System, opening)?;
    Ok(Conversation { model, chat, tokens: 0 })
}
