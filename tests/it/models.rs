//! Language models for tests: one that listens, one that fails on the way, one that answers from
//! a record.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use arena_core::seat::ModelCall;
use arena_llm::model::{Completion, FinishReason, LanguageModel, ModelError, ModelInfo};
use arena_llm::request::Request;
use arena_llm::scripted::ScriptedModel;

/// Returns a scripted model.
///
/// # Panics
/// If the script is wrong.
pub fn scripted(script: &str) -> ScriptedModel {
    ScriptedModel::parse("scripted", script).unwrap_or_else(|error| panic!("{error}"))
}

/// Keeps every request that it passes on.
pub struct Listening {
    pub inner: ScriptedModel,
    pub requests: Mutex<Vec<Request>>,
}

impl Listening {
    pub fn new(script: &str) -> Listening {
        Listening { inner: scripted(script), requests: Mutex::default() }
    }
}

impl LanguageModel for Listening {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        self.requests.lock().expect("no thread panicked").push(request.clone());
        self.inner.complete(request)
    }
}

/// Is down for some calls, counted over all seats.
pub struct Failing {
    pub inner: ScriptedModel,
    pub down: std::ops::Range<u32>,
    pub calls: AtomicU32,
}

impl Failing {
    pub fn new(script: &str, down: std::ops::Range<u32>) -> Failing {
        Failing { inner: scripted(script), down, calls: AtomicU32::new(0) }
    }
}

impl LanguageModel for Failing {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.down.contains(&call) {
            return Err(ModelError::Unavailable("the server is down".to_owned()));
        }
        self.inner.complete(request)
    }
}

/// Answers as a seat's record says that the model did, and refuses what is not there. Whoever asks
/// otherwise than on the record gets other answers, and shows that in its moves or its trace.
pub struct Recorded {
    pub info: ModelInfo,
    pub calls: Vec<ModelCall>,
}

impl LanguageModel for Recorded {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        let number = request.key.call_index;
        let call = self.calls.get(number as usize);
        let Some(call) = call.filter(|call| call.request_sha256 == request.sha256()) else {
            return Err(ModelError::InvalidInput("not on the record".to_owned()));
        };
        Ok(Completion {
            text: call.text.clone(),
            // The allowance tells what it cut from what the caller cut.
            finish_reason: match call.finish_reason {
                0 => FinishReason::Stop,
                _ => FinishReason::Length,
            },
            input_tokens: call.input_tokens,
            output_tokens: call.output_tokens,
        })
    }
}
