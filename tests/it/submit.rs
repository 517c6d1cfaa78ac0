//! `arena submit`, and what becomes of a statement: it enters the announcement, and an audit
//! holds it to its author's key.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use arena_core::draws::commit_contribution;
use arena_core::hexadecimal::unhex;
use arena_core::submission::Submission;
use arena_log::hash::Hash;
use arena_log::note::{Note, Vkey};

use crate::audit::{complaint, printed};
use crate::kit::ARENA;
use crate::logs;

const TOURNAMENT: &str = r#"
name = "entered"
seed = 1

[rules]
horizon = { turns = 4 }

[catalog]
kind = "uniform"
items = 1
low = "10"
high = "110"

[[agents]]
name = "entrant"
component = "builtin:boulware"
submission = "entrant.submission"

[[agents]]
name = "b"
component = "builtin:linear"
"#;

fn arena(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(ARENA);
    command.current_dir(folder).args(args).env("NO_COLOR", "1").env_remove("ARENA_KEY_PASSWORD");
    command.output().expect("the program runs")
}

#[track_caller]
fn succeed(folder: &Path, args: &[&str]) -> String {
    let ended = arena(folder, args);
    assert!(ended.status.success(), "{args:?}: {}{}", printed(&ended), complaint(&ended));
    printed(&ended)
}

/// Returns a folder with an author's key, and the key that verifies its signatures.
fn author() -> (tempfile::TempDir, Vkey) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let args = ["log", "keygen", "--out", "author.pem", "--name", "team"];
    let vkey = Vkey::parse(succeed(folder.path(), &args).trim_end()).expect("a key");
    (folder, vkey)
}

const SUBMIT: [&str; 8] = [
    "submit",
    "builtin:boulware",
    "--tournament",
    "entered",
    "--key",
    "author.pem",
    "--author",
    "team",
];

#[test]
fn a_statement_is_signed_and_says_what_was_asked() {
    let (folder, vkey) = author();
    let more = ["--name", "entrant", "--roles", "buyer"];
    succeed(folder.path(), &[&SUBMIT[..], &more].concat());
    let note = std::fs::read(folder.path().join("entrant.submission")).expect("a statement");
    let note = Note::parse(&note).expect("a note");
    assert_eq!(note.verify(&vkey), Ok(()));
    let statement = Submission::parse(note.text()).expect("a statement");
    let component = arena_agents::find("boulware").expect("a built-in agent").component;
    assert_eq!(statement.agent, "entrant");
    assert_eq!(statement.component_sha256, Hash::of(component).0);
    assert_eq!(statement.roles, [true, false]);
    assert_eq!(statement.contribution, None);
    assert_eq!(statement.author, vkey.to_string());
}

#[test]
fn a_contribution_is_secret_random_and_what_the_statement_commits_to() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (folder, _) = author();
        let more = ["--name", "entrant", "--contribute"];
        succeed(folder.path(), &[&SUBMIT[..], &more].concat());
        let path = folder.path().join("entrant.contribution");
        let mode = std::fs::metadata(&path).expect("a contribution").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).expect("a contribution");
        let value: [u8; 32] = unhex(text.trim_end()).expect("64 digits");
        let note = std::fs::read(folder.path().join("entrant.submission")).expect("a statement");
        let note = Note::parse(&note).expect("a note");
        let statement = Submission::parse(note.text()).expect("a statement");
        assert_eq!(statement.contribution, Some(commit_contribution(&value)));
        seen.push(value);
    }
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn what_cannot_be_entered_is_refused_and_nothing_is_written() {
    let (folder, _) = author();
    std::fs::write(folder.path().join("text.wasm"), "not a component").expect("a file");
    for (component, words, code) in [
        ("text.wasm", "--tournament t --key author.pem", 3),
        ("nowhere.wasm", "--tournament t --key author.pem", 3),
        ("builtin:linear", "--tournament t --key nowhere.pem --name a", 3),
        ("builtin:linear", "--tournament t --key text.wasm --name a", 3),
        ("builtin:linear", "--tournament t --key author.pem --name a/b", 2),
        ("builtin:linear", "--tournament t/u --key author.pem --name a", 2),
        ("builtin:linear", "--tournament t --key author.pem --author a+b", 2),
        ("builtin:linear", "--tournament t --key author.pem --roles both", 2),
        ("builtin:linear", "--key author.pem --name a", 2),
    ] {
        let args: Vec<&str> = ["submit", component].into_iter().chain(words.split(' ')).collect();
        let ended = arena(folder.path(), &args);
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {}", complaint(&ended));
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 2);
}

#[test]
fn no_statement_or_contribution_is_overwritten() {
    let (folder, _) = author();
    let args = [&SUBMIT[..], &["--name", "entrant", "--contribute"]].concat();
    succeed(folder.path(), &args);
    let before = logs::public_files(folder.path());
    let again = arena(folder.path(), &args);
    assert_eq!(again.status.code(), Some(2), "{}", complaint(&again));
    assert_eq!(logs::public_files(folder.path()), before);
}

#[test]
fn a_submission_enters_the_announcement_and_is_audited_with_the_author_s_key() {
    let (folder, vkey) = author();
    let place = folder.path();
    succeed(place, &[&SUBMIT[..], &["--name", "entrant"]].concat());
    std::fs::write(place.join("t.toml"), TOURNAMENT).expect("a tournament file");
    succeed(place, &["tournament", "run", "t.toml", "--out", "log"]);
    let key = std::fs::read_to_string(place.join("log/log.vkey")).expect("a key");
    let audit = ["audit", "log", "--key", key.trim_end()];
    let known = format!("entrant={vkey}");
    let told = succeed(place, &[&audit[..], &["--author", &known, "--reexecute"]].concat());
    assert!(told.contains("verdict: VERIFIED: all 18 steps"), "{told}");
    let other = arena_log::key::SigningKey::from_seed([1; 32]).vkey("team").expect("a name");
    let other = format!("entrant={other}");
    let ended = arena(place, &[&audit[..], &["--author", &other]].concat());
    assert_eq!(ended.status.code(), Some(1));
    assert!(printed(&ended).contains("verdict: FAILED: submissions"), "{}", printed(&ended));
}
