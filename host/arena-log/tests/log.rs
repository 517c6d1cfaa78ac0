//! The log as a file: what comes back, what is noticed, who may write.

use std::fs;
use std::path::Path;

use arena_log::plain::error::{Damage, LogError};
use arena_log::plain::reader::LogReader;
use arena_log::plain::writer::{GROUP_BYTES_MAX, LogWriter};
use arena_log::plain::{Boundary, ENTRY_BYTES_MAX, path_in};
use proptest::prelude::*;
use tempfile::TempDir;

/// Entries of a small log: empty, short, of frame-like bytes, of zeros.
const SMALL: [&[u8]; 6] =
    [b"first", b"", &[0; 40], b"\0\0\0\x01....x", b"the fifth entry", b"last"];

const HEADER_BYTES: u64 = 16;
const PREFIX_BYTES: u64 = 8;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

fn write(folder: &Path, entries: &[&[u8]]) {
    let mut writer = LogWriter::create(folder).expect("an empty folder takes a log");
    writer.append_all(entries).expect("entries of a few bytes are taken");
    writer.close().expect("the disk works");
}

/// Reads up to the end or the first error.
fn read(folder: &Path) -> (Vec<Vec<u8>>, Boundary, Option<LogError>) {
    let mut reader = LogReader::open(folder).expect("there is a log");
    let mut entries = Vec::new();
    loop {
        match reader.next_entry() {
            Ok(Some(entry)) => entries.push(entry.to_vec()),
            Ok(None) => return (entries, reader.boundary(), None),
            Err(error) => return (entries, reader.boundary(), Some(error)),
        }
    }
}

/// Where each entry ends, the header included.
fn ends(entries: &[&[u8]]) -> Vec<u64> {
    let mut end = HEADER_BYTES;
    let mut ends = vec![end];
    for entry in entries {
        end += PREFIX_BYTES + entry.len() as u64;
        ends.push(end);
    }
    ends
}

#[test]
fn a_log_cut_at_any_byte_reads_to_the_last_whole_entry_and_goes_on_to_the_same_bytes() {
    let whole = folder();
    write(whole.path(), &SMALL);
    let bytes = fs::read(path_in(whole.path())).expect("the log was written");
    let ends = ends(&SMALL);
    assert_eq!(bytes.len() as u64, ends[SMALL.len()]);
    for cut in 0..bytes.len() {
        let torn = folder();
        fs::write(path_in(torn.path()), &bytes[..cut]).expect("the disk works");
        let count = ends.iter().skip(1).filter(|end| **end <= cut as u64).count();
        let (entries, boundary, error) = read(torn.path());
        assert_eq!(entries, SMALL[..count], "cut at {cut}");
        assert_eq!(boundary.entry_count(), count as u64);
        if ends.contains(&(cut as u64)) {
            assert!(error.is_none(), "cut at {cut}: {error:?}");
        } else {
            assert!(
                matches!(error, Some(LogError::TornTail { entry_index, bytes, .. })
                    if entry_index == count as u64 && bytes == cut as u64 - boundary.offset()),
                "cut at {cut}: {error:?}"
            );
        }
        let reopened = LogWriter::open_for_append(torn.path()).expect("nobody else writes");
        let mut writer = reopened.truncate_to(boundary).expect("the disk works");
        writer.append_all(&SMALL[count..]).expect("the disk works");
        assert_eq!(writer.entry_count(), SMALL.len() as u64);
        writer.close().expect("the disk works");
        assert_eq!(fs::read(path_in(torn.path())).expect("the log is there"), bytes);
    }
}

#[test]
fn zeros_after_the_last_entry_are_a_torn_tail() {
    for zeros in [1, 7, 8, 9, 512, 4_096] {
        let folder = folder();
        write(folder.path(), &SMALL);
        let mut bytes = fs::read(path_in(folder.path())).expect("the log was written");
        let end = bytes.len() as u64;
        bytes.resize(bytes.len() + zeros, 0);
        fs::write(path_in(folder.path()), &bytes).expect("the disk works");
        let (entries, _, error) = read(folder.path());
        assert_eq!(entries, SMALL);
        assert!(
            matches!(error, Some(LogError::TornTail { entry_index: 6, offset, bytes, .. })
                if offset == end && bytes == zeros as u64),
            "{zeros} zeros: {error:?}"
        );
    }
}

