//! The matches of a log one by one, as they are, for commands that judge nothing.
//!
//! A transcript that its entry does not bind is refused, and what is withheld is absent. One
//! match is in memory at a time.
//!
//! Not here: tables (`reading`) and proof (`arena_audit`).

use std::path::Path;

use arena_core::announcement::Announcement;
use arena_core::entry::{Entry, MatchEntry, TournamentId};
use arena_core::record::MatchRecord;
use arena_log::reader::LogReader;

use crate::error::CliError;
use crate::reading;

/// A log under way, match by match.
pub struct Matches {
    /// What was fixed before the first match.
    pub announcement: Announcement,
    reader: LogReader,
    tournament: TournamentId,
}

/// One match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The entry's place in the log.
    pub entry_index: u64,
    /// The entry.
    pub entry: MatchEntry,
    /// What it binds, where that is not withheld.
    pub record: Option<MatchRecord>,
}

impl Matches {
    /// Opens a log and reads its announcement.
    ///
    /// # Errors
    /// There is none, it is damaged, or it is not a tournament's.
    pub fn open(log: &Path) -> Result<Matches, CliError> {
        let mut reader = reading::open(log)?;
        let (first, opening) = reading::read_opening(&mut reader)?;
        let announcement = reading::read_announcement(&reader, &opening)?;
        let tournament = TournamentId::of_first_entry(&first);
        Ok(Matches { announcement, reader, tournament })
    }

    /// Returns whether transcripts are still withheld.
    pub fn is_withheld(&self) -> bool {
        self.reader.is_withheld()
    }

    /// Reads the next match; `None` at the end.
    ///
    /// # Errors
    /// The log is damaged, or holds what no tournament writes.
    pub fn next_match(&mut self) -> Result<Option<Found>, CliError> {
        let log = self.reader.folder().to_owned();
        // Every pass reads an entry, and a log has an end.
        loop {
            let record = match self.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(None),
                Err(error) => return Err(reading::complain(&log, &error)),
            };
            let entry_index = record.index;
            let fails = |fact: &dyn std::fmt::Display| {
                reading::complain(&log, &format!("entry {entry_index}: {fact}"))
            };
            let entry = match Entry::decode(record.entry) {
                Ok(Entry::Match(entry)) => entry,
                Ok(_) => continue,
                Err(error) => return Err(fails(&error)),
            };
            let agent_count = self.announcement.agents.len();
            let unknown = |agent: &u16| usize::from(*agent) >= agent_count;
            if let Some(agent) = entry.agents.into_iter().find(unknown) {
                return Err(fails(&format!("agent {agent} of {agent_count} does not exist")));
            }
            let read = |bytes| reading::read_transcript(self.tournament, &entry, bytes);
            let record = record.attachment.map(read).transpose().map_err(|fact| fails(&fact))?;
            return Ok(Some(Found { entry_index, entry, record }));
        }
    }

    /// Returns the names of a match's buyer and seller.
    pub fn names(&self, found: &Found) -> [&str; 2] {
        let agents = &self.announcement.agents;
        found.entry.agents.map(|agent| agents[usize::from(agent)].name.as_str())
    }
}
