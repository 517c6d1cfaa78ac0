//! One transcript for each built-in agent and role, as it was played in the sandbox. A change of
//! an agent's play shows here as a difference of text.
//!
//! `SNAPSHOTS=overwrite cargo test` writes the files anew.

use std::fmt::Write as _;
use std::sync::OnceLock;

use arena_agents::BUILTINS;
use arena_core::config::Limits;
use arena_core::price::Price;
use arena_core::record::{Outcome, TurnRecord};
use arena_core::referee::{Played, play};
use arena_core::rules::Rules;
use arena_core::scenario::{Horizon, Item, Regulation, Role, RuleSet, Scenario};
use arena_core::turn::Move;
use arena_sandbox::{Grants, LoadedAgent, Sandbox};
use snapbox::{Assert, Data};

/// Whoever is not being shown plays this.
const OPPONENT: &str = "linear";

fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| crate::kit::sandbox(Limits::default()))
}

fn load(name: &str) -> LoadedAgent {
    let builtin = BUILTINS.iter().find(|builtin| builtin.name == name).expect("a built-in");
    sandbox().load(builtin.component).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn scenario(set: RuleSet) -> Scenario {
    Scenario {
        item: Item {
            id: "golden/0".into(),
            title: "Espresso machine, 15 bar".into(),
            category: "kitchen".into(),
            description: "Steel, two cups at a time.".into(),
            list_price: Price(20_000),
        },
        budget: Price(16_000),
        cost: Price(9_000),
        opener: Role::Buyer,
        horizon: Horizon {
            turn_limit: if set == RuleSet::Standard { 20 } else { 12 },
            hidden: false,
        },
    }
}

fn rules(set: RuleSet) -> Rules {
    let buyer = match set {
        RuleSet::Standard => Regulation::Refuse,
        RuleSet::AmazonHistoryPrice => Regulation::Penalise,
    };
    Rules { set, regulation: [buyer, Regulation::Refuse], retries: 2, talk_bytes_max: 1_024 }
}

fn negotiate(set: RuleSet, agents: [&LoadedAgent; 2]) -> Played {
    let seat = |role: Role| {
        sandbox()
            .seat(agents[role.index()], &Grants::default(), 100 + role.index() as u64)
            .expect("a seat")
    };
    let (mut buyer, mut seller) = (seat(Role::Buyer), seat(Role::Seller));
    play(&rules(set), &scenario(set), ["", ""], [100, 101], [&mut buyer, &mut seller])
        .unwrap_or_else(|voided| panic!("the host failed: {voided:?}"))
}

fn show_move(action: Move) -> String {
    match action {
        Move::Offer(price) => format!("offers {price}"),
        Move::Accept(None) => "accepts".to_owned(),
        Move::Accept(Some(price)) => format!("accepts {price}"),
        Move::Reject => "rejects".to_owned(),
        Move::Walk => "walks".to_owned(),
    }
}

fn show_turn(number: usize, turn: &TurnRecord) -> String {
    let mut line = format!("{number:>2} {:<6} {}", turn.by.to_string(), show_move(turn.action));
    for action in &turn.refused {
        let _ = write!(line, " [refused: {}]", show_move(*action));
    }
    if let Some(belief) = turn.belief {
        let _ = write!(line, " [believes {} +- {}]", belief.reserve, belief.spread);
    }
    if !turn.talk.is_empty() {
        let _ = write!(line, " {:?}", turn.talk);
    }
    line
}

fn transcript(title: &str, played: &Played) -> String {
    let mut text = format!("== {title}\n");
    for (index, turn) in played.turns.iter().enumerate() {
        let _ = writeln!(text, "{}", show_turn(index + 1, turn));
    }
    let end = match played.outcome {
        Outcome::Deal { price } => format!("deal at {price}"),
        Outcome::Walked { by } => format!("no deal: the {by} walked"),
        Outcome::TimedOut => "no deal: out of turns".to_owned(),
        Outcome::Violated { by, action } => {
            format!("no deal: the {by} {} beyond its reserve", show_move(action))
        }
        Outcome::Faulted { by, fault } => format!("no deal: {by}'s fault `{fault}`"),
    };
    let _ = writeln!(text, "=> {end}\n");
    text
}

#[test]
fn every_built_in_agent_plays_its_golden_transcripts() {
    let opponent = load(OPPONENT);
    let assert = Assert::new().action_env("SNAPSHOTS");
    for builtin in BUILTINS {
        let agent = load(builtin.name);
        let mut text = String::new();
        for set in [RuleSet::Standard, RuleSet::AmazonHistoryPrice] {
            for role in Role::BOTH {
                let agents = match role {
                    Role::Buyer => [&agent, &opponent],
                    Role::Seller => [&opponent, &agent],
                };
                let played = negotiate(set, agents);
                let fault = matches!(played.outcome, Outcome::Faulted { .. });
                assert!(!fault, "{} as {role}: {:?}", builtin.name, played.outcome);
                let title = format!("{} as {role}, {}", builtin.name, set.name());
                text.push_str(&transcript(&title, &played));
            }
        }
        let file = crate::kit::root().join(format!("tests/golden/agents/{}.txt", builtin.name));
        assert.eq(text, Data::read_from(&file, None));
    }
}
