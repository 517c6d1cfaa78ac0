//! The organiser as an enemy: takes a finished log apart, and signs with the real key whatever
//! was made of it.
//!
//! Hashes, heads and tables of the new log are right, so that nothing but the change itself can
//! give it away.

use std::path::Path;

use arena_audit::AuditOptions;
use arena_core::announcement::{ANNOUNCEMENT_BYTES_MAX, Announcement};
use arena_core::entry::{AnnouncementEntry, Close, Entry, TournamentId, VoidEntry};
use arena_core::fault::VoidReason;
use arena_core::record::{MatchRecord, VoidRecord};
use arena_core::transcript::Transcript;
use arena_log::blobs::Visibility;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::policy::Policy;
use arena_log::reader::{Access, LogReader};
use arena_log::writer::{LogSettings, LogWriter, Record};

use crate::logs;

/// A log that was taken apart.
pub struct Rewrite {
    pub key: fn() -> SigningKey,
    pub opening: AnnouncementEntry,
    pub announcement: Announcement,
    /// All entries, the opening's first, with what lies beside them.
    pub rows: Vec<Row>,
    /// Components and catalog.
    pub blobs: Vec<Vec<u8>>,
    pub tables: Tables,
}

/// An entry with what lies beside it.
#[derive(Clone)]
pub struct Row {
    pub entry: Entry,
    pub attachment: Vec<u8>,
}

/// What is published of the results.
pub enum Tables {
    /// What follows from the log, or where nothing does, what was published before.
    Made {
        before: Vec<u8>,
    },
    /// These bytes.
    As(Vec<u8>),
    Unpublished,
}

impl Rewrite {
    /// Takes apart a log that was signed with [`logs::key`].
    pub fn of(log: &Path) -> Rewrite {
        let mut reader = LogReader::open(log, Access::Public).expect("a log");
        let mut rows = Vec::new();
        while let Some(record) = reader.next_record().expect("a record") {
            let entry = Entry::decode(record.entry).expect("a known entry");
            let attachment = record.attachment.expect("it is published").to_vec();
            rows.push(Row { entry, attachment });
        }
        let Entry::Announcement(opening) = rows[0].entry.clone() else {
            panic!("the first entry is an announcement");
        };
        let hash = Hash(opening.announcement_sha256);
        let blob = reader.blob(&hash, ANNOUNCEMENT_BYTES_MAX as u64).expect("a sound blob");
        let files = logs::public_files(log);
        let is_blob = |path: &Path| path.starts_with("blob") && !path.ends_with(hash.to_string());
        let blobs = files.iter().filter(|(path, _)| is_blob(path)).map(|(_, bytes)| bytes.clone());
        Rewrite {
            key: logs::key,
            announcement: Announcement::decode(&blob.expect("a blob")).expect("an announcement"),
            blobs: blobs.collect(),
            tables: Tables::Made { before: files[Path::new("results.json")].clone() },
            opening,
            rows,
        }
    }

    /// Returns the tournament that all later entries are of.
    pub fn id(&self) -> TournamentId {
        TournamentId::of_first_entry(&Entry::Announcement(self.opening.clone()).encode())
    }

    /// Binds the announcement and the opening as they now stand, in every entry and transcript.
    pub fn announce(&mut self) {
        self.opening.announcement_sha256 = Hash::of(&self.announcement.encode()).0;
        self.rows[0].entry = Entry::Announcement(self.opening.clone());
        let id = self.id();
        for index in 1..self.rows.len() {
            match &mut self.rows[index].entry {
                Entry::Announcement(_) => {}
                Entry::Match(_) => self.forge(index, |transcript| transcript.tournament = id),
                Entry::Void(entry) => entry.tournament = id,
                Entry::Close(entry) => entry.tournament = id,
                Entry::Reveal(entry) => entry.tournament = id,
                Entry::Draw(entry) => entry.tournament = id,
            }
        }
    }

    /// Returns the index of a match.
    pub fn match_at(&self, pair_index: u64, leg: u8) -> usize {
        let is_it = |row: &Row| match &row.entry {
            Entry::Match(entry) => (entry.pair_index, entry.leg) == (pair_index, leg),
            _ => false,
        };
        self.rows.iter().position(is_it).expect("the match was played")
    }

    /// Returns the index of the first match that is such a one.
    pub fn find(&self, is_it: impl Fn(&MatchRecord) -> bool) -> usize {
        let is_it = |row: &Row| {
            Transcript::decode(&row.attachment).is_ok_and(|transcript| is_it(&transcript.record))
        };
        self.rows.iter().position(is_it).expect("some match is such a one")
    }

