//! Heads that witnesses cosigned are a memory outside of the signer's: an older log is refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use arena_log::checkpoint::Head;
use arena_log::cosignature::cosign;
use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::note::{NOTE_BYTES_MAX, Note};
use arena_log::writer::LogWriter;

use crate::kit::{ORIGIN, all_files, append_to, assert_same_files, disk, settings};

/// A folder with a log that was signed at 1 and 300, and has 310 entries.
fn left_behind() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = LogWriter::create(folder.path(), settings(256)).expect("a log is made");
    for size in [1, 300] {
        append_to(&mut writer, size, 50);
        writer.checkpoint().expect("a head");
    }
    append_to(&mut writer, 310, 50);
    fs::create_dir(folder.path().join("witness")).expect("a folder");
    folder
}

fn open(folder: &Path) -> Result<u64, LogError> {
    LogWriter::open(folder, settings(256)).map(|reopened| reopened.size())
}

/// A head that the key of this seed signed under this origin, with a witness's cosignature.
fn cosigned(seed: u8, origin: &str, size: u64, root: Hash) -> String {
    let head = Head { origin: origin.to_owned(), size, root };
    let signed = head.sign(&SigningKey::from_seed([seed; 32])).expect("a head");
    let witness = SigningKey::from_seed([99; 32]);
    let line = cosign(&witness, "w.example", &head, 1_796_000_000).expect("a cosignature");
    let note = Note::parse(signed.as_bytes()).expect("a note");
    note.with_signatures(&[line]).expect("two lines").to_string()
}

/// Refused, with these words, and without anything having been changed.
#[track_caller]
fn assert_refused(folder: &Path, words: &[&str]) {
    let before = all_files(&*disk(folder));
    let Err(error) = open(folder) else { panic!("it was taken, expected {words:?}") };
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "`{text}` does not say `{word}`");
    }
    assert_same_files(&all_files(&*disk(folder)), &before);
}

#[test]
fn a_log_that_is_older_than_what_a_witness_cosigned_is_refused() {
    let folder = left_behind();
    let path = folder.path().join("witness/w.example");
    let head = cosigned(7, ORIGIN, 512, Hash([5; 32]));
    fs::write(&path, head).expect("a file");
    assert_refused(folder.path(), &["witness/w.example` has size 512", "signed size is 300"]);
    // A restored copy of the log before anything was signed.
    for path in ["private/last-signed", "checkpoint"] {
        fs::remove_file(folder.path().join(path)).expect("it goes");
    }
    fs::remove_dir_all(folder.path().join("checkpoints")).expect("it goes");
    assert_refused(folder.path(), &["witness/w.example` has size 512", "signed size is 0"]);
}

#[test]
fn a_backup_of_everything_but_the_cosigned_heads_is_refused() {
    let folder = left_behind();
    let backup = all_files(&*disk(folder.path()));
    let reopened = LogWriter::open(folder.path(), settings(256)).expect("it opens");
    let mut writer = reopened.resume_at(310).expect("it goes on");
    let head = writer.checkpoint().expect("a head");
    drop(writer);
    let path = folder.path().join("witness/w.example");
    let head = cosigned(7, ORIGIN, head.size, head.root);
    fs::write(&path, &head).expect("a file");
    assert_eq!(open(folder.path()).expect("the newest copy is fine"), 310);
    let restored = tempfile::tempdir().expect("a folder");
    for (path, bytes) in backup {
        let path = restored.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    assert_eq!(open(restored.path()).expect("nothing tells"), 310);
    fs::create_dir_all(restored.path().join("witness")).expect("a folder");
    fs::write(restored.path().join("witness/w.example"), head).expect("a file");
    assert_refused(restored.path(), &["witness/w.example` has size 310", "signed size is 300"]);
}

#[test]
fn a_cosigned_head_of_a_signed_size_or_a_smaller_one_with_another_root_is_refused() {
    for size in [300, 256, 17] {
        let folder = left_behind();
        let head = cosigned(7, ORIGIN, size, Hash([5; 32]));
        fs::write(folder.path().join("witness/w.example"), head).expect("a file");
        let says = format!("says that the root of {size} entries is 0505");
        assert_refused(folder.path(), &["witness/w.example`", &says]);
    }
}

#[test]
fn what_no_witness_of_this_log_left_is_passed_over() {
    let folder = left_behind();
    let put = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join("witness").join(name), bytes).expect("a file");
    };
    let root = Hash([5; 32]);
    put("another-key", cosigned(8, ORIGIN, 512, root).as_bytes());
    put("another-log", cosigned(7, "arena.example/other", 512, root).as_bytes());
    put("half", &cosigned(7, ORIGIN, 512, root).as_bytes()[..40]);
    put(".under-way.new", cosigned(7, ORIGIN, 512, root).as_bytes());
    put("large", &vec![b'x'; NOTE_BYTES_MAX + 1]);
    put("same", &fs::read(folder.path().join("checkpoint")).expect("a head"));
    fs::create_dir(folder.path().join("witness/folder")).expect("a folder");
    symlink("/dev/zero", folder.path().join("witness/link")).expect("a link");
    assert_eq!(open(folder.path()).expect("it opens"), 310);
    for number in 0..512 {
        put(&number.to_string(), b"");
    }
    assert_says_too_many(folder.path());
}

#[track_caller]
fn assert_says_too_many(folder: &Path) {
    let error = open(folder).expect_err("a crowd").to_string();
    assert!(error.contains("witness` holds more than 512 names"), "{error}");
}
