//! What the log already holds, and where it may go on.
//!
//! Every entry of an old log is read and compared with the schedule. Only an unfinished end
//! is cut: torn bytes, or a first leg without its second.

use arena_core::entry::{Announcement, Close, Entry};
use arena_core::hexadecimal::hex;
use arena_core::record::{MatchRecord, VoidRecord};
use arena_core::schedule;
use arena_log::plain::Boundary;
use arena_log::plain::error::LogError;
use arena_log::plain::reader::LogReader;
use arena_log::plain::writer::{LogWriter, Reopened};

use crate::Job;
use crate::error::RunError;
use crate::event::Counts;

/// A log that is open for a run.
pub enum Opened {
    /// Nothing is left to do.
    Closed(Counts),
    /// Pairs are left, or the close record.
    Open {
        /// The log's end.
        writer: LogWriter,
        /// What it holds.
        counts: Counts,
        /// How often the next pair was voided already.
        voids: u32,
    },
}

/// Opens the job's log where it is to go on, and starts one where there is none.
///
/// # Errors
/// It cannot be read or written, is damaged, or is not this job's.
pub fn open(job: &Job<'_, '_>) -> Result<Opened, RunError> {
    let announcement = Entry::Announcement(job.announcement.clone()).encode();
    match LogWriter::open_for_append(job.out_dir) {
        Ok(reopened) => reopen(job, reopened, &announcement),
        Err(LogError::Missing { .. }) => announce(LogWriter::create(job.out_dir)?, &announcement),
        Err(error) => Err(error.into()),
    }
}

fn announce(mut writer: LogWriter, announcement: &[u8]) -> Result<Opened, RunError> {
    writer.append_all(&[announcement])?;
    writer.sync()?;
    Ok(Opened::Open { writer, counts: Counts::default(), voids: 0 })
}

fn reopen(job: &Job<'_, '_>, reopened: Reopened, announcement: &[u8]) -> Result<Opened, RunError> {
    let mut reader = reopened.reader()?;
    match reader.next_entry() {
        Ok(Some(found)) if found == announcement => {}
        Ok(Some(found)) => return Err(compare(found, job.announcement)),
        Ok(None) | Err(LogError::TornTail { .. }) => {
            return announce(reopened.truncate_to(reader.boundary())?, announcement);
        }
        Err(error) => return Err(error.into()),
    }
    let progress = Progress::read(job, &mut reader)?;
    if progress.closed {
        return Ok(Opened::Closed(progress.counts));
    }
    let writer = reopened.truncate_to(progress.resume_at)?;
    Ok(Opened::Open { writer, counts: progress.counts, voids: progress.voids })
}

/// How far an old log goes.
struct Progress {
    counts: Counts,
    voids: u32,
    first_leg: Option<MatchRecord>,
    closed: bool,
    resume_at: Boundary,
}

impl Progress {
    /// Reads everything after the announcement.
    fn read(job: &Job<'_, '_>, reader: &mut LogReader) -> Result<Progress, RunError> {
        let mut progress = Progress {
            counts: Counts::default(),
            voids: 0,
            first_leg: None,
            closed: false,
            resume_at: reader.boundary(),
        };
        loop {
            let entry_index = reader.boundary().entry_count();
            let entry = match reader.next_entry() {
                Ok(Some(bytes)) => Entry::decode(bytes),
                Ok(None) => return Ok(progress),
                // Nothing is ever written after a close record, so no crash tears there.
                Err(LogError::TornTail { .. }) if !progress.closed => return Ok(progress),
                Err(error) => return Err(error.into()),
            };
            let entry = entry.map_err(|source| RunError::Entry { entry_index, source })?;
            let found = name(&entry);
            progress.accept(job, entry).map_err(|wanted| RunError::Misplaced {
                entry_index,
                found,
                wanted,
            })?;
            if progress.first_leg.is_none() {
                progress.resume_at = reader.boundary();
            }
        }
    }

    /// Counts the next entry, or says what should have been there.
    fn accept(&mut self, job: &Job<'_, '_>, entry: Entry) -> Result<(), String> {
        let pair_index = self.counts.pairs_done;
        if self.closed {
            return Err("the end of the log".to_owned());
        }
        match entry {
            Entry::Match(record) if pair_index < job.schedule.pair_count() => {
                self.accept_match(job, record)
            }
            Entry::Void(VoidRecord { pair_index: index, attempt, .. })
                if self.first_leg.is_none()
                    && pair_index < job.schedule.pair_count()
                    && (index, attempt) == (pair_index, self.voids) =>
            {
                self.voids += 1;
                self.counts.void_count += 1;
                Ok(())
            }
            Entry::Close(close) if close == self.close() && self.is_complete(job) => {
                self.closed = true;
                Ok(())
            }
            _ => Err(self.wanted(job)),
        }
    }

