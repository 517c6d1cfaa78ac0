//! Compares a match as it was recorded with the same match played again.
//!
//! Everything that the record holds is compared: moves, talk, beliefs, fuel, notes, model calls.
//! The first differences say where to look.
//!
//! Not here: playing (`arena-runner`).

use std::fmt::{self, Debug};

use arena_core::record::{MatchRecord, TurnRecord};
use arena_core::scenario::Role;
use arena_core::seat::{CallTokens, ModelCall, Usage};

/// Most differences of one match that are told.
pub const DIFFERENCES_MAX: usize = 16;

/// Longest value in a difference, in characters.
const VALUE_CHARS_MAX: usize = 200;

/// One field in which a match played again is not as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The turn, from 0; `None` for what belongs to no turn.
    pub turn_index: Option<usize>,
    /// The field, for example `talk` or `buyer.fuel_per_act[3]`.
    pub field: String,
    /// What the record says.
    pub recorded: String,
    /// What came out now.
    pub again: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(turn_index) = self.turn_index {
            write!(f, "turn {}: ", turn_index + 1)?;
        }
        write!(f, "{} is recorded as {}, now {}", self.field, self.recorded, self.again)
    }
}

/// Returns in what two records of one match differ, at most [`DIFFERENCES_MAX`] of it; nothing
/// exactly where they are equal.
pub fn compare(recorded: &MatchRecord, again: &MatchRecord) -> Vec<Difference> {
    if recorded == again {
        return Vec::new();
    }
    let mut found = Differences::default();
    found.address(recorded, again);
    found.turns(recorded, again);
    found.value("unfinished", &recorded.unfinished, &again.unfinished);
    found.value("outcome", &recorded.outcome, &again.outcome);
    for role in Role::BOTH {
        found.usage(role, &recorded.usage[role.index()], &again.usage[role.index()]);
    }
    assert!(!found.list.is_empty(), "records that differ do so in a field");
    found.list
}

#[derive(Default)]
struct Differences {
    turn_index: Option<usize>,
    list: Vec<Difference>,
}

impl Differences {
    fn value<T: PartialEq + Debug>(&mut self, field: &str, recorded: &T, again: &T) {
        if recorded != again && self.list.len() < DIFFERENCES_MAX {
            self.list.push(Difference {
                turn_index: self.turn_index,
                field: field.to_owned(),
                recorded: shown(recorded),
                again: shown(again),
            });
        }
    }

    /// Compares two lists: their lengths, then what both have.
    fn list<T: PartialEq + Debug>(&mut self, field: &str, recorded: &[T], again: &[T]) {
        for (place, (recorded, again)) in recorded.iter().zip(again).enumerate() {
            if recorded != again {
                self.value(&format!("{field}[{place}]"), recorded, again);
            }
        }
        self.value(&format!("{field}.length"), &recorded.len(), &again.len());
    }

    fn address(&mut self, recorded: &MatchRecord, again: &MatchRecord) {
        self.value("pair_index", &recorded.pair_index, &again.pair_index);
        self.value("leg", &recorded.leg, &again.leg);
        self.value("agents", &recorded.agents, &again.agents);
        self.value("item_index", &recorded.item_index, &again.item_index);
        self.value("repetition", &recorded.repetition, &again.repetition);
        self.value("list_price", &recorded.list_price, &again.list_price);
        self.value("budget", &recorded.budget, &again.budget);
        self.value("cost", &recorded.cost, &again.cost);
        self.value("opener", &recorded.opener, &again.opener);
        self.value("horizon", &recorded.horizon, &again.horizon);
        self.value("seeds", &recorded.seeds, &again.seeds);
    }

    fn turns(&mut self, recorded: &MatchRecord, again: &MatchRecord) {
        for (place, (recorded, again)) in recorded.turns.iter().zip(&again.turns).enumerate() {
            self.turn_index = Some(place);
            self.turn(recorded, again);
        }
        self.turn_index = None;
        self.value("turns.length", &recorded.turns.len(), &again.turns.len());
    }

    fn turn(&mut self, recorded: &TurnRecord, again: &TurnRecord) {
        self.value("by", &recorded.by, &again.by);
        self.value("refused", &recorded.refused, &again.refused);
        self.value("action", &recorded.action, &again.action);
        self.value("talk", &recorded.talk, &again.talk);
        self.value("belief", &recorded.belief, &again.belief);
    }

    fn usage(&mut self, role: Role, recorded: &Usage, again: &Usage) {
        self.list(&format!("{role}.fuel_per_act"), &recorded.fuel_per_act, &again.fuel_per_act);
        self.list(&format!("{role}.trace"), &recorded.trace, &again.trace);
        self.value(&format!("{role}.trace_cut"), &recorded.trace_cut, &again.trace_cut);
        let calls: Vec<(&ModelCall, &ModelCall)> =
            recorded.model_calls.iter().zip(&again.model_calls).collect();
        for (place, (recorded, again)) in calls.into_iter().enumerate() {
            self.model_call(&format!("{role}.model_calls[{place}]"), recorded, again);
        }
        let counts = [recorded.model_calls.len(), again.model_calls.len()];
        self.value(&format!("{role}.model_calls.length"), &counts[0], &counts[1]);
        self.list(&format!("{role}.metrics"), &recorded.metrics, &again.metrics);
    }

    fn model_call(&mut self, field: &str, recorded: &ModelCall, again: &ModelCall) {
        let named = |name: &str| format!("{field}.{name}");
        self.value(&named("act_index"), &recorded.act_index, &again.act_index);
        self.value(&named("model"), &recorded.model, &again.model);
        self.value(&named("request_sha256"), &recorded.request_sha256, &again.request_sha256);
        self.value(&named("sampling"), &recorded.sampling, &again.sampling);
        let bound = [recorded.is_grammar_bound, again.is_grammar_bound];
        self.value(&named("is_grammar_bound"), &bound[0], &bound[1]);
        self.value(&named("text"), &recorded.text, &again.text);
        self.value(&named("finish_reason"), &recorded.finish_reason, &again.finish_reason);
        self.value(&named("input_tokens"), &recorded.input_tokens, &again.input_tokens);
        self.value(&named("output_tokens"), &recorded.output_tokens, &again.output_tokens);
        self.value(&named("weight_milli"), &recorded.weight_milli, &again.weight_milli);
        match (&recorded.tokens, &again.tokens) {
            (Some(recorded), Some(again)) => self.tokens(field, recorded, again),
            (None, None) => {}
            (recorded, again) => {
                let listed = [recorded.is_some(), again.is_some()];
                self.value(&named("tokens.listed"), &listed[0], &listed[1]);
            }
        }
    }

    fn tokens(&mut self, field: &str, recorded: &CallTokens, again: &CallTokens) {
        self.value(&format!("{field}.reused"), &recorded.reused, &again.reused);
        self.list(&format!("{field}.prompt"), &recorded.prompt, &again.prompt);
        self.list(&format!("{field}.output"), &recorded.output, &again.output);
    }
}

fn shown(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
