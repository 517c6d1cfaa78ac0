//! What is refused, and what the error says: other writers, other keys, old copies, damage.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use arena_log::blobs::Visibility;
use arena_log::error::{BundleDamage, LogError};
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};
use arena_log::writer::{LogSettings, LogWriter, Record};

use crate::faulty::FaultyDisk;
use crate::kit::{all_files, append_to, assert_same_files, disk, entry, public_files, settings};

/// A folder with a log that was signed at 1, 256 and 300, and has 310 entries.
fn left_behind() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = LogWriter::create(folder.path(), settings(256)).expect("a log is made");
    for size in [1, 300] {
        append_to(&mut writer, size, 50);
        writer.checkpoint().expect("a head");
    }
    append_to(&mut writer, 310, 50);
    folder
}

fn open(folder: &Path) -> Result<u64, LogError> {
    LogWriter::open(folder, settings(256)).map(|reopened| reopened.size())
}

fn write_all(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (path, bytes) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("a file");
}

#[track_caller]
fn assert_says<T>(result: Result<T, LogError>, words: &[&str]) {
    let Err(error) = result else { panic!("it was taken, expected {words:?}") };
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "`{text}` does not say `{word}`");
    }
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_gone() {
    let folder = left_behind();
    let first = LogWriter::open(folder.path(), settings(256)).expect("it opens");
    assert_says(open(folder.path()), &["another process is writing"]);
    let first = first.resume_at(310).expect("it goes on");
    assert_says(open(folder.path()), &["another process is writing"]);
    drop(first);
    assert_eq!(open(folder.path()).expect("it opens"), 310);
    let again = LogWriter::create(folder.path(), settings(256));
    assert!(matches!(again, Err(LogError::Exists { .. })), "{again:?}");
}

#[test]
fn a_log_goes_into_an_empty_folder_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = open(&folder.path().join("none"));
    assert!(matches!(missing, Err(LogError::Missing { .. })), "{missing:?}");
    let missing = open(folder.path());
    assert!(matches!(missing, Err(LogError::Missing { .. })), "{missing:?}");
    fs::write(folder.path().join("notes.txt"), "mine").expect("a file");
    assert_says(LogWriter::create(folder.path(), settings(256)), &["notes.txt"]);
    fs::remove_file(folder.path().join("notes.txt")).expect("it goes");
    fs::create_dir(folder.path().join("private")).expect("a folder");
    fs::write(folder.path().join("private/key.pem"), "a key").expect("a file");
    LogWriter::create(folder.path(), settings(256)).expect("what the caller put there is fine");
    let deep = folder.path().join("private/of/my/own");
    LogWriter::create(&deep, settings(256)).expect("folders are made as needed");
}

#[test]
fn another_key_another_origin_and_other_distances_are_refused() {
    let folder = left_behind();
    let other = LogSettings { key: SigningKey::from_seed([8; 32]), ..settings(256) };
    assert_says(LogWriter::open(folder.path(), other), &["log.vkey", "arena.example/test+"]);
    let other = LogSettings { origin: "arena.example/other".to_owned(), ..settings(256) };
    assert_says(LogWriter::open(folder.path(), other), &["log.vkey", "arena.example/other+"]);
    // Without the convenience the heads themselves give it away.
    fs::remove_file(folder.path().join("log.vkey")).expect("it goes");
    let other = LogSettings { key: SigningKey::from_seed([8; 32]), ..settings(256) };
    LogWriter::open(folder.path(), other).expect_err("the heads are signed by another key");
    for every in [0, 1, 255, 257] {
        let refused = LogWriter::create(&folder.path().join("new"), settings(every));
        assert!(matches!(refused, Err(LogError::CheckpointEvery { .. })), "{refused:?}");
        assert!(!folder.path().join("new").exists(), "nothing is made for nothing");
    }
    let origin = LogSettings { origin: "two words".to_owned(), ..settings(256) };
    assert_says(LogWriter::create(&folder.path().join("new"), origin), &["two words"]);
}

