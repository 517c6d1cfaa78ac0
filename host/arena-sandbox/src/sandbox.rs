//! From the bytes of a component to a seat in a match.
//!
//! Loading checks, compiles and links once; a seat is then a fresh instance of the prepared
//! component and costs some ten microseconds.
//!
//! Not here: the rules of the parts (`precheck`, `compile`, `seat`).

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arena_core::config::Limits;
use arena_core::fault::SeatError;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::bindings::AgentPre;
use crate::cache::Cache;
use crate::compile::{CompileLimits, CompileWorker, compile};
use crate::engine;
use crate::imports;
use crate::precheck;
use crate::refusal::{LoadError, Refusal, SandboxError};
use crate::seat::{GuestSeat, Slot, Start};
use crate::state::{Grants, SeatState};
use crate::wasi;

/// How a sandbox is set up.
#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// What one seat may use.
    pub limits: Limits,
    /// Seats in play at once: two per worker thread.
    pub slots: u32,
    /// Where compiled components are kept; `None` compiles them anew each time.
    pub cache_dir: Option<PathBuf>,
    /// The program that compiles.
    pub compile_worker: CompileWorker,
    /// What compiling one component may take.
    pub compile_limits: CompileLimits,
    /// How long one guest call may take before the match is voided. A guest's time is limited
    /// by fuel; this must be longer than the largest fuel limit can last, or a guest could void
    /// what it is about to lose. See [`watchdog_for`].
    pub watchdog: Duration,
}

impl SandboxSettings {
    /// Returns the usual settings: default limits of the compiler, no cache, the watchdog of
    /// [`watchdog_for`].
    pub fn new(limits: Limits, slots: u32, compile_worker: CompileWorker) -> SandboxSettings {
        SandboxSettings {
            limits,
            slots,
            cache_dir: None,
            compile_worker,
            compile_limits: CompileLimits::default(),
            watchdog: watchdog_for(&limits, slots),
        }
    }
}

/// What the watchdog waits however little fuel there is.
const WATCHDOG_MIN: Duration = Duration::from_secs(30);

/// What a unit of fuel may last in nanoseconds on a slow machine that other programs use too.
/// The worst guest known, a chain of loads that all miss the cache, took 180, and 820 when four
/// of them shared two busy processors.
const FUEL_NANOS_MAX: u64 = 10_000;

/// Returns how long any guest call within `limits` may last, with `slots` seats in play.
///
/// Only a host that hangs outlasts it. A guest that could would void its pair again and again,
/// and end the tournament of all the others. More seats than processors share them, so each
/// call takes that much longer.
pub fn watchdog_for(limits: &Limits, slots: u32) -> Duration {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let shared = u64::from(slots).div_ceil(processors as u64).max(1);
    let fuel = limits.fuel_start_max.max(limits.fuel_turn_max);
    let nanos = fuel.saturating_mul(FUEL_NANOS_MAX).saturating_mul(shared);
    WATCHDOG_MIN.saturating_add(Duration::from_nanos(nanos))
}

/// Instances beyond the seats in play: a component is tried while matches run.
const TRIAL_SLOTS: u32 = 1;

/// Runs components as seats. A program makes one and shares it between its threads.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<SeatState>,
    settings: SandboxSettings,
    cache: Option<Cache>,
    taken: Arc<AtomicU32>,
    trial: Mutex<()>,
    deadline_ticks: u64,
}

/// A component that was checked, compiled and linked. Cloning it is cheap.
#[derive(Clone)]
pub struct LoadedAgent {
    pre: AgentPre<SeatState>,
    sha256: [u8; 32],
    asks_models: bool,
}

impl LoadedAgent {
    /// Returns the agent's identity: the SHA-256 of its component.
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// Returns whether it imports language models, and so may ask one.
    pub fn asks_models(&self) -> bool {
        self.asks_models
    }
}

