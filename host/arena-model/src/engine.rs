//! A language model that many threads ask at once.
//!
//! A reply depends on the request and the model alone: not on other requests, on threads, on the
//! size of the cache or on what is in it. A caller that asks is blocked until it is answered; one
//! thread answers all. Once the engine has failed, every call says why.
//!
//! Adapters: a request begins with the newest adapter that was put in before it was sent, and
//! keeps it to its end.
//!
//! Not here: files of a model (`arena-weights`), what computes (`executor`).

use std::num::NonZeroUsize;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use arena_core::config::limits::MODEL_REPLY_BYTES_MAX;
use arena_core::seat::{SampledToken, Sampling};
use arena_kernels::context::Context;
use arena_kernels::isa::Isa;
use arena_llm::model::{Completion, LanguageModel, ModelError, ModelInfo, ReplyTokens};
use arena_llm::request::{CallKey, Request};
use arena_weights::adapter::Adapter;
use arena_weights::template::{ChatMessage, ChatTemplate};
use arena_weights::tokenizer::Tokenizer;
use arena_weights::weights::Weights;
use sha2::{Digest, Sha256};

use crate::cache::PrefixCache;
use crate::error::EngineError;
use crate::event::Listener;
use crate::executor::{AdapterId, BATCH_ROWS_MAX, BLOCK_TOKENS, Executor};
use crate::grammar::Grammars;
use crate::schedule::Schedule;
use crate::sequence::{Generation, Reply, Sequence, Version, Work};
use crate::statistics::Statistics;
use crate::text::ReplyText;
use crate::vocabulary::Vocabulary;
use crate::worker::{self, Adapters, Job, Shared, Worker};

/// Most sequences of a batch.
pub const SLOTS_MAX: usize = 1_024;

/// What replies depend on besides the executor, first in what the engine says of itself.
const ENGINE: &str = concat!(
    "engine=arena-model ",
    env!("CARGO_PKG_VERSION"),
    "\nsampling=mask,temperature,top-k,top-p,min-p"
);

/// What an engine knows of its model besides the weights.
pub struct ModelParts {
    /// Turns text into tokens.
    pub tokenizer: Tokenizer,
    /// Turns messages into text.
    pub chat_template: ChatTemplate,
    /// The model's identity.
    pub sha256: [u8; 32],
}

impl ModelParts {
    /// Reads them from a model's files, whose manifest has this hash.
    ///
    /// # Errors
    /// The tokenizer or the chat template cannot be used.
    pub fn read(weights: &Weights, sha256: [u8; 32]) -> Result<ModelParts, EngineError> {
        let (tokenizer, chat_template) = (weights.tokenizer()?, weights.chat_template()?);
        Ok(ModelParts { tokenizer, chat_template, sha256 })
    }
}

/// Renders the chat that agents begin with.
fn check_template(parts: &ModelParts) -> Result<(), EngineError> {
    let message = |role, content| ChatMessage { role, content };
    let chat = [message("system", "You negotiate."), message("user", "What do you offer?")];
    let refused = |detail: String| EngineError::Template(detail);
    let pieces = parts.chat_template.pieces(&chat, true).map_err(|e| refused(e.to_string()))?;
    let tokens = parts.tokenizer.encode_pieces(&pieces, &[&[], &[]]);
    tokens.map(drop).map_err(|error| refused(error.to_string()))
}

/// How an engine is run. Only `name`, `context_tokens` and `adapter` can change a reply.
pub struct EngineOptions {
    /// The name that requests ask for.
    pub name: String,
    /// Tokens of a prompt and its reply together; `None` for as many as the model was made for.
    pub context_tokens: Option<u32>,
    /// What requests begin with, until another is put in.
    pub adapter: Option<Adapter>,
    /// Most sequences in a batch, 1 to [`SLOTS_MAX`].
    pub slots: usize,
    /// Rows of a batch, at least 16 more than `slots`.
    pub step_tokens: usize,
    /// Threads that sample, unless the executor lends its own.
    pub threads: NonZeroUsize,
    /// Is told of replies as they are written.
    pub listener: Option<Listener>,
}

impl EngineOptions {
    /// Returns the options of an engine that nothing else is said of.
    pub fn new(name: &str) -> EngineOptions {
        EngineOptions {
            name: name.to_owned(),
            context_tokens: None,
            adapter: None,
            slots: 64,
            step_tokens: 512,
            threads: NonZeroUsize::MIN,
            listener: None,
        }
    }
}

/// A reply that is known, to be scored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreRequest {
    /// The whole prompt, at least one token.
    pub prompt: Vec<u32>,
    /// The reply, at least one token.
    pub output: Vec<u32>,
    /// How it is said to be sampled.
    pub sampling: Sampling,
    /// The grammar that it is said to be bound to.
    pub grammar: Option<String>,
}

