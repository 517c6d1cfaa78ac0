//! What the log already holds, checked against the job entry by entry.
//!
//! Every record is read, signed ones too: entries are those of the schedule in its order, and
//! each match agrees with the transcript beside it, which its hash binds. Only an unfinished
//! end may go: the first leg of two without its second.
//!
//! Not here: roots and signatures, which the log checks when it is opened; whether moves were
//! legal, which an audit replays.

use arena_core::entry::{Close, DrawEntry, Entry, MatchEntry, Reveal, TournamentId};
use arena_core::hexadecimal::hex;
use arena_core::record::{MatchRecord, VoidRecord};
use arena_core::transcript::{self, Transcript};
use arena_log::records::{RecordRef, Records};

use crate::error::RunError;
use crate::event::Counts;
use crate::identity::Identity;
use crate::worker::Start;
use crate::{Job, difference};

/// What comes next in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The announcement.
    Opening,
    /// What was added to the draws.
    Draw,
    /// A pair, or the close after the last one.
    Pairs,
    /// The reveal.
    Reveal,
    /// Nothing.
    Over,
}

/// How far a log goes.
#[derive(Debug)]
pub struct Progress {
    /// What comes next.
    pub phase: Phase,
    /// The whole pairs that it holds.
    pub counts: Counts,
    /// The entries without a first leg of two that is the last one.
    pub whole_size: u64,
    /// All entries.
    pub size: u64,
    voids: u32,
    first_leg: Option<MatchEntry>,
}

impl Progress {
    /// Reads a log from its start. `compare_opening` says how another first entry differs.
    ///
    /// # Errors
    /// It cannot be read, or holds something that this job would not have written.
    pub fn read(
        job: &Job<'_, '_>,
        identity: &Identity,
        records: &mut Records,
        compare_opening: &dyn Fn(&[u8]) -> RunError,
    ) -> Result<Progress, RunError> {
        let mut progress = Progress {
            phase: Phase::Opening,
            counts: Counts::default(),
            whole_size: 0,
            size: 0,
            voids: 0,
            first_leg: None,
        };
        while let Some(record) = records.next_record()? {
            let check = Check { job, identity, index: record.index };
            if progress.phase != Phase::Opening {
                check.accept(&mut progress, record)?;
            } else if record.entry == identity.opening {
                check.nothing_beside(record.attachment.unwrap_or_default())?;
                let has_draw = identity.draw.is_some();
                progress.phase = if has_draw { Phase::Draw } else { Phase::Pairs };
            } else {
                return Err(compare_opening(record.entry));
            }
            progress.size += 1;
            if progress.first_leg.is_none() {
                progress.whole_size = progress.size;
            }
        }
        Ok(progress)
    }

    /// Returns where play goes on, if the log goes on at `size`.
    pub fn start(&self, size: u64) -> Start {
        let (pair_index, voids) = (self.counts.pairs_done, self.voids);
        Start { pair_index, voids, has_first_leg: size > self.whole_size }
    }

    /// Returns the counts of whole pairs, and with them a first leg that stays, if the log goes
    /// on at `size`.
    pub fn counts(&self, size: u64) -> Counts {
        let mut counts = self.counts;
        if let Some(first) = self.first_leg.as_ref().filter(|_| size > self.whole_size) {
            counts.add_match(first.outcome);
        }
        counts
    }

    fn is_complete(&self, job: &Job<'_, '_>) -> bool {
        self.counts.pairs_done == job.schedule.pair_count()
    }
}

/// One entry under examination.
struct Check<'b, 'a, 's> {
    job: &'b Job<'a, 's>,
    identity: &'b Identity,
    index: u64,
}

