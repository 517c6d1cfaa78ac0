//! Reads a tournament's log into what tables are made of, in one pass.
//!
//! Memory does not grow with the number of matches. Everything that is printed of a
//! tournament comes through here, also right after it was played: what `run` says, `show`
//! says again. Every entry is held to the root that the newest head names, and every
//! transcript to its entry; what lies beyond that head is taken as it is.
//!
//! Not here: statistics (`arena_core::statistics`), signatures, and the proof that a log is
//! honest (`arena_audit`).

use std::fmt::Display;
use std::path::{Path, PathBuf};

use arena_core::announcement::{ANNOUNCEMENT_BYTES_MAX, Announcement};
use arena_core::config::{AGENTS_MAX, NAME_BYTES_MAX, Roles, TournamentConfig, is_name, is_origin};
use arena_core::entry::{AnnouncementEntry, Close, DrawEntry, Entry, MatchEntry, TournamentId};
use arena_core::record::{MatchRecord, Outcome, VoidRecord};
use arena_core::statistics::Tally;
use arena_core::transcript::Transcript;
use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::key::PublicKey;
use arena_log::note::{KeyKind, Vkey};
use arena_log::reader::{Access, LogReader};
use arena_log::tree::Frontier;

use crate::error::{CliError, Complaint};
use crate::escape::excerpt;
use crate::secrets::PRIVATE_DIR;

/// Most faulted matches that are kept as examples.
const EXAMPLES_MAX: usize = 5;

/// What a log says.
#[derive(Debug)]
pub struct Reading {
    /// The folder that was read.
    pub path: PathBuf,
    /// What verifies the log's heads, as its first entry says. Whoever checks a log has it from
    /// elsewhere.
    pub vkey: Vkey,
    /// What was fixed before the first match.
    pub announcement: Announcement,
    /// Everything that a report needs of the pairs.
    pub tally: Tally,
    /// How far the log has come.
    pub stage: Stage,
    /// Whether the last pair has one match only, as after a crash.
    pub is_torn: bool,
    /// The first matches that ended in a fault or a penalised move.
    pub examples: Vec<Example>,
}

impl Reading {
    /// Returns whether every match is in the log.
    pub fn is_closed(&self) -> bool {
        self.stage != Stage::Playing
    }
}

/// How far a log has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Matches follow.
    Playing,
    /// All matches are there.
    Closed,
    /// What was secret is shown.
    Revealed,
}

/// A match that ended in misbehaviour.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The pair's place in the schedule.
    pub pair_index: u64,
    /// 0, or 1 with the roles swapped.
    pub leg: u8,
    /// Agents by their place in the announcement: buyer, seller.
    pub agents: [u16; 2],
    /// How it ended.
    pub outcome: Outcome,
}

/// A pair out of a log.
#[derive(Debug)]
pub struct FoundPair {
    /// What was fixed before the first match.
    pub announcement: Announcement,
    /// Its matches, two or one.
    pub legs: Vec<MatchRecord>,
}

/// Reads a whole log.
///
/// # Errors
/// There is none, it is damaged, it is not a tournament's, or its matches are withheld.
pub fn read(log: &Path) -> Result<Reading, CliError> {
    let (mut walk, announcement) = Walk::open(log)?;
    let seed = announcement.draws.resampling_seed();
    let mut tally = Tally::new(announcement.agents.len(), walk.roles, seed);
    let mut examples = Vec::new();
    let mut voids = 0;
    while let Some(step) = walk.step()? {
        match step {
            Step::Pair(legs) => {
                let expected = tally.pair_count();
                if legs[0].pair_index != expected || expected >= announcement.pair_count {
                    let fact = format!("pair {}, expected pair {expected}", legs[0].pair_index);
                    return Err(walk.fails(fact));
                }
                tally.add_pair(&legs).map_err(|error| walk.fails(error))?;
                let room = EXAMPLES_MAX - examples.len();
                examples.extend(legs.iter().filter_map(example).take(room));
            }
            Step::Void(void) => {
                voids += 1;
                tally.add_void(&void);
            }
            Step::Close(close) => {
                let found = (close.match_count, close.void_count);
                let all = tally.pair_count() == announcement.pair_count;
                if found != (tally.match_count(), voids) || !all {
                    return Err(walk.fails("the close counts other matches than there are"));
                }
            }
        }
    }
    walk.check_root()?;
    let Walk { path, vkey, stage, is_torn, .. } = walk;
    Ok(Reading { path, vkey, announcement, tally, stage, is_torn, examples })
}

