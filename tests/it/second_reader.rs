//! A second reader, which shares no code with the programs that write logs, agrees with them on
//! finished tournaments, reads the golden values as they are shown, and refuses what was changed.
//!
//! It is `tests/second_reader.py`; Python 3 must be there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use arena_core::entry::{Close, Entry, MatchEntry, Reveal};
use arena_core::record::{MatchRecord, Outcome};
use arena_core::scenario::Role;
use arena_core::score::{ROOM_CENTS_MIN, reward};
use arena_log::blobs::Visibility;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};
use arena_log::writer::{LogSettings, LogWriter, Record};
use serde_json::Value;

use crate::kit::{ARENA, root};
use crate::{draws, logs};

/// Longest that the second reader may be, in lines: it is there to be read.
const LINES_MAX: usize = 300;

/// More entries than one tile holds; deals beyond reserves, penalised moves, walks, faults.
const TOURNAMENT: &str = r#"
name = "read-twice"
schedule = "round-robin"
self_play = true

[rules]
regulation = { buyer = "penalise", seller = "allow" }
horizon = { turns = 8 }

[catalog]
kind = "uniform"
items = 8
low = "10"
high = "110"

[[agents]]
name = "zero-intelligence"
component = "builtin:zero-intelligence"

[[agents]]
name = "linear"
component = "builtin:linear"

[[agents]]
name = "begging"
component = "builtin:begging"

[[agents]]
name = "trapper"
component = "trapper.wasm"

[[agents]]
name = "reckless"
component = "reckless.wasm"

[[agents]]
name = "walker"
component = "walker.wasm"
"#;

/// Leaves at its first turn.
const WALKER: &str = r#"
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store8 (i32.const 1024) (i32.const 3))
  (i32.const 1024))
"#;

/// A finished log, played once for all tests.
fn finished() -> &'static Path {
    static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let place = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(place.path().join(name), bytes).expect("a file");
        };
        write("t.toml", TOURNAMENT.as_bytes());
        // Key and secret are always the same here, and so is each byte of the log.
        write("secret", "5a".repeat(32).as_bytes());
        write(
            "trapper.wasm",
            &crate::kit::component(include_str!("../guests/trap-after-offer.wat")),
        );
        write(
            "reckless.wasm",
            &crate::kit::component(include_str!("../guests/beyond-its-reserve.wat")),
        );
        write("walker.wasm", &crate::kit::component(WALKER));
        logs::write_key(&place.path().join("key.pem"));
        let run = Command::new(ARENA)
            .current_dir(place.path())
            .args(["tournament", "run", "t.toml", "--out", "log"])
            .args(["--key", "key.pem", "--secret", "secret"])
            .output()
            .expect("the program runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        place
    });
    static LOG: OnceLock<PathBuf> = OnceLock::new();
    LOG.get_or_init(|| place.path().join("log"))
}

fn vkey(log: &Path) -> String {
    std::fs::read_to_string(log.join("log.vkey")).expect("the key").trim().to_owned()
}

fn python(words: &[&str]) -> Output {
    // `-B`: nothing is written beside the script.
    Command::new("python3")
        .arg("-B")
        .args(words)
        .output()
        .expect("Python 3 is needed for these tests")
}

fn script() -> String {
    root().join("tests/second_reader.py").to_str().expect("the checkout's path is text").to_owned()
}

fn read_again(log: &Path, vkey: &str) -> Output {
    python(&[&script(), log.to_str().expect("a path that is text"), vkey, "--json"])
}

/// What the second reader says of a sound log.
fn second_view(log: &Path) -> Value {
    let read = read_again(log, &vkey(log));
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    serde_json::from_slice(&read.stdout).expect("the second reader writes JSON")
}

/// Returns the rewards that an agent had in all its seats: numerators by their denominator, the
/// room of the match in cents.
fn gains(records: &[MatchRecord], agent: u16) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for record in records {
        for role in Role::BOTH.into_iter().filter(|role| record.agents[role.index()] == agent) {
            let room = record.budget.minus(record.cost).abs().max(ROOM_CENTS_MIN);
            // A reward is a whole number of cents over the room, so this gives the number back.
            let gain = (reward(record, role) * room as f64).round() as i64;
            *sums.entry(room.to_string()).or_default() += gain;
        }
    }
    sums
}

