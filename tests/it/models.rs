//! Language models for tests: one that listens, one that fails on the way, one with tokens, one
//! that offers no more than OpenAI's protocol.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use arena_core::seat::{SampledToken, TokenScore};
use arena_llm::model::{
    Completion, FinishReason, LanguageModel, ModelError, ModelInfo, ReplyTokens,
};
use arena_llm::request::{ChatRole, Request};
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

    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        self.inner.count_prompt(request)
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        self.requests.lock().expect("no thread panicked").push(request.clone());
        self.inner.complete(request)
    }
}

/// Fails some calls, counted over all seats.
pub struct Failing {
    pub inner: ScriptedModel,
    pub down: std::ops::Range<u32>,
    /// What it makes of the reply that it should give.
    pub how: fn(Completion) -> Result<Completion, ModelError>,
    pub calls: AtomicU32,
}

impl Failing {
    /// Is not to be reached.
    pub fn new(script: &str, down: std::ops::Range<u32>) -> Failing {
        let how = |_| Err(ModelError::Unavailable("the server is down".to_owned()));
        Failing { inner: scripted(script), down, how, calls: AtomicU32::new(0) }
    }
}

impl LanguageModel for Failing {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        self.inner.count_prompt(request)
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let completion = self.inner.complete(request)?;
        if self.down.contains(&call) {
            return (self.how)(completion);
        }
        Ok(completion)
    }
}

/// A scripted model with tokens, which are bytes: a mark before each message and one behind it.
pub struct Spelling {
    pub inner: ScriptedModel,
}

impl Spelling {
    /// Stands behind a message.
    const END: u32 = 300;

    fn spell(text: &str) -> impl Iterator<Item = u32> {
        text.bytes().map(u32::from).chain([Spelling::END])
    }

    fn prompt(request: &Request) -> Vec<u32> {
        let mut ids = Vec::new();
        for message in &request.messages {
            ids.push(256 + message.role as u32);
            match message.tokens.as_slice() {
                [] => ids.extend(Spelling::spell(&message.text)),
                tokens => ids.extend(tokens),
            }
        }
        ids.push(256 + ChatRole::Assistant as u32);
        ids
    }
}

impl LanguageModel for Spelling {
    fn info(&self) -> ModelInfo {
        ModelInfo { engine: "engine=spelling\n".to_owned(), ..self.inner.info() }
    }

    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        Ok(Some(Spelling::prompt(request).len() as u32))
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        let prompt = Spelling::prompt(request);
        let said = self.inner.complete(request)?.text;
        let most = request.max_tokens as usize;
        let text = said[..said.floor_char_boundary(most)].to_owned();
        let ids = Spelling::spell(&text).take(most);
        let output: Vec<SampledToken> = ids
            .map(|id| SampledToken {
                id,
                logprob_micro: -(id as i32),
                sampled_logprob_micro: 0,
                top: vec![TokenScore { id, logprob_micro: -(id as i32) }],
            })
            .collect();
        let is_whole = output.last().is_some_and(|token| token.id == Spelling::END);
        Ok(Completion {
            text,
            finish_reason: if is_whole { FinishReason::Stop } else { FinishReason::Length },
            input_tokens: prompt.len() as u32,
            output_tokens: output.len() as u32,
            tokens: Some(ReplyTokens { prompt, output }),
        })
    }
}

/// Refuses what a server of kind `openai` has no field for, and counts no prompt before it answers.
pub struct Plain {
    pub inner: ScriptedModel,
}

impl LanguageModel for Plain {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn count_prompt(&self, _request: &Request) -> Result<Option<u32>, ModelError> {
        Ok(None)
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        let sampling = &request.sampling;
        if request.grammar.is_some() || sampling.top_k != 0 || sampling.min_p_milli != 0 {
            return Err(ModelError::InvalidInput("not offered".to_owned()));
        }
        self.inner.complete(request)
    }
}
