//! Logs that somebody changed after they were signed, or that were signed twice.

use std::fs;
use std::path::Path;

use arena_audit::AuditOptions;
use arena_audit::beacon::round_time;
use arena_audit::diff::{Relation, View, diff};
use arena_log::cosignature;
use arena_log::key::SigningKey;
use arena_log::note::Note;
use arena_log::policy::Policy;

use crate::honest::{Drawn, Log, ORIGIN, ROUND, Tournament, assert_fails, shown};

fn flip(log: &Log, path: &str, at: usize) {
    let mut bytes = log.get(path);
    bytes[at] ^= 1;
    log.put(path, &bytes);
}

struct Case {
    name: &'static str,
    change: fn(&Log),
    steps: &'static [&'static str],
    says: &'static str,
}

fn check(cases: &[Case]) {
    let tournament = Tournament::play(Drawn::Publicly, 4);
    for Case { name, change, steps, says } in cases {
        let log = tournament.write();
        change(&log);
        assert_fails(name, &log.audit(), steps, says);
    }
}

#[test]
fn a_changed_byte_is_found_in_its_file() {
    check(&[
        Case {
            name: "in an entry",
            change: |log| flip(log, "tile/entries/000.p/28", 100),
            steps: &["tree"],
            says: "`tile/0/000.p/27`: hash 1: found",
        },
        Case {
            name: "in the bundle of an earlier head",
            change: |log| flip(log, "tile/entries/000.p/1", 40),
            steps: &["tree"],
            says: "`tile/entries/000.p/1`: the bytes: found another byte at 40",
        },
        Case {
            name: "in a hash",
            change: |log| flip(log, "tile/0/000.p/28", 64),
            steps: &["tree"],
            says: "`tile/0/000.p/28`: hash 2: found",
        },
        Case {
            name: "in a transcript that two bundles hold",
            change: |log| flip(log, "attachment/000.p/28", 500),
            steps: &["tree"],
            says: "`attachment/000.p/27`: the bytes: found another byte at 500",
        },
        Case {
            name: "in an earlier head",
            change: |log| flip(log, "checkpoints/27", 30),
            steps: &["held-heads"],
            says: "`checkpoints/27`: ",
        },
        Case {
            name: "in the newest head",
            change: |log| flip(log, "checkpoint", 30),
            steps: &["checkpoint"],
            says: "checkpoint failed: ",
        },
        Case {
            name: "in the key beside the log",
            change: |log| flip(log, "log.vkey", 30),
            steps: &["files"],
            says: "`log.vkey`: the key: found",
        },
        Case {
            name: "in the published tables",
            change: |log| flip(log, "results.json", 30),
            steps: &["results"],
            says: "`results.json`: line",
        },
    ]);
}

#[test]
fn a_changed_byte_of_a_transcript_is_found_by_its_entry() {
    let log = Tournament::play(Drawn::Publicly, 50).write();
    flip(&log, "attachment/000", 90_000);
    let says = "the hash of the transcript: found";
    assert_fails("a changed transcript", &log.audit(), &["transcripts"], says);
}

#[test]
fn files_that_no_log_has_are_not_passed_over() {
    check(&[
        Case {
            name: "a file at the top",
            change: |log| log.put("notes.txt", b"do not look"),
            steps: &["files"],
            says: "`notes.txt`: the name: found a file, expected none of this name",
        },
        Case {
            name: "a tile beyond the log",
            change: |log| log.put("tile/0/001.p/3", &[0; 96]),
            steps: &["files"],
            says: "`tile/0/001.p/3`: the file: found one, expected none of this name",
        },
        Case {
            name: "a blob that nobody names",
            change: |log| log.put(&format!("blob/ab/{}", "ab".repeat(32)), b"x"),
            steps: &["files"],
            says: "the blob: found one, expected none of this name",
        },
        Case {
            name: "a link in place of the bundles",
            change: |log| {
                fs::rename(log.file("tile/entries"), log.file("private/moved")).expect("moved");
                let made = std::os::unix::fs::symlink("../private/moved", log.file("tile/entries"));
                made.expect("a link");
            },
            steps: &["tree"],
            says: "a link or no regular file",
        },
        Case {
            name: "an earlier head is gone",
            change: |log| fs::remove_file(log.file("checkpoints/1")).expect("it was there"),
            // Without its head, nothing says what the bundle of one entry is for.
            steps: &["held-heads", "files"],
            says: "`checkpoints/1`: the head: found none, expected one of this size",
        },
        Case {
            name: "the announcement is gone",
            change: |log| {
                let hash = log.announcement_hash();
                let path = format!("blob/{}/{hash}", &hash[..2]);
                fs::remove_file(log.file(&path)).expect("it was there");
            },
            steps: &["files", "announcement"],
            says: "the announcement: found none, expected one",
        },
    ]);
}

