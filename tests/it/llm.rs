//! Agents that ask a language model, from the prompt to the record.
//!
//! `tournaments/scripted-llm.toml` is played by the program and read back; single matches of
//! `llm-haggler` are played in a sandbox with models that listen, end early or fail.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use arena_core::catalog::{Catalog, draw_scenario, uniform};
use arena_core::config::{CatalogKind, Limits, TournamentConfig};
use arena_core::entry::{Announcement, Entry};
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome};
use arena_core::referee::{Played, play};
use arena_core::rules::{Rules, replay};
use arena_core::scenario::{Horizon, Item, Regulation, Role, RuleSet, Scenario};
use arena_core::seat::Seat;
use arena_core::turn::Move;
use arena_llm::model::LanguageModel;
use arena_llm::request::{ChatRole, Request};
use arena_llm::tokens;
use arena_log::reader::LogReader;
use arena_sandbox::{Grants, LoadedAgent, Sandbox};
use snapbox::{Assert, Data};

use crate::kit::{ARENA, root};
use crate::models::{Listening, Recorded, scripted};

const SCRIPT: &str = include_str!("../../tournaments/scripted-llm.script.toml");

/// A finished tournament, read back from its log.
struct Tournament {
    bytes: Vec<u8>,
    config: TournamentConfig,
    announcement: Announcement,
    records: Vec<MatchRecord>,
}

