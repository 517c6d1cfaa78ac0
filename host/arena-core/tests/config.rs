//! Tournament files that are accepted, and what holds for every file.

use arena_core::config::limits::{
    MATCH_BYTES_MAX, METRIC_NAME_BYTES_MAX, METRICS_MAX, MODEL_REPLY_BYTES_MAX, MatchShape,
};
use arena_core::config::{
    AgentConfig, CONFIG_BYTES_MAX, CatalogConfig, CatalogKind, ComponentSource, HorizonConfig,
    Limits, LogConfig, ModelConfig, ModelSource, NAME_BYTES_MAX, OpenerConfig, Roles, RulesConfig,
    ScheduleKind, Split, TournamentConfig, Training, is_origin,
};
use arena_core::entry::TournamentId;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::scenario::{Horizon, Regulation, Role, RuleSet};
use arena_core::seat::{
    CallTokens, ModelCall, SampledToken, Sampling, TOP_TOKENS_MAX, TokenScore, Usage,
};
use arena_core::transcript::Transcript;
use arena_core::turn::{Belief, Move};
use proptest::prelude::*;

const PLAIN: &str = r#"
name = "plain"
[catalog]
kind = "synthetic"
items = 10
[[agents]]
name = "a"
component = "builtin:linear"
[[agents]]
name = "b"
component = "agents/b.wasm"
"#;

const FULL: &str = r#"
name = "every-key_1.0"
seed = 18446744073709551615
schedule = "gauntlet"
self_play = true
repetitions = 3
scenario_group = 3
roles = "both"

[rules]
set = "standard"
regulation = { buyer = "penalise", seller = "refuse" }
retries = 5
opener = "seller"
horizon = { mean_turns = 20, max_turns = 60 }

[catalog]
kind = "amazon-history-price"
folder = "../products"
budget_factor = [0.4, 1.0]
split = "test"
sample = 100

[limits]
fuel_start = 1
fuel_turn = 2
fuel_match = 3
memory_bytes = 65536
table_elements = 5
talk_bytes = 6
trace_bytes = 7
host_calls = 8
handles = 9
lifted_bytes = 100
model_calls = 11
model_input_tokens = 12
model_output_tokens = 13
model_calls_turn = 10
model_output_tokens_turn = 9

[log]
origin = "arena.example/2027-spring"
checkpoint_every = 512

[[models]]
name = "small"
script = "scripts/small.toml"

[[agents]]
name = "new"
component = "new.wasm"
params = "beta=2"
candidate = true
models = ["small"]
training = true
submission = "signed/new.txt"

[[agents]]
name = "old"
component = "builtin:old"
"#;

