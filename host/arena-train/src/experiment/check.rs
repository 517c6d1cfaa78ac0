//! Checks an experiment file's values.
//!
//! Not here: what every tournament file takes over. The files of the run are made and read, and
//! what is wrong with them is told at its place in the experiment (`places`).

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use arena_core::config::error::{ConfigError, Mistake, suggestion};
use arena_core::config::models::{CACHE_MIB_MAX, CONTEXT_TOKENS_MAX, CONTEXT_TOKENS_MIN, Device};
use arena_core::config::models::{SLOTS, SLOTS_MAX};
use arena_core::config::{AGENTS_MAX, PATH_BYTES_MAX, REPETITIONS_MAX, TournamentConfig, is_name};
use arena_core::ledger::{STEP_MATCHES_MAX, STEPS_MAX};
use arena_core::scenario::Role;
use toml::Spanned;

use crate::advantage::Baseline;
use crate::compact::weight_count;
use crate::objective::{Clip, Loss, Objective};
use crate::optimiser::{AdamW, Decay, Schedule};
use crate::reward::RewardKind;
use crate::trainer::Routing;

use super::parse::{
    Given, RawAgent, RawEvaluate, RawExperiment, RawLearner, RawPolicy, RawTrain, RawWarmStart,
};
use super::places::{self, Parts};
use super::{
    AdapterConfig, AgentConfig, EPOCHS_MAX, EXPERIMENT_BYTES_MAX, EXPERIMENT_NAME_BYTES_MAX,
    EvaluateConfig, Experiment, FIELDS_MAX, FieldConfig, GROUP_SIZE_MAX, LAYERS_MAX, LEARNER,
    LearnerConfig, MICRO_BATCH_TOKENS_MAX, MINIBATCHES_MAX, Mode, Occasion, POLICY, PolicyConfig,
    PolicySource, Shape, Tables, TrainConfig, WEIGHTS_MAX, WIDTH_MAX, WarmStartConfig,
};

type Checked<T> = Result<T, Mistake>;

/// The cache of a policy's engine, in MiB, where the file says nothing.
const POLICY_CACHE_MIB: u32 = 256;
/// Tokens of a new model's dialogues where the file says nothing.
const CONTEXT_TOKENS: u32 = 512;
/// Tokens that are computed together where the file says nothing.
const MICRO_BATCH_TOKENS: usize = 8_192;
/// Most items of a step.
const ITEMS_MAX: u32 = 65_536;

impl Experiment {
    /// Reads an experiment file.
    ///
    /// # Errors
    /// The text is not TOML, a key is unknown, missing or without effect, or a value is out of
    /// range. The first mistake is reported, with its place and key.
    pub fn parse(text: &str) -> Result<Experiment, ConfigError> {
        let experiment = parse(text).map_err(|mistake| mistake.locate(text))?;
        check_tournaments(&experiment, text)?;
        Ok(experiment)
    }

    /// Returns the text of an experiment with another seed or number of steps.
    ///
    /// # Errors
    /// As [`Experiment::parse`], also of what comes out.
    pub fn with(text: &str, seed: Option<u64>, steps: Option<u32>) -> Result<String, ConfigError> {
        let raw = read(text).map_err(|mistake| mistake.locate(text))?;
        let mut changes: Vec<(std::ops::Range<usize>, String)> = Vec::new();
        changes.extend(seed.map(|seed| (raw.seed.span(), seed.to_string())));
        changes.extend(steps.map(|steps| (raw.train.steps.span(), steps.to_string())));
        // From the back, so that places before a change stay where they are.
        changes.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        let mut changed = text.to_owned();
        for (span, value) in changes {
            changed.replace_range(span, &value);
        }
        Experiment::parse(&changed)?;
        Ok(changed)
    }
}

fn read(text: &str) -> Checked<RawExperiment> {
    if text.len() > EXPERIMENT_BYTES_MAX {
        let bytes = text.len();
        let message =
            format!("the file has `{bytes}` bytes, at most `{EXPERIMENT_BYTES_MAX}` are read");
        return Err(Mistake::at(0..0, message));
    }
    toml::from_str(text).map_err(|error| Mistake::from_toml(&error, text))
}

