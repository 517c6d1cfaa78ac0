//! Reads a tournament's log into what tables are made of, in one pass.
//!
//! Memory does not grow with the number of matches. Everything that is printed of a
//! tournament comes through here, also right after it was played: what `run` says, `show`
//! says again.
//!
//! Not here: statistics (`arena_core::statistics`) and the proof that a log is honest.

use std::path::{Path, PathBuf};

use arena_core::config::{AGENTS_MAX, NAME_BYTES_MAX, is_name};
use arena_core::entry::{Announcement, Close, Entry};
use arena_core::record::{MatchRecord, Outcome};
use arena_core::statistics::Tally;
use arena_log::plain::error::LogError;
use arena_log::plain::reader::LogReader;

use crate::error::{CliError, Complaint};
use crate::escape::excerpt;

/// Most faulted matches that are kept as examples.
const EXAMPLES_MAX: usize = 5;

/// What a log says.
#[derive(Debug)]
pub struct Reading {
    /// The file that was read.
    pub path: PathBuf,
    /// What was fixed before the first match.
    pub announcement: Announcement,
    /// Everything that a report needs of the pairs.
    pub tally: Tally,
    /// Whether the log has its last entry.
    pub closed: bool,
    /// What a crash left at the end, if it did.
    pub torn: Option<String>,
    /// The first matches that ended in a fault or a penalised move.
    pub examples: Vec<Example>,
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
    /// Both matches.
    pub legs: [MatchRecord; 2],
}

/// Reads a whole log.
///
/// # Errors
/// There is none, it is damaged, or it is not a tournament's.
pub fn read(log: &Path) -> Result<Reading, CliError> {
    let mut walk = Walk::open(log)?;
    let announcement = walk.announcement()?;
    let mut tally = Tally::new(announcement.agents.len(), announcement.seed);
    let mut examples = Vec::new();
    let mut voids = 0;
    let mut closed = false;
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
                let counted = Close { match_count: tally.pair_count() * 2, void_count: voids };
                if close != counted || tally.pair_count() != announcement.pair_count {
                    return Err(walk.fails("the last entry counts other matches than there are"));
                }
                closed = true;
            }
        }
    }
    Ok(Reading { path: walk.path, announcement, tally, closed, torn: walk.torn, examples })
}

/// Finds one pair in a log.
///
/// # Errors
/// As [`read`], or the log does not hold the pair.
pub fn find_pair(log: &Path, pair_index: u64) -> Result<FoundPair, CliError> {
    let mut walk = Walk::open(log)?;
    let announcement = walk.announcement()?;
    let mut pairs = 0_u64;
    while let Some(step) = walk.step()? {
        let Step::Pair(legs) = step else { continue };
        if legs[0].pair_index == pair_index {
            let mut agents = legs.iter().flat_map(|leg| leg.agents);
            let agent_count = announcement.agents.len();
            if let Some(agent) = agents.find(|agent| usize::from(*agent) >= agent_count) {
                return Err(walk.fails(format!("agent {agent} of {agent_count} does not exist")));
            }
            return Ok(FoundPair { announcement, legs: *legs });
        }
        pairs += 1;
    }
    let failed = format!("cannot show pair {pair_index}");
    let complaint = Complaint::new(failed, format!("the log holds {pairs} pairs, counted from 0"));
    Err(CliError::Config(complaint))
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

/// What comes next in a log.
enum Step {
    Pair(Box<[MatchRecord; 2]>),
    Void(arena_core::record::VoidRecord),
    Close(Close),
}

/// A log under way, entry by entry.
struct Walk {
    path: PathBuf,
    reader: LogReader,
    entry_index: u64,
    closed: bool,
    torn: Option<String>,
}

impl Walk {
    fn open(log: &Path) -> Result<Walk, CliError> {
        let reader = LogReader::open(log).map_err(|error| {
            let complaint =
                Complaint::new(format!("cannot read the log `{}`", log.display()), &error);
            CliError::Input(match error {
                LogError::Missing { .. } => complaint
                    .hint("name the folder that `arena tournament run` wrote, or its `log.arena`"),
                _ => complaint,
            })
        })?;
        let path = reader.path().to_owned();
        Ok(Walk { path, reader, entry_index: 0, closed: false, torn: None })
    }

    fn announcement(&mut self) -> Result<Announcement, CliError> {
        match self.entry()? {
            Some(Entry::Announcement(announcement)) => {
                check_announcement(&announcement).map_err(|fact| self.fails(fact))?;
                Ok(announcement)
            }
            Some(_) => Err(self.fails("the first entry is not an announcement")),
            None => Err(CliError::Input(Complaint::new(
                format!("cannot read the log `{}`", self.path.display()),
                "it has no whole entry",
            ))),
        }
    }

    /// Reads a pair, a void or the close; `None` at the end.
    fn step(&mut self) -> Result<Option<Step>, CliError> {
        let first = match self.entry()? {
            None => return Ok(None),
            Some(_) if self.closed => return Err(self.fails("an entry after the close")),
            Some(Entry::Void(void)) => return Ok(Some(Step::Void(void))),
            Some(Entry::Close(close)) => {
                self.closed = true;
                return Ok(Some(Step::Close(close)));
            }
            Some(Entry::Announcement(_)) => return Err(self.fails("a second announcement")),
            Some(Entry::Match(first)) => first,
        };
        match self.entry()? {
            Some(Entry::Match(second)) => Ok(Some(Step::Pair(Box::new([first, second])))),
            Some(_) => Err(self.fails("the second match of a pair is missing")),
            // A run that was killed may have written the first leg only; it is cut on resume.
            None => {
                let torn = "the last pair has one match only, as after a crash".to_owned();
                self.torn.get_or_insert(torn);
                Ok(None)
            }
        }
    }

    fn entry(&mut self) -> Result<Option<Entry>, CliError> {
        let bytes = match self.reader.next_entry() {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error @ LogError::TornTail { .. }) => {
                self.torn = Some(error.to_string());
                return Ok(None);
            }
            Err(error) => return Err(self.complain(error.to_string())),
        };
        let entry = Entry::decode(bytes);
        self.entry_index += 1;
        entry.map(Some).map_err(|error| self.fails(error))
    }

    /// Complains about the entry that was read last.
    fn fails(&self, fact: impl std::fmt::Display) -> CliError {
        self.complain(format!("entry {}: {fact}", self.entry_index.saturating_sub(1)))
    }

    fn complain(&self, fact: String) -> CliError {
        let failed = format!("cannot read the log `{}`", self.path.display());
        CliError::Input(Complaint::new(failed, fact).hint("restore the log from a copy"))
    }
}
