//! A model that answers from the record of one seat's match, without the model that answered
//! first.
//!
//! It gives a recorded reply to the recorded request and to no other: whoever asks otherwise
//! is refused as a model refuses, and so shows in its moves, its trace or its calls that it is
//! not what played.
//!
//! Not here: whether the recorded replies are what the model would say.

use std::sync::Arc;

use arena_core::dialogue;
use arena_core::seat::ModelCall;

use crate::model::{Completion, FinishReason, LanguageModel, ModelError, ModelInfo, ReplyTokens};
use crate::request::Request;

/// One model of one seat of one match, as recorded.
pub struct Recorded {
    info: ModelInfo,
    calls: Arc<[ModelCall]>,
}

impl Recorded {
    /// Returns the model that `info` describes. `calls` are all calls of the seat, those of its
    /// other models too: they are counted together.
    pub fn new(info: ModelInfo, calls: Arc<[ModelCall]>) -> Recorded {
        Recorded { info, calls }
    }

    /// Finds the call that a request was, with its number.
    fn find(&self, request: &Request) -> Result<(usize, &ModelCall), ModelError> {
        let number = request.key.call_index as usize;
        self.calls
            .get(number)
            .filter(|call| call.model == self.info.name && call.request_sha256 == request.sha256())
            .map(|call| (number, call))
            .ok_or_else(unrecorded)
    }
}

impl LanguageModel for Recorded {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    /// Says what is recorded of the request, so that a budget admits again what it admitted.
    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        Ok(Some(self.find(request)?.1.input_tokens))
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        let (number, call) = self.find(request)?;
        let tokens = match &call.tokens {
            None => None,
            Some(tokens) => {
                let prompt = dialogue::prompt(&self.calls, number).ok_or_else(unrecorded)?;
                Some(ReplyTokens { prompt, output: tokens.output.clone() })
            }
        };
        let completion = Completion {
            text: call.text.clone(),
            // The seat's allowance tells what it cut from what the caller cut.
            finish_reason: match call.finish_reason {
                0 => FinishReason::Stop,
                _ => FinishReason::Length,
            },
            input_tokens: call.input_tokens,
            output_tokens: call.output_tokens,
            tokens,
        };
        // What no model can have replied was not replied. Were it to fail here as a model fails,
        // a forged record would end in a void in place of a difference.
        completion.check(request).map_err(|_| unrecorded())?;
        Ok(completion)
    }
}

fn unrecorded() -> ModelError {
    ModelError::InvalidInput("not on the record".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_core::seat::{CallTokens, SampledToken, Sampling};

    use crate::request::{CallKey, ChatRole, Message};

    fn request(text: &str, call_index: u32) -> Request {
        Request {
            model: "small".to_owned(),
            messages: vec![Message { role: ChatRole::User, text: text.to_owned(), tokens: vec![] }],
            max_tokens: 8,
            sampling: Sampling::GREEDY,
            stop: vec![],
            grammar: None,
            key: CallKey { seat_seed: 1, call_index },
        }
    }

    fn call(model: &str, request: &Request, finish_reason: u8) -> ModelCall {
        ModelCall {
            act_index: 0,
            model: model.to_owned(),
            request_sha256: request.sha256(),
            sampling: request.sampling,
            is_grammar_bound: request.grammar.is_some(),
            text: "well".to_owned(),
            finish_reason,
            input_tokens: 3,
            output_tokens: 1,
            weight_milli: None,
            tokens: None,
        }
    }

    fn model(calls: &[ModelCall]) -> Recorded {
        let info = ModelInfo {
            name: "small".to_owned(),
            context_tokens: 64,
            sha256: [7; 32],
            engine: String::new(),
        };
        Recorded::new(info, calls.into())
    }

    #[test]
    fn the_recorded_request_is_given_the_recorded_reply() {
        for (code, reason) in
            [(0, FinishReason::Stop), (1, FinishReason::Length), (2, FinishReason::Length)]
        {
            let asked = request("what do you pay?", 0);
            let reply = model(&[call("small", &asked, code)]).complete(&asked).expect("a reply");
            let wanted = Completion {
                text: "well".to_owned(),
                finish_reason: reason,
                input_tokens: 3,
                output_tokens: 1,
                tokens: None,
            };
            assert_eq!(reply, wanted);
        }
    }

    #[test]
    fn tokens_come_back_whole_although_each_call_holds_what_it_adds() {
        let written =
            |id| SampledToken { id, logprob_micro: -5, sampled_logprob_micro: -3, top: vec![] };
        let (first, second) = (request("one", 0), request("two", 1));
        let tokens = |reused, prompt| CallTokens { reused, prompt, output: vec![written(9)] };
        let calls = [
            ModelCall { tokens: Some(tokens(0, vec![1, 2, 3])), ..call("small", &first, 0) },
            ModelCall {
                input_tokens: 5,
                tokens: Some(tokens(4, vec![4])),
                ..call("small", &second, 0)
            },
        ];
        let reply = model(&calls).complete(&second).expect("a reply");
        let wanted = ReplyTokens { prompt: vec![1, 2, 3, 9, 4], output: vec![written(9)] };
        assert_eq!(reply.tokens, Some(wanted));
    }

    #[test]
    fn a_recorded_reply_that_cannot_be_one_is_none() {
        let asked = request("one", 0);
        let broken = CallTokens { reused: 5, prompt: vec![1], output: vec![] };
        for lie in [
            ModelCall { output_tokens: 9, ..call("small", &asked, 0) },
            ModelCall { input_tokens: 0, ..call("small", &asked, 0) },
            ModelCall { tokens: Some(broken), ..call("small", &asked, 0) },
        ] {
            let found = model(&[lie]).complete(&asked);
            assert_eq!(found, Err(ModelError::InvalidInput("not on the record".to_owned())));
        }
    }

    #[test]
    fn a_prompt_is_counted_as_it_was_and_only_if_it_is_recorded() {
        let asked = request("one", 0);
        let recorded = model(&[call("small", &asked, 0)]);
        assert_eq!(recorded.count_prompt(&asked), Ok(Some(3)));
        assert!(recorded.count_prompt(&request("two", 0)).is_err());
    }

    #[test]
    fn every_other_request_is_refused() {
        let (asked, later) = (request("one", 0), request("two", 1));
        let recorded = model(&[call("small", &asked, 0), call("other", &later, 0)]);
        let refused = |request: &Request| {
            matches!(recorded.complete(request), Err(ModelError::InvalidInput(_)))
        };
        assert!(!refused(&asked));
        assert!(refused(&request("another text", 0)), "another text was answered");
        assert!(refused(&request("one", 1)), "another number was answered");
        assert!(refused(&later), "a reply of another model was given");
        assert!(refused(&request("three", 2)), "a call beyond the record was answered");
    }
}
