//! A tournament with a language model, played by the program and read back from its log:
//! `tournaments/scripted-llm.toml`, and two small ones.
//!
//! Not here: single matches (`llm_matches`), models that fail (`model_failures`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use arena_core::announcement::Announcement;
use arena_core::catalog::{Catalog, draw_scenario, uniform};
use arena_core::config::{CatalogKind, ComponentSource, TournamentConfig};
use arena_core::record::{MatchRecord, Outcome};
use arena_core::referee::play;
use arena_core::rules::{Rules, replay};
use arena_core::scenario::Role;
use arena_core::seed::Root;
use arena_core::turn::Move;
use arena_llm::model::LanguageModel;
use arena_llm::recorded::Recorded;
use arena_llm::tokens;
use arena_sandbox::{Grants, LoadedAgent, Sandbox};

use crate::kit::{ARENA, root};
use crate::logs;
use crate::models::scripted;

/// The model of the shipped tournament.
pub const SCRIPT: &str = include_str!("../../tournaments/scripted-llm.script.toml");

/// A finished tournament, read back from its log.
struct Tournament {
    files: BTreeMap<PathBuf, Vec<u8>>,
    config: TournamentConfig,
    announcement: Announcement,
    records: Vec<MatchRecord>,
}

impl Tournament {
    fn read(log: &Path) -> Tournament {
        let logs::Log { announcement, records, .. } = logs::read(log);
        Tournament {
            files: logs::public_files(log),
            config: TournamentConfig::parse(&announcement.config_toml).expect("a sound file"),
            records,
            announcement,
        }
    }

    fn name(&self, agent: u16) -> &str {
        &self.announcement.agents[usize::from(agent)].name
    }

    /// Every seat: the agent's name, its role and its record.
    fn seats(&self) -> impl Iterator<Item = (&str, Role, &MatchRecord)> {
        self.records.iter().flat_map(|record| {
            Role::BOTH.map(|role| (self.name(record.agents[role.index()]), role, record))
        })
    }
}

/// Plays a file with the program; returns the exit code and what it said.
fn run(file: &Path, out: &Path, workers: u32) -> (Option<i32>, String) {
    let key = out.with_file_name("key.pem");
    logs::write_key(&key);
    let ended = Command::new(ARENA)
        .args(["tournament", "run"])
        .arg(file)
        .arg("--out")
        .arg(out)
        .args(["--workers", &workers.to_string()])
        .arg("--key")
        .arg(key)
        .output()
        .expect("the program runs");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

fn play_shipped(workers: u32) -> Tournament {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let file = root().join("tournaments/scripted-llm.toml");
    let (code, said) = run(&file, &out, workers);
    assert_eq!(code, Some(0), "{said}");
    Tournament::read(&out)
}

fn shipped() -> &'static Tournament {
    static PLAYED: OnceLock<Tournament> = OnceLock::new();
    PLAYED.get_or_init(|| play_shipped(1))
}

#[test]
fn two_workers_write_the_same_log_as_one() {
    assert!(play_shipped(2).files == shipped().files, "the logs differ");
}

#[test]
fn nobody_faults_and_no_llm_tries_to_go_beyond_its_reserve() {
    for (name, role, record) in shipped().seats() {
        let place = format!("{name} in pair {}, leg {}", record.pair_index, record.leg);
        let bad = matches!(record.outcome, Outcome::Faulted { .. } | Outcome::Violated { .. });
        assert!(!bad, "{place}: {:?}", record.outcome);
        let mut turns = record.turns.iter().filter(|turn| turn.by == role);
        assert!(turns.all(|turn| turn.refused.is_empty()), "{place} was refused");
    }
}

#[test]
fn model_calls_are_on_the_record_of_those_who_have_a_model_and_of_nobody_else() {
    let limits = shipped().config.limits;
    let mut asked = 0;
    for (name, role, record) in shipped().seats() {
        let usage = &record.usage[role.index()];
        if !["llm", "llm-short", "guarded", "narrator"].contains(&name) {
            assert_eq!(usage.model_calls, [], "{name} asked");
            continue;
        }
        let acts = usage.fuel_per_act.len();
        assert!(acts == 0 || !usage.model_calls.is_empty(), "{name} asked nothing");
        assert!(usage.model_calls.len() <= limits.model_calls_max as usize);
        let output: u32 = usage.model_calls.iter().map(|call| call.output_tokens).sum();
        assert!(output <= limits.model_output_tokens_max, "{output} tokens");
        for (number, call) in usage.model_calls.iter().enumerate() {
            assert_eq!(call.model, "scripted");
            assert!((call.act_index as usize) < acts);
            assert!(call.input_tokens > 100, "the system message alone is longer");
            assert_eq!(call.output_tokens, tokens::count(&call.text));
            let others = &usage.model_calls[..number];
            let repeated = others.iter().any(|other| other.request_sha256 == call.request_sha256);
            assert!(!repeated, "two calls of a conversation have one hash");
        }
        asked += usage.model_calls.len();
    }
    assert!(asked > 1_000, "only {asked} calls in the whole tournament");
}