/// Reads every match of a finished log, in its order. All of them are in memory.
///
/// # Errors
/// As [`read`].
pub fn records(log: &Path) -> Result<Vec<MatchRecord>, CliError> {
    let (mut walk, _) = Walk::open(log)?;
    let mut records = Vec::new();
    while let Some(step) = walk.step()? {
        if let Step::Pair(legs) = step {
            records.extend(legs);
        }
    }
    walk.check_root()?;
    Ok(records)
}

/// Finds one pair in a log.
///
/// # Errors
/// As [`read`], or the log does not hold the pair.
pub fn find_pair(log: &Path, pair_index: u64) -> Result<FoundPair, CliError> {
    let (mut walk, announcement) = Walk::open(log)?;
    let mut pairs = 0_u64;
    while let Some(step) = walk.step()? {
        let Step::Pair(legs) = step else { continue };
        if legs[0].pair_index == pair_index {
            let mut agents = legs.iter().flat_map(|leg| leg.agents);
            let agent_count = announcement.agents.len();
            if let Some(agent) = agents.find(|agent| usize::from(*agent) >= agent_count) {
                return Err(walk.fails(format!("agent {agent} of {agent_count} does not exist")));
            }
            walk.skip_to_the_end()?;
            walk.check_root()?;
            return Ok(FoundPair { announcement, legs });
        }
        pairs += 1;
    }
    walk.check_root()?;
    let failed = format!("cannot show pair {pair_index}");
    let complaint = Complaint::new(failed, format!("the log holds {pairs} pairs, counted from 0"));
    Err(CliError::Config(complaint))
}

/// Returns the entry that opens the draws of the log in a folder, if it has one.
///
/// # Errors
/// The log is damaged, or not a tournament's.
pub fn recorded_draw(log: &Path) -> Result<Option<DrawEntry>, CliError> {
    let complain = |fact: &dyn Display| complain(log, fact);
    let mut reader = match LogReader::open(log, Access::Owner) {
        Ok(reader) => reader,
        // The announcement is signed before a draw is appended.
        Err(LogError::Missing { .. } | LogError::NoHead { .. }) => return Ok(None),
        Err(error) => return Err(complain(&error)),
    };
    for _ in 0..2 {
        let Some(record) = reader.next_record().map_err(|error| complain(&error))? else {
            return Ok(None);
        };
        let entry = Entry::decode(record.entry);
        if let Entry::Draw(draw) = entry.map_err(|error| complain(&error))? {
            return Ok(Some(draw));
        }
    }
    Ok(None)
}

fn example(record: &MatchRecord) -> Option<Example> {
    let misbehaved = matches!(record.outcome, Outcome::Faulted { .. } | Outcome::Violated { .. });
    misbehaved.then_some(Example {
        pair_index: record.pair_index,
        leg: record.leg,
        agents: record.agents,
        outcome: record.outcome,
    })
}

/// Holds an announcement to what a tournament file may say, so that names can be printed and
/// what is kept, which grows with the square of the agents, stays small.
fn check_announcement(announcement: &Announcement) -> Result<(), String> {
    let Announcement { name, agents, .. } = announcement;
    if agents.len() > AGENTS_MAX {
        return Err(format!("{} agents, at most {AGENTS_MAX} can play", agents.len()));
    }
    let mut names = agents.iter().map(|agent| &agent.name).chain([name]);
    match names.find(|name| !is_name(name)) {
        Some(name) => Err(format!("`{}` is not a name", excerpt(name, NAME_BYTES_MAX))),
        None => Ok(()),
    }
}

fn check_opening(opening: &AnnouncementEntry, signed_as: &str) -> Result<Vkey, String> {
    let origin = &opening.origin;
    if !is_origin(origin) {
        return Err(format!("`{}` is not an origin", excerpt(origin, NAME_BYTES_MAX)));
    }
    if origin != signed_as {
        let signed_as = excerpt(signed_as, NAME_BYTES_MAX);
        return Err(format!("the origin is `{origin}`, the head's is `{signed_as}`"));
    }
    let key = PublicKey::from_bytes(&opening.log_key).map_err(|error| error.to_string())?;
    Vkey::new(origin, KeyKind::Log, key).map_err(|error| error.to_string())
}

/// What comes next in a log.
enum Step {
    /// All legs of it.
    Pair(Vec<MatchRecord>),
    Void(VoidRecord),
    Close(Close),
}

/// An entry, and of a match its record.
enum Item {
    Match(Box<MatchRecord>),
    Other(Entry),
}