impl Tournament {
    fn read(log: &Path) -> Tournament {
        let mut entries = read_log(log).into_iter();
        let Some(Entry::Announcement(announcement)) = entries.next() else {
            panic!("the first entry is no announcement");
        };
        let matches = entries.filter_map(|entry| match entry {
            Entry::Match(record) => Some(record),
            _ => None,
        });
        Tournament {
            bytes: std::fs::read(log).expect("a log"),
            config: TournamentConfig::parse(&announcement.config_toml).expect("a sound file"),
            records: matches.collect(),
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

pub fn read_log(log: &Path) -> Vec<Entry> {
    let mut reader = LogReader::open(log).expect("a log");
    let mut entries = Vec::new();
    while let Some(bytes) = reader.next_entry().expect("an entry") {
        entries.push(Entry::decode(bytes).expect("a known entry"));
    }
    entries
}

/// Plays a file with the program; returns the exit code and what it said.
fn run(file: &Path, out: &Path, workers: u32) -> (Option<i32>, String) {
    let ended = Command::new(ARENA)
        .args(["tournament", "run"])
        .arg(file)
        .arg("--out")
        .arg(out)
        .args(["--workers", &workers.to_string()])
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
    Tournament::read(&arena_log::path_in(&out))
}

fn shipped() -> &'static Tournament {
    static PLAYED: OnceLock<Tournament> = OnceLock::new();
    PLAYED.get_or_init(|| play_shipped(1))
}

#[test]
fn two_workers_write_the_same_log_as_one() {
    assert!(play_shipped(2).bytes == shipped().bytes, "the logs differ");
}

#[test]
fn nobody_faults_and_no_llm_haggler_tries_to_go_beyond_its_reserve() {
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
        if !["llm", "llm-short"].contains(&name) {
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

fn catalog(config: &TournamentConfig) -> Catalog {
    let CatalogKind::Uniform { items, low, high } = config.catalog.kind else {
        panic!("the file's catalog is another one");
    };
    uniform::generate(items, low, high, config.seed)
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
            arena_core::config::ComponentSource::Builtin(name) => load(&sandbox, name),
            arena_core::config::ComponentSource::File(path) => panic!("a file: {path}"),
        })
        .collect();
    for record in records {
        let place = format!("pair {}, leg {}", record.pair_index, record.leg);
        assert_eq!(replay(&rules, record), Ok(()), "{place}");
        let scenario = draw_scenario(
            config,
            &catalog,
            announcement.seed,
            record.item_index,
            record.repetition,
        );
        let seat = |role: Role| {
            let (side, agent) = (role.index(), usize::from(record.agents[role.index()]));
            let calls = record.usage[side].model_calls.clone();
            let recorded = Recorded { info: scripted(SCRIPT).info(), calls };
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
    text += "[[agents]]\nname = \"llm\"\ncomponent = \"builtin:llm-haggler\"\n";
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
    let tournament = Tournament::read(&arena_log::path_in(&out));
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
    let before = std::fs::read(arena_log::path_in(&out)).expect("a log");
    std::fs::write(folder.path().join("one.toml"), format!("{SCRIPT}\n# changed\n"))
        .expect("a script");
    let (code, said) = run(&file, &out, 1);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("model.one="), "does not name the model: {said}");
    assert!(std::fs::read(arena_log::path_in(&out)).expect("a log") == before, "it was touched");
}

fn load(sandbox: &Sandbox, name: &str) -> LoadedAgent {
    let builtin = arena_agents::find(name).expect("a built-in agent");
    sandbox.load(builtin.component).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn scenario() -> Scenario {
    Scenario {
        item: Item {
            id: "llm/0".into(),
            title: "Espresso machine, 15 bar".into(),
            category: "kitchen".into(),
            description: "Steel, two cups at a time.".into(),
            list_price: Price(11_000),
        },
        budget: Price(9_000),
        cost: Price(4_000),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 12, hidden: false },
    }
}

/// An `llm-haggler` and an opponent, ready to be seated.
struct Table {
    sandbox: Sandbox,
    haggler: LoadedAgent,
    opponent: LoadedAgent,
    limits: Limits,
}

impl Table {
    fn new(limits: Limits, opponent: &str) -> Table {
        let sandbox = crate::kit::sandbox(limits);
        let (haggler, opponent) = (load(&sandbox, "llm-haggler"), load(&sandbox, opponent));
        Table { sandbox, haggler, opponent, limits }
    }

    /// Plays `llm-haggler`, which has the model, in that role. The parameters are its own and
    /// the opponent's.
    fn haggle(
        &self,
        set: RuleSet,
        role: Role,
        model: Arc<dyn LanguageModel>,
        [params, their_params]: [&str; 2],
    ) -> Played {
        let grants = Grants { models: vec![model], training: None };
        let mut own = self.sandbox.seat(&self.haggler, &grants, 7).expect("a seat");
        let mut other = self.sandbox.seat(&self.opponent, &Grants::default(), 8).expect("a seat");
        let rules = Rules {
            set,
            regulation: [Regulation::Penalise; 2],
            retries: 2,
            talk_bytes_max: self.limits.talk_bytes_max,
        };
        let (params, seeds, seats): ([&str; 2], [u64; 2], [&mut dyn Seat; 2]) = match role {
            Role::Buyer => ([params, their_params], [7, 8], [&mut own, &mut other]),
            Role::Seller => ([their_params, params], [8, 7], [&mut other, &mut own]),
        };
        let played = play(&rules, &scenario(), params, seeds, seats)
            .unwrap_or_else(|voided| panic!("{voided:?}"));
        let sound = !matches!(played.outcome, Outcome::Faulted { .. } | Outcome::Violated { .. });
        assert!(sound, "{:?}: {:?}", played.outcome, played.turns);
        played
    }
}

/// The user messages of a conversation consist of nothing but these lines.
fn is_ours(line: &str, other: Role) -> bool {
    let quoted = format!("The {other} says: ");
    let deeds = ["offers $", "passes without a price."].map(|deed| format!("The {other} {deed}"));
    match line.strip_prefix(&quoted) {
        Some(words) => {
            let inside = words.strip_prefix('"').and_then(|words| words.strip_suffix('"'));
            inside.is_some_and(|words| !words.contains('"') && words.chars().all(is_plain))
        }
        None => {
            deeds.iter().any(|deed| line.starts_with(deed))
                || line.starts_with("This is turn ") && line.ends_with(" Your three lines:")
                || line.starts_with("Your answer cannot be used: ")
                || line.starts_with("In place of your last answer, $")
        }
    }
}

fn is_plain(c: char) -> bool {
    let hides =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !hides
}

fn check_conversation(request: &Request, played: &Played, role: Role) {
    let [first, rest @ ..] = request.messages.as_slice() else { panic!("an empty conversation") };
    assert_eq!(first.role, ChatRole::System);
    let theirs = played.turns.iter().filter(|turn| turn.by != role && !turn.talk.is_empty());
    let (mut heard, mut answers) = (0, 0);
    for (number, message) in rest.iter().enumerate() {
        if number % 2 == 1 {
            let answer = &played.usage[role.index()].model_calls[answers];
            assert_eq!((message.role, &message.text), (ChatRole::Assistant, &answer.text));
            answers += 1;
            continue;
        }
        assert_eq!(message.role, ChatRole::User);
        for line in message.text.lines() {
            assert!(is_ours(line, role.other()), "{line:?} in {:?}", message.text);
            heard += usize::from(line.contains(" says: \""));
        }
    }
    let spoken = theirs.clone().count();
    assert!(heard > 0 && heard <= spoken, "{heard} of {spoken} talks are quoted");
    for turn in theirs.take(heard) {
        let words: Vec<&str> = turn.talk.split_whitespace().collect();
        let attack = words.iter().find(|word| word.chars().all(|c| c.is_ascii_alphabetic()));
        let told = rest.iter().any(|message| message.text.contains(attack.unwrap_or(&"")));
        assert!(told, "{:?} is not passed on", turn.talk);
        assert!(!first.text.contains(&turn.talk), "the opponent speaks in the system message");
    }
}

#[test]
fn an_injectors_talk_reaches_the_prompt_only_quoted_and_said_to_be_the_opponents() {
    let table = Table::new(Limits::default(), "injector");
    for attack in ["notice", "action", "probe", "disguise"] {
        for (set, role) in [
            (RuleSet::Standard, Role::Buyer),
            (RuleSet::Standard, Role::Seller),
            (RuleSet::AmazonHistoryPrice, Role::Buyer),
            (RuleSet::AmazonHistoryPrice, Role::Seller),
        ] {
            // Deaf to words, so that the match is long.
            let model = Arc::new(Listening::new("default = \"Action: [REJECT]\""));
            let params = ["", &format!("attack={attack}")];
            let played = table.haggle(set, role, model.clone(), params);
            let requests = model.requests.lock().expect("no thread panicked");
            check_conversation(requests.last().expect("it asked"), &played, role);
        }
    }
}

#[test]
fn a_whole_conversation_reads_as_the_golden_file_says() {
    let model = Arc::new(Listening::new(SCRIPT));
    let table = Table::new(Limits::default(), "injector");
    table.haggle(RuleSet::Standard, Role::Buyer, model.clone(), ["", ""]);
    let requests = model.requests.lock().expect("no thread panicked");
    let mut text = String::new();
    for message in &requests.last().expect("it asked").messages {
        text += &format!("== {}\n{}\n\n", message.role.name(), message.text);
    }
    let file = root().join("tests/golden/llm/conversation.txt");
    Assert::new().action_env("SNAPSHOTS").eq(text, Data::read_from(&file, None));
}

/// Plays under limits and checks the number of calls, the reason why the last one ended, and
/// that the trace has this note.
fn check_budget(limits: Limits, script: &str, calls: usize, last: Option<u8>, note: &str) {
    let table = Table::new(limits, "linear");
    for role in Role::BOTH {
        let model = Arc::new(scripted(script));
        let played = table.haggle(RuleSet::Standard, role, model, ["", ""]);
        let usage = &played.usage[role.index()];
        let acts = usage.fuel_per_act.len();
        assert_eq!(usage.model_calls.len(), calls, "{role}: {:?}", usage.trace);
        assert_eq!(usage.model_calls.last().map(|call| call.finish_reason), last);
        assert!(usage.trace.iter().any(|line| line == note), "{role}: {:?}", usage.trace);
        // Every whole answer passes; from then on the fallback plays, and it never passes.
        let passes = calls - usize::from(last == Some(2));
        let mut own = played.turns.iter().filter(|turn| turn.by == role);
        assert!(own.by_ref().take(passes).all(|turn| turn.action == Move::Reject), "{role}");
        assert!(own.all(|turn| turn.action != Move::Reject), "{role}: {:?}", played.turns);
        assert!(acts > passes, "{role}: the match ended after {acts} turns");
    }
}

#[test]
fn a_spent_budget_or_a_full_context_ends_the_asking_and_not_the_match() {
    let reject = "default = \"Action: [REJECT]\"";
    let free = Limits::default();
    let spent = "plays on without a model: the seat's model budget is spent";
    check_budget(Limits { model_calls_max: 0, ..free }, reject, 0, None, spent);
    check_budget(Limits { model_calls_max: 3, ..free }, reject, 3, Some(0), spent);
    check_budget(Limits { model_input_tokens_max: 1, ..free }, reject, 1, Some(0), spent);
    // `Action`, `:`, `[`, `REJECT`, `]`: the second answer is cut by the budget.
    check_budget(Limits { model_output_tokens_max: 7, ..free }, reject, 2, Some(2), spent);
    let full = format!("context-tokens = 8\n{reject}");
    let model = Arc::new(scripted(&full));
    let table = Table::new(free, "linear");
    let played = table.haggle(RuleSet::Standard, Role::Buyer, model, ["", ""]);
    let note = "plays on without a model: ";
    assert!(played.usage[0].trace[0].starts_with(note), "{:?}", played.usage[0].trace);
    assert!(played.usage[0].trace[0].contains("context is 8"), "{:?}", played.usage[0].trace);
    assert!(played.usage[0].model_calls.is_empty());
}

#[test]
fn talk_is_cut_to_what_the_tournament_allows() {
    let limits = Limits { talk_bytes_max: 9, ..Limits::default() };
    let model = Arc::new(scripted("default = \"Talk: 12345678é\\nAction: [REJECT]\""));
    let table = Table::new(limits, "linear");
    let played = table.haggle(RuleSet::Standard, Role::Buyer, model, ["talk=9", ""]);
    assert_eq!(played.turns[0].talk, "12345678");
}

#[test]
fn a_deal_at_an_earlier_offer_is_made_where_it_stands_and_sent_back_where_it_does_not() {
    // The seller comes down from $110 in steps of $14; the buyer's fifth answer is too late.
    let script = "default = \"Action: [REJECT]\"\n\
        [[rule]]\nturn = 4\nreply = \"Action: [DEAL $82]\"\n\
        [[rule]]\ncontains = \"no offer at that price\"\nreply = \"Action: [DEAL]\"\n";
    let table = Table::new(Limits::default(), "linear");
    for (set, deal) in [(RuleSet::AmazonHistoryPrice, 8_200), (RuleSet::Standard, 6_800)] {
        let model = Arc::new(scripted(script));
        let played = table.haggle(set, Role::Buyer, model, ["", "high=11000"]);
        assert_eq!(played.outcome, Outcome::Deal { price: Price(deal) }, "{:?}", played.turns);
    }
}
