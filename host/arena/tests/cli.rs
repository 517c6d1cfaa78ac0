//! The command line as a person or a script meets it: words, exit codes, and what is written.
//!
//! Tables are checked for their shape; their numbers belong to other tests.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod place;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::{KEY, Place, Said, root};

/// A tournament of three over a few made-up items.
fn tournament(items: u32) -> String {
    let mut text =
        format!("name = \"tiny\"\nseed = 0\n\n[catalog]\nkind = \"synthetic\"\nitems = {items}\n");
    for agent in ["boulware", "linear", "zero-intelligence"] {
        text += &format!("\n[[agents]]\nname = \"{agent}\"\ncomponent = \"builtin:{agent}\"\n");
    }
    text
}

#[test]
fn a_tournament_prints_its_table_and_show_prints_it_again() {
    let place = Place::new();
    place.write("tiny.toml", tournament(10));
    let played = place.arena(&["tournament", "run", "tiny.toml"]).ends_well();
    for piece in ["95% interval", "boulware", "zero-intelligence", "60 matches", "next: arena "] {
        assert!(played.out.contains(piece), "`{piece}` is not in:\n{}", played.out);
    }
    assert!(played.err.contains("log in arena-out/tiny-0"), "{}", played.err);
    assert!(!played.out.contains('\u{1b}'), "colour without a terminal");
    let shown = place.arena(&["tournament", "show", "arena-out/tiny-0"]).ends_well();
    assert_eq!(shown.out, played.out);
    let again = place.arena(&["tournament", "run", "tiny.toml"]).ends_well();
    assert_eq!(again.out, played.out);
}

#[test]
fn json_is_one_document_and_the_same_from_run_and_show() {
    let place = Place::new();
    place.write("tiny.toml", tournament(5));
    let run = ["tournament", "run", "tiny.toml", "--out", "out", "--seed", "7", "--json"];
    let played = place.arena(&run).ends_well();
    let report = played.json();
    assert_eq!(report["complete"], true);
    assert_eq!(report["report"]["header"]["seed"], 7);
    assert_eq!(report["report"]["rows"].as_array().unwrap().len(), 3);
    let shown = place.arena(&["tournament", "show", "out", "--json"]).ends_well();
    assert_eq!(shown.out, played.out);
    let published = fs::read_to_string(place.path("out/results.json")).unwrap();
    assert_eq!(published, played.out);
    let pair = place.arena(&["tournament", "show", "out", "--pair", "3", "--json"]).ends_well();
    assert_eq!(pair.json()["legs"].as_array().unwrap().len(), 2);
}

#[test]
fn workers_change_nothing_and_seeds_change_something() {
    let place = Place::new();
    place.write("tiny.toml", tournament(8));
    place.write("key.pem", KEY);
    let mut logs = Vec::new();
    for (out, workers, seed) in [("a", "1", "1"), ("b", "8", "1"), ("c", "2", "2")] {
        let run = ["tournament", "run", "tiny.toml", "--out", out, "--key", "key.pem"];
        let run = [&run[..], &["--workers", workers, "--seed", seed]].concat();
        place.arena(&run).ends_well();
        logs.push(place.published(out));
    }
    assert!(logs[0] == logs[1], "the log depends on the number of workers");
    assert!(logs[0] != logs[2], "the seed was ignored");
}