#[test]
fn checkpoints_are_read_strictly() {
    type Change = fn(String) -> String;
    let cases: [(&str, Change); 7] = [
        ("line ends of two bytes", |text| text.replace('\n', "\r\n")),
        ("an extension line", |text| text.replacen("\n\n", "\nmore\n\n", 1)),
        ("a leading zero", |text| text.replacen("\n28\n", "\n028\n", 1)),
        ("a size of 2^64", |text| text.replacen("\n28\n", "\n18446744073709551644\n", 1)),
        ("no last newline", |text| text.trim_end().to_owned()),
        ("a line after the end", |text| text + "x\n"),
        ("another size", |text| text.replacen("\n28\n", "\n27\n", 1)),
    ];
    let log = Tournament::play(Drawn::Publicly, 4).write();
    let honest = String::from_utf8(log.get("checkpoint")).expect("text");
    for (name, change) in cases {
        let changed = change(honest.clone());
        assert_ne!(changed, honest, "{name}");
        log.put("checkpoint", changed.as_bytes());
        assert_fails(name, &log.audit(), &["checkpoint"], "checkpoint failed: ");
    }
}

#[test]
fn another_key_of_the_same_name_is_not_believed() {
    let mut tournament = Tournament::play(Drawn::Publicly, 4);
    let honest = tournament.write();
    tournament.key_seed = [0x66; 32];
    let mut forged = tournament.write();
    forged.vkey = honest.vkey.clone();
    assert_fails(
        "another key",
        &forged.audit(),
        &["checkpoint"],
        "no signature of `arena.example/spring`",
    );
}

#[test]
fn a_log_that_shrank_or_changed_does_not_continue_a_held_head() {
    let tournament = Tournament::play(Drawn::Publicly, 50);
    let honest = tournament.write();
    let held = [honest.get("checkpoint"), honest.get("checkpoints/256")];
    assert!(honest.audit_holding(&held).is_verified_without(&["re-execution"]));

    let mut shorter = tournament.clone();
    shorter.records.truncate(256);
    shorter.results = None;
    let audit = shorter.write().audit_holding(&held);
    let says = "the entries of the log: found 256, expected at least the 304 of held head 1";
    assert_fails("cut and signed again", &audit, &["held-heads"], says);

    let mut other = tournament.clone();
    let place = other.match_at(1, 0);
    other.forge(place, |transcript| transcript.record.usage[0].trace.push("more".to_owned()));
    let audit = other.write().audit_holding(&held[1..]);
    let says = "the root of 256 entries by held head 1: found";
    assert_fails("rewritten", &audit, &["held-heads"], says);
}

#[test]
fn an_older_head_in_place_of_the_newest_is_noticed() {
    let log = Tournament::play(Drawn::Publicly, 50).write();
    log.put("checkpoint", &log.get("checkpoints/256"));
    assert_fails("an older head", &log.audit(), &["tree"], "checkpoints/304");
}

#[test]
fn two_histories_under_one_key_are_a_fork() {
    let tournament = Tournament::play(Drawn::Publicly, 50);
    let mut other = tournament.clone();
    let place = other.match_at(1, 0);
    other.forge(place, |transcript| transcript.record.usage[0].trace.push("more".to_owned()));
    let (first, second) = (tournament.write(), other.write());
    let policy = first.policy();
    let (newest, forged, early) =
        (first.get("checkpoint"), second.get("checkpoint"), second.get("checkpoints/256"));
    let whole = View { checkpoint: &newest, folder: Some(first.path()) };
    for (checkpoint, size) in [(&forged, 304), (&early, 256)] {
        let view = View { checkpoint, folder: None };
        let found = diff(whole, view, &policy).expect("trusted heads");
        assert!(
            matches!(found.relation, Relation::Forked { size: at, .. } if at == size),
            "{:?}",
            found.relation
        );
    }
}

