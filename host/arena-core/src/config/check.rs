//! The bounds of a tournament file: raw values become a [`TournamentConfig`] or a mistake.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;

use crate::catalog::{ITEMS_MAX, PRICE_CENTS_MAX};
use crate::price::Price;
use crate::scenario::{Brief, Regulation, RuleSet};

use super::error::Mistake;
use super::limits::{self, MATCH_BYTES_MAX, MatchShape};
use super::parse::{
    Factor, Given, RawAgent, RawCatalog, RawCatalogKind, RawConfig, RawHorizon, RawLimits,
    RawModel, RawRules,
};
use super::{
    AGENTS_MAX, AMAZON_TURNS, AgentConfig, BUDGET_FACTOR_MILLI_MAX, CONFIG_BYTES_MAX,
    CatalogConfig, CatalogKind, ComponentSource, ConfigError, HorizonConfig, Limits, MODELS_MAX,
    ModelConfig, NAME_BYTES_MAX, OpenerConfig, PATH_BYTES_MAX, REPETITIONS_MAX, RETRIES_MAX,
    RulesConfig, ScheduleKind, Split, TURN_LIMIT_MAX, TournamentConfig,
};

type Checked<T> = Result<T, Mistake>;

/// Turns of the rule set `standard` where the file says nothing.
const STANDARD_TURNS: u32 = 20;
/// Retries where the file says nothing.
const RETRIES: u32 = 2;
/// Share of synthetic items without a possible deal where the file says nothing.
const INFEASIBLE_MILLI: u32 = 150;
/// Budget factor of the AmazonHistoryPrice products where the file says nothing.
const BUDGET_FACTOR_MILLI: u32 = 800;

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
    let raw: RawConfig = toml::from_str(text).map_err(|error| Mistake::from_toml(&error))?;
    check(raw)
}

fn check(raw: RawConfig) -> Checked<TournamentConfig> {
    let name = check_name(&raw.name)?;
    let schedule = raw
        .schedule
        .map_or(ScheduleKind::RoundRobin, ScheduleKind::from);
    let self_play = raw.self_play.unwrap_or(false);
    let repetitions = number_or(&raw.repetitions, 1..=REPETITIONS_MAX, 1)?;
    let rules = check_rules(raw.rules)?;
    let catalog = check_catalog(&raw.catalog)?;
    let models = check_models(raw.models)?;
    let agents = check_agents(&raw.agents, schedule, self_play, &models)?;
    let limits_span = raw.limits.as_ref().map_or(0..0, Spanned::span);
    let limits = check_limits(raw.limits.map(Spanned::into_inner).unwrap_or_default())?;
    let config = TournamentConfig {
        name,
        seed: number_or(&raw.seed, 0..=u64::MAX, 0)?,
        schedule,
        self_play,
        repetitions,
        rules,
        catalog,
        limits,
        models,
        agents,
    };
    check_match_bytes(&config, limits_span)?;
    Ok(config)
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
            horizon: HorizonConfig::Fixed {
                turns: STANDARD_TURNS,
            },
        },
        RuleSet::AmazonHistoryPrice => RulesConfig {
            set,
            regulation: [Regulation::Penalise, Regulation::Refuse],
            retries: RETRIES,
            opener: OpenerConfig::Buyer,
            horizon: HorizonConfig::Fixed {
                turns: AMAZON_TURNS,
            },
        },
    }
}

fn check_horizon(given: &Spanned<RawHorizon>) -> Checked<HorizonConfig> {
    let raw = given.get_ref();
    match (&raw.turns, &raw.mean_turns, &raw.max_turns) {
        (Some(turns), None, None) => Ok(HorizonConfig::Fixed {
            turns: number(turns, 1..=TURN_LIMIT_MAX)?,
        }),
        (None, Some(mean), Some(max)) => {
            let max_turns = number(max, 2..=TURN_LIMIT_MAX)?;
            let mean_turns = number(mean, 2..=max_turns)?;
            Ok(HorizonConfig::Geometric {
                mean_turns,
                max_turns,
            })
        }
        _ => Err(Mistake::at(given.span(), "not a horizon".to_owned()).hint(
            "give `{ turns = 20 }`, or `{ mean_turns = 20, max_turns = 60 }` for a hidden one"
                .to_owned(),
        )),
    }
}

