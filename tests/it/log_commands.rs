//! `arena log` and `arena audit receipt`, as an organiser, a witness and a researcher use them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use arena_core::entry::Entry;
use arena_log::checkpoint::Head;
use arena_log::cosignature;
use arena_log::key::SigningKey;
use arena_log::note::{Note, Vkey};
use serde_json::Value;

use crate::audit::{Place, complaint, printed};
use crate::forging::Forgery;
use crate::kit::ARENA;
use crate::logs;

/// Runs the program in a folder; returns the exit code, what was printed, and what was said.
fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    run_with(folder, args, None)
}

fn run_with(folder: &Path, args: &[&str], password: Option<&str>) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(ARENA);
    command.current_dir(folder).args(args).env("NO_COLOR", "1").env_remove("ARENA_KEY_PASSWORD");
    if let Some(password) = password {
        command.env("ARENA_KEY_PASSWORD", password);
    }
    let ended = command.stdin(std::process::Stdio::null()).output().expect("the program runs");
    (ended.status.code(), printed(&ended), complaint(&ended))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn honest_log() -> String {
    Place::honest().path("log").to_str().expect("a plain path").to_owned()
}

fn honest_key() -> String {
    std::fs::read_to_string(Place::honest().path("log.vkey")).expect("a key").trim().to_owned()
}

