//! Makes the models of a tournament file answer: scripts, engines of this program, servers.
//!
//! Every model with weights has an engine of its own, which all matches share. Whatever is wrong
//! with a model is told before anything is written.
//!
//! Not here: what a file says of models (`arena_core::config`), and the engine (`arena_model`).

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arena_burn::device::BurnDevice;
use arena_burn::error::BurnError;
use arena_burn::executor::BurnExecutor;
use arena_core::config::models::{
    CACHE_MIB, CONTEXT_TOKENS, Device, RemoteConfig, SLOTS, WeightsConfig, WeightsSource,
};
use arena_core::config::{ModelConfig, ModelSource};
use arena_core::hexadecimal::hex;
use arena_llm::model::LanguageModel;
use arena_llm::scripted::ScriptedModel;
use arena_model::cpu::CpuExecutor;
use arena_model::engine::{Engine, EngineOptions, ModelParts};
use arena_model::error::EngineError;
use arena_model::event::Listener;
use arena_model::executor::Executor;
use arena_remote::model::RemoteModel;
use arena_remote::options::{ApiKey, RemoteError, RemoteOptions};
use arena_weights::adapter::Adapter;
use arena_weights::weights::Weights;

use crate::cli::model::EngineArgs;
use crate::error::{CliError, Complaint};
use crate::model_files::Named;
use crate::progress::{Meter, Reading};
use crate::{files, model_files};

/// Rows that a step computes at most: more make prompts faster and replies wait longer.
const STEP_TOKENS: usize = 512;
/// Wait before a server is asked for the first time again.
const BACKOFF: Duration = Duration::from_millis(500);

/// A model that is ready to be asked.
#[derive(Clone)]
pub struct Answering {
    /// The model.
    pub model: Arc<dyn LanguageModel>,
    /// How many calls are answered at the same time; 0 where each is answered at once.
    pub slots: usize,
    /// What computes it, if that is this program.
    pub engine: Option<Arc<Engine>>,
}

/// How this program computes, whatever a file says.
pub struct Computing {
    /// What computes models with weights, in place of what the file names.
    pub device: Option<Device>,
    /// Threads of an engine.
    pub threads: NonZeroUsize,
}

impl Computing {
    /// Takes what the command line says; one thread for each processor where it says nothing.
    pub fn new(device: Option<Device>, threads: Option<u16>) -> Computing {
        Computing { device, threads: self::threads(threads) }
    }
}

