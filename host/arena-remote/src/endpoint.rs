//! Where a server is, as the client library asks for it.
//!
//! The library's own configuration reads addresses, keys and headers from the environment; this
//! one holds what the operator gave and nothing else.

use async_openai::config::Config;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::options::{ApiKey, RemoteError};

/// A server's address and what it is shown.
#[derive(Clone)]
pub(crate) struct Endpoint {
    base: String,
    key: SecretString,
    headers: HeaderMap,
}

impl Endpoint {
    /// Checks an address and keeps it without a slash at its end.
    pub(crate) fn new(url: &str, key: Option<&ApiKey>) -> Result<Endpoint, RemoteError> {
        let fault = |what: &str| RemoteError::Url { url: url.to_owned(), what: what.to_owned() };
        let parsed = Url::parse(url).map_err(|error| fault(&format!("is not a URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(fault("is neither http nor https"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            // The address itself is a secret then, so it is not shown.
            let what = "has credentials in it; name an environment variable instead".to_owned();
            return Err(RemoteError::Url { url: parsed.scheme().to_owned() + "://…", what });
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(fault("has a query or a fragment"));
        }
        let mut headers = HeaderMap::new();
        if let Some(ApiKey(secret)) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", secret.expose_secret()))
                .expect("keys are checked to be printable ASCII");
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let key = key.map_or_else(SecretString::default, |ApiKey(secret)| secret.clone());
        Ok(Endpoint { base: parsed.as_str().trim_end_matches('/').to_owned(), key, headers })
    }

    /// Returns the server's root: the address without `/v1`, where llama.cpp has routes of its own.
    pub(crate) fn root(&self) -> Endpoint {
        let base = self.base.strip_suffix("/v1").unwrap_or(&self.base).to_owned();
        Endpoint { base, ..self.clone() }
    }

    /// Returns whether the server is on this machine, so that no proxy stands before it.
    pub(crate) fn is_loopback(&self) -> bool {
        let url = Url::parse(&self.base).expect("checked when it was made");
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl Config for Endpoint {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        vec![]
    }

    fn api_base(&self) -> &str {
        &self.base
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &str) {
        let found = match Endpoint::new(url, None) {
            Ok(endpoint) => format!("{} root {}", endpoint.base, endpoint.root().base),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn an_address_is_http_and_holds_nothing_secret() {
        check("http://localhost:1/v1/", "http://localhost:1/v1 root http://localhost:1");
        check("https://host/deep/api", "https://host/deep/api root https://host/deep/api");
        check("localhost:8080/v1", "address `localhost:8080/v1` is neither http nor https");
        check("http://", "address `http://` is not a URL: empty host");
        check("http://h/v1?key=x", "address `http://h/v1?key=x` has a query or a fragment");
        check(
            "https://me:word@host/v1",
            "address `https://…` has credentials in it; name an environment variable instead",
        );
    }

    #[test]
    fn a_server_of_this_machine_is_told_from_others() {
        for (url, expected) in [
            ("http://127.0.0.1:80/v1", true),
            ("http://[::1]:80/v1", true),
            ("http://localhost/v1", true),
            ("http://127.0.0.1.example.org/v1", false),
            ("https://10.0.0.1/v1", false),
        ] {
            let endpoint = Endpoint::new(url, None).expect("a good address");
            assert_eq!(endpoint.is_loopback(), expected, "{url}");
        }
    }
}
