//! Logs as tests see them: what is in one, which files it is made of, and how far it has grown.
//!
//! Not here: any check that a log is honest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arena_core::announcement::{ANNOUNCEMENT_BYTES_MAX, Announcement};
use arena_core::entry::Entry;
use arena_core::record::MatchRecord;
use arena_core::transcript::Transcript;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};

/// Returns the key that tests sign with where two logs must be equal.
pub fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

/// Writes that key where a command line can name it.
pub fn write_key(path: &Path) {
    let pem = key().to_pem(None).expect("a key can be written out");
    std::fs::write(path, pem.as_bytes()).expect("a key file");
}

/// A log, read back as its owner sees it.
pub struct Log {
    /// What was fixed before the first match.
    pub announcement: Announcement,
    /// All entries.
    pub entries: Vec<Entry>,
    /// The records of all matches, in order.
    pub records: Vec<MatchRecord>,
}

/// Reads a log.
///
/// # Panics
/// If anything in it cannot be read.
pub fn read(folder: &Path) -> Log {
    let mut reader = LogReader::open(folder, Access::Owner).expect("a log");
    let (mut entries, mut records) = (Vec::new(), Vec::new());
    while let Some(record) = reader.next_record().expect("a record") {
        let entry = Entry::decode(record.entry).expect("a known entry");
        if let Entry::Match(_) = entry {
            let transcript = Transcript::decode(record.attachment.expect("the owner sees it"));
            records.push(transcript.expect("a transcript").record);
        }
        entries.push(entry);
    }
    let Some(Entry::Announcement(opening)) = entries.first() else {
        panic!("the first entry is no announcement");
    };
    let hash = Hash(opening.announcement_sha256);
    let blob = reader.blob(&hash, ANNOUNCEMENT_BYTES_MAX as u64).expect("a sound blob");
    let announcement = Announcement::decode(&blob.expect("a blob")).expect("an announcement");
    Log { announcement, entries, records }
}

/// Returns every file of a log that is for others, by its path in the folder.
pub fn public_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    walk(folder, &mut |path| {
        let name = path.strip_prefix(folder).expect("it lies in the folder").to_owned();
        if !name.starts_with("private") {
            files.insert(name, std::fs::read(path).expect("a file"));
        }
    });
    files
}

/// Fails where two logs differ, naming the first file that does.
#[track_caller]
pub fn assert_same(found: &Path, wanted: &Path) {
    let (found_files, wanted_files) = (public_files(found), public_files(wanted));
    for (name, bytes) in &wanted_files {
        let there = found_files.get(name);
        assert!(there.is_some(), "{} lacks {}", found.display(), name.display());
        assert!(there == Some(bytes), "{}: {} differs", found.display(), name.display());
    }
    let more: Vec<_> =
        found_files.keys().filter(|name| !wanted_files.contains_key(*name)).collect();
    assert!(more.is_empty(), "{} has more: {more:?}", found.display());
}

/// Returns the bytes of a log's entries and attachments, in its bundles and its journal.
pub fn grown(folder: &Path) -> u64 {
    let mut bytes = 0;
    for part in ["private/journal", "private/attachment", "attachment", "tile"] {
        walk(&folder.join(part), &mut |path| {
            // It may be renamed between being listed and being looked at.
            bytes += path.metadata().map_or(0, |metadata| metadata.len());
        });
    }
    bytes
}

fn walk(path: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    if !metadata.is_dir() {
        return visit(path);
    }
    let Ok(items) = std::fs::read_dir(path) else { return };
    for item in items.flatten() {
        walk(&item.path(), visit);
    }
}