fn parse(text: &str) -> Checked<Experiment> {
    let raw = read(text)?;
    let mut names = BTreeSet::from([LEARNER.to_owned()]);
    let opponents = check_agents(raw.opponents.get_ref(), &mut names)?;
    let baselines = check_agents(&raw.baselines, &mut names)?;
    if opponents.is_empty() {
        let message = "nobody to learn from".to_owned();
        return Err(Mistake::at(raw.opponents.span(), message)
            .hint("add an `[[opponents]]` table".to_owned()));
    }
    let policy = check_policy(&raw.policy)?;
    let train = check_train(&raw.train, &opponents)?;
    let evaluate = raw
        .evaluate
        .map(|evaluate| check_evaluate(&evaluate, &raw.learner, &opponents, &train))
        .transpose()?;
    let warm_start = raw.warm_start.as_ref().map(check_warm_start).transpose()?;
    Ok(Experiment {
        name: check_name(&raw.name, EXPERIMENT_NAME_BYTES_MAX)?,
        seed: number(&raw.seed, 0..=i64::MAX.unsigned_abs())?,
        device: check_device(&raw.device)?,
        policy,
        learner: check_learner(&raw.learner)?,
        opponents,
        baselines,
        warm_start,
        train,
        evaluate,
        checkpoint_every: number_or(
            &raw.checkpoints.and_then(|checkpoints| checkpoints.every),
            1..=STEPS_MAX,
            25,
        )?,
        tables: Tables {
            rules: raw.rules,
            catalog: places::check_catalog(raw.catalog)?,
            limits: raw.limits,
            models: places::check_models(raw.models)?,
        },
    })
}

/// Makes a file of every kind that the run will play, so that what is wrong with what they take
/// over is known before the first.
fn check_tournaments(experiment: &Experiment, text: &str) -> Result<(), ConfigError> {
    let mut occasions = vec![Occasion::Step { step: 1 }];
    occasions.extend(experiment.warm_start.as_ref().map(|_| Occasion::WarmStart));
    if let Some(evaluate) = &experiment.evaluate {
        let modes = evaluate.modes.iter();
        occasions.extend(modes.map(|&mode| Occasion::Evaluation { step: 0, mode }));
    }
    for occasion in occasions {
        let tournament = experiment.tournament(occasion, [0; 32]);
        let parts = Parts {
            baselines: experiment.compared(occasion).len(),
            opponents: experiment.met(occasion),
        };
        TournamentConfig::parse(&tournament)
            .map_err(|error| places::in_experiment(error, &parts, text))?;
    }
    Ok(())
}

fn check_policy(given: &Spanned<RawPolicy>) -> Checked<PolicyConfig> {
    let raw = given.get_ref();
    let context = CONTEXT_TOKENS_MIN..=CONTEXT_TOKENS_MAX;
    let context_tokens = raw.context.as_ref().map(|given| number(given, context)).transpose()?;
    let source = match (&raw.kind, &raw.weights) {
        (Some(kind), None) => {
            choose(kind, &[("compact", ())])?;
            if let Some(adapter) = &raw.adapter {
                let message = "a new model is trained whole".to_owned();
                return Err(Mistake::at(adapter.span(), message).hint("leave it out".to_owned()));
            }
            PolicySource::Compact(check_shape(raw, context_tokens.unwrap_or(CONTEXT_TOKENS))?)
        }
        (None, Some(weights)) => {
            refuse_shape(raw)?;
            PolicySource::Weights(check_text(weights, PATH_BYTES_MAX)?)
        }
        _ => {
            let message = "not a policy".to_owned();
            let hint = "give it `kind = \"compact\"`, or `weights`".to_owned();
            return Err(Mistake::at(given.span(), message).hint(hint));
        }
    };
    let context_tokens = match source {
        PolicySource::Compact(shape) => Some(shape.context_tokens),
        PolicySource::Weights(_) => context_tokens,
    };
    let adapter = raw.adapter.as_ref().map(|given| {
        let rank = number(&given.get_ref().rank, 1..=1_024)?;
        let alpha = real_or(&given.get_ref().alpha, 1e-3..=1e6, 2.0 * f64::from(rank))?;
        Ok(AdapterConfig { rank, alpha: alpha as f32 })
    });
    Ok(PolicyConfig {
        source,
        adapter: adapter.transpose()?,
        context_tokens,
        cache_mib: number_or(&raw.cache_mib, 1..=CACHE_MIB_MAX, POLICY_CACHE_MIB)?,
        slots: number_or(&raw.slots, 1..=SLOTS_MAX, SLOTS)?,
    })
}

