//! A training run from the command line: it comes out the same however often it is killed, its
//! audit computes every reward again, and a ledger that says otherwise fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use arena_core::ledger::LedgerEntry;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};
use arena_runner::ledger::{Ledger, Step};
use serde_json::Value;

use crate::kit::ARENA;

/// Longest that a run may take before the test gives up.
const RUN_MAX: Duration = Duration::from_secs(240);
/// How often the folder is looked at while waiting to kill.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// Its reward differs between any two replies, so that even a model that knows nothing learns.
const EXPERIMENT: &str = r#"
name = "tiny"
seed = 5

[policy]
kind = "compact"
layers = 2
width = 32
heads = 2
feed_forward = 64
context = 256

[learner]
component = "builtin:compact-buyer"
greedy = "temperature=0"

[[opponents]]
name = "seller"
component = "builtin:parametric-seller"

[[baselines]]
name = "linear"
component = "builtin:linear"

[rules]
set = "amazon-history-price"

[catalog]
kind = "synthetic"
items = 64
infeasible_share = 0.1

[limits]
model_calls = 6
model_input_tokens = 1_024
model_output_tokens = 24

[warm_start]
items = 16
epochs = 2
batch = 8

[train]
steps = 3
items = 4
group_size = 4
reward = "self-certainty"
learning_rate = 0.001
epochs = 2
minibatches = 2
kl = 0.01

[evaluate]
every = 2
items = 4
"#;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::write(place.path("tiny.toml"), EXPERIMENT).expect("an experiment");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, run: &str) -> Command {
        let mut command = Command::new(ARENA);
        command.args(["train", "run", "tiny.toml", "--out", run, "--workers", "4"]);
        command.current_dir(self.folder.path());
        command
    }

    fn train(&self, run: &str) -> Output {
        let output = self.command(run).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        output
    }

    /// Trains until something is there, and kills.
    fn train_until(&self, run: &str, there: &str) {
        let mut child = self.command(run).stderr(Stdio::null()).spawn().expect("the program runs");
        let started = Instant::now();
        while !self.path(run).join(there).exists() {
            assert!(started.elapsed() < RUN_MAX, "`{there}` never came");
            assert_eq!(child.try_wait().expect("it can be asked"), None, "`{there}` did not come");
            std::thread::sleep(LOOK_EVERY);
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it can be waited for");
    }

    fn audit(&self, run: &str, more: &[&str]) -> (Option<i32>, Value) {
        let key = self.path(run).join("ledger/log.vkey");
        let audit = Command::new(ARENA)
            .args(["audit", run, "--json", "--key"])
            .arg(key)
            .args(more)
            .current_dir(self.folder.path())
            .output()
            .expect("the program runs");
        let said = String::from_utf8_lossy(&audit.stderr);
        let document = serde_json::from_slice(&audit.stdout);
        (audit.status.code(), document.unwrap_or_else(|error| panic!("{error}: {said}")))
    }
}

/// A finished run, which tests share and do not change.
fn finished() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Place::new();
        place.train("whole");
        place
    })
}

/// Copies what a run was begun with, so that another one is signed with the same key.
fn copy_key(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("private")).expect("a folder");
    fs::copy(from.join("private/key.pem"), to.join("private/key.pem")).expect("the key");
}

