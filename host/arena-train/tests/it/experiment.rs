//! Experiment files: what they mean, what is refused, and the tournaments that follow from them.

use std::path::Path;

use arena_core::config::{Roles, Split, TournamentConfig};
use arena_core::hexadecimal::hex;
use arena_train::advantage::Baseline;
use arena_train::experiment::{Experiment, Mode, Occasion, PolicySource};
use arena_train::objective::{Clip, Objective};
use arena_train::trainer::Routing;

const SMALL: &str = r#"name = "small"
seed = 7

[policy]
kind = "compact"
layers = 2
width = 32

[learner]
component = "builtin:compact-buyer"
params = "temperature=1"
greedy = "temperature=0"

[[opponents]]
name = "calm"
component = "builtin:regulated-seller"

[[opponents]]
name = "rude"
component = "builtin:insulting"
params = "step=0.1"

[[baselines]]
name = "linear"
component = "builtin:linear"

[rules]
set = "standard"
horizon = { turns = 12 }

[catalog]
kind = "synthetic"
items = 100

[warm_start]
items = 16

[train]
steps = 3
opponents = ["calm"]
learning_rate = 0.001

[evaluate]
items = 10

[[evaluate.fields]]
name = "all"
opponents = ["rude", "calm"]
"#;

fn small() -> Experiment {
    Experiment::parse(SMALL).unwrap_or_else(|error| panic!("{error}"))
}

/// Changes the small experiment and checks what is said about it.
#[track_caller]
fn refused(from: &str, to: &str, expected: &str) {
    assert!(SMALL.contains(from), "`{from}` is in the file");
    let text = SMALL.replacen(from, to, 1);
    let error = Experiment::parse(&text).expect_err("it is refused").to_string();
    assert_eq!(error, expected);
}

#[test]
fn what_a_file_leaves_out_has_a_value() {
    let experiment = small();
    let PolicySource::Compact(shape) = experiment.policy.source else {
        panic!("{:?}", experiment.policy)
    };
    assert_eq!((shape.heads, shape.kv_heads, shape.feed_forward), (4, 4, 128));
    let train = &experiment.train;
    assert_eq!((train.items, train.group_size, &train.opponents[..]), (8, 8, &[0][..]));
    assert_eq!(train.loss.objective, Objective::Dapo { clip: Clip::DAPO });
    assert_eq!(train.baseline, Baseline::GroupMean);
    let evaluate = experiment.evaluate.as_ref().expect("it is there");
    assert_eq!(evaluate.modes, [Mode::Greedy, Mode::Sampled]);
    assert_eq!(evaluate.fields[0].opponents, [0, 1]);
}

#[test]
fn a_steps_tournament_follows_from_the_file_the_step_and_the_policy() {
    let text = small().tournament(Occasion::Step { step: 2 }, [0xab; 32]);
    let config = TournamentConfig::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(config.name, "small-000002");
    assert_eq!(config.roles, Roles::CandidatesBuy);
    assert_eq!((config.repetitions, config.scenario_group), (8, 8));
    assert_eq!((config.catalog.split, config.catalog.sample), (Split::Train, Some(8)));
    let names: Vec<&str> = config.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["learner", "calm"]);
    assert!(text.contains(&format!("sha256 = \"{}\"", hex(&[0xab; 32]))), "{text}");
    assert_eq!(text, small().tournament(Occasion::Step { step: 2 }, [0xab; 32]));
    let other = small().tournament(Occasion::Step { step: 3 }, [0xab; 32]);
    let other = TournamentConfig::parse(&other).expect("it is as good");
    assert_ne!(other.seed, config.seed);
}

#[test]
fn evaluations_differ_by_policy_and_mode_alone_and_the_first_has_baselines() {
    let evaluation = |step, mode| {
        let text = small().tournament(Occasion::Evaluation { step, mode }, [step as u8; 32]);
        TournamentConfig::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    };
    let first = evaluation(0, Mode::Greedy);
    let names: Vec<&str> = first.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["learner", "linear", "calm", "rude"]);
    assert_eq!(first.agents[0].params, "temperature=0");
    let later = evaluation(25, Mode::Sampled);
    let names: Vec<&str> = later.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["learner", "calm", "rude"]);
    assert_eq!(later.agents[0].params, "temperature=1");
    assert_eq!((later.seed, later.catalog.split), (first.seed, Split::Test));
}

