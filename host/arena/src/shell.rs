//! Command lines of this program that can be pasted into a shell.
//!
//! Not here: what they say, which the commands know.

/// Returns `arena` with these words, each quoted where a shell needs that.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words = words.into_iter().map(quoted);
    let command: Vec<String> = std::iter::once("arena".to_owned()).chain(words).collect();
    command.join(" ")
}

/// Quotes a word for a shell where that is needed.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_read_it_otherwise() {
        for (words, line) in [
            (&["audit", "out/a-1", "--key", "a+0f+B/="][..], "arena audit out/a-1 --key a+0f+B/="),
            (&["audit", "my log", ""], "arena audit 'my log' ''"),
            (&["it's", "$(x)"], "arena 'it'\\''s' '$(x)'"),
        ] {
            assert_eq!(command_line(words.iter().copied()), line);
        }
    }
}