impl Check<'_, '_, '_> {
    fn accept(&self, progress: &mut Progress, record: RecordRef<'_>) -> Result<(), RunError> {
        let entry = Entry::decode(record.entry)
            .map_err(|source| RunError::Entry { entry_index: self.index, source })?;
        let wanted = self.identity.tournament;
        let found = entry.tournament().unwrap_or(wanted);
        self.same("tournament", found, wanted, TournamentId::to_string)?;
        let attachment = record.attachment.unwrap_or_default();
        if !matches!(entry, Entry::Match(_)) {
            self.nothing_beside(attachment)?;
        }
        match (progress.phase, entry) {
            (Phase::Draw, Entry::Draw(draw)) => {
                self.accept_draw(&draw)?;
                progress.phase = Phase::Pairs;
            }
            (Phase::Pairs, Entry::Match(entry)) if !progress.is_complete(self.job) => {
                self.accept_match(progress, entry, attachment)?;
            }
            (Phase::Pairs, Entry::Void(entry)) if self.is_next(progress, entry.void) => {
                progress.voids += 1;
                progress.counts.void_count += 1;
            }
            (Phase::Pairs, Entry::Close(close))
                if progress.is_complete(self.job) && close == self.close(progress) =>
            {
                progress.phase = Phase::Reveal;
            }
            (Phase::Reveal, Entry::Reveal(reveal)) => {
                self.accept_reveal(reveal)?;
                progress.phase = Phase::Over;
            }
            (_, entry) => return Err(self.misplaced(progress, &entry)),
        }
        Ok(())
    }

    fn nothing_beside(&self, attachment: &[u8]) -> Result<(), RunError> {
        self.same("attachment", attachment.len(), 0, |bytes| format!("{bytes} bytes"))
    }

    fn accept_draw(&self, found: &DrawEntry) -> Result<(), RunError> {
        let wanted = self.job.draw.expect("a draw comes next only where the job has one");
        difference::of_draws(found, wanted).map_or(Ok(()), Err)
    }

    fn accept_match(
        &self,
        progress: &mut Progress,
        entry: MatchEntry,
        attachment: &[u8],
    ) -> Result<(), RunError> {
        let plan = self.job.schedule.pair(progress.counts.pairs_done);
        let leg = u8::from(progress.first_leg.is_some());
        if (entry.pair_index, entry.leg) != (plan.index, leg) {
            return Err(self.misplaced(progress, &Entry::Match(entry)));
        }
        self.same("item_index", entry.item_index, plan.item_index, u32::to_string)?;
        self.same("repetition", entry.repetition, plan.repetition, u32::to_string)?;
        self.same("agents", entry.agents, plan.seats(leg), pair)?;
        let record = self.read_transcript(&entry, attachment)?;
        let seeds = self.job.schedule.seat_seeds(self.identity.root, &plan)[usize::from(leg)];
        self.same("seeds", record.seeds, seeds, pair)?;
        if leg + 1 < self.job.schedule.leg_count() {
            progress.first_leg = Some(entry);
            return Ok(());
        }
        if let Some(first) = progress.first_leg.take() {
            progress.counts.add_match(first.outcome);
        }
        progress.counts.add_match(entry.outcome);
        progress.counts.pairs_done += 1;
        progress.voids = 0;
        Ok(())
    }

    /// Reads the transcript that an entry binds, and checks that both say the same.
    fn read_transcript(&self, entry: &MatchEntry, bytes: &[u8]) -> Result<MatchRecord, RunError> {
        let transcript = Transcript::decode(bytes)
            .map_err(|source| RunError::Transcript { entry_index: self.index, source })?;
        let wanted = transcript.entry(bytes);
        if *entry != wanted {
            let mut differing = fields(entry).into_iter().zip(fields(&wanted));
            let differing = differing.find(|(found, wanted)| found != wanted);
            let ((field, found), (_, wanted)) = differing.expect("entries differ in a field");
            return Err(self.disagrees(field, found, wanted));
        }
        let nonce = transcript::nonce(self.identity.root, entry.pair_index, entry.leg);
        self.same("nonce", transcript.nonce, nonce, |nonce| hex(nonce))?;
        Ok(transcript.record)
    }

    fn accept_reveal(&self, found: Reveal) -> Result<(), RunError> {
        self.same("secret", found.secret, self.job.secret, |secret| match secret {
            None => "none".to_owned(),
            Some(secret) => hex(secret),
        })
    }

    /// Returns whether a void is of the pair that comes next, and the next of that pair.
    fn is_next(&self, progress: &Progress, void: VoidRecord) -> bool {
        let wanted = (progress.counts.pairs_done, progress.voids);
        let between = progress.first_leg.is_some() || progress.is_complete(self.job);
        !between && (void.pair_index, void.attempt) == wanted
    }

    /// Returns the close of a complete log with the voids that were read.
    fn close(&self, progress: &Progress) -> Close {
        let Counts { void_count, .. } = progress.counts;
        let match_count = self.job.schedule.match_count();
        Close { tournament: self.identity.tournament, match_count, void_count }
    }

    fn misplaced(&self, progress: &Progress, found: &Entry) -> RunError {
        let wanted = match progress.phase {
            Phase::Opening => "an announcement".to_owned(),
            Phase::Draw => "a draw".to_owned(),
            Phase::Pairs if progress.is_complete(self.job) => {
                name(&Entry::Close(self.close(progress)))
            }
            Phase::Pairs => {
                let leg = u8::from(progress.first_leg.is_some());
                format!("leg {leg} of pair {}", progress.counts.pairs_done)
            }
            Phase::Reveal => "the reveal".to_owned(),
            Phase::Over => "the end of the log".to_owned(),
        };
        RunError::Misplaced { entry_index: self.index, found: name(found), wanted }
    }

    /// Compares what the log says with what it should say, and shows both where they differ.
    fn same<T: PartialEq>(
        &self,
        field: &'static str,
        found: T,
        wanted: T,
        show: fn(&T) -> String,
    ) -> Result<(), RunError> {
        if found == wanted {
            return Ok(());
        }
        Err(self.disagrees(field, show(&found), show(&wanted)))
    }

    fn disagrees(&self, field: &'static str, found: String, wanted: String) -> RunError {
        RunError::Disagrees { entry_index: self.index, field, found, wanted }
    }
}

fn fields(entry: &MatchEntry) -> [(&'static str, String); 9] {
    [
        ("transcript_sha256", hex(&entry.transcript_sha256)),
        ("tournament", entry.tournament.to_string()),
        ("pair_index", entry.pair_index.to_string()),
        ("leg", entry.leg.to_string()),
        ("agents", pair(&entry.agents)),
        ("item_index", entry.item_index.to_string()),
        ("repetition", entry.repetition.to_string()),
        ("outcome", format!("{:?}", entry.outcome)),
        ("turn_count", entry.turn_count.to_string()),
    ]
}

fn pair<T: std::fmt::Display>([buyer, seller]: &[T; 2]) -> String {
    format!("{buyer}, {seller}")
}

/// Says in a few words which entry this is.
pub fn name(entry: &Entry) -> String {
    match entry {
        Entry::Announcement(_) => "an announcement".to_owned(),
        Entry::Draw(_) => "a draw".to_owned(),
        Entry::Match(entry) => format!("leg {} of pair {}", entry.leg, entry.pair_index),
        Entry::Void(entry) => {
            format!("void {} of pair {}", entry.void.attempt, entry.void.pair_index)
        }
        Entry::Close(Close { match_count, void_count, .. }) => {
            format!("the close of {match_count} matches and {void_count} voids")
        }
        Entry::Reveal(_) => "the reveal".to_owned(),
    }
}