pub fn assert_agreed(folder: &Path) {
    let found = second_view(folder);
    let log = logs::read(folder);
    let reader = LogReader::open(folder, Access::Public).expect("a published log");
    assert_eq!(found["size"], reader.head().size);
    assert_eq!(found["root"], reader.head().root.to_string());
    assert_eq!(found["origin"], reader.head().origin);
    assert_eq!(found["match_count"], log.records.len());
    let shown = Command::new(ARENA).args(["tournament", "show", "--json"]).arg(folder).output();
    let shown: Value = serde_json::from_slice(&shown.expect("the program runs").stdout)
        .expect("the program writes JSON");
    let rows = shown["report"]["rows"].as_array().expect("there are rows");
    let agents = found["agents"].as_array().expect("there are agents");
    assert_eq!((rows.len(), agents.len()), (log.announcement.agents.len(), rows.len()));
    for (number, agent) in (0..).zip(agents) {
        let sums: BTreeMap<String, i64> =
            serde_json::from_value(agent["gains_by_z"].clone()).expect("numbers by room");
        assert_eq!(sums, gains(&log.records, number), "{agent}");
        let row = rows.iter().find(|row| row["agent"] == number).expect("every agent has a row");
        assert_eq!((&row["name"], &row["match_count"]), (&agent["name"], &agent["seats"]));
        let mean = row["metrics"]["reward"].as_f64().expect("it has played");
        let second = agent["reward_mean"].as_f64().expect("it has played");
        assert!((mean - second).abs() < 1e-12, "{mean} is not {second}: {agent}");
    }
}

#[test]
fn the_second_reader_agrees_on_root_counts_and_rewards() {
    let log = logs::read(finished());
    assert!(log.entries.len() > 256, "there is a full tile");
    let kinds = log.records.iter().map(|record| match record.outcome {
        Outcome::Deal { price } if price < record.cost => "deal beyond a reserve",
        Outcome::Deal { .. } => "deal",
        Outcome::Walked { .. } => "walk",
        Outcome::TimedOut => "time-out",
        Outcome::Violated { .. } => "violation",
        Outcome::Faulted { .. } => "fault",
    });
    let kinds: BTreeSet<&str> = kinds.collect();
    let expected = ["deal", "deal beyond a reserve", "fault", "time-out", "violation", "walk"];
    assert!(kinds.into_iter().eq(expected), "the matches end in every way");
    assert_agreed(finished());
}

#[test]
fn the_second_reader_agrees_where_entrants_and_a_beacon_had_a_part_in_the_draws() {
    let (_folder, log) = draws::played_with_one_contribution();
    assert_agreed(&log);
}

#[test]
fn the_second_reader_reads_the_golden_values_as_they_are_shown() {
    let program = "\
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import second_reader as reader
files = sorted(pathlib.Path(sys.argv[1], 'golden', 'log').glob('*.hex'))
kinds = {**reader.ENTRIES, **reader.ANNOUNCEMENT, **reader.TRANSCRIPT}
for file in files:
    lines = [line.split('#')[0] for line in file.read_text().splitlines()]
    read = reader.Reader(bytes.fromhex(''.join(lines)), kinds)
    assert read.value == json.loads(file.with_suffix('.json').read_text())['body'], file
    kinds.pop(read.kind)
assert not kinds, kinds
print(len(files))";
    let tests = root().join("tests");
    let read = python(&["-c", program, tests.to_str().expect("a path that is text")]);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(read.stdout, b"8\n");
}

