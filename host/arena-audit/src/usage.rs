//! What the seats of a match used, held against the announced limits.
//!
//! A record must hold one fuel figure for each move that its seat made, and everything else only
//! as far as the tournament file grants it. Whether a figure is the true one, only running the
//! guest again shows.
//!
//! Not here: the length of talk, which is a rule of the match (`rules`).

use std::fmt::Display;

use arena_core::announcement::ModelEntry;
use arena_core::config::limits::{METRIC_NAME_BYTES_MAX, METRICS_MAX, MODEL_REPLY_BYTES_MAX};
use arena_core::config::{AgentConfig, Limits, Training};
use arena_core::dialogue;
use arena_core::fault::Fault;
use arena_core::record::{MatchRecord, Outcome};
use arena_core::scenario::Role;
use arena_core::seat::{ModelCall, Usage};

use crate::announcement::Announced;
use crate::verdict::Finding;

/// The codes of why a reply ended: stop, length, budget.
const FINISH_REASON_MAX: u8 = 2;

/// Checks both seats of a match.
///
/// # Errors
/// The first figure that is beyond its limit.
pub(crate) fn check(announced: &Announced, record: &MatchRecord) -> Result<(), Finding> {
    for role in Role::BOTH {
        let place = usize::from(record.agents[role.index()]);
        let Some(agent) = announced.config.agents.get(place) else {
            let wanted = format!("one of {}", announced.config.agents.len());
            return Err(Finding::new("the agent", place, wanted));
        };
        let models = &announced.announcement.models;
        let seat = Seat { role, agent, models, limits: &announced.config.limits };
        let usage = &record.usage[role.index()];
        let acts = acts(record, role, announced.rules.attempts_max());
        seat.fuel(usage, acts)?;
        seat.trace(usage)?;
        seat.models(usage, acts)?;
        seat.metrics(usage)?;
    }
    Ok(())
}

/// How often a seat answered, and whether it was asked once more without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Acts {
    answered: u64,
    asked: u64,
}

/// Counts the `act` calls behind a record. Every tried move is an answer; the `Reject` after the
/// last refused move is the referee's. What ended in a fault was not answered, except where the
/// answer itself was the fault.
fn acts(record: &MatchRecord, role: Role, attempts_max: usize) -> Acts {
    let own = record.turns.iter().filter(|turn| turn.by == role);
    let tried = |refused: usize| refused as u64 + u64::from(refused < attempts_max);
    let mut answered: u64 = own.map(|turn| tried(turn.refused.len())).sum();
    let (by, fault) = match record.outcome {
        Outcome::Violated { by, .. } => (by, None),
        Outcome::Faulted { by, fault } => (by, Some(fault)),
        _ => return Acts { answered, asked: answered },
    };
    if by != role {
        return Acts { answered, asked: answered };
    }
    answered += record.unfinished.len() as u64;
    match fault {
        // Its move is in the outcome; its talk is nowhere.
        None | Some(Fault::TalkTooLong) => Acts { answered: answered + 1, asked: answered + 1 },
        // Its move is the last of the unfinished ones.
        Some(Fault::IllegalMove) => Acts { answered, asked: answered },
        Some(_) => Acts { answered, asked: answered + 1 },
    }
}

/// A seat and what it may use.
struct Seat<'a> {
    role: Role,
    agent: &'a AgentConfig,
    models: &'a [ModelEntry],
    limits: &'a Limits,
}

