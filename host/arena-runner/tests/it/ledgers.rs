//! Ledgers of training runs: written, taken up after crashes, and refused.

use std::fs;
use std::path::Path;

use arena_core::entry::TournamentId;
use arena_core::ledger::{LedgerEntry, LedgerOpening, RunId, StepMatch};
use arena_log::checkpoint::Head;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};
use arena_log::writer::{LogSettings, LogWriter, Record};
use arena_runner::ledger::{Ledger, Step};

use crate::stage::{self, Files, JOURNAL, public};

fn key() -> SigningKey {
    SigningKey::from_seed([9; 32])
}

fn opening() -> LedgerOpening {
    LedgerOpening {
        origin: "arena.example/run".to_owned(),
        log_key: key().public().to_bytes(),
        name: "compact".to_owned(),
        experiment_sha256: [0x22; 32],
        reward: "surplus".to_owned(),
        objective: "grpo".to_owned(),
        policy_sha256: [0; 32],
        seed: 7,
        engine: "native=1".to_owned(),
    }
}

fn settings() -> LogSettings {
    LogSettings { origin: opening().origin, key: key(), checkpoint_every: 256 }
}

fn open(folder: &Path) -> Ledger {
    Ledger::open(folder, &opening(), &key()).expect("the ledger opens")
}

fn refused(folder: &Path, opening: &LedgerOpening, key: &SigningKey) -> String {
    Ledger::open(folder, opening, key).expect_err("the ledger is refused").to_string()
}

/// Appends the step of a number.
fn step(ledger: &mut Ledger, number: u8) {
    let head = Head { origin: "arena.example/step".to_owned(), size: 10, root: Hash([number; 32]) };
    let reward = |place: i32| StepMatch {
        reward_micro: i32::from(number) * 1_000 + place,
        advantage_bits: (place > 1).then(|| f64::from(place).to_bits()),
    };
    let step = Step {
        tournament: TournamentId([number; 32]),
        head: &head,
        policy_after: [number; 32],
        matches: (0..4).map(reward).collect(),
        dropped_groups: 1,
        learning_rate: 0.5,
    };
    let entry = ledger.append(step).expect("the step is written");
    assert_eq!(entry.step, u32::from(number));
}

fn whole() -> Files {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut ledger = open(folder.path());
    for number in 1..=3 {
        step(&mut ledger, number);
    }
    ledger.close().expect("the ledger is closed");
    drop(ledger);
    public(folder.path())
}

#[test]
fn a_ledger_says_what_was_appended_and_is_a_log_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    stage::put(folder.path(), &whole());
    let mut reader = LogReader::open(folder.path(), Access::Public).expect("there is a log");
    reader.verify_tree().expect("the tree is whole");
    assert_eq!(reader.signed_sizes().expect("there are heads"), [1, 2, 3, 4, 5]);
    let mut policy = [0; 32];
    for number in 0..5 {
        let record = reader.next_record().expect("the log is whole").expect("an entry is there");
        match LedgerEntry::decode(record.entry).expect("it is of a ledger") {
            LedgerEntry::Opening(found) => assert_eq!((number, found), (0, opening())),
            LedgerEntry::Step(found) => {
                assert_eq!((found.step, found.policy_before), (number, policy));
                policy = found.policy_after;
            }
            LedgerEntry::Close(found) => {
                assert_eq!((number, found.step_count, found.policy_sha256), (4, 3, policy));
            }
        }
    }
}

#[test]
fn a_ledger_that_is_taken_up_between_any_two_steps_has_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    for number in 1..=3 {
        let mut ledger = open(folder.path());
        assert_eq!(ledger.step_count(), u32::from(number) - 1);
        assert_eq!(ledger.policy(), [number - 1; 32]);
        step(&mut ledger, number);
        let last = ledger.last().expect("there is a step").clone();
        let matches = ledger.matches(&last).expect("it is read").expect("it is there");
        assert_eq!(matches.matches[3].reward_micro, i32::from(number) * 1_000 + 3);
        assert_eq!(matches.matches[1].advantage(), None);
    }
    let mut ledger = open(folder.path());
    ledger.close().expect("the ledger is closed");
    drop(ledger);
    assert_eq!(public(folder.path()), whole());
    let mut ledger = open(folder.path());
    assert!(ledger.is_closed());
    let error = ledger.close().expect_err("it is closed").to_string();
    assert_eq!(error, "the ledger is closed after `3` steps");
}

#[test]
fn a_crash_after_any_write_costs_at_most_the_step_that_was_being_written() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut ledger = open(folder.path());
    step(&mut ledger, 1);
    drop(ledger);
    let before = stage::files(folder.path());
    let entry = {
        let second = tempfile::tempdir().expect("a folder for the test");
        stage::put(second.path(), &before);
        let mut ledger = open(second.path());
        step(&mut ledger, 2);
        let mut reader = LogReader::open(second.path(), Access::Public).expect("there is a log");
        reader.get(2).expect("the step is there").entry.to_vec()
    };
    for cut in [0, 1, entry.len() / 2, entry.len()] {
        let torn = tempfile::tempdir().expect("a folder for the test");
        stage::put(torn.path(), &before);
        let reopened = LogWriter::open(torn.path(), settings());
        let mut writer = reopened.expect("it opens").resume_at(2).expect("it goes on");
        let record = Record { entry: &entry, attachment: &[] };
        writer.append_all(&[record]).expect("it is written");
        writer.sync().expect("it is synced");
        drop(writer);
        let journal = torn.path().join(JOURNAL);
        let bytes = fs::read(&journal).expect("there is a journal");
        fs::write(&journal, &bytes[..bytes.len() - (entry.len() - cut)]).expect("the disk works");
        let mut ledger = open(torn.path());
        if cut < entry.len() {
            assert_eq!(ledger.step_count(), 1, "cut at {cut}");
            step(&mut ledger, 2);
        }
        assert_eq!(ledger.step_count(), 2, "cut at {cut}");
        step(&mut ledger, 3);
        ledger.close().expect("the ledger is closed");
        drop(ledger);
        let mut found = public(torn.path());
        // The entry alone was put there, without what it binds.
        if cut == entry.len() {
            found.extend(whole().into_iter().filter(|(path, _)| path.starts_with("blob/")));
        }
        assert_eq!(found, whole(), "cut at {cut}");
    }
}

#[test]
fn a_ledger_of_another_run_is_refused_with_the_field_that_differs() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    drop(open(folder.path()));
    let other = LedgerOpening { seed: 8, ..opening() };
    let wanted = "the ledger is of another run: its `seed` is `7`, now it is `8`";
    assert_eq!(refused(folder.path(), &other, &key()), wanted);
    let other = LedgerOpening { experiment_sha256: [1; 32], ..opening() };
    assert!(refused(folder.path(), &other, &key()).contains("`experiment_sha256`"));
}

#[test]
fn a_ledger_with_an_entry_that_does_not_follow_is_refused() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut ledger = open(folder.path());
    step(&mut ledger, 1);
    let run: RunId = ledger.run();
    let again = ledger.last().expect("there is a step").clone();
    drop(ledger);
    let reopened = LogWriter::open(folder.path(), settings()).expect("it opens");
    let mut writer = reopened.resume_at(2).expect("it goes on");
    let entry = LedgerEntry::Step(again).encode();
    let record = Record { entry: &entry, attachment: &[] };
    writer.append_all(&[record]).expect("it is written");
    drop(writer);
    let found = refused(folder.path(), &opening(), &key());
    let wanted =
        format!("entry 2 of the log is step 1, expected step 2 of run {run}, or its close");
    assert_eq!(found, wanted);
}
