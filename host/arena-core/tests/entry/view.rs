//! Hashed values as JSON, the way `tests/golden/log` shows them: hashes in hexadecimal, names of
//! variants as in tables, prices in cents.

use arena_core::announcement::Announcement;
use arena_core::draws::{BeaconRound, BeaconValue, Draws};
use arena_core::entry::Entry;
use arena_core::hexadecimal::hex;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::scenario::Role;
use arena_core::seat::{CallTokens, ModelCall, Sampling, Usage};
use arena_core::transcript::Transcript;
use arena_core::turn::{Belief, Move};
use serde_json::{Value, json};

pub fn entry(entry: &Entry) -> (&'static str, Value) {
    match entry {
        Entry::Announcement(body) => {
            let announced = hex(&body.announcement_sha256);
            let key = hex(&body.log_key);
            let body =
                json!({"origin": body.origin, "log_key": key, "announcement_sha256": announced});
            ("announcement", body)
        }
        Entry::Match(body) => (
            "match",
            json!({
                "tournament": hex(&body.tournament.0),
                "pair_index": body.pair_index,
                "leg": body.leg,
                "agents": body.agents,
                "item_index": body.item_index,
                "repetition": body.repetition,
                "outcome": outcome(body.outcome),
                "turn_count": body.turn_count,
                "transcript_sha256": hex(&body.transcript_sha256),
            }),
        ),
        Entry::Void(body) => {
            let (pair_index, attempt) = (body.void.pair_index, body.void.attempt);
            let reason = body.void.reason.name();
            let void = json!({"pair_index": pair_index, "attempt": attempt, "reason": reason});
            ("void", json!({"tournament": hex(&body.tournament.0), "void": void}))
        }
        Entry::Close(body) => (
            "close",
            json!({
                "tournament": hex(&body.tournament.0),
                "match_count": body.match_count,
                "void_count": body.void_count,
            }),
        ),
        Entry::Reveal(body) => {
            let secret = body.secret.map(|secret| hex(&secret));
            ("reveal", json!({"tournament": hex(&body.tournament.0), "secret": secret}))
        }
        Entry::Draw(body) => {
            let opened = body.contributions.iter().map(|opened| opened.map(|bytes| hex(&bytes)));
            let beacon = |value: BeaconValue| {
                let signature = hex(&value.signature);
                json!({"round": value.round, "signature": signature})
            };
            let body = json!({
                "tournament": hex(&body.tournament.0),
                "contributions": opened.collect::<Vec<_>>(),
                "beacon": body.beacon.map(beacon),
            });
            ("draw", body)
        }
    }
}

pub fn announcement(announcement: &Announcement) -> Value {
    let agents = announcement.agents.iter().map(|agent| {
        json!({
            "name": agent.name,
            "component_sha256": hex(&agent.component_sha256),
            "params": agent.params,
            "submission": agent.submission,
        })
    });
    let models = announcement.models.iter().map(|model| {
        let (name, sha256) = (&model.name, hex(&model.sha256));
        let (context_tokens, engine) = (model.context_tokens, &model.engine);
        json!({
            "name": name,
            "context_tokens": context_tokens,
            "sha256": sha256,
            "engine": engine,
        })
    });
    json!({
        "name": announcement.name,
        "config_toml": announcement.config_toml,
        "draws": draws(&announcement.draws),
        "engine": announcement.engine,
        "models": models.collect::<Vec<_>>(),
        "agents": agents.collect::<Vec<_>>(),
        "catalog_sha256": hex(&announcement.catalog_sha256),
        "item_count": announcement.item_count,
        "pair_count": announcement.pair_count,
        "checkpoint_every": announcement.checkpoint_every,
    })
}

fn draws(draws: &Draws) -> Value {
    let beacon = |round: BeaconRound| json!({"chain": hex(&round.chain), "round": round.round});
    match draws {
        Draws::PublicSeed(seed) => json!({"public-seed": seed}),
        Draws::Committed(committed) => json!({"committed": {
            "secret_commitment": hex(&committed.secret_commitment),
            "contributions": committed.contributions.iter().map(|c| hex(c)).collect::<Vec<_>>(),
            "beacon": committed.beacon.map(beacon),
        }}),
    }
}

