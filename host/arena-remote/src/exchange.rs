//! One request and its answer over HTTP: attempts, waits, time-outs, and how much is read.
//!
//! Not here: what request and answer mean.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arena_core::seed::{Root, Stream};
use arena_llm::request::CallKey;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::excerpt::BODY_BYTES_MIN;
use crate::options::BACKOFF_STEP_MAX;

/// Most bytes that are read of an answer that is not a success.
const REFUSAL_BYTES_MAX: usize = 16 << 10;
const _: () = assert!(REFUSAL_BYTES_MAX >= BODY_BYTES_MIN, "no piece of a key is shown");

/// Sends the request of one call until it is answered, or is not going to be.
#[derive(Clone)]
pub(crate) struct Exchange {
    /// What sends.
    pub client: reqwest::Client,
    /// How many may be with the server at once.
    pub permits: Arc<Semaphore>,
    /// Further attempts.
    pub retries: u32,
    /// Wait before the first of them.
    pub backoff: Duration,
    /// Most bytes of an answer.
    pub answer_bytes_max: usize,
    /// What the call's draws come from.
    pub key: CallKey,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection, no answer in time, or one that broke off.
    Transport {
        /// What happened, innermost cause last.
        detail: String,
    },
    /// An answer that is no success.
    Refusal {
        /// Its status.
        status: StatusCode,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// The beginning of its body.
        body: Vec<u8>,
    },
    /// An answer that is longer than what was asked for can be.
    Oversized {
        /// Most bytes that it may have.
        most: usize,
    },
    /// The request could not be made.
    Request {
        /// Why.
        detail: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Transport { detail } => write!(f, "{detail}"),
            Failure::Refusal { status, .. } => write!(f, "answered `{status}`"),
            Failure::Oversized { most } => write!(f, "answered with more than {most} bytes"),
            Failure::Request { detail } => write!(f, "request cannot be made: {detail}"),
        }
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Returns whether a later attempt may go better.
    fn is_passing(&self) -> bool {
        match self {
            Failure::Transport { .. } => true,
            Failure::Refusal { status, .. } => {
                status.is_server_error()
                    || [
                        StatusCode::REQUEST_TIMEOUT,
                        StatusCode::TOO_EARLY,
                        StatusCode::TOO_MANY_REQUESTS,
                    ]
                    .contains(status)
            }
            Failure::Oversized { .. } | Failure::Request { .. } => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Failure::Refusal { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl Exchange {
    /// Returns the answer's success, read whole.
    async fn run(self, request: HttpRequestFactory) -> Result<Response, Failure> {
        let mut attempt = 0;
        loop {
            let failure = match self.attempt(&request).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            if attempt == self.retries || !failure.is_passing() {
                return Err(failure);
            }
            let asked = failure.retry_after().unwrap_or_default();
            if asked > BACKOFF_STEP_MAX {
                // A server that wants longer will not be back within this call.
                return Err(failure);
            }
            tokio::time::sleep(asked.max(wait(self.key, self.backoff, attempt))).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, request: &HttpRequestFactory) -> Result<Response, Failure> {
        let request = request
            .build()
            .await
            .map_err(|error| Failure::Request { detail: error.to_string() })?;
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let mut response = self.client.execute(request).await.map_err(transport)?;
        let status = response.status();
        if !status.is_success() {
            let retry_after = retry_after(&response);
            // What it says is for the operator alone, so a body that breaks off will do.
            let (body, _) = read(&mut response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
            return Err(Failure::Refusal { status, retry_after, body });
        }
        let oversized = || Failure::Oversized { most: self.answer_bytes_max };
        if response.content_length().is_some_and(|len| len > self.answer_bytes_max as u64) {
            return Err(oversized());
        }
        let (body, is_whole) = read(&mut response, self.answer_bytes_max).await?;
        if !is_whole {
            return Err(oversized());
        }
        let mut answer = http::Response::new(body);
        *answer.status_mut() = status;
        Ok(Response::from(answer))
    }
}

/// Reads at most `most` bytes, and says whether that was all.
async fn read(response: &mut Response, most: usize) -> Result<(Vec<u8>, bool), Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(transport)? {
        let room = most - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body, false));
        }
    }
    Ok((body, true))
}

/// Returns the wait before retry number `attempt`, from 0: half of it doubles from retry to retry,
/// and as much again is the most that is drawn on top, so that calls that failed together do not
/// come back together.
fn wait(key: CallKey, backoff: Duration, attempt: u32) -> Duration {
    let address = [key.call_index.into(), attempt.into()];
    let mut draws = Stream::derive(Root::Seed(key.seat_seed), "remote-backoff", &address);
    let full = backoff.saturating_mul(1 << attempt.min(16)).min(BACKOFF_STEP_MAX);
    let half = full / 2;
    let half_micros = u64::try_from(half.as_micros()).expect("at most half a minute");
    half + Duration::from_micros(draws.below(half_micros + 1))
}

/// Reads `Retry-After` in seconds. Its other form is a date, which would need a clock: a server
/// that gives one is waited for as if it gave none.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn transport(error: reqwest::Error) -> Failure {
    // The address is the operator's own; what it resolves to is not for records.
    let error = error.without_url();
    let mut detail = if error.is_timeout() { "no answer in time" } else { "no answer" }.to_owned();
    let mut cause = std::error::Error::source(&error);
    // Chains of causes are short; the bound is for a library that would make a ring of them.
    for _ in 0..8 {
        let Some(inner) = cause else { break };
        detail = format!("{detail}: {inner}");
        cause = inner.source();
    }
    Failure::Transport { detail }
}

impl Service<HttpRequestFactory> for Exchange {
    type Response = Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        let exchange = self.clone();
        Box::pin(async move {
            exchange.run(request).await.map_err(|failure| OpenAIError::Boxed(Box::new(failure)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_differ_between_calls() {
        let backoff = Duration::from_millis(500);
        for attempt in 0..=16 {
            let full = backoff.saturating_mul(1 << attempt).min(BACKOFF_STEP_MAX);
            let waits: Vec<Duration> = (0..8)
                .map(|call_index| wait(CallKey { seat_seed: 3, call_index }, backoff, attempt))
                .collect();
            assert!(waits.iter().all(|wait| (full / 2..=full).contains(wait)), "{waits:?}");
            assert!(waits.windows(2).any(|pair| pair[0] != pair[1]), "{waits:?}");
        }
    }

    #[test]
    fn a_call_waits_the_same_each_time_it_is_made() {
        let key = CallKey { seat_seed: 3, call_index: 9 };
        let backoff = Duration::from_millis(500);
        assert_eq!(wait(key, backoff, 2), wait(key, backoff, 2));
        assert_eq!(wait(key, Duration::ZERO, 2), Duration::ZERO);
    }
}
