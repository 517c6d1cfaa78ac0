//! Records for tests, played by the referee from moves that are written down.

use arena_core::fault::{Fault, SeatError};
use arena_core::price::Price;
use arena_core::record::MatchRecord;
use arena_core::referee;
use arena_core::rules::Rules;
use arena_core::scenario::{Horizon, Item, Regulation, Role, RuleSet, Scenario};
use arena_core::script::ScriptedSeat;
use arena_core::seat::{CallTokens, ModelCall, SampledToken, Sampling, TokenScore};
use arena_core::turn::{Move, Reply};

/// The model that is trained in every fixture.
pub const POLICY: &str = "policy";

/// List price, budget and cost in dollars.
#[derive(Clone, Copy, Debug)]
pub struct Terms(pub u32, pub u32, pub u32);

/// Plays turns such as `B offer 50`, `S reject`, `B accept`, `S walk`, `B trap`, of at most six.
/// A refused seat may move once more.
pub fn play(regulation: Regulation, terms: Terms, turns: &[&str]) -> MatchRecord {
    let Terms(list, budget, cost) = terms;
    let rules = Rules {
        set: RuleSet::Standard,
        regulation: [regulation; 2],
        retries: 1,
        talk_bytes_max: 1_000,
    };
    let scenario = Scenario {
        item: Item {
            id: "tests/0".to_owned(),
            title: "a lamp".to_owned(),
            category: "tests".to_owned(),
            description: String::new(),
            list_price: Price(list * 100),
        },
        budget: Price(budget * 100),
        cost: Price(cost * 100),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 6, hidden: false },
    };
    let [mut buyer, mut seller] = ["B", "S"].map(|side| {
        let own = turns.iter().filter_map(|turn| turn.strip_prefix(side));
        ScriptedSeat::new(own.map(|turn| answer(turn.trim())).collect())
    });
    let seats: [&mut dyn arena_core::seat::Seat; 2] = [&mut buyer, &mut seller];
    let played = referee::play(&rules, &scenario, ["", ""], [11, 12], seats);
    let played = played.expect("scripts are not voided");
    MatchRecord {
        pair_index: 0,
        leg: 0,
        agents: [0, 1],
        item_index: 0,
        repetition: 0,
        list_price: scenario.item.list_price,
        budget: scenario.budget,
        cost: scenario.cost,
        opener: scenario.opener,
        horizon: scenario.horizon,
        seeds: [11, 12],
        turns: played.turns,
        unfinished: played.unfinished,
        outcome: played.outcome,
        usage: played.usage,
    }
}

fn answer(turn: &str) -> Result<Reply, SeatError> {
    let action = match turn.split_once(' ').unwrap_or((turn, "")) {
        ("offer", dollars) => {
            Move::Offer(Price(dollars.parse::<u32>().expect("whole dollars") * 100))
        }
        ("accept", "") => Move::Accept(None),
        ("reject", "") => Move::Reject,
        ("walk", "") => Move::Walk,
        ("trap", "") => return Err(SeatError::Fault(Fault::Trap)),
        other => panic!("{other:?} is not a turn"),
    };
    Ok(Reply { action, talk: format!("I {turn}."), belief: None })
}

/// Sampling from the whole distribution at temperature 1.
pub const WHOLE: Sampling =
    Sampling { temperature_milli: 1_000, top_k: 0, top_p_milli: 1_000, min_p_milli: 0 };

/// A call of [`POLICY`].
pub fn call(tokens: Option<CallTokens>) -> ModelCall {
    ModelCall {
        act_index: 0,
        model: POLICY.to_owned(),
        request_sha256: [0; 32],
        sampling: WHOLE,
        is_grammar_bound: false,
        text: String::new(),
        finish_reason: 0,
        input_tokens: 0,
        output_tokens: 0,
        weight_milli: None,
        tokens,
    }
}

/// A token that was sampled with probability exp(-id/10), and is the likeliest.
pub fn sampled(id: u32) -> SampledToken {
    let logprob_micro = -(id as i32) * 100_000;
    SampledToken {
        id,
        logprob_micro,
        sampled_logprob_micro: logprob_micro,
        top: vec![TokenScore { id, logprob_micro }],
    }
}
