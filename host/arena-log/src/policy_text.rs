//! Reads policy files: lines of `log`, `witness`, `group` and `quorum` (C2SP tlog-policy).
//!
//! Every line is understood wholly or the file is refused, with the number of the line. Names
//! are compared byte by byte and mean nothing outside the file.
//!
//! Not here: what a policy says of a checkpoint (`policy`).

use std::collections::BTreeMap;
use std::fmt;

use crate::note::{KeyKind, NoteError, SIGNATURES_MAX, Vkey};
use crate::policy::{Member, Policy};
use crate::text;

/// Largest policy file in bytes.
pub const POLICY_BYTES_MAX: usize = 256 << 10;
/// Most logs in a policy. C2SP asks for 32 at least, as for witnesses and groups.
pub const LOGS_MAX: usize = 64;
/// Most witnesses in a policy: one note has room for a line of each and one of the log, so that
/// whatever quorum a policy asks for can be met in a receipt, too.
pub const WITNESSES_MAX: usize = SIGNATURES_MAX - 1;
/// Most groups in a policy.
pub const GROUPS_MAX: usize = 64;

/// The name that stands for no witness at all.
const NO_QUORUM: &[u8] = b"none";

/// Reads a whole policy file.
pub(crate) fn parse(bytes: &[u8]) -> Result<Policy, PolicyTextError> {
    if bytes.len() > POLICY_BYTES_MAX {
        return Err(PolicyTextError::TooLarge { bytes: bytes.len() });
    }
    let mut reading = Reading::default();
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let at = |problem| PolicyTextError::Line { number: index + 1, problem };
        if lines.peek().is_none() && !line.is_empty() {
            return Err(at(Problem::NoNewline));
        }
        reading.line(line).map_err(at)?;
    }
    let quorum = reading.quorum.ok_or(PolicyTextError::NoQuorum)?;
    let Reading { logs, witnesses, members, .. } = reading;
    Ok(Policy { logs, witnesses, members, quorum })
}

/// What the lines so far have defined.
#[derive(Default)]
struct Reading {
    logs: Vec<Vkey>,
    witnesses: Vec<Vkey>,
    members: Vec<Member>,
    groups: usize,
    /// Where a name stands in `members`, and whether a group has taken it.
    names: BTreeMap<Vec<u8>, (usize, bool)>,
    quorum: Option<Option<usize>>,
}

impl Reading {
    fn line(&mut self, line: &[u8]) -> Result<(), Problem> {
        let is_forbidden = |byte: &u8| matches!(byte, 0..=8 | 10..=31 | 127);
        if let Some(byte) = line.iter().copied().find(is_forbidden) {
            return Err(Problem::Control { byte });
        }
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
        let items: Vec<&[u8]> = line.split(is_space).filter(|item| !item.is_empty()).collect();
        match items.as_slice() {
            [] => Ok(()),
            [first, ..] if first.starts_with(b"#") => Ok(()),
            [b"log", vkey] | [b"log", vkey, _] => self.log(vkey),
            [b"witness", name, vkey] | [b"witness", name, vkey, _] => self.witness(name, vkey),
            [b"group", name, threshold, members @ ..] if !members.is_empty() => {
                self.group(name, threshold, members)
            }
            [b"quorum", name] => self.set_quorum(name),
            [keyword, ..] => Err(match *keyword {
                b"log" => Problem::Form { form: "log VKEY [URL]" },
                b"witness" => Problem::Form { form: "witness NAME VKEY [URL]" },
                b"group" => Problem::Form { form: "group NAME all|any|NUMBER NAME..." },
                b"quorum" => Problem::Form { form: "quorum NAME" },
                other => Problem::Keyword { found: shown(other) },
            }),
        }
    }

    fn log(&mut self, vkey: &[u8]) -> Result<(), Problem> {
        let vkey = key_for(vkey, KeyKind::Log)?;
        add_key(&mut self.logs, vkey, LOGS_MAX)
    }

    fn witness(&mut self, name: &[u8], vkey: &[u8]) -> Result<(), Problem> {
        let vkey = key_for(vkey, KeyKind::Witness)?;
        self.define(name, Member::Witness(self.witnesses.len()))?;
        add_key(&mut self.witnesses, vkey, WITNESSES_MAX)
    }

    fn group(&mut self, name: &[u8], threshold: &[u8], names: &[&[u8]]) -> Result<(), Problem> {
        let threshold = match threshold {
            b"all" => names.len(),
            b"any" => 1,
            digits => threshold_of(digits, names.len())?,
        };
        let mut members = Vec::with_capacity(names.len());
        for member in names {
            // A second place would give one witness two votes.
            let (place, is_taken) = self
                .names
                .get_mut(*member)
                .ok_or_else(|| Problem::Unknown { name: shown(member) })?;
            if *is_taken {
                return Err(Problem::Taken { name: shown(member) });
            }
            *is_taken = true;
            members.push(*place);
        }
        self.groups += 1;
        if self.groups > GROUPS_MAX {
            return Err(Problem::TooMany { most: GROUPS_MAX });
        }
        self.define(name, Member::Group { threshold, members })
    }

    fn set_quorum(&mut self, name: &[u8]) -> Result<(), Problem> {
        if self.quorum.is_some() {
            return Err(Problem::SecondQuorum);
        }
        self.quorum = Some(match self.names.get(name) {
            _ if name == NO_QUORUM => None,
            Some((place, _)) => Some(*place),
            None => return Err(Problem::Unknown { name: shown(name) }),
        });
        Ok(())
    }

