//! What of a server's words stands in an error: little, on one line, and never the key.

use secrecy::ExposeSecret;

use crate::options::{ApiKey, KEY_BYTES_MAX};

/// Most characters of a server's words in one error.
const EXCERPT_CHARS_MAX: usize = 200;
/// Most bytes of a server's words that are looked at.
const LOOKED_AT_BYTES_MAX: usize = 8 << 10;
/// Fewest bytes of a body after which it may be cut before it comes here.
pub(crate) const BODY_BYTES_MIN: usize = LOOKED_AT_BYTES_MAX + KEY_BYTES_MAX;

/// Stands for the key.
const KEY_MARK: &[u8] = b"[key]";

/// Returns the beginning of a body, with everything escaped that a terminal could act upon.
///
/// A body that was cut must have been read [`BODY_BYTES_MIN`] far: else a piece of the key could
/// stand at its end.
pub(crate) fn excerpt(body: &[u8], key: Option<&ApiKey>) -> String {
    let start = without_key(body, key);
    let text = String::from_utf8_lossy(&start);
    // Escaping makes a text up to ten times as long, so the cut comes after it.
    let whole = text.trim().escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
    let mut escaped: String = whole.chars().take(EXCERPT_CHARS_MAX).collect();
    if escaped.len() < whole.len() || body.len() > LOOKED_AT_BYTES_MAX {
        escaped.push('…');
    }
    escaped
}

/// Returns what begins in the first [`LOOKED_AT_BYTES_MAX`] bytes, with the key replaced: providers
/// repeat a wrong one in their refusal. A key that begins there is replaced whole, wherever it
/// ends.
fn without_key(body: &[u8], key: Option<&ApiKey>) -> Vec<u8> {
    let key = key.map(|ApiKey(secret)| secret.expose_secret().as_bytes());
    let mut shown = Vec::new();
    let mut place = 0;
    // Every pass takes a byte at least, for keys are not empty.
    while place < body.len().min(LOOKED_AT_BYTES_MAX) {
        match key.filter(|key| body[place..].starts_with(key)) {
            Some(key) => {
                shown.extend_from_slice(KEY_MARK);
                place += key.len();
            }
            None => {
                shown.push(body[place]);
                place += 1;
            }
        }
    }
    shown
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
    #[test]
    fn a_key_across_a_cut_is_replaced_whole() {
        let key = ApiKey::checked("sk-very-secret".to_owned()).expect("a plain key");
        // Blanks at the start are not shown, so that the cut is near what is.
        for blanks in LOOKED_AT_BYTES_MAX - 20..=LOOKED_AT_BYTES_MAX + 1 {
            let body = [&vec![b' '; blanks], &b"sk-very-secret and more"[..]].concat();
            let shown = excerpt(&body, Some(&key));
            assert!(!shown.contains("sk-"), "{blanks}: {shown}");
            assert_eq!(shown.starts_with("[key]"), blanks < LOOKED_AT_BYTES_MAX, "{blanks}");
        }
        for letters in EXCERPT_CHARS_MAX - 20..=EXCERPT_CHARS_MAX {
            let body = [&vec![b'x'; letters], &b"sk-very-secret"[..]].concat();
            let shown = excerpt(&body, Some(&key));
            assert!(!shown.contains("sk-"), "{letters}: {shown}");
        }
    }
}
