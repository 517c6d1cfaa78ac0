//! Logs to test with: their records are a function of the index.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arena_log::disk::Disk;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};
use arena_log::records::RecordRef;
use arena_log::storage::{ItemKind, Storage};
use arena_log::tree::Frontier;
use arena_log::writer::{LogSettings, LogWriter, Record};

pub const ORIGIN: &str = "arena.example/test";

pub fn settings(checkpoint_every: u64) -> LogSettings {
    let key = SigningKey::from_seed([7; 32]);
    LogSettings { origin: ORIGIN.to_owned(), key, checkpoint_every }
}

/// Bytes that differ from index to index and from salt to salt, of varying length.
pub fn filler(salt: &str, index: u64, bytes_max: u64) -> Vec<u8> {
    let Hash(seed) = Hash::of(format!("{salt} {index}").as_bytes());
    let length = u64::from_be_bytes(seed[..8].try_into().expect("eight bytes")) % bytes_max;
    (0..length).map(|at| seed[at as usize % 32] ^ (at / 32) as u8).collect()
}

pub fn entry(index: u64) -> Vec<u8> {
    filler("entry", index, 90)
}

pub fn attachment(index: u64) -> Vec<u8> {
    filler("attachment", index, 40)
}

/// Appends the records `writer.size()..end`, at most `group` at once.
pub fn append_to(writer: &mut LogWriter, end: u64, group: u64) {
    while writer.size() < end {
        let indices = writer.size()..end.min(writer.size() + group);
        let bytes: Vec<_> = indices.map(|index| (entry(index), attachment(index))).collect();
        append(writer, &bytes).expect("the records are appended");
    }
}

pub fn append(
    writer: &mut LogWriter,
    bytes: &[(Vec<u8>, Vec<u8>)],
) -> Result<(), arena_log::error::LogError> {
    let record = |(entry, attachment): &(Vec<u8>, Vec<u8>)| -> (Vec<u8>, Vec<u8>) {
        (entry.clone(), attachment.clone())
    };
    let owned: Vec<_> = bytes.iter().map(record).collect();
    let records: Vec<_> =
        owned.iter().map(|(entry, attachment)| Record { entry, attachment }).collect();
    writer.append_all(&records)
}

/// Asserts that a record is the one that was appended at its index.
pub fn assert_record(record: &RecordRef<'_>) {
    assert_eq!(record.entry, entry(record.index), "entry {}", record.index);
    let wanted = attachment(record.index);
    assert_eq!(record.attachment, Some(wanted.as_slice()), "attachment {}", record.index);
}

/// Asserts that the log holds the first `size` records and that all its files agree.
pub fn assert_log(storage: &Arc<dyn Storage>, size: u64) {
    let reader = LogReader::open_on(Arc::clone(storage), Access::Owner);
    let mut reader = reader.expect("the log opens");
    assert_eq!(reader.head().size, size);
    let mut frontier = Frontier::new();
    while let Some(record) = reader.next_record().expect("the records are read") {
        assert_record(&record);
        frontier.append(Hash::leaf(record.entry));
    }
    assert_eq!(frontier.size(), size);
    assert_eq!(reader.head().root, frontier.root());
    reader.verify_tree().expect("all files agree");
}

pub fn disk(folder: &Path) -> Arc<dyn Storage> {
    Arc::new(Disk::open(folder).expect("the folder is there"))
}

/// Returns every file by its path, but for what is withheld.
pub fn public_files(storage: &dyn Storage) -> BTreeMap<String, Vec<u8>> {
    let mut files = all_files(storage);
    files.retain(|path, _| !path.starts_with("private/"));
    files
}

pub fn all_files(storage: &dyn Storage) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let items = storage.list(&folder, usize::MAX).expect("the folder is listed");
        for item in items.expect("there is no bound") {
            let path = format!("{folder}/{}", item.name).trim_start_matches('/').to_owned();
            match item.kind {
                ItemKind::Folder => folders.push(path),
                ItemKind::File => {
                    let mut bytes = Vec::new();
                    let mut file = storage.open(&path).expect("the file opens");
                    file.read_to_end(&mut bytes).expect("the file is read");
                    files.insert(path, bytes);
                }
                ItemKind::Special => panic!("`{path}` is special"),
            }
        }
    }
    files
}

/// Compares two sets of files and names the first difference.
pub fn assert_same_files(found: &BTreeMap<String, Vec<u8>>, wanted: &BTreeMap<String, Vec<u8>>) {
    for (path, bytes) in wanted {
        let found = found.get(path).unwrap_or_else(|| panic!("`{path}` is missing"));
        assert!(found == bytes, "`{path}` differs: {} and {} bytes", found.len(), bytes.len());
    }
    let more: Vec<_> = found.keys().filter(|path| !wanted.contains_key(*path)).collect();
    assert!(more.is_empty(), "files that should not be there: {more:?}");
}
