//! A language model behind a server.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use arena_core::config::models::ServerKind;
use arena_llm::model::{Completion, LanguageModel, ModelError, ModelInfo};
use arena_llm::request::Request;
use async_openai::Client;
use async_openai::error::OpenAIError;
use reqwest::{StatusCode, redirect};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use crate::endpoint::Endpoint;
use crate::excerpt::excerpt;
use crate::exchange::{Exchange, Failure};
use crate::options::{RemoteError, RemoteOptions};
use crate::reply::Reply;
use crate::{llama_server, wire};

/// Most bytes of an answer besides what is written per token.
const ANSWER_BYTES: usize = 256 << 10;
/// Most bytes of an answer per token of the reply: its score, those of the likeliest, its text.
const REPLY_TOKEN_BYTES: usize = 2 << 10;
/// Most bytes of an answer per token of the context: an id and a comma.
const PROMPT_TOKEN_BYTES: usize = 12;
/// Tokens that a template may add to each message, and once more to the conversation.
const TEMPLATE_TOKENS: u64 = 256;

/// A model of an OpenAI-compatible server.
///
/// Calls block; as many as [`RemoteOptions::concurrency`] are with the server at once.
pub struct RemoteModel {
    options: RemoteOptions,
    endpoint: Endpoint,
    http: reqwest::Client,
    permits: Arc<Semaphore>,
    /// Held in an option so that it can be ended without waiting.
    runtime: Option<Runtime>,
}

impl RemoteModel {
    /// Prepares for a server, without asking it for anything.
    ///
    /// # Errors
    /// [`RemoteError`], naming the first option that is not good.
    pub fn new(options: RemoteOptions) -> Result<RemoteModel, RemoteError> {
        options.check()?;
        let endpoint = Endpoint::new(&options.base_url, options.api_key.as_ref())?;
        let http = http_client(&endpoint, options.timeout)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("arena-remote")
            .enable_all()
            .build()
            .map_err(|error| RemoteError::Machine { detail: error.to_string() })?;
        let permits = Arc::new(Semaphore::new(options.concurrency.get() as usize));
        Ok(RemoteModel { options, endpoint, http, permits, runtime: Some(runtime) })
    }

    /// Returns a client whose requests are of one call.
    fn client(&self, endpoint: Endpoint, request: &Request) -> Client<Endpoint> {
        let exchange = Exchange {
            client: self.http.clone(),
            permits: Arc::clone(&self.permits),
            retries: self.options.retries,
            backoff: self.options.backoff,
            answer_bytes_max: ANSWER_BYTES
                + request.max_tokens as usize * REPLY_TOKEN_BYTES
                + self.options.context_tokens as usize * PROMPT_TOKEN_BYTES,
            key: request.key,
        };
        Client::build(self.http.clone(), endpoint).with_http_service(exchange)
    }