fn check_shape(raw: &RawPolicy, context_tokens: u32) -> Checked<Shape> {
    let layers = number_or(&raw.layers, 1..=LAYERS_MAX, 4)?;
    let width = number_or(&raw.width, 8..=WIDTH_MAX, 128)?;
    let heads = number_or(&raw.heads, 1..=width, 4)?;
    let kv_heads = number_or(&raw.kv_heads, 1..=heads, heads)?;
    let feed_forward = number_or(&raw.feed_forward, 8..=4 * WIDTH_MAX, 4 * width)?;
    let span = |given: &Given<i128>, or: &Given<i128>| {
        given.as_ref().or(or.as_ref()).map_or(0..0, Spanned::span)
    };
    // Rotary embeddings turn pairs of numbers.
    if !width.is_multiple_of(heads) || !(width / heads).is_multiple_of(2) {
        let message = format!("`{width}` numbers do not divide into `{heads}` heads of even width");
        return Err(Mistake::at(span(&raw.heads, &raw.width), message));
    }
    if !heads.is_multiple_of(kv_heads) {
        let message = format!("`{heads}` heads do not share `{kv_heads}` evenly");
        return Err(Mistake::at(span(&raw.kv_heads, &raw.heads), message));
    }
    let shape = Shape { layers, width, heads, kv_heads, feed_forward, context_tokens };
    let weights = weight_count(&shape);
    if weights > WEIGHTS_MAX {
        let message = format!("a model of `{weights}` weights, at most `{WEIGHTS_MAX}`");
        return Err(Mistake::at(span(&raw.width, &raw.layers), message));
    }
    Ok(shape)
}

fn refuse_shape(raw: &RawPolicy) -> Checked<()> {
    let keys = [
        ("layers", &raw.layers),
        ("width", &raw.width),
        ("heads", &raw.heads),
        ("kv_heads", &raw.kv_heads),
        ("feed_forward", &raw.feed_forward),
    ];
    match keys.into_iter().find_map(|(key, given)| Some((key, given.as_ref()?))) {
        None => Ok(()),
        Some((key, given)) => {
            let message = format!("`{key}` has no effect on a policy with `weights`");
            Err(Mistake::at(given.span(), message).hint("leave it out".to_owned()))
        }
    }
}

fn check_learner(raw: &RawLearner) -> Checked<LearnerConfig> {
    let role = raw
        .role
        .as_ref()
        .map(|given| choose(given, &[("buyer", Role::Buyer), ("seller", Role::Seller)]));
    Ok(LearnerConfig {
        component: raw.component.get_ref().clone(),
        role: role.transpose()?.unwrap_or(Role::Buyer),
        params: raw.params.as_ref().map(|given| given.get_ref().clone()).unwrap_or_default(),
        greedy: raw.greedy.as_ref().map(|given| given.get_ref().clone()),
    })
}

fn check_agents(raw: &[RawAgent], names: &mut BTreeSet<String>) -> Checked<Vec<AgentConfig>> {
    let check = |agent: &RawAgent| {
        let name = agent.name.get_ref().clone();
        if !names.insert(name.clone()) {
            let message = format!("a second agent named `{name}`");
            return Err(Mistake::at(agent.name.span(), message));
        }
        let models = agent.models.iter().map(|model| model.get_ref().clone()).collect();
        if let Some(model) = agent.models.iter().find(|model| model.get_ref() == POLICY) {
            let message = format!("`{POLICY}` is the learner's alone");
            return Err(Mistake::at(model.span(), message));
        }
        Ok(AgentConfig {
            name,
            component: agent.component.get_ref().clone(),
            params: agent.params.as_ref().map(|given| given.get_ref().clone()).unwrap_or_default(),
            models,
        })
    };
    if raw.len() > AGENTS_MAX {
        let message = format!("more than `{AGENTS_MAX}` agents");
        return Err(Mistake::at(raw[AGENTS_MAX].name.span(), message));
    }
    raw.iter().map(check).collect()
}

