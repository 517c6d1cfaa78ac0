//! `arena audit` as a stranger runs it: on a log that it did not make, with a key from elsewhere.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use arena_core::hexadecimal::hex;
use arena_log::hash::Hash;
use serde_json::{Value, json};

use crate::forging::Forgery;
use crate::kit::{ARENA, root};
use crate::logs;

/// A small tournament in which agents deal, walk, fault, talk and take notes.
const TOURNAMENT: &str = r#"
name = "audited"
seed = 11
schedule = "round-robin"
self_play = true

[rules]
set = "standard"
horizon = { mean_turns = 8, max_turns = 16 }

[catalog]
kind = "synthetic"
items = 6
infeasible_share = 0.2

[[agents]]
name = "bayesian"
component = "builtin:bayesian"

[[agents]]
name = "zero-intelligence"
component = "builtin:zero-intelligence"

[[agents]]
name = "injector"
component = "builtin:injector"

[[agents]]
name = "trapper"
component = "trapper.wasm"
"#;

/// A folder with a finished log in `log`, and its key in `log.vkey` beside it.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// Plays a tournament file that lies in the folder.
    fn play(folder: tempfile::TempDir, file: &str) -> Place {
        let place = Place { folder };
        logs::write_key(&place.path("key.pem"));
        let played = place.arena(&["tournament", "run", file, "--out", "log", "--key", "key.pem"]);
        assert!(played.status.success(), "{}", complaint(&played));
        std::fs::copy(place.path("log/log.vkey"), place.path("log.vkey")).expect("the key");
        place
    }

    /// The tournament of this file, played once for all tests.
    pub fn honest() -> &'static Place {
        static PLACE: OnceLock<Place> = OnceLock::new();
        PLACE.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            std::fs::write(folder.path().join("t.toml"), TOURNAMENT).expect("a tournament file");
            let trapper = crate::kit::component(include_str!("../guests/trap-after-offer.wat"));
            std::fs::write(folder.path().join("trapper.wasm"), trapper).expect("a component");
            Place::play(folder, "t.toml")
        })
    }

    /// The shipped tournament with a language model, without its model.
    fn llm() -> &'static Place {
        static PLACE: OnceLock<Place> = OnceLock::new();
        PLACE.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let files = ["scripted-llm.toml", "scripted-llm.script.toml"];
            for file in files {
                let from = root().join("tournaments").join(file);
                std::fs::copy(from, folder.path().join(file)).expect("a shipped file");
            }
            let place = Place::play(folder, files[0]);
            files.iter().for_each(|file| std::fs::remove_file(place.path(file)).expect("a file"));
            place
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program in the folder.
    pub fn arena(&self, args: &[&str]) -> Output {
        Command::new(ARENA)
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }

    /// Audits a log with the honest log's key; returns the exit code and what was printed.
    fn audit(&self, log: &Path, more: &[&str]) -> (Option<i32>, String) {
        let log = log.to_str().expect("a plain path");
        let args = [&["audit", log, "--key", "log.vkey"], more].concat();
        let ended = self.arena(&args);
        assert_eq!(complaint(&ended), "", "nothing goes wrong with auditing itself");
        (ended.status.code(), printed(&ended))
    }
}

pub fn printed(ended: &Output) -> String {
    String::from_utf8(ended.stdout.clone()).expect("the output is UTF-8")
}

pub fn complaint(ended: &Output) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

/// Returns the line of a step.
#[track_caller]
pub fn line<'a>(printed: &'a str, step: &str) -> &'a str {
    let is_step = |line: &&str| {
        let verdicts = ["  verified ", "  FAILED ", "  not checked "];
        let rest = verdicts.iter().find_map(|verdict| line.strip_prefix(verdict));
        rest.is_some_and(|rest| rest.split_whitespace().next() == Some(step))
    };
    printed.lines().find(is_step).unwrap_or_else(|| panic!("no line of `{step}` in:\n{printed}"))
}

#[track_caller]
fn assert_has(printed: &str, pieces: &[&str]) {
    for piece in pieces {
        assert!(printed.contains(piece), "`{piece}` is not in:\n{printed}");
    }
}

#[test]
fn an_honest_log_is_verified_to_the_last_match_run_again() {
    let place = Place::honest();
    let (code, printed) = place.audit(&place.path("log"), &["--reexecute"]);
    assert_has(
        &printed,
        &["verdict: VERIFIED: all 18 steps\nnext: ", "No offline audit can show:"],
    );
    assert_has(line(&printed, "re-execution"), &["verified", "re-executed all 120 matches"]);
    assert_eq!(code, Some(0));
}

