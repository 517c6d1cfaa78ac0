//! A tournament in which buyers meet sellers and nobody changes sides, as a user runs it: played,
//! shown, audited, played again, and read a second time.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::kit::ARENA;
use crate::{logs, second_reader};

const TOURNAMENT: &str = r#"
name = "buyers"
seed = 3
schedule = "gauntlet"
roles = "candidates-buy"
repetitions = 4
scenario_group = 2

[rules]
opener = "drawn"
horizon = { mean_turns = 8, max_turns = 16 }

[catalog]
kind = "synthetic"
items = 5

[[agents]]
name = "linear"
component = "builtin:linear"
candidate = true

[[agents]]
name = "seller"
component = "builtin:regulated-seller"

[[agents]]
name = "begging"
component = "builtin:begging"
candidate = true
"#;

fn arena(folder: &Path, args: &[&str]) -> Output {
    Command::new(ARENA).current_dir(folder).args(args).output().expect("the program runs")
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn buyers_against_sellers_are_played_once_and_everything_that_reads_them_agrees() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    std::fs::write(at.join("t.toml"), TOURNAMENT).expect("a tournament file");
    logs::write_key(&at.join("key.pem"));
    let run = arena(at, &["tournament", "run", "t.toml", "--out", "log", "--key", "key.pem"]);
    let table = printed(&run);
    assert!(table.contains("buyers: 3 agents, 5 items, 40 matches, seed 3"), "{table}");
    let note = "note: candidates only buy: they stand first";
    assert!(table.contains(note), "{table}");

    let shown = printed(&arena(at, &["tournament", "show", "log"]));
    assert_eq!(shown, table, "the same is said again");
    let pair = printed(&arena(at, &["tournament", "show", "log", "--pair", "7", "--json"]));
    let pair: Value = serde_json::from_str(&pair).expect("JSON");
    let legs = pair["legs"].as_array().expect("there are legs");
    assert_eq!(legs.len(), 1, "{pair}");
    let pair = printed(&arena(at, &["tournament", "show", "log", "--pair", "7"]));
    assert!(pair.contains("pair 7, leg 0") && !pair.contains("leg 1"), "{pair}");

    let args = ["audit", "log", "--key", "log/log.vkey", "--reexecute", "--json"];
    let audit: Value = serde_json::from_str(&printed(&arena(at, &args))).expect("JSON");
    assert_eq!(audit["verified"], true, "{audit}");
    let args = ["audit", "log", "--key", "log/log.vkey", "--reexecute", "10", "--json"];
    let audit: Value = serde_json::from_str(&printed(&arena(at, &args))).expect("JSON");
    assert_eq!(audit["verified"], true, "{audit}");

    let args = ["log", "prove", "log", "--pair", "7", "--out", "receipt"];
    printed(&arena(at, &args));
    assert!(at.join("receipt-leg-0.tlog-proof").exists());
    assert!(!at.join("receipt-leg-1.tlog-proof").exists());
    second_reader::assert_agreed(&at.join("log"));
}