/// A model and its thread.
pub struct Engine {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    info: ModelInfo,
    parts: ModelParts,
    vocabulary: Arc<Vocabulary>,
    grammars: Grammars,
}

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// An option is out of its bounds, the cache cannot hold one context, the adapter does not
    /// fit, a thread cannot be started.
    pub fn start(
        executor: Box<dyn Executor>,
        parts: ModelParts,
        options: EngineOptions,
    ) -> Result<Arc<Engine>, EngineError> {
        let vocabulary = Arc::new(Vocabulary::of(&parts.tokenizer, executor.shape())?);
        let EngineOptions { name, adapter, slots, step_tokens, threads, listener, .. } = options;
        let model_tokens = u32::try_from(executor.shape().context_tokens).unwrap_or(u32::MAX);
        let context_tokens = options.context_tokens.unwrap_or(model_tokens);
        if !(2..=model_tokens).contains(&context_tokens) {
            return Err(EngineError::Context { asked: context_tokens, model: model_tokens });
        }
        check_option("slots", slots, 1, SLOTS_MAX)?;
        check_option("step-tokens", step_tokens, slots + BLOCK_TOKENS, BATCH_ROWS_MAX - SLOTS_MAX)?;
        check_template(&parts)?;
        let blocks = executor.block_count();
        let needed = (context_tokens as usize).div_ceil(BLOCK_TOKENS) + 1;
        if blocks < needed {
            return Err(EngineError::Cache { blocks, needed });
        }
        let info = ModelInfo {
            name,
            context_tokens,
            sha256: identity(parts.sha256, adapter.as_ref()),
            engine: format!("{ENGINE}\n{}", executor.description()),
        };
        let context = match executor.context() {
            Some(context) => context,
            None => Arc::new(Context::new(threads, Isa::best())?),
        };
        let mut worker = Worker {
            shared: Arc::new(Shared::new()),
            executor,
            vocabulary: Arc::clone(&vocabulary),
            context,
            schedule: Schedule::new(PrefixCache::new(blocks), slots, step_tokens),
            adapters: Adapters::default(),
            listener,
            logits: Vec::new(),
        };
        if let Some(adapter) = &adapter {
            worker.adapters.change(adapter, AdapterId(0), &mut *worker.executor)?;
        }
        let shared = Arc::clone(&worker.shared);
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || worker::run(worker))
            .map_err(EngineError::Thread)?;
        let thread = Mutex::new(Some(thread));
        let grammars = Grammars::new(Arc::clone(&vocabulary));
        Ok(Arc::new(Engine { shared, thread, info, parts, vocabulary, grammars }))
    }

    /// Returns what the engine has done so far.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    /// Puts an adapter in, or none, for requests that are sent from now on. Returns when it is in
    /// place; that may take until older replies are done.
    ///
    /// # Errors
    /// The adapter does not fit; then requests begin as before. Or the engine has failed.
    pub fn swap_adapter(&self, adapter: Option<Adapter>) -> Result<(), EngineError> {
        let (reply, result) = sync_channel(1);
        let job = Job::Adapter { adapter: adapter.map(Box::new), reply };
        self.shared.submit(job).map_err(EngineError::Failed)?;
        result.recv().unwrap_or_else(|_| Err(EngineError::Failed(self.shared.reason())))
    }

    /// Returns the tokens of a request's prompt.
    ///
    /// # Errors
    /// The template refuses the messages, or a message names tokens that there are not.
    pub fn encode(&self, request: &Request) -> Result<Vec<u32>, ModelError> {
        let invalid = |error: &dyn std::fmt::Display| ModelError::InvalidInput(error.to_string());
        let messages: Vec<ChatMessage<'_>> = request
            .messages
            .iter()
            .map(|message| ChatMessage { role: message.role.name(), content: &message.text })
            .collect();
        let written: Vec<&[u32]> =
            request.messages.iter().map(|message| &message.tokens[..]).collect();
        self.check_tokens(request.messages.iter().flat_map(|message| &message.tokens))?;
        let pieces = self.parts.chat_template.pieces(&messages, true).map_err(|e| invalid(&e))?;
        let tokens = self.parts.tokenizer.encode_pieces(&pieces, &written);
        tokens.map_err(|error| invalid(&error))
    }

    /// Computes the log-probabilities of a known reply: what sampling it would have said.
    /// Nothing that was computed before is used.
    ///
    /// # Errors
    /// As [`LanguageModel::complete`].
    pub fn score(&self, request: &ScoreRequest) -> Result<Vec<SampledToken>, ModelError> {
        self.check_tokens(request.prompt.iter().chain(&request.output))?;
        if request.prompt.is_empty() || request.output.is_empty() {
            return Err(ModelError::InvalidInput("prompt and output need tokens".to_owned()));
        }
        let count = request.prompt.len() + request.output.len();
        self.check_context(count)?;
        let (reply, result) = sync_channel(1);
        let sequence = Sequence {
            tokens: [&request.prompt[..], &request.output].concat(),
            prompt_count: request.prompt.len(),
            computed: 0,
            lease: None,
            version: Version::default(),
            sampling: request.sampling,
            grammar: self.compile(request.grammar.as_deref())?,
            output: Vec::with_capacity(request.output.len()),
            work: Work::Score { reply },
        };
        self.send(sequence)?;
        result.recv().unwrap_or_else(|_| Err(self.unavailable()))
    }

    /// Generates after a prompt of tokens. `ignores_end` goes on to `output_max` tokens.
    pub(crate) fn generate(
        &self,
        prompt: Vec<u32>,
        output_max: usize,
        request: Parameters<'_>,
    ) -> Result<Reply, ModelError> {
        let (reply, result) = sync_channel(1);
        let sequence = Sequence {
            prompt_count: prompt.len(),
            tokens: prompt,
            computed: 0,
            lease: None,
            version: Version::default(),
            sampling: request.sampling,
            grammar: self.compile(request.grammar)?,
            output: Vec::new(),
            work: Work::Generate(Generation {
                key: request.key,
                output_max,
                text: ReplyText::new(
                    request.stop.to_vec(),
                    usize::try_from(MODEL_REPLY_BYTES_MAX).expect("it is small"),
                ),
                ignores_end: request.ignores_end,
                reply,
            }),
        };
        self.send(sequence)?;
        result.recv().unwrap_or_else(|_| Err(self.unavailable()))
    }

    /// Returns how many tokens have a meaning.
    pub(crate) fn token_count(&self) -> usize {
        self.vocabulary.token_count()
    }

    fn send(&self, sequence: Sequence) -> Result<(), ModelError> {
        let job = Job::Sequence(Box::new(sequence));
        self.shared.submit(job).map_err(ModelError::Unavailable)
    }

    fn unavailable(&self) -> ModelError {
        ModelError::Unavailable(self.shared.reason())
    }

    fn compile(
        &self,
        grammar: Option<&str>,
    ) -> Result<Option<crate::grammar::Grammar>, ModelError> {
        let compiled = grammar.map(|grammar| self.grammars.compile(grammar)).transpose();
        compiled.map_err(|detail| ModelError::InvalidInput(format!("`grammar`: {detail}")))
    }

    fn check_tokens<'a>(
        &self,
        tokens: impl IntoIterator<Item = &'a u32>,
    ) -> Result<(), ModelError> {
        let count = self.vocabulary.token_count();
        match tokens.into_iter().find(|&&id| id as usize >= count) {
            None => Ok(()),
            Some(id) => {
                let fault = format!("token `{id}` is not one of the model's {count}");
                Err(ModelError::InvalidInput(fault))
            }
        }
    }

    fn check_context(&self, count: usize) -> Result<(), ModelError> {
        let most = self.info.context_tokens;
        if count <= most as usize {
            return Ok(());
        }
        let fault = format!("prompt and reply take {count} tokens, the context has {most}");
        Err(ModelError::InvalidInput(fault))
    }
}

