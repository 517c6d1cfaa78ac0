//! The program with a real language model, SmolLM2-135M, from the store: `arena model pull
//! smollm2`. Without it these tests say that they are skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod place;

use std::path::PathBuf;
use std::process::Command;

use crate::place::{KEY, Place, Said, root};

/// Returns the store in which the model is; `None`, and a word about it, where there is none.
fn store(test: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = || variable("HOME").map(|home| home.join(".local/share"));
    let data = variable("XDG_DATA_HOME").or_else(home);
    let store = variable("ARENA_MODELS").or_else(|| data.map(|data| data.join("arena/models")))?;
    if store.join("smollm2/model.gguf").exists() {
        return Some(store);
    }
    eprintln!("SKIPPED: {test}: no smollm2 in `{}`: arena model pull smollm2", store.display());
    None
}

fn arena(place: &Place, store: &std::path::Path, words: &[&str]) -> Said {
    let mut command: Command = place.command(words);
    Said::of(command.env("ARENA_MODELS", store).output().unwrap())
}

/// Two that speak, over one item, as shortly as it goes.
const TOURNAMENT: &str = "\
name = \"spoken\"
seed = 3

[rules]
set = \"standard\"
horizon = { turns = 4 }

[catalog]
kind = \"synthetic\"
items = 1

[limits]
model_calls = 4
model_output_tokens = 300

[[models]]
name = \"smollm2\"
weights = \"smollm2\"
context = 1_024

