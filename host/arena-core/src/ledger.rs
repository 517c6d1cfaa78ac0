//! The ledger of a training run: what was learned from, step by step, and what came of it.
//!
//! A ledger is a signed log like a tournament's, with entries of its own: an opening, one entry
//! for each step, and a close once the experiment is over. A step names the log of the matches
//! that it learned from by its root, and binds the reward and the advantage of each of them; all
//! of that can be computed again from the matches, so nothing here has to be believed.
//!
//! Values are integers and the bits of floats, so that they compare exactly.
//!
//! Not here: rewards and advantages (`arena-train`), files (`arena-log`), checking a run
//! (`arena-audit`).

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use sha2::{Digest, Sha256};

use crate::config::{is_name, is_origin};
use crate::entry::TournamentId;
use crate::envelope::{self, EnvelopeError};
use crate::hexadecimal::hex;

/// Most steps of a run: their folders have six digits.
pub const STEPS_MAX: u32 = 999_999;
/// Most matches that one step learns from.
pub const STEP_MATCHES_MAX: u32 = 65_536;
/// Most bytes of a [`StepMatches`], with its header: 14 for each match are more than there are.
pub const STEP_MATCHES_BYTES_MAX: usize = 1 << 20;
/// Most bytes of the names of a reward and of an objective.
pub const METHOD_BYTES_MAX: usize = 256;
/// Most bytes with which a run says what computes: one `key=value` a line.
pub const RUN_ENGINE_BYTES_MAX: usize = 4 << 10;

const OPENING_KIND: u16 = 32;
const STEP_KIND: u16 = 33;
const CLOSE_KIND: u16 = 34;
/// The kind of a [`StepMatches`], which an entry binds.
const STEP_MATCHES_KIND: u16 = 258;

/// Names a training run: the RFC 6962 leaf hash of its ledger's first entry.
///
/// Every later entry carries it, so that none passes for another run's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct RunId(pub [u8; 32]);

impl RunId {
    /// Returns the id of the run whose ledger starts with these bytes.
    pub fn of_first_entry(entry: &[u8]) -> RunId {
        RunId(TournamentId::of_first_entry(entry).0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One entry of a ledger, in the order of the variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerEntry {
    /// First entry: what is fixed before the first step.
    Opening(LedgerOpening),
    /// A step. Entry n is step n.
    Step(StepEntry),
    /// Last entry of a run that came to its end.
    Close(LedgerClose),
}

/// The first entry.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LedgerOpening {
    /// The ledger's origin: the name under which its heads are signed.
    pub origin: String,
    /// The Ed25519 key that signs them, and those of every step's log.
    pub log_key: [u8; 32],
    /// The experiment's name: letters, digits, `-`, `_`, `.`; at most 64 bytes.
    pub name: String,
    /// SHA-256 of the experiment file, as it stood.
    pub experiment_sha256: [u8; 32],
    /// What matches are worth, by name; at most [`METHOD_BYTES_MAX`] bytes.
    pub reward: String,
    /// What is maximised, by name; at most [`METHOD_BYTES_MAX`] bytes.
    pub objective: String,
    /// SHA-256 that names the policy before the first step, as announcements name models.
    pub policy_sha256: [u8; 32],
    /// The public seed that the seeds of all steps come from.
    pub seed: u64,
    /// What computes the updates, one `key=value` a line; at most [`RUN_ENGINE_BYTES_MAX`] bytes.
    pub engine: String,
}

/// One step: matches were played with a policy, and another policy came of them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StepEntry {
    /// The run.
    pub run: RunId,
    /// Which step this is, from 1.
    pub step: u32,
    /// The tournament of the matches.
    pub tournament: TournamentId,
    /// Entries of its log, which is closed and revealed.
    pub log_size: u64,
    /// The root of these entries.
    pub log_root: [u8; 32],
    /// Names the policy that played.
    pub policy_before: [u8; 32],
    /// Names the policy that came of it; the same one where nothing was learned.
    pub policy_after: [u8; 32],
    /// Matches of the tournament, at least 1.
    pub match_count: u32,
    /// SHA-256 of the bytes of the [`StepMatches`], a blob of the ledger.
    pub matches_sha256: [u8; 32],
    /// Groups of matches that nothing was learned from, as all of a group were worth the same.
    pub dropped_groups: u32,
    /// The learning rate of the update: the bits of a finite `f64`.
    pub learning_rate_bits: u64,
}

/// The last entry: the experiment is over. No step follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LedgerClose {
    /// The run.
    pub run: RunId,
    /// How many steps there were.
    pub step_count: u32,
    /// Names the policy that came of them all.
    pub policy_sha256: [u8; 32],
}

