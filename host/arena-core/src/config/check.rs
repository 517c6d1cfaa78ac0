//! Checks a tournament file as a whole, its rules and its limits.

use std::ops::Range;

use toml::Spanned;

use crate::scenario::{Regulation, RuleSet};

use super::check_agents::check_agents;
use super::check_catalog::check_catalog;
use super::check_models::check_models;
use super::error::Mistake;
use super::limits::{self, MATCH_BYTES_MAX, MatchShape};
use super::parse::{Given, RawConfig, RawDraws, RawHorizon, RawLimits, RawLog, RawRoles, RawRules};
use super::values::{check_name, check_origin, number, number_or};
use super::{
    AMAZON_TURNS, CHECKPOINT_EVERY, CHECKPOINT_EVERY_MAX, CHECKPOINT_STEP, CONFIG_BYTES_MAX,
    ConfigError, HorizonConfig, Limits, LogConfig, OpenerConfig, REPETITIONS_MAX, RETRIES_MAX,
    Roles, RulesConfig, ScheduleKind, TURN_LIMIT_MAX, TournamentConfig, Training,
};

pub(super) type Checked<T> = Result<T, Mistake>;

/// Turns of the rule set `standard` where the file says nothing.
const STANDARD_TURNS: u32 = 20;
/// Retries where the file says nothing.
const RETRIES: u32 = 2;

impl TournamentConfig {
    /// Reads a tournament file.
    ///
    /// # Errors
    /// The text is not TOML, a key is unknown, missing or without effect, or a value is out
    /// of range. The first mistake is reported, with its place and key.
    pub fn parse(text: &str) -> Result<TournamentConfig, ConfigError> {
        parse(text).map_err(|mistake| mistake.locate(text))
    }
}

fn parse(text: &str) -> Checked<TournamentConfig> {
    if text.len() > CONFIG_BYTES_MAX {
        let bytes = text.len();
        let message =
            format!("the file has `{bytes}` bytes, at most `{CONFIG_BYTES_MAX}` are read");
        return Err(Mistake::at(0..0, message));
    }
    let raw: RawConfig = toml::from_str(text).map_err(|error| Mistake::from_toml(&error, text))?;
    check(raw)
}

fn check(raw: RawConfig) -> Checked<TournamentConfig> {
    let name = check_name(&raw.name)?;
    let schedule = raw.schedule.map_or(ScheduleKind::RoundRobin, ScheduleKind::from);
    let self_play = raw.self_play.unwrap_or(false);
    let roles = check_roles(&raw.roles, schedule, self_play)?;
    let repetitions = number_or(&raw.repetitions, 1..=REPETITIONS_MAX, 1)?;
    let scenario_group = check_group(&raw.scenario_group, repetitions)?;
    let rules = check_rules(raw.rules)?;
    let catalog = check_catalog(&raw.catalog)?;
    let models = check_models(raw.models)?;
    let agents = check_agents(&raw.agents, schedule, self_play, &models)?;
    let limits_span = raw.limits.as_ref().map_or(0..0, Spanned::span);
    let limits = check_limits(raw.limits.map(Spanned::into_inner).unwrap_or_default())?;
    let config = TournamentConfig {
        name,
        seed: raw.seed.as_ref().map(|given| number(given, 0..=u64::MAX)).transpose()?,
        beacon_round: check_beacon(raw.draws, &raw.seed)?,
        log: check_log(raw.log)?,
        schedule,
        roles,
        self_play,
        repetitions,
        scenario_group,
        rules,
        catalog,
        limits,
        models,
        agents,
    };
    check_match_bytes(&config, limits_span)?;
    Ok(config)
}

fn check_roles(given: &Given<RawRoles>, schedule: ScheduleKind, self_play: bool) -> Checked<Roles> {
    let Some(given) = given else {
        return Ok(Roles::Both);
    };
    let roles = Roles::from(*given.get_ref());
    if roles == Roles::Both {
        return Ok(roles);
    }
    if schedule != ScheduleKind::Gauntlet {
        let message = "there are candidates only in a gauntlet".to_owned();
        let hint = "set `schedule = \"gauntlet\"`, or leave `roles` out".to_owned();
        return Err(Mistake::at(given.span(), message).hint(hint));
    }
    if self_play {
        let message = "who meets itself buys and sells".to_owned();
        let hint = "leave `self_play` or `roles` out".to_owned();
        return Err(Mistake::at(given.span(), message).hint(hint));
    }
    Ok(roles)
}

fn check_group(given: &Given<i128>, repetitions: u32) -> Checked<u32> {
    let group = number_or(given, 1..=REPETITIONS_MAX, 1)?;
    match given {
        Some(given) if !repetitions.is_multiple_of(group) => {
            let message = format!("`repetitions` of `{repetitions}` is no multiple of `{group}`");
            Err(Mistake::at(given.span(), message)
                .hint("each group of repetitions has one scenario".to_owned()))
        }
        _ => Ok(group),
    }
}