#[test]
fn mistakes_in_a_tournament_are_named_and_nothing_is_written() {
    let place = Place::new();
    let good = tournament(5);
    let typo = good.replace("items", "itmes");
    let stranger = good.replace("builtin:linear", "builtin:linaer");
    let absent = good.replace("builtin:linear", "absent.wasm");
    let junk = good.replace("builtin:linear", "junk.wasm");
    let core = good.replace("builtin:linear", "core.wasm");
    let alone = good.split("\n[[agents]]").take(2).collect::<Vec<_>>().join("\n[[agents]]");
    place.write("junk.wasm", [7; 64]);
    place.write("core.wasm", *b"\0asm\x01\0\0\0");
    let cases: [(&str, &str, i32, &[&str]); 6] = [
        ("typo", &typo, 2, &["typo.toml:6:1", "`itmes`", "did you mean `items`?"]),
        ("stranger", &stranger, 3, &["agent `linear`", "`linaer`", "arena agent list"]),
        ("absent", &absent, 3, &["agent `linear`", "absent.wasm"]),
        ("junk", &junk, 3, &["agent `linear`", "not a component", "hint:"]),
        ("core", &core, 3, &["agent `linear`", "not a component", "wasm32-wasip2"]),
        ("alone", &alone, 2, &["alone.toml"]),
    ];
    for (name, text, code, pieces) in cases {
        let file = format!("{name}.toml");
        place.write(&file, text);
        place.arena(&["tournament", "run", &file, "--out", "out"]).complains(code, pieces);
        assert!(!place.path("out").exists(), "{name}: something was written");
    }
    place.arena(&["tournament", "run", "none.toml"]).complains(2, &["none.toml"]);
}

#[test]
fn a_catalog_folder_is_used_or_refused_but_never_ignored() {
    let place = Place::new();
    place.write("tiny.toml", tournament(5));
    let unused = ["tournament", "run", "tiny.toml", "--catalog", "products"];
    place.arena(&unused).complains(2, &["`--catalog`", "generates its catalog"]);
    let import = ["catalog", "import", "products"];
    place.arena(&import).complains(3, &["products", "github.com"]);
    fs::create_dir(place.path("products")).unwrap();
    place.write("products/toys.json", "[\n  {\"title\": }\n]");
    place.arena(&import).complains(3, &["products/toys.json:2:"]);
    place.write("products/toys.json", PRODUCTS);
    let imported = place.arena(&import).ends_well();
    assert!(imported.out.contains("2 items"), "{}", imported.out);
    assert!(imported.out.contains("1 feasible, 1 infeasible"), "{}", imported.out);
    let shown = place.arena(&["catalog", "show", "products", "--json"]).ends_well().json();
    assert_eq!(shown["items"][0]["budget"], 8_000);
    let factor = ["catalog", "show", "synthetic", "--factor", "0.8"];
    place.arena(&factor).complains(2, &["`--factor`", "no use"]);
}

/// Two products: one that can be dealt on at 0.8 of 100 dollars, one that cannot.
const PRODUCTS: &str = r#"[
  {"title": "Kettle", "category": "toys", "description": "", "list_price": "$100.00",
   "current_price": "$90.00", "average_price": "$90.00", "highest_price": "$100.00",
   "lowest_price": "$50.00", "link": "https://example.org/product/1",
   "amazon_link": "https://www.amazon.com/dp/1"},
  {"title": "Kite", "category": "toys", "description": "", "list_price": "$100.00",
   "current_price": "$99.00", "average_price": "$99.00", "highest_price": "$100.00",
   "lowest_price": "$95.00", "link": "https://example.org/product/2",
   "amazon_link": "https://www.amazon.com/dp/2"}
]"#;

