//! The two encodings that every text format here shares, each with one spelling per value.
//!
//! What decodes is what encoding gives back: no padding left out, no stray bits, no leading
//! zero, no sign. Two spellings of one value would let a signed file be changed unnoticed.
//!
//! Not here: any whole format.

use base64ct::{Base64, Encoding};

/// Encodes by the standard alphabet, with padding (RFC 4648 §4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// Decodes what [`base64`] gives; anything else is `None`.
pub(crate) fn from_base64(encoded: &str) -> Option<Vec<u8>> {
    let bytes = Base64::decode_vec(encoded).ok()?;
    (base64(&bytes) == encoded).then_some(bytes)
}

/// Reads a number in ASCII decimal digits without leading zeros; anything else is `None`.
pub(crate) fn from_decimal(digits: &str) -> Option<u64> {
    let number: u64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// Returns at most `EXCERPT_CHARS_MAX` characters of hostile text, with controls written out.
pub(crate) fn excerpt(text: &str) -> String {
    const EXCERPT_CHARS_MAX: usize = 80;
    let mut shown: String = text.chars().take(EXCERPT_CHARS_MAX).flat_map(shown_as).collect();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Writes out what could act on a terminal or hide in it. Words of people stay readable.
fn shown_as(character: char) -> Vec<char> {
    let is_plain = character.is_alphanumeric() || character.is_ascii_graphic() || character == ' ';
    if is_plain { vec![character] } else { character.escape_unicode().collect() }
}
