//! The organiser as an enemy: takes a finished log apart and signs it anew, with the real key,
//! after something in it was changed.
//!
//! Every hash, head and count of the new log is right, so only what the change itself gives away
//! can be found. For logs with a public seed and without voids.

use std::path::{Path, PathBuf};

use arena_core::announcement::Announcement;
use arena_core::draws::Draws;
use arena_core::entry::{AnnouncementEntry, Close, Entry, Reveal, TournamentId};
use arena_core::record::MatchRecord;
use arena_core::seed::Root;
use arena_core::transcript::Transcript;
use arena_log::blobs::Visibility;
use arena_log::hash::Hash;
use arena_log::writer::{LogSettings, LogWriter, Record};

use crate::logs;

/// A log that was taken apart.
#[derive(Clone)]
pub struct Forgery {
    /// What was fixed before the first match.
    pub announcement: Announcement,
    /// The matches, in order.
    pub records: Vec<MatchRecord>,
    /// What else the announcement names: components and the catalog.
    pub blobs: Vec<Vec<u8>>,
    /// The published tables.
    pub results: Vec<u8>,
    origin: String,
}

impl Forgery {
    /// Takes a finished log apart that was signed with [`logs::key`].
    pub fn of(log: &Path) -> Forgery {
        let logs::Log { announcement, entries, records } = logs::read(log);
        let Some(Entry::Announcement(AnnouncementEntry { origin, .. })) = entries.first() else {
            panic!("the first entry is no announcement");
        };
        let own = Hash::of(&announcement.encode());
        let files = logs::public_files(log);
        let is_blob = |path: &PathBuf| path.starts_with("blob") && !path.ends_with(own.to_string());
        let blobs = files.iter().filter(|(path, _)| is_blob(path)).map(|(_, bytes)| bytes.clone());
        Forgery {
            blobs: blobs.collect(),
            results: files[Path::new("results.json")].clone(),
            origin: origin.clone(),
            announcement,
            records,
        }
    }

    /// Writes the log with its close and its reveal.
    pub fn write(&self, folder: &Path) {
        let (mut writer, tournament) = self.begin(folder, self.records.len());
        let match_count = self.records.len() as u64;
        let close = Close { tournament, match_count, void_count: 0 };
        append(&mut writer, &Entry::Close(close).encode(), &[]);
        writer.checkpoint().expect("the close is signed");
        writer.publish().expect("what was private is published");
        let reveal = Reveal { tournament, secret: None };
        append(&mut writer, &Entry::Reveal(reveal).encode(), &[]);
        writer.checkpoint().expect("the reveal is signed");
        std::fs::write(folder.join("results.json"), &self.results).expect("the tables");
    }

    /// Writes a log that is still being played, with so many matches.
    pub fn write_unfinished(&self, folder: &Path, match_count: usize) {
        let (mut writer, _) = self.begin(folder, match_count);
        writer.checkpoint().expect("what there is, is signed");
    }

    fn begin(&self, folder: &Path, match_count: usize) -> (LogWriter, TournamentId) {
        let announcement = self.announcement.encode();
        let opening = Entry::Announcement(AnnouncementEntry {
            origin: self.origin.clone(),
            log_key: logs::key().public().to_bytes(),
            announcement_sha256: Hash::of(&announcement).0,
        });
        let opening = opening.encode();
        let tournament = TournamentId::of_first_entry(&opening);
        let settings = LogSettings {
            origin: self.origin.clone(),
            key: logs::key(),
            checkpoint_every: u64::from(self.announcement.checkpoint_every),
        };
        let mut writer = LogWriter::create(folder, settings).expect("a folder for the log");
        writer.put_blob(&announcement, Visibility::Public).expect("the announcement");
        for blob in &self.blobs {
            writer.put_blob(blob, Visibility::Private).expect("a blob");
        }
        append(&mut writer, &opening, &[]);
        writer.checkpoint().expect("the opening is signed");
        let Draws::PublicSeed(seed) = self.announcement.draws else {
            panic!("the draws of this log are committed");
        };
        for record in &self.records[..match_count] {
            let transcript = Transcript::new(tournament, Root::Seed(seed), record.clone());
            let bytes = transcript.encode();
            let entry = Entry::Match(transcript.entry(&bytes)).encode();
            append(&mut writer, &entry, &bytes);
        }
        (writer, tournament)
    }
}

fn append(writer: &mut LogWriter, entry: &[u8], attachment: &[u8]) {
    writer.append_all(&[Record { entry, attachment }]).expect("the log is written");
}