#[test]
fn a_copy_of_the_public_files_elsewhere_is_verified_as_well() {
    let place = Place::honest();
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in logs::public_files(&place.path("log")) {
        let path = elsewhere.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a copy");
    }
    for workers in ["1", "3"] {
        let more = ["--reexecute", "all", "--workers", workers];
        let (code, printed) = place.audit(elsewhere.path(), &more);
        assert_has(&printed, &["verdict: VERIFIED: all 18 steps"]);
        assert_eq!(code, Some(0));
    }
}

/// Writes a log that is still being played, with a tile that no head counts yet.
fn running() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("running");
    Forgery::of(&Place::honest().path("log")).write_unfinished(&log, 0);
    let early = log.join("tile/0/032");
    std::fs::write(&early, [7; 32]).expect("a file");
    (folder, log, early)
}

#[test]
fn a_log_that_is_being_written_is_audited_again_before_it_is_said_to_be_wrong() {
    let (_folder, log, early) = running();
    let (code, printed) = Place::honest().audit(&log, &[]);
    assert_has(&printed, &["tile/0/032", "verdict: FAILED: files\nnext: do not rely on this log"]);
    assert_eq!(code, Some(1));
    std::thread::scope(|scope| {
        // The last attempt begins a second after the first, which most likely meets the file.
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(600));
            std::fs::remove_file(&early).expect("the file was there");
        });
        let (_, printed) = Place::honest().audit(&log, &[]);
        assert!(!printed.contains("FAILED"), "{printed}");
    });
}

#[test]
fn a_log_whose_head_moves_while_it_fails_is_to_be_audited_at_rest() {
    let (_folder, log, _) = running();
    let head = std::fs::read(log.join("checkpoint")).expect("a head");
    let head = arena_log::note::Note::parse(&head).expect("a note");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for time in 0.. {
                if is_over.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
                let name = format!("other.example/{time}");
                let by = logs::key().sign_note(&name, head.text()).expect("a sound name");
                let moved = head.clone().with_signatures(&[by]).expect("a sound note").to_string();
                std::fs::write(log.join("private/next"), moved).expect("a head");
                std::fs::rename(log.join("private/next"), log.join("checkpoint")).expect("moved");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let place = Place::honest();
        let log = log.to_str().expect("a plain path");
        let ended = place.arena(&["audit", log, "--key", "log.vkey"]);
        is_over.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_has(&printed(&ended), &["next: the log is being written", "audit the copy"]);
        assert_has(&complaint(&ended), &["the log is being written; it is audited again"]);
        assert_eq!(ended.status.code(), Some(1));
    });
}

#[test]
fn without_reexecution_the_verdict_says_so() {
    let place = Place::honest();
    let (code, printed) = place.audit(&place.path("log"), &[]);
    assert_has(line(&printed, "re-execution"), &["not checked", "not asked for (--reexecute)"]);
    let wanted = "verdict: VERIFIED: all that was asked for; not asked for: re-execution\nnext: ";
    assert_has(&printed, &[wanted]);
    assert_eq!(code, Some(0));
}

#[test]
fn the_next_command_can_be_pasted_and_believes_the_same() {
    let place = Place::honest();
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let log = elsewhere.path().join("it's a log");
    for (name, bytes) in logs::public_files(&place.path("log")) {
        let path = log.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a copy");
    }
    let (_, printed) = place.audit(&log, &["--held", "log/checkpoint"]);
    let line = printed.lines().find_map(|line| line.strip_prefix("next: ")).expect("what is next");
    assert_has(line, &[" --key log.vkey --held log/checkpoint --reexecute"]);
    let pasted = line.replacen("arena", &format!("'{ARENA}'"), 1);
    let ended = Command::new("sh")
        .current_dir(place.folder.path())
        .args(["-c", &pasted])
        .env("NO_COLOR", "1")
        .output()
        .expect("a shell");
    assert_has(&self::printed(&ended), &["re-executed all 120 matches", "VERIFIED: all 18 steps"]);
}

#[test]
fn a_sample_says_what_fraud_it_would_have_shown() {
    let place = Place::honest();
    let (code, printed) = place.audit(&place.path("log"), &["--reexecute", "50"]);
    let wanted = "re-executed 50 of 120 matches: had 0.1 % of matches been forged, this would \
                  have shown it with probability 4 %";
    assert_has(line(&printed, "re-execution"), &["verified", wanted]);
    let covered = "VERIFIED: all 18 steps; re-execution covered 50 of 120 matches\nnext: ";
    assert_has(&printed, &[covered]);
    assert_eq!(code, Some(0));
    let (code, printed) = place.audit(&place.path("log"), &["--reexecute", "top"]);
    assert_has(line(&printed, "re-execution"), &["verified", "every one of"]);
    assert_has(&printed, &["VERIFIED: all 18 steps; re-execution covered ", " of 120 matches\n"]);
    assert_eq!(code, Some(0));
}

