//! What went wrong, said to the person who can fix it, and the exit code that goes with it.
//!
//! Every message has the same form: what the program was trying to do, the facts, a hint
//! where someone can act.
//!
//! Not here: a guest's misbehaviour, which is a fault in the record and no error.

use std::fmt;
use std::io;
use std::path::Path;

/// The program did what was asked and found nothing wrong.
pub const EXIT_OK: u8 = 0;
/// The program did what was asked and has something to report, such as a failed check.
pub const EXIT_FINDINGS: u8 = 1;
/// The command line or a tournament file is wrong.
pub const EXIT_CONFIG: u8 = 2;
/// A catalog, a component or a log is wrong.
pub const EXIT_INPUT: u8 = 3;
/// The machine failed: disk, child process, too many voided matches.
pub const EXIT_INFRASTRUCTURE: u8 = 4;
/// Interrupted by Ctrl-C; the log is sound and the same command goes on.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum CliError {
    /// The command line or a tournament file is wrong.
    Config(Complaint),
    /// A catalog, a component or a log is wrong.
    Input(Complaint),
    /// The machine failed.
    Infrastructure(Complaint),
    /// The reader of standard output went away, which is its right.
    BrokenPipe,
}

/// One message: what was tried, what was found, what to do.
#[derive(Debug)]
pub struct Complaint {
    /// What the program could not do, for example ``cannot load `smoke.toml` ``.
    pub failed: String,
    /// The facts, one a line.
    pub facts: Vec<String>,
    /// What someone can do about it.
    pub hint: Option<String>,
}

impl Complaint {
    /// Says that something failed because of one fact.
    pub fn new(failed: impl Into<String>, fact: impl fmt::Display) -> Complaint {
        Complaint { failed: failed.into(), facts: vec![fact.to_string()], hint: None }
    }

    /// Adds what someone can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Complaint {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It names files, and a line end in a name must not begin a line of its own. The lines of
        // facts are told from others by their indent.
        write!(f, "{}", self.failed.replace('\n', "\\n"))?;
        for fact in &self.facts {
            for line in fact.lines() {
                write!(f, "\n  {line}")?;
            }
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl CliError {
    /// Returns the exit code of the kind.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Config(_) => EXIT_CONFIG,
            CliError::Input(_) => EXIT_INPUT,
            CliError::Infrastructure(_) => EXIT_INFRASTRUCTURE,
            CliError::BrokenPipe => EXIT_OK,
        }
    }

    /// Returns what to tell the person, if there is anything to tell.
    pub fn complaint(&self) -> Option<&Complaint> {
        match self {
            CliError::Config(complaint)
            | CliError::Input(complaint)
            | CliError::Infrastructure(complaint) => Some(complaint),
            CliError::BrokenPipe => None,
        }
    }

    /// Judges a failed write to standard output.
    pub fn from_stdout(error: &io::Error) -> CliError {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CliError::BrokenPipe;
        }
        CliError::Infrastructure(Complaint::new("cannot write to standard output", error))
    }

    /// Says that a file that the person named could not be read.
    pub fn unreadable(path: &Path, error: &io::Error) -> Complaint {
        Complaint::new(format!("cannot read `{}`", path.display()), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_has_facts_and_a_hint_on_their_own_lines() {
        let complaint = Complaint::new("cannot load `a.toml`", "line 3\nline 4").hint("look there");
        assert_eq!(
            complaint.to_string(),
            "cannot load `a.toml`\n  line 3\n  line 4\n  hint: look there"
        );
    }
}
