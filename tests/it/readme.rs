//! The README shows an audit of a tournament that it has just run, and what a failed one looks
//! like. This runs the same commands and compares.

use std::fs;
use std::path::Path;
use std::process::Command;

use arena_core::config::TournamentConfig;

use crate::kit::{ARENA, root};

/// The section that is held to the program.
const HEADING: &str = "## Audit it\n";

/// Which byte of which file the README changes, and to what.
const CHANGED: (&str, usize, u8) = ("attachment/000", 5_000, 0o377);

/// Returns the `text` blocks of the section, in order.
fn blocks() -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).expect("a README");
    let (_, section) = readme.split_once(HEADING).expect("the README has the section");
    let section = section.split("\n## ").next().expect("a first part");
    let parts = section.split("```text\n").skip(1);
    parts.map(|part| part.split("```").next().expect("a first part").to_owned()).collect()
}

/// Puts `…` for every hash: they hang on a key that is drawn anew.
fn without_hashes(text: &str) -> String {
    let mut shown = String::new();
    let mut digits = String::new();
    for char in text.chars().chain(['\n']) {
        if char.is_ascii_digit() || ('a'..='f').contains(&char) {
            digits.push(char);
            continue;
        }
        shown.push_str(if digits.len() == 64 { "…" } else { &digits });
        digits.clear();
        shown.push(char);
    }
    shown.pop();
    shown
}

fn run(folder: &Path, words: &[&str], code: i32) -> String {
    let mut command = Command::new(ARENA);
    command.current_dir(folder).args(words).env("NO_COLOR", "1");
    let ended = command.output().expect("the program starts");
    let complaint = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(code), "{words:?}: {complaint}");
    without_hashes(&String::from_utf8(ended.stdout).expect("the output is UTF-8"))
}

#[test]
fn the_tournament_file_among_strangers_is_a_sound_one() {
    let readme = fs::read_to_string(root().join("README.md")).expect("a README");
    let (_, section) = readme.split_once("## Hold a tournament among strangers").expect("it");
    let (_, file) = section.split_once("```toml\n").expect("a tournament file");
    let (file, _) = file.split_once("```").expect("its end");
    let config = TournamentConfig::parse(file).unwrap_or_else(|error| panic!("{error}"));
    assert!(config.seed.is_none() && config.beacon_round.is_some(), "draws nobody can know");
}

#[test]
fn the_models_of_the_readme_are_described_soundly() {
    let readme = fs::read_to_string(root().join("README.md")).expect("a README");
    let (_, section) = readme.split_once("## Language models").expect("it");
    let (_, tables) = section.split_once("```toml\n").expect("tables of models");
    let (tables, _) = tables.split_once("```").expect("their end");
    let catalog = "[catalog]\nkind = \"synthetic\"\nitems = 1\n";
    let file = format!("name = \"spoken\"\nself_play = true\n{catalog}{tables}");
    let config = TournamentConfig::parse(&file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.models.len(), 2);
    assert_eq!(config.agents[0].models, ["smollm2"]);
}

#[test]
fn the_audits_of_the_readme_are_what_its_commands_print() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = root().join("tournaments/smoke.toml");
    let file = file.to_str().expect("the checkout's path is UTF-8");
    // With a key of its own for each run, the changed byte could be the same by chance.
    let signing = root().join("tests/cli/small.in/key.pem");
    let signing = signing.to_str().expect("the checkout's path is UTF-8");
    let play = ["tournament", "run", file, "--out", "arena-out/smoke", "--key", signing];
    run(folder.path(), &play, 0);
    let key = "arena-out/smoke/log.vkey";
    let audit = ["audit", "arena-out/smoke", "--key", key, "--reexecute"];
    let honest = run(folder.path(), &audit, 0);

    let (name, offset, byte) = CHANGED;
    let path = folder.path().join("arena-out/smoke").join(name);
    let mut bytes = fs::read(&path).expect("transcripts");
    assert_ne!(bytes[offset], byte, "the README changes nothing");
    bytes[offset] = byte;
    fs::write(&path, bytes).expect("transcripts can be written");
    let forged = run(folder.path(), &["audit", "arena-out/smoke", "--key", key], 1);
    let forged = forged.replace("arena-out/smoke", "arena-out/forged");
    // The README does not repeat what no audit can show.
    let (before, after) = forged.split_once("No offline audit can show:\n").expect("a list");
    let (_, after) = after.split_once("\nverdict: ").expect("a verdict");
    let forged = format!("{before}verdict: {after}");

    let shown = blocks();
    assert_eq!(shown.len(), 2, "the section has two blocks of output");
    assert_eq!(honest, shown[0], "an honest log");
    assert_eq!(forged, shown[1], "a forged log");
}
