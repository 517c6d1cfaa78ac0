//! Draws that nobody could have chosen: the announcement is signed first, then entrants open what
//! they committed to and a round of the beacon is added, and only then anything is played.

use std::path::PathBuf;
use std::process::Command;

use arena_core::draws::commit_contribution;
use arena_core::entry::{DrawEntry, Entry};
use arena_core::hexadecimal::hex;
use arena_core::record::MatchRecord;
use arena_core::submission::{Submission, params_sha256};
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::note::Note;

use crate::kit::ARENA;
use crate::logs;

/// Two agents whose authors contribute, and one whose author does not.
const TOURNAMENT: &str = r#"
name = "open"

[draws]
beacon_round = 123

[rules]
horizon = { turns = 4 }

[catalog]
kind = "uniform"
items = 2
low = "10"
high = "110"

[[agents]]
name = "a"
component = "builtin:zero-intelligence"
submission = "a.submission"

[[agents]]
name = "b"
component = "builtin:zero-intelligence"
submission = "b.submission"

[[agents]]
name = "c"
component = "builtin:linear"
"#;

/// Round 123 of quicknet, as drand published it.
const ROUND: &str = "{\"round\":123,\"signature\":\"b75c69d0b72a5d906e854e808ba7e2acc\
     b1542ac355ae486d591aa9d43765482e26cd02df835d3546d23c4b13e0dfc92\"}";

