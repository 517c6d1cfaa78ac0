//! Which logs and which witnesses are trusted, as a file says (C2SP tlog-policy).
//!
//! A head passes where one of the listed logs signed it and enough of the listed witnesses
//! cosigned it. Every signature of a listed key must be right; what is absent counts for
//! nothing; each key counts once, in one place. There is no default: a file without a quorum
//! line is refused.
//!
//! Not here: addresses of logs and witnesses (they may be in the file, and are not used), and
//! judging the times that witnesses state.

use std::fmt;

use crate::checkpoint::{Head, HeadError};
use crate::cosignature;
use crate::note::{KeyKind, Note, NoteError, Vkey};
use crate::policy_text::{self, PolicyTextError};
use crate::text;

/// What a policy demands of witnesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// The witness at this place in the list of witnesses.
    Witness(usize),
    /// At least this many of the members at these places, all of them earlier ones.
    Group {
        /// How many.
        threshold: usize,
        /// Which.
        members: Vec<usize>,
    },
}

/// Whom to believe, and how many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub(crate) logs: Vec<Vkey>,
    pub(crate) witnesses: Vec<Vkey>,
    /// Witnesses and groups in the order of their lines: a group names earlier ones only.
    pub(crate) members: Vec<Member>,
    /// The member that must have witnessed, or `None` where none need have.
    pub(crate) quorum: Option<usize>,
}

/// A head that a policy accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The head.
    pub head: Head,
    /// The log that signed it.
    pub log: Vkey,
    /// Who cosigned it, in the order of the policy.
    pub cosigned: Vec<Cosigned>,
}

/// One witness's statement on a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosigned {
    /// The name of the witness's key.
    pub witness: String,
    /// When it saw the head, as it says, in seconds since 1970.
    pub time: u64,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// A line is not in the format, names what no earlier line defines, or names something
    /// twice; or there is not exactly one quorum line.
    pub fn parse(bytes: &[u8]) -> Result<Policy, PolicyTextError> {
        policy_text::parse(bytes)
    }

    /// Returns the policy that believes one log and asks for no witnesses.
    ///
    /// # Errors
    /// The key is a witness's.
    pub fn of_vkey(log: Vkey) -> Result<Policy, NoteError> {
        if log.kind() != KeyKind::Log {
            return Err(NoteError::WrongUse { vkey: log.to_string(), wanted: KeyKind::Log });
        }
        let (witnesses, members) = (Vec::new(), Vec::new());
        Ok(Policy { logs: vec![log], witnesses, members, quorum: None })
    }

    /// The logs that are believed.
    pub fn logs(&self) -> &[Vkey] {
        &self.logs
    }

    /// The witnesses that are known; the quorum says which of them are needed.
    pub fn witnesses(&self) -> &[Vkey] {
        &self.witnesses
    }

    /// Returns whether no witness need have cosigned.
    pub fn asks_for_no_witness(&self) -> bool {
        self.quorum.is_none()
    }

    /// Reads a checkpoint and returns its head where this policy accepts it.
    ///
    /// # Errors
    /// The checkpoint is malformed; its log is not listed or did not sign; a signature of a
    /// listed key is wrong; or too few witnesses cosigned.
    pub fn open(&self, bytes: &[u8]) -> Result<Opened, PolicyError> {
        self.open_with(bytes, &[])
    }

    /// Reads a checkpoint with the cosignatures that notes of the same text hold. They are
    /// counted where they lie: what stands in one note, by whomever, takes no other one's room.
    ///
    /// # Errors
    /// As [`Policy::open`]; or a signature of a listed key in one of the notes is wrong. Notes
    /// of another text say nothing.
    pub fn open_with(&self, bytes: &[u8], beside: &[Note]) -> Result<Opened, PolicyError> {
        let note = Note::parse(bytes).map_err(PolicyError::Note)?;
        let beside = beside.iter().filter(|other| other.text() == note.text());
        let notes: Vec<&Note> = [&note].into_iter().chain(beside).collect();
        let head = Head::parse(note.text()).map_err(PolicyError::Head)?;
        let mut signed_by = None;
        for log in &self.logs {
            let mut is_signed = false;
            for note in &notes {
                is_signed |= present(note.verify(log))?.is_some();
            }
            if is_signed && log.name() == head.origin && signed_by.is_none() {
                signed_by = Some(log.clone());
            }
        }
        let Some(log) = signed_by else {
            return Err(self.why_no_log(&note, &head));
        };
        let mut times = Vec::with_capacity(self.witnesses.len());
        for witness in &self.witnesses {
            times.push(earliest(&notes, witness)?);
        }
        self.check_quorum(&times)?;
        let stated = self.witnesses.iter().zip(&times);
        let cosigned = stated
            .filter_map(|(vkey, time)| {
                Some(Cosigned { witness: vkey.name().to_owned(), time: (*time)? })
            })
            .collect();
        Ok(Opened { head, log, cosigned })
    }

    fn why_no_log(&self, note: &Note, head: &Head) -> PolicyError {
        let mut named = self.logs.iter().filter(|log| log.name() == head.origin);
        match named.find_map(|log| note.verify(log).err()) {
            Some(unsigned) => PolicyError::Note(unsigned),
            None => PolicyError::UnknownLog {
                origin: text::excerpt(&head.origin),
                known: self.logs.iter().map(|log| log.name().to_owned()).collect(),
            },
        }
    }

    /// `times` has, for each witness, when it cosigned, if it did.
    fn check_quorum(&self, times: &[Option<u64>]) -> Result<(), PolicyError> {
        let Some(quorum) = self.quorum else {
            return Ok(());
        };
        let mut has_witnessed: Vec<bool> = Vec::with_capacity(self.members.len());
        for member in &self.members {
            has_witnessed.push(match member {
                Member::Witness(place) => times[*place].is_some(),
                Member::Group { threshold, members } => {
                    members.iter().filter(|place| has_witnessed[**place]).count() >= *threshold
                }
            });
        }
        if has_witnessed[quorum] {
            return Ok(());
        }
        let absent = self.witnesses.iter().zip(times).filter(|(_, time)| time.is_none());
        Err(PolicyError::Quorum {
            cosigned: times.iter().flatten().count(),
            absent: absent.map(|(vkey, _)| vkey.name().to_owned()).collect(),
        })
    }
}