fn check_warm_start(raw: &RawWarmStart) -> Checked<WarmStartConfig> {
    Ok(WarmStartConfig {
        items: number_or(&raw.items, 1..=ITEMS_MAX, 256)?,
        repetitions: number_or(&raw.repetitions, 1..=REPETITIONS_MAX, 1)?,
        epochs: number_or(&raw.epochs, 1..=EPOCHS_MAX, 1)?,
        batch: number_or(&raw.batch, 1..=ITEMS_MAX, 32)?,
        learning_rate: real_or(&raw.learning_rate, 0.0..=1.0, 1e-3)?,
        warm_up: number_or(&raw.warm_up, 0..=STEPS_MAX, 10)?,
        argue_milli: check_milli(&raw.argue)?,
        explore_milli: check_milli(&raw.explore)?,
    })
}

/// A share that is counted in thousandths.
fn check_milli(given: &Given<f64>) -> Checked<Option<u32>> {
    let milli = |share: f64| (share * 1_000.0).round() as u32;
    Ok(given.as_ref().map(|_| real_or(given, 0.0..=1.0, 0.0)).transpose()?.map(milli))
}

fn check_train(raw: &RawTrain, opponents: &[AgentConfig]) -> Checked<TrainConfig> {
    let met = match &raw.opponents {
        Some(given) => find_opponents(given, opponents)?,
        None => (0..opponents.len()).collect(),
    };
    if let Some(given) = raw.reward.as_ref().filter(|given| *given.get_ref() == RewardKind::Judge) {
        let message = "there is no judge to ask in a run".to_owned();
        return Err(Mistake::at(given.span(), message));
    }
    let items = number_or(&raw.items, 1..=ITEMS_MAX, 8)?;
    let group_size = number_or(&raw.group_size, 2..=GROUP_SIZE_MAX, 8)?;
    let matches = u64::from(items) * u64::from(group_size) * met.len() as u64;
    if matches > u64::from(STEP_MATCHES_MAX) {
        let message = format!("a step of `{matches}` matches, at most `{STEP_MATCHES_MAX}`");
        let span = raw.items.as_ref().or(raw.group_size.as_ref()).map_or(0..0, Spanned::span);
        return Err(Mistake::at(span, message));
    }
    let steps = number(&raw.steps, 1..=STEPS_MAX)?;
    let epochs = number_or(&raw.epochs, 1..=EPOCHS_MAX, 1)?;
    let minibatches = number_or(&raw.minibatches, 1..=MINIBATCHES_MAX, 1)?;
    Ok(TrainConfig {
        steps,
        items,
        group_size,
        opponents: met,
        reward: raw.reward.as_ref().map_or(RewardKind::Surplus, |given| *given.get_ref()),
        baseline: raw.advantage.unwrap_or(Baseline::GroupMean),
        loss: check_loss(raw)?,
        adam: AdamW {
            weight_decay: real_or(&raw.weight_decay, 0.0..=1.0, 0.0)?,
            norm_max: real_or(&raw.gradient_clip, 1e-9..=1e9, 1.0)?,
            ..AdamW::default()
        },
        schedule: check_schedule(raw, steps)?,
        micro_batch_tokens: number_or(
            &raw.micro_batch_tokens,
            1..=MICRO_BATCH_TOKENS_MAX,
            MICRO_BATCH_TOKENS,
        )?,
        epochs,
        minibatches,
        routing: check_routing(&raw.routing, epochs * minibatches)?,
        allow_cuts: raw.allow_cuts.unwrap_or(false),
        shuffle_advantages: raw.shuffle_advantages.unwrap_or(false),
    })
}

fn check_routing(given: &Given<String>, updates: u32) -> Checked<Routing> {
    let Some(given) = given else {
        return Ok(Routing::Replay);
    };
    if updates == 1 {
        let message = "`routing` has no effect on the only update of a step".to_owned();
        return Err(Mistake::at(given.span(), message).hint("leave it out".to_owned()));
    }
    choose(given, &[("replay", Routing::Replay), ("anew", Routing::Anew)])
}

fn check_schedule(raw: &RawTrain, steps: u32) -> Checked<Schedule> {
    let decay = raw.schedule.unwrap_or(Decay::Constant);
    Ok(Schedule {
        peak: real(&raw.learning_rate, 1e-12..=1.0)?,
        warmup_steps: number_or(&raw.warm_up, 0..=STEPS_MAX, 0)?,
        decay,
        step_count: steps,
        final_share: if decay == Decay::Constant { 1.0 } else { 0.0 },
    })
}

