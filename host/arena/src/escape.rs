//! Makes text of strangers harmless on a terminal.
//!
//! What comes out has no control characters, no terminal commands, nothing that reorders or
//! hides its neighbours, and it is one line. Nothing is dropped silently: what cannot be
//! shown appears as `\n`, `\u{202e}` and the like.

/// Returns `text` with everything that could mislead a reader written out.
pub fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '\\' => shown.push_str("\\\\"),
            _ if misleads(character) => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Returns text of several lines in which nothing misleads. Line ends and backslashes stay, so
/// that text which was escaped already stays as it is.
pub fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push('\n'),
            _ if misleads(character) => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Returns a JSON document in which nothing misleads, and which reads back to the same value.
///
/// JSON itself asks for no escape but that of the first 32 characters.
pub fn harmless_json(document: &str) -> String {
    let mut shown = String::with_capacity(document.len());
    let mut units = [0; 2];
    for character in document.chars() {
        match character {
            '\n' => shown.push('\n'),
            // Outside of strings there is no such character.
            _ if misleads(character) => shown.extend(
                character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")),
            ),
            _ => shown.push(character),
        }
    }
    shown
}

/// Returns at most `chars` characters of `text`, escaped, with `…` where it was cut.
pub fn excerpt(text: &str, chars: usize) -> String {
    let mut kept: String = text.chars().take(chars).collect();
    let cut = text.chars().nth(chars).is_some();
    kept = escape(&kept);
    if cut {
        kept.push('…');
    }
    kept
}

/// Controls (C0, C1, delete), invisible and bidirectional format characters, line and
/// paragraph separators, variation selectors, tags, and everything that has no glyph.
fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_commands_bidi_and_zero_width_are_written_out() {
        for (text, shown) in [
            ("plain £5 – ok", "plain £5 – ok"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("pay \u{202e}05", "pay \\u{202e}05"),
            ("1\u{200b}0", "1\\u{200b}0"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("back\\slash", "back\\\\slash"),
        ] {
            assert_eq!(escape(text), shown);
        }
    }

    #[test]
    fn harmless_text_keeps_its_lines_and_what_was_escaped_before() {
        for (text, shown) in [
            ("one\n  two\\n", "one\n  two\\n"),
            ("\u{1b}[31m\n\u{202e}", "\\u{1b}[31m\n\\u{202e}"),
            ("a\rb\tc", "a\\u{d}b\\u{9}c"),
        ] {
            assert_eq!(harmless(text), shown);
            assert_eq!(harmless(&harmless(text)), shown);
        }
    }

    #[test]
    fn harmless_json_reads_back_to_the_same_value() {
        let value =
            serde_json::json!({ "\u{9b}31m": ["\u{1b}[2J", "\u{202e}\n", "\u{e0041}", "é"] });
        let document = serde_json::to_string_pretty(&value).expect("a document");
        let shown = harmless_json(&document);
        assert!(!shown.contains(|character: char| character != '\n' && misleads(character)));
        assert!(shown.contains(r#""\udb40\udc41""#) && shown.contains("é"), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).expect("it is JSON");
        assert_eq!(read, value);
    }

    #[test]
    fn an_excerpt_counts_characters_and_marks_the_cut() {
        assert_eq!(excerpt("żółw", 4), "żółw");
        assert_eq!(excerpt("żółwie", 4), "żółw…");
        assert_eq!(excerpt("\u{1b}\u{1b}\u{1b}", 2), "\\u{1b}\\u{1b}…");
    }
}
