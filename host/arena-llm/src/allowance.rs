//! What one seat may still spend on language models in one match and in one turn.
//!
//! [`Allowance::ask`] is the only way from a seat to a model: it refuses before the model is asked,
//! checks what comes back, and charges for it. A call that fails costs nothing.
//!
//! Records hold replies and no refusals, so every refusal here follows from what was replied before
//! or reads as [`Refusal::Prompt`] does: a match executed again from its record, with no model and
//! no tokenizer, is refused the same requests in the same words.
//!
//! Not here: who may ask which model (`arena-sandbox`).

use arena_core::config::Limits;

use crate::model::{Completion, FinishReason, LanguageModel, ModelError};
use crate::request::Request;

/// The tokens that a message, and the prompt as a whole, may need besides one for each byte, where
/// a model cannot count its prompts: role marks, and what a template adds.
pub const FRAME_TOKENS: u32 = 32;

/// Calls and tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Calls.
    pub calls: u32,
    /// Tokens of prompts, all calls together.
    pub input_tokens: u32,
    /// Tokens of replies, all calls together.
    pub output_tokens: u32,
}

/// The budget of one seat, less what it has spent.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// Of the match.
    left: Budget,
    /// Of the turn: calls and output tokens.
    turn_left: [u32; 2],
    /// What each turn begins with.
    turn: [u32; 2],
}

/// A model's reply, paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the model was asked, with `max_tokens` cut to what was left. Its hash is what records
    /// hold.
    pub request: Request,
    /// What it replied.
    pub completion: Completion,
}

/// Why a seat gets no reply. All but the last are the seat's to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing is left of calls, input or output tokens, whatever the request.
    Exhausted,
    /// The request breaks a bound that holds for all models; the text says which.
    Invalid(String),
    /// The prompt has more tokens than are left of the budget or than fit the model's context, or
    /// the model refuses the request. Which of these, a record does not say.
    Prompt,
    /// The model or its provider failed; the text is for the operator.
    Failed(String),
}

impl Allowance {
    /// Returns what a seat may spend in a match, of which nothing is spent.
    pub fn new(limits: &Limits) -> Allowance {
        let turn = [limits.model_calls_turn_max, limits.model_output_tokens_turn_max];
        let left = Budget {
            calls: limits.model_calls_max,
            input_tokens: limits.model_input_tokens_max,
            output_tokens: limits.model_output_tokens_max,
        };
        Allowance { left, turn_left: turn, turn }
    }

    /// Gives the seat what a turn may use.
    pub fn begin_turn(&mut self) {
        self.turn_left = self.turn;
    }

    /// Returns what is left now: the less of what the match and the turn leave.
    pub fn remaining(&self) -> Budget {
        let Budget { calls, input_tokens, output_tokens } = self.left;
        let [turn_calls, turn_output] = self.turn_left;
        Budget {
            calls: calls.min(turn_calls),
            input_tokens,
            output_tokens: output_tokens.min(turn_output),
        }
    }

    /// Asks a model, within what is left.
    ///
    /// Before the model is called, its count of the prompt is held against the input tokens that
    /// are left and against its context. A model that cannot count is taken to need a token for
    /// each byte and [`FRAME_TOKENS`] for each message, so its last prompts may be refused although
    /// they would have fitted. Where it reports more than that, or more than its context, it fails:
    /// the server's fault is not the seat's.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn ask(
        &mut self,
        model: &dyn LanguageModel,
        mut request: Request,
    ) -> Result<Answer, Refusal> {
        if let Some(fault) = request.find_fault() {
            return Err(Refusal::Invalid(fault));
        }
        let left = self.remaining();
        if left.calls == 0 || left.input_tokens == 0 || left.output_tokens == 0 {
            return Err(Refusal::Exhausted);
        }
        let clamped = request.max_tokens > left.output_tokens;
        request.max_tokens = request.max_tokens.min(left.output_tokens);

        // A prompt that fills the context leaves no room for a reply.
        let context = model.info().context_tokens;
        let input_max = left.input_tokens.min(context.saturating_sub(1));
        let bound = prompt_tokens_bound(&request);
        let counted = model.count_prompt(&request).map_err(refused)?;
        let fits = match counted {
            Some(count) => count <= input_max,
            None => bound <= left.input_tokens,
        };
        if !fits {
            return Err(Refusal::Prompt);
        }
        let mut completion = model.complete(&request).map_err(refused)?;
        completion.check(&request).map_err(Refusal::Failed)?;
        let input_tokens = completion.input_tokens;
        match counted {
            Some(count) if count != input_tokens => {
                let detail = format!(
                    "counted {count} tokens of a prompt and then reported {input_tokens} of it"
                );
                return Err(Refusal::Failed(detail));
            }
            // It was asked although it cannot count, since even the bound fits. More than that is
            // no count of this prompt, and the seat must not pay for it.
            None if input_tokens > input_max || input_tokens > bound => {
                let detail = format!(
                    "reported {input_tokens} tokens of a prompt that has at most {bound}, in a \
                     context of {context}"
                );
                return Err(Refusal::Failed(detail));
            }
            _ => {}
        }
        if clamped && completion.finish_reason == FinishReason::Length {
            completion.finish_reason = FinishReason::Budget;
        }
        self.charge(&completion);
        Ok(Answer { request, completion })
    }

    fn charge(&mut self, completion: &Completion) {
        let spend = |left: &mut u32, spent: u32| {
            *left = left.checked_sub(spent).expect("what is left was checked before");
        };
        spend(&mut self.left.calls, 1);
        spend(&mut self.left.input_tokens, completion.input_tokens);
        spend(&mut self.left.output_tokens, completion.output_tokens);
        spend(&mut self.turn_left[0], 1);
        spend(&mut self.turn_left[1], completion.output_tokens);
    }
}

/// Returns more tokens than a request's prompt has, for models that cannot count them. No tokenizer
/// in use makes more tokens than there are bytes, but a server may add words of its own.
fn prompt_tokens_bound(request: &Request) -> u32 {
    let messages = request.messages.iter().map(|message| message.text.len() as u64);
    let frames = (request.messages.len() as u64 + 1) * u64::from(FRAME_TOKENS);
    u32::try_from(messages.sum::<u64>() + frames).unwrap_or(u32::MAX)
}

fn refused(error: ModelError) -> Refusal {
    match error {
        ModelError::InvalidInput(_) => Refusal::Prompt,
        // It was found by its name, so that it does not know itself.
        ModelError::NotSupported => Refusal::Failed(error.to_string()),
        ModelError::Unavailable(detail) => Refusal::Failed(detail),
    }
}
