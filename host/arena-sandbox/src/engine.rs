//! The one wasmtime configuration of arena.
//!
//! Two processes of the same program, on any two x86-64 (or aarch64) Linux machines, compile
//! a component to the same code and charge the same fuel for the same call. Each line of
//! the configuration says which freedom it takes away.
//!
//! Not here: what a component may look like (`precheck`) and what a seat may use (`limits`).

use std::hash::{Hash, Hasher};
use std::time::Duration;

use arena_core::config::Limits;
use arena_core::hexadecimal::hex;
use sha2::{Digest, Sha256};
use wasmparser::WasmFeatures;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OperatorCost, OptLevel,
    PoolingAllocationConfig, RegallocAlgorithm, Strategy,
};

use crate::precheck;

/// The engine's version. The workspace pins it; a test compares it with the lock file.
pub(crate) const WASMTIME_VERSION: &str = "48.0.8";

/// Native stack of one guest in bytes. A guest that needs more traps.
pub(crate) const WASM_STACK_BYTES: usize = 512 << 10;

/// Native stack that a thread which plays seats should have, in bytes. Guests run on the caller's
/// stack, and a host call that overran it would end the process.
pub const THREAD_STACK_BYTES: usize = 4 << 20;

/// Fuel per 64 KiB page that `memory.grow` asks for: the most that the engine can charge.
/// A fresh page costs some thirty microseconds when it is first touched.
pub(crate) const GROW_FUEL_PER_PAGE: u8 = 255;

/// How often the watchdog's clock advances.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Bytes of a slot's memory that stay mapped between two guests, reset to zero in place.
const KEEP_RESIDENT_BYTES: usize = 512 << 10;

/// Core instances of one seat: an interpreter component has up to 38.
const CORE_INSTANCES_MAX: u32 = 64;

/// The WebAssembly that a guest may be written in: what Rust, C, AssemblyScript, QuickJS,
/// StarlingMonkey, CPython and Go need, and no more.
pub(crate) const FEATURES: WasmFeatures = WasmFeatures::MUTABLE_GLOBAL
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::COMPONENT_MODEL);

/// Names of [`FEATURES`], for the fingerprint.
const FEATURE_NAMES: &str = "mutable-global,saturating-float-to-int,sign-extension,\
    reference-types,multi-value,bulk-memory,floats,extended-const,component-model";

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
const TARGET: &str = "x86_64-unknown-linux-gnu";
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "musl"))]
const TARGET: &str = "x86_64-unknown-linux-musl";
#[cfg(all(target_arch = "aarch64", target_os = "linux", target_env = "gnu"))]
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Returns the engine of the compile child: the same code, no pool of instances.
pub(crate) fn for_compiling() -> wasmtime::Result<Engine> {
    let mut config = code_config()?;
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    Engine::new(&config)
}

/// Returns the engine that plays: room for `slots` seats at once, each within `limits`.
pub(crate) fn for_playing(limits: &Limits, slots: u32) -> wasmtime::Result<Engine> {
    let mut config = code_config()?;
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits, slots)));
    Engine::new(&config)
}

/// Everything that determines the compiled code. Nothing here may depend on the number of
/// workers, on the machine or on a tournament file.
fn code_config() -> wasmtime::Result<Config> {
    let mut config = Config::new();
    // An explicit target also means its baseline CPU: code, stack frames and cached artefacts
    // do not depend on the processor at hand.
    config.target(TARGET)?;
    // One compiler: Cranelift and Winch disagree about fuel.
    config.strategy(Strategy::Cranelift);
    config.cranelift_opt_level(OptLevel::Speed);
    config.cranelift_regalloc_algorithm(RegallocAlgorithm::Backtracking);
    // Features that are not named cannot be used; the engine's default set grows by version.
    config.wasm_features(FEATURES.complement(), false);
    config.wasm_features(FEATURES, true);
    config.concurrency_support(false);
    config.shared_memory(false);
    config.gc_support(false);
    // The verdict on time: counted operations, the same on every machine.
    config.consume_fuel(true);
    config.operator_cost(fuel_prices());
    // The watchdog behind it: it can only void a match, never decide one.
    config.epoch_interruption(true);
    // A NaN has one bit pattern.
    config.cranelift_nan_canonicalization(true);
    config.max_wasm_stack(WASM_STACK_BYTES);
    // Start-up fuel depends on whether memory images are mapped or copied, so it is fixed.
    config.memory_init_cow(true);
    // Traps carry a code and nothing else: frames and addresses are no verdict.
    config.wasm_backtrace_max_frames(None);
    config.generate_address_map(false);
    config.native_unwind_info(false);
    Ok(config)
}

