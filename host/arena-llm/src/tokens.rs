//! Tokens of models that have no tokenizer of their own.
//!
//! A token is a longest run of ASCII letters, ASCII digits and non-ASCII characters, or one
//! other character that is not ASCII white space. White space belongs to no token. The rule
//! uses no Unicode table, so that a count never changes.

/// Returns the number of tokens in `text`, at most `u32::MAX`.
pub fn count(text: &str) -> u32 {
    u32::try_from(ends(text).count()).unwrap_or(u32::MAX)
}

/// Returns `text` up to the end of its token number `count`, or all of it if it has fewer.
pub fn cut(text: &str, count: u32) -> &str {
    let Some(before) = count.checked_sub(1) else {
        return "";
    };
    match ends(text).nth(before as usize) {
        Some(end) => &text[..end],
        None => text,
    }
}

/// Byte positions behind each token.
fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices().filter_map(move |(start, character)| {
        let end = start + character.len_utf8();
        let continues = is_word(character) && text[end..].chars().next().is_some_and(is_word);
        (!character.is_ascii_whitespace() && !continues).then_some(end)
    })
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || !character.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_punctuation_marks_count_one_each() {
        for (text, tokens) in [
            ("", 0),
            (" \n\t", 0),
            ("hello", 1),
            ("Offer: $95.50!", 7),
            ("zwölf Äpfel", 2),
            ("a  b", 2),
            ("...", 3),
        ] {
            assert_eq!(count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn a_cut_keeps_whole_tokens() {
        let text = " zwölf Äpfel, bitte ";
        for (tokens, kept) in [(0, ""), (1, " zwölf"), (2, " zwölf Äpfel"), (3, " zwölf Äpfel,")]
        {
            assert_eq!(cut(text, tokens), kept);
            assert_eq!(count(kept), tokens);
        }
        assert_eq!(cut(text, 5), text);
        assert_eq!(cut(text, u32::MAX), text);
    }
}