#[test]
fn an_adapter_is_trained_beside_its_weights() {
    let text = SMALL.replace(
        "kind = \"compact\"\nlayers = 2\nwidth = 32",
        "weights = \"smollm2\"\nadapter = { rank = 8 }",
    );
    let experiment = Experiment::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let adapter = experiment.policy.adapter.expect("it is there");
    assert_eq!((adapter.rank, adapter.alpha), (8, 16.0));
    let step = experiment.tournament(Occasion::Step { step: 1 }, [0; 32]);
    assert!(step.contains("adapter = \"./policy\"\n"), "{step}");
    assert!(step.contains("weights = \"smollm2\"\n"), "{step}");
}

#[test]
fn routes_are_replayed_where_a_step_has_several_updates_unless_the_file_says_otherwise() {
    assert_eq!(small().train.routing, Routing::Replay);
    let text = SMALL.replace("steps = 3", "steps = 3\nepochs = 2\nrouting = \"anew\"");
    let experiment = Experiment::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(experiment.train.routing, Routing::Anew);
    let text = SMALL.replace("steps = 3", "steps = 3\nrouting = \"anew\"");
    let error = Experiment::parse(&text).expect_err("it is refused").to_string();
    assert!(error.contains("`routing` has no effect on the only update of a step"), "{error}");
}

#[test]
fn every_shipped_experiment_parses() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tournaments/experiments");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the shipped files") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let parsed = Experiment::parse(&text);
        let experiment = parsed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(path.file_stem(), Some(experiment.name.as_ref()));
        files += 1;
    }
    assert!(files >= 3, "only {files} experiments found");
}

#[test]
fn mistakes_are_told_with_their_place() {
    refused(
        "layers = 2",
        "layer = 2",
        "line 6, column 1: `policy.layer`: unknown key `layer`\n  hint: did you mean `layers`?",
    );
    refused(
        "opponents = [\"calm\"]",
        "opponents = [\"clam\"]",
        "line 40, column 14: `train.opponents[0]`: unknown value `clam`\n  \
         hint: did you mean `calm`?",
    );
    refused(
        "steps = 3",
        "steps = 0",
        "line 39, column 9: `train.steps`: `0` is not from `1` to `999999`",
    );
    refused(
        "width = 32",
        "width = 32\nheads = 5",
        "line 8, column 9: `policy.heads`: `32` numbers do not divide into `5` heads of even width",
    );
    refused(
        "layers = 2\nwidth = 32",
        "layers = 64\nwidth = 4096",
        "line 7, column 9: `policy.width`: a model of `17181093888` weights, at most `268435456`",
    );
    refused(
        "greedy = \"temperature=0\"\n",
        "",
        "line 10, column 13: `learner.component`: greedy evaluations need `greedy`\n  \
         hint: the learner's `params` with a temperature of 0",
    );
    refused(
        "learning_rate = 0.001",
        "learning_rate = 0.001\nlength = 5",
        "line 42, column 10: `train.length`: `length` has no effect on this objective\n  \
         hint: it belongs to `dr-grpo`",
    );
}

#[test]
fn mistakes_in_what_tournaments_take_over_are_told_at_their_place_in_the_experiment() {
    refused(
        "horizon = { turns = 12 }",
        "horizn = { turns = 12 }",
        "line 29, column 10: `rules.horizn`: unknown key `horizn`\n  hint: did you mean `horizon`?",
    );
    refused(
        "items = 100",
        "items = 0",
        "line 33, column 9: `catalog.items`: `0` is not from `1` to `100000`",
    );
    refused(
        "component = \"builtin:insulting\"",
        "component = \"builtin:\"",
        "line 20, column 13: `opponents[1].component`: `` is not a name\n  \
         hint: 1 to 64 letters, digits, `-`, `_` and `.`",
    );
    refused(
        "items = 100",
        "items = 100\nsplit = \"all\"",
        "line 31, column 1: `catalog`: `catalog.split` is chosen by what items are played for\n  \
         hint: steps play `train.items` of the training part, evaluations `evaluate.items` of the \
         test part",
    );
}

#[test]
fn seed_and_steps_can_be_replaced_and_nothing_else_changes() {
    let text = Experiment::with(SMALL, Some(9), Some(5)).expect("both are in range");
    assert_eq!(text, SMALL.replace("seed = 7", "seed = 9").replace("steps = 3", "steps = 5"));
    assert_eq!(Experiment::with(SMALL, None, None).expect("nothing changes"), SMALL);
    let error = Experiment::with(SMALL, None, Some(0)).expect_err("no step").to_string();
    assert!(error.contains("`train.steps`"), "{error}");
}