pub fn transcript(transcript: &Transcript) -> Value {
    json!({
        "tournament": hex(&transcript.tournament.0),
        "nonce": hex(&transcript.nonce),
        "record": record(&transcript.record),
    })
}

fn record(record: &MatchRecord) -> Value {
    let horizon = record.horizon;
    json!({
        "pair_index": record.pair_index,
        "leg": record.leg,
        "agents": record.agents,
        "item_index": record.item_index,
        "repetition": record.repetition,
        "list_price": record.list_price.cents(),
        "budget": record.budget.cents(),
        "cost": record.cost.cents(),
        "opener": role(record.opener),
        "horizon": {"turn_limit": horizon.turn_limit, "hidden": horizon.hidden},
        "seeds": record.seeds,
        "turns": record.turns.iter().map(turn).collect::<Vec<_>>(),
        "unfinished": record.unfinished.iter().map(action).collect::<Vec<_>>(),
        "outcome": outcome(record.outcome),
        "usage": record.usage.iter().map(usage).collect::<Vec<_>>(),
    })
}

fn turn(turn: &TurnRecord) -> Value {
    let belief = |belief: Belief| {
        let (reserve, spread) = (belief.reserve.cents(), belief.spread.cents());
        json!({"reserve": reserve, "spread": spread})
    };
    json!({
        "by": role(turn.by),
        "refused": turn.refused.iter().map(action).collect::<Vec<_>>(),
        "action": action(&turn.action),
        "talk": turn.talk,
        "belief": turn.belief.map(belief),
    })
}

fn role(role: Role) -> String {
    role.to_string()
}

fn action(action: &Move) -> Value {
    match action {
        Move::Offer(price) => json!({"offer": price.cents()}),
        Move::Accept(named) => json!({"accept": named.map(|price| price.cents())}),
        Move::Reject => json!("reject"),
        Move::Walk => json!("walk"),
    }
}

fn outcome(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Deal { price } => json!({"deal": {"price": price.cents()}}),
        Outcome::Walked { by } => json!({"walked": {"by": role(by)}}),
        Outcome::TimedOut => json!("timed-out"),
        Outcome::Violated { by, action: moved } => {
            json!({"violated": {"by": role(by), "action": action(&moved)}})
        }
        Outcome::Faulted { by, fault } => {
            json!({"faulted": {"by": role(by), "fault": fault.name()}})
        }
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "fuel_per_act": usage.fuel_per_act,
        "trace": usage.trace,
        "trace_cut": usage.trace_cut,
        "model_calls": usage.model_calls.iter().map(model_call).collect::<Vec<_>>(),
        "metrics": usage.metrics,
    })
}

fn model_call(call: &ModelCall) -> Value {
    json!({
        "act_index": call.act_index,
        "model": call.model,
        "request_sha256": hex(&call.request_sha256),
        "text": call.text,
        "finish_reason": call.finish_reason,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "weight_milli": call.weight_milli,
        "sampling": sampling(&call.sampling),
        "is_grammar_bound": call.is_grammar_bound,
        "tokens": call.tokens.as_ref().map(call_tokens),
    })
}

fn sampling(sampling: &Sampling) -> Value {
    json!({
        "temperature_milli": sampling.temperature_milli,
        "top_k": sampling.top_k,
        "top_p_milli": sampling.top_p_milli,
        "min_p_milli": sampling.min_p_milli,
    })
}

fn call_tokens(tokens: &CallTokens) -> Value {
    let output = tokens.output.iter().map(|token| {
        let top = token.top.iter().map(|score| json!([score.id, score.logprob_micro]));
        json!({
            "id": token.id,
            "logprob_micro": token.logprob_micro,
            "sampled_logprob_micro": token.sampled_logprob_micro,
            "top": top.collect::<Vec<_>>(),
        })
    });
    json!({
        "reused": tokens.reused,
        "prompt": tokens.prompt,
        "output": output.collect::<Vec<_>>(),
    })
}