fn check_catalog(given: &Spanned<RawCatalog>) -> Checked<CatalogConfig> {
    let raw = given.get_ref();
    check_catalog_keys(raw)?;
    let required = |key: &str| {
        let message = format!("missing key `{key}`");
        let hint = format!("kind `{}` needs it", raw.kind.name());
        Mistake::at(given.span(), message).hint(hint)
    };
    let items = || {
        let items = raw.items.as_ref().ok_or_else(|| required("items"))?;
        number(items, 1..=ITEMS_MAX)
    };
    let kind = match raw.kind {
        RawCatalogKind::Synthetic => CatalogKind::Synthetic {
            items: items()?,
            infeasible_milli: match &raw.infeasible_share {
                None => INFEASIBLE_MILLI,
                Some(share) => milli(share.get_ref().milli(1_000), share, "0 to 1")?,
            },
        },
        RawCatalogKind::Uniform => {
            let items = items()?;
            let low = price(raw.low.as_ref().ok_or_else(|| required("low"))?)?;
            let high_given = raw.high.as_ref().ok_or_else(|| required("high"))?;
            let high = price(high_given)?;
            if low >= high {
                let message = format!("`{high}` is not above `low`, which is `{low}`");
                return Err(Mistake::at(high_given.span(), message));
            }
            CatalogKind::Uniform { items, low, high }
        }
        RawCatalogKind::AmazonHistoryPrice => CatalogKind::AmazonHistoryPrice {
            folder: check_path(raw.folder.as_ref().ok_or_else(|| required("folder"))?)?,
            budget_factor_milli: match &raw.budget_factor {
                None => [BUDGET_FACTOR_MILLI; 2],
                Some(factor) => check_factor(factor)?,
            },
        },
    };
    let sample = raw
        .sample
        .as_ref()
        .map(|sample| number(sample, 1..=ITEMS_MAX))
        .transpose()?;
    Ok(CatalogConfig {
        kind,
        split: raw.split.map_or(Split::All, Split::from),
        sample,
    })
}

/// Refuses keys that would have no effect on the chosen kind of catalog.
fn check_catalog_keys(raw: &RawCatalog) -> Checked<()> {
    let span = |given: Option<Range<usize>>, key, kinds: &'static [RawCatalogKind]| {
        given.map(|span| (span, key, kinds))
    };
    use RawCatalogKind::{AmazonHistoryPrice, Synthetic, Uniform};
    let given = [
        span(
            raw.items.as_ref().map(Spanned::span),
            "items",
            &[Synthetic, Uniform],
        ),
        span(
            raw.infeasible_share.as_ref().map(Spanned::span),
            "infeasible_share",
            &[Synthetic],
        ),
        span(raw.low.as_ref().map(Spanned::span), "low", &[Uniform]),
        span(raw.high.as_ref().map(Spanned::span), "high", &[Uniform]),
        span(
            raw.folder.as_ref().map(Spanned::span),
            "folder",
            &[AmazonHistoryPrice],
        ),
        span(
            raw.budget_factor.as_ref().map(Spanned::span),
            "budget_factor",
            &[AmazonHistoryPrice],
        ),
    ];
    for (span, key, kinds) in given.into_iter().flatten() {
        if !kinds.contains(&raw.kind) {
            let message = format!("`{key}` has no effect on kind `{}`", raw.kind.name());
            let names: Vec<String> = kinds
                .iter()
                .map(|kind| format!("`{}`", kind.name()))
                .collect();
            let hint = format!("it belongs to kind {}", names.join(" and "));
            return Err(Mistake::at(span, message).hint(hint));
        }
    }
    Ok(())
}

fn check_factor(given: &Spanned<Factor>) -> Checked<[u32; 2]> {
    let Factor { low, high } = given.get_ref();
    let bounded = |value: Option<u32>| value.filter(|&value| value > 0);
    let low = milli(
        bounded(low.milli(BUDGET_FACTOR_MILLI_MAX)),
        given,
        "0.001 to 2",
    )?;
    let high = milli(
        bounded(high.milli(BUDGET_FACTOR_MILLI_MAX)),
        given,
        "0.001 to 2",
    )?;
    if low > high {
        let message = "the range runs from high to low".to_owned();
        return Err(Mistake::at(given.span(), message));
    }
    Ok([low, high])
}

fn check_limits(raw: RawLimits) -> Checked<Limits> {
    let base = Limits::default();
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
        model_calls_max: number_or(&raw.model_calls, limits::MODEL_CALLS, base.model_calls_max)?,
        model_input_tokens_max: number_or(
            &raw.model_input_tokens,
            limits::MODEL_TOKENS,
            base.model_input_tokens_max,
        )?,
        model_output_tokens_max: number_or(
            &raw.model_output_tokens,
            limits::MODEL_TOKENS,
            base.model_output_tokens_max,
        )?,
    };
    check_limits_together(&raw, &limits)?;
    Ok(limits)
}