#[test]
fn a_log_that_is_missing_foreign_or_damaged_is_refused_and_left_alone() {
    let place = Place::new();
    place.write("tiny.toml", tournament(6));
    place.write("text.txt", "not a log");
    place.arena(&["tournament", "show", "nowhere"]).complains(3, &["nowhere", "hint:"]);
    place.arena(&["tournament", "show", "text.txt"]).complains(3, &["text.txt"]);
    let run = ["tournament", "run", "tiny.toml", "--out", "out"];
    place.arena(&run).ends_well();
    let other = ["tournament", "run", "tiny.toml", "--out", "out", "--seed", "9"];
    place.arena(&other).complains(3, &["`seed` is `0`, now it is `9`", "--out"]);
    place.arena(&["tournament", "show", "out", "--pair", "18"]).complains(2, &["18 pairs"]);
    let bundles = "out/tile/entries";
    let largest = |name: &Path| fs::metadata(name).unwrap().len();
    let paths = place.published("out").into_keys().map(|name| place.path("out").join(name));
    let bundle =
        paths.filter(|path| path.starts_with(place.path(bundles))).max_by_key(|path| largest(path));
    let bundle = bundle.unwrap();
    let mut bytes = fs::read(&bundle).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&bundle, &bytes).unwrap();
    let before = place.published("out");
    place.arena(&["tournament", "show", "out"]).complains(3, &["entr", "restore the log"]);
    place.arena(&run).complains(3, &["nothing was changed"]);
    assert!(place.published("out") == before, "a damaged log was touched");
}

/// A run that is long enough to be interrupted.
const LONG_RUN: [&str; 7] = ["tournament", "run", "tiny.toml", "--out", "out", "--key", "key.pem"];

/// Starts that run, interrupts it once it has written something, and returns what it said.
fn interrupted_run(place: &Place) -> Said {
    place.write("tiny.toml", tournament(5_000));
    place.write("key.pem", KEY);
    let mut command = place.command(&LONG_RUN);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_bytes(&place.path("out").join("private/journal"), 100_000);
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    Said::of(child.wait_with_output().unwrap())
}

/// Compares a log that was interrupted with one that was not.
fn assert_as_straight(place: &Place) {
    let straight = [&LONG_RUN[..4], &["straight"], &LONG_RUN[5..]].concat();
    place.arena(&straight).ends_well();
    assert!(place.published("out") == place.published("straight"), "the interrupted log differs");
}

#[test]
fn ctrl_c_says_how_to_go_on_and_the_same_command_does() {
    let place = Place::new();
    let said = interrupted_run(&place);
    let next = format!("next: arena {}", LONG_RUN.join(" "));
    said.complains(130, &["interrupted; the log is sound", "of 15,000 pairs", &next]);
    let resumed = place.arena(&LONG_RUN).ends_well();
    assert!(resumed.err.contains("the log holds "), "{}", resumed.err);
    assert_as_straight(&place);
}

#[test]
fn a_log_that_ends_early_is_shown_as_unfinished_and_a_torn_end_is_cut() {
    let place = Place::new();
    interrupted_run(&place);
    // As after a crash: the end of what no head covers is gone, in the middle of a record.
    let journal = place.path("out").join("private/journal");
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let shown = place.arena(&["tournament", "show", "out"]).ends_well();
    assert!(shown.out.contains("unfinished: "), "{}", shown.out);
    let document = place.arena(&["tournament", "show", "out", "--json"]).ends_well().json();
    assert_eq!(document["complete"], false);
    place.arena(&LONG_RUN).ends_well();
    assert_as_straight(&place);
}

/// Waits until a file has grown, for at most a minute.
fn wait_for_bytes(path: &Path, bytes: u64) {
    let start = Instant::now();
    while fs::metadata(path).map_or(0, |metadata| metadata.len()) < bytes {
        assert!(start.elapsed() < Duration::from_secs(60), "the run does not start");
        std::thread::yield_now();
    }
}