/// Returns when a witness first cosigned, as it says, if it did in any of the notes.
fn earliest(notes: &[&Note], witness: &Vkey) -> Result<Option<u64>, PolicyError> {
    let mut earliest: Option<u64> = None;
    for note in notes {
        if let Some(time) = present(cosignature::verify(note, witness))? {
            earliest = Some(earliest.map_or(time, |known| known.min(time)));
        }
    }
    Ok(earliest)
}

/// Tells a key that did not sign from one whose signature is wrong.
fn present<T>(verified: Result<T, NoteError>) -> Result<Option<T>, PolicyError> {
    match verified {
        Ok(value) => Ok(Some(value)),
        Err(NoteError::Unsigned { .. }) => Ok(None),
        Err(error) => Err(PolicyError::Note(error)),
    }
}

/// A checkpoint that a policy does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// The note is malformed, unsigned or wrongly signed.
    Note(NoteError),
    /// The head is malformed.
    Head(HeadError),
    /// The head of a log that is not listed.
    UnknownLog {
        /// Its origin.
        origin: String,
        /// The logs that are.
        known: Vec<String>,
    },
    /// Too few witnesses.
    Quorum {
        /// How many known ones cosigned.
        cosigned: usize,
        /// The known ones that did not.
        absent: Vec<String>,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Note(error) => write!(f, "{error}"),
            PolicyError::Head(error) => write!(f, "{error}"),
            PolicyError::UnknownLog { origin, known } => write!(
                f,
                "the checkpoint is of the log `{origin}`, trusted are: {}",
                if known.is_empty() { "none".to_owned() } else { listed(known) }
            ),
            PolicyError::Quorum { cosigned, absent } => write!(
                f,
                "the quorum of witnesses is not met: {cosigned} cosigned, missing are {}",
                listed(absent)
            ),
        }
    }
}

fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

impl std::error::Error for PolicyError {}