/// Loads a built-in agent.
pub fn load(sandbox: &Sandbox, name: &str) -> LoadedAgent {
    let builtin = arena_agents::find(name).expect("a built-in agent");
    sandbox.load(builtin.component).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns what everything is drawn from in a tournament with a seed.
fn root_of(config: &TournamentConfig) -> Root {
    Root::Seed(config.seed.expect("the file has a seed"))
}

fn catalog(config: &TournamentConfig) -> Catalog {
    let CatalogKind::Uniform { items, low, high } = config.catalog.kind else {
        panic!("the file's catalog is another one");
    };
    uniform::generate(items, low, high, root_of(config))
}

#[test]
fn every_record_can_be_judged_and_executed_again_from_the_recorded_replies() {
    let Tournament { config, announcement, records, .. } = shipped();
    let (rules, catalog) = (Rules::new(&config.rules, &config.limits), catalog(config));
    assert_eq!(catalog.sha256(), announcement.catalog_sha256);
    let sandbox = crate::kit::sandbox(config.limits);
    let agents: Vec<LoadedAgent> = config
        .agents
        .iter()
        .map(|agent| match &agent.component {
            ComponentSource::Builtin(name) => load(&sandbox, name),
            ComponentSource::File(path) => panic!("a file: {path}"),
        })
        .collect();
    for record in records {
        let place = format!("pair {}, leg {}", record.pair_index, record.leg);
        assert_eq!(replay(&rules, record), Ok(()), "{place}");
        let (item, repetition) = (record.item_index, record.repetition);
        let scenario = draw_scenario(config, &catalog, root_of(config), item, repetition);
        let seat = |role: Role| {
            let (side, agent) = (role.index(), usize::from(record.agents[role.index()]));
            let calls = record.usage[side].model_calls.clone();
            let recorded = Recorded::new(scripted(SCRIPT).info(), calls.into());
            let granted = !config.agents[agent].models.is_empty();
            let models = granted.then(|| Arc::new(recorded) as Arc<dyn LanguageModel>);
            let grants = Grants { models: models.into_iter().collect(), training: None };
            sandbox.seat(&agents[agent], &grants, record.seeds[side]).expect("a seat")
        };
        let (mut buyer, mut seller) = (seat(Role::Buyer), seat(Role::Seller));
        let params = record.agents.map(|agent| config.agents[usize::from(agent)].params.as_str());
        let played = play(&rules, &scenario, params, record.seeds, [&mut buyer, &mut seller]);
        let expected = (&record.turns, record.outcome, &record.usage);
        let played = played.unwrap_or_else(|voided| panic!("{place}: {voided:?}"));
        assert_eq!((&played.turns, played.outcome, &played.usage), expected, "{place}");
    }
}

#[test]
fn without_a_grant_the_moves_are_those_of_linear_and_the_trace_says_why() {
    let against = |agent: &str| -> Vec<(u32, u8, Vec<Move>)> {
        let mut games = Vec::new();
        for (name, role, record) in shipped().seats() {
            let other = shipped().name(record.agents[role.other().index()]);
            if name == agent && other == "regulated-seller" {
                let moves = record.turns.iter().map(|turn| turn.action).collect();
                games.push((record.item_index, role.index() as u8, moves));
            }
        }
        games.sort_by_key(|(item, role, _)| (*item, *role));
        games
    };
    assert_eq!(against("llm-ungranted").len(), 40);
    assert_eq!(against("llm-ungranted"), against("linear"));
    let why = "plays without a model: no such model was granted to this seat";
    for (_, role, record) in shipped().seats().filter(|(name, ..)| *name == "llm-ungranted") {
        assert_eq!(record.usage[role.index()].trace, [why]);
    }
}

/// Writes the shipped file's model and two agents into a folder of their own.
fn small_tournament(folder: &Path, models: &[(&str, &str)], granted: &str) -> PathBuf {
    let mut text = "name = \"small\"\nseed = 1\nschedule = \"round-robin\"\n\
        [rules]\nset = \"standard\"\nhorizon = { turns = 6 }\n\
        [catalog]\nkind = \"uniform\"\nitems = 2\nlow = \"10\"\nhigh = \"110\"\n\
        [limits]\nmodel_calls = 8\n\
        [[agents]]\nname = \"linear\"\ncomponent = \"builtin:linear\"\n"
        .to_owned();
    for (name, script) in models {
        text += &format!("[[models]]\nname = \"{name}\"\nscript = \"{name}.toml\"\n");
        std::fs::write(folder.join(format!("{name}.toml")), script).expect("a script");
    }
    text += "[[agents]]\nname = \"llm\"\ncomponent = \"builtin:llm-buyer\"\n";
    text += &format!("models = {granted}\n");
    let file = folder.join("small-tournament.toml");
    std::fs::write(&file, text).expect("a tournament file");
    file
}

#[test]
fn the_first_model_is_the_one_that_the_agent_is_granted_first() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let models = [("one", SCRIPT), ("two", SCRIPT)];
    let file = small_tournament(folder.path(), &models, "[\"two\", \"one\"]");
    let out = folder.path().join("out");
    let (code, said) = run(&file, &out, 1);
    assert_eq!(code, Some(0), "{said}");
    let tournament = Tournament::read(&out);
    let mut calls = tournament.seats().flat_map(|(_, role, record)| {
        record.usage[role.index()].model_calls.iter().map(|call| call.model.as_str())
    });
    assert_eq!(calls.next(), Some("two"));
    assert!(calls.all(|model| model == "two"));
}