impl Seat<'_> {
    fn wrong(&self, what: &str, found: impl Display, wanted: impl Display) -> Finding {
        Finding::new(format!("{what} of the {} `{}`", self.role, self.agent.name), found, wanted)
    }

    fn at_most(&self, what: &str, found: u64, most: u64) -> Result<(), Finding> {
        if found <= most {
            return Ok(());
        }
        Err(self.wrong(what, found, format!("at most {most}")))
    }

    fn fuel(&self, usage: &Usage, acts: Acts) -> Result<(), Finding> {
        let figures = usage.fuel_per_act.len() as u64;
        if figures != acts.answered {
            let wanted = format!("{}, one for each move", acts.answered);
            return Err(self.wrong("the fuel figures", figures, wanted));
        }
        let mut sum = 0_u64;
        for fuel in &usage.fuel_per_act {
            self.at_most("the fuel of a turn", *fuel, self.limits.fuel_turn_max)?;
            sum = sum.saturating_add(*fuel);
        }
        self.at_most("the fuel", sum, self.limits.fuel_match_max)
    }

    fn trace(&self, usage: &Usage) -> Result<(), Finding> {
        let bytes: u64 = usage.trace.iter().map(|note| note.len() as u64).sum();
        self.at_most("the bytes of notes", bytes, u64::from(self.limits.trace_bytes_max))?;
        let calls = u64::from(self.limits.host_calls_max);
        self.at_most("the notes", usage.trace.len() as u64, calls)
    }

    fn models(&self, usage: &Usage, acts: Acts) -> Result<(), Finding> {
        let calls = &usage.model_calls;
        self.at_most("the model calls", calls.len() as u64, self.limits.model_calls_max.into())?;
        let (mut input, mut output) = (0_u64, 0_u64);
        // Calls and reply tokens of the turn that the last call is of.
        let (mut last_act, mut turn_calls, mut turn_output) = (0_u32, 0_u64, 0_u64);
        for (number, call) in calls.iter().enumerate() {
            self.model_call(call)?;
            input += u64::from(call.input_tokens);
            output += u64::from(call.output_tokens);
            let most = u64::from(self.limits.model_input_tokens_max);
            self.at_most("the prompt tokens", input, most)?;
            let most = u64::from(self.limits.model_output_tokens_max);
            self.at_most("the reply tokens", output, most)?;
            // Only now: prompts are put together in what the sums allow.
            self.tokens(calls, number)?;
            // Calls before the first turn count as of the first.
            let act_max = acts.asked.saturating_sub(1);
            if call.act_index < last_act || u64::from(call.act_index) > act_max {
                let wanted = format!("{last_act} to {act_max}");
                return Err(self.wrong("the turn of a model call", call.act_index, wanted));
            }
            if call.act_index > last_act {
                (last_act, turn_calls, turn_output) = (call.act_index, 0, 0);
            }
            turn_calls += 1;
            turn_output += u64::from(call.output_tokens);
            let most = u64::from(self.limits.model_calls_turn_max);
            self.at_most("the model calls of a turn", turn_calls, most)?;
            let most = u64::from(self.limits.model_output_tokens_turn_max);
            self.at_most("the reply tokens of a turn", turn_output, most)?;
        }
        Ok(())
    }

    fn model_call(&self, call: &ModelCall) -> Result<(), Finding> {
        let granted = self.agent.models.contains(&call.model);
        let announced = self.models.iter().find(|model| model.name == call.model);
        let Some(model) = announced.filter(|_| granted) else {
            let wanted = format!("one of {:?}", self.agent.models);
            return Err(self.wrong("the model", format!("`{}`", call.model), wanted));
        };
        for (name, value, range) in call.sampling.bounds() {
            if !range.contains(&value) {
                let wanted = format!("{} to {}", range.start(), range.end());
                return Err(self.wrong(&format!("the `{name}` of a model call"), value, wanted));
            }
        }
        let context = u64::from(model.context_tokens);
        // A prompt that fills the context leaves no room for a reply.
        let most = context.saturating_sub(1);
        self.at_most("the prompt tokens of a model call", call.input_tokens.into(), most)?;
        let counted = u64::from(!call.text.trim_ascii().is_empty());
        for (what, tokens, least) in [
            ("the prompt tokens of a model call", call.input_tokens, 1),
            ("the reply tokens of a model call", call.output_tokens, counted),
        ] {
            if u64::from(tokens) < least {
                return Err(self.wrong(what, tokens, format!("at least {least}")));
            }
        }
        self.at_most("the bytes of a reply", call.text.len() as u64, MODEL_REPLY_BYTES_MAX)?;
        let reason = u64::from(call.finish_reason);
        self.at_most("the code of a reply's end", reason, u64::from(FINISH_REASON_MAX))?;
        match call.weight_milli.filter(|_| self.agent.training != Training::Train) {
            Some(weight) => Err(self.wrong("the weight of a reply", weight, "none")),
            None => Ok(()),
        }
    }

    /// Holds the tokens of a call against its figures and against the calls before. There is one
    /// way to write a prompt down, so that a record cannot hold the same call in two ways.
    fn tokens(&self, calls: &[ModelCall], number: usize) -> Result<(), Finding> {
        let call = &calls[number];
        let Some(tokens) = &call.tokens else {
            return Ok(());
        };
        let before = dialogue::previous(&calls[..number], &call.model);
        let before = before.and_then(|before| dialogue::spoken(calls, before)).unwrap_or_default();
        let reused = tokens.reused as usize;
        self.at_most("the reused tokens of a prompt", tokens.reused.into(), before.len() as u64)?;
        let next = before.get(reused);
        if next.is_some() && next == tokens.prompt.first() {
            let wanted = "all that are equal to the call before";
            return Err(self.wrong("the reused tokens of a prompt", reused, wanted));
        }
        for (what, listed, counted) in [
            ("the listed tokens of a prompt", reused + tokens.prompt.len(), call.input_tokens),
            ("the listed tokens of a reply", tokens.output.len(), call.output_tokens),
        ] {
            if listed as u64 != u64::from(counted) {
                return Err(self.wrong(what, listed, format!("{counted}, as counted")));
            }
        }
        dialogue::check_scores(&tokens.output).map_err(|fault| {
            let what = format!("{} (reply token {})", fault.what, fault.place);
            self.wrong(&what, fault.found, format!("at most {}", fault.most))
        })
    }

    fn metrics(&self, usage: &Usage) -> Result<(), Finding> {
        let most = if self.agent.training == Training::None { 0 } else { METRICS_MAX };
        self.at_most("the reported values", usage.metrics.len() as u64, most)?;
        let longest = usage.metrics.iter().map(|(name, _)| name.len() as u64).max();
        let most = METRIC_NAME_BYTES_MAX;
        self.at_most("the bytes of a value's name", longest.unwrap_or(0), most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_core::config::ComponentSource;
    use arena_core::seat::{CallTokens, SampledToken, Sampling, TokenScore};

    const LIMITS: fn() -> Limits = || Limits {
        model_calls_max: 4,
        model_input_tokens_max: 30,
        model_output_tokens_max: 10,
        model_calls_turn_max: 2,
        model_output_tokens_turn_max: 6,
        ..Limits::default()
    };

    fn token(id: u32) -> SampledToken {
        let top = vec![TokenScore { id, logprob_micro: -5 }];
        SampledToken { id, logprob_micro: -5, sampled_logprob_micro: 0, top }
    }

    /// A call in a dialogue in which tokens are numbered by their place.
    fn call(act_index: u32, reused: u32, prompt: u32, output: u32) -> ModelCall {
        let read = reused + prompt;
        ModelCall {
            act_index,
            model: "small".to_owned(),
            request_sha256: [0; 32],
            sampling: Sampling::GREEDY,
            is_grammar_bound: false,
            text: "well".to_owned(),
            finish_reason: 0,
            input_tokens: read,
            output_tokens: output,
            weight_milli: None,
            tokens: Some(CallTokens {
                reused,
                prompt: (reused..read).collect(),
                output: (read..read + output).map(token).collect(),
            }),
        }
    }

    /// Two calls in the first turn, one in the next.
    fn calls() -> Vec<ModelCall> {
        vec![call(0, 0, 5, 4), call(0, 9, 1, 2), call(1, 12, 3, 3)]
    }

    fn check(calls: Vec<ModelCall>) -> Result<(), String> {
        let agent = AgentConfig {
            name: "llm".to_owned(),
            component: ComponentSource::Builtin("llm".to_owned()),
            params: String::new(),
            candidate: false,
            models: vec!["small".to_owned(), "blind".to_owned()],
            training: Training::None,
            submission: None,
        };
        let model = ModelEntry {
            name: "small".to_owned(),
            context_tokens: 16,
            sha256: [0; 32],
            engine: String::new(),
        };
        let models = [model];
        let seat = Seat { role: Role::Buyer, agent: &agent, models: &models, limits: &LIMITS() };
        let usage = Usage { model_calls: calls, ..Usage::default() };
        seat.models(&usage, Acts { answered: 2, asked: 2 }).map_err(|finding| finding.to_string())
    }

    #[test]
    fn calls_within_every_limit_pass_with_and_without_tokens() {
        assert_eq!(check(calls()), Ok(()));
        let mut calls = calls();
        calls[1].tokens = None;
        let later = calls[2].tokens.as_mut().expect("tokens");
        // Now the first call is the one before.
        (later.reused, later.prompt) = (9, (9..15).collect());
        assert_eq!(check(calls), Ok(()));
    }

    type Lie = (fn(&mut Vec<ModelCall>), &'static str);

    const LIES: &[Lie] = &[
        (|c| c.resize(5, c[2].clone()), "the model calls of the buyer `llm`: found 5"),
        (|c| c[2].act_index = 0, "the model calls of a turn of the buyer `llm`: found 3"),
        (|c| c[1].act_index = 2, "the turn of a model call of the buyer `llm`: found 2"),
        (|c| c[0].input_tokens = 6, "the listed tokens of a prompt of the buyer `llm`: found 5"),
        (|c| c[0].output_tokens = 3, "the listed tokens of a reply of the buyer `llm`: found 4"),
        (|c| c[1] = call(0, 9, 1, 3), "the reply tokens of a turn of the buyer `llm`: found 7"),
        (
            |c| {
                c.iter_mut().for_each(|call| call.tokens = None);
                c[2].output_tokens = 5;
            },
            "the reply tokens of the buyer `llm`: found 11, expected at most 10",
        ),
        (
            |c| {
                c.iter_mut().for_each(|call| call.tokens = None);
                c[0].input_tokens = 6;
            },
            "the prompt tokens of the buyer `llm`: found 31, expected at most 30",
        ),
        (
            |c| *c = vec![call(0, 0, 16, 1)],
            "the prompt tokens of a model call of the buyer `llm`: found 16, expected at most 15",
        ),
        (
            |c| c[0].input_tokens = 0,
            "the prompt tokens of a model call of the buyer `llm`: found 0, expected at least 1",
        ),
        (
            |c| c[0].output_tokens = 0,
            "the reply tokens of a model call of the buyer `llm`: found 0, expected at least 1",
        ),
        (|c| c[0].model = "oracle".to_owned(), "found `oracle`, expected one of"),
        (|c| c[0].model = "blind".to_owned(), "found `blind`, expected one of"),
        (
            |c| c[0].sampling.top_p_milli = 0,
            "the `top-p-milli` of a model call of the buyer `llm`: found 0, expected 1 to 1000",
        ),
        (
            |c| c[0].sampling.temperature_milli = 2_001,
            "the `temperature-milli` of a model call of the buyer `llm`: found 2001",
        ),
        (
            |c| *c = vec![call(0, 1, 4, 4)],
            "the reused tokens of a prompt of the buyer `llm`: found 1, expected at most 0",
        ),
        (
            |c| {
                let tokens = c[1].tokens.as_mut().expect("tokens");
                (tokens.reused, tokens.prompt) = (8, vec![8, 9]);
            },
            "the reused tokens of a prompt of the buyer `llm`: found 8, expected all that are",
        ),
        (
            |c| c[1].tokens.as_mut().expect("tokens").reused = u32::MAX,
            "the reused tokens of a prompt of the buyer `llm`: found 4294967295",
        ),
        (
            |c| c[0].tokens.as_mut().expect("tokens").output[3].sampled_logprob_micro = 1,
            "in millionths (reply token 3) of the buyer `llm`: found 1, expected at most 0",
        ),
        (
            |c| {
                let top = &mut c[0].tokens.as_mut().expect("tokens").output[0].top;
                *top = vec![top[0]; 6];
            },
            "the number of likeliest tokens (reply token 0) of the buyer `llm`: found 6",
        ),
        (|c| c[0].finish_reason = 3, "the code of a reply's end of the buyer `llm`: found 3"),
        (|c| c[0].weight_milli = Some(1), "the weight of a reply of the buyer `llm`: found 1"),
    ];

    #[test]
    fn every_figure_of_a_model_call_is_held_against_its_limit() {
        for (lie, says) in LIES {
            let mut calls = calls();
            lie(&mut calls);
            let found = check(calls).expect_err(says);
            assert!(found.contains(says), "{found}\nnot: {says}");
        }
    }
}
