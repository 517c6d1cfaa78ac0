//! What an operator says about a server.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use arena_core::config::models::ServerKind;
use secrecy::{ExposeSecret, SecretString};

/// Most further attempts of a request that failed.
pub const RETRIES_MAX: u32 = 16;
/// Longest time-out of one attempt.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// Longest wait before the first retry. Each later wait is twice as long, up to
/// [`BACKOFF_STEP_MAX`].
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// Longest wait between two attempts, whoever asks for it.
pub const BACKOFF_STEP_MAX: Duration = Duration::from_secs(60);
/// Most tokens of a prompt and its reply together.
pub const CONTEXT_TOKENS_MAX: u32 = 1 << 20;
/// Longest key in bytes.
pub const KEY_BYTES_MAX: usize = 4 << 10;

/// Fewest bytes of a key that is a secret. Servers without keys are shown words such as `none`,
/// which stand in replies like any other.
pub const SECRET_KEY_BYTES_MIN: usize = 8;

/// A server, and how to deal with it.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The name that agents ask for.
    pub name: String,
    /// Where the server's API begins, such as `http://127.0.0.1:8080/v1`: http or https, without
    /// credentials, query or fragment.
    pub base_url: String,
    /// The name under which the server knows the model.
    pub remote_model: String,
    /// Which fields beyond OpenAI's the server takes and gives.
    pub server: ServerKind,
    /// What the server is shown as `Authorization: Bearer`. A reply that holds it is a failure of
    /// the server's.
    pub api_key: Option<ApiKey>,
    /// Longest time of one attempt, from connecting to the reply's last byte; at most
    /// [`TIMEOUT_MAX`].
    pub timeout: Duration,
    /// Further attempts after one that a later one may mend; at most [`RETRIES_MAX`].
    pub retries: u32,
    /// Wait before the first retry; at most [`BACKOFF_MAX`]. Half of each wait is drawn, from the
    /// request's own key.
    pub backoff: Duration,
    /// Most requests that are with the server at once; others wait for their turn.
    pub concurrency: NonZeroU32,
    /// Tokens of a prompt and its reply together, as the server is configured; at most
    /// [`CONTEXT_TOKENS_MAX`].
    pub context_tokens: u32,
}

/// A secret that a server is shown. `Debug` does not tell it.
#[derive(Clone, Debug)]
pub struct ApiKey(pub(crate) SecretString);

impl ApiKey {
    /// Reads the key from an environment variable: there is no other way to give one, so that none
    /// stands in a file or on a command line.
    ///
    /// # Errors
    /// [`RemoteError::Key`] where the variable is not set, or is no printable ASCII text of 1 to
    /// [`KEY_BYTES_MAX`] bytes.
    pub fn from_variable(name: &str) -> Result<ApiKey, RemoteError> {
        let fault = |what| RemoteError::Key { variable: name.to_owned(), what };
        let key = std::env::var(name).map_err(|error| match error {
            std::env::VarError::NotPresent => fault("is not set"),
            std::env::VarError::NotUnicode(_) => fault("is not text"),
        })?;
        ApiKey::checked(key)
            .ok_or_else(|| fault("is not a printable ASCII text of 1 to 4096 bytes"))
    }

    /// Returns whether it is long enough to be a secret, see [`SECRET_KEY_BYTES_MIN`].
    pub(crate) fn is_secret(&self) -> bool {
        self.0.expose_secret().len() >= SECRET_KEY_BYTES_MIN
    }

    pub(crate) fn checked(key: String) -> Option<ApiKey> {
        let is_short = (1..=KEY_BYTES_MAX).contains(&key.len());
        let is_plain = key.bytes().all(|byte| byte.is_ascii_graphic());
        (is_short && is_plain).then(|| ApiKey(SecretString::from(key)))
    }
}

/// Why a server cannot be used as described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteError {
    /// The variable that holds the key.
    Key {
        /// Its name.
        variable: String,
        /// What is wrong with what it holds.
        what: &'static str,
    },
    /// The address.
    Url {
        /// As given.
        url: String,
        /// What is wrong.
        what: String,
    },
    /// A number or a text that is out of bounds.
    Bound {
        /// Its name.
        name: &'static str,
        /// What it is.
        found: u64,
        /// The least that it may be.
        least: u64,
        /// The most.
        most: u64,
        /// Of what.
        unit: &'static str,
    },
    /// This machine: certificates, threads.
    Machine {
        /// What failed.
        detail: String,
    },
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteError::Key { variable, what } => write!(f, "variable `{variable}` {what}"),
            RemoteError::Url { url, what } => write!(f, "address `{url}` {what}"),
            RemoteError::Bound { name, found, least, most, unit } => {
                write!(f, "`{name}` is {found} {unit}, allowed are {least} to {most}")
            }
            RemoteError::Machine { detail } => write!(f, "cannot prepare for servers: {detail}"),
        }
    }
}

impl std::error::Error for RemoteError {}

impl RemoteOptions {
    /// Checks everything but the address.
    pub(crate) fn check(&self) -> Result<(), RemoteError> {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let name_bytes = self.remote_model.len() as u64;
        let bounds = [
            ("remote-model", name_bytes, 1, 256, "bytes"),
            ("timeout", millis(self.timeout), 1, millis(TIMEOUT_MAX), "milliseconds"),
            ("backoff", millis(self.backoff), 0, millis(BACKOFF_MAX), "milliseconds"),
            ("retries", self.retries.into(), 0, RETRIES_MAX.into(), "retries"),
            ("context", self.context_tokens.into(), 1, CONTEXT_TOKENS_MAX.into(), "tokens"),
        ];
        let outside =
            bounds.into_iter().find(|(_, found, least, most, _)| found < least || found > most);
        outside.map_or(Ok(()), |(name, found, least, most, unit)| {
            Err(RemoteError::Bound { name, found, least, most, unit })
        })
    }
}