fn parse(text: &str) -> TournamentConfig {
    TournamentConfig::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn catalog_of(table: &str) -> CatalogConfig {
    let plain = "kind = \"synthetic\"\nitems = 10\n";
    parse(&PLAIN.replace(plain, table)).catalog
}

fn limits_of_full() -> Limits {
    Limits {
        fuel_start_max: 1,
        fuel_turn_max: 2,
        fuel_match_max: 3,
        memory_bytes_max: 65_536,
        table_elements_max: 5,
        talk_bytes_max: 6,
        trace_bytes_max: 7,
        host_calls_max: 8,
        handles_max: 9,
        lifted_bytes_max: 100,
        model_calls_max: 11,
        model_input_tokens_max: 12,
        model_output_tokens_max: 13,
        model_calls_turn_max: 10,
        model_output_tokens_turn_max: 9,
    }
}

#[test]
fn an_agent_is_told_that_it_is_trained_only_where_the_file_says_so() {
    let training = |value: &str| {
        let agent = "[[agents]]\nname = \"a\"\ncomponent = \"builtin:linear\"\n";
        let other = "[[agents]]\nname = \"b\"\ncomponent = \"builtin:linear\"\n";
        let catalog = "name = \"t\"\n[catalog]\nkind = \"synthetic\"\nitems = 1\n";
        let text = format!("{catalog}{other}{agent}training = {value}\n");
        TournamentConfig::parse(&text).map(|config| config.agents[1].training)
    };
    assert_eq!(training("false"), Ok(Training::None));
    assert_eq!(training("true"), Ok(Training::Evaluate));
    assert_eq!(training("\"train\""), Ok(Training::Train));
    let error = training("\"trian\"").expect_err("no such mode").to_string();
    assert!(error.ends_with("unknown value `trian`\n  hint: did you mean `train`?"), "{error}");
}

#[test]
fn candidates_may_take_one_role_only() {
    let gauntlet = "name = \"g\"\nschedule = \"gauntlet\"\nroles = \"ROLES\"\n\
                    [catalog]\nkind = \"synthetic\"\nitems = 1\n\
                    [[agents]]\nname = \"new\"\ncomponent = \"builtin:linear\"\ncandidate = true\n\
                    [[agents]]\nname = \"old\"\ncomponent = \"builtin:linear\"\n";
    for (word, roles, of_new, of_old) in [
        ("both", Roles::Both, [true, true], [true, true]),
        ("candidates-buy", Roles::CandidatesBuy, [true, false], [false, true]),
        ("candidates-sell", Roles::CandidatesSell, [false, true], [true, false]),
    ] {
        let config = parse(&gauntlet.replace("ROLES", word));
        assert_eq!(config.roles, roles);
        let found = config.agents.iter().map(|agent| config.roles_of(agent));
        assert_eq!(found.collect::<Vec<_>>(), [of_new, of_old], "{word}");
    }
    assert_eq!(parse(PLAIN).roles, Roles::Both);
    assert_eq!(parse(PLAIN).scenario_group, 1);
}

#[test]
fn every_key_reaches_its_field() {
    let expected = TournamentConfig {
        name: "every-key_1.0".to_owned(),
        seed: Some(u64::MAX),
        beacon_round: None,
        log: LogConfig {
            origin: Some("arena.example/2027-spring".to_owned()),
            checkpoint_every: 512,
        },
        schedule: ScheduleKind::Gauntlet,
        roles: Roles::Both,
        self_play: true,
        repetitions: 3,
        scenario_group: 3,
        rules: RulesConfig {
            set: RuleSet::Standard,
            regulation: [Regulation::Penalise, Regulation::Refuse],
            retries: 5,
            opener: OpenerConfig::Seller,
            horizon: HorizonConfig::Geometric { mean_turns: 20, max_turns: 60 },
        },
        catalog: CatalogConfig {
            kind: CatalogKind::AmazonHistoryPrice {
                folder: "../products".to_owned(),
                budget_factor_milli: [400, 1_000],
            },
            split: Split::Test,
            sample: Some(100),
        },
        limits: limits_of_full(),
        models: vec![ModelConfig {
            name: "small".to_owned(),
            source: ModelSource::Script("scripts/small.toml".to_owned()),
        }],
        agents: vec![
            AgentConfig {
                name: "new".to_owned(),
                component: ComponentSource::File("new.wasm".to_owned()),
                params: "beta=2".to_owned(),
                candidate: true,
                models: vec!["small".to_owned()],
                training: Training::Evaluate,
                submission: Some("signed/new.txt".to_owned()),
            },
            AgentConfig {
                name: "old".to_owned(),
                component: ComponentSource::Builtin("old".to_owned()),
                params: String::new(),
                candidate: false,
                models: Vec::new(),
                training: Training::None,
                submission: None,
            },
        ],
    };
    assert_eq!(parse(FULL), expected);
}

#[test]
fn a_plain_file_gets_the_defaults_of_the_standard_rules() {
    let config = parse(PLAIN);
    assert_eq!((config.seed, config.beacon_round), (None, None), "draws are committed");
    assert_eq!(config.log, LogConfig { origin: None, checkpoint_every: 4_096 });
    assert_eq!((config.repetitions, config.self_play), (1, false));
    assert_eq!(config.schedule, ScheduleKind::RoundRobin);
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.models, []);
    assert_eq!(
        config.rules,
        RulesConfig {
            set: RuleSet::Standard,
            regulation: [Regulation::Refuse; 2],
            retries: 2,
            opener: OpenerConfig::Drawn,
            horizon: HorizonConfig::Fixed { turns: 20 },
        }
    );
    let kind = CatalogKind::Synthetic { items: 10, infeasible_milli: 150 };
    assert_eq!(config.catalog, CatalogConfig { kind, split: Split::All, sample: None });
}