/// What was learned from in a step. It lies beside the ledger, bound by the step's entry.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StepMatches {
    /// The run.
    pub run: RunId,
    /// The step, from 1.
    pub step: u32,
    /// Every match of the step's tournament, in the order of its log.
    pub matches: Vec<StepMatch>,
}

/// What one match was to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StepMatch {
    /// What it was worth to the policy, in millionths.
    pub reward_micro: i32,
    /// The bits of the advantage, a finite `f64`; `None` where nothing was learned from it.
    pub advantage_bits: Option<u64>,
}

impl StepEntry {
    /// Returns the learning rate of the update.
    pub fn learning_rate(&self) -> f64 {
        f64::from_bits(self.learning_rate_bits)
    }
}

impl StepMatch {
    /// Returns the advantage; `None` where nothing was learned from the match.
    pub fn advantage(&self) -> Option<f64> {
        self.advantage_bits.map(f64::from_bits)
    }
}

/// Bytes that are no entry of a ledger, or not what an entry binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerError {
    /// Not in canonical form.
    Envelope(EnvelopeError),
    /// A field is out of bounds.
    Field {
        /// Its name.
        field: &'static str,
        /// What it says.
        found: String,
        /// What it may say.
        wanted: String,
    },
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerError::Envelope(error) => write!(f, "{error}"),
            LedgerError::Field { field, found, wanted } => {
                write!(f, "`{field}` is `{found}`, it must be {wanted}")
            }
        }
    }
}

impl std::error::Error for LedgerError {}

impl From<EnvelopeError> for LedgerError {
    fn from(error: EnvelopeError) -> LedgerError {
        LedgerError::Envelope(error)
    }
}

impl LedgerEntry {
    /// Returns the entry's canonical bytes.
    ///
    /// # Panics
    /// If a field is out of the bounds that [`LedgerEntry::decode`] keeps.
    pub fn encode(&self) -> Vec<u8> {
        let checked = self.check();
        assert!(checked.is_ok(), "an entry is within its bounds: {checked:?}");
        match self {
            LedgerEntry::Opening(body) => envelope::encode(OPENING_KIND, body),
            LedgerEntry::Step(body) => envelope::encode(STEP_KIND, body),
            LedgerEntry::Close(body) => envelope::encode(CLOSE_KIND, body),
        }
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// Anything that [`LedgerEntry::encode`] would not have written, the entries of a tournament
    /// among them.
    pub fn decode(bytes: &[u8]) -> Result<LedgerEntry, LedgerError> {
        let entry = match envelope::kind(bytes)? {
            OPENING_KIND => LedgerEntry::Opening(envelope::decode(OPENING_KIND, bytes)?),
            STEP_KIND => LedgerEntry::Step(envelope::decode(STEP_KIND, bytes)?),
            CLOSE_KIND => LedgerEntry::Close(envelope::decode(CLOSE_KIND, bytes)?),
            found => return Err(EnvelopeError::Kind { found }.into()),
        };
        entry.check()?;
        Ok(entry)
    }

    /// Returns the run that the entry says it is of; `None` for an opening, whose hash is the id.
    pub fn run(&self) -> Option<RunId> {
        match self {
            LedgerEntry::Opening(_) => None,
            LedgerEntry::Step(body) => Some(body.run),
            LedgerEntry::Close(body) => Some(body.run),
        }
    }

    /// Says in a few words which entry this is.
    pub fn describe(&self) -> String {
        match self {
            LedgerEntry::Opening(_) => "an opening".to_owned(),
            LedgerEntry::Step(body) => format!("step {}", body.step),
            LedgerEntry::Close(body) => format!("the close of {} steps", body.step_count),
        }
    }

    fn check(&self) -> Result<(), LedgerError> {
        match self {
            LedgerEntry::Opening(body) => body.check(),
            LedgerEntry::Step(body) => body.check(),
            LedgerEntry::Close(body) => within("step_count", body.step_count, 0, STEPS_MAX),
        }
    }
}

impl LedgerOpening {
    fn check(&self) -> Result<(), LedgerError> {
        field("origin", &self.origin, is_origin(&self.origin), "the name of a log")?;
        field("name", &self.name, is_name(&self.name), "a name")?;
        let is_method =
            |text: &str| (1..=METHOD_BYTES_MAX).contains(&text.len()) && is_printable(text);
        let wanted = format!("1 to {METHOD_BYTES_MAX} bytes on one line");
        field("reward", &self.reward, is_method(&self.reward), &wanted)?;
        field("objective", &self.objective, is_method(&self.objective), &wanted)?;
        let is_engine = (1..=RUN_ENGINE_BYTES_MAX).contains(&self.engine.len());
        let found = format!("{} bytes", self.engine.len());
        field("engine", &found, is_engine, &format!("1 to {RUN_ENGINE_BYTES_MAX} bytes"))
    }
}

impl StepEntry {
    fn check(&self) -> Result<(), LedgerError> {
        within("step", self.step, 1, STEPS_MAX)?;
        within("match_count", self.match_count, 1, STEP_MATCHES_MAX)?;
        within("dropped_groups", self.dropped_groups, 0, self.match_count)?;
        finite("learning_rate_bits", self.learning_rate_bits)
    }
}

impl StepMatches {
    /// Returns the canonical bytes.
    ///
    /// # Panics
    /// If a field is out of the bounds that [`StepMatches::decode`] keeps.
    pub fn encode(&self) -> Vec<u8> {
        let checked = self.check();
        assert!(checked.is_ok(), "a step's matches are within their bounds: {checked:?}");
        envelope::encode(STEP_MATCHES_KIND, self)
    }