fn check_limits_together(raw: &RawLimits, limits: &Limits) -> Checked<()> {
    let span = |first: &Given<i128>, second: &Given<i128>| {
        first
            .as_ref()
            .or(second.as_ref())
            .map_or(0..0, Spanned::span)
    };
    if limits.fuel_match_max < limits.fuel_turn_max {
        let (whole, turn) = (limits.fuel_match_max, limits.fuel_turn_max);
        let message = format!("fuel for a match is `{whole}`, for one turn `{turn}`");
        return Err(Mistake::at(span(&raw.fuel_match, &raw.fuel_turn), message)
            .hint("a match needs at least the fuel of one turn".to_owned()));
    }
    let reply_bytes = limits
        .talk_bytes_max
        .saturating_add(limits::REPLY_FRAME_BYTES);
    if limits.lifted_bytes_max < reply_bytes {
        let (lifted, talk) = (limits.lifted_bytes_max, limits.talk_bytes_max);
        let message = format!("`{lifted}` lifted bytes cannot carry `{talk}` bytes of talk");
        return Err(
            Mistake::at(span(&raw.lifted_bytes, &raw.talk_bytes), message)
                .hint(format!("`lifted_bytes` of `{reply_bytes}` would do")),
        );
    }
    Ok(())
}

fn check_match_bytes(config: &TournamentConfig, limits_span: Range<usize>) -> Checked<()> {
    let models = config.agents.iter().any(|agent| !agent.models.is_empty());
    let training = config.agents.iter().any(|agent| agent.training);
    let shape = MatchShape::new(&config.rules, models, training);
    let bytes = config.limits.match_bytes_bound(shape);
    if bytes <= MATCH_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "a match could take `{bytes}` bytes of the log, an entry holds `{MATCH_BYTES_MAX}`"
    );
    let hint = "lower `talk_bytes`, `trace_bytes`, `host_calls`, `model_calls` or the turns";
    Err(Mistake::at(limits_span, message).hint(hint.to_owned()))
}

fn check_models(raw: Vec<Spanned<RawModel>>) -> Checked<Vec<ModelConfig>> {
    let mut models = Vec::new();
    let mut names = BTreeSet::new();
    for given in raw {
        if models.len() >= MODELS_MAX {
            return Err(Mistake::at(
                given.span(),
                format!("more than `{MODELS_MAX}` models"),
            ));
        }
        let raw = given.into_inner();
        let name = check_name(&raw.name)?;
        if !names.insert(name.clone()) {
            return Err(Mistake::at(
                raw.name.span(),
                format!("a second model named `{name}`"),
            ));
        }
        models.push(ModelConfig {
            name,
            script: check_path(&raw.script)?,
        });
    }
    Ok(models)
}

fn check_agents(
    given: &Spanned<Vec<Spanned<RawAgent>>>,
    schedule: ScheduleKind,
    self_play: bool,
    models: &[ModelConfig],
) -> Checked<Vec<AgentConfig>> {
    let mut agents = Vec::new();
    let mut names = BTreeSet::new();
    for given in given.get_ref() {
        if agents.len() >= AGENTS_MAX {
            return Err(Mistake::at(
                given.span(),
                format!("more than `{AGENTS_MAX}` agents"),
            ));
        }
        let agent = check_agent(given.get_ref(), schedule, models)?;
        if !names.insert(agent.name.clone()) {
            let message = format!("a second agent named `{}`", agent.name);
            return Err(Mistake::at(given.get_ref().name.span(), message));
        }
        agents.push(agent);
    }
    check_agent_counts(&agents, schedule, self_play)
        .map_err(|(message, hint)| Mistake::at(given.span(), message).hint(hint.to_owned()))?;
    Ok(agents)
}

fn check_agent_counts(
    agents: &[AgentConfig],
    schedule: ScheduleKind,
    self_play: bool,
) -> Result<(), (String, &'static str)> {
    let agent_count = agents.len();
    let candidate_count = agents.iter().filter(|agent| agent.candidate).count();
    match schedule {
        ScheduleKind::RoundRobin if agent_count == 0 => {
            Err(("no agent".to_owned(), "add an `[[agents]]` table"))
        }
        ScheduleKind::RoundRobin if agent_count == 1 && !self_play => Err((
            "one agent meets nobody".to_owned(),
            "add a second one, or `self_play = true`",
        )),
        ScheduleKind::Gauntlet if candidate_count == 0 => Err((
            "a gauntlet without a candidate".to_owned(),
            "mark one `candidate = true`",
        )),
        ScheduleKind::Gauntlet if candidate_count == agent_count => Err((
            "a gauntlet without a field".to_owned(),
            "add agents that are no candidates",
        )),
        _ => Ok(()),
    }
}