fn check_beacon(raw: Option<RawDraws>, seed: &Given<i128>) -> Checked<Option<u64>> {
    let Some(given) = raw.and_then(|draws| draws.beacon_round) else {
        return Ok(None);
    };
    if seed.is_some() {
        let message = "`beacon_round` has no effect on a public seed".to_owned();
        return Err(
            Mistake::at(given.span(), message).hint("leave it out, or leave `seed` out".to_owned())
        );
    }
    number(&given, 1..=u64::MAX).map(Some)
}

fn check_log(raw: Option<RawLog>) -> Checked<LogConfig> {
    let Some(raw) = raw else {
        return Ok(LogConfig { origin: None, checkpoint_every: CHECKPOINT_EVERY });
    };
    let every = CHECKPOINT_STEP..=CHECKPOINT_EVERY_MAX;
    let checkpoint_every = number_or(&raw.checkpoint_every, every, CHECKPOINT_EVERY)?;
    if let Some(given) = &raw.checkpoint_every
        && !checkpoint_every.is_multiple_of(CHECKPOINT_STEP)
    {
        let message = format!("`{checkpoint_every}` is not a multiple of `{CHECKPOINT_STEP}`");
        return Err(Mistake::at(given.span(), message));
    }
    let origin = raw.origin.as_ref().map(check_origin).transpose()?;
    Ok(LogConfig { origin, checkpoint_every })
}

fn check_rules(raw: Option<RawRules>) -> Checked<RulesConfig> {
    let Some(raw) = raw else {
        return Ok(default_rules(RuleSet::Standard));
    };
    let set = raw.set.unwrap_or(RuleSet::Standard);
    let mut rules = default_rules(set);
    if let Some(given) = raw.regulation {
        let [buyer, seller] = rules.regulation;
        rules.regulation = [given.buyer.unwrap_or(buyer), given.seller.unwrap_or(seller)];
    }
    rules.retries = number_or(&raw.retries, 0..=RETRIES_MAX, rules.retries)?;
    if let Some(given) = &raw.retries
        && !rules.regulation.contains(&Regulation::Refuse)
    {
        let message = "`retries` has no effect where nobody's moves are refused".to_owned();
        return Err(Mistake::at(given.span(), message)
            .hint("leave it out, or set `refuse` for the buyer or the seller".to_owned()));
    }
    if let Some(given) = &raw.opener {
        rules.opener = OpenerConfig::from(*given.get_ref());
    }
    if let Some(given) = &raw.horizon {
        rules.horizon = check_horizon(given)?;
    }
    if set == RuleSet::AmazonHistoryPrice {
        let fixed = default_rules(set);
        let opener_span = raw.opener.map_or(0..0, |given| given.span());
        let horizon_span = raw.horizon.map_or(0..0, |given| given.span());
        if rules.opener != fixed.opener {
            let message = format!("the buyer opens under `{}`", set.name());
            return Err(Mistake::at(opener_span, message).hint("leave the key out".to_owned()));
        }
        if rules.horizon != fixed.horizon {
            let message = format!("a match has `{AMAZON_TURNS}` turns under `{}`", set.name());
            return Err(Mistake::at(horizon_span, message).hint("leave the key out".to_owned()));
        }
    }
    Ok(rules)
}

fn default_rules(set: RuleSet) -> RulesConfig {
    match set {
        RuleSet::Standard => RulesConfig {
            set,
            regulation: [Regulation::Refuse, Regulation::Refuse],
            retries: RETRIES,
            opener: OpenerConfig::Drawn,
            horizon: HorizonConfig::Fixed { turns: STANDARD_TURNS },
        },
        RuleSet::AmazonHistoryPrice => RulesConfig {
            set,
            regulation: [Regulation::Penalise, Regulation::Refuse],
            retries: RETRIES,
            opener: OpenerConfig::Buyer,
            horizon: HorizonConfig::Fixed { turns: AMAZON_TURNS },
        },
    }
}

fn check_horizon(given: &Spanned<RawHorizon>) -> Checked<HorizonConfig> {
    let raw = given.get_ref();
    match (&raw.turns, &raw.mean_turns, &raw.max_turns) {
        (Some(turns), None, None) => {
            Ok(HorizonConfig::Fixed { turns: number(turns, 1..=TURN_LIMIT_MAX)? })
        }
        (None, Some(mean), Some(max)) => {
            let max_turns = number(max, 2..=TURN_LIMIT_MAX)?;
            let mean_turns = number(mean, 2..=max_turns)?;
            Ok(HorizonConfig::Geometric { mean_turns, max_turns })
        }
        _ => Err(Mistake::at(given.span(), "not a horizon".to_owned()).hint(
            "give `{ turns = 20 }`, or `{ mean_turns = 20, max_turns = 60 }` for a hidden one"
                .to_owned(),
        )),
    }
}