fn fuel_prices() -> OperatorCost {
    let mut prices = OperatorCost::new();
    prices.variable.memory_grow_per_page = GROW_FUEL_PER_PAGE;
    prices
}

fn pool(limits: &Limits, slots: u32) -> PoolingAllocationConfig {
    let memory_bytes = usize::try_from(limits.memory_bytes_max).unwrap_or(usize::MAX);
    let mut pool = PoolingAllocationConfig::default();
    // The ioctl needs Linux 6.7. It saves page faults and changes nothing a guest can see.
    pool.pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(KEEP_RESIDENT_BYTES)
        .total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(slots.saturating_mul(precheck::MEMORIES_MAX))
        .total_tables(slots.saturating_mul(precheck::TABLES_MAX))
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(precheck::MEMORIES_MAX)
        .max_tables_per_component(precheck::TABLES_MAX)
        .max_tables_per_module(precheck::TABLES_MAX)
        .max_memory_size(memory_bytes.next_multiple_of(64 << 10))
        .table_elements(limits.table_elements_max as usize);
    pool
}

/// Returns the SHA-256 of everything that decides whether compiled code fits an engine.
pub(crate) fn compatibility_sha256(engine: &Engine) -> [u8; 32] {
    let mut hasher = ShaHasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().into()
}

/// Feeds what a [`Hash`] writes to SHA-256: `DefaultHasher` may change with the compiler.
struct ShaHasher(Sha256);

impl Hasher for ShaHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest: [u8; 32] = self.0.clone().finalize().into();
        u64::from_be_bytes(digest.first_chunk().copied().unwrap_or_default())
    }
}

/// Returns what the engine is and how it is set, one `key=value` per line.
pub(crate) fn fingerprint(engine: &Engine) -> String {
    let lines = [
        ("engine", format!("wasmtime {WASMTIME_VERSION}")),
        ("target", TARGET.to_owned()),
        ("compiler", "cranelift speed backtracking".to_owned()),
        ("features", FEATURE_NAMES.to_owned()),
        ("nan-canonicalization", "true".to_owned()),
        ("memory-init-cow", "true".to_owned()),
        ("wasm-stack-bytes", WASM_STACK_BYTES.to_string()),
        ("grow-fuel-per-page", GROW_FUEL_PER_PAGE.to_string()),
        ("host-call-fuel", crate::state::CALL_FUEL.to_string()),
        ("host-call-fuel-per-byte", crate::state::BYTE_FUEL.to_string()),
        ("compatibility-sha256", hex(&compatibility_sha256(engine))),
    ];
    lines.into_iter().map(|(key, value)| format!("{key}={value}\n")).collect()
}

/// Starts the watchdog's clock. The thread ends soon after the engine does and keeps nothing
/// alive.
pub(crate) fn start_ticker(engine: &Engine) -> std::io::Result<()> {
    let weak = engine.weak();
    let tick = move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    };
    std::thread::Builder::new().name("arena-watchdog".to_owned()).spawn(tick).map(drop)
}

/// Returns how many ticks after now a guest call that may take `time` is interrupted.
pub(crate) fn ticks(time: Duration) -> u64 {
    let ticks = time.as_millis().div_ceil(TICK.as_millis());
    // One more, because the current tick has partly passed.
    u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1)
}
