//! Opens the job's log where it is to go on, and starts one where there is none.
//!
//! What a log opens with is signed before anything is played: the announcement, and with open
//! draws a second head over what was added to them.
//!
//! Not here: what follows the opening (`resume` reads it, `dispatcher` writes it).

use std::sync::Arc;

use arena_core::announcement::{ANNOUNCEMENT_BYTES_MAX, Announcement};
use arena_core::entry::{AnnouncementEntry, Entry};
use arena_log::blobs::Visibility;
use arena_log::checkpoint::Head;
use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::reader::{Access, LogReader};
use arena_log::recovery::Reopened;
use arena_log::storage::Storage;
use arena_log::writer::{LogSettings, LogWriter, Record};

use crate::error::RunError;
use crate::event::Counts;
use crate::identity::Identity;
use crate::resume::{self, Phase, Progress};
use crate::worker::Start;
use crate::{Job, difference};

/// A log that is open for a run.
pub enum Opened {
    /// Nothing is left to do.
    Finished(Counts),
    /// Something is left.
    Unfinished(Box<Unfinished>),
}

/// A log that goes on.
pub struct Unfinished {
    /// The log's end.
    pub writer: LogWriter,
    /// What comes next.
    pub phase: Phase,
    /// What it holds.
    pub counts: Counts,
    /// Where play goes on.
    pub start: Start,
}

/// Signs the announcement. See [`crate::announce`].
pub fn announce(job: &Job<'_, '_>, storage: &Arc<dyn Storage>) -> Result<Head, RunError> {
    let opening = Entry::Announcement(job.opening.clone()).encode();
    let Some(reopened) = reopen(job, storage)? else {
        let writer = LogWriter::create_on(Arc::clone(storage), settings(job))?;
        return Ok(start(job, writer, &opening)?.1);
    };
    match reopened.records()?.next_record()? {
        Some(record) if record.entry != opening => {
            return Err(compare(job, storage, record.entry));
        }
        _ => {}
    }
    match &reopened.signed {
        Some(head) => Ok(head.clone()),
        None => Ok(start(job, reopened.resume_at(0)?, &opening)?.1),
    }
}

/// Opens the log, or starts it.
///
/// # Errors
/// It cannot be read or written, is damaged, or is not this job's.
pub fn open(
    job: &Job<'_, '_>,
    identity: &Identity,
    storage: &Arc<dyn Storage>,
) -> Result<Opened, RunError> {
    let Some(reopened) = reopen(job, storage)? else {
        let writer = LogWriter::create_on(Arc::clone(storage), settings(job))?;
        return begin(job, identity, writer, 0);
    };
    let compare_opening = |found: &[u8]| compare(job, storage, found);
    let progress = Progress::read(job, identity, &mut reopened.records()?, &compare_opening)?;
    let signed = reopened.signed.as_ref().map_or(0, |head| head.size);
    let opening_size = 1 + u64::from(identity.draw.is_some());
    if signed < opening_size {
        // Nothing was played yet: it is only after the last head of the opening.
        return begin(job, identity, reopened.resume_at(signed)?, signed);
    }
    if progress.phase == Phase::Over && signed == progress.size && reopened.is_published() {
        return Ok(Opened::Finished(progress.counts));
    }
    go_on(reopened, &progress, signed)
}

fn go_on(reopened: Reopened, progress: &Progress, signed: u64) -> Result<Opened, RunError> {
    let is_revealed = progress.phase == Phase::Over && signed == progress.size;
    let (size, phase) = match progress.phase {
        // The reveal is written again, after everything that must come before it.
        Phase::Over if !is_revealed => (progress.size - 1, Phase::Reveal),
        phase => (progress.whole_size.max(signed), phase),
    };
    let writer = reopened.resume_at(size)?;
    let (counts, start) = (progress.counts(size), progress.start(size));
    Ok(Opened::Unfinished(Box::new(Unfinished { writer, phase, counts, start })))
}

/// Writes and signs what is missing of the opening.
fn begin(
    job: &Job<'_, '_>,
    identity: &Identity,
    mut writer: LogWriter,
    signed: u64,
) -> Result<Opened, RunError> {
    if signed == 0 {
        (writer, _) = start(job, writer, &identity.opening)?;
    }
    if let Some(draw) = &identity.draw {
        writer.append_all(&[Record { entry: draw, attachment: &[] }])?;
        writer.checkpoint()?;
    }
    let (phase, counts, start) = (Phase::Pairs, Counts::default(), Start::of(0));
    Ok(Opened::Unfinished(Box::new(Unfinished { writer, phase, counts, start })))
}

/// Stores what the announcement names, and signs the first head.
fn start(
    job: &Job<'_, '_>,
    mut writer: LogWriter,
    opening: &[u8],
) -> Result<(LogWriter, Head), RunError> {
    writer.put_blob(&job.announcement.encode(), Visibility::Public)?;
    for blob in job.blobs {
        writer.put_blob(blob, Visibility::Private)?;
    }
    writer.append_all(&[Record { entry: opening, attachment: &[] }])?;
    let head = writer.checkpoint()?;
    Ok((writer, head))
}

/// Takes hold of the log, if there is one.
fn reopen(job: &Job<'_, '_>, storage: &Arc<dyn Storage>) -> Result<Option<Reopened>, RunError> {
    match LogWriter::open_on(Arc::clone(storage), settings(job)) {
        Ok(reopened) => Ok(Some(reopened)),
        Err(LogError::Missing { .. }) => Ok(None),
        // The key does not fit because the tournament does not: say in what.
        Err(error @ LogError::ForeignKey { .. }) => {
            Err(compare_folder(job, storage).unwrap_or(RunError::Log(error)))
        }
        Err(error) => Err(error.into()),
    }
}

fn settings(job: &Job<'_, '_>) -> LogSettings {
    LogSettings {
        origin: job.opening.origin.clone(),
        key: job.key.clone(),
        checkpoint_every: u64::from(job.announcement.checkpoint_every),
    }
}

/// Says how the log that is there, which is of another key, differs from the job's.
fn compare_folder(job: &Job<'_, '_>, storage: &Arc<dyn Storage>) -> Option<RunError> {
    let mut reader = LogReader::open_on(Arc::clone(storage), Access::Owner).ok()?;
    let record = reader.next_record().ok()??;
    let opening = Entry::Announcement(job.opening.clone()).encode();
    (record.entry != opening).then(|| compare(job, storage, record.entry))
}

/// Says how the log's first entry differs from this job's.
fn compare(job: &Job<'_, '_>, storage: &Arc<dyn Storage>, found: &[u8]) -> RunError {
    match Entry::decode(found) {
        Ok(Entry::Announcement(found)) => {
            let announced = announced(storage, &found);
            difference::of_openings(&found, announced.as_ref(), job.opening, job.announcement)
        }
        Ok(other) => {
            let wanted = "an announcement".to_owned();
            RunError::Misplaced { entry_index: 0, found: resume::name(&other), wanted }
        }
        Err(source) => RunError::Entry { entry_index: 0, source },
    }
}

/// Reads what the log's first entry binds, where it is whole: it is only for a message.
fn announced(storage: &Arc<dyn Storage>, opening: &AnnouncementEntry) -> Option<Announcement> {
    let reader = LogReader::open_on(Arc::clone(storage), Access::Owner).ok()?;
    let hash = Hash(opening.announcement_sha256);
    let bytes = reader.blob(&hash, ANNOUNCEMENT_BYTES_MAX as u64).ok()??;
    Announcement::decode(&bytes).ok()
}