#[test]
fn without_a_seed_draws_come_from_a_secret_that_is_kept_until_the_end() {
    let place = Place::new();
    let text = tournament(5).replace("seed = 0\n", "");
    place.write("tiny.toml", &text);
    for out in ["one", "two"] {
        let run = ["tournament", "run", "tiny.toml", "--out", out];
        let played = place.arena(&run).ends_well();
        assert!(played.out.contains("committed draws"), "{}", played.out);
        let again = place.arena(&run).ends_well();
        assert_eq!(again.out, played.out);
        for (name, mode) in
            [("private", 0o700), ("private/key.pem", 0o600), ("private/secret", 0o600)]
        {
            let found = fs::metadata(place.path(out).join(name)).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{name}");
        }
    }
    let results = |out: &str| place.published(out).remove(Path::new("results.json")).unwrap();
    assert!(results("one") != results("two"), "two secrets gave the same results");
    // The same secret gives the same tournament, up to the key.
    fs::copy(place.path("one/private/secret"), place.path("secret")).unwrap();
    let run = ["tournament", "run", "tiny.toml", "--out", "three", "--secret", "secret"];
    place.arena(&run).ends_well();
    assert!(results("one") != results("three"), "the key is part of what is drawn from");
    fs::copy(place.path("one/private/key.pem"), place.path("key.pem")).unwrap();
    let run = [&run[..4], &["four", "--secret", "secret", "--key", "key.pem"]].concat();
    place.arena(&run).ends_well();
    assert!(place.published("one") == place.published("four"), "the same secrets, another log");
}

#[test]
fn a_log_is_not_gone_on_with_without_its_key_or_secret() {
    let place = Place::new();
    place.write("tiny.toml", tournament(2).replace("seed = 0\n", ""));
    let run = ["tournament", "run", "tiny.toml", "--out", "out"];
    place.arena(&run).ends_well();
    for (name, flag) in [("key.pem", "--key"), ("secret", "--secret")] {
        let (kept, away) = (place.path("out/private").join(name), place.path(name));
        fs::rename(&kept, &away).unwrap();
        place.arena(&run).complains(3, &["cannot go on", name, flag]);
        let named = [&run[..], &[flag, name]].concat();
        place.arena(&named).ends_well();
        fs::rename(&away, &kept).unwrap();
    }
    place.write("other.pem", KEY);
    let other = [&run[..], &["--key", "other.pem"]].concat();
    place.arena(&other).complains(3, &["another tournament", "log_key"]);
    place.write("secret.txt", "00".repeat(32));
    let other = [&run[..], &["--secret", "secret.txt"]].concat();
    place.arena(&other).complains(3, &["another tournament"]);
}

#[test]
fn a_folder_with_something_else_in_it_gets_no_log_and_no_secret() {
    let place = Place::new();
    place.write("tiny.toml", tournament(2));
    let run = ["tournament", "run", "tiny.toml", "--out", "."];
    place.arena(&run).complains(3, &["`tiny.toml`", "choose another folder"]);
    place.write("key.pem", KEY);
    let keyed = [&run[..], &["--key", "key.pem"]].concat();
    place.arena(&keyed).complains(3, &["choose another folder"]);
    assert!(!place.path("private/key.pem").exists());
}