/// What a generation depends on besides the prompt.
#[derive(Clone, Copy)]
pub(crate) struct Parameters<'a> {
    pub sampling: Sampling,
    pub stop: &'a [String],
    pub grammar: Option<&'a str>,
    pub key: CallKey,
    pub ignores_end: bool,
}

impl LanguageModel for Engine {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        request.check()?;
        let tokens = self.encode(request)?;
        Ok(Some(u32::try_from(tokens.len()).expect("prompts are far smaller")))
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        request.check()?;
        if request.model != self.info.name {
            return Err(ModelError::NotSupported);
        }
        let prompt = self.encode(request)?;
        if prompt.is_empty() {
            return Err(ModelError::InvalidInput("the prompt has no tokens".to_owned()));
        }
        self.check_context(prompt.len() + 1)?;
        let room = self.info.context_tokens as usize - prompt.len();
        let parameters = Parameters {
            sampling: request.sampling,
            stop: &request.stop,
            grammar: request.grammar.as_deref(),
            key: request.key,
            ignores_end: false,
        };
        let reply =
            self.generate(prompt.clone(), room.min(request.max_tokens as usize), parameters)?;
        let count = |len: usize| u32::try_from(len).expect("contexts are far smaller");
        Ok(Completion {
            text: reply.text,
            finish_reason: reply.finish_reason,
            input_tokens: count(prompt.len()),
            output_tokens: count(reply.output.len()),
            tokens: Some(ReplyTokens { prompt, output: reply.output }),
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It catches its own panics.
            let _ = thread.join();
        }
    }
}

fn check_option(
    name: &'static str,
    value: usize,
    least: usize,
    most: usize,
) -> Result<(), EngineError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(EngineError::Option { name, value, least, most })
}

/// Names a model: its manifest's hash, with an adapter the hash of both manifests' hashes.
pub fn identity(model: [u8; 32], adapter: Option<&Adapter>) -> [u8; 32] {
    let Some(adapter) = adapter else {
        return model;
    };
    let mut hash = Sha256::new();
    hash.update(b"arena/adapted-model/v1\0");
    hash.update(model);
    hash.update(adapter.manifest.sha256());
    hash.finalize().into()
}