[[agents]]
name = \"buyer\"
component = \"builtin:llm-buyer\"
params = \"thought=20 talk=40\"
models = [\"smollm2\"]

[[agents]]
name = \"seller\"
component = \"builtin:llm-seller\"
params = \"thought=20 talk=40\"
models = [\"smollm2\"]
";

#[test]
fn a_log_is_the_same_for_any_number_of_workers_and_threads_and_audits_without_the_model() {
    let Some(store) = store("a_log_is_the_same") else { return };
    let place = Place::new();
    place.write("spoken.toml", TOURNAMENT);
    place.write("key.pem", KEY);
    let mut logs = Vec::new();
    for (out, workers, threads) in [("a", "1", "1"), ("b", "2", "2")] {
        let run = ["tournament", "run", "spoken.toml", "--key", "key.pem", "--out", out];
        let run = [&run[..], &["--workers", workers, "--threads", threads]].concat();
        arena(&place, &store, &run).ends_well();
        logs.push(place.published(out));
    }
    assert!(logs[0] == logs[1], "the log depends on workers or threads");

    let nowhere = place.path("no-models");
    let audit = ["audit", "a", "--key", "a/log.vkey", "--reexecute"];
    let audited = arena(&place, &nowhere, &audit).ends_well();
    let verdict = "verdict: VERIFIED: all that was asked for; not asked for: re-scoring\n";
    assert!(audited.out.contains(verdict), "{}", audited.out);
    assert!(audited.out.contains("re-scoring    not asked for (--rescore)"), "{}", audited.out);

    let rescore = ["audit", "a", "--key", "a/log.vkey", "--rescore", "--json"];
    let document = arena(&place, &store, &rescore).ends_well().json();
    let scores = &document["rescoring"]["models"][0]["all"];
    assert_eq!(scores["statement"], "consistent", "{scores:#}");
    assert_eq!(scores["tokens"], scores["equal"], "the device `cpu` gives the same bits");
    assert!(scores["calls"].as_u64().unwrap() >= 4, "{scores:#}");

    let without = arena(&place, &nowhere, &rescore);
    assert_eq!(without.code, 1, "{}", without.err);
    let steps = without.json();
    let step = steps["steps"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(step["verdict"], "not-checked", "{step:#}");
    let reason = step["reason"].as_str().unwrap();
    assert!(reason.starts_with("model `smollm2` is not at hand: "), "{reason}");
    assert!(reason.ends_with("; `--model smollm2=PATH` says where it is"), "{reason}");
    assert_eq!(steps["could_not_be_checked"], serde_json::json!(["re-scoring"]));
    assert_eq!(steps["verified"], false);
}

#[test]
fn a_model_that_is_not_the_pinned_one_is_refused_before_anything_is_written() {
    let Some(store) = store("a_model_that_is_not_the_pinned_one") else { return };
    let place = Place::new();
    let pin = format!("weights = \"smollm2\"\nsha256 = \"{}\"", "0".repeat(64));
    place.write("pinned.toml", TOURNAMENT.replace("weights = \"smollm2\"", &pin));
    let run = ["tournament", "run", "pinned.toml", "--out", "out"];
    arena(&place, &store, &run).complains(3, &["smollm2", "found", "0000"]);
    assert!(!place.path("out").exists());
}

#[test]
fn a_match_is_shown_while_it_is_written_and_its_transcript_alone_is_the_result() {
    let Some(store) = store("a_match_is_shown") else { return };
    let place = Place::new();
    let words = ["match", "llm-buyer", "llm-seller", "--model", "smollm2", "--turns", "2"];
    let params = ["--params-a", "thought=20 talk=40", "--params-b", "thought=20 talk=40"];
    let played = arena(&place, &store, &[&words[..], &params].concat()).ends_well();
    for speaker in ["buyer | ", "seller | "] {
        assert!(played.err.contains(speaker), "{}", played.err);
        assert!(!played.out.contains(speaker), "{}", played.out);
    }
    assert!(played.out.contains("model calls"), "{}", played.out);
    let again = arena(&place, &store, &[&words[..], &params].concat()).ends_well();
    assert_eq!(again.out, played.out);
}

#[test]
fn a_pulled_model_is_described_and_not_fetched_again() {
    let Some(store) = store("a_pulled_model_is_described") else { return };
    let place = Place::new();
    // No index is asked: nobody listens there.
    let pull = ["model", "pull", "smollm2", "--index", "http://127.0.0.1:9/simple"];
    let pulled = arena(&place, &store, &pull).ends_well();
    assert!(pulled.out.contains("already there"), "{}", pulled.out);

    let shown = arena(&place, &store, &["model", "show", "smollm2", "--json"]).ends_well().json();
    assert_eq!(shown["architecture"], "llama");
    assert_eq!(shown["layers"], 30);
    assert_eq!(shown["vocab"], 49_152);
    assert_eq!(shown["cache_bytes_per_token"], 46_080);
    assert!(shown["template"].as_str().unwrap().contains("<|im_start|>user"), "{shown:#}");

    let copied = place.path("other");
    let path = store.join("smollm2/model.gguf");
    let path = path.to_str().unwrap();
    let add = ["model", "add", path, "--name", "linked", "--link"];
    arena(&place, &copied, &add).ends_well();
    let linked = arena(&place, &copied, &["model", "show", "linked", "--json"]).ends_well().json();
    assert_eq!(linked["manifest_sha256"], shown["manifest_sha256"]);
    let by_path = copied.join("linked/model.gguf");
    let said = arena(&place, &copied, &["model", "show", by_path.to_str().unwrap()]).ends_well();
    assert!(said.out.contains("next: arena model chat linked\n"), "{}", said.out);
    arena(&place, &copied, &add).complains(2, &["`linked`", "the name is taken"]);
}

#[test]
fn a_chat_answers_each_line_and_the_same_lines_alike() {
    let Some(store) = store("a_chat_answers_each_line") else { return };
    let place = Place::new();
    let chat = |lines: &str| {
        let words = ["model", "chat", "smollm2", "--temperature", "0", "--max-tokens", "12"];
        let mut command = place.command(&words);
        place.write("lines", lines);
        let input = std::fs::File::open(place.path("lines")).unwrap();
        Said::of(command.env("ARENA_MODELS", &store).stdin(input).output().unwrap()).ends_well().out
    };
    let once = chat("What is 2 + 2?\n");
    assert_eq!(once.trim_end().lines().count(), 1, "{once}");
    let twice = chat("What is 2 + 2?\n\nAnd 3 + 3?\n");
    assert!(twice.starts_with(&once) && twice.len() > once.len(), "{twice}");
}

#[test]
fn a_file_that_is_no_model_is_refused_by_name_and_leaves_nothing_in_the_store() {
    let place = Place::new();
    place.write("junk.gguf", [7; 64]);
    let whole = root().join("README.md");
    let store = place.path("models");
    for path in ["junk.gguf", "absent.gguf", whole.to_str().unwrap()] {
        arena(&place, &store, &["model", "add", path]).complains(3, &["cannot load the model"]);
        arena(&place, &store, &["model", "show", path]).ends_badly();
    }
    assert!(!store.exists() || std::fs::read_dir(&store).unwrap().next().is_none());
}