#[test]
fn flags_that_would_have_no_effect_are_refused() {
    let place = Place::new();
    place.write("seeded.toml", tournament(2));
    let beacon = "beacon_round = 123\n[[agents]]";
    let text = tournament(2).replace("seed = 0\n", "");
    place.write("open.toml", text.replacen("[[agents]]", &format!("[draws]\n{beacon}"), 1));
    place.write("value", format!("{}\n", "00".repeat(32)));
    for (file, flag, piece) in [
        ("seeded.toml", &["--secret", "value"][..], "public seed"),
        ("seeded.toml", &["--beacon", "value"], "nothing was announced"),
        ("seeded.toml", &["--contribution", "value"], "nothing was announced"),
        ("seeded.toml", &["--skip-unopened"], "nothing was announced"),
        ("open.toml", &["--seed", "1"], "beacon's round"),
        ("open.toml", &["--beacon", "value"], "before the announcement is signed"),
        ("open.toml", &["--contribution", "value"], "before the announcement is signed"),
    ] {
        let run = [&["tournament", "run", file, "--out", "out"], flag].concat();
        let said = place.arena(&run);
        let last = said.err.rsplit("error:").next().unwrap();
        assert!(last.contains(piece) && last.contains(flag[0]), "{file} {flag:?}: {}", said.err);
        assert_eq!(said.code, 2, "{file} {flag:?}");
        assert!(!place.path("out").exists(), "{file} {flag:?}: something was written");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    // More than a pipe holds, so that the program is still writing when its reader leaves.
    let words = ["catalog", "show", "synthetic", "--items", "5000", "--json"];
    let mut command = place.command(&words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    Said::of(child.wait_with_output().unwrap()).complains(0, &[""]);
}

#[test]
fn a_match_is_readable_repeatable_and_harmless_to_a_terminal() {
    let place = Place::new();
    let play = ["match", "builtin:linear", "builtin:injector", "--seed", "3", "--trace"];
    let first = place.arena(&play).ends_well();
    let second = place.arena(&play).ends_well();
    assert_eq!(first.out, second.out);
    for piece in ["buyer   linear, pays at most $", "  turn  role", "notes of the seller", "next: "]
    {
        assert!(first.out.contains(piece), "`{piece}` is not in:\n{}", first.out);
    }
    let harmful = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{200b}".contains(c));
    assert!(!first.out.contains(harmful), "{}", first.out.escape_debug());
    let document = place.arena(&["match", "builtin:linear", "builtin:injector", "--json"]);
    let document = document.ends_well().json();
    let [buyer, seller] =
        ["buyer", "seller"].map(|role| document[role]["reward"].as_f64().unwrap());
    assert!((-1.0..=1.0).contains(&buyer) && (-1.0..=1.0).contains(&seller));
}

#[test]
fn flags_of_a_match_do_what_they_say() {
    let place = Place::new();
    let play = |flags: &[&str]| {
        let words =
            [&["match", "builtin:hardliner", "builtin:hardliner", "--json"], flags].concat();
        place.arena(&words).ends_well().json()
    };
    assert_eq!(play(&["--turns", "6"])["turns"].as_array().unwrap().len(), 6);
    assert_eq!(play(&["--rules", "amazon-history-price"])["turn_limit"], 12);
    assert_eq!(play(&["--item", "150"])["item_index"], 150);
    assert_ne!(play(&["--seed", "1"])["budget"], play(&["--seed", "2"])["budget"]);
    let unknown = play(&["--params-b", "nonsense=1"]);
    assert_eq!(unknown["outcome"]["kind"], "faulted");
    assert_eq!(unknown["outcome"]["by"], "seller");
    let absent = ["match", "absent.wasm", "builtin:linear"];
    place.arena(&absent).complains(3, &["absent.wasm"]);
}

#[test]
fn check_passes_a_sound_agent_and_gives_reasons_otherwise() {
    let place = Place::new();
    let sound = place.arena(&["agent", "check", "builtin:boulware"]).ends_well();
    assert!(sound.out.contains("the agent may play"), "{}", sound.out);
    let confused = ["agent", "check", "builtin:boulware", "--params", "nonsense=1", "--json"];
    let confused = place.arena(&confused);
    assert_eq!((confused.code, &confused.json()["passed"]), (1, &Value::Bool(false)));
    assert!(confused.out.contains("trap as buyer"), "{}", confused.out);
    assert!(confused.out.contains("unknown parameter `nonsense`"), "{}", confused.out);
    place.write("core.wasm", *b"\0asm\x01\0\0\0");
    let refused = place.arena(&["agent", "check", "core.wasm"]);
    assert_eq!(refused.code, 1);
    assert!(refused.out.contains("is a core module, not a component"), "{}", refused.out);
    place.arena(&["agent", "check", "absent.wasm"]).complains(3, &["absent.wasm"]);
}

#[test]
fn every_built_in_agent_is_listed_and_passes_the_check() {
    let place = Place::new();
    let listed = place.arena(&["agent", "list", "--json"]).ends_well().json();
    let agents = listed["agents"].as_array().unwrap();
    assert!(agents.len() >= 17, "only {} agents", agents.len());
    for agent in agents {
        let name = agent["name"].as_str().unwrap();
        let checked = place.arena(&["agent", "check", name, "--json"]);
        assert_eq!(checked.code, 0, "{name}:\n{}", checked.out);
    }
}

#[test]
fn a_new_agent_is_written_once_and_under_a_sound_name() {
    let place = Place::new();
    let created = place.arena(&["agent", "new", "haggler-2"]).ends_well();
    assert!(created.out.contains("release/haggler_2.wasm"), "{}", created.out);
    for file in ["Cargo.toml", ".cargo/config.toml", "src/lib.rs", "arena-guest/wit/arena.wit"] {
        assert!(place.path("haggler-2").join(file).is_file(), "{file} is missing");
    }
    place.arena(&["agent", "new", "haggler-2"]).complains(2, &["exists already"]);
    place.arena(&["agent", "new", "9lives"]).complains(2, &["`9lives`", "hint:"]);
    assert!(!place.path("9lives").exists());
}

/// Builds for WebAssembly with a fresh target folder, which takes a minute.
#[test]
fn a_new_agent_builds_passes_the_check_and_plays() {
    if std::env::var_os("SLOW_TESTS").is_none() {
        eprintln!("skipped: set SLOW_TESTS=1 to build a new agent");
        return;
    }
    let place = Place::new();
    place.arena(&["agent", "new", "haggler"]).ends_well();
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        // What cargo sets for this test is not for the cargo of a new crate.
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_") && name != "CARGO_HOME" || name.starts_with("RUSTFLAGS") {
            cargo.env_remove(name);
        }
    }
    let built = cargo.args(["build", "--release"]).current_dir(place.path("haggler")).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let component = "haggler/target/wasm32-wasip2/release/haggler.wasm";
    place.arena(&["agent", "check", component]).ends_well();
    place.arena(&["match", component, "builtin:boulware"]).ends_well();
}