/// Runs the second reader on a copy of the log after one change; returns what it complains of.
#[track_caller]
fn complaint(change: impl FnOnce(&Path)) -> String {
    let copy = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in logs::public_files(finished()) {
        let path = copy.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    change(copy.path());
    let read = read_again(copy.path(), &vkey(finished()));
    let said = String::from_utf8_lossy(&read.stderr).into_owned();
    assert_eq!(read.status.code(), Some(1), "{said}");
    assert!(read.stdout.is_empty(), "it says something of a log that is not sound");
    said
}

/// Changes one bit of a file's byte at a place, counted from its end where it is negative.
fn flip(folder: &Path, name: &str, place: isize) {
    let path = folder.join(name);
    let mut bytes = std::fs::read(&path).expect("the file is there");
    let place = if place < 0 { bytes.len() as isize + place } else { place };
    bytes[usize::try_from(place).expect("a place in the file")] ^= 1;
    std::fs::write(path, bytes).expect("the file is writable");
}

#[test]
fn the_second_reader_names_what_was_changed() {
    let log = logs::read(finished());
    let size = log.entries.len();
    let width = size % 256;
    let last_bundle = |kind: &str| format!("{kind}/001.p/{width}");
    let Entry::Announcement(opening) = &log.entries[0] else { panic!("it is the first") };
    let hash = Hash(opening.announcement_sha256).to_string();
    let blob = format!("blob/{}/{hash}", &hash[..2]);
    let first_match = log.entries.iter().position(|entry| matches!(entry, Entry::Match(_)));
    let first_match = first_match.expect("there are matches");
    // The attachments of the entries before it are empty, so it starts behind their lengths.
    let in_transcript = 4 * (first_match as isize + 1) + 100;
    let cases = [
        ("checkpoint", -2, "base64".to_owned()),
        ("checkpoint", -20, "the checkpoint's signature does not verify".to_owned()),
        ("tile/0/000", 32 * 9, "tile/0/000 differs at entry 9".to_owned()),
        ("tile/1/000.p/1", 0, "tile/1/000.p/1 differs at node 0".to_owned()),
        (&last_bundle("tile/0"), -1, format!("differs at entry {}", size - 1)),
        ("tile/entries/000", 20, "tile/0/000 differs at entry 0".to_owned()),
        (&last_bundle("tile/entries"), -1, format!("differs at entry {}", size - 1)),
        ("attachment/000", in_transcript, format!("entry {first_match}: the transcript's hash is")),
        (&blob, 30, "entry 0: the announcement's hash is".to_owned()),
    ];
    for (name, place, wanted) in cases {
        let said = complaint(|folder| flip(folder, name, place));
        assert!(said.contains(&wanted), "{name}: `{wanted}` is not in: {said}");
    }
}

/// The parts of a log: each entry with its attachment.
type Parts = Vec<(Vec<u8>, Vec<u8>)>;

/// Changes the entry at a place of the finished log, signs all of it anew with the log's own key,
/// and returns what the second reader complains of.
#[track_caller]
fn complaint_of_forgery(change: impl FnOnce(&mut Parts)) -> String {
    let mut reader = LogReader::open(finished(), Access::Public).expect("a published log");
    let mut parts = Parts::new();
    while let Some(record) = reader.next_record().expect("a record") {
        let attachment = record.attachment.expect("it is published").to_vec();
        parts.push((record.entry.to_vec(), attachment));
    }
    change(&mut parts);
    let announcement = logs::read(finished()).announcement.encode();
    let origin = reader.head().origin.clone();
    complaint(|folder| {
        std::fs::remove_dir_all(folder).expect("the copy");
        let settings = LogSettings { origin, key: logs::key(), checkpoint_every: 4_096 };
        let mut writer = LogWriter::create(folder, settings).expect("a folder for the log");
        writer.put_blob(&announcement, Visibility::Public).expect("the announcement");
        for (entry, attachment) in &parts {
            writer.append_all(&[Record { entry, attachment }]).expect("the log is written");
        }
        writer.checkpoint().expect("the log is signed");
        writer.publish().expect("the log is published");
    })
}

type Change = fn(&mut Parts);

#[track_caller]
fn check_forgeries(cases: &[(Change, &str)]) {
    let size = logs::read(finished()).entries.len();
    for (change, wanted) in cases {
        let said = complaint_of_forgery(change);
        let wanted = wanted.replace("CLOSE", &(size - 2).to_string());
        let wanted = wanted.replace("REVEAL", &(size - 1).to_string());
        assert!(said.contains(&wanted), "`{wanted}` is not in: {said}");
    }
}

/// Changes what the entry of a match says.
fn edit(parts: &mut Parts, index: usize, change: fn(&mut MatchEntry)) {
    let Ok(Entry::Match(mut entry)) = Entry::decode(&parts[index].0) else {
        panic!("entry {index} is no match");
    };
    change(&mut entry);
    parts[index].0 = Entry::Match(entry).encode();
}

/// Changes what the last two entries say.
fn edit_ends(parts: &mut Parts, change: fn(&mut Close, &mut Reveal)) {
    let [.., (close, _), (reveal, _)] = &mut parts[..] else { panic!("the log is short") };
    let (Ok(Entry::Close(mut closed)), Ok(Entry::Reveal(mut revealed))) =
        (Entry::decode(close), Entry::decode(reveal))
    else {
        panic!("the log does not end with a close and a reveal");
    };
    change(&mut closed, &mut revealed);
    *close = Entry::Close(closed).encode();
    *reveal = Entry::Reveal(revealed).encode();
}

#[test]
fn the_second_reader_finds_forged_entries_that_the_organiser_signed() {
    check_forgeries(&[
        (|parts| edit(parts, 7, |entry| entry.turn_count += 1), "entry 7: turn_count is"),
        (|parts| edit(parts, 9, |entry| entry.repetition += 1), "entry 9: repetition is"),
        (|parts| edit(parts, 9, |entry| entry.agents[0] ^= 1), "entry 9: agents is"),
        (
            |parts| edit(parts, 8, |entry| entry.transcript_sha256[0] ^= 1),
            "entry 8: the transcript's hash is",
        ),
        (|parts| edit(parts, 6, |entry| entry.tournament.0[0] ^= 1), "entry 6: is of another"),
        (|parts| parts.swap(3, 4), "entry 3: leg is (1, 1), not 0"),
        (|parts| drop(parts.drain(11..13)), "entry 11: pair_index is (6, 6), not 5"),
        (|parts| drop(parts.remove(2)), "entry 2: pair_index is"),
        (|parts| edit_ends(parts, |close, _| close.match_count += 2), "entry CLOSE: "),
        (|parts| edit_ends(parts, |close, _| close.void_count += 1), "entry CLOSE: "),
        (
            |parts| edit_ends(parts, |_, reveal| reveal.secret = Some([0; 32])),
            "entry REVEAL: the secret hashes to",
        ),
        (
            |parts| edit_ends(parts, |_, reveal| reveal.secret = None),
            "entry REVEAL: the secret hashes to None",
        ),
    ]);
}

#[test]
fn the_second_reader_finds_bytes_that_no_writer_writes() {
    fn end(parts: &mut Parts) -> &mut (Vec<u8>, Vec<u8>) {
        parts.last_mut().expect("a log has entries")
    }
    check_forgeries(&[
        (|parts| parts[2].0.push(0), "entry 2: has bytes behind its end"),
        (|parts| parts[2].0.truncate(50), "entry 2: is cut short"),
        (|parts| parts[2].0[7] = 7, "entry 2: is of kind 7, not 2 or 3"),
        (|parts| parts[2].0[5] = 2, "entry 2: does not start with `ARNA` and layout version 3"),
        (|parts| end(parts).0[8 + 32] = 2, "entry REVEAL: has a tag of 2 where 2 are known"),
        (|parts| end(parts).1.push(0), "entry REVEAL: has an attachment"),
        (|parts| parts[3].1.push(0), "entry 3: the transcript's hash is"),
    ]);
}

#[test]
fn the_second_reader_refuses_what_is_missing_and_what_is_not_finished() {
    let remove = |name: &'static str| {
        complaint(move |folder| std::fs::remove_file(folder.join(name)).expect("it was there"))
    };
    for name in ["checkpoint", "tile/0/000", "tile/1/000.p/1", "tile/entries/000"] {
        let said = remove(name);
        assert!(said.contains(&format!("{name} is no plain file")), "{said}");
    }
    assert!(remove("attachment/000").contains("attachment/000 is no plain file"));
    let said = complaint(|folder| {
        let first = std::fs::read(folder.join("checkpoints/1")).expect("the first head");
        std::fs::write(folder.join("checkpoint"), first).expect("the head");
    });
    assert!(said.contains("a log of 1 entries is not finished"), "{said}");
    let said = complaint(|folder| {
        let closed = logs::read(finished()).entries.len() - 1;
        let head = folder.join(format!("checkpoints/{closed}"));
        std::fs::copy(head, folder.join("checkpoint")).expect("the head at the close");
    });
    assert!(said.contains("is of kind 2, not 4"), "{said}");
}