fn check_agent(
    raw: &RawAgent,
    schedule: ScheduleKind,
    models: &[ModelConfig],
) -> Checked<AgentConfig> {
    if let Some(candidate) = &raw.candidate
        && schedule == ScheduleKind::RoundRobin
    {
        let message = "`candidate` has no effect on a round robin".to_owned();
        return Err(Mistake::at(candidate.span(), message)
            .hint("leave it out, or set `schedule = \"gauntlet\"`".to_owned()));
    }
    let mut granted: Vec<String> = Vec::new();
    for given in &raw.models {
        let model = given.get_ref();
        if !models.iter().any(|known| known.name == *model) {
            let message = format!("no model is named `{}`", model.escape_debug());
            return Err(Mistake::at(given.span(), message)
                .hint("models are declared in `[[models]]` tables".to_owned()));
        }
        if granted.contains(model) {
            return Err(Mistake::at(
                given.span(),
                format!("`{model}` is granted twice"),
            ));
        }
        granted.push(model.clone());
    }
    Ok(AgentConfig {
        name: check_name(&raw.name)?,
        component: check_component(&raw.component)?,
        params: match &raw.params {
            None => String::new(),
            Some(params) => {
                check_length(params, 0..=Brief::PARAMS_BYTES_MAX)?;
                params.get_ref().clone()
            }
        },
        candidate: raw.candidate.as_ref().is_some_and(|given| *given.get_ref()),
        models: granted,
        training: raw.training.unwrap_or(false),
    })
}

fn check_component(given: &Spanned<String>) -> Checked<ComponentSource> {
    let text = given.get_ref();
    if let Some(name) = text.strip_prefix("builtin:") {
        let named = Spanned::new(given.span(), name.to_owned());
        return Ok(ComponentSource::Builtin(check_name(&named)?));
    }
    let path = check_path(given)?;
    if path.ends_with(".wasm") {
        return Ok(ComponentSource::File(path));
    }
    let message = format!("`{}` is not a component", text.escape_debug());
    let hint = if path.ends_with(".cwasm") {
        "precompiled code is never accepted, give the `.wasm` file"
    } else {
        "give `builtin:NAME` or the path of a `.wasm` file"
    };
    Err(Mistake::at(given.span(), message).hint(hint.to_owned()))
}

fn check_name(given: &Spanned<String>) -> Checked<String> {
    let name = given.get_ref();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(allowed) {
        let message = format!("`{}` is not a name", name.escape_debug());
        let hint = format!("1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`");
        return Err(Mistake::at(given.span(), message).hint(hint));
    }
    Ok(name.clone())
}

fn check_path(given: &Spanned<String>) -> Checked<String> {
    check_length(given, 1..=PATH_BYTES_MAX)?;
    let path = given.get_ref();
    if path.contains('\0') {
        return Err(Mistake::at(
            given.span(),
            "a path holds no zero byte".to_owned(),
        ));
    }
    Ok(path.clone())
}

fn check_length(given: &Spanned<String>, range: RangeInclusive<usize>) -> Checked<()> {
    let bytes = given.get_ref().len();
    if range.contains(&bytes) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(Mistake::at(
        given.span(),
        format!("`{bytes}` bytes, not `{low}` to `{high}`"),
    ))
}

fn price(given: &Spanned<String>) -> Checked<Price> {
    let price = Price::parse(given.get_ref())
        .map_err(|error| Mistake::at(given.span(), error.to_string()))?;
    if price.cents() > PRICE_CENTS_MAX {
        let message = format!("`{price}` is above `{}`", Price(PRICE_CENTS_MAX));
        return Err(Mistake::at(given.span(), message));
    }
    Ok(price)
}

/// Accepts a share in thousandths that was read, or says what the value should be.
fn milli<T>(read: Option<u32>, given: &Spanned<T>, range: &str) -> Checked<u32> {
    read.ok_or_else(|| {
        let message = format!("not a number from {range} with at most three decimals");
        Mistake::at(given.span(), message)
    })
}

fn number<T>(given: &Spanned<i128>, range: RangeInclusive<T>) -> Checked<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    let value = *given.get_ref();
    match T::try_from(value) {
        Ok(narrow) if range.contains(&narrow) => Ok(narrow),
        _ => {
            let (low, high) = (range.start(), range.end());
            Err(Mistake::at(
                given.span(),
                format!("`{value}` is not from `{low}` to `{high}`"),
            ))
        }
    }
}

fn number_or<T>(given: &Given<i128>, range: RangeInclusive<T>, default: T) -> Checked<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    given
        .as_ref()
        .map_or(Ok(default), |given| number(given, range))
}