#[test]
fn an_old_copy_is_refused_whatever_part_of_it_is_old() {
    let folder = left_behind();
    let old = all_files(&*disk(folder.path()));
    let reopened = LogWriter::open(folder.path(), settings(256)).expect("it opens");
    let mut writer = reopened.resume_at(310).expect("it goes on");
    append_to(&mut writer, 520, 50);
    writer.checkpoint().expect("a head");
    drop(writer);
    let new = all_files(&*disk(folder.path()));
    let mixed = |is_new: &dyn Fn(&str) -> bool| {
        let folder = tempfile::tempdir().expect("a folder");
        for files in [&old, &new] {
            let mut part = files.clone();
            part.retain(|path, _| is_new(path) == std::ptr::eq(files, &new));
            write_all(folder.path(), &part);
        }
        let before = all_files(&*disk(folder.path()));
        let opened = open(folder.path());
        if opened.is_err() {
            assert_same_files(&all_files(&*disk(folder.path())), &before);
        }
        opened
    };
    assert_eq!(mixed(&|_| true).expect("the new one opens"), 520);
    // A whole old copy cannot be told from a log that is not older; its heads can.
    assert_eq!(mixed(&|_| false).expect("nothing here is newer"), 310);
    let is_head = |path: &str| path.starts_with("checkpoint");
    let is_private = |path: &str| path.starts_with("private/");
    let public_is_new = mixed(&|path| !is_private(path));
    assert_says(public_is_new, &["`", "checkpoint` has size 520", "last signed size is 300"]);
    assert_says(mixed(&is_head), &["checkpoint` has size 520", "old copy"]);
    assert_says(mixed(&|path| path == "private/last-signed"), &["is missing", "tile/"]);
    assert_says(mixed(&is_private), &["is missing", "tile/"]);
    assert_says(mixed(&|path| path == "private/journal"), &["starts at entry 520", "only 300"]);
    let no_new_heads = mixed(&|path| !is_head(path));
    assert_eq!(no_new_heads.expect("the head is signed again, to the same bytes"), 520);
}

#[test]
fn without_the_memory_of_what_was_signed_nothing_is_signed() {
    let folder = left_behind();
    let path = folder.path().join("private/last-signed");
    let content = fs::read_to_string(&path).expect("a file");
    fs::remove_file(&path).expect("it goes");
    assert_says(open(folder.path()), &["last-signed` is missing", "size 300"]);
    for damaged in ["", "300", "300 00\n", &content[1..], &content.replace('\n', ""), &content[..9]]
    {
        fs::write(&path, damaged).expect("a file");
        assert!(open(folder.path()).is_err(), "`{damaged}` was taken");
    }
    fs::write(&path, content.replace("300 ", "0300 ")).expect("a file");
    assert_says(open(folder.path()), &["last-signed` is not a size and a root"]);
    let other = format!("300 {}\n", Hash::of(b"other"));
    fs::write(&path, other).expect("a file");
    assert_says(open(folder.path()), &["checkpoint` says size 300", "last-signed` says size 300"]);
    fs::write(&path, content).expect("a file");
    fs::remove_file(folder.path().join("private/journal")).expect("it goes");
    assert_says(open(folder.path()), &["journal` is missing"]);
}

#[test]
fn whoever_signs_beside_us_stops_us() {
    let folder = left_behind();
    let reopened = LogWriter::open(folder.path(), settings(256)).expect("it opens");
    let mut writer = reopened.resume_at(310).expect("it goes on");
    let other = format!("305 {}\n", Hash::of(b"other"));
    fs::write(folder.path().join("private/last-signed"), other).expect("a file");
    assert_says(writer.checkpoint(), &["last-signed` says size 305", "left size 300"]);
    let broken = writer.sync();
    assert!(matches!(broken, Err(LogError::Broken { .. })), "{broken:?}");
    assert!(matches!(writer.put_blob(b"", Visibility::Public), Err(LogError::Broken { .. })));
    assert!(!folder.path().join("checkpoints/310").exists());
}