#[test]
fn nobody_is_believed_unasked_and_the_log_s_own_key_only_with_a_note() {
    let place = Place::honest();
    let refused = place.arena(&["audit", "log"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_has(&complaint(&refused), &["neither `--key` nor `--policy`", "--key log/log.vkey"]);
    assert_eq!(printed(&refused), "");
    let own = place.arena(&["audit", "log", "--key", "log/log.vkey"]);
    assert_eq!(own.status.code(), Some(0));
    assert_has(&complaint(&own), &["not who made it"]);
}

#[test]
fn another_key_or_folder_is_told_from_a_bad_log() {
    let place = Place::honest();
    let key = arena_log::key::SigningKey::from_seed([9; 32]);
    let vkey = key.vkey("arena.local/audited/11").expect("a sound name").to_string();
    let other = place.arena(&["audit", "log", "--key", &vkey]);
    assert_eq!(other.status.code(), Some(1));
    assert_has(line(&printed(&other), "checkpoint"), &["FAILED"]);
    let nowhere = place.arena(&["audit", "nowhere", "--key", &vkey]);
    assert_eq!(nowhere.status.code(), Some(3), "{}", complaint(&nowhere));
    let no_log = place.arena(&["audit", ".", "--key", &vkey]);
    assert_eq!(no_log.status.code(), Some(3), "{}", complaint(&no_log));
    for (args, code) in [
        (["audit", "log", "--key", "not-a-key"], 2),
        (["audit", "log", "--policy", "t.toml"], 2),
        (["audit", "log", "--policy", "nowhere"], 2),
    ] {
        let ended = place.arena(&args);
        assert_eq!(ended.status.code(), Some(code), "{}", complaint(&ended));
    }
}

#[test]
fn the_json_says_what_the_lines_say() {
    let place = Place::honest();
    let args = ["audit", "log", "--key", "log.vkey", "--reexecute", "--json"];
    let ended = place.arena(&args);
    let value: Value = serde_json::from_str(&printed(&ended)).expect("one JSON document");
    assert_eq!(value["verified"], true);
    let steps = value["steps"].as_array().expect("a list of steps");
    assert_eq!(steps.len(), 18);
    assert!(steps.iter().all(|step| step["verdict"] == "verified"), "{steps:#?}");
    assert_eq!(value["head"]["size"], 123);
    assert!(value["limits"].as_array().is_some_and(|limits| !limits.is_empty()));
    // The items are generated, so they were checked though nobody asked for it.
    assert_eq!(value["not_asked_for"], json!([]));
    let voids = value["voids"].as_array().expect("a list of agents");
    assert!(voids.len() > 1 && voids.iter().all(|of| of["voided"] == 0), "{voids:#?}");
    let extent = &value["reexecution"];
    assert_eq!((&extent["chosen"], &extent["matches"]), (&json!("all"), &json!(120)));
    assert_eq!(extent["detection_probability"], Value::Null);
}

#[test]
fn the_json_of_a_sample_has_its_probability_as_a_number() {
    let place = Place::honest();
    let ended = place.arena(&["audit", "log", "--key", "log.vkey", "--reexecute", "50", "--json"]);
    let value: Value = serde_json::from_str(&printed(&ended)).expect("one JSON document");
    let extent = &value["reexecution"];
    assert_eq!((&extent["matches"], &extent["scheduled_matches"]), (&json!(50), &json!(120)));
    assert_eq!(extent["fraud_share"], json!(0.001));
    let probability = extent["detection_probability"].as_f64().expect("a number");
    assert!((probability - 0.048_79).abs() < 1e-4, "{probability}");
    let unasked = place.arena(&["audit", "log", "--key", "log.vkey", "--json"]);
    let value: Value = serde_json::from_str(&printed(&unasked)).expect("one JSON document");
    assert_eq!(value["not_asked_for"], json!(["re-execution"]));
    assert_eq!(value["reexecution"], Value::Null);
}

#[test]
fn a_flag_that_would_have_no_effect_is_refused() {
    let place = Place::honest();
    let folder = tempfile::tempdir().expect("a folder");
    let product = r#"[{"title": "Kettle", "category": "toys", "description": "",
        "list_price": "$9.00", "current_price": "$8.00", "average_price": "$8.00",
        "highest_price": "$9.00", "lowest_price": "$5.00", "link": "https://example.org/1",
        "amazon_link": "https://www.amazon.com/dp/1"}]"#;
    std::fs::write(folder.path().join("toys.json"), product).expect("a file");
    let catalog = folder.path().display().to_string();
    for (more, said) in [
        (["--catalog", &catalog], "the tournament's items are generated"),
        (["--workers", "2"], "--reexecute"),
    ] {
        let ended = place.arena(&[&["audit", "log", "--key", "log.vkey"], &more[..]].concat());
        assert_eq!(ended.status.code(), Some(2), "{}", complaint(&ended));
        assert_has(&complaint(&ended), &[said]);
    }
}