#[test]
fn committed_draws_may_name_a_round_of_the_beacon() {
    let round = |text: &str| parse(&format!("{PLAIN}{text}")).beacon_round;
    assert_eq!(round("[draws]\nbeacon_round = 1\n"), Some(1));
    assert_eq!(round("[draws]\nbeacon_round = 18446744073709551615\n"), Some(u64::MAX));
    assert_eq!(round("[draws]\n"), None);
}

#[test]
fn heads_are_signed_at_multiples_of_whole_tiles() {
    let log = |text: &str| parse(&format!("{PLAIN}[log]\n{text}\n")).log;
    for every in [256, 512, 1 << 20] {
        assert_eq!(log(&format!("checkpoint_every = {every}")).checkpoint_every, every);
    }
    let longest = "o".repeat(255);
    for origin in ["a", "arena.example/2027-spring", "x!\"#$%&'()*,-./:;<=>?@[\\]^_`{|}~", &longest]
    {
        assert!(is_origin(origin), "{origin}");
        assert_eq!(log(&format!("origin = '''{origin}'''")).origin.as_deref(), Some(origin));
    }
}

#[test]
fn a_turn_may_use_all_that_a_match_may_of_models_unless_it_is_told_otherwise() {
    let text = format!("{PLAIN}\n[limits]\nmodel_calls = 9\nmodel_output_tokens = 70\n");
    let limits = parse(&text).limits;
    assert_eq!((limits.model_calls_turn_max, limits.model_output_tokens_turn_max), (9, 70));
    let limits = parse(&format!("{text}model_calls_turn = 2\n")).limits;
    assert_eq!((limits.model_calls_turn_max, limits.model_output_tokens_turn_max), (2, 70));
}

#[test]
fn an_empty_rules_table_changes_nothing() {
    assert_eq!(parse(&format!("{PLAIN}[rules]\n")), parse(PLAIN));
    assert_eq!(parse(&format!("{PLAIN}[rules]\nregulation = {{}}\n")), parse(PLAIN));
}

#[test]
fn the_papers_rules_fix_opener_and_turns_and_may_be_told_so() {
    let expected = RulesConfig {
        set: RuleSet::AmazonHistoryPrice,
        regulation: [Regulation::Penalise, Regulation::Refuse],
        retries: 2,
        opener: OpenerConfig::Buyer,
        horizon: HorizonConfig::Fixed { turns: 12 },
    };
    let set = "[rules]\nset = \"amazon-history-price\"\n";
    assert_eq!(parse(&format!("{PLAIN}{set}")).rules, expected);
    let same = format!("{PLAIN}{set}opener = \"buyer\"\nhorizon = {{ turns = 12 }}\n");
    assert_eq!(parse(&same).rules, expected);
    let regulated = format!("{PLAIN}{set}regulation.buyer = \"allow\"\n");
    assert_eq!(parse(&regulated).rules.regulation, [Regulation::Allow, Regulation::Refuse]);
}

#[test]
fn budget_factors_are_kept_in_thousandths() {
    for (written, expected) in [
        ("0.8", [800, 800]),
        ("0.800", [800, 800]),
        ("8e-1", [800, 800]),
        ("1", [1_000, 1_000]),
        ("0.001", [1, 1]),
        ("[0.4, 1]", [400, 1_000]),
        ("[0.333, 0.334]", [333, 334]),
        ("[0.7, 0.7]", [700, 700]),
        ("2.0", [2_000, 2_000]),
    ] {
        let table =
            format!("kind = \"amazon-history-price\"\nfolder = \"p\"\nbudget_factor = {written}\n");
        let CatalogKind::AmazonHistoryPrice { budget_factor_milli, .. } = catalog_of(&table).kind
        else {
            panic!("the kind is given");
        };
        assert_eq!(budget_factor_milli, expected, "{written}");
    }
}

