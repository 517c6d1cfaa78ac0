//! A training run of a mixture of experts, as `tournaments/experiments/qwen3-30b-a3b.toml` has it,
//! on the random little one of `tests/parity`: warm start, two updates of its adapter from the same
//! episodes with their routes replayed, audit.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::kit::{ARENA, root};

/// Its reward differs between any two replies, so that even a model that knows nothing learns.
const EXPERIMENT: &str = r#"
name = "mixture"
seed = 3
device = "flex"

[policy]
weights = "./policy"
adapter = { rank = 2 }
context = 4_096

[learner]
component = "builtin:llm-buyer"
params = "bound=none grammar=no min_p=0 unusable=fault item=0 hear=40 tokens=120"

[rules]
set = "amazon-history-price"

[catalog]
kind = "synthetic"
items = 16

[limits]
model_calls = 12
model_input_tokens = 65_536
model_output_tokens = 1_440

[[models]]
name = "frozen"
weights = "./policy"
device = "flex"
context = 4_096

[[opponents]]
name = "seller"
component = "builtin:llm-seller"
params = "grammar=no temperature=0.7 item=0 hear=40 tokens=24"
models = ["frozen"]

[warm_start]
items = 1
batch = 1

[train]
steps = 1
items = 1
group_size = 3
reward = "self-certainty"
learning_rate = 0.001
epochs = 2
routing = "replay"
"#;

/// Copies the fixture, with room for a dialogue: its tokens are little more than bytes.
fn copy_model(to: &Path) {
    fs::create_dir(to).expect("a folder");
    let from = root().join("tests/parity/fixtures/tiny-qwen3-moe");
    for entry in fs::read_dir(from).expect("the fixture") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_owned();
        fs::copy(&path, to.join(name)).expect("a copy");
    }
    let config = fs::read_to_string(to.join("config.json")).expect("its numbers");
    let known = "\"max_position_embeddings\": 256";
    assert!(config.contains(known), "{config}");
    let roomy = config.replace(known, "\"max_position_embeddings\": 4096");
    fs::write(to.join("config.json"), roomy).expect("its numbers");
}

fn arena(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(ARENA);
    let output = command.args(args).current_dir(folder).output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    output
}

#[test]
fn a_mixture_is_trained_with_its_routes_replayed_and_its_run_audits() {
    let place = tempfile::tempdir().expect("a temporary folder");
    copy_model(&place.path().join("policy"));
    fs::write(place.path().join("mixture.toml"), EXPERIMENT).expect("an experiment");
    arena(place.path(), &["train", "run", "mixture.toml", "--out", "run", "--workers", "3"]);
    let line = fs::read_to_string(place.path().join("run/steps.jsonl")).expect("one step");
    let step: Value = serde_json::from_str(line.trim()).expect("one line");
    assert_eq!(step["episodes"], 3);
    // Each of the two updates learns from all.
    assert_eq!(step["trained_sequences"], 6, "{line}");
    assert!(step["gradient_norm"].as_f64().is_some_and(|norm| norm > 0.0), "{line}");
    // The learner computes as the engine on this device samples, but not to the bit.
    assert!(step["sampler_gap_max"].as_f64().is_some_and(|gap| gap < 1e-4), "{line}");
    arena(place.path(), &["audit", "run", "--key", "run/ledger/log.vkey"]);
}

#[test]
fn a_teacher_that_nobody_understands_ends_the_run_with_the_reason() {
    let place = tempfile::tempdir().expect("a temporary folder");
    copy_model(&place.path().join("policy"));
    let (before, rest) = EXPERIMENT.split_once("component = \"builtin:llm-buyer\"").expect("it");
    let (_, after) = rest.split_once("\n\n").expect("its parameters end");
    let text = format!("{before}component = \"builtin:compact-buyer\"\n\n{after}");
    fs::write(place.path().join("mixture.toml"), text).expect("an experiment");
    let mut command = Command::new(ARENA);
    command.args(["train", "run", "mixture.toml", "--out", "run"]).current_dir(place.path());
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("the agent got no answer from the teacher in any match"), "{said}");
}