impl Sandbox {
    /// Sets the engine, the pool, the cache and the watchdog up.
    ///
    /// # Errors
    /// [`SandboxError::Engine`] when the machine does not provide for the pool,
    /// [`SandboxError::CacheFolder`] when the cache cannot be used safely.
    pub fn new(settings: &SandboxSettings) -> Result<Sandbox, SandboxError> {
        let failed = |detail: String| SandboxError::Engine { detail };
        let pool = settings.slots.saturating_add(TRIAL_SLOTS);
        let engine = engine::for_playing(&settings.limits, pool)
            .map_err(|error| failed(format!("{error:#}")))?;
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker)
            .and_then(|()| wasi::link(&mut linker))
            .map_err(|error| failed(format!("{error:#}")))?;
        let sha256 = engine::compatibility_sha256(&engine);
        let cache = match &settings.cache_dir {
            Some(folder) => Some(Cache::open(folder, sha256)?),
            None => None,
        };
        engine::start_ticker(&engine).map_err(|error| failed(error.to_string()))?;
        Ok(Sandbox {
            engine,
            linker,
            settings: settings.clone(),
            cache,
            taken: Arc::default(),
            trial: Mutex::default(),
            deadline_ticks: engine::ticks(settings.watchdog),
        })
    }

    /// Returns what the engine is and how it is set, one `key=value` per line. It does not
    /// depend on the machine, the number of slots or the limits of seats.
    pub fn fingerprint(&self) -> String {
        engine::fingerprint(&self.engine)
    }

    /// Checks, compiles, links and tries a component.
    ///
    /// # Errors
    /// [`LoadError::Refused`] with the rule that it breaks, or [`LoadError::Host`].
    pub fn load(&self, bytes: &[u8]) -> Result<LoadedAgent, LoadError> {
        let imports = precheck::check(bytes, &self.settings.limits)?;
        let asks_models = imports.iter().any(|import| import == precheck::INFERENCE);
        let sha256: [u8; 32] = Sha256::digest(bytes).into();
        let code = self.code(bytes, &sha256)?;
        let component = deserialize(&self.engine, &code).map_err(|error| misfit(&code, &error))?;
        let interface =
            |error: wasmtime::Error| Refusal::Interface { detail: format!("{error:#}") };
        let pre = self.linker.instantiate_pre(&component).map_err(interface)?;
        let pre = AgentPre::new(pre).map_err(interface)?;
        let agent = LoadedAgent { pre, sha256, asks_models };
        self.try_start(&agent)?;
        Ok(agent)
    }

    /// Seats an agent, in a fresh instance that nothing else shares.
    ///
    /// # Errors
    /// A fault when the guest fails at start-up; void when the host does, or when more seats
    /// are in play than the sandbox has slots.
    pub fn seat(
        &self,
        agent: &LoadedAgent,
        grants: &Grants,
        seed: u64,
    ) -> Result<GuestSeat, SeatError> {
        let slot = Slot::take(&self.taken, self.settings.slots)?;
        GuestSeat::start(&self.start(agent, grants, seed), slot)
    }

    fn start<'a>(&'a self, agent: &'a LoadedAgent, grants: &'a Grants, seed: u64) -> Start<'a> {
        Start {
            engine: &self.engine,
            pre: &agent.pre,
            limits: &self.settings.limits,
            grants,
            seed,
            deadline_ticks: self.deadline_ticks,
        }
    }

    /// Starts an agent once, so that one that cannot start is refused and not seated.
    fn try_start(&self, agent: &LoadedAgent) -> Result<(), LoadError> {
        // One trial at a time; another thread's takes milliseconds.
        let _guard = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
        self.start(agent, &Grants::default(), 0).try_out()
    }

    /// Returns a component's machine code, from the cache or from the compile child.
    fn code(&self, bytes: &[u8], sha256: &[u8; 32]) -> Result<Vec<u8>, LoadError> {
        if let Some(cache) = &self.cache
            && let Some(code) = cache.load(sha256)?
        {
            return Ok(code);
        }
        let settings = &self.settings;
        let code = compile(&settings.compile_worker, &settings.compile_limits, bytes)?;
        if let Some(cache) = &self.cache {
            cache.store(sha256, &code)?;
        }
        Ok(code)
    }
}

/// Tells why code does not load: a component that asks for more than the pool has is refused, and
/// code that no engine takes is the host's failure.
fn misfit(code: &[u8], error: &wasmtime::Error) -> LoadError {
    let detail = format!("{error:#}");
    // This engine has no pool, so nothing that it loads can be too much for it.
    match engine::for_compiling().and_then(|engine| deserialize(&engine, code)) {
        Ok(_) => Refusal::Instances { detail }.into(),
        Err(_) => SandboxError::Artefact { detail }.into(),
    }
}

/// Loads machine code: the one place where arena trusts bytes.
#[allow(unsafe_code, reason = "the engine cannot check machine code, so only we may make it")]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the engine requires bytes that it wrote itself, unchanged. These come from our own
    // program, run as a child and heard through a pipe that nobody else holds, or from a file of
    // the cache that such a child's answer was written to, in a folder that only this user can
    // write, under a hash of its contents. A submitted `.cwasm` file never gets here: `precheck`
    // refuses everything that is not a component.
    unsafe { Component::deserialize(engine, code) }
}