#[test]
fn every_damaged_file_of_the_signed_part_is_named_and_nothing_is_cut() {
    let sound = left_behind();
    let files = all_files(&*disk(sound.path()));
    let is_signed = |path: &&String| {
        path.starts_with("tile/")
            || path.starts_with("checkpoint")
            || path.starts_with("private/attachment/")
    };
    let folder = tempfile::tempdir().expect("a folder");
    write_all(folder.path(), &files);
    for path in files.keys().filter(is_signed) {
        let at = folder.path().join(path);
        let bytes = &files[path];
        let mut harms: Vec<(&str, Vec<u8>)> = vec![
            ("shorter", bytes[..bytes.len() - 1].to_vec()),
            ("longer", [bytes.as_slice(), &[0]].concat()),
        ];
        // What is in an attachment is bound by its entry, and checked by who knows entries.
        let flips = if path.starts_with("private/") { 4 } else { bytes.len() };
        for position in (0..flips).step_by(if flips > 200 { 97 } else { 1 }).chain([flips - 1]) {
            let mut flipped = bytes.clone();
            flipped[position] ^= 1;
            harms.push(("flipped", flipped));
        }
        for (name, harmed) in harms {
            fs::write(&at, harmed).expect("a file");
            let error = open(folder.path()).expect_err(&format!("{name} `{path}` was taken"));
            assert!(error.to_string().contains('`'), "{error}");
        }
        fs::remove_file(&at).expect("it goes");
        let opened = open(folder.path());
        match opened {
            // A head can be signed again, if it is the last one.
            Ok(_) if path.starts_with("checkpoint") => {}
            Ok(_) => panic!("`{path}` is missing, and nobody noticed"),
            Err(error) => assert!(error.to_string().contains(path.as_str()), "{path}: {error}"),
        }
        fs::write(&at, bytes).expect("a file");
    }
    assert_eq!(open(folder.path()).expect("it is sound again"), 310);
    assert_same_files(&all_files(&*disk(folder.path())), &files);
}

#[test]
fn damage_is_told_with_the_file_and_both_values() {
    let folder = left_behind();
    // The first bytes of the last entry but one: its length, then itself.
    let entries = folder.path().join("tile/entries/001.p/44");
    let last = 2 + entry(299).len();
    let length = fs::read(&entries).expect("a bundle").len();
    let changed = {
        let mut entry = entry(298);
        *entry.last_mut().expect("a byte") ^= 1;
        entry
    };
    flip(&entries, length - last - 1);
    assert_says(
        open(folder.path()),
        &[
            "hash 42 in `",
            "tile/0/001.p/44`",
            &format!("is {}", Hash::leaf(&entry(298))),
            &format!("gives {}", Hash::leaf(&changed)),
        ],
    );
    flip(&entries, length - last - 1);
    let level = folder.path().join("tile/1/000.p/1");
    let mut bytes = fs::read(&level).expect("a tile");
    let sound = Hash(bytes[..].try_into().expect("one hash"));
    bytes[31] ^= 0x80;
    fs::write(&level, &bytes).expect("a file");
    let found = Hash(bytes[..].try_into().expect("one hash"));
    assert_says(
        open(folder.path()),
        &["hash 0 in `", "tile/1/000.p/1`", &found.to_string(), &sound.to_string()],
    );
    bytes[31] ^= 0x80;
    fs::write(&level, &bytes).expect("a file");
    let first = folder.path().join("tile/entries/000.p/1");
    let mut bytes = fs::read(&first).expect("a bundle");
    bytes.push(7);
    fs::write(&first, &bytes).expect("a file");
    let said = format!("has {} bytes, expected {}", bytes.len(), bytes.len() - 1);
    assert_says(open(folder.path()), &["tile/entries/000.p/1`", &said]);
}

#[test]
fn a_damaged_journal_is_cut_where_the_damage_starts() {
    let files = all_files(&*disk(left_behind().path()));
    let journal = &files["private/journal"];
    let open = |disk: &FaultyDisk| LogWriter::open_on(disk.storage(), settings(256));
    let finish = |disk: &FaultyDisk| {
        let reopened = open(disk).expect("it opens");
        let whole = reopened.size();
        let mut writer = reopened.resume_at(whole).expect("it goes on");
        append_to(&mut writer, 320, 3);
        writer.checkpoint().expect("a head");
        public_files(&*disk.storage())
    };
    let sound = FaultyDisk::holding(&files);
    let wanted = finish(&sound);
    let (near, end) = (journal.len() - 200, journal.len() + 30);
    for at in (24..near).step_by(7).chain(near..end) {
        let mut bytes = journal.clone();
        match bytes.get_mut(at) {
            Some(byte) => *byte ^= 0x10,
            // Zeros at the end are what a crash leaves.
            None => bytes.resize(at + 1, 0),
        }
        let mut files = files.clone();
        files.insert("private/journal".to_owned(), bytes.clone());
        let disk = FaultyDisk::holding(&files);
        let reopened = open(&disk).expect("it opens");
        assert!(reopened.cut > 0 && reopened.size() <= 310, "byte {at}");
        assert!(reopened.size() < 310 || at >= journal.len(), "byte {at} is in a frame");
        assert!(bytes.len() as u64 - reopened.cut <= at as u64, "byte {at} is cut");
        let size = reopened.size();
        assert!(matches!(reopened.resume_at(size + 1), Err(LogError::ResumeAt { .. })));
        assert_same_files(&finish(&disk), &wanted);
    }
    let reopened = open(&sound).expect("it opens");
    assert_says(reopened.resume_at(319), &["at 319", "320 are signed"]);
}