/// Returns how many threads compute: one for each processor, unless the command line says it.
pub fn threads(asked: Option<u16>) -> NonZeroUsize {
    let asked = asked.map(usize::from).and_then(NonZeroUsize::new);
    asked.unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// Makes every model answer. `resolve` finds the files that they name.
///
/// # Errors
/// A script, weights, an adapter or a variable is missing or wrong, or the machine has no such
/// device.
pub fn load(
    models: &[ModelConfig],
    resolve: &dyn Fn(&str) -> PathBuf,
    computing: &Computing,
) -> Result<Vec<Answering>, CliError> {
    let load = |model: &ModelConfig| match &model.source {
        ModelSource::Script(path) => script(&model.name, &resolve(path)),
        ModelSource::Weights(config) => weights(&model.name, config, resolve, computing, None),
        ModelSource::Remote(config) => server(&model.name, config),
    };
    models.iter().map(load).collect()
}

/// Starts an engine with a model's weights. `listener` is told what it writes.
///
/// # Errors
/// As [`load`].
pub fn weights(
    name: &str,
    config: &WeightsConfig,
    resolve: &dyn Fn(&str) -> PathBuf,
    computing: &Computing,
    listener: Option<Listener>,
) -> Result<Answering, CliError> {
    let path = match &config.weights {
        WeightsSource::Path(path) => resolve(path),
        named => model_files::find(named)?.path,
    };
    let weights = model_files::open(&path)?;
    let sha256 = model_files::manifest(&path, &weights)?.sha256();
    check_pin(name, config, &path, sha256)?;
    let adapter = config.adapter.as_deref().map(|adapter| {
        let path = resolve(adapter);
        Adapter::open(&path, weights.config()).map_err(|error| model_files::complain(&path, &error))
    });
    let device = computing.device.unwrap_or(config.device);
    let fails = |error: EngineError| complain(name, device, &error);
    let bytes = u64::from(config.cache_mib) << 20;
    let parts = ModelParts::read(&weights, sha256).map_err(fails)?;
    let own_limit = u32::try_from(weights.config().context_tokens).unwrap_or(u32::MAX);
    let slots = config.slots as usize;
    let options = EngineOptions {
        // What a file does not say is bounded: a cache must hold at least one whole context.
        context_tokens: Some(config.context_tokens.unwrap_or(CONTEXT_TOKENS.min(own_limit))),
        adapter: adapter.transpose()?,
        slots,
        step_tokens: STEP_TOKENS.max(2 * slots),
        threads: computing.threads,
        listener,
        ..EngineOptions::new(name)
    };
    let executor = executor(name, &weights, device, bytes, computing.threads)?;
    let engine = Engine::start(executor, parts, options).map_err(fails)?;
    let model = Arc::clone(&engine) as Arc<dyn LanguageModel>;
    Ok(Answering { model, slots, engine: Some(engine) })
}

fn check_pin(
    name: &str,
    config: &WeightsConfig,
    path: &Path,
    found: [u8; 32],
) -> Result<(), CliError> {
    match config.sha256 {
        Some(wanted) if wanted != found => {
            let failed = format!("cannot take `{}` for the model `{name}`", path.display());
            let facts =
                vec![format!("found     {}", hex(&found)), format!("expected  {}", hex(&wanted))];
            let hint = "the file pins its manifest with `sha256`; `arena model show` prints it";
            Err(CliError::Input(Complaint { failed, facts, hint: Some(hint.to_owned()) }))
        }
        _ => Ok(()),
    }
}

fn executor(
    name: &str,
    weights: &Weights,
    device: Device,
    cache_bytes_max: u64,
    threads: NonZeroUsize,
) -> Result<Box<dyn Executor>, CliError> {
    let burn = match device {
        Device::Cpu => {
            let loaded = CpuExecutor::load(weights, threads, cache_bytes_max);
            return Ok(Box::new(loaded.map_err(|error| complain(name, device, &error))?));
        }
        Device::Flex => BurnDevice::Flex,
        Device::Wgpu => BurnDevice::Wgpu,
        Device::Cuda => BurnDevice::Cuda,
    };
    let loaded = BurnExecutor::load(weights, burn, cache_bytes_max);
    Ok(Box::new(loaded.map_err(|error| {
        let failed = format!("cannot run the model `{name}` on `{}`", device.name());
        let complaint = Complaint::new(failed, &error);
        match error {
            BurnError::NotCompiled { .. } => CliError::Config(complaint.hint(format!(
                "build with it: cargo build --release --package arena --features {}",
                device.name()
            ))),
            _ => CliError::Infrastructure(complaint),
        }
    })?))
}

/// Gives a failed start its kind and a hint: a model's files are input, a context is what a file
/// asks for, the rest is the machine.
fn complain(name: &str, device: Device, error: &EngineError) -> CliError {
    let failed = format!("cannot run the model `{name}` on `{}`", device.name());
    let complaint = Complaint::new(failed, error);
    match error {
        EngineError::Cache { .. } => {
            CliError::Config(complaint.hint("give it more `cache_mib`, or less `context`"))
        }
        EngineError::Context { .. } | EngineError::Option { .. } => CliError::Config(complaint),
        EngineError::Weights(_) | EngineError::Vocabulary { .. } => CliError::Input(complaint),
        _ => CliError::Infrastructure(complaint),
    }
}

/// Loads a script.
///
/// # Errors
/// It is missing or wrong.
pub fn script(name: &str, path: &Path) -> Result<Answering, CliError> {
    let text = files::read_text(path, files::TEXT_BYTES_MAX).map_err(CliError::Config)?;
    let model = ScriptedModel::parse(name, &text).map_err(|error| {
        let failed = format!("cannot load the model script `{}`", path.display());
        CliError::Config(Complaint::new(failed, error))
    })?;
    Ok(Answering { model: Arc::new(model), slots: 0, engine: None })
}

fn server(name: &str, config: &RemoteConfig) -> Result<Answering, CliError> {
    let fails = |error: RemoteError| {
        let complaint = Complaint::new(format!("cannot use the model `{name}`"), &error);
        match error {
            RemoteError::Machine { .. } => CliError::Infrastructure(complaint),
            RemoteError::Key { .. } => {
                CliError::Config(complaint.hint("`key_env` names the variable of the key"))
            }
            _ => CliError::Config(complaint),
        }
    };
    let api_key =
        config.key_env.as_deref().map(ApiKey::from_variable).transpose().map_err(fails)?;
    let concurrency = NonZeroU32::new(config.concurrency).expect("the file's bounds begin at 1");
    let model = RemoteModel::new(RemoteOptions {
        name: name.to_owned(),
        base_url: config.url.clone(),
        remote_model: config.remote_model.clone(),
        server: config.server,
        api_key,
        timeout: Duration::from_secs(config.timeout_seconds.into()),
        retries: config.retries,
        backoff: BACKOFF,
        concurrency,
        context_tokens: config.context_tokens,
    })
    .map_err(fails)?;
    Ok(Answering { model: Arc::new(model), slots: config.concurrency as usize, engine: None })
}

/// Starts an engine for a command that asks one model. `slots` is how many dialogues go on at once.
///
/// # Errors
/// As [`load`].
pub fn weights_named(
    named: &Named,
    args: &EngineArgs,
    slots: u32,
    listener: Option<Listener>,
) -> Result<Arc<Engine>, CliError> {
    let config = WeightsConfig {
        context_tokens: args.context,
        cache_mib: args.cache_mib,
        slots,
        ..weights_at(&named.path)
    };
    let computing = Computing::new(Some(args.device.0), args.threads);
    let loaded = weights(&named.label, &config, &|path| PathBuf::from(path), &computing, listener)?;
    Ok(loaded.engine.expect("weights are computed by an engine"))
}

/// Returns a configuration of weights in a place, where nothing else is said of them.
pub fn weights_at(path: &Path) -> WeightsConfig {
    WeightsConfig {
        // Resolved already, so that it is not looked for in the store.
        weights: WeightsSource::Path(path.to_string_lossy().into_owned()),
        device: Device::default(),
        adapter: None,
        context_tokens: None,
        cache_mib: CACHE_MIB,
        slots: SLOTS,
        sha256: None,
    }
}

/// Returns how many matches keep the models busy: each waits for one reply at a time.
pub fn slots(models: &[Answering]) -> usize {
    models.iter().map(|answering| answering.slots).sum()
}

/// Returns what reads the meters of all engines; `None` where there is none.
pub fn meter(models: &[Answering]) -> Option<Meter> {
    let engines: Vec<(Arc<Engine>, u64)> = models
        .iter()
        .filter_map(|answering| Some((answering.engine.clone()?, answering.slots as u64)))
        .collect();
    if engines.is_empty() {
        return None;
    }
    Some(Box::new(move || {
        let mut reading = Reading::default();
        for (engine, slots) in &engines {
            let counts = engine.statistics();
            reading.prompt_tokens += counts.prompt_tokens;
            reading.cached_tokens += counts.reused_tokens;
            // Every token that is written comes out of a row, and goes into the next.
            reading.computed_tokens += counts.rows.saturating_sub(counts.output_tokens);
            reading.output_tokens += counts.output_tokens;
            reading.steps += counts.steps;
            reading.sequences += counts.sequences;
            // Steps are those of all engines, so that a mean is of one of them.
            reading.slots = reading.slots.max(*slots);
            reading.preemptions += counts.preemptions;
        }
        reading
    }))
}
