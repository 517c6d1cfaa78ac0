//! What is written reads back, at every size around the edges of bundles and tiles.

use std::sync::Arc;

use arena_log::blobs::Visibility;
use arena_log::hash::Hash;
use arena_log::proof::{verify_consistency, verify_inclusion};
use arena_log::reader::{Access, LogReader};
use arena_log::storage::Storage;
use arena_log::tile;
use arena_log::writer::LogWriter;

use crate::faulty::FaultyDisk;
use crate::kit::{
    all_files, append_to, assert_log, assert_record, assert_same_files, disk, entry, public_files,
    settings,
};

#[test]
fn a_log_of_any_size_reads_back() {
    for size in (1..=20).chain(250..=260).chain(508..=516).chain([765, 768, 769, 773]) {
        let storage = FaultyDisk::new().storage();
        let writer = LogWriter::create_on(Arc::clone(&storage), settings(256));
        let mut writer = writer.expect("a log is made");
        append_to(&mut writer, size, 100);
        let head = writer.checkpoint().expect("the head is signed");
        assert_eq!(head.size, size);
        assert_log(&storage, size);
    }
}

#[test]
fn a_log_with_a_head_of_every_size_agrees_with_itself_at_every_size() {
    const SIZE: u64 = 3 * 256 + 5;
    let storage = FaultyDisk::new().storage();
    let writer = LogWriter::create_on(Arc::clone(&storage), settings(256));
    let mut writer = writer.expect("a log is made");
    let mut roots = Vec::new();
    for size in 1..=SIZE {
        append_to(&mut writer, size, 1);
        let head = writer.checkpoint().expect("the head is signed");
        roots.push(head.root);
        assert_eq!(writer.checkpoint().expect("again is the same"), head);
    }
    assert_log(&storage, SIZE);
    let mut reader = LogReader::open_on(storage, Access::Owner).expect("the log opens");
    assert_eq!(reader.signed_sizes().expect("sizes"), Vec::from_iter(1..=SIZE));
    for size in 1..=SIZE {
        let proof = reader.consistency_proof(size).expect("tiles");
        let (old, new) = ((size, roots[size as usize - 1]), (SIZE, reader.head().root));
        verify_consistency(old, new, &proof).expect("the log only grew");
        let index = size - 1;
        let proof = reader.inclusion_proof(index).expect("tiles");
        let leaf = Hash::leaf(&entry(index));
        verify_inclusion(leaf, index, SIZE, new.1, &proof).expect("the entry is there");
        assert_record(&reader.get(index).expect("the record"));
    }
    for index in [700, 3, 256, 255, 257, 772, 0] {
        assert_record(&reader.get(index).expect("the record"));
    }
    reader.get(SIZE).expect_err("there is no such record");
}

#[test]
fn tiles_of_the_second_level_begin_where_the_first_are_full() {
    const FULL: u64 = 256 * 256;
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = LogWriter::create(folder.path(), settings(FULL)).expect("a log is made");
    for size in [FULL - 1, FULL + 1] {
        append_to(&mut writer, size, 5_000);
        writer.checkpoint().expect("the head is signed");
    }
    drop(writer);
    let storage = disk(folder.path());
    assert_log(&storage, FULL + 1);
    let files = public_files(&*storage);
    assert_eq!(files["tile/2/000.p/1"].len(), 32);
    for path in ["tile/0/256.p/1", "tile/1/000", "tile/1/000.p/255", "tile/0/255.p/255"] {
        assert!(files.contains_key(path), "{path}");
    }
    assert!(!files.contains_key("tile/1/001.p/1"));
}

