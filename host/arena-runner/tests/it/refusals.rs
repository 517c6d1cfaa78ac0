//! A run touches no log but its own, and goes on with nothing that it would not have written.

use std::path::Path;

use arena_core::announcement::{Announcement, ModelEntry};
use arena_core::draws::{CommittedDraws, Draws};
use arena_core::entry::{Close, Entry, Reveal, TournamentId, VoidEntry};
use arena_core::fault::VoidReason;
use arena_core::record::VoidRecord;
use arena_core::transcript::Transcript;
use arena_log::error::LogError;
use arena_log::key::SigningKey;
use arena_log::writer::{LogWriter, Record};
use arena_runner::error::RunError;
use tempfile::TempDir;

use crate::forge;
use crate::stage::{Item, Stage, files, hagglers, items, nobody};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

/// Checks that a run refuses the log that lies in `folder`, and leaves it as it is.
fn refuse(stage: &Stage, folder: &Path) -> RunError {
    let before = files(folder);
    let error = stage.run(folder, 2, &nobody).expect_err("the log is not this job's");
    assert!(files(folder) == before, "a refused log is left as it is");
    error
}

/// Turns a stage into that of another tournament.
type Change = fn(&mut Stage);

/// Starts the log of a changed stage and checks that the unchanged one refuses it. Returns the
/// field that differs, and what both say.
fn refuse_changed(change: Change) -> (String, String, String) {
    let (stage, mut other) = (Stage::new(1), Stage::new(1));
    change(&mut other);
    other.bind();
    let folder = folder();
    let opening = Entry::Announcement(other.opening.clone());
    forge::played(&other, folder.path(), &[Item { entry: opening, attachment: Vec::new() }]);
    let error = refuse(&stage, folder.path());
    assert!(error.hint().is_some_and(|hint| hint.contains("--out")));
    let announced = stage.announce(folder.path()).expect_err("the log is not this job's");
    assert_eq!(announced.to_string(), error.to_string());
    match error {
        RunError::AnnouncementDiffers { field, found, wanted } => (field, found, wanted),
        error => panic!("{error:?}"),
    }
}

/// Changes only the announcement.
macro_rules! announcing {
    ($change:expr) => {
        |other: &mut Stage| {
            let change: fn(&mut Announcement) = $change;
            change(&mut other.announcement)
        }
    };
}

#[test]
fn a_log_of_another_tournament_is_refused_with_the_field_that_differs() {
    let change: [(&str, Change); 17] = [
        ("name", announcing!(|other| other.name.push('x'))),
        ("seed", announcing!(|other| other.draws = Draws::PublicSeed(12))),
        ("draws", announcing!(|other| other.draws = Draws::Committed(COMMITTED))),
        ("item_count", announcing!(|other| other.item_count += 1)),
        ("catalog_sha256", announcing!(|other| other.catalog_sha256[31] ^= 1)),
        ("models", announcing!(|other| other.models.push(model()))),
        ("agents", announcing!(|other| other.agents.truncate(3))),
        ("agents[1].name", announcing!(|other| other.agents[1].name.push('x'))),
        (
            "agents[2].component_sha256",
            announcing!(|other| other.agents[2].component_sha256[0] ^= 1),
        ),
        ("agents[3].params", announcing!(|other| other.agents[3].params.push('x'))),
        (
            "agents[0].submission",
            announcing!(|other| other.agents[0].submission = Some("signed".to_owned())),
        ),
        ("pair_count", announcing!(|other| other.pair_count += 1)),
        ("checkpoint_every", announcing!(|other| other.checkpoint_every *= 2)),
        ("engine line 2", announcing!(|other| other.engine.push_str(" fuel"))),
        (
            "config_toml line 6",
            announcing!(|other| {
                other.config_toml = other.config_toml.replace("[rules]", "[rules] # stricter");
            }),
        ),
        ("origin", |other| other.opening.origin.push('x')),
        ("log_key", |other| other.key = SigningKey::from_seed([8; 32])),
    ];
    for (wanted, change) in change {
        let (field, found, ours) = refuse_changed(change);
        assert_eq!(field, wanted);
        assert_ne!(found, ours);
    }
}

const COMMITTED: CommittedDraws =
    CommittedDraws { secret_commitment: [0; 32], contributions: Vec::new(), beacon: None };

fn model() -> ModelEntry {
    ModelEntry {
        name: "table".to_owned(),
        context_tokens: 1,
        sha256: [0; 32],
        engine: String::new(),
    }
}

#[test]
fn what_the_announcement_says_is_told_before_the_origin_that_follows_from_it() {
    let (field, _, _) = refuse_changed(|other| {
        other.announcement.name.push('x');
        other.opening.origin.push('x');
        other.key = SigningKey::from_seed([8; 32]);
    });
    assert_eq!(field, "name");
}