#[test]
fn matches_with_a_model_are_run_again_without_it() {
    let place = Place::llm();
    let (code, printed) = place.audit(&place.path("log"), &["--reexecute"]);
    let pieces = ["verified", "re-executed all 1,120 matches", "models were not asked"];
    assert_has(line(&printed, "re-execution"), &pieces);
    assert_eq!(code, Some(0), "{printed}");
}

/// Writes a forged log and audits it without and with running the agents again. The first audit
/// must find nothing: it is what makes the second one worth its time.
#[track_caller]
fn assert_only_reexecution_finds(place: &Place, change: &dyn Fn(&mut Forgery), pieces: &[&str]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("forged");
    let mut forgery = Forgery::of(&place.path("log"));
    change(&mut forgery);
    forgery.write(&log);
    let (code, printed) = place.audit(&log, &[]);
    assert_eq!(code, Some(0), "found without running anything again:\n{printed}");
    let (code, printed) = place.audit(&log, &["--reexecute"]);
    assert_has(line(&printed, "re-execution"), &["FAILED"]);
    assert_has(&printed, &["verdict: FAILED: re-execution\n"]);
    assert_has(&printed, pieces);
    assert_eq!(code, Some(1));
}

#[test]
fn a_log_signed_anew_without_a_change_is_the_same_log() {
    let place = Place::honest();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("again");
    Forgery::of(&place.path("log")).write(&log);
    logs::assert_same(&log, &place.path("log"));
}

#[test]
fn a_changed_note_is_found_by_running_the_agent_again() {
    let change = |forgery: &mut Forgery| {
        forgery.records[17].usage[0].trace.push("what was never thought".to_owned());
    };
    let pieces = ["entry 18: run again: buyer.trace", "    found     ", "    expected  "];
    assert_only_reexecution_finds(Place::honest(), &change, &pieces);
}

#[test]
fn changed_talk_is_found_by_running_the_agent_again() {
    let change = |forgery: &mut Forgery| {
        let turns = forgery.records.iter_mut().flat_map(|record| &mut record.turns);
        let mut talks = turns.map(|turn| &mut turn.talk).filter(|talk| talk.is_empty());
        talks.next().expect("a silent turn").push_str("well");
    };
    let pieces = [", talk", "    found     \"well\"\n    expected  \"\"\n"];
    assert_only_reexecution_finds(Place::honest(), &change, &pieces);
}

#[test]
fn a_changed_reply_of_a_model_is_found_by_running_the_agent_again() {
    let change = |forgery: &mut Forgery| {
        let usages = forgery.records.iter_mut().flat_map(|record| &mut record.usage);
        let mut calls = usages.flat_map(|usage| &mut usage.model_calls);
        calls.next().expect("a call").text = "I accept any price.".to_owned();
    };
    assert_only_reexecution_finds(Place::llm(), &change, &["run again: "]);
}

#[test]
fn a_component_that_never_played_is_found_by_running_it() {
    let change = |forgery: &mut Forgery| {
        let other = arena_agents::find("boulware").expect("a built-in agent").component;
        let is_catalog = |blob: &Vec<u8>| Hash::of(blob).0 == forgery.announcement.catalog_sha256;
        let catalog = forgery.blobs.iter().find(|blob| is_catalog(blob)).expect("it").clone();
        let kept = forgery.announcement.agents[1..].iter().map(|agent| agent.component_sha256);
        let kept: Vec<[u8; 32]> = kept.collect();
        forgery.blobs.retain(|blob| kept.contains(&Hash::of(blob).0));
        forgery.blobs.extend([catalog, other.to_vec()]);
        forgery.announcement.agents[0].component_sha256 = Hash::of(other).0;
        // The tables name components by their hash.
        let was = Forgery::of(&Place::honest().path("log")).announcement.agents[0].component_sha256;
        let results = String::from_utf8(forgery.results.clone()).expect("JSON");
        let results = results.replace(&hex(&was), &hex(&Hash::of(other).0));
        forgery.results = results.into_bytes();
    };
    assert_only_reexecution_finds(Place::honest(), &change, &["run again: "]);
}