#[test]
fn a_log_is_not_gone_on_with_when_a_model_has_changed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = small_tournament(folder.path(), &[("one", SCRIPT)], "[\"one\"]");
    let out = folder.path().join("out");
    assert_eq!(run(&file, &out, 1).0, Some(0));
    let before = logs::public_files(&out);
    std::fs::write(folder.path().join("one.toml"), format!("{SCRIPT}\n# changed\n"))
        .expect("a script");
    let (code, said) = run(&file, &out, 1);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("`models[0].sha256`"), "does not name the model: {said}");
    assert!(logs::public_files(&out) == before, "it was touched");
}

/// Starts a server of OpenAI's protocol that passes every turn, or that is down; returns its
/// address. It serves as long as the test's process.
fn serve(is_up: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The client may be gone.
            let _ = stream.and_then(|stream| pass(stream, is_up));
        }
    });
    format!("http://{address}/v1")
}

fn pass(mut stream: TcpStream, is_up: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut body_bytes = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = line.to_lowercase();
        match length.trim_end().strip_prefix("content-length: ") {
            Some(length) => body_bytes = length.parse().expect("a length"),
            None if length.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; body_bytes];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).expect("JSON");
    assert!(!body.contains("grammar") && !body.contains("min_p"), "{body}");
    let (status, reply) = match is_up {
        false => ("503 Service Unavailable", ""),
        true => (
            "200 OK",
            r#"{"choices": [{"message": {"content": "Talk: Not yet.\nAction: [REJECT]"},
            "finish_reason": "stop"}], "usage": {"prompt_tokens": 90, "completion_tokens": 12}}"#,
        ),
    };
    let length = reply.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{reply}"
    )
}

/// Writes a tournament whose model is behind a server of the kind that a file means by default.
fn served_tournament(folder: &Path, url: &str) -> PathBuf {
    let text = format!(
        "name = \"served\"\nseed = 1\nschedule = \"round-robin\"\n\
         [rules]\nset = \"standard\"\nhorizon = {{ turns = 6 }}\n\
         [catalog]\nkind = \"uniform\"\nitems = 2\nlow = \"10\"\nhigh = \"110\"\n\
         [[models]]\nname = \"large\"\nurl = \"{url}\"\nremote_model = \"any\"\nretries = 0\n\
         [[agents]]\nname = \"linear\"\ncomponent = \"builtin:linear\"\n\
         [[agents]]\nname = \"llm\"\ncomponent = \"builtin:llm-buyer\"\nmodels = [\"large\"]\n\
         [[agents]]\nname = \"bare\"\ncomponent = \"builtin:llm-buyer\"\n"
    );
    let file = folder.join("served.toml");
    std::fs::write(&file, text).expect("a tournament file");
    file
}

#[test]
fn a_server_of_openais_protocol_is_asked_for_what_it_offers_and_its_log_is_executed_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let (code, said) = run(&served_tournament(folder.path(), &serve(true)), &out, 1);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("note: model `large` does not offer grammars, top-k or min-p"), "{said}");
    assert!(said.contains(": requests of `llm` for them are refused"), "{said}");
    assert!(said.contains("note: no language model is lent to `bare`: "), "{said}");
    let tournament = Tournament::read(&out);
    for (_, role, record) in tournament.seats().filter(|(name, ..)| *name == "llm") {
        let mut own = record.turns.iter().filter(|turn| turn.by == role);
        assert!(own.all(|turn| turn.action == Move::Reject), "{:?}", record.turns);
    }
    let audited = Command::new(ARENA)
        .arg("audit")
        .arg(&out)
        .arg("--key")
        .arg(out.join("log.vkey"))
        .arg("--reexecute")
        .output()
        .expect("the program runs");
    let shown = String::from_utf8_lossy(&audited.stdout);
    assert_eq!(audited.status.code(), Some(0), "{shown}");
    assert!(shown.contains("re-executed all"), "{shown}");
}

#[test]
fn a_server_that_is_down_is_named_with_its_model_and_its_address() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = serve(false);
    let (code, said) = run(&served_tournament(folder.path(), &url), &folder.path().join("out"), 1);
    assert_eq!(code, Some(4), "{said}");
    let named = format!("model `large`: `{url}`: answered `503 Service Unavailable`");
    assert!(said.contains(&named), "{said}");
}