#[test]
fn a_longer_config_or_engine_is_a_difference_too() {
    let change: [Change; 4] = [
        announcing!(|other| other.config_toml.push('\n')),
        announcing!(|other| other.config_toml.truncate(20)),
        announcing!(|other| other.engine.push_str("\nmore=1")),
        announcing!(|other| other.engine.clear()),
    ];
    for change in change {
        let (field, found, ours) = refuse_changed(change);
        assert!(field.contains(" line "), "{field}");
        assert_ne!(found, ours);
    }
}

#[test]
fn an_announcement_that_is_lost_leaves_its_hash_as_the_difference() {
    let (stage, mut other) = (Stage::new(1), Stage::new(1));
    other.announcement.name.push('x');
    other.bind();
    let folder = folder();
    other.announce(folder.path()).expect("an empty folder");
    std::fs::remove_dir_all(folder.path().join("blob")).expect("the disk works");
    let error = refuse(&stage, folder.path());
    let RunError::AnnouncementDiffers { field, .. } = error else { panic!("{error:?}") };
    assert_eq!(field, "announcement_sha256");
}

/// Changes a match's transcript and binds it to its entry again.
fn rebind(item: &mut Item, change: fn(&mut Transcript)) {
    let mut transcript = item.transcript();
    change(&mut transcript);
    item.attachment = transcript.encode();
    item.entry = Entry::Match(transcript.entry(&item.attachment));
}

/// Changes only a match's entry.
fn match_entry(item: &mut Item) -> &mut arena_core::entry::MatchEntry {
    match &mut item.entry {
        Entry::Match(entry) => entry,
        other => panic!("{other:?}"),
    }
}

fn alone(entry: Entry) -> Item {
    Item { entry, attachment: Vec::new() }
}

fn void(pair_index: u64, attempt: u32) -> Item {
    let void = VoidRecord { pair_index, attempt, reason: VoidReason::Host };
    alone(Entry::Void(VoidEntry { tournament: Stage::new(1).tournament(), void }))
}

fn close(match_count: u64) -> Item {
    let tournament = Stage::new(1).tournament();
    alone(Entry::Close(Close { tournament, match_count, void_count: 0 }))
}

fn swap_transcripts(items: &mut [Item]) {
    let kept = std::mem::take(&mut items[1].attachment);
    items[1].attachment = std::mem::replace(&mut items[2].attachment, kept);
}

/// Makes a sound log of ten pairs one that no run writes.
type Tampering = fn(&mut Vec<Item>);

/// What was done, the first entry that is out of order, and how to do it.
const MISPLACED: [(&str, u64, Tampering); 13] = [
    ("the legs of a pair are swapped", 1, |items| items.swap(1, 2)),
    ("two pairs are swapped", 3, |items| items[3..7].rotate_left(2)),
    ("a pair is missing", 3, |items| drop(items.drain(3..5))),
    ("a leg is there twice", 2, |items| items.insert(1, items[1].clone())),
    ("a void is between the legs", 2, |items| items.insert(2, void(0, 0))),
    ("a void is of another pair", 3, |items| items.insert(3, void(0, 0))),
    ("a void is missing", 3, |items| items.insert(3, void(1, 1))),
    ("a void follows the last pair", 21, |items| items.insert(21, void(10, 0))),
    ("the close comes early", 19, |items| drop(items.drain(19..21))),
    ("the close counts wrong", 21, |items| items[21] = close(19)),
    ("something follows the close", 22, |items| items.insert(22, items[20].clone())),
    ("something follows the reveal", 23, |items| items.push(items[22].clone())),
    ("it is announced twice", 1, |items| items.insert(1, items[0].clone())),
];

