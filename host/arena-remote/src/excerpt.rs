//! What of a server's words stands in an error: little, on one line, and never the key.

use secrecy::ExposeSecret;

use crate::options::ApiKey;

/// Most characters of a server's words in one error.
const EXCERPT_CHARS_MAX: usize = 200;
/// Most bytes of a server's words that are looked at.
const LOOKED_AT_BYTES_MAX: usize = 8 << 10;

/// Returns the beginning of a body, with everything escaped that a terminal could act upon.
pub(crate) fn excerpt(body: &[u8], key: Option<&ApiKey>) -> String {
    let start = &body[..body.len().min(LOOKED_AT_BYTES_MAX)];
    let text = String::from_utf8_lossy(start);
    // Providers repeat a wrong key in their refusal.
    let text = match key {
        Some(ApiKey(secret)) => text.replace(secret.expose_secret(), "[key]"),
        None => text.into_owned(),
    };
    // Escaping makes a text up to ten times as long, so the cut comes after it.
    let whole = text.trim().escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
    let mut escaped: String = whole.chars().take(EXCERPT_CHARS_MAX).collect();
    if escaped.len() < whole.len() || body.len() > start.len() {
        escaped.push('…');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_on_one_line() {
        assert_eq!(
            excerpt(b" <h1>no</h1>\n\x1b[31m\xff ", None),
            "<h1>no</h1>\\n\\u{1b}[31m\u{fffd}"
        );
        let long = excerpt(&[b'x'; 100_000], None);
        assert_eq!(long.chars().count(), EXCERPT_CHARS_MAX + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_key_that_a_server_repeats_is_not_shown() {
        let key = ApiKey::checked("sk-very-secret".to_owned()).expect("a plain key");
        let shown = excerpt(b"{\"error\": \"wrong key sk-very-secret given\"}", Some(&key));
        assert_eq!(shown, "{\"error\": \"wrong key [key] given\"}");
        assert!(!format!("{key:?}").contains("very"));
    }
}