#[test]
fn every_share_of_three_decimals_is_read_exactly() {
    for milli in 0..=1_000 {
        let written = format!("{}.{:03}", milli / 1_000, milli % 1_000);
        let table = format!("kind = 'synthetic'\nitems = 1\ninfeasible_share = {written}\n");
        let expected = CatalogKind::Synthetic { items: 1, infeasible_milli: milli };
        assert_eq!(catalog_of(&table).kind, expected, "{written}");
    }
}

#[test]
fn a_uniform_catalog_has_prices_with_dollar_signs() {
    let table = "kind = 'uniform'\nitems = 7\nlow = '$0.00'\nhigh = '$1,000.50'\n";
    let kind = CatalogKind::Uniform { items: 7, low: Price(0), high: Price(100_050) };
    assert_eq!(catalog_of(table).kind, kind);
}

#[test]
fn one_agent_may_play_itself() {
    let alone = PLAIN.split("[[agents]]\nname = \"b\"").next().expect("a first part");
    assert!(TournamentConfig::parse(alone).is_err());
    assert_eq!(parse(&format!("self_play = true{alone}")).agents.len(), 1);
}

#[test]
fn a_thousand_agents_are_accepted_and_one_more_is_not() {
    let agents = |count: usize| {
        let agent = |number| format!("[[agents]]\nname = \"{number}\"\ncomponent = \"x.wasm\"\n");
        let list: String = (0..count).map(agent).collect();
        format!("name = 'many'\ncatalog = {{ kind = 'synthetic', items = 1 }}\n{list}")
    };
    assert_eq!(parse(&agents(1_000)).agents.len(), 1_000);
    let error = TournamentConfig::parse(&agents(1_001)).expect_err("one too many");
    assert_eq!(error.to_string(), "line 3003, column 1: `agents[1000]`: more than `1000` agents");
}

#[test]
fn a_file_that_the_log_could_not_hold_is_refused() {
    let padded = format!("{PLAIN}#{}", " ".repeat(CONFIG_BYTES_MAX));
    let error = TournamentConfig::parse(&padded).expect_err("too long");
    let expected = format!(
        "line 1, column 1: the file has `{}` bytes, at most `1048576` are read",
        padded.len()
    );
    assert_eq!(error.to_string(), expected);
    let longest = &padded[..CONFIG_BYTES_MAX];
    assert_eq!(parse(longest), parse(PLAIN));
}

#[test]
fn default_limits_fit_the_log_at_any_number_of_turns() {
    let shape = MatchShape { turn_limit: 1_000, retries: 16, models: true, training: true };
    assert!(Limits::default().match_bytes_bound(shape) <= MATCH_BYTES_MAX);
}

fn token_of_scores() -> SampledToken {
    let score = TokenScore { id: u32::MAX, logprob_micro: i32::MIN };
    SampledToken {
        id: u32::MAX,
        logprob_micro: i32::MIN,
        sampled_logprob_micro: i32::MIN,
        top: vec![score; TOP_TOKENS_MAX],
    }
}

