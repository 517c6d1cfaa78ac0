//! Errors of a tournament file, or of another that is read as strictly: where, which key, what,
//! and what to do.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a tournament file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The innermost key at that place, for example `agents[1].component` (places in lists
    /// count from 0). Empty where the text is not TOML and at the top of the file.
    pub key: String,
    /// What is wrong, a lower-case fragment with values in backticks.
    pub message: String,
    /// What would be right, if that is known.
    pub hint: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        write!(f, "{}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

/// A mistake at a place of the text, before that place has a line and a key.
#[derive(Debug)]
pub struct Mistake {
    /// The place, in bytes.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
    /// The key, where the place alone would suggest another one.
    pub key: Option<&'static str>,
}

impl Mistake {
    /// Returns a mistake without a hint.
    pub fn at(span: Range<usize>, message: String) -> Mistake {
        Mistake { span, message, hint: None, key: None }
    }

    /// Adds what would be right.
    pub fn hint(self, hint: String) -> Mistake {
        Mistake { hint: Some(hint), ..self }
    }

    /// Rewrites what the TOML reader says in the words of this program.
    pub fn from_toml(error: &toml::de::Error, text: &str) -> Mistake {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().lines().next().unwrap_or_default();
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let found = quoted.first().copied().unwrap_or_default();
        let known = quoted.get(1..).unwrap_or_default();
        if message.starts_with("unknown field ") {
            return Mistake::at(span, format!("unknown key `{found}`"))
                .hint(suggestion(found, known));
        }
        if message.starts_with("unknown variant ") {
            return Mistake::at(span, format!("unknown value `{found}`"))
                .hint(suggestion(found, known));
        }
        if message.starts_with("missing field ") {
            return Mistake::at(span, format!("missing key `{found}`"));
        }
        if message == "duplicate key" {
            let key = text.get(span.clone()).unwrap_or_default();
            return Mistake::at(span, format!("duplicate key `{key}`"));
        }
        match message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
        {
            Some((found, expected)) => Mistake::wrong_type(span, found, expected),
            None => Mistake::at(span, message.to_owned()),
        }
    }

    fn wrong_type(span: Range<usize>, found: &str, expected: &str) -> Mistake {
        let plain = |word: &str| match word {
            "i128" => "a whole number".to_owned(),
            "map" => "a table".to_owned(),
            "a sequence" => "a list".to_owned(),
            "a string" => "text".to_owned(),
            other => other.to_owned(),
        };
        let mistake =
            Mistake::at(span, format!("expected {}, found {}", plain(expected), plain(found)));
        match (expected, found) {
            ("a sequence", "map") => {
                mistake.hint("tables of a list have double brackets, as in `[[agents]]`".to_owned())
            }
            ("a string", number) if number.starts_with("floating") => {
                mistake.hint("a price is text, as in `\"$10.00\"`".to_owned())
            }
            _ => mistake,
        }
    }

    /// Gives the mistake its line, column and key.
    pub fn locate(self, text: &str) -> ConfigError {
        let offset = text.floor_char_boundary(self.span.start);
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        ConfigError {
            line: before.matches('\n').count() + 1,
            column: text[line_start..offset].chars().count() + 1,
            key: match self.key {
                Some(key) => key.to_owned(),
                None => visible(&key_at(text, &self.span)),
            },
            message: visible(&self.message),
            hint: self.hint.map(|hint| visible(&hint)),
        }
    }
}

/// Longest text of the file that an error repeats, with the words around it, in characters.
const SHOWN_CHARS_MAX: usize = 500;

/// Returns a text that a terminal can show: cut, and with control characters escaped.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == SHOWN_CHARS_MAX {
            shown.push_str("...");
            break;
        }
        match character {
            '"' | '\'' | '\\' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

/// Most words that a hint lists when none of them is near.
const LISTED_WORDS_MAX: usize = 16;
/// Shortest beginning of a word that stands for it.
const PREFIX_BYTES_MIN: usize = 3;

/// Suggests the known word nearest to the one found, or lists them all.
pub fn suggestion(found: &str, known: &[&str]) -> String {
    let begun = |word: &&&str| found.len() >= PREFIX_BYTES_MIN && word.starts_with(found);
    if let Some(word) = known.iter().find(begun) {
        return format!("did you mean `{word}`?");
    }
    let nearest = known.iter().map(|word| (distance(found, word), *word)).min();
    match nearest {
        // A third of the letters wrong is a slip, more is another word.
        Some((steps, word)) if steps * 3 <= found.len().max(word.len()) => {
            format!("did you mean `{word}`?")
        }
        Some(_) => {
            let listed: Vec<String> =
                known.iter().take(LISTED_WORDS_MAX).map(|word| format!("`{word}`")).collect();
            format!("known here: {}", listed.join(", "))
        }
        None => "nothing is known here".to_owned(),
    }
}

/// Longest words between which a distance is computed, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// Returns how many single-byte insertions, deletions, replacements or swaps of neighbours
/// turn one word into the other (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len().max(right.len()) > WORD_BYTES_MAX {
        return left.len().max(right.len());
    }
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=right.len()).collect();
    for i in 1..=left.len() {
        for j in 1..=right.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            let crossed =
                i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if crossed {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[left.len()][right.len()]
}

fn covers(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Returns the path of the innermost key at a place; empty where the text is not TOML.
fn key_at(text: &str, span: &Range<usize>) -> String {
    DeTable::parse(text).map(|table| key_in_table(table.get_ref(), span)).unwrap_or_default()
}

/// Returns the path of the innermost key whose name or value covers a span.
fn key_in_table(table: &DeTable<'_>, span: &Range<usize>) -> String {
    for (key, value) in table {
        if covers(&key.span(), span) {
            return key.get_ref().to_string();
        }
        if let Some(inner) = key_in_value(value, span) {
            return format!("{}{inner}", key.get_ref());
        }
    }
    String::new()
}

/// Returns what to add to a key's path for a span inside its value; `None` if it is outside.
fn key_in_value(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    let inside = covers(&value.span(), span);
    match value.get_ref() {
        DeValue::Table(table) => match key_in_table(table, span) {
            inner if !inner.is_empty() => Some(format!(".{inner}")),
            _ => inside.then(String::new),
        },
        DeValue::Array(values) => {
            let mut found = values.iter().enumerate().filter_map(|(place, value)| {
                key_in_value(value, span).map(|inner| format!("[{place}]{inner}"))
            });
            found.next().or_else(|| inside.then(String::new))
        }
        _ => inside.then(String::new),
    }
}