#[test]
fn a_quorum_counts_each_witness_once() {
    let log = Tournament::play(Drawn::Publicly, 4).write();
    let witness = |place: u8| {
        let key = SigningKey::from_seed([place; 32]);
        let name = format!("witness-{place}");
        let vkey = key.cosigner_vkey(&name).expect("a name");
        (key, name, vkey)
    };
    let witnesses = [witness(1), witness(2)];
    let mut text = format!("log {}\n", log.vkey);
    for (_, name, vkey) in &witnesses {
        text.push_str(&format!("witness {name} {vkey}\n"));
    }
    text.push_str("group both all witness-1 witness-2\nquorum both\n");
    let policy = Policy::parse(text.as_bytes()).expect("a policy");
    let options = AuditOptions { policy: &policy, held: &[], authors: &[], catalog: None };
    let audit = || arena_audit::audit(log.path(), &options, &mut |_| {});
    let says = "the quorum of witnesses is not met: 0 cosigned";
    assert_fails("nobody", &audit(), &["checkpoint"], says);

    let cosign = |(key, name, vkey): &(SigningKey, String, _), path: &str| {
        let note = Note::parse(&log.get("checkpoint")).expect("a note");
        let head = arena_log::checkpoint::Head::parse(note.text()).expect("a head");
        let first = cosignature::cosign(key, name, &head, 1_796_000_000).expect("cosigned");
        let second = cosignature::cosign(key, name, &head, 1_796_000_001).expect("cosigned");
        let note = note.with_signatures(&[first, second]).expect("a note");
        log.put(path, note.to_string().as_bytes());
        assert!(cosignature::verify(&note, vkey).is_ok());
    };
    cosign(&witnesses[0], "witness/one");
    let says = "1 cosigned, missing are `witness-2`";
    assert_fails("one of them twice", &audit(), &["checkpoint"], says);
    cosign(&witnesses[1], "witness/two");
    assert!(audit().is_verified_without(&["re-execution"]), "{}", shown(&audit()));
}

#[test]
fn the_times_of_witnesses_are_held_against_the_beacon_and_each_other() {
    let log = Tournament::play(Drawn::InCommon, 4).write();
    let key = SigningKey::from_seed([1; 32]);
    let vkey = key.cosigner_vkey("witness").expect("a name");
    let text = format!("log {}\nwitness w {vkey}\nquorum none\n", log.vkey);
    let policy = Policy::parse(text.as_bytes()).expect("a policy");
    let options = AuditOptions { policy: &policy, held: &[], authors: &[], catalog: None };
    let audit = || arena_audit::audit(log.path(), &options, &mut |_| {});
    let cosign = |head: &str, time: u64| {
        let note = Note::parse(&log.get(head)).expect("a note");
        let head = arena_log::checkpoint::Head::parse(note.text()).expect("a head");
        let line = cosignature::cosign(&key, "witness", &head, time).expect("cosigned");
        let note = note.with_signatures(&[line]).expect("a note");
        log.put(&format!("witness/{}", head.size), note.to_string().as_bytes());
    };
    let detail = || format!("{:?}", audit().step("draws"));
    assert!(detail().contains("no trusted witness shows"), "{}", detail());
    let out = round_time(ROUND).expect("a round");
    cosign("checkpoints/1", out - 60);
    assert!(detail().contains("`witness` saw the announcement 60 seconds before"), "{}", detail());
    cosign("checkpoints/2", out - 1);
    let says = "the time at which `witness` saw the beacon's round: found";
    assert_fails("a round from the future", &audit(), &["draws"], says);
    cosign("checkpoints/2", out + 60);
    cosign("checkpoint", out + 59);
    let says = "the time at which `witness` saw 29 entries: found";
    assert_fails("a clock that runs backwards", &audit(), &["held-heads"], says);
    cosign("checkpoint", out + 61);
    assert!(audit().is_verified_without(&["re-execution"]), "{}", shown(&audit()));
}

#[test]
fn a_folder_without_a_log_is_no_verified_log() {
    let empty = tempfile::TempDir::new().expect("a folder");
    let key = SigningKey::from_seed([1; 32]).vkey(ORIGIN).expect("a name");
    let policy = Policy::of_vkey(key).expect("a log's key");
    let options = AuditOptions { policy: &policy, held: &[], authors: &[], catalog: None };
    for path in [empty.path(), Path::new("no/such/folder")] {
        let audit = arena_audit::audit(path, &options, &mut |_| {});
        assert_fails("no log", &audit, &["checkpoint"], "checkpoint failed: the log: found");
    }
}