/// The largest record that limits and shape allow.
fn largest_match(limits: &Limits, shape: MatchShape) -> MatchRecord {
    let price = Price(u32::MAX);
    let accept = Move::Accept(Some(price));
    let attempts = shape.retries as usize + 1;
    let turn = TurnRecord {
        by: Role::Seller,
        refused: vec![accept; attempts],
        action: accept,
        talk: "t".repeat(limits.talk_bytes_max as usize),
        belief: Some(Belief { reserve: price, spread: price }),
    };
    let acts = (shape.turn_limit as usize + 1) * attempts;
    let call = ModelCall {
        act_index: 0,
        model: "m".repeat(NAME_BYTES_MAX),
        request_sha256: [0; 32],
        sampling: Sampling::GREEDY,
        is_grammar_bound: false,
        text: "r".repeat(MODEL_REPLY_BYTES_MAX as usize),
        finish_reason: 0,
        input_tokens: 0,
        output_tokens: 0,
        weight_milli: Some(1_000),
        tokens: Some(CallTokens { reused: 0, prompt: vec![], output: vec![] }),
    };
    // Notes of one byte cost the most; empty ones fill the rest of the host calls.
    let mut trace = vec!["n".repeat(limits.trace_bytes_max as usize)];
    trace.resize(limits.host_calls_max as usize, String::new());
    let mut calls = vec![call; if shape.models { limits.model_calls_max as usize } else { 0 }];
    if let Some(tokens) = calls.first_mut().and_then(|call| call.tokens.as_mut()) {
        tokens.prompt = vec![u32::MAX; limits.model_input_tokens_max as usize];
        tokens.output = vec![token_of_scores(); limits.model_output_tokens_max as usize];
    }
    let metric = ("m".repeat(METRIC_NAME_BYTES_MAX as usize), i32::MIN);
    let usage = |fuel_per_act| Usage {
        fuel_per_act,
        trace: trace.clone(),
        trace_cut: true,
        model_calls: calls.clone(),
        metrics: vec![metric.clone(); if shape.training { METRICS_MAX as usize } else { 0 }],
    };
    MatchRecord {
        pair_index: u64::MAX,
        leg: 1,
        agents: [u16::MAX; 2],
        item_index: u32::MAX,
        repetition: u32::MAX,
        list_price: price,
        budget: price,
        cost: price,
        opener: Role::Seller,
        horizon: Horizon { turn_limit: shape.turn_limit, hidden: true },
        seeds: [u64::MAX; 2],
        turns: vec![turn; shape.turn_limit as usize],
        unfinished: vec![accept; attempts],
        outcome: Outcome::Violated { by: Role::Seller, action: accept },
        usage: [usage(vec![u64::MAX; acts]), usage(Vec::new())],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_match_is_larger_than_its_bound(
        (turn_limit, retries) in (1_u32..30, 0_u32..5),
        (models, training) in any::<(bool, bool)>(),
        (talk, trace, host_calls, calls) in (0_u32..300, 0_u32..300, 1_u32..50, 0_u32..4),
        (input, output) in (0_u32..5_000, 0_u32..500),
    ) {
        let limits = Limits {
            talk_bytes_max: talk,
            trace_bytes_max: trace,
            host_calls_max: host_calls,
            model_calls_max: calls,
            model_input_tokens_max: input,
            model_output_tokens_max: output,
            ..Limits::default()
        };
        let shape = MatchShape { turn_limit, retries, models, training };
        let record = largest_match(&limits, shape);
        let bound = limits.match_bytes_bound(shape);
        let transcript = Transcript { tournament: TournamentId([0; 32]), nonce: [0; 32], record };
        let bytes = transcript.encode().len() as u64;
        prop_assert!(bytes <= bound, "{bytes} bytes, bound {bound}");
        prop_assert!(bound <= bytes + bytes / 4 + 256, "{bytes} bytes, loose bound {bound}");
    }

    #[test]
    fn any_text_gives_a_config_or_a_place(text in "[ -~\n\"'\\[\\]={}é\u{0}]{0,80}") {
        if let Err(error) = TournamentConfig::parse(&text) {
            let line = text.split('\n').nth(error.line - 1);
            let line = line.expect("the line exists");
            prop_assert!(error.column <= line.chars().count() + 1);
        }
    }

    #[test]
    fn a_damaged_file_gives_a_config_or_a_place(
        place in 0..FULL.len(),
        cut in 0_usize..40,
        new in "[ -~\n]{0,4}",
    ) {
        let mut text = FULL.to_owned();
        let end = (place + cut).min(text.len());
        text.replace_range(place..end, &new);
        if let Err(error) = TournamentConfig::parse(&text) {
            prop_assert!(text.split('\n').nth(error.line - 1).is_some(), "{error}\n{text}");
            prop_assert!(!error.message.is_empty());
        }
    }
}
