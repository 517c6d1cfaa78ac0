//! Language models for tests: one that listens, and one that fails on the way.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use arena_llm::model::{Completion, LanguageModel, ModelError, ModelInfo};
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
