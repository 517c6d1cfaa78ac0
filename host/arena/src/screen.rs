//! The two places that text goes to: results to standard output, everything else to
//! standard error.
//!
//! Words are the same with and without colour. Colours appear only on a terminal, and never
//! when `NO_COLOR` is set or `TERM` is `dumb`.
//!
//! Not here: escaping strangers' text in results, which callers do (`escape`).

use std::io::{self, IsTerminal, Write};

use crate::error::{CliError, Complaint};
use crate::escape::{harmless, harmless_json};

/// How a piece of text is set off on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// Headings.
    Bold,
    /// Side remarks.
    Dim,
    /// Success.
    Good,
    /// Failures and faults.
    Bad,
    /// Hints.
    Note,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Plain => "0",
            Tone::Bold => "1",
            Tone::Dim => "2",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Note => "36",
        }
    }
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    colours: bool,
}

impl Paint {
    /// Never colours.
    #[cfg(test)]
    pub const OFF: Paint = Paint { colours: false };

    /// Decides for standard output.
    pub fn of_stdout() -> Paint {
        Paint { colours: io::stdout().is_terminal() && wanted() }
    }

    /// Decides for standard error.
    pub fn of_stderr() -> Paint {
        Paint { colours: io::stderr().is_terminal() && wanted() }
    }

    /// Returns `text` in a tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colours || tone == Tone::Plain || text.trim().is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code())
    }
}

fn wanted() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !refused && !dumb
}

/// Writes results to standard output.
///
/// # Errors
/// The reader went away, or the disk is full.
pub fn results(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| CliError::from_stdout(&error))
}

/// Writes one JSON document to standard output.
///
/// # Errors
/// The reader went away, or the disk is full.
pub fn json(value: &serde_json::Value) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).expect("a JSON value can be written");
    results(&format!("{}\n", harmless_json(&text)))
}

/// Writes a remark to standard error. That nobody reads it is no reason to stop.
///
/// Remarks and errors quote paths, keys and names of strangers, so whatever could mislead is
/// written out here, once for all of them.
pub fn remark(text: &str) {
    write_remark(&harmless(text));
}

/// Writes the beginning of a line to standard error, for a person to go on with.
pub fn ask(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

fn write_remark(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Longest line of an error in characters: a value that is quoted may be a whole file.
const ERROR_LINE_CHARS_MAX: usize = 2_000;

fn shorten(line: &str) -> String {
    let mut shown: String = line.chars().take(ERROR_LINE_CHARS_MAX).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

/// Writes an error to standard error.
pub fn complain(complaint: &Complaint) {
    let paint = Paint::of_stderr();
    let lines: Vec<String> = complaint.to_string().lines().map(shorten).collect();
    let text = harmless(&lines.join("\n"));
    let text = text.replacen("\n  hint:", &format!("\n  {}", paint.paint(Tone::Note, "hint:")), 1);
    write_remark(&format!("{} {text}", paint.paint(Tone::Bad, "error:")));
}