    /// Returns the transcript of a match.
    pub fn transcript(&self, index: usize) -> Transcript {
        Transcript::decode(&self.rows[index].attachment).expect("a match")
    }

    /// Changes a transcript and binds it anew.
    pub fn forge(&mut self, index: usize, change: impl FnOnce(&mut Transcript)) {
        let mut transcript = self.transcript(index);
        change(&mut transcript);
        let attachment = transcript.encode();
        let entry = Entry::Match(transcript.entry(&attachment));
        self.rows[index] = Row { entry, attachment };
    }

    /// Changes what a transcript says of its match, and binds it anew.
    pub fn forge_record(&mut self, index: usize, change: impl FnOnce(&mut MatchRecord)) {
        self.forge(index, |transcript| change(&mut transcript.record));
    }

    /// Returns the index of the close.
    pub fn close_at(&self) -> usize {
        let is_it = |row: &Row| matches!(row.entry, Entry::Close(_));
        self.rows.iter().position(is_it).expect("the tournament was closed")
    }

    /// Puts voids before a pair's matches.
    pub fn void(&mut self, pair_index: u64, count: u32) {
        let (index, tournament) = (self.match_at(pair_index, 0), self.id());
        let void = |attempt| {
            let void = VoidRecord { pair_index, attempt, reason: VoidReason::Host };
            Row { entry: Entry::Void(VoidEntry { tournament, void }), attachment: Vec::new() }
        };
        self.rows.splice(index..index, (0..count).map(void));
    }

    /// Makes the close count what is there.
    pub fn recount(&mut self) {
        let count = |is_it: fn(&Entry) -> bool| {
            self.rows.iter().filter(|row| is_it(&row.entry)).count() as u64
        };
        let close = Close {
            tournament: self.id(),
            match_count: count(|entry| matches!(entry, Entry::Match(_))),
            void_count: count(|entry| matches!(entry, Entry::Void(_))),
        };
        let index = self.close_at();
        self.rows[index].entry = Entry::Close(close);
    }

    /// Writes, signs and publishes the log; `encode` is given each entry with its index.
    pub fn write(&self, folder: &Path, encode: &dyn Fn(usize, &Entry) -> Vec<u8>) {
        let settings = LogSettings {
            origin: self.opening.origin.clone(),
            key: (self.key)(),
            checkpoint_every: u64::from(self.announcement.checkpoint_every),
        };
        let mut writer = LogWriter::create(folder, settings).expect("a new log");
        writer.put_blob(&self.announcement.encode(), Visibility::Public).expect("it fits");
        for blob in &self.blobs {
            writer.put_blob(blob, Visibility::Private).expect("it fits");
        }
        for (index, row) in self.rows.iter().enumerate() {
            let entry = encode(index, &row.entry);
            let record = Record { entry: &entry, attachment: &row.attachment };
            writer.append_all(&[record]).expect("it fits");
            match row.entry {
                Entry::Draw(_) if index > 1 => {}
                Entry::Match(_) | Entry::Void(_) => {}
                Entry::Announcement(_) | Entry::Draw(_) | Entry::Reveal(_) => {
                    writer.checkpoint().expect("it is signed");
                }
                Entry::Close(_) => {
                    writer.checkpoint().expect("it is signed");
                    writer.publish().expect("it is published");
                }
            }
        }
        writer.checkpoint().expect("it is signed");
        let vkey = (self.key)().vkey(&self.opening.origin).expect("an origin");
        std::fs::write(folder.join("log.vkey"), format!("{vkey}\n")).expect("the key");
        if let Some(tables) = self.tables(folder) {
            std::fs::write(folder.join("results.json"), tables).expect("the tables");
        }
    }

    fn tables(&self, folder: &Path) -> Option<Vec<u8>> {
        let before = match &self.tables {
            Tables::Unpublished => return None,
            Tables::As(bytes) => return Some(bytes.clone()),
            Tables::Made { before } => before.clone(),
        };
        let vkey = (self.key)().vkey(&self.opening.origin).expect("an origin");
        let policy = Policy::of_vkey(vkey).expect("a log's key");
        let options = AuditOptions { policy: &policy, held: &[], authors: &[], catalog: None };
        let report = arena_audit::audit(folder, &options, &mut |_| {}).report;
        Some(report.map_or(before, |report| arena_audit::results::published_bytes(&report)))
    }
}
