//! Shows what models write while they write it.
//!
//! On a terminal every token appears as it comes, elsewhere every line when it is complete. Each
//! line begins with whoever writes it, if there are several. What could mislead is written out.
//!
//! Not here: what the pieces of a reply are (`arena_model`), and the transcript of a match, which
//! is printed once it is played (`render`).

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use crate::escape::harmless;
use crate::screen::{Paint, Tone};

/// Longest line in bytes that is kept until its end comes.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Someone whose words are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// What stands before each of its lines; nothing where there is only one speaker.
    pub name: String,
    /// How that is set off.
    pub tone: Tone,
}

/// The view. Words may come from any thread.
pub struct Live {
    state: Mutex<State>,
}

struct State {
    out: Box<dyn Write + Send>,
    paint: Paint,
    is_prompt: bool,
    /// The line under way: not shown yet, or shown to its end.
    line: String,
    /// Whose line is under way, and in which reply.
    open: Option<(Speaker, u32)>,
    /// Why nothing more can be shown.
    failure: Option<io::Error>,
}

impl Live {
    /// A view on standard output.
    pub fn on_stdout() -> Live {
        let stdout = io::stdout();
        let is_prompt = stdout.is_terminal();
        Live::new(Box::new(stdout), Paint::of_stdout(), is_prompt)
    }

    /// A view on standard error.
    pub fn on_stderr() -> Live {
        let stderr = io::stderr();
        let is_prompt = stderr.is_terminal();
        Live::new(Box::new(stderr), Paint::of_stderr(), is_prompt)
    }

    fn new(out: Box<dyn Write + Send>, paint: Paint, is_prompt: bool) -> Live {
        let line = String::new();
        let state = State { out, paint, is_prompt, line, open: None, failure: None };
        Live { state: Mutex::new(state) }
    }

    /// Shows the next piece of the speaker's reply of this number. Another one begins a line.
    pub fn write(&self, speaker: &Speaker, reply: u32, text: &str) {
        self.with(|state| {
            let writes = (speaker.clone(), reply);
            if state.open.as_ref().is_some_and(|open| *open != writes) {
                state.end();
            }
            for (number, part) in text.split('\n').enumerate() {
                if number > 0 {
                    state.begin(&writes);
                    state.end_line();
                }
                if !part.is_empty() {
                    state.begin(&writes);
                    state.add(&harmless(part));
                }
            }
        });
    }

    /// Ends the reply under way, and its line.
    pub fn end(&self) {
        self.with(State::end);
    }

    /// Says why words could not be shown, once.
    pub fn failure(&self) -> Option<io::Error> {
        let mut failure = None;
        self.with(|state| failure = state.failure.take());
        failure
    }

    fn with(&self, action: impl FnOnce(&mut State)) {
        // A view that broke off is still a view.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        action(&mut state);
    }
}

impl State {
    fn begin(&mut self, writes: &(Speaker, u32)) {
        if self.open.is_none() {
            self.open = Some(writes.clone());
            let speaker = &writes.0;
            if !speaker.name.is_empty() {
                let name = self.paint.paint(speaker.tone, &format!("{:>8} | ", speaker.name));
                self.put(&name);
            }
        }
    }

    fn add(&mut self, text: &str) {
        self.put(text);
        if self.line.len() > LINE_BYTES_MAX {
            self.end_line();
        }
    }

    fn put(&mut self, text: &str) {
        match self.is_prompt {
            true => self.show(text),
            false => self.line.push_str(text),
        }
    }

    fn end_line(&mut self) {
        self.put("\n");
        let line = std::mem::take(&mut self.line);
        self.show(&line);
        self.open = None;
    }

    fn end(&mut self) {
        if self.open.is_some() {
            self.end_line();
        }
    }

    fn show(&mut self, text: &str) {
        let shown = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if let Err(error) = shown {
            self.failure = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Shown(Arc<Mutex<Vec<u8>>>);

    impl Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no thread panicked").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Shown {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no thread panicked").clone()).expect("UTF-8")
        }
    }

    fn speaker(name: &str) -> Speaker {
        Speaker { name: name.to_owned(), tone: Tone::Note }
    }

    fn view(is_prompt: bool) -> (Live, Shown) {
        let shown = Shown::default();
        (Live::new(Box::new(shown.clone()), Paint::OFF, is_prompt), shown)
    }

    #[test]
    fn on_a_terminal_every_token_is_shown_at_once() {
        let (live, shown) = view(true);
        live.write(&speaker("buyer"), 0, "I offer");
        assert_eq!(shown.text(), "   buyer | I offer");
        live.write(&speaker("buyer"), 0, " $5.\nTake it");
        live.end();
        assert_eq!(shown.text(), "   buyer | I offer $5.\n   buyer | Take it\n");
    }

    #[test]
    fn elsewhere_only_whole_lines_are_shown() {
        let (live, shown) = view(false);
        live.write(&speaker("seller"), 0, "No");
        assert_eq!(shown.text(), "");
        live.write(&speaker("seller"), 0, ", $6.\n");
        assert_eq!(shown.text(), "  seller | No, $6.\n");
        live.write(&speaker("buyer"), 0, "Fine");
        live.write(&speaker("seller"), 0, "Good");
        live.end();
        assert_eq!(shown.text(), "  seller | No, $6.\n   buyer | Fine\n  seller | Good\n");
    }

    #[test]
    fn what_could_mislead_is_written_out() {
        let (live, shown) = view(true);
        live.write(&speaker("buyer"), 0, "5 €\u{1b}[2J\u{202e}!");
        live.end();
        assert_eq!(shown.text(), "   buyer | 5 €\\u{1b}[2J\\u{202e}!\n");
    }

    #[test]
    fn a_single_speaker_needs_no_name() {
        let (live, shown) = view(true);
        live.write(&speaker(""), 0, "Four.\n\nOr so.");
        live.end();
        assert_eq!(shown.text(), "Four.\n\nOr so.\n");
    }

    #[test]
    fn a_second_reply_begins_a_line_of_its_own() {
        let (live, shown) = view(true);
        live.write(&speaker("buyer"), 0, "Well");
        live.write(&speaker("buyer"), 1, "I offer $5.");
        live.end();
        assert_eq!(shown.text(), "   buyer | Well\n   buyer | I offer $5.\n");
    }

    #[test]
    fn an_endless_line_is_broken() {
        let (live, shown) = view(false);
        live.write(&speaker("buyer"), 0, &"x".repeat(LINE_BYTES_MAX + 1));
        assert!(shown.text().ends_with("x\n"));
    }
}
