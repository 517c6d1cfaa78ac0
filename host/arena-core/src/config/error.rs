//! Errors of a tournament file: where, which key, what, and what to do.

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
pub(super) struct Mistake {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Mistake {
    pub(super) fn at(span: Range<usize>, message: String) -> Mistake {
        Mistake {
            span,
            message,
            hint: None,
        }
    }

    pub(super) fn hint(self, hint: String) -> Mistake {
        Mistake {
            hint: Some(hint),
            ..self
        }
    }

    /// Rewrites what the TOML reader says in the words of this program.
    pub(super) fn from_toml(error: &toml::de::Error) -> Mistake {
        let span = error.span().unwrap_or(0..0);
        let message = error.message();
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let known = quoted.get(1..).unwrap_or_default();
        if message.starts_with("unknown field ") {
            let found = quoted.first().copied().unwrap_or_default();
            let message = format!("unknown key `{found}`");
            return Mistake {
                span,
                message,
                hint: Some(suggestion(found, known)),
            };
        }
        if message.starts_with("unknown variant ") {
            let found = quoted.first().copied().unwrap_or_default();
            let message = format!("unknown value `{found}`");
            return Mistake {
                span,
                message,
                hint: Some(suggestion(found, known)),
            };
        }
        if let Some(rest) = message.strip_prefix("missing field ") {
            return Mistake {
                span,
                message: format!("missing key {rest}"),
                hint: None,
            };
        }
        let first_line = message.lines().next().unwrap_or_default();
        Mistake {
            span,
            message: first_line.to_owned(),
            hint: None,
        }
    }

    /// Gives the mistake its line, column and key.
    pub(super) fn locate(self, text: &str) -> ConfigError {
        let offset = text.floor_char_boundary(self.span.start);
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        ConfigError {
            line: before.matches('\n').count() + 1,
            column: text[line_start..offset].chars().count() + 1,
            key: DeTable::parse(text)
                .map(|table| key_in_table(table.get_ref(), &self.span))
                .unwrap_or_default(),
            message: self.message,
            hint: self.hint,
        }
    }
}

/// Most keys that a hint lists when none of them is near.
const LISTED_KEYS_MAX: usize = 16;

/// Suggests the known word nearest to the one found, or lists them all.
fn suggestion(found: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|word| (distance(found, word), *word))
        .min();
    match nearest {
        // A third of the letters wrong is a slip, more is another word.
        Some((steps, word)) if steps * 3 <= found.len().max(word.len()) => {
            format!("did you mean `{word}`?")
        }
        Some(_) => {
            let listed: Vec<String> = known
                .iter()
                .take(LISTED_KEYS_MAX)
                .map(|word| format!("`{word}`"))
                .collect();
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