#[test]
fn a_log_that_was_left_and_taken_up_again_is_the_same_to_the_byte() {
    const SIZE: u64 = 600;
    let write = |stops: &[u64]| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = LogWriter::create(folder.path(), settings(256)).expect("a log is made");
        append_to(&mut writer, 1, 1);
        writer.checkpoint().expect("the first head");
        for stop in stops {
            append_to(&mut writer, *stop, 7);
            drop(writer);
            let reopened = LogWriter::open(folder.path(), settings(256)).expect("it opens");
            assert_eq!((reopened.size(), reopened.cut), (*stop, 0));
            let mut records = reopened.records().expect("records");
            while let Some(record) = records.next_record().expect("the records are read") {
                assert_record(&record);
            }
            assert_eq!(records.next_index(), *stop);
            // What is not signed may also be given up.
            let signed = reopened.signed.as_ref().map_or(0, |head| head.size);
            let size =
                if stop.is_multiple_of(2) { signed.max(stop.saturating_sub(3)) } else { *stop };
            writer = reopened.resume_at(size).expect("it goes on");
            assert_eq!(writer.size(), size);
        }
        append_to(&mut writer, SIZE, 11);
        writer.checkpoint().expect("the last head");
        writer.publish().expect("it is published");
        writer.publish().expect("publishing again changes nothing");
        append_to(&mut writer, SIZE + 1, 1);
        writer.checkpoint().expect("the head of the reveal");
        drop(writer);
        assert_log(&disk(folder.path()), SIZE + 1);
        public_files(&*disk(folder.path()))
    };
    let wanted = write(&[]);
    assert_same_files(&write(&[1, 2, 255, 256, 257, 400, 512, 513, 600]), &wanted);
    assert_same_files(&write(&[599]), &wanted);
}

#[test]
fn the_public_see_no_attachment_and_no_private_blob_before_they_are_published() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = LogWriter::create(folder.path(), settings(256)).expect("a log is made");
    let public = writer.put_blob(b"rules", Visibility::Public).expect("a blob");
    let private = writer.put_blob(b"secret", Visibility::Private).expect("a blob");
    let both = writer.put_blob(b"both", Visibility::Private).expect("a blob");
    assert_eq!(writer.put_blob(b"both", Visibility::Public).expect("again"), both);
    append_to(&mut writer, 3, 3);
    writer.publish().expect_err("nothing is published before it is signed");
    writer.checkpoint().expect("the head is signed");
    append_to(&mut writer, 5, 2);
    let read = |access| {
        let mut reader = LogReader::open(folder.path(), access).expect("it opens");
        let mut seen = Vec::new();
        while let Some(record) = reader.next_record().expect("the records are read") {
            seen.push(record.attachment.is_some());
        }
        let blob = |hash| reader.blob(hash, 6).expect("readable").is_some();
        (seen, [blob(&public), blob(&private), blob(&both)])
    };
    assert_eq!(read(Access::Public), (vec![false; 3], [true, false, true]));
    assert_eq!(read(Access::Owner), (vec![true; 5], [true, true, true]));
    writer.checkpoint().expect("the head is signed");
    writer.publish().expect("it is published");
    assert_eq!(read(Access::Public), (vec![true; 5], [true, true, true]));
    let reader = LogReader::open(folder.path(), Access::Public).expect("it opens");
    reader.verify_tree().expect("all files agree");
    reader.blob(&private, 5).expect_err("it is larger than asked for");
    assert!(!public_files(&*disk(folder.path())).is_empty());
}

#[test]
fn what_was_put_or_synced_is_there_after_a_crash() {
    let disk = FaultyDisk::new();
    let mut writer = LogWriter::create_on(disk.storage(), settings(256)).expect("a log is made");
    append_to(&mut writer, 9, 4);
    writer.sync().expect("it is synced");
    let public = writer.put_blob(b"rules", Visibility::Public).expect("a blob");
    let private = writer.put_blob(b"secret", Visibility::Private).expect("a blob");
    append_to(&mut writer, 11, 4);
    disk.crash(|| 0);
    let files = all_files(&*disk.storage());
    assert_eq!(files[&tile::blob(&public)], b"rules");
    assert_eq!(files[&format!("private/{}", tile::blob(&private))], b"secret");
    let reopened = LogWriter::open_on(disk.storage(), settings(256)).expect("it opens");
    assert_eq!((reopened.size(), reopened.cut), (9, 0));
}

#[test]
fn an_owner_reads_a_log_while_it_is_written() {
    let disk = FaultyDisk::new();
    let storage: Arc<dyn Storage> = disk.storage();
    let writer = LogWriter::create_on(Arc::clone(&storage), settings(256));
    let mut writer = writer.expect("a log is made");
    LogReader::open_on(disk.storage(), Access::Owner).expect_err("there is no head yet");
    for size in [1, 3, 256, 300, 513] {
        append_to(&mut writer, size, 50);
        if size == 1 {
            writer.checkpoint().expect("the first head");
        }
        let mut reader = LogReader::open_on(disk.storage(), Access::Owner).expect("it opens");
        while let Some(record) = reader.next_record().expect("the records are read") {
            assert_record(&record);
        }
    }
}