#[test]
fn every_flipped_bit_is_noticed_and_only_one_in_the_last_frame_is_called_torn() {
    let folder = folder();
    write(folder.path(), &SMALL);
    let path = path_in(folder.path());
    let good = fs::read(&path).expect("the log was written");
    let ends = ends(&SMALL);
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).expect("the disk works");
        let place = (bit / 8) as u64;
        if place < HEADER_BYTES {
            assert!(
                matches!(LogReader::open(&path), Err(LogError::NotALog { .. })),
                "bit {bit} of the header"
            );
            continue;
        }
        let hit = ends.iter().skip(1).filter(|end| **end <= place).count() as u64;
        let (entries, _, error) = read(folder.path());
        assert_eq!(entries, SMALL[..entries.len()], "what was read before is what was written");
        match error {
            Some(LogError::Damaged { entry_index, offset, .. }) => {
                assert_eq!((entry_index, offset), (hit, ends[hit as usize]), "bit {bit}");
                assert!(entry_index < 5, "bit {bit}");
            }
            Some(LogError::TornTail { entry_index, .. }) => {
                assert_eq!((entry_index, hit), (5, 5), "bit {bit}")
            }
            other => panic!("bit {bit}: {other:?}"),
        }
    }
}

#[test]
fn an_error_is_not_skipped_by_asking_again() {
    let folder = folder();
    write(folder.path(), &SMALL);
    let path = path_in(folder.path());
    let mut bytes = fs::read(&path).expect("the log was written");
    bytes[HEADER_BYTES as usize + 9] ^= 0x20;
    fs::write(&path, &bytes).expect("the disk works");
    let mut reader = LogReader::open(&path).expect("the header is whole");
    for _ in 0..3 {
        let error = reader.next_entry().expect_err("the first entry is damaged");
        let LogError::Damaged { entry_index: 0, offset: HEADER_BYTES, damage, .. } = error else {
            panic!("{error:?}");
        };
        assert!(matches!(damage, Damage::Checksum { .. }));
    }
}

#[test]
fn damage_far_from_the_end_is_never_called_torn() {
    // Neither a frame after it nor its own length tells, only its distance from the end.
    let folder = folder();
    write(folder.path(), &SMALL[..2]);
    let path = path_in(folder.path());
    let mut bytes = fs::read(&path).expect("the log was written");
    bytes.resize(bytes.len() + (33 << 20), 0xff);
    fs::write(&path, &bytes).expect("the disk works");
    let (_, _, error) = read(folder.path());
    assert!(matches!(error, Some(LogError::Damaged { entry_index: 2, .. })), "{error:?}");
}

#[test]
fn a_frame_that_an_entry_carries_does_not_pose_as_one() {
    // The last entry holds a copy of the log, and is torn: the copied frames are at another
    // place of the file, so they do not count as frames after the torn one.
    let inner = folder();
    write(inner.path(), &SMALL);
    let carried = fs::read(path_in(inner.path())).expect("the log was written");
    let folder = folder();
    write(folder.path(), &[b"before", &carried]);
    let path = path_in(folder.path());
    let bytes = fs::read(&path).expect("the log was written");
    fs::write(&path, &bytes[..bytes.len() - 1]).expect("the disk works");
    let (_, _, error) = read(folder.path());
    assert!(matches!(error, Some(LogError::TornTail { entry_index: 1, .. })), "{error:?}");
}

