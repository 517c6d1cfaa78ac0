//! The compact buyer with a policy of its own: a new one, which speaks at random, and the teacher
//! that shows one its language.
//!
//! Not here: learning (`arena-train`).

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use arena_core::config::Limits;
use arena_core::fault::Fault;
use arena_core::price::Price;
use arena_core::record::Outcome;
use arena_core::referee::{Played, play};
use arena_core::rules::Rules;
use arena_core::scenario::{Horizon, Item, Regulation, Role, RuleSet, Scenario};
use arena_core::score::reward;
use arena_core::turn::Move;
use arena_llm::model::LanguageModel;
use arena_sandbox::{Grants, Sandbox};
use arena_train::compact::{initialise, vocabulary};
use arena_train::experiment::Shape;
use arena_train::teacher::{TeacherModel, TeacherOptions};
use arena_weights::weights::Weights;

use crate::audit::{complaint, line, printed};
use crate::kit::ARENA;
use crate::llm::load;
use crate::logs;

const SHAPE: Shape =
    Shape { layers: 2, width: 32, heads: 2, kv_heads: 1, feed_forward: 64, context_tokens: 128 };

const TOURNAMENT: &str = r#"
name = "compact"
seed = 5
schedule = "gauntlet"
roles = "candidates-buy"

[rules]
set = "amazon-history-price"

[catalog]
kind = "synthetic"
items = 8

[[models]]
name = "policy"
weights = "./policy"
context = 128

[[agents]]
name = "learner"
component = "builtin:compact-buyer"
models = ["policy"]
candidate = true
training = "train"

[[agents]]
name = "seller"
component = "builtin:parametric-seller"
"#;

fn arena(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(ARENA);
    command.args(args).current_dir(folder).env("NO_COLOR", "1");
    command.output().expect("the program runs")
}

#[test]
fn the_guests_words_and_the_policys_are_the_same() {
    use arena_guest::compact as guest;
    assert_eq!(guest::ARGUMENTS, vocabulary::ARGUMENTS);
    assert_eq!(guest::LEVEL_MAX, vocabulary::LEVEL_MAX);
    let argued = vocabulary::ARGUMENTS.map(|word| format!("offer 1 {word}"));
    assert!(argued.iter().all(|reply| guest::read(reply).is_some()));
}

#[test]
fn a_new_policy_plays_a_tournament_that_audits_and_can_be_executed_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    initialise(&at.join("policy"), &SHAPE, 1).expect("a new model");
    std::fs::write(at.join("t.toml"), TOURNAMENT).expect("a tournament file");
    logs::write_key(&at.join("key.pem"));
    let ran = arena(at, &["tournament", "run", "t.toml", "--out", "log", "--key", "key.pem"]);
    assert_eq!(ran.status.code(), Some(0), "{}", complaint(&ran));

    let log = logs::read(&at.join("log"));
    assert_eq!(log.records.len(), 8);
    let mut faults = 0;
    for record in &log.records {
        let usage = &record.usage[Role::Buyer.index()];
        for call in &usage.model_calls {
            let words = call.text.split_ascii_whitespace().count();
            assert!(words <= 4 && call.tokens.is_some(), "{call:?}");
            assert_eq!(call.sampling.temperature_milli, 1_000);
        }
        let reports = |name: &str| usage.metrics.iter().filter(|(own, _)| own == name).count();
        assert_eq!(reports("argument"), usage.model_calls.len());
        let spoke_wrong = Outcome::Faulted { by: Role::Buyer, fault: Fault::Trap };
        if record.outcome == spoke_wrong {
            faults += 1;
            assert_eq!((reports("invalid"), reward(record, Role::Buyer)), (1, -1.0));
            let note = usage.trace.last().expect("it says why");
            assert!(note.contains("is not in the language"), "{note}");
        }
    }
    assert!(faults >= 4, "a policy at random spoke right in all but {faults} of 8 matches");

    let vkey = logs::key().vkey("arena.local/compact/5").expect("a sound name").to_string();
    let audited = arena(at, &["audit", "log", "--key", &vkey, "--reexecute"]);
    let said = printed(&audited);
    for step in ["usage", "results", "re-execution"] {
        let found = line(&said, step);
        assert!(found.starts_with("  verified "), "{said}{}", complaint(&audited));
    }
}

/// Plays one match of the compact buyer with the teacher as its model.
fn taught(sandbox: &Sandbox, teacher: &Arc<dyn LanguageModel>, seed: u64) -> Played {
    let rules = Rules {
        set: RuleSet::AmazonHistoryPrice,
        regulation: [Regulation::Penalise, Regulation::Refuse],
        retries: 2,
        talk_bytes_max: 1_024,
    };
    let scenario = Scenario {
        item: Item {
            id: "compact/0".into(),
            title: "Kettle".into(),
            category: "kitchen".into(),
            description: String::new(),
            list_price: Price(9_999),
        },
        budget: Price(8_000),
        cost: Price(5_000),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 12, hidden: false },
    };
    let granted = Grants { models: vec![Arc::clone(teacher)], training: None };
    let (buyer, seller) = (load(sandbox, "compact-buyer"), load(sandbox, "parametric-seller"));
    let mut buyer = sandbox.seat(&buyer, &granted, seed).expect("a seat");
    let mut seller = sandbox.seat(&seller, &Grants::default(), seed + 1_000).expect("a seat");
    play(&rules, &scenario, ["", ""], [seed, seed + 1_000], [&mut buyer, &mut seller])
        .unwrap_or_else(|voided| panic!("the host failed: {voided:?}"))
}

#[test]
fn a_teachers_words_become_moves_and_sentences() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("policy");
    initialise(&path, &SHAPE, 1).expect("a new model");
    let weights = Weights::open(&path).expect("a model");
    let options =
        TeacherOptions { argue_milli: 500, explore_milli: 0, ..TeacherOptions::default() };
    let teacher = TeacherModel::new("policy", &weights, options).expect("a teacher");
    let teacher: Arc<dyn LanguageModel> = Arc::new(teacher);
    let sandbox = crate::kit::sandbox(Limits::default());
    let (mut deals, mut argued) = (0, 0);
    for seed in 0..20 {
        let played = taught(&sandbox, &teacher, seed);
        let lost = matches!(played.outcome, Outcome::Faulted { .. } | Outcome::Violated { .. });
        assert!(!lost, "seed {seed}: {:?}", played.outcome);
        deals += u32::from(matches!(played.outcome, Outcome::Deal { .. }));
        for turn in played.turns.iter().filter(|turn| turn.by == Role::Buyer) {
            if let Move::Offer(price) = turn.action {
                let offer = format!("I offer ${}.{:02}.", price.cents() / 100, price.cents() % 100);
                assert!(turn.talk.ends_with(&offer), "{}", turn.talk);
                argued += u32::from(turn.talk.len() > offer.len());
            }
        }
    }
    assert!(deals >= 8, "only {deals} deals");
    assert!(argued >= 8, "only {argued} arguments");
}
