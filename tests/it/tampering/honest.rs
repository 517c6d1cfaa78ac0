//! The honest logs: played once by the real program for all tests.
//!
//! One has draws that a secret, two authors and a beacon made together. The other has a public
//! seed: its draws do not depend on what is announced, so that a lie in the announcement can be
//! the only thing that is wrong with a log.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use arena_core::draws::commit_contribution;
use arena_core::hexadecimal::hex;
use arena_core::submission::{Submission, params_sha256};
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::note::Note;

use crate::kit::ARENA;
use crate::logs;

/// A tournament that was played, with everything that it was played from.
pub struct Honest {
    folder: tempfile::TempDir,
}

/// Round 123 of quicknet, as drand published it.
const ROUND: &str = "{\"round\":123,\"signature\":\"b75c69d0b72a5d906e854e808ba7e2acc\
     b1542ac355ae486d591aa9d43765482e26cd02df835d3546d23c4b13e0dfc92\"}";

/// When that round came out, in seconds since 1970.
pub const ROUND_TIME: u64 = 1_692_803_733;

/// Agents with authors. The author's contribution also serves as the seed of the author's key.
const AUTHORS: [(&str, &str, [u8; 32]); 2] =
    [("random", "zero-intelligence", [0xa1; 32]), ("haggler", "llm-buyer", [0xb2; 32])];

/// A model that speaks with an accent, and takes every second offer that it hears of.
const SCRIPT: &str = r#"
context-tokens = 4096
default = "Thought: I wait.\nTalk: Not yet, my café is poor.\nAction: [REJECT]"

[[rule]]
role = "user"
contains = "offers $"
turn = 1
reply = "Thought: It will not get better.\nTalk: Agreed.\nAction: [DEAL]"
"#;

fn tournament(origin: &str, draws: &str) -> String {
    format!(
        r#"
name = "tampered"
{draws}

[log]
origin = "{origin}"

[rules]
opener = "buyer"
horizon = {{ turns = 6 }}

[catalog]
kind = "uniform"
items = 2
low = "10"
high = "110"

[limits]
model_calls = 8

[[models]]
name = "scripted"
script = "script.toml"

[[agents]]
name = "random"
component = "builtin:zero-intelligence"
submission = "random.submission"

[[agents]]
name = "haggler"
component = "builtin:llm-buyer"
submission = "haggler.submission"
models = ["scripted"]

[[agents]]
name = "linear"
component = "builtin:linear"
"#
    )
}

const TINY: &str = r#"
name = "tiny"
seed = 3
rules = { horizon = { turns = 2 } }
catalog = { kind = "uniform", items = 1, low = "60", high = "61" }

[[agents]]
name = "offers"
component = "offers.wasm"

[[agents]]
name = "waits"
component = "waits.wasm"
"#;

/// The log whose draws were made in common.
pub fn drawn() -> &'static Honest {
    static PLACE: OnceLock<Honest> = OnceLock::new();
    PLACE.get_or_init(|| Honest::play_drawn("5a"))
}

/// The same tournament, played again by an organiser with another secret.
pub fn drawn_again() -> &'static Honest {
    static PLACE: OnceLock<Honest> = OnceLock::new();
    PLACE.get_or_init(|| Honest::play_drawn("6b"))
}

/// The log with a public seed.
pub fn seeded() -> &'static Honest {
    static PLACE: OnceLock<Honest> = OnceLock::new();
    PLACE.get_or_init(|| {
        let honest = Honest::prepare(&tournament("arena.example/seeded", "seed = 3"), false);
        honest.run(&[]);
        honest
    })
}

/// A log of one pair of matches between two agents of a few hundred bytes of code.
pub fn tiny() -> &'static Honest {
    static PLACE: OnceLock<Honest> = OnceLock::new();
    PLACE.get_or_init(|| {
        let honest = Honest::prepare(TINY, false);
        for (name, act) in
            [("offers", "(call $offer (i32.const 5000))"), ("waits", "(call $reject)")]
        {
            let act = format!("(func (export \"act\") (param i32 i32) (result i32) {act})");
            let component = crate::kit::component(&act);
            std::fs::write(honest.path(&format!("{name}.wasm")), component).expect("a file");
        }
        honest.run(&[]);
        honest
    })
}

impl Honest {
    fn prepare(tournament: &str, contributes: bool) -> Honest {
        let honest = Honest { folder: tempfile::tempdir().expect("a temporary folder") };
        honest.write("t.toml", tournament);
        honest.write("script.toml", SCRIPT);
        honest.write("round.json", ROUND);
        logs::write_key(&honest.path("key.pem"));
        for (agent, builtin, contribution) in AUTHORS {
            let stated = statement(agent, builtin, contribution, contributes);
            honest.write(&format!("{agent}.submission"), &signed(contribution, &stated));
            honest.write(&format!("{agent}.hex"), &format!("{}\n", hex(&contribution)));
        }
        honest
    }

    /// Plays the tournament with draws made in common; the secret is these two digits.
    fn play_drawn(digits: &str) -> Honest {
        let draws = "draws = { beacon_round = 123 }";
        let honest = Honest::prepare(&tournament("arena.example/drawn", draws), true);
        honest.write("secret", &digits.repeat(32));
        let secret = ["--secret", "secret", "--past-round"];
        honest.run(&secret);
        let opened = ["--beacon", "round.json", "--contribution", "random.hex"];
        honest.run(&[&secret[..], &opened, &["--contribution", "haggler.hex"]].concat());
        honest
    }

    fn run(&self, words: &[&str]) {
        let ended = Command::new(ARENA)
            .current_dir(self.folder.path())
            .args(["tournament", "run", "t.toml", "--out", "log", "--key", "key.pem"])
            .args(words)
            .output()
            .expect("the program runs");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    /// Returns a file or folder beside the log.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the folder of the log.
    pub fn log(&self) -> PathBuf {
        self.path("log")
    }
}

/// Returns what an author states about an agent.
pub fn statement(agent: &str, builtin: &str, author: [u8; 32], contributes: bool) -> Submission {
    let component = arena_agents::find(builtin).expect("a built-in agent").component;
    let key = SigningKey::from_seed(author);
    Submission {
        agent: agent.to_owned(),
        tournament: "tampered".to_owned(),
        component_sha256: Hash::of(component).0,
        params_sha256: params_sha256(""),
        roles: [true, true],
        time: 1_796_000_000,
        contribution: contributes.then(|| commit_contribution(&author)),
        author: key.vkey("author").expect("a sound name").to_string(),
    }
}

/// Returns a statement under its author's signature.
pub fn signed(author: [u8; 32], statement: &Submission) -> String {
    let text = statement.text();
    let signature = SigningKey::from_seed(author).sign_note("author", &text).expect("a name");
    Note::new(text, vec![signature]).expect("a sound note").to_string()
}