fn read(path: PathBuf) -> Vec<u8> {
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_run_that_was_killed_is_the_uninterrupted_one_to_the_byte() {
    let place = finished();
    let whole = place.path("whole");
    let other = Place::new();
    copy_key(&whole, &other.path("killed"));
    for there in ["warm-start", "checkpoints/000000", "steps/000001", "checkpoints/000001.new"] {
        other.train_until("killed", there);
    }
    other.train_until("killed", "checkpoints/000002");
    other.train_until("killed", "evaluations/000002-sampled");
    other.train("killed");
    let killed = other.path("killed");
    for file in ["policy/model.safetensors", "ledger/checkpoint", "evaluations.jsonl"] {
        assert!(read(whole.join(file)) == read(killed.join(file)), "{file} differs");
    }
    let lines = |run: &Path| -> Vec<Value> {
        let text = String::from_utf8(read(run.join("steps.jsonl"))).expect("text");
        let line = |line: &str| {
            let mut row: Value = serde_json::from_str(line).expect("a row");
            let fields = row.as_object_mut().expect("an object");
            // What a clock says.
            fields.retain(|name, _| !name.contains("second"));
            row
        };
        text.lines().map(line).collect()
    };
    let (one, another) = (lines(&whole), lines(&killed));
    assert_eq!(one, another);
    assert_eq!(one.len(), 3);
    let gap = |row: &Value| row["sampler_gap_max"].as_f64().expect("something was learned");
    assert!(one.iter().all(|row| gap(row) < 1e-6), "trainer and sampler are one model: {one:?}");
}

#[test]
fn an_audit_computes_every_reward_and_advantage_again() {
    let (code, audit) = finished().audit("whole", &[]);
    assert_eq!((code, &audit["verified"]), (Some(0), &Value::Bool(true)), "{audit:#}");
    assert_eq!((&audit["training_steps"], &audit["matches"]), (&3.into(), &48.into()));
    // Each step's log is an ordinary one, and so is each evaluation's.
    for log in ["whole/steps/000002", "whole/evaluations/000003-sampled"] {
        let key = finished().path(log).join("log.vkey");
        let audit = Command::new(ARENA)
            .args(["audit", log, "--reexecute", "--key"])
            .arg(key)
            .current_dir(finished().folder.path())
            .output()
            .expect("the program runs");
        let said = String::from_utf8_lossy(&audit.stdout);
        assert!(audit.status.success(), "{log}: {said}");
    }
}

/// Writes the ledger again, signed by the same key, with another account of some steps.
fn forge(run: &Path, change: impl Fn(&mut Step<'_>, u32)) {
    let key = fs::read_to_string(run.join("private/key.pem")).expect("the key");
    let key = SigningKey::from_pem(&key, None).expect("it is one");
    let honest = run.join("honest");
    fs::rename(run.join("ledger"), &honest).expect("the disk is there");
    let mut reader = LogReader::open(&honest, Access::Owner).expect("a ledger");
    let mut entries = Vec::new();
    while let Some(record) = reader.next_record().expect("an entry") {
        entries.push(LedgerEntry::decode(record.entry).expect("an entry"));
    }
    let LedgerEntry::Opening(opening) = &entries[0] else { panic!("an opening comes first") };
    let source = Ledger::open(&honest, opening, &key).expect("it goes on");
    let mut forged = Ledger::open(&run.join("ledger"), opening, &key).expect("a new one");
    for entry in &entries[1..] {
        match entry {
            LedgerEntry::Opening(_) => panic!("one opening"),
            LedgerEntry::Step(step) => {
                let log = run.join(format!("steps/{:06}", step.step));
                let log = LogReader::open(&log, Access::Public).expect("a log");
                let mut account = Step {
                    tournament: step.tournament,
                    head: log.head(),
                    policy_after: step.policy_after,
                    matches: source.matches(step).expect("readable").expect("there").matches,
                    dropped_groups: step.dropped_groups,
                    learning_rate: step.learning_rate(),
                };
                change(&mut account, step.step);
                forged.append(account).expect("the disk is there");
            }
            LedgerEntry::Close(_) => forged.close().expect("the disk is there"),
        }
    }
    drop(source);
    fs::remove_dir_all(&honest).expect("the disk is there");
}

/// Forges a run of its own and returns which steps of its audit fail.
fn failures_of(change: impl Fn(&mut Step<'_>, u32), more: &[&str]) -> Vec<String> {
    let place = Place::new();
    copy_key(&finished().path("whole"), &place.path("forged"));
    place.train("forged");
    forge(&place.path("forged"), change);
    let (code, audit) = place.audit("forged", more);
    assert_eq!(code, Some(1), "{audit:#}");
    let steps = audit["steps"].as_array().expect("steps");
    let failed = steps.iter().filter(|step| step["verdict"] == "failed");
    failed.map(|step| step["step"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_ledger_with_one_changed_reward_fails_the_audit() {
    let change = |account: &mut Step<'_>, step: u32| {
        account.matches[7].reward_micro += i32::from(step == 2);
    };
    assert_eq!(failures_of(change, &[]), ["rewards"]);
}

#[test]
fn repeating_the_updates_gives_the_policies_of_the_ledger_and_no_others() {
    let (code, audit) = finished().audit("whole", &["--retrain"]);
    assert_eq!((code, &audit["not_asked_for"]), (Some(0), &Value::Array(vec![])), "{audit:#}");
    let change = |account: &mut Step<'_>, step: u32| {
        if step == 3 {
            account.policy_after[0] ^= 1;
        }
    };
    assert_eq!(failures_of(change, &["--retrain"]), ["updates"]);
}

#[test]
fn another_experiment_or_a_strange_folder_is_refused_and_curves_are_drawn() {
    let place = finished();
    check_shown(place);
    let refused = |arguments: &[&str]| {
        let output = Command::new(ARENA)
            .args(arguments)
            .current_dir(place.folder.path())
            .output()
            .expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = refused(&["train", "run", "tiny.toml", "--out", "whole", "--seed", "6"]);
    assert!(code == Some(2) && said.contains("is another experiment"), "{said}");
    let (code, said) = refused(&["audit", "whole", "--rescore", "--key", "whole/ledger/log.vkey"]);
    assert!(code == Some(2) && said.contains("the folder holds a training run"), "{said}");
    let (code, said) = refused(&["train", "plot", "whole", "--out", "page.html"]);
    assert!(code == Some(0), "{said}");
    let page = fs::read_to_string(place.path("page.html")).expect("a page");
    assert!(page.contains("<svg"), "there are curves");
    let (code, said) = refused(&["train", "evaluate", "whole"]);
    assert!(code == Some(0), "{said}");
    let events = fs::read_dir(place.path("whole/tensorboard")).expect("a folder").count();
    assert_eq!(events, 1, "nothing was played again");
}

/// Checks that `train show` says what the run's own files and its policy say.
fn check_shown(place: &Place) {
    let show = |arguments: &[&str]| {
        let output = Command::new(ARENA)
            .args(arguments)
            .current_dir(place.folder.path())
            .output()
            .expect("the program runs");
        let texts = [output.stdout, output.stderr];
        let [out, said] = texts.map(|text| String::from_utf8(text).expect("text"));
        (output.status.code(), out, said)
    };
    let document = |arguments: &[&str]| -> Value {
        let (code, out, said) = show(arguments);
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str(&out).expect("JSON")
    };
    let shown = document(&["train", "show", "whole", "--json"]);
    let run = &shown["runs"][0];
    let policy = document(&["model", "show", "whole/policy", "--json"]);
    assert_eq!(run["policy"]["sha256"], policy["manifest_sha256"], "{shown:#}");
    let ledger = document(&["log", "show", "whole/ledger", "--head", "--json"]);
    assert_eq!(run["ledger"]["root"], ledger["root"]);
    assert_eq!((&run["steps"], &run["learner"][0]["step"]), (&3.into(), &3.into()));
    assert_eq!(run["baselines"][0]["agent"], "linear");
    let (code, out, said) = show(&["train", "show", "whole"]);
    assert!(code == Some(0) && out.contains("field training, greedy"), "{out}{said}");
    let (code, out, _) = show(&["train", "show", "whole", "whole/../whole", "--csv"]);
    assert!(code == Some(0) && out.starts_with("run,step,reward,"), "{out}");
    let of = |run: &str| out.matches(&format!("\"{run}\",3,")).count();
    assert_eq!((of("whole"), of("whole/../whole")), (1, 1), "paths tell the two apart: {out}");
    let (code, _, said) = show(&["train", "show", "."]);
    assert!(code == Some(3) && said.contains("hint: a run is a folder that"), "{said}");
}