/// A log under way, entry by entry.
struct Walk {
    path: PathBuf,
    reader: LogReader,
    vkey: Vkey,
    tournament: TournamentId,
    roles: Roles,
    /// Over the entries that were read.
    tree: Frontier,
    /// What the tree's root was at the size of the newest head.
    root_at_head: Option<Hash>,
    stage: Stage,
    is_torn: bool,
}

impl Walk {
    /// Opens a log and reads its announcement.
    fn open(log: &Path) -> Result<(Walk, Announcement), CliError> {
        let mut reader = open(log)?;
        let (first, opening) = read_opening(&mut reader)?;
        let vkey = check_opening(&opening, &reader.head().origin)
            .map_err(|fact| complain(log, &format!("entry 0: {fact}")))?;
        let announcement = read_announcement(&reader, &opening)?;
        let config = TournamentConfig::parse(&announcement.config_toml)
            .map_err(|error| complain(log, &format!("the announced file: {error}")))?;
        let mut walk = Walk {
            path: log.to_owned(),
            reader,
            vkey,
            tournament: TournamentId::of_first_entry(&first),
            roles: config.roles,
            tree: Frontier::new(),
            root_at_head: None,
            stage: Stage::Playing,
            is_torn: false,
        };
        walk.count(Hash::leaf(&first));
        Ok((walk, announcement))
    }

    /// Reads a pair, a void or the close; `None` at the end.
    fn step(&mut self) -> Result<Option<Step>, CliError> {
        loop {
            let entry_index = self.tree.size();
            let Some(item) = self.item()? else {
                return Ok(None);
            };
            match (self.stage, item) {
                (Stage::Playing, Item::Match(first)) => return self.pair(*first),
                (Stage::Playing, Item::Other(Entry::Void(entry))) => {
                    return Ok(Some(Step::Void(entry.void)));
                }
                (Stage::Playing, Item::Other(Entry::Close(close))) => {
                    self.stage = Stage::Closed;
                    return Ok(Some(Step::Close(close)));
                }
                (Stage::Playing, Item::Other(Entry::Draw(_))) if entry_index == 1 => {}
                (Stage::Closed, Item::Other(Entry::Reveal(_))) => self.stage = Stage::Revealed,
                (Stage::Playing, _) => return Err(self.fails("an entry that is out of place")),
                (Stage::Closed | Stage::Revealed, _) => {
                    return Err(self.fails("an entry after the close"));
                }
            }
        }
    }

    fn pair(&mut self, first: MatchRecord) -> Result<Option<Step>, CliError> {
        if self.roles.leg_count() == 1 {
            return Ok(Some(Step::Pair(vec![first])));
        }
        match self.item()? {
            Some(Item::Match(second)) => Ok(Some(Step::Pair(vec![first, *second]))),
            Some(Item::Other(_)) => Err(self.fails("the second match of a pair is missing")),
            // A run that was killed may have written the first leg only; it is cut on resume.
            None => {
                self.is_torn = true;
                Ok(None)
            }
        }
    }

    fn item(&mut self) -> Result<Option<Item>, CliError> {
        let record = match self.reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(error) => return Err(complain(&self.path, &error)),
        };
        let (entry, leaf) = (Entry::decode(record.entry), Hash::leaf(record.entry));
        let attachment = record.attachment.map(<[u8]>::to_vec);
        self.count(leaf);
        let entry = entry.map_err(|error| self.fails(error))?;
        if entry.tournament() != Some(self.tournament) {
            return Err(self.fails("an entry of another tournament"));
        }
        match (entry, attachment) {
            (Entry::Match(entry), Some(transcript)) => {
                let record = read_transcript(self.tournament, &entry, &transcript);
                record
                    .map(|record| Some(Item::Match(Box::new(record))))
                    .map_err(|fact| self.fails(fact))
            }
            (Entry::Match(_), None) => Err(self.withheld()),
            (entry, _) => Ok(Some(Item::Other(entry))),
        }
    }

    /// Counts an entry that was read.
    fn count(&mut self, leaf: Hash) {
        self.tree.append(leaf);
        if self.tree.size() == self.reader.head().size {
            self.root_at_head = Some(self.tree.root());
        }
    }

    fn skip_to_the_end(&mut self) -> Result<(), CliError> {
        loop {
            let leaf = match self.reader.next_record() {
                Ok(Some(record)) => Hash::leaf(record.entry),
                Ok(None) => return Ok(()),
                Err(error) => return Err(complain(&self.path, &error)),
            };
            self.count(leaf);
        }
    }

    /// Compares the entries, all of which were read, with the newest head.
    fn check_root(&self) -> Result<(), CliError> {
        let head = self.reader.head();
        let fact = match self.root_at_head {
            Some(root) if root == head.root => return Ok(()),
            Some(root) => {
                format!("the root of {} entries is {root}, the head says {}", head.size, head.root)
            }
            None => format!("{} entries, the head says {}", self.tree.size(), head.size),
        };
        Err(complain(&self.path, &fact))
    }

    fn withheld(&self) -> CliError {
        let failed = format!("cannot read the log `{}`", self.path.display());
        let fact = "its matches are withheld until all are played";
        let hint = "whoever plays the tournament can show it; \
                    `arena audit` checks what is public so far";
        CliError::Input(Complaint::new(failed, fact).hint(hint))
    }

    /// Complains about the entry that was read last.
    fn fails(&self, fact: impl Display) -> CliError {
        let index = self.tree.size().saturating_sub(1);
        complain(&self.path, &format!("entry {index}: {fact}"))
    }
}