    fn define(&mut self, name: &[u8], member: Member) -> Result<(), Problem> {
        if name == NO_QUORUM {
            return Err(Problem::Reserved);
        }
        if self.names.insert(name.to_vec(), (self.members.len(), false)).is_some() {
            return Err(Problem::Defined { name: shown(name) });
        }
        self.members.push(member);
        Ok(())
    }
}

fn key_for(vkey: &[u8], wanted: KeyKind) -> Result<Vkey, Problem> {
    let text =
        str::from_utf8(vkey).map_err(|_| Problem::Key(NoteError::Vkey { vkey: shown(vkey) }))?;
    let vkey = Vkey::parse(text).map_err(Problem::Key)?;
    if vkey.kind() != wanted {
        return Err(Problem::Key(NoteError::WrongUse { vkey: vkey.to_string(), wanted }));
    }
    Ok(vkey)
}

/// Two names for one key would be two votes of one signer.
fn add_key(keys: &mut Vec<Vkey>, vkey: Vkey, most: usize) -> Result<(), Problem> {
    if let Some(known) = keys.iter().find(|known| known.key() == vkey.key()) {
        return Err(Problem::SameKey {
            name: vkey.name().to_owned(),
            known: known.name().to_owned(),
        });
    }
    if keys.len() == most {
        return Err(Problem::TooMany { most });
    }
    keys.push(vkey);
    Ok(())
}

fn threshold_of(digits: &[u8], members: usize) -> Result<usize, Problem> {
    let number = str::from_utf8(digits).ok().and_then(text::from_decimal);
    let number = number.and_then(|number| usize::try_from(number).ok());
    match number {
        Some(threshold) if (1..=members).contains(&threshold) => Ok(threshold),
        _ => Err(Problem::Threshold { found: shown(digits), members }),
    }
}

fn shown(bytes: &[u8]) -> String {
    text::excerpt(&String::from_utf8_lossy(bytes))
}

/// A policy file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyTextError {
    /// The file is larger than any.
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// A line is wrong.
    Line {
        /// Which, counted from 1.
        number: usize,
        /// What is wrong with it.
        problem: Problem,
    },
    /// Nothing says how many witnesses are enough.
    NoQuorum,
}

/// What is wrong with a line of a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The file ends within the line.
    NoNewline,
    /// A byte that no text has.
    Control {
        /// The byte.
        byte: u8,
    },
    /// Too few or too many items.
    Form {
        /// How such a line is written.
        form: &'static str,
    },
    /// No such line.
    Keyword {
        /// The first item.
        found: String,
    },
    /// A key cannot be used here.
    Key(NoteError),
    /// A key that stands in an earlier line.
    SameKey {
        /// The name of the key here.
        name: String,
        /// The name of the key there.
        known: String,
    },
    /// A name that no earlier line defines.
    Unknown {
        /// The name.
        name: String,
    },
    /// A name that an earlier line defines.
    Defined {
        /// The name.
        name: String,
    },
    /// A member that is in a group already.
    Taken {
        /// Its name.
        name: String,
    },
    /// `none` is no name to give.
    Reserved,
    /// A group that asks for no members, for more than it has, or for no number.
    Threshold {
        /// What it asks for.
        found: String,
        /// How many it has.
        members: usize,
    },
    /// More lines of this sort than anyone needs.
    TooMany {
        /// How many there can be.
        most: usize,
    },
    /// A second quorum line.
    SecondQuorum,
}

impl fmt::Display for PolicyTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyTextError::TooLarge { bytes } => {
                write!(f, "a policy has {bytes} bytes, the most is {POLICY_BYTES_MAX}")
            }
            PolicyTextError::Line { number, problem } => {
                write!(f, "line {number} of the policy: {problem}")
            }
            PolicyTextError::NoQuorum => write!(
                f,
                "a policy has no quorum line: add `quorum NAME`, or `quorum none` to ask for no \
                 witness"
            ),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoNewline => write!(f, "it does not end in a newline"),
            Problem::Control { byte } => write!(f, "it has the control character 0x{byte:02x}"),
            Problem::Form { form } => write!(f, "expected `{form}`"),
            Problem::Keyword { found } => {
                write!(f, "`{found}` is none of `log`, `witness`, `group`, `quorum`")
            }
            Problem::Key(error) => write!(f, "{error}"),
            Problem::SameKey { name, known } => {
                write!(f, "`{name}` has the same key as `{known}`, which counts once")
            }
            Problem::Unknown { name } => {
                write!(f, "`{name}` is not the name of a witness or group of an earlier line")
            }
            Problem::Defined { name } => write!(f, "there is a `{name}` already"),
            Problem::Taken { name } => {
                write!(f, "`{name}` is in a group already, and counts in one only")
            }
            Problem::Reserved => write!(f, "`none` stands for no witness and is no name"),
            Problem::Threshold { found, members } => {
                write!(f, "a group asks for `{found}` of {members} members")
            }
            Problem::TooMany { most } => write!(f, "there are more than {most} of them"),
            Problem::SecondQuorum => write!(f, "a policy has one quorum line"),
        }
    }
}

impl std::error::Error for PolicyTextError {}
