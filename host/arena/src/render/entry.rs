//! An entry of a log, and what it binds, as a JSON value and as lines of names and values.
//!
//! Hashes and keys are lower-case hexadecimal. Numbers that do not survive every JSON reader,
//! such as seeds, are text.

use arena_core::announcement::{AgentEntry, Announcement, ModelEntry};
use arena_core::draws::{BeaconRound, BeaconValue, Draws};
use arena_core::entry::{DrawEntry, Entry, MatchEntry};
use arena_core::hexadecimal::hex;
use serde_json::{Map, Value, json};

use crate::escape::escape;
use crate::render::record::outcome;

/// Returns what an entry is called.
pub fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Announcement(_) => "announcement",
        Entry::Match(_) => "match",
        Entry::Void(_) => "void",
        Entry::Close(_) => "close",
        Entry::Reveal(_) => "reveal",
        Entry::Draw(_) => "draw",
    }
}

/// Returns everything that an entry says.
pub fn to_json(entry: &Entry) -> Value {
    let mut value = match entry {
        Entry::Announcement(body) => json!({
            "origin": body.origin,
            "log_key": hex(&body.log_key),
            "announcement_sha256": hex(&body.announcement_sha256),
        }),
        Entry::Match(body) => match_entry(body),
        Entry::Void(body) => json!({
            "pair_index": body.void.pair_index,
            "attempt": body.void.attempt,
            "reason": body.void.reason.name(),
        }),
        Entry::Close(body) => json!({
            "match_count": body.match_count,
            "void_count": body.void_count,
        }),
        Entry::Reveal(body) => json!({ "secret": body.secret.map(|secret| hex(&secret)) }),
        Entry::Draw(body) => draw_entry(body),
    };
    if let Some(tournament) = entry.tournament() {
        value["tournament"] = json!(tournament.to_string());
    }
    json!({ "kind": kind(entry), "entry": value })
}

fn match_entry(body: &MatchEntry) -> Value {
    json!({
        "pair_index": body.pair_index,
        "leg": body.leg,
        "buyer_agent": body.agents[0],
        "seller_agent": body.agents[1],
        "item_index": body.item_index,
        "repetition": body.repetition,
        "outcome": outcome(body.outcome),
        "turn_count": body.turn_count,
        "transcript_sha256": hex(&body.transcript_sha256),
    })
}

fn draw_entry(body: &DrawEntry) -> Value {
    let opened = body.contributions.iter().map(|opened| opened.map(|opened| hex(&opened)));
    json!({
        "contributions": opened.collect::<Vec<Option<String>>>(),
        "beacon": body.beacon.as_ref().map(beacon_value),
    })
}

fn beacon_value(beacon: &BeaconValue) -> Value {
    json!({ "round": beacon.round, "signature": hex(&beacon.signature) })
}

/// Returns everything that an announcement says.
pub fn announcement(announcement: &Announcement) -> Value {
    json!({
        "name": announcement.name,
        "draws": draws(&announcement.draws),
        "engine": announcement.engine.lines().collect::<Vec<&str>>(),
        "models": announcement.models.iter().map(model).collect::<Vec<Value>>(),
        "agents": announcement.agents.iter().map(agent).collect::<Vec<Value>>(),
        "catalog_sha256": hex(&announcement.catalog_sha256),
        "item_count": announcement.item_count,
        "pair_count": announcement.pair_count,
        "checkpoint_every": announcement.checkpoint_every,
        "config_toml": announcement.config_toml,
    })
}

fn draws(draws: &Draws) -> Value {
    match draws {
        Draws::PublicSeed(seed) => json!({ "public_seed": seed.to_string() }),
        Draws::Committed(committed) => {
            let contributions = committed.contributions.iter().map(|hash| hex(hash));
            json!({
                "secret_commitment": hex(&committed.secret_commitment),
                "contributions": contributions.collect::<Vec<String>>(),
                "beacon": committed.beacon.as_ref().map(beacon_round),
            })
        }
    }
}

fn beacon_round(beacon: &BeaconRound) -> Value {
    json!({ "chain": hex(&beacon.chain), "round": beacon.round })
}

fn model(model: &ModelEntry) -> Value {
    json!({
        "name": model.name,
        "context_tokens": model.context_tokens,
        "sha256": hex(&model.sha256),
        "engine": model.engine,
    })
}

fn agent(agent: &AgentEntry) -> Value {
    json!({
        "name": agent.name,
        "component_sha256": hex(&agent.component_sha256),
        "params": agent.params,
        "submission": agent.submission,
    })
}

/// Returns a value as lines of its names and values, indented by two blanks. Values are
/// strangers' text, so they are escaped.
pub fn lines(value: &Value) -> String {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, shown)| format!("  {name:width$}  {shown}\n")).collect()
}

fn flatten(name: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let mut row = |shown: String| rows.push((escape(name), shown));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (field, value) in fields as &Map<String, Value> {
                let dot = if name.is_empty() { "" } else { "." };
                flatten(&format!("{name}{dot}{field}"), value, rows);
            }
        }
        Value::Array(values) if !values.is_empty() => {
            for (index, value) in values.iter().enumerate() {
                flatten(&format!("{name}[{index}]"), value, rows);
            }
        }
        Value::Object(_) | Value::Array(_) | Value::Null => row("none".to_owned()),
        Value::String(text) => row(escape(text)),
        Value::Bool(_) | Value::Number(_) => row(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use arena_core::entry::{Close, TournamentId};

    use super::*;

    #[test]
    fn an_entry_says_what_it_is_and_of_which_tournament() {
        let tournament = TournamentId([0xab; 32]);
        let entry = Entry::Close(Close { tournament, match_count: 4, void_count: 1 });
        let value = to_json(&entry);
        assert_eq!(value["kind"], "close");
        assert_eq!(value["entry"]["tournament"], "ab".repeat(32));
        assert_eq!(value["entry"]["match_count"], 4);
    }

    #[test]
    fn lines_name_every_value_and_escape_what_strangers_wrote() {
        let value = json!({ "agents": [{ "name": "a\nb" }], "deep": { "n": 1 }, "none": null });
        let text = lines(&value);
        assert_eq!(text, "  agents[0].name  a\\nb\n  deep.n          1\n  none            none\n");
    }
}