#[test]
fn a_second_writer_is_refused_by_name() {
    let folder = folder();
    let writer = LogWriter::create(folder.path()).expect("an empty folder takes a log");
    let error = LogWriter::open_for_append(folder.path()).expect_err("the log is held");
    let path = path_in(folder.path());
    assert_eq!(error.to_string(), format!("another process is writing `{}`", path.display()));
    let error = LogWriter::create(folder.path()).expect_err("there is a log");
    assert!(matches!(error, LogError::Exists { .. }), "{error:?}");
    drop(writer);
    LogWriter::open_for_append(folder.path()).expect("the log was let go");
}

#[test]
fn a_folder_with_anything_else_takes_no_log() {
    let folder = folder();
    fs::write(folder.path().join("thesis.tex"), "years of work").expect("the disk works");
    let error = LogWriter::create(folder.path()).expect_err("the folder is not empty");
    assert!(error.to_string().contains("`thesis.tex`"), "{error}");
    assert!(!path_in(folder.path()).exists());
}

#[test]
fn folders_are_made_as_needed() {
    let folder = folder();
    let deep = folder.path().join("2026").join("autumn");
    write(&deep, &SMALL);
    assert_eq!(read(&deep).0, SMALL);
}

#[test]
fn what_is_not_a_log_is_called_so() {
    for text in ["x", "{\"json\": \"and longer than a header\"}", "ARENALOG but then text"] {
        let folder = folder();
        fs::write(path_in(folder.path()), text).expect("the disk works");
        let error = LogReader::open(folder.path()).expect_err("no header");
        assert!(matches!(error, LogError::NotALog { .. }), "{text}: {error:?}");
    }
    let folder = folder();
    let error = LogReader::open(folder.path()).expect_err("nothing there");
    assert!(matches!(error, LogError::Missing { .. }), "{error:?}");
}

#[test]
fn entries_and_groups_beyond_the_limit_are_refused_and_leave_no_trace() {
    let folder = folder();
    let mut writer = LogWriter::create(folder.path()).expect("an empty folder takes a log");
    let large = vec![7; ENTRY_BYTES_MAX];
    let error = writer.append_all(&[b"small", &[&large[..], &[7]].concat()]);
    assert!(matches!(error, Err(LogError::EntryTooLarge { bytes }) if bytes == large.len() + 1));
    let error = writer.append_all(&[&large[..]; GROUP_BYTES_MAX / ENTRY_BYTES_MAX]);
    assert!(matches!(error, Err(LogError::GroupTooLarge { .. })), "{error:?}");
    assert_eq!(writer.entry_count(), 0);
    writer.append_all(&[&large]).expect("the largest entry fits");
    writer.close().expect("the disk works");
    let (entries, boundary, error) = read(folder.path());
    assert!(error.is_none() && entries == [large] && boundary.entry_count() == 1);
}

proptest! {
    #[test]
    fn whatever_is_appended_in_whatever_groups_reads_back(
        groups in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
            0..8,
        ),
    ) {
        let folder = folder();
        let mut writer = LogWriter::create(folder.path()).expect("an empty folder takes a log");
        for group in &groups {
            let group: Vec<&[u8]> = group.iter().map(Vec::as_slice).collect();
            writer.append_all(&group).expect("the disk works");
        }
        let entries = groups.concat();
        prop_assert_eq!(writer.entry_count(), entries.len() as u64);
        let bytes = writer.byte_count();
        writer.close().expect("the disk works");
        let (found, boundary, error) = read(folder.path());
        prop_assert!(error.is_none());
        prop_assert_eq!(boundary.offset(), bytes);
        prop_assert_eq!(found, entries);
    }
}

#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(arena_log::plain::FILE_NAME);
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    let error = LogReader::open(folder.path()).expect_err("a pipe is no log");
    assert!(matches!(error, LogError::NotALog { .. }), "{error:?}");
    let error = LogWriter::open_for_append(folder.path()).expect_err("a pipe is no log");
    assert!(matches!(error, LogError::NotALog { .. }), "{error:?}");
    std::fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
    let error = LogReader::open(folder.path()).expect_err("a device is no log");
    assert!(matches!(error, LogError::NotALog { .. }), "{error:?}");
}
