//! One match as a JSON value. Prices are cents, hashes are lower-case hexadecimal.

use arena_core::hexadecimal::hex;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::scenario::Role;
use arena_core::score;
use arena_core::seat::{CallTokens, Sampling, Usage};
use arena_core::turn::Move;
use serde_json::{Value, json};

/// Returns everything that the record says, with the rewards that follow from it.
pub fn to_json(record: &MatchRecord, names: [&str; 2]) -> Value {
    let side = |role: Role| {
        json!({
            "agent": names[role.index()],
            "reward": score::reward(record, role),
            // JSON numbers beyond 2^53 do not survive every reader.
            "seed": record.seeds[role.index()].to_string(),
            "usage": usage(&record.usage[role.index()]),
        })
    };
    json!({
        "pair_index": record.pair_index,
        "leg": record.leg,
        "item_index": record.item_index,
        "repetition": record.repetition,
        "list_price": record.list_price.cents(),
        "budget": record.budget.cents(),
        "cost": record.cost.cents(),
        "opener": record.opener,
        "turn_limit": record.horizon.turn_limit,
        "horizon_hidden": record.horizon.hidden,
        "buyer": side(Role::Buyer),
        "seller": side(Role::Seller),
        "turns": record.turns.iter().map(turn).collect::<Vec<Value>>(),
        "outcome": outcome(record.outcome),
    })
}

fn turn(turn: &TurnRecord) -> Value {
    let refused: Vec<Value> = turn.refused.iter().map(|action| movement(*action)).collect();
    let belief = turn.belief.map(
        |belief| json!({ "reserve": belief.reserve.cents(), "spread": belief.spread.cents() }),
    );
    json!({
        "by": turn.by,
        "refused": refused,
        "move": movement(turn.action),
        "talk": turn.talk,
        "belief": belief,
    })
}

fn movement(action: Move) -> Value {
    match action {
        Move::Offer(price) => json!({ "offer": price.cents() }),
        Move::Accept(None) => json!({ "accept": null }),
        Move::Accept(Some(price)) => json!({ "accept": price.cents() }),
        Move::Reject => json!("reject"),
        Move::Walk => json!("walk"),
    }
}

/// Says how a match ended.
pub fn outcome(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Deal { price } => json!({ "kind": "deal", "price": price.cents() }),
        Outcome::Walked { by } => json!({ "kind": "walked", "by": by }),
        Outcome::TimedOut => json!({ "kind": "timed-out" }),
        Outcome::Violated { by, action } => {
            json!({ "kind": "violated", "by": by, "move": movement(action) })
        }
        Outcome::Faulted { by, fault } => {
            json!({ "kind": "faulted", "by": by, "fault": fault.name() })
        }
    }
}

fn sampling(sampling: &Sampling) -> Value {
    let bounds = sampling.bounds();
    bounds.into_iter().map(|(name, value, _)| (name.replace('-', "_"), json!(value))).collect()
}

fn tokens(tokens: &CallTokens) -> Value {
    let output = tokens.output.iter().map(|token| {
        let top = token.top.iter().map(|score| json!([score.id, score.logprob_micro]));
        json!({
            "id": token.id,
            "logprob_micro": token.logprob_micro,
            "sampled_logprob_micro": token.sampled_logprob_micro,
            "top": top.collect::<Vec<Value>>(),
        })
    });
    json!({
        "reused": tokens.reused,
        "prompt": tokens.prompt,
        "output": output.collect::<Vec<Value>>(),
    })
}

fn usage(usage: &Usage) -> Value {
    let calls = usage.model_calls.iter().map(|call| {
        json!({
            "act_index": call.act_index,
            "model": call.model,
            "request_sha256": hex(&call.request_sha256),
            "sampling": sampling(&call.sampling),
            "is_grammar_bound": call.is_grammar_bound,
            "text": call.text,
            "finish_reason": call.finish_reason,
            "input_tokens": call.input_tokens,
            "output_tokens": call.output_tokens,
            "weight_milli": call.weight_milli,
            "tokens": call.tokens.as_ref().map(tokens),
        })
    });
    let metrics = usage.metrics.iter();
    json!({
        "fuel_per_act": usage.fuel_per_act,
        "trace": usage.trace,
        "trace_cut": usage.trace_cut,
        "model_calls": calls.collect::<Vec<Value>>(),
        "metrics_milli": metrics.map(|(name, milli)| json!([name, milli])).collect::<Vec<Value>>(),
    })
}