#[test]
fn a_journal_of_another_kind_is_not_touched() {
    let folder = left_behind();
    let path = folder.path().join("private/journal");
    let bytes = fs::read(&path).expect("a file");
    for at in 0..24 {
        flip(&path, at);
        assert_says(open(folder.path()), &["journal` is not a journal"]);
        flip(&path, at);
    }
    fs::write(&path, &bytes[..23]).expect("a file");
    assert_says(open(folder.path()), &["journal` is not a journal"]);
    let mut later = bytes[..24].to_vec();
    later[11] = 2;
    let crc = crc32c::crc32c(&later[..20]).to_be_bytes();
    later[20..].copy_from_slice(&crc);
    fs::write(&path, later).expect("a file");
    assert_says(open(folder.path()), &["layout version 2, this program reads 1"]);
}

#[test]
fn links_and_pipes_are_refused_wherever_they_lie() {
    let folder = left_behind();
    let outside = tempfile::tempdir().expect("a folder");
    for path in ["tile/entries/000", "tile/0", "checkpoint", "tile", "private/journal", "log.vkey"]
    {
        let (at, moved) = (folder.path().join(path), outside.path().join("moved"));
        fs::rename(&at, &moved).expect("it moves");
        symlink(&moved, &at).expect("a link");
        assert_says(open(folder.path()), &[path, "is a link or no regular file"]);
        if !path.starts_with("private") && path != "log.vkey" {
            let read = LogReader::open(folder.path(), Access::Public);
            let verified = read.and_then(|reader| reader.verify_tree());
            assert_says(verified, &[path, "is a link or no regular file"]);
        }
        fs::remove_file(&at).expect("the link goes");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &at, kind, mode, 0).expect("a pipe");
        assert_says(open(folder.path()), &[path, "is a link or no regular file"]);
        fs::remove_file(&at).expect("the pipe goes");
        fs::rename(&moved, &at).expect("it moves back");
    }
    assert_eq!(open(folder.path()).expect("it opens"), 310);
    // Nor is anything written through a link.
    let victim = outside.path().join("victim");
    fs::write(&victim, "mine").expect("a file");
    symlink(&victim, folder.path().join("private/temporary")).expect("a link");
    let reopened = LogWriter::open(folder.path(), settings(256)).expect("it opens");
    assert_says(reopened.resume_at(310), &["private/temporary", "link"]);
    assert_eq!(fs::read_to_string(victim).expect("a file"), "mine");
}

#[test]
fn files_that_no_such_log_has_are_found() {
    let folder = left_behind();
    let verify = || {
        let reader = LogReader::open(folder.path(), Access::Public).expect("it opens");
        reader.verify_tree()
    };
    verify().expect("all files agree");
    let hash = Hash::of(b"rules");
    for path in [
        "tile/entries/001",
        "tile/entries/001.p/43",
        "tile/entries/000.p/2",
        "tile/0/001.p/45",
        "tile/0/002.p/1",
        "tile/1/000.p/2",
        "tile/1/000",
        "tile/2/000.p/1",
        "tile/0/000.p/01",
        "tile/0/x000/000",
        "tile/other",
        "tile/a/b/c/d/e/f/g/h/i/j/k/l/m",
        "checkpoints/2.old",
        "checkpoints/0256",
        "blob/rules",
        "blob/00/rules",
        &format!("blob/00/{hash}"),
        &format!("blob/{}/{}", &hash.to_string()[..2], hash.to_string().to_uppercase()),
    ] {
        let at = folder.path().join(path);
        fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
        fs::write(&at, "rules").expect("a file");
        let found = verify();
        assert!(matches!(found, Err(LogError::UnexpectedFile { .. })), "{path}: {found:?}");
        fs::remove_file(&at).expect("it goes");
    }
    fs::remove_dir_all(folder.path().join("tile/a")).expect("they go");
    fs::create_dir_all(folder.path().join("attachment")).expect("a folder");
    assert_says(verify(), &["attachment/000` is missing"]);
    fs::remove_dir(folder.path().join("attachment")).expect("it goes");
    let blob = folder.path().join(arena_log::tile::blob(&hash));
    fs::create_dir_all(blob.parent().expect("a folder")).expect("a folder");
    fs::write(&blob, "rules").expect("a file");
    verify().expect("a blob of this name has this content");
    fs::write(&blob, "rulez").expect("a file");
    assert_says(verify(), &[&hash.to_string(), &Hash::of(b"rulez").to_string()]);
    fs::remove_file(&blob).expect("it goes");
    fs::write(folder.path().join("checkpoints/301"), "").expect("a file");
    assert_says(verify(), &["checkpoints/301` has size 301", "300"]);
}