    fn accept_match(&mut self, job: &Job<'_, '_>, record: MatchRecord) -> Result<(), String> {
        let plan = job.schedule.pair(self.counts.pairs_done);
        let leg = u8::from(self.first_leg.is_some());
        let place = (record.pair_index, record.leg, record.item_index, record.repetition);
        if place != (plan.index, leg, plan.item_index, plan.repetition) {
            return Err(self.wanted(job));
        }
        let seeds = schedule::seat_seeds(job.announcement.seed, plan.index)[usize::from(leg)];
        if record.agents != plan.seats(leg) || record.seeds != seeds {
            return Err(format!("{} with the scheduled agents and seeds", self.wanted(job)));
        }
        match self.first_leg.take() {
            None => self.first_leg = Some(record),
            Some(first) => {
                self.counts.add_match(&first);
                self.counts.add_match(&record);
                self.counts.pairs_done += 1;
                self.voids = 0;
            }
        }
        Ok(())
    }

    fn is_complete(&self, job: &Job<'_, '_>) -> bool {
        self.counts.pairs_done == job.schedule.pair_count()
    }

    fn close(&self) -> Close {
        let Counts { match_count, void_count, .. } = self.counts;
        Close { match_count, void_count }
    }

    fn wanted(&self, job: &Job<'_, '_>) -> String {
        if self.is_complete(job) {
            return name(&Entry::Close(self.close()));
        }
        let leg = u8::from(self.first_leg.is_some());
        format!("leg {leg} of pair {}", self.counts.pairs_done)
    }
}

/// Says in a few words which entry this is.
fn name(entry: &Entry) -> String {
    match entry {
        Entry::Announcement(_) => "an announcement".to_owned(),
        Entry::Match(record) => format!("leg {} of pair {}", record.leg, record.pair_index),
        Entry::Void(void) => format!("void {} of pair {}", void.attempt, void.pair_index),
        Entry::Close(Close { match_count, void_count }) => {
            format!("the close of {match_count} matches and {void_count} voids")
        }
    }
}

/// Says how the log's first entry differs from this job's announcement.
fn compare(found: &[u8], wanted: &Announcement) -> RunError {
    let found = match Entry::decode(found) {
        Ok(Entry::Announcement(found)) => found,
        Ok(other) => {
            let wanted = "an announcement".to_owned();
            return RunError::Misplaced { entry_index: 0, found: name(&other), wanted };
        }
        Err(source) => {
            return RunError::Entry { entry_index: 0, source };
        }
    };
    let fixed = fields(&found).into_iter().zip(fields(wanted)).find(|(a, b)| a != b);
    let fixed = fixed.map(|((field, found), (_, wanted))| (field, found, wanted));
    let texts = [
        ("engine", &found.engine, &wanted.engine),
        ("config_toml", &found.config_toml, &wanted.config_toml),
    ];
    let lines = || texts.iter().find_map(|(field, found, wanted)| line(field, found, wanted));
    let (field, found, wanted) =
        fixed.or_else(lines).expect("announcements of different bytes differ in a field");
    RunError::AnnouncementDiffers { field, found, wanted }
}

/// Lists an announcement's fields by name, but for its texts. The number of agents comes
/// before the agents, so that lists agree until the first difference.
fn fields(announcement: &Announcement) -> Vec<(String, String)> {
    let Announcement { name, seed, agents, catalog_sha256, item_count, pair_count, .. } =
        announcement;
    let mut fields = vec![
        ("name".to_owned(), name.clone()),
        ("seed".to_owned(), seed.to_string()),
        ("item_count".to_owned(), item_count.to_string()),
        ("catalog_sha256".to_owned(), hex(catalog_sha256)),
        ("agents".to_owned(), agents.len().to_string()),
    ];
    for (place, agent) in agents.iter().enumerate() {
        fields.push((format!("agents[{place}].name"), agent.name.clone()));
        let hash = hex(&agent.component_sha256);
        fields.push((format!("agents[{place}].component_sha256"), hash));
        fields.push((format!("agents[{place}].params"), agent.params.clone()));
    }
    fields.push(("pair_count".to_owned(), pair_count.to_string()));
    fields
}

/// Returns the first line in which two texts differ: its name, and what either says.
fn line(field: &str, found: &str, wanted: &str) -> Option<(String, String, String)> {
    if found == wanted {
        return None;
    }
    let (mut found, mut wanted) = (found.split('\n'), wanted.split('\n'));
    let mut line_number = 0;
    // Texts that differ do so in a line, at the latest in the one that only the longer has.
    loop {
        line_number += 1;
        let lines = (found.next(), wanted.next());
        if lines.0 != lines.1 {
            let text = |line: Option<&str>| line.unwrap_or("(no such line)").to_owned();
            let name = format!("{field} line {line_number}");
            return Some((name, text(lines.0), text(lines.1)));
        }
    }
}