/// The contributions of the two authors.
const CONTRIBUTIONS: [[u8; 32]; 2] = [[0xa1; 32], [0xb2; 32]];

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a temporary folder") };
        place.write("t.toml", TOURNAMENT);
        place.write("round.json", ROUND);
        place.write("secret", &"5a".repeat(32));
        logs::write_key(&place.path("key.pem"));
        for (agent, contribution) in ["a", "b"].into_iter().zip(CONTRIBUTIONS) {
            let key = SigningKey::from_seed(contribution);
            place.write(&format!("{agent}.submission"), &signed(&key, &statement(agent, &key)));
            place.write(&format!("{agent}.hex"), &format!("{}\n", hex(&contribution)));
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    /// Runs the tournament with these words, although its round is out; returns the exit code and
    /// standard error.
    fn run(&self, out: &str, words: &[&str]) -> (Option<i32>, String) {
        self.run_plainly(out, &[&["--past-round"], words].concat())
    }

    fn run_plainly(&self, out: &str, words: &[&str]) -> (Option<i32>, String) {
        let ended = Command::new(ARENA)
            .current_dir(self.folder.path())
            .args(["tournament", "run", "t.toml", "--out", out])
            .args(["--key", "key.pem", "--secret", "secret"])
            .args(words)
            .output()
            .expect("the program runs");
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    #[track_caller]
    fn check(&self, out: &str, words: &[&str], code: i32, pieces: &[&str]) -> String {
        let (found, said) = self.run(out, words);
        assert_eq!(found, Some(code), "{words:?}: {said}");
        for piece in pieces {
            assert!(said.contains(piece), "`{piece}` is not in: {said}");
        }
        said
    }

    fn draw(&self, out: &str) -> DrawEntry {
        let log = logs::read(&self.path(out));
        let [Entry::Announcement(_), Entry::Draw(draw), .., Entry::Reveal(reveal)] =
            &log.entries[..]
        else {
            panic!("the log does not begin or end as it should");
        };
        assert_eq!(reveal.secret, Some([0x5a; 32]));
        draw.clone()
    }
}

/// A finished log whose draws a beacon and one of two contributions had a part in, and the folder
/// that it lies in.
pub fn played_with_one_contribution() -> (tempfile::TempDir, PathBuf) {
    let place = Place::new();
    place.check("out", &[], 0, &[]);
    place.check("out", &[BEACON, A, &["--skip-unopened"]].concat(), 0, &[]);
    let log = place.path("out");
    (place.folder, log)
}

fn statement(agent: &str, key: &SigningKey) -> Submission {
    let component = arena_agents::find("zero-intelligence").expect("a built-in agent").component;
    Submission {
        agent: agent.to_owned(),
        tournament: "open".to_owned(),
        component_sha256: Hash::of(component).0,
        params_sha256: params_sha256(""),
        roles: [true, true],
        time: 1_796_000_000,
        // The key's secret bytes serve as the contribution: what matters is that it is opened.
        contribution: Some(commit_contribution(match agent {
            "a" => &CONTRIBUTIONS[0],
            _ => &CONTRIBUTIONS[1],
        })),
        author: key.vkey("author").expect("a sound name").to_string(),
    }
}

fn signed(key: &SigningKey, statement: &Submission) -> String {
    let text = statement.text();
    let signature = key.sign_note("author", &text).expect("a sound name");
    Note::new(text, vec![signature]).expect("a sound note").to_string()
}

const BEACON: &[&str] = &["--beacon", "round.json"];
const A: &[&str] = &["--contribution", "a.hex"];
const B: &[&str] = &["--contribution", "b.hex"];

#[test]
fn the_announcement_is_signed_before_the_draws_are_opened_and_nothing_is_played_before() {
    let place = Place::new();
    let both = ["round 123", "author of `a`", "author of `b`", "announced and signed"];
    let said = place.check("out", &[], 0, &both);
    assert!(said.contains("round 123 of the beacon is out already"), "{said}");
    let announced = logs::public_files(&place.path("out"));
    assert!(announced.contains_key(&PathBuf::from("checkpoints/1")));
    assert_eq!(logs::read(&place.path("out")).entries.len(), 1);
    let said = place.check("out", &[BEACON, A].concat(), 0, &["author of `b`"]);
    assert!(!said.contains("author of `a`") && !said.contains("--beacon FILE"), "{said}");
    assert_eq!(logs::public_files(&place.path("out")), announced, "it was touched");
    place.check("out", &[BEACON, A, B].concat(), 0, &[]);
    let draw = place.draw("out");
    assert_eq!(draw.contributions, CONTRIBUTIONS.map(Some));
    assert_eq!(draw.beacon.map(|beacon| beacon.round), Some(123));
    let played = logs::public_files(&place.path("out"));
    assert!(played.contains_key(&PathBuf::from("checkpoints/2")));
    place.check("out", &[], 0, &[]);
    place.check("out", BEACON, 0, &[]);
    assert_eq!(logs::public_files(&place.path("out")), played, "a finished log was touched");
}

#[test]
fn a_round_that_is_out_is_announced_only_on_request() {
    let place = Place::new();
    let (code, said) = place.run_plainly("out", &[]);
    assert_eq!(code, Some(2), "{said}");
    for piece in ["round 123 of the beacon is out already", "`--past-round`"] {
        assert!(said.contains(piece), "`{piece}` is not in: {said}");
    }
    assert!(!place.path("out").exists(), "something was written");
    // Once it is announced, nothing is left to ask for.
    place.check("out", &[], 0, &["warning: round 123 of the beacon is out already"]);
    assert_eq!(place.run_plainly("out", BEACON).0, Some(0));
    for (file, fact) in [
        (TOURNAMENT.replacen("= 123", "= 9000000000", 1), "is still to come"),
        (TOURNAMENT.replacen("beacon_round = 123", "", 1), "no round of the beacon is announced"),
    ] {
        place.write("t.toml", &file);
        place.check("other", &[], 2, &["cannot use `--past-round`", fact, "drop `--past-round`"]);
        assert!(!place.path("other").exists(), "something was written");
    }
}

#[test]
fn what_was_not_announced_or_is_not_signed_is_refused() {
    let place = Place::new();
    place.check("out", &[], 0, &[]);
    place.write("other.hex", &"00".repeat(32));
    place.check("out", &["--contribution", "other.hex"], 3, &["no submission commits to it"]);
    place.write("short.hex", "00");
    place.check("out", &["--contribution", "short.hex"], 3, &["64 lower-case hexadecimal digits"]);
    for (change, piece) in [
        (("123", "124"), "round `124`, announced is `123`"),
        (("b75c", "b75d"), "the beacon's signature"),
        (("dfc92", "dfc9"), "96 lower-case hexadecimal digits"),
        (("signature", "sig"), "not what drand gives"),
    ] {
        place.write("changed.json", &ROUND.replacen(change.0, change.1, 1));
        place.check("out", &["--beacon", "changed.json"], 3, &[piece]);
    }
    assert_eq!(logs::read(&place.path("out")).entries.len(), 1);
}

#[test]
fn a_contribution_that_nobody_opens_is_left_out_on_request_and_stays_out() {
    let place = Place::new();
    for out in ["some", "all"] {
        place.check(out, &[], 0, &[]);
    }
    place.check("some", &[BEACON, A, &["--skip-unopened"]].concat(), 0, &[]);
    assert_eq!(place.draw("some").contributions, [Some(CONTRIBUTIONS[0]), None]);
    place.check("some", B, 3, &["cannot draw again"]);
    place.check("all", &[BEACON, A, B].concat(), 0, &[]);
    let seeds = |out: &str| -> Vec<[u64; 2]> {
        let seeds = |record: &MatchRecord| record.seeds;
        logs::read(&place.path(out)).records.iter().map(seeds).collect()
    };
    assert_ne!(seeds("some"), seeds("all"), "the contribution changed nothing");
}

#[test]
fn a_submission_that_is_not_its_authors_or_not_about_this_agent_is_refused() {
    let place = Place::new();
    let key = SigningKey::from_seed([1; 32]);
    let honest = statement("a", &key);
    let other_component = Submission { component_sha256: [0; 32], ..honest.clone() };
    let one_role = Submission { roles: [true, false], ..honest.clone() };
    let twice = Submission { contribution: statement("b", &key).contribution, ..honest.clone() };
    for (text, piece) in [
        (signed(&SigningKey::from_seed([2; 32]), &honest), "no signature of `author`"),
        (signed(&key, &honest).replace("1796000000", "1796000001"), "not one of this text"),
        (signed(&key, &statement("b", &key)), "the file enters `a`"),
        (signed(&key, &other_component), "it is about the component"),
        (signed(&key, &one_role), "one role only"),
        (signed(&key, &twice), "cannot take its contribution"),
        ("no note at all\n".to_owned(), "no signatures below the text"),
    ] {
        place.write("a.submission", &text);
        place.check("out", &[], 3, &["agent", piece]);
        assert!(!place.path("out").exists(), "{piece}: something was written");
    }
}