/// Reads a transcript and holds it to the entry that binds it.
///
/// # Errors
/// Says in what they do not agree.
pub fn read_transcript(
    tournament: TournamentId,
    entry: &MatchEntry,
    bytes: &[u8],
) -> Result<MatchRecord, String> {
    let found = Hash::of(bytes);
    if found.0 != entry.transcript_sha256 {
        let wanted = Hash(entry.transcript_sha256);
        return Err(format!("the transcript's hash is {found}, the entry says {wanted}"));
    }
    let transcript = Transcript::decode(bytes).map_err(|error| format!("transcript: {error}"))?;
    if transcript.tournament != tournament {
        return Err("the transcript is of another tournament".to_owned());
    }
    if transcript.entry(bytes) != *entry {
        return Err("the transcript tells of another match than the entry".to_owned());
    }
    Ok(transcript.record)
}

/// Opens a log: whoever has what is withheld may see it.
///
/// # Errors
/// There is none, or it is damaged.
pub fn open(log: &Path) -> Result<LogReader, CliError> {
    let access = match log.join(PRIVATE_DIR).is_dir() {
        true => Access::Owner,
        false => Access::Public,
    };
    LogReader::open(log, access).map_err(|error| unopened(log, &error))
}

/// Reads the first entry of a log: its bytes, and what they say.
///
/// # Errors
/// It is damaged, or not a tournament's.
pub fn read_opening(reader: &mut LogReader) -> Result<(Vec<u8>, AnnouncementEntry), CliError> {
    let log = reader.folder().to_owned();
    let first = match reader.next_record() {
        Ok(Some(record)) => record.entry.to_vec(),
        Ok(None) => return Err(complain(&log, &"it has no whole entry")),
        Err(error) => return Err(complain(&log, &error)),
    };
    match Entry::decode(&first) {
        Ok(Entry::Announcement(opening)) => Ok((first, opening)),
        Ok(_) => Err(complain(&log, &"entry 0: not an announcement")),
        Err(error) => Err(complain(&log, &format!("entry 0: {error}"))),
    }
}

/// Reads what the first entry binds.
///
/// # Errors
/// It is missing, damaged, or says what no tournament file may say.
pub fn read_announcement(
    reader: &LogReader,
    opening: &AnnouncementEntry,
) -> Result<Announcement, CliError> {
    let log = reader.folder();
    let hash = Hash(opening.announcement_sha256);
    let bytes = match reader.blob(&hash, ANNOUNCEMENT_BYTES_MAX as u64) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(complain(log, &format!("the announcement {hash} is not there"))),
        Err(error) => return Err(complain(log, &error)),
    };
    let announcement = Announcement::decode(&bytes)
        .map_err(|error| complain(log, &format!("announcement: {error}")))?;
    check_announcement(&announcement)
        .map_err(|fact| complain(log, &format!("announcement: {fact}")))?;
    Ok(announcement)
}

fn unopened(log: &Path, error: &LogError) -> CliError {
    let complaint = Complaint::new(format!("cannot read the log `{}`", log.display()), error);
    CliError::Input(match error {
        LogError::Missing { .. } => {
            complaint.hint("name the folder that `arena tournament run` wrote")
        }
        _ => complaint,
    })
}

/// Complains about a log.
pub fn complain(log: &Path, fact: &dyn Display) -> CliError {
    let failed = format!("cannot read the log `{}`", log.display());
    CliError::Input(Complaint::new(failed, fact).hint("restore the log from a copy"))
}
