//! What one seat may still spend on language models in one match.
//!
//! A call is asked for with [`Allowance::admit`], made by the caller, and paid for with
//! [`Allowance::settle`]. A call that fails costs nothing.

use arena_core::config::Limits;

use crate::model::{Completion, FinishReason, ModelError};
use crate::request::Request;

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

impl Budget {
    /// Returns what a seat may spend in one match.
    pub fn of(limits: &Limits) -> Budget {
        Budget {
            calls: limits.model_calls_max,
            input_tokens: limits.model_input_tokens_max,
            output_tokens: limits.model_output_tokens_max,
        }
    }
}

/// The budget of one seat, less what it has spent.
#[derive(Clone, Debug)]
pub struct Allowance {
    left: Budget,
}

/// A request that the allowance covers, with `max_tokens` cut to what is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// What the model is asked. Its hash is what records hold.
    pub request: Request,
    clamped: bool,
}

/// Nothing is left of calls, input tokens or output tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

impl Allowance {
    /// Returns an allowance of which nothing is spent.
    pub fn new(budget: Budget) -> Allowance {
        Allowance { left: budget }
    }

    /// Returns what is left.
    pub fn remaining(&self) -> Budget {
        self.left
    }

    /// Covers a request while something is left of calls, input and output tokens.
    ///
    /// Only the model can count the prompt, so the last call may exceed the input budget, by at
    /// most the model's context.
    ///
    /// # Errors
    /// [`Exhausted`], whatever the request.
    pub fn admit(&self, mut request: Request) -> Result<Admitted, Exhausted> {
        let Budget { calls, input_tokens, output_tokens } = self.left;
        if calls == 0 || input_tokens == 0 || output_tokens == 0 {
            return Err(Exhausted);
        }
        let clamped = request.max_tokens > output_tokens;
        request.max_tokens = request.max_tokens.min(output_tokens);
        Ok(Admitted { request, clamped })
    }

    /// Pays for the reply to an admitted request, and says `Budget` where the allowance and not
    /// the caller's own `max_tokens` cut it.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] where the model returned more tokens than it was asked for:
    /// it cannot be trusted to count. Nothing is charged then.
    pub fn settle(
        &mut self,
        admitted: &Admitted,
        mut completion: Completion,
    ) -> Result<Completion, ModelError> {
        let asked = admitted.request.max_tokens;
        if completion.output_tokens > asked {
            let found = completion.output_tokens;
            let detail = format!("replied with {found} tokens, was asked for at most {asked}");
            return Err(ModelError::Unavailable(detail));
        }
        self.left.calls = self.left.calls.saturating_sub(1);
        self.left.input_tokens = self.left.input_tokens.saturating_sub(completion.input_tokens);
        self.left.output_tokens = self.left.output_tokens.saturating_sub(completion.output_tokens);
        if admitted.clamped && completion.finish_reason == FinishReason::Length {
            completion.finish_reason = FinishReason::Budget;
        }
        Ok(completion)
    }
}

#[cfg(test)]
mod tests {
    use arena_core::seat::Sampling;

    use super::*;
    use crate::request::{CallKey, ChatRole, Message};

    fn request(max_tokens: u32) -> Request {
        Request {
            model: "small".to_owned(),
            messages: vec![Message {
                role: ChatRole::User,
                text: "hello".to_owned(),
                tokens: vec![],
            }],
            max_tokens,
            sampling: Sampling::GREEDY,
            stop: vec![],
            grammar: None,
            key: CallKey { seat_seed: 0, call_index: 0 },
        }
    }

    fn completion(input_tokens: u32, output_tokens: u32) -> Completion {
        let finish_reason = FinishReason::Length;
        let text = "well".to_owned();
        Completion { text, finish_reason, input_tokens, output_tokens, tokens: None }
    }

    fn allowance(calls: u32, input_tokens: u32, output_tokens: u32) -> Allowance {
        Allowance::new(Budget { calls, input_tokens, output_tokens })
    }

    #[test]
    fn a_reply_is_charged_to_all_three_budgets() {
        let mut allowance = allowance(3, 100, 50);
        let admitted = allowance.admit(request(10)).expect("something is left");
        let settled = allowance.settle(&admitted, completion(30, 10)).expect("within bounds");
        assert_eq!(settled.finish_reason, FinishReason::Length);
        let left = Budget { calls: 2, input_tokens: 70, output_tokens: 40 };
        assert_eq!(allowance.remaining(), left);
    }

    #[test]
    fn max_tokens_is_cut_to_what_is_left_and_the_reply_says_budget() {
        let mut allowance = allowance(3, 100, 4);
        let admitted = allowance.admit(request(10)).expect("something is left");
        assert_eq!(admitted.request.max_tokens, 4);
        let settled = allowance.settle(&admitted, completion(1, 4)).expect("within bounds");
        assert_eq!(settled.finish_reason, FinishReason::Budget);
        assert_eq!(allowance.admit(request(1)), Err(Exhausted));
    }

    #[test]
    fn each_of_the_three_budgets_ends_the_calls() {
        for spent in [allowance(0, 9, 9), allowance(9, 0, 9), allowance(9, 9, 0)] {
            assert_eq!(spent.admit(request(1)), Err(Exhausted));
        }
    }

    #[test]
    fn a_prompt_beyond_the_input_budget_leaves_nothing() {
        let mut allowance = allowance(3, 10, 50);
        let admitted = allowance.admit(request(10)).expect("something is left");
        allowance.settle(&admitted, completion(11, 1)).expect("within bounds");
        assert_eq!(allowance.remaining().input_tokens, 0);
        assert_eq!(allowance.admit(request(1)), Err(Exhausted));
    }

    #[test]
    fn a_model_that_returns_more_than_asked_is_unavailable_and_not_paid() {
        let mut allowance = allowance(3, 10, 50);
        let admitted = allowance.admit(request(10)).expect("something is left");
        let error = allowance.settle(&admitted, completion(1, 11)).expect_err("too many tokens");
        let detail = "replied with 11 tokens, was asked for at most 10".to_owned();
        assert_eq!(error, ModelError::Unavailable(detail));
        assert_eq!(allowance.remaining().calls, 3);
    }

    #[test]
    fn the_budget_of_a_seat_comes_from_the_limits() {
        let budget = Budget::of(&Limits::default());
        assert_eq!(budget, Budget { calls: 64, input_tokens: 100_000, output_tokens: 10_000 });
    }
}