#[test]
fn a_new_key_is_its_owner_s_is_never_overwritten_and_signs_as_its_verifier_key_says() {
    let folder = folder();
    let args = ["log", "keygen", "--out", "a.pem", "--name", "arena.example/a"];
    let (code, vkey, said) = run(folder.path(), &args);
    assert_eq!(code, Some(0), "{said}");
    let path = folder.path().join("a.pem");
    let mode = std::fs::metadata(&path).expect("a key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let pem = std::fs::read_to_string(&path).expect("a key");
    let key = SigningKey::from_pem(&pem, None).expect("a key");
    assert_eq!(vkey, format!("{}\n", key.vkey("arena.example/a").expect("a name")));
    let (code, _, said) = run(folder.path(), &args);
    assert_eq!(code, Some(2));
    assert!(said.contains("nothing is overwritten"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).expect("a key"), pem, "it was touched");
}

#[test]
fn a_key_can_be_encrypted_and_is_then_opened_by_its_password_alone() {
    let folder = folder();
    std::fs::write(folder.path().join("password"), "correct horse\n").expect("a file");
    let args = ["log", "keygen", "--out", "a.pem", "--name", "team", "--password-file", "password"];
    let (code, _, said) = run(folder.path(), &args);
    assert_eq!(code, Some(0), "{said}");
    let pem = std::fs::read_to_string(folder.path().join("a.pem")).expect("a key");
    assert!(pem.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"), "{pem}");
    let submit = "submit builtin:linear --tournament t --key a.pem --author team";
    let submit: Vec<&str> = submit.split(' ').collect();
    for (password, wanted) in
        [(None, Some(3)), (Some("wrong"), Some(3)), (Some("correct horse"), Some(0))]
    {
        let (code, _, said) = run_with(folder.path(), &submit, password);
        assert_eq!(code, wanted, "{password:?}: {said}");
    }
}

#[test]
fn a_name_that_cannot_be_a_key_s_is_refused_before_a_key_is_made() {
    let folder = folder();
    for name in ["", "with a blank", "a+b", "line\nend"] {
        let args = ["log", "keygen", "--out", "a.pem", "--name", name];
        let (code, _, said) = run(folder.path(), &args);
        assert_eq!(code, Some(2), "{name:?}: {said}");
    }
    assert!(!folder.path().join("a.pem").exists());
}

#[test]
fn the_head_is_shown_as_it_is_and_every_entry_can_be() {
    let log = honest_log();
    let here = folder();
    let (code, head, _) = run(here.path(), &["log", "show", &log, "--head"]);
    assert_eq!(code, Some(0));
    let wanted = std::fs::read_to_string(Path::new(&log).join("checkpoint")).expect("a head");
    assert_eq!(head, wanted);
    let (_, text, _) = run(here.path(), &["log", "show", &log, "--json"]);
    let value: Value = serde_json::from_str(&text).expect("one JSON document");
    assert_eq!((&value["size"], &value["entries"]["match"]), (&123.into(), &120.into()));
    for (index, kind) in
        [("0", "announcement"), ("1", "match"), ("121", "close"), ("122", "reveal")]
    {
        let (code, text, said) =
            run(here.path(), &["log", "show", &log, "--entry", index, "--json"]);
        assert_eq!(code, Some(0), "{said}");
        let value: Value = serde_json::from_str(&text).expect("one JSON document");
        assert_eq!(value["kind"], kind);
        let (code, text, _) = run(here.path(), &["log", "show", &log, "--entry", index]);
        assert_eq!(code, Some(0));
        assert!(text.contains("leaf_hash"), "{text}");
    }
    let (code, _, said) = run(here.path(), &["log", "show", &log, "--entry", "123"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("123 entries"), "{said}");
}

/// Proves a pair of the honest log into a folder.
fn prove(folder: &Path) {
    let (code, _, said) =
        run(folder, &["log", "prove", &honest_log(), "--pair", "8", "--out", "p"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_receipt_shows_a_match_without_the_log() {
    let folder = folder();
    prove(folder.path());
    let key = honest_key();
    let announcement = Forgery::of(&Place::honest().path("log")).announcement.encode();
    std::fs::write(folder.path().join("announcement"), announcement).expect("a file");
    let audit = ["audit", "receipt", "p-leg-1.tlog-proof", "--key", &key];
    let (code, text, said) = run(folder.path(), &audit);
    assert_eq!(code, Some(0), "{text}{said}");
    assert!(text.contains("not checked  rules"), "{text}");
    let verdict = "verdict: VERIFIED: all that was given; not checked: announcement, rules";
    assert!(text.ends_with(&format!("{verdict}\n")), "{text}");
    let judged = [&audit[..], &["--announcement", "announcement", "--json"]].concat();
    let (code, text, said) = run(folder.path(), &judged);
    assert_eq!(code, Some(0), "{text}{said}");
    let value: Value = serde_json::from_str(&text).expect("one JSON document");
    assert_eq!((&value["verified"], &value["head"]["vkey"]), (&true.into(), &key.clone().into()));
    let steps = value["steps"].as_array().expect("a list of steps");
    assert_eq!(steps.len(), 4);
    assert!(steps.iter().all(|step| step["verdict"] == "verified"), "{text}");
    assert_eq!(
        (&value["entry"]["entry"]["pair_index"], &value["entry"]["entry"]["leg"]),
        (&8.into(), &1.into())
    );
    assert!(value["entry"]["transcript"]["turns"].is_array());
}

#[test]
fn a_receipt_of_another_entry_key_transcript_or_announcement_fails() {
    let folder = folder();
    prove(folder.path());
    let key = honest_key();
    let other_key = SigningKey::from_seed([9; 32]).vkey("arena.local/audited/11");
    let other_key = other_key.expect("a sound name").to_string();
    let mut other = Forgery::of(&Place::honest().path("log")).announcement;
    other.pair_count += 1;
    std::fs::write(folder.path().join("other"), other.encode()).expect("a file");
    let receipt = "p-leg-0.tlog-proof";
    for (args, step) in [
        (["--key", &key, "--entry", "p-leg-1.entry"], "FAILED   inclusion"),
        (["--key", &other_key, "--entry", "p-leg-0.entry"], "FAILED   inclusion"),
        (["--key", &key, "--transcript", "p-leg-1.transcript"], "FAILED       transcript"),
        (["--key", &key, "--announcement", "other"], "FAILED       announcement"),
    ] {
        let (code, text, said) =
            run(folder.path(), &[&["audit", "receipt", receipt], &args[..]].concat());
        assert_eq!(code, Some(1), "{text}{said}");
        assert!(text.contains(step), "{step} is not in:\n{text}");
        assert!(text.contains("\nverdict: FAILED: "), "{text}");
    }
}

#[test]
fn a_receipt_of_a_running_tournament_gives_no_transcript_away() {
    let folder = folder();
    let log = folder.path().join("running");
    Forgery::of(&Place::honest().path("log")).write_unfinished(&log, 12);
    let (code, _, said) =
        run(folder.path(), &["log", "prove", "running", "--pair", "2", "--leg", "0", "--out", "p"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(folder.path().join("p.entry").exists());
    assert!(!folder.path().join("p.transcript").exists(), "a private transcript got out");
    let key = honest_key();
    let (code, text, said) =
        run(folder.path(), &["audit", "receipt", "p.tlog-proof", "--key", &key]);
    assert_eq!(code, Some(0), "{text}{said}");
    assert!(text.contains("withheld until the close"), "{text}");
}

/// A witness at work in a folder.
struct Witness {
    folder: tempfile::TempDir,
    vkey: Vkey,
}

impl Witness {
    fn new() -> Witness {
        let folder = folder();
        let args = ["log", "keygen", "--out", "w.pem", "--name", "witness.example/w1", "--witness"];
        let (code, vkey, said) = run(folder.path(), &args);
        assert_eq!(code, Some(0), "{said}");
        let vkey = Vkey::parse(vkey.trim_end()).expect("a verifier key");
        Witness { folder, vkey }
    }

    fn cosign(&self, log: &str) -> (Option<i32>, String, String) {
        let key = honest_key();
        let args = ["log", "witness", log, "--log-key", &key, "--key", "w.pem"];
        let names = ["--name", "witness.example/w1", "--state", "w.state"];
        run(self.folder.path(), &[&args[..], &names].concat())
    }

    fn state(&self) -> Option<Vec<u8>> {
        std::fs::read(self.folder.path().join("w.state")).ok()
    }
}

/// Copies the public files of the honest log, so that a witness can write beside them.
fn copy_to(folder: &Path) {
    for (name, bytes) in logs::public_files(&Place::honest().path("log")) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a copy");
    }
}

#[test]
fn a_witness_cosigns_growth_remembers_it_and_counts_for_a_quorum() {
    let witness = Witness::new();
    let log = witness.folder.path().join("log");
    copy_to(&log);
    let (code, note, said) = witness.cosign("log/checkpoints/1");
    assert_eq!(code, Some(0), "{said}");
    let note = Note::parse(note.as_bytes()).expect("a note");
    assert!(cosignature::verify(&note, &witness.vkey).is_ok());
    let (code, _, said) = witness.cosign("log");
    assert_eq!(code, Some(0), "{said}");
    let note = std::fs::read(log.join("witness/witness.example_w1")).expect("a cosigned head");
    let note = Note::parse(&note).expect("a note");
    assert!(cosignature::verify(&note, &witness.vkey).is_ok());
    let state = witness.state().expect("a state");
    let key = Vkey::parse(&honest_key()).expect("a key");
    assert_eq!(Head::open(&state, &key).expect("the log's head").size, 123);

    let policy = format!("log {key}\nwitness w1 {}\nquorum w1\n", witness.vkey);
    std::fs::write(witness.folder.path().join("policy"), policy).expect("a file");
    let (code, text, said) = run(witness.folder.path(), &["audit", "log", "--policy", "policy"]);
    assert_eq!(code, Some(0), "{text}{said}");
    assert!(text.contains("witnesses   witness.example/w1"), "{text}");
}

#[test]
fn a_receipt_brings_the_cosignatures_on_its_head_and_nothing_else_that_lies_with_them() {
    let witness = Witness::new();
    let here = witness.folder.path();
    copy_to(&here.join("log"));
    let (code, _, said) = witness.cosign("log");
    assert_eq!(code, Some(0), "{said}");
    let beside = here.join("log/witness");
    let head = std::fs::read_to_string(here.join("log/checkpoint")).expect("a head");
    // A letter in the middle of the signature, far behind the key's id.
    let (place, letter) = head.char_indices().nth_back(40).expect("a signature");
    let other = if letter == 'A' { "B" } else { "A" };
    let mut spoilt = head.clone();
    spoilt.replace_range(place..place + letter.len_utf8(), other);
    assert!(Note::parse(spoilt.as_bytes()).is_ok() && spoilt != head, "{spoilt}");
    std::fs::write(beside.join("a-spoilt"), spoilt).expect("a file");
    std::fs::write(beside.join("b-foreign"), b"\xff no note").expect("a file");
    std::fs::copy(here.join("log/checkpoints/1"), beside.join("c-earlier")).expect("a copy");
    std::os::unix::fs::symlink("/dev/zero", beside.join("d-link")).expect("a link");
    std::fs::create_dir(beside.join("e-folder")).expect("a folder");

    let (code, _, said) = run(here, &["log", "prove", "log", "--entry", "5", "--out", "p"]);
    assert_eq!(code, Some(0), "{said}");
    let receipt = std::fs::read_to_string(here.join("p.tlog-proof")).expect("a receipt");
    let signatures = receipt.lines().filter(|line| line.starts_with('\u{2014}')).count();
    assert_eq!(signatures, 2, "{receipt}");
    let policy = format!("log {}\nwitness w1 {}\nquorum w1\n", honest_key(), witness.vkey);
    std::fs::write(here.join("policy"), policy).expect("a file");
    let (code, text, said) = run(here, &["audit", "receipt", "p.tlog-proof", "--policy", "policy"]);
    assert_eq!(code, Some(0), "{text}{said}");
}

#[test]
fn a_witness_refuses_a_smaller_another_or_a_foreign_log_and_forgets_nothing() {
    let witness = Witness::new();
    copy_to(&witness.folder.path().join("log"));
    let mut forgery = Forgery::of(&Place::honest().path("log"));
    forgery.records[0].usage[0].trace.push("another story".to_owned());
    forgery.write(&witness.folder.path().join("other"));
    assert_eq!(witness.cosign("log").0, Some(0));
    let state = witness.state();
    for (log, piece) in [
        ("log/checkpoints/1", "the log shrank"),
        ("log/checkpoints/122", "the log shrank"),
        ("other", "it does not continue the last head cosigned"),
        ("other/checkpoints/122", "the log shrank"),
        ("log/log.vkey", "cannot cosign"),
    ] {
        let (code, text, said) = witness.cosign(log);
        assert_eq!(code, Some(3), "{log}: {text}{said}");
        assert!(said.contains(piece), "{log}: {said}");
        assert_eq!(text, "", "{log}: something was signed");
        assert_eq!(witness.state(), state, "{log} changed the state");
    }
    assert_eq!(witness.cosign("log").0, Some(0), "the same head is cosigned again");
}

#[test]
fn a_witness_does_not_sign_what_it_cannot_remember() {
    let witness = Witness::new();
    copy_to(&witness.folder.path().join("log"));
    // A folder in the place of the state file can be neither read nor replaced.
    std::fs::create_dir(witness.folder.path().join("w.state")).expect("a folder");
    let (code, text, said) = witness.cosign("log/checkpoints/1");
    assert_ne!(code, Some(0), "{said}");
    assert_eq!(text, "", "it was signed all the same");
}

#[test]
fn a_head_alone_is_not_enough_to_show_growth() {
    let witness = Witness::new();
    copy_to(&witness.folder.path().join("log"));
    assert_eq!(witness.cosign("log/checkpoints/1").0, Some(0));
    let (code, _, said) = witness.cosign("log/checkpoints/122");
    assert_eq!(code, Some(3));
    assert!(said.contains("name the log's folder"), "{said}");
}

#[test]
fn a_witness_follows_no_link_out_of_the_log() {
    let witness = Witness::new();
    let (log, elsewhere) = (witness.folder.path().join("log"), folder());
    copy_to(&log);
    std::os::unix::fs::symlink(elsewhere.path(), log.join("witness")).expect("a link");
    let (code, text, said) = witness.cosign("log");
    assert_eq!((code, text.as_str()), (Some(3), ""), "{said}");
    assert!(said.contains("it is a link or no folder"), "{said}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).expect("a folder").count(), 0);
}

#[test]
fn rows_of_matches_and_turns_are_those_of_the_log() {
    let here = folder();
    let log = honest_log();
    let records = logs::read(Path::new(&log)).records;
    let (code, lines, said) = run(here.path(), &["log", "export", &log, "--jsonl"]);
    assert_eq!(code, Some(0), "{said}");
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(rows.len(), records.len());
    for (row, record) in rows.iter().zip(&records) {
        assert_eq!(row["pair_index"], record.pair_index);
        assert_eq!(row["budget_cents"], record.budget.cents());
        assert_eq!(row["turn_count"], record.turns.len());
        assert_eq!(row["seller_seed"], record.seeds[1].to_string());
    }
    let (code, said, _) =
        run(here.path(), &["log", "export", &log, "--jsonl", "--turns", "--out", "turns.jsonl"]);
    assert_eq!(code, Some(0), "{said}");
    let text = std::fs::read_to_string(here.path().join("turns.jsonl")).expect("rows");
    let talks: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"))
        .map(|row| row["talk"].as_str().expect("text").to_owned())
        .collect();
    let wanted: Vec<String> = records
        .iter()
        .flat_map(|record| record.turns.iter().map(|turn| turn.talk.clone()))
        .collect();
    assert_eq!(talks, wanted);
    let (code, csv, _) = run(here.path(), &["log", "export", &log, "--csv"]);
    assert_eq!(code, Some(0));
    assert_eq!(csv.matches("\r\n").count(), records.len() + 1);
}

#[test]
fn what_is_withheld_is_not_exported() {
    let here = folder();
    let log = here.path().join("running");
    Forgery::of(&Place::honest().path("log")).write_unfinished(&log, 12);
    std::fs::remove_dir_all(log.join("private")).expect("what others do not get");
    let (code, lines, said) = run(here.path(), &["log", "export", "running", "--jsonl"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(lines.lines().count(), 12);
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line).expect("a line of JSON");
        assert_eq!((&row["budget_cents"], &row["buyer_seed"]), (&Value::Null, &Value::Null));
    }
    let (code, text, said) = run(here.path(), &["log", "export", "running", "--csv", "--turns"]);
    assert_eq!((code, text.as_str()), (Some(3), ""), "{said}");
    assert!(said.contains("withheld until the log is closed"), "{said}");
}

#[cfg(feature = "index")]
#[test]
fn an_index_has_the_matches_and_turns_and_can_be_made_again() {
    let here = folder();
    let log = honest_log();
    let records = logs::read(Path::new(&log)).records;
    let turn_count: usize = records.iter().map(|record| record.turns.len()).sum();
    for _ in 0..2 {
        let (code, _, said) = run(here.path(), &["log", "index", &log, "--out", "i.sqlite"]);
        assert_eq!(code, Some(0), "{said}");
        let index = rusqlite::Connection::open(here.path().join("i.sqlite")).expect("an index");
        let count = |table: &str| -> i64 {
            let query = format!("SELECT count(*) FROM {table}");
            index.query_row(&query, [], |row| row.get(0)).expect("a count")
        };
        assert_eq!(count("matches"), records.len() as i64);
        assert_eq!(count("turns"), turn_count as i64);
        assert_eq!(count("agents"), 4);
        let joined: i64 = index
            .query_row(
                "SELECT count(*) FROM matches JOIN turns USING (entry_index) \
                 WHERE turns.agent NOT IN (matches.buyer, matches.seller)",
                [],
                |row| row.get(0),
            )
            .expect("a count");
        assert_eq!(joined, 0, "a turn of an agent that does not sit in its match");
    }
    let names = std::fs::read_dir(here.path()).expect("the folder").count();
    assert_eq!(names, 1, "something was left beside the index");
}

#[test]
fn the_entry_beside_a_receipt_is_the_log_s() {
    let folder = folder();
    prove(folder.path());
    for leg in [0_u8, 1] {
        let bytes = std::fs::read(folder.path().join(format!("p-leg-{leg}.entry"))).expect("it");
        let Ok(Entry::Match(played)) = Entry::decode(&bytes) else { panic!("not a match") };
        assert_eq!((played.pair_index, played.leg), (8, leg));
    }
}