fn check_loss(raw: &RawTrain) -> Checked<Loss> {
    let (clip, length) = (Clip::DAPO, 1);
    let objectives = [
        ("grpo", Objective::Grpo { clip }),
        ("dapo", Objective::Dapo { clip }),
        ("dr-grpo", Objective::DrGrpo { clip, length }),
        ("gspo", Objective::Gspo { clip: Clip::GSPO }),
        ("rloo", Objective::Rloo { clip }),
        ("cispo", Objective::Cispo { clip }),
        ("reinforce", Objective::Reinforce),
    ];
    let chosen = raw.objective.as_ref().map(|given| choose(given, &objectives)).transpose()?;
    let objective = chosen.unwrap_or(Objective::Dapo { clip });
    let cut = |default: Clip| {
        Ok(Clip {
            low: real_or(&raw.clip_low, 0.0..=1.0, default.low)?,
            high: real_or(&raw.clip_high, 0.0..=100.0, default.high)?,
        })
    };
    if let (false, Some(given)) = (matches!(objective, Objective::DrGrpo { .. }), &raw.length) {
        return Err(no_effect(given.span(), "length", "dr-grpo"));
    }
    let objective = match objective {
        Objective::Grpo { clip } => Objective::Grpo { clip: cut(clip)? },
        Objective::Dapo { clip } => Objective::Dapo { clip: cut(clip)? },
        Objective::Gspo { clip } => Objective::Gspo { clip: cut(clip)? },
        Objective::Rloo { clip } => Objective::Rloo { clip: cut(clip)? },
        Objective::Cispo { clip } => Objective::Cispo { clip: cut(clip)? },
        Objective::DrGrpo { clip, .. } => {
            let missing = || {
                let span = raw.objective.as_ref().map_or(0..0, Spanned::span);
                Mistake::at(span, "`dr-grpo` needs `length`".to_owned())
                    .hint("the most tokens that the learner may write in a match".to_owned())
            };
            let length = number(raw.length.as_ref().ok_or_else(missing)?, 1..=1 << 20)?;
            Objective::DrGrpo { clip: cut(clip)?, length }
        }
        Objective::Reinforce | Objective::CrossEntropy => {
            if let Some(given) = raw.clip_low.as_ref().or(raw.clip_high.as_ref()) {
                return Err(no_effect(given.span(), "clip_low` or `clip_high", "the others"));
            }
            objective
        }
    };
    let cap = raw.importance_cap.as_ref().map(|given| real(given, 1.0..=1e6)).transpose()?;
    Ok(Loss {
        objective,
        kl: real_or(&raw.kl, 0.0..=100.0, 0.0)?,
        entropy: real_or(&raw.entropy_bonus, 0.0..=100.0, 0.0)?,
        importance_cap: cap,
    })
}

fn no_effect(span: std::ops::Range<usize>, key: &str, of: &str) -> Mistake {
    let message = format!("`{key}` has no effect on this objective");
    Mistake::at(span, message).hint(format!("it belongs to `{of}`"))
}

fn check_evaluate(
    raw: &RawEvaluate,
    learner: &RawLearner,
    opponents: &[AgentConfig],
    train: &TrainConfig,
) -> Checked<EvaluateConfig> {
    let modes: Vec<Mode> = match &raw.modes {
        None => Mode::ALL.to_vec(),
        Some(given) => {
            let named = Mode::ALL.map(|mode| (mode.name(), mode));
            if given.get_ref().is_empty() {
                return Err(Mistake::at(given.span(), "no mode".to_owned()));
            }
            let modes: Checked<BTreeSet<Mode>> =
                given.get_ref().iter().map(|mode| choose(mode, &named)).collect();
            modes?.into_iter().collect()
        }
    };
    if modes.contains(&Mode::Greedy) && learner.greedy.is_none() {
        let message = "greedy evaluations need `greedy`".to_owned();
        let hint = "the learner's `params` with a temperature of 0".to_owned();
        return Err(Mistake::at(learner.component.span(), message).hint(hint));
    }
    let fields = match raw.fields.is_empty() {
        true => {
            vec![FieldConfig { name: "training".to_owned(), opponents: train.opponents.clone() }]
        }
        false => check_fields(raw, opponents)?,
    };
    Ok(EvaluateConfig {
        every: number_or(&raw.every, 1..=STEPS_MAX, 25)?,
        items: number_or(&raw.items, 1..=ITEMS_MAX, 64)?,
        repetitions: number_or(&raw.repetitions, 1..=REPETITIONS_MAX, 1)?,
        modes,
        fields,
    })
}