    /// Reads what a step's entry binds.
    ///
    /// # Errors
    /// Anything that [`StepMatches::encode`] would not have written.
    pub fn decode(bytes: &[u8]) -> Result<StepMatches, LedgerError> {
        let found = bytes.len();
        if found > STEP_MATCHES_BYTES_MAX {
            let wanted = format!("at most {STEP_MATCHES_BYTES_MAX}");
            return Err(LedgerError::Field { field: "bytes", found: found.to_string(), wanted });
        }
        let matches: StepMatches = envelope::decode(STEP_MATCHES_KIND, bytes)?;
        matches.check()?;
        Ok(matches)
    }

    /// Returns the hash by which a step's entry binds these bytes.
    pub fn sha256(bytes: &[u8]) -> [u8; 32] {
        Sha256::digest(bytes).into()
    }

    fn check(&self) -> Result<(), LedgerError> {
        within("step", self.step, 1, STEPS_MAX)?;
        let match_count = u32::try_from(self.matches.len()).unwrap_or(u32::MAX);
        within("matches", match_count, 1, STEP_MATCHES_MAX)?;
        let bits = self.matches.iter().filter_map(|one| one.advantage_bits);
        bits.into_iter().try_for_each(|bits| finite("advantage_bits", bits))
    }
}

fn is_printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

fn within(field: &'static str, found: u32, low: u32, high: u32) -> Result<(), LedgerError> {
    if (low..=high).contains(&found) {
        return Ok(());
    }
    Err(LedgerError::Field { field, found: found.to_string(), wanted: format!("{low} to {high}") })
}

fn finite(field: &'static str, bits: u64) -> Result<(), LedgerError> {
    let value = f64::from_bits(bits);
    if value.is_finite() {
        return Ok(());
    }
    let wanted = "the bits of a finite number".to_owned();
    Err(LedgerError::Field { field, found: value.to_string(), wanted })
}

fn field(field: &'static str, found: &str, holds: bool, wanted: &str) -> Result<(), LedgerError> {
    if holds {
        return Ok(());
    }
    let (found, wanted) = (found.to_owned(), wanted.to_owned());
    Err(LedgerError::Field { field, found, wanted })
}