    /// Runs a call on the runtime's thread and waits for it. Every wait in it is bounded.
    fn wait<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ModelError> {
        let runtime = self.runtime.as_ref().expect("there until the model is dropped");
        let (sender, receiver) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // The receiver waits below, whatever happens.
            let _ = sender.send(call.await);
        });
        receiver.recv().map_err(|_| ModelError::Unavailable("the call ended early".to_owned()))
    }

    fn check(&self, request: &Request) -> Result<(), ModelError> {
        request.check()?;
        match request.model == self.options.name {
            true => Ok(()),
            false => Err(ModelError::NotSupported),
        }
    }

    /// Refuses a reply that holds the key: replies are published, and guests read them.
    fn check_keeps_key(&self, reply: &Reply) -> Result<(), ModelError> {
        match &self.options.api_key {
            Some(key) if key.is_secret() && reply.holds(key.0.expose_secret()) => {
                let detail = "replied with the API key that it was shown".to_owned();
                Err(ModelError::Unavailable(detail))
            }
            _ => Ok(()),
        }
    }

    fn ask(&self, request: &Request) -> Result<Completion, ModelError> {
        self.check(request)?;
        let body = wire::body(request, self.options.server, &self.options.remote_model)?;
        let client = self.client(self.endpoint.clone(), request);
        let reply: Reply = self
            .wait(async move { client.chat().create_byot(body).await })?
            .map_err(|error| self.fault(error, request))?;
        self.check_keeps_key(&reply)?;
        let prompt_ids = match self.options.server {
            ServerKind::LlamaServer => {
                let client = self.client(self.endpoint.root(), request);
                let messages = request.messages.clone();
                let found =
                    self.wait(async move { llama_server::prompt_ids(&client, &messages).await })?;
                Some(found.map_err(|error| self.fault(error, request))?)
            }
            ServerKind::OpenAi | ServerKind::Vllm => None,
        };
        let completion = reply.completion(request, self.options.context_tokens, prompt_ids);
        completion.map_err(|detail| {
            let key = self.options.api_key.as_ref();
            ModelError::Unavailable(excerpt(detail.as_bytes(), key))
        })
    }

    /// Says what went wrong, to the guest where it asked for too much, else to the operator.
    fn fault(&self, error: OpenAIError, request: &Request) -> ModelError {
        let key = self.options.api_key.as_ref();
        let detail = match error {
            OpenAIError::Boxed(error) => match error.downcast::<Failure>() {
                Ok(failure) => return self.failed(&failure, request),
                Err(error) => excerpt(error.to_string().as_bytes(), key),
            },
            OpenAIError::JSONDeserialize(error, body) => {
                // The error repeats values of the body, whole.
                let why = excerpt(error.to_string().as_bytes(), key);
                let shown = excerpt(body.as_bytes(), key);
                format!("answered with what is no completion: {why}: `{shown}`")
            }
            other => excerpt(other.to_string().as_bytes(), key),
        };
        ModelError::Unavailable(detail)
    }

    fn failed(&self, failure: &Failure, request: &Request) -> ModelError {
        let Failure::Refusal { status, body, .. } = failure else {
            return ModelError::Unavailable(failure.to_string());
        };
        let is_about_length = *status == StatusCode::BAD_REQUEST
            && ["context_length", "context length", "context size", "context_size"]
                .iter()
                .any(|words| String::from_utf8_lossy(body).contains(words));
        if is_about_length && self.may_be_too_long(request) {
            let context = self.options.context_tokens;
            let detail = format!("the conversation does not fit the context of {context} tokens");
            return ModelError::InvalidInput(detail);
        }
        let shown = excerpt(body, self.options.api_key.as_ref());
        ModelError::Unavailable(format!("{failure}: `{shown}`"))
    }

    /// Returns whether a request can exceed the context: no token stands for less than a byte. A
    /// server that says so of a shorter one has a fault that is not the seat's.
    fn may_be_too_long(&self, request: &Request) -> bool {
        let bytes: u64 = request.messages.iter().map(|message| message.text.len() as u64).sum();
        let marks = (request.messages.len() as u64 + 1) * TEMPLATE_TOKENS;
        bytes + marks + u64::from(request.max_tokens) > self.options.context_tokens.into()
    }
}

impl LanguageModel for RemoteModel {
    /// Returns the name under which the server knows the model as its identity: nobody can tell
    /// which weights a server computes with. The address is not in it, so that a server may move.
    fn info(&self) -> ModelInfo {
        let RemoteOptions { name, remote_model, server, context_tokens, .. } = &self.options;
        let mut hash = Sha256::new();
        hash.update(b"arena/remote-model/v1\0");
        for text in [server.name(), remote_model] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
        hash.update(context_tokens.to_be_bytes());
        // A name with a line break could pose as another line.
        let shown = remote_model.escape_debug();
        ModelInfo {
            name: name.clone(),
            context_tokens: *context_tokens,
            sha256: hash.finalize().into(),
            engine: format!(
                "device=remote\nserver={}\nremote-model={shown}\nrescore=no\n",
                server.name()
            ),
        }
    }

    /// Returns nothing: servers count when they answer.
    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        self.check(request)?;
        Ok(None)
    }

    /// Says of every failure which server had it: a run may ask several.
    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        self.ask(request).map_err(|error| match error {
            ModelError::Unavailable(detail) => {
                let RemoteOptions { base_url, api_key, .. } = &self.options;
                let address = excerpt(base_url.as_bytes(), api_key.as_ref());
                ModelError::Unavailable(format!("`{address}`: {detail}"))
            }
            refused => refused,
        })
    }
}

impl Drop for RemoteModel {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // No call is under way: calls borrow the model.
            runtime.shutdown_background();
        }
    }
}

fn http_client(endpoint: &Endpoint, timeout: Duration) -> Result<reqwest::Client, RemoteError> {
    // The client takes the process's cryptography where it has none of its own. That another part
    // installed one first is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("arena/", env!("CARGO_PKG_VERSION")))
        .timeout(timeout)
        // A redirect would show conversations to whom the operator did not name.
        .redirect(redirect::Policy::none());
    let builder = if endpoint.is_loopback() { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| RemoteError::Machine { detail: error.to_string() })
}