#[test]
fn sizes_are_bounded_before_anything_is_taken_up() {
    let folder = left_behind();
    let attempt = |path: &str, content: &[u8]| {
        let at = folder.path().join(path);
        let before = fs::read(&at).expect("a file");
        fs::write(&at, content).expect("a file");
        let reader = LogReader::open(folder.path(), Access::Owner);
        let verified = reader.and_then(|reader| reader.verify_tree());
        fs::write(&at, before).expect("a file");
        verified.expect_err(path)
    };
    let huge = vec![b'\n'; 1 << 20];
    for path in ["checkpoint", "checkpoints/1", "tile/0/000", "tile/0/001.p/44"] {
        let error = attempt(path, &huge);
        let is_size = matches!(error, LogError::Length { .. } | LogError::FileTooLarge { .. });
        assert!(is_size && error.to_string().contains("1048576"), "{path}: {error}");
    }
    let error = attempt("private/attachment/000", &[0xff, 0xff, 0xff, 0xff, 0]);
    let LogError::Bundle { index: 0, damage: BundleDamage::Length { found }, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(found, u32::MAX);
    let error = attempt("private/attachment/000", &[0, 0x20, 0, 0, 0]);
    let short = BundleDamage::Short;
    assert!(matches!(error, LogError::Bundle { damage, .. } if damage == short), "{error}");
    let reopened = LogWriter::open(folder.path(), settings(256)).expect("it opens");
    let mut writer = reopened.resume_at(310).expect("it goes on");
    let (long, huge) = (vec![0; 65_536], vec![0; (8 << 20) + 1]);
    for (entry, attachment) in [(&long, &vec![]), (&vec![], &huge)] {
        let fine = Record { entry: b"fine", attachment: b"" };
        writer.append_all(&[fine, Record { entry, attachment }]).expect_err("it is too large");
        assert_eq!(writer.size(), 310, "nothing of the group was taken");
    }
    let record = Record { entry: &long[..65_535], attachment: &huge[..8 << 20] };
    writer.append_all(&[record]).expect("the largest record is taken");
    writer.checkpoint().expect("a head");
    drop(writer);
    let mut reader = LogReader::open(folder.path(), Access::Owner).expect("it opens");
    let read = reader.get(310).expect("the largest record");
    assert_eq!(read.attachment.map(<[u8]>::len), Some(8 << 20));
    reader.verify_tree().expect("all files agree");
}

#[test]
fn a_copy_of_the_public_part_agrees_and_one_with_less_does_not() {
    let folder = left_behind();
    let public = public_files(&*disk(folder.path()));
    let copy = tempfile::tempdir().expect("a folder");
    write_all(copy.path(), &public);
    let verify = || LogReader::open(copy.path(), Access::Public)?.verify_tree();
    verify().expect("all files agree");
    for (path, bytes) in &public {
        let at = copy.path().join(path);
        fs::remove_file(&at).expect("it goes");
        match verify() {
            // The key is there for convenience only. A head at a full bundle leaves no trace of
            // its own: who knows how often heads are due looks for each of them.
            Ok(()) => assert!(["log.vkey", "checkpoints/256"].contains(&&**path), "{path}"),
            Err(LogError::UnexpectedFile { .. }) => assert_eq!(path, "checkpoints/1"),
            Err(LogError::NoHead { .. }) => assert_eq!(path, "checkpoint"),
            Err(error) => assert!(error.to_string().contains(path.as_str()), "{path}: {error}"),
        }
        fs::write(&at, bytes).expect("a file");
    }
    assert!(LogWriter::open(copy.path(), settings(256)).is_err(), "it is no log to write on");
}