fn check_limits(raw: RawLimits) -> Checked<Limits> {
    let base = Limits::default();
    let model_calls = number_or(&raw.model_calls, limits::MODEL_CALLS, base.model_calls_max)?;
    let model_output_tokens =
        number_or(&raw.model_output_tokens, limits::MODEL_TOKENS, base.model_output_tokens_max)?;
    let limits = Limits {
        fuel_start_max: number_or(&raw.fuel_start, limits::FUEL, base.fuel_start_max)?,
        fuel_turn_max: number_or(&raw.fuel_turn, limits::FUEL, base.fuel_turn_max)?,
        fuel_match_max: number_or(&raw.fuel_match, limits::FUEL, base.fuel_match_max)?,
        memory_bytes_max: number_or(&raw.memory_bytes, limits::MEMORY, base.memory_bytes_max)?,
        table_elements_max: number_or(
            &raw.table_elements,
            limits::TABLE_ELEMENTS,
            base.table_elements_max,
        )?,
        talk_bytes_max: number_or(&raw.talk_bytes, limits::TALK, base.talk_bytes_max)?,
        trace_bytes_max: number_or(&raw.trace_bytes, limits::TRACE, base.trace_bytes_max)?,
        host_calls_max: number_or(&raw.host_calls, limits::HOST_CALLS, base.host_calls_max)?,
        handles_max: number_or(&raw.handles, limits::HANDLES, base.handles_max)?,
        lifted_bytes_max: number_or(&raw.lifted_bytes, limits::LIFTED, base.lifted_bytes_max)?,
        model_calls_max: model_calls,
        model_input_tokens_max: number_or(
            &raw.model_input_tokens,
            limits::MODEL_TOKENS,
            base.model_input_tokens_max,
        )?,
        model_output_tokens_max: model_output_tokens,
        model_calls_turn_max: number_or(&raw.model_calls_turn, limits::MODEL_CALLS, model_calls)?,
        model_output_tokens_turn_max: number_or(
            &raw.model_output_tokens_turn,
            limits::MODEL_TOKENS,
            model_output_tokens,
        )?,
    };
    check_limits_together(&raw, &limits)?;
    Ok(limits)
}

fn check_limits_together(raw: &RawLimits, limits: &Limits) -> Checked<()> {
    let span = |first: &Given<i128>, second: &Given<i128>| {
        first.as_ref().or(second.as_ref()).map_or(0..0, Spanned::span)
    };
    if limits.fuel_match_max < limits.fuel_turn_max {
        let (whole, turn) = (limits.fuel_match_max, limits.fuel_turn_max);
        let message = format!("fuel for a match is `{whole}`, for one turn `{turn}`");
        return Err(Mistake::at(span(&raw.fuel_match, &raw.fuel_turn), message)
            .hint("a match needs at least the fuel of one turn".to_owned()));
    }
    let models = [
        ("model_calls", limits.model_calls_max, limits.model_calls_turn_max, &raw.model_calls_turn),
        (
            "model_output_tokens",
            limits.model_output_tokens_max,
            limits.model_output_tokens_turn_max,
            &raw.model_output_tokens_turn,
        ),
    ];
    for (key, whole, turn, given) in models {
        if turn > whole {
            let message = format!("`{key}` of a match is `{whole}`, of one turn `{turn}`");
            return Err(Mistake::at(span(given, given), message)
                .hint(format!("leave `{key}_turn` out to allow a turn all of the match's")));
        }
    }
    let reply_bytes = limits.talk_bytes_max.saturating_add(limits::REPLY_FRAME_BYTES);
    if limits.lifted_bytes_max < reply_bytes {
        let (lifted, talk) = (limits.lifted_bytes_max, limits.talk_bytes_max);
        let message = format!("`{lifted}` lifted bytes cannot carry `{talk}` bytes of talk");
        return Err(Mistake::at(span(&raw.lifted_bytes, &raw.talk_bytes), message)
            .hint(format!("`lifted_bytes` of `{reply_bytes}` would do")));
    }
    Ok(())
}

fn check_match_bytes(config: &TournamentConfig, limits_span: Range<usize>) -> Checked<()> {
    let models = config.agents.iter().any(|agent| !agent.models.is_empty());
    let training = config.agents.iter().any(|agent| agent.training != Training::None);
    let shape = MatchShape::new(&config.rules, models, training);
    let bytes = config.limits.match_bytes_bound(shape);
    if bytes <= MATCH_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "a match could take `{bytes}` bytes of the log, a transcript has at most \
         `{MATCH_BYTES_MAX}`"
    );
    let hint = "lower `talk_bytes`, `trace_bytes`, `host_calls`, `model_calls`, the tokens of \
                models or the turns";
    Err(Mistake::at(limits_span, message).hint(hint.to_owned()))
}
