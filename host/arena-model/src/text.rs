//! A reply's text as it grows, from bytes that do not respect characters.
//!
//! Bytes that are no UTF-8 become U+FFFD, as `String::from_utf8_lossy` makes them; the beginning
//! of a character at the very end of a reply is left out. A stop text is found wherever it
//! stands, over the borders of tokens too, and it and what follows are left out.
//!
//! Not here: which bytes a token has (`vocabulary`).

/// Why a text takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEnd {
    /// A stop text was written.
    Stop,
    /// The text is as long as it may be.
    Full,
}

/// The text of one reply.
#[derive(Clone, Debug)]
pub struct ReplyText {
    text: String,
    /// The beginning of a character, at most three bytes.
    rest: Vec<u8>,
    stops: Vec<String>,
    bytes_max: usize,
    shown: usize,
}

impl ReplyText {
    /// Returns an empty text that ends at a stop text, or at `bytes_max` bytes.
    pub fn new(stops: Vec<String>, bytes_max: usize) -> ReplyText {
        ReplyText { text: String::new(), rest: Vec::new(), stops, bytes_max, shown: 0 }
    }

    /// Adds a token's bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Option<TextEnd> {
        let before = self.text.len();
        self.rest.extend_from_slice(bytes);
        self.decode();
        if let Some(at) = self.find_stop(before) {
            self.text.truncate(at);
        } else if self.text.len() <= self.bytes_max {
            return None;
        }
        let is_full = self.text.len() > self.bytes_max;
        if is_full {
            self.text.truncate(self.text.floor_char_boundary(self.bytes_max));
        }
        Some(if is_full { TextEnd::Full } else { TextEnd::Stop })
    }

    /// Returns what is new since the last call and stays, whatever follows: what could be the
    /// beginning of a stop text is held back.
    pub fn take_certain(&mut self) -> &str {
        let held = self.stops.iter().map(|stop| beginning_at_end(&self.text, stop)).max();
        let certain = self.text.len() - held.unwrap_or(0);
        self.take_until(certain)
    }

    /// Returns all that is new since the last call of this or [`ReplyText::take_certain`].
    pub fn take_rest(&mut self) -> &str {
        self.take_until(self.text.len())
    }

    /// Returns the whole text.
    pub fn finish(self) -> String {
        self.text
    }

    fn take_until(&mut self, end: usize) -> &str {
        let start = self.shown.min(end);
        self.shown = self.shown.max(end);
        &self.text[start..end]
    }

    /// Moves whole characters from the rest to the text.
    fn decode(&mut self) {
        loop {
            let (valid, skip) = match std::str::from_utf8(&self.rest) {
                Ok(valid) => {
                    self.text.push_str(valid);
                    self.rest.clear();
                    return;
                }
                Err(error) => (error.valid_up_to(), error.error_len()),
            };
            let text = std::str::from_utf8(&self.rest[..valid]).expect("it was found valid");
            self.text.push_str(text);
            self.rest.drain(..valid + skip.unwrap_or(0));
            if skip.is_none() {
                return;
            }
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Finds the first stop text that ends behind `before`.
    fn find_stop(&self, before: usize) -> Option<usize> {
        let places = self.stops.iter().filter_map(|stop| {
            let start = self.text.floor_char_boundary(before.saturating_sub(stop.len() - 1));
            self.text[start..].find(stop.as_str()).map(|at| start + at)
        });
        places.min()
    }
}

/// Returns how many bytes at the end of `text` are a beginning of `stop`, but not all of it.
fn beginning_at_end(text: &str, stop: &str) -> usize {
    let (text, stop) = (text.as_bytes(), stop.as_bytes());
    let most = text.len().min(stop.len() - 1);
    (1..=most).rev().find(|&count| text.ends_with(&stop[..count])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stops: &[&str], tokens: &[&[u8]], expected: &str, end: Option<TextEnd>) {
        let stops = stops.iter().map(|&stop| stop.to_owned()).collect();
        let mut reply = ReplyText::new(stops, 20);
        let mut shown = String::new();
        let mut ended = None;
        for token in tokens {
            assert_eq!(ended, None, "nothing comes after the end");
            ended = reply.push(token);
            if ended.is_none() {
                shown.push_str(reply.take_certain());
            }
        }
        shown.push_str(reply.take_rest());
        assert_eq!(ended, end);
        let text = reply.finish();
        assert_eq!(text, expected);
        assert_eq!(shown, text, "what was shown is the text");
    }

    #[test]
    fn characters_may_be_spread_over_tokens() {
        check(&[], &[b"z\xc3", b"\xb6l", b"f \xf0\x9f", b"\xa4", b"\x9d"], "zölf 🤝", None);
    }

    #[test]
    fn what_is_no_utf_8_is_replaced_and_an_unfinished_character_left_out() {
        check(&[], &[b"a\xff", b"\xc3", b"b", b"\xf0\x9f\xa4"], "a\u{fffd}\u{fffd}b", None);
    }

    #[test]
    fn a_stop_text_is_found_over_the_borders_of_tokens() {
        check(&["END"], &[b"to E", b"N", b"Dx"], "to ", Some(TextEnd::Stop));
        check(&["\n", "END"], &[b"to EN", b"\nEND"], "to EN", Some(TextEnd::Stop));
        check(&["END"], &[b"E", b"N", b"E", b"N"], "ENEN", None);
    }

    #[test]
    fn the_first_of_several_stop_texts_counts() {
        check(&["d", "bc"], &[b"abcd"], "a", Some(TextEnd::Stop));
    }

    #[test]
    fn a_text_is_cut_between_characters_where_it_is_full() {
        check(&[], &[&[b'x'; 19], "ö".as_bytes()], &"x".repeat(19), Some(TextEnd::Full));
        check(&["END"], &[&[b'x'; 20], b"END"], &"x".repeat(20), Some(TextEnd::Stop));
        check(&["END"], &[&[b'x'; 21]], &"x".repeat(20), Some(TextEnd::Full));
    }
}