#[test]
fn a_log_of_another_engine_is_not_run_again_and_the_line_is_named() {
    let place = Place::honest();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("forged");
    let mut forgery = Forgery::of(&place.path("log"));
    let engine = forgery.announcement.engine.replace("host-call-fuel=", "host-call-fuel=9");
    forgery.announcement.engine = engine;
    forgery.write(&log);
    let (code, printed) = place.audit(&log, &["--reexecute"]);
    let pieces = ["not checked", "`host-call-fuel=91000`", "`host-call-fuel=1000`"];
    assert_has(line(&printed, "re-execution"), &pieces);
    assert_has(&printed, &["verdict: NOT VERIFIED: could not be checked: re-execution\n"]);
    assert_eq!(code, Some(1));
    let (code, _) = place.audit(&log, &[]);
    assert_eq!(code, Some(0), "nobody asked to run it again");
}

#[test]
fn a_model_that_is_not_where_it_is_said_to_be_is_told_before_the_audit() {
    let place = Place::honest();
    let log = place.path("log");
    let ask = |models: &[&str]| {
        let log = log.to_str().expect("a plain path");
        let ended =
            place.arena(&[&["audit", log, "--key", "log.vkey", "--rescore"], models].concat());
        assert_eq!(printed(&ended), "", "nothing was audited");
        (ended.status.code(), complaint(&ended))
    };
    let (code, said) = ask(&["--model", "small=./missing.gguf"]);
    assert_has(&said, &["cannot load the model `./missing.gguf`", "No such file"]);
    assert_eq!(code, Some(3));
    let (code, said) = ask(&["--model", "small=no-such-name"]);
    assert_has(&said, &["cannot find the model `no-such-name`", "a path has a slash in it"]);
    assert_eq!(code, Some(2));
}

#[test]
fn a_log_that_is_still_played_is_never_called_verified() {
    let place = Place::honest();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("running");
    Forgery::of(&place.path("log")).write_unfinished(&log, 12);
    let (code, printed) = place.audit(&log, &["--reexecute"]);
    assert_eq!(code, Some(1), "{printed}");
    assert_has(line(&printed, "re-execution"), &["not checked"]);
    assert_has(line(&printed, "tree"), &["verified"]);
    assert!(!printed.contains("verdict: VERIFIED"), "{printed}");
}

#[test]
fn two_stories_of_one_log_are_shown_with_both_heads_in_full() {
    let place = Place::honest();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("other");
    let mut forgery = Forgery::of(&place.path("log"));
    forgery.records[0].usage[0].trace.push("another story".to_owned());
    forgery.write(&log);
    let other = log.to_str().expect("a plain path");
    let ended = place.arena(&["audit", "diff", "log", other, "--key", "log.vkey"]);
    let told = printed(&ended);
    assert_has(&told, &["verdict: EQUIVOCATION"]);
    for view in [&place.path("log"), &log] {
        let head = std::fs::read_to_string(view.join("checkpoint")).expect("a head");
        assert_has(&told, &[&head]);
    }
    assert_eq!(ended.status.code(), Some(1));

    // Of different sizes, the entries of the larger one tell.
    let earlier = log.join("checkpoints/122");
    let earlier = earlier.to_str().expect("a plain path");
    for pair in [["log", earlier], [earlier, "log"]] {
        let ended = place.arena(&[&["audit", "diff"], &pair[..], &["--key", "log.vkey"]].concat());
        assert_has(&printed(&ended), &["verdict: EQUIVOCATION", "at 122 entries"]);
        assert_eq!(ended.status.code(), Some(1));
    }
}

#[test]
fn views_that_agree_or_cannot_be_compared_are_told_apart() {
    let place = Place::honest();
    for (a, b, verdict, code) in [
        ("log", "log", "verdict: SAME", 0),
        ("log/checkpoints/1", "log", "verdict: CONSISTENT", 0),
        ("log", "log/checkpoints/122", "verdict: CONSISTENT", 0),
        ("log/checkpoints/1", "log/checkpoints/122", "verdict: NOT CHECKED", 1),
        ("log/results.json", "log", "not comparable: the first head", 1),
    ] {
        let ended = place.arena(&["audit", "diff", a, b, "--key", "log.vkey"]);
        assert_has(&printed(&ended), &[verdict]);
        assert_eq!(ended.status.code(), Some(code), "{a} {b}");
    }
}