#[test]
fn every_help_page_shows_an_example() {
    let place = Place::new();
    let pages: [&[&str]; 8] = [
        &["tournament", "run"],
        &["tournament", "show"],
        &["match"],
        &["agent", "new"],
        &["agent", "check"],
        &["agent", "list"],
        &["catalog", "import"],
        &["catalog", "show"],
    ];
    for page in pages {
        let said = place.arena(&[page, &["--help"]].concat()).ends_well();
        let example = format!("  arena {}", page.join(" "));
        assert!(said.out.contains(&example), "{}", said.out);
        assert!(said.out.contains("Example"), "{}", said.out);
    }
    assert!(place.arena(&["--help"]).ends_well().out.contains("Exit codes:"));
    place.arena(&["tournament", "runn"]).complains(2, &["runn"]);
}

#[test]
fn every_shipped_tournament_file_loads_its_agents() {
    let place = Place::new();
    let folder = root().join("tournaments");
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        // Experiments are in a folder of their own, and are no tournaments.
        if file.is_dir() || file.to_string_lossy().ends_with(".script.toml") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        // One made-up item in place of the catalog: this is about the agents and their models.
        let (before, after) = text.split_once("[catalog]").unwrap();
        let (_, rest) = after.split_once("\n[").unwrap();
        let catalog = "[catalog]\nkind = \"synthetic\"\nitems = 1\n\n[";
        // And a script in place of weights, which are not there.
        let scripted = "script = \"scripted-llm.script.toml\"";
        let rest = rest.replace("weights = \"smollm2\"\ncontext = 2_048", scripted);
        let rest = rest.replace("script = \"", &format!("script = \"{}/", folder.display()));
        place.write("one.toml", format!("{before}{catalog}{rest}"));
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let played = place.arena(&["tournament", "run", "one.toml", "--out", &name]);
        let played = played.ends_well();
        assert!(!played.out.contains("faults and penalised"), "{name}:\n{}", played.out);
    }
}