fn check_fields(raw: &RawEvaluate, opponents: &[AgentConfig]) -> Checked<Vec<FieldConfig>> {
    let mut names = BTreeSet::new();
    let mut fields = Vec::new();
    for field in &raw.fields {
        let name = check_name(&field.name, arena_core::config::NAME_BYTES_MAX)?;
        if !names.insert(name.clone()) || fields.len() >= FIELDS_MAX {
            let message = format!("a second field named `{name}`, or more than `{FIELDS_MAX}`");
            return Err(Mistake::at(field.name.span(), message));
        }
        fields.push(FieldConfig { name, opponents: find_opponents(&field.opponents, opponents)? });
    }
    Ok(fields)
}

/// Finds agents by name; each once, and at least one.
fn find_opponents(
    given: &Spanned<Vec<Spanned<String>>>,
    opponents: &[AgentConfig],
) -> Checked<Vec<usize>> {
    let named: Vec<(&str, usize)> =
        opponents.iter().enumerate().map(|(place, agent)| (&agent.name[..], place)).collect();
    let mut found = BTreeSet::new();
    for name in given.get_ref() {
        if !found.insert(choose(name, &named)?) {
            return Err(Mistake::at(name.span(), format!("`{}` is there twice", name.get_ref())));
        }
    }
    if found.is_empty() {
        return Err(Mistake::at(given.span(), "no opponent".to_owned()));
    }
    Ok(found.into_iter().collect())
}

fn check_device(given: &Given<String>) -> Checked<Device> {
    let named = Device::ALL.map(|device| (device.name(), device));
    given.as_ref().map_or(Ok(Device::default()), |given| choose(given, &named))
}

fn check_name(given: &Spanned<String>, bytes_max: usize) -> Checked<String> {
    let name = given.get_ref();
    if !is_name(name) || name.len() > bytes_max {
        let hint = format!("1 to {bytes_max} letters, digits, `-`, `_` and `.`");
        return Err(Mistake::at(given.span(), format!("`{name}` is not a name")).hint(hint));
    }
    Ok(name.clone())
}

fn check_text(given: &Spanned<String>, bytes_max: usize) -> Checked<String> {
    let bytes = given.get_ref().len();
    if !(1..=bytes_max).contains(&bytes) || given.get_ref().contains('\0') {
        let message = format!("`{bytes}` bytes, not `1` to `{bytes_max}`, or one of them zero");
        return Err(Mistake::at(given.span(), message));
    }
    Ok(given.get_ref().clone())
}

/// Finds a value by its name.
fn choose<T: Copy>(given: &Spanned<String>, named: &[(&str, T)]) -> Checked<T> {
    let found = named.iter().find(|(name, _)| name == given.get_ref());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        let message = format!("unknown value `{}`", given.get_ref());
        Mistake::at(given.span(), message).hint(suggestion(given.get_ref(), &known))
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
            Err(Mistake::at(given.span(), format!("`{value}` is not from `{low}` to `{high}`")))
        }
    }
}

fn number_or<T>(given: &Given<i128>, range: RangeInclusive<T>, default: T) -> Checked<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    given.as_ref().map_or(Ok(default), |given| number(given, range))
}

fn real(given: &Spanned<f64>, range: RangeInclusive<f64>) -> Checked<f64> {
    let value = *given.get_ref();
    if range.contains(&value) {
        return Ok(value);
    }
    let (low, high) = range.into_inner();
    Err(Mistake::at(given.span(), format!("`{value}` is not from `{low}` to `{high}`")))
}

fn real_or(given: &Given<f64>, range: RangeInclusive<f64>, default: f64) -> Checked<f64> {
    given.as_ref().map_or(Ok(default), |given| real(given, range))
}
