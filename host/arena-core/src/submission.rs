//! An author's statement about an agent: which component, in which tournament, under which name,
//! with which parameters, for which roles.
//!
//! The statement is the text of a signed note (`arena_log::note`), so that any tool which reads
//! notes can check it. It has one form: reading writes it again and compares.
//!
//! Not here: signatures.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::config::is_name;
use crate::hexadecimal::{hex, unhex};
use crate::scenario::Role;

/// The first line of every statement.
const HEADING: &str = "arena/submission/v1";

/// Longest statement in bytes, with its signatures.
pub const SUBMISSION_BYTES_MAX: usize = 4_096;

/// Longest verifier key in a statement, in bytes.
const AUTHOR_BYTES_MAX: usize = 512;

/// What an author states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The agent's name in the tournament.
    pub agent: String,
    /// The tournament's name: the statement enters the agent into no other.
    pub tournament: String,
    /// SHA-256 of the component.
    pub component_sha256: [u8; 32],
    /// SHA-256 of the parameters that the agent is given ([`params_sha256`]).
    pub params_sha256: [u8; 32],
    /// The roles that it may be seated in: buyer, seller.
    pub roles: [bool; 2],
    /// When the author says that it was signed, in POSIX seconds. A claim.
    pub time: u64,
    /// The commitment to the author's contribution to the draws, if it makes one
    /// ([`crate::draws::commit_contribution`]).
    pub contribution: Option<[u8; 32]>,
    /// The author's verifier key, as text.
    pub author: String,
}

/// A text that is not a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmissionError {
    /// The line, from 1.
    pub line: usize,
    /// What should be there.
    pub wanted: &'static str,
}

impl fmt::Display for SubmissionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the submission is not {}", self.line, self.wanted)
    }
}

impl std::error::Error for SubmissionError {}

impl Submission {
    /// Returns the statement's text.
    pub fn text(&self) -> String {
        let roles: Vec<&str> = Role::BOTH
            .into_iter()
            .filter(|role| self.roles[role.index()])
            .map(|role| match role {
                Role::Buyer => "buyer",
                Role::Seller => "seller",
            })
            .collect();
        let contribution = self.contribution.map_or("none".to_owned(), |hash| hex(&hash));
        format!(
            "{HEADING}\nagent {}\ntournament {}\ncomponent {}\nparams {}\nroles {}\ntime {}\n\
             contribution {contribution}\nauthor {}\n",
            self.agent,
            self.tournament,
            hex(&self.component_sha256),
            hex(&self.params_sha256),
            roles.join(" "),
            self.time,
            self.author,
        )
    }

    /// Reads a statement's text.
    ///
    /// # Errors
    /// Anything that [`Submission::text`] would not have written.
    pub fn parse(text: &str) -> Result<Submission, SubmissionError> {
        let mut lines = text.split('\n');
        let mut number = 0;
        let mut field = |prefix: &str, wanted: &'static str| {
            number += 1;
            let line = lines.next().and_then(|line| line.strip_prefix(prefix));
            line.ok_or(SubmissionError { line: number, wanted })
        };
        let wrong = |line, wanted| SubmissionError { line, wanted };
        let heading = field("", "`arena/submission/v1`")?;
        if heading != HEADING {
            return Err(wrong(1, "`arena/submission/v1`"));
        }
        let agent = field("agent ", "`agent NAME`")?;
        if !is_name(agent) {
            return Err(wrong(2, "`agent NAME`"));
        }
        let tournament = field("tournament ", "`tournament NAME`")?;
        if !is_name(tournament) {
            return Err(wrong(3, "`tournament NAME`"));
        }
        let component = field("component ", "`component SHA256`")?;
        let component_sha256 = unhex(component).ok_or(wrong(4, "`component SHA256`"))?;
        let params = field("params ", "`params SHA256`")?;
        let params_sha256 = unhex(params).ok_or(wrong(5, "`params SHA256`"))?;
        let roles = match field("roles ", "`roles buyer seller`")? {
            "buyer seller" => [true, true],
            "buyer" => [true, false],
            "seller" => [false, true],
            _ => return Err(wrong(6, "`roles buyer seller`")),
        };
        let time = field("time ", "`time SECONDS`")?;
        let time = time.parse().map_err(|_| wrong(7, "`time SECONDS`"))?;
        let contribution = match field("contribution ", "`contribution SHA256` or `none`")? {
            "none" => None,
            hash => Some(unhex(hash).ok_or(wrong(8, "`contribution SHA256` or `none`"))?),
        };
        let author = field("author ", "`author VKEY`")?;
        if author.len() > AUTHOR_BYTES_MAX {
            return Err(wrong(9, "`author VKEY` of at most 512 bytes"));
        }
        let read = Submission {
            agent: agent.to_owned(),
            tournament: tournament.to_owned(),
            component_sha256,
            params_sha256,
            roles,
            time,
            contribution,
            author: author.to_owned(),
        };
        if read.text() == text { Ok(read) } else { Err(wrong(10, "the end")) }
    }
}

/// Returns how a statement names the parameters of an agent.
pub fn params_sha256(params: &str) -> [u8; 32] {
    Sha256::digest(params).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Submission {
        Submission {
            agent: "haggler".to_owned(),
            tournament: "spring".to_owned(),
            component_sha256: [0xab; 32],
            params_sha256: params_sha256("low=30%"),
            roles: [true, true],
            time: 1_796_000_000,
            contribution: Some([7; 32]),
            author: "haggler+01020304+AQID".to_owned(),
        }
    }

    #[test]
    fn a_statement_is_read_as_it_was_written() {
        let with = sample();
        let without = Submission { contribution: None, roles: [false, true], ..sample() };
        for statement in [with, without] {
            assert_eq!(Submission::parse(&statement.text()), Ok(statement));
        }
    }

    #[test]
    fn every_other_text_is_refused() {
        let text = sample().text();
        for (from, to, line) in [
            ("v1", "v2", 1),
            ("agent haggler", "agent a b", 2),
            ("tournament spring", "tournament ", 3),
            ("component ab", "component AB", 4),
            ("params ", "params 0", 5),
            ("buyer seller", "seller buyer", 6),
            ("time 1", "time +1", 10),
            ("time 1", "time 01", 10),
            ("contribution 07", "contribution 7", 8),
            ("author", "Author", 9),
            ("AQID\n", "AQID", 10),
            ("AQID\n", "AQID\n\n", 10),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = Submission::parse(&changed).expect_err(&changed);
            assert_eq!(error.line, line, "{changed}");
        }
    }
}