/// What was done, the entry and the field in which it shows, and how to do it.
const DISAGREEING: [(&str, u64, &str, Tampering); 13] = [
    ("another agent plays", 5, "agents", |items| match_entry(&mut items[5]).agents[0] ^= 1),
    ("another seed was given", 6, "seeds", |items| {
        rebind(&mut items[6], |transcript| transcript.record.seeds[1] += 1);
    }),
    ("another item is sold", 6, "item_index", |items| {
        rebind(&mut items[6], |transcript| transcript.record.item_index += 1);
    }),
    ("a repetition is made up", 6, "repetition", |items| {
        match_entry(&mut items[6]).repetition += 1;
    }),
    ("two transcripts are swapped", 1, "transcript_sha256", |items| swap_transcripts(items)),
    ("a transcript is another", 4, "transcript_sha256", |items| {
        items[4].attachment = items[6].attachment.clone();
    }),
    ("the nonce is chosen", 7, "nonce", |items| {
        rebind(&mut items[7], |transcript| transcript.nonce[0] ^= 1);
    }),
    ("a transcript is of another tournament", 8, "tournament", |items| {
        rebind(&mut items[8], |transcript| transcript.tournament = TournamentId([0; 32]));
    }),
    ("an entry counts other turns", 9, "turn_count", |items| {
        match_entry(&mut items[9]).turn_count += 1;
    }),
    ("an entry has another outcome", 10, "outcome", |items| {
        let entry = match_entry(&mut items[10]);
        entry.outcome =
            arena_core::record::Outcome::Walked { by: arena_core::scenario::Role::Buyer };
    }),
    ("something lies beside the close", 21, "attachment", |items| {
        items[21].attachment = b"more".to_vec();
    }),
    ("the close is of another tournament", 21, "tournament", |items| {
        let tournament = TournamentId([0; 32]);
        let close = Close { tournament, match_count: 20, void_count: 0 };
        items[21] = alone(Entry::Close(close));
    }),
    ("a secret is revealed that never was", 22, "secret", |items| {
        let Entry::Reveal(Reveal { tournament, .. }) = items[22].entry else { return };
        items[22] = alone(Entry::Reveal(Reveal { tournament, secret: Some([0; 32]) }));
    }),
];

/// Tampers with a whole log and returns what a run says of it, signed or not.
fn refuse_tampered(tamper: Tampering) -> RunError {
    let stage = Stage::new(1);
    let whole = folder();
    stage.run(whole.path(), 1, &hagglers).expect("hagglers play to the end");
    let mut items = items(whole.path());
    tamper(&mut items);
    let [error, signed] = [false, true].map(|sign_all| {
        let folder = folder();
        let mut writer = forge::played(&stage, folder.path(), &items);
        writer.sync().expect("the disk works");
        if sign_all {
            forge::sign(&mut writer);
        }
        drop(writer);
        refuse(&stage, folder.path())
    });
    assert_eq!(error.to_string(), signed.to_string());
    error
}

#[test]
fn entries_out_of_order_are_refused_by_number_and_left_as_they_are() {
    for (name, wanted, tamper) in MISPLACED {
        let error = refuse_tampered(tamper);
        let RunError::Misplaced { entry_index, .. } = error else { panic!("{name}: {error:?}") };
        assert_eq!(entry_index, wanted, "{name}: {error}");
    }
}

#[test]
fn records_that_disagree_are_refused_with_the_field_and_left_as_they_are() {
    for (name, index, wanted, tamper) in DISAGREEING {
        let error = refuse_tampered(tamper);
        let RunError::Disagrees { entry_index, field, ref found, wanted: ref ours } = error else {
            panic!("{name}: {error:?}")
        };
        assert_eq!((entry_index, field), (index, wanted), "{name}: {error}");
        assert_ne!(found, ours);
    }
}

#[test]
fn a_transcript_that_is_none_is_refused_by_number() {
    let error = refuse_tampered(|items| items[3].attachment.clear());
    assert!(matches!(error, RunError::Transcript { entry_index: 3, .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the transcript of entry 3 of the log: does not start with `ARNA`"
    );
}

#[test]
fn a_whole_record_that_is_no_entry_is_refused_by_number() {
    let stage = Stage::new(1);
    let folder = folder();
    stage.announce(folder.path()).expect("an empty folder");
    let reopened = LogWriter::open(folder.path(), stage.settings()).expect("the log is there");
    let mut writer = reopened.resume_at(1).expect("one entry is there");
    let entry = b"ARNA\0\x03\0\x09";
    writer.append_all(&[Record { entry, attachment: &[] }]).expect("the disk works");
    drop(writer);
    let error = refuse(&stage, folder.path());
    assert!(matches!(error, RunError::Entry { entry_index: 1, .. }), "{error:?}");
    assert_eq!(error.to_string(), "entry 1 of the log: unexpected kind 9");
}

#[test]
fn a_signed_record_that_is_damaged_is_refused_and_left_as_it_is() {
    let stage = Stage::new(2);
    let folder = folder();
    stage.run(folder.path(), 1, &hagglers).expect("hagglers play to the end");
    let entries = folder.path().join("tile/entries/000.p/43");
    let mut bytes = std::fs::read(&entries).expect("43 entries are signed");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&entries, bytes).expect("the disk works");
    let error = refuse(&stage, folder.path());
    assert!(matches!(error, RunError::Log(_)), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("nothing was changed")), "{error}");
}

#[test]
fn a_second_run_of_the_same_folder_is_refused() {
    let stage = Stage::new(1);
    let folder = folder();
    let held = LogWriter::create(folder.path(), stage.settings()).expect("an empty folder");
    let error = refuse(&stage, folder.path());
    assert!(matches!(error, RunError::Log(LogError::Locked { .. })), "{error:?}");
    drop(held);
}