#[test]
fn the_second_reader_accepts_no_other_key() {
    let origin = vkey(finished()).split('+').next().expect("a name").to_owned();
    let other = SigningKey::from_seed([9; 32]).vkey(&origin).expect("a sound name").to_string();
    let read = read_again(finished(), &other);
    assert_eq!(read.status.code(), Some(1));
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(said.contains("the checkpoint is not signed by"), "{said}");
    // A key of small order would verify anything; its id is computed, so it gets past the name.
    let read = python(&["-c", SMALL_ORDER, root().join("tests").to_str().expect("text")]);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

/// RFC 8032 section 7.1, test 2, then what a strict verifier refuses: an S that is not reduced, a
/// key and an R of small order, a y that is not reduced.
const SMALL_ORDER: &str = "\
import sys
sys.path.insert(0, sys.argv[1])
from second_reader import ORDER, P, ed25519_verifies as verifies
key = bytes.fromhex('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c')
signature = bytes.fromhex('92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da'
                          '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00')
assert verifies(key, b'\\x72', signature)
assert not verifies(key, b'\\x73', signature)
s = int.from_bytes(signature[32:], 'little') + ORDER
assert not verifies(key, b'\\x72', signature[:32] + s.to_bytes(32, 'little'))
assert not verifies(key, b'\\x72', signature[:63])
for y in (1, P - 1, 0, P, P + 1):
    small = y.to_bytes(32, 'little')
    assert not verifies(small, b'', small + bytes(32)), y
    assert not verifies(small, b'', (1).to_bytes(32, 'little') + bytes(32)), y
    assert not verifies(key, b'', small + bytes(32)), y
";

#[test]
fn the_second_reader_is_short_and_uses_the_standard_library_alone() {
    let text = std::fs::read_to_string(root().join("tests/second_reader.py")).expect("it is there");
    let lines = text.lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines, at most {LINES_MAX}");
    let imports: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("import ") || line.starts_with("from "))
        .collect();
    let expected =
        ["import base64, hashlib, json, os, sys, tomllib", "from fractions import Fraction"];
    assert_eq!(imports, expected);
}
