//! A model that answers from the record of one seat's match, without the model that answered
//! first.
//!
//! It gives a recorded reply to the recorded request and to no other: whoever asks otherwise
//! is refused as a model refuses, and so shows in its moves, its trace or its calls that it is
//! not what played.
//!
//! Not here: whether the recorded replies are what the model would say.

use std::sync::Arc;

use arena_core::seat::ModelCall;

use crate::model::{Completion, FinishReason, LanguageModel, ModelError, ModelInfo};
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
}

impl LanguageModel for Recorded {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        let number = request.key.call_index as usize;
        let recorded = self
            .calls
            .get(number)
            .filter(|call| call.model == self.info.name && call.request_sha256 == request.sha256());
        let Some(call) = recorded else {
            return Err(ModelError::InvalidInput("not on the record".to_owned()));
        };
        Ok(Completion {
            text: call.text.clone(),
            // The seat's allowance tells what it cut from what the caller cut.
            finish_reason: match call.finish_reason {
                0 => FinishReason::Stop,
                _ => FinishReason::Length,
            },
            input_tokens: call.input_tokens,
            output_tokens: call.output_tokens,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{CallKey, ChatRole, Message};

    fn request(text: &str, call_index: u32) -> Request {
        Request {
            model: "small".to_owned(),
            messages: vec![Message { role: ChatRole::User, text: text.to_owned() }],
            max_tokens: 8,
            temperature_milli: 0,
            top_p_milli: 1_000,
            stop: vec![],
            key: CallKey { seat_seed: 1, call_index },
        }
    }

    fn call(model: &str, request: &Request, finish_reason: u8) -> ModelCall {
        ModelCall {
            act_index: 0,
            model: model.to_owned(),
            request_sha256: request.sha256(),
            text: "well".to_owned(),
            finish_reason,
            input_tokens: 3,
            output_tokens: 1,
            weight_milli: None,
        }
    }

    fn model(calls: &[ModelCall]) -> Recorded {
        let info = ModelInfo { name: "small".to_owned(), context_tokens: 64, sha256: [7; 32] };
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
            };
            assert_eq!(reply, wanted);
        }
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
