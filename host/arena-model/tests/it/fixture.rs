//! Models that tests run, and requests to them.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_core::seat::Sampling;
use arena_kernels::context::Context;
use arena_kernels::isa::Isa;
use arena_llm::model::{Completion, LanguageModel, ModelError};
use arena_llm::request::{CallKey, ChatRole, Message, Request};
use arena_model::cpu::CpuExecutor;
use arena_model::engine::{Engine, EngineOptions, ModelParts};
use arena_weights::weights::Weights;

/// A checkpoint of each architecture, made by `tests/parity/make_tiny.py`.
pub const TINY: [&str; 4] = ["tiny-llama", "tiny-qwen3", "tiny-qwen3-moe", "tiny-qwen3-moe-raw"];

/// Temperature 1, nothing cut.
pub const PLAIN: Sampling = Sampling { temperature_milli: 1_000, ..Sampling::GREEDY };

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/fixtures").join(name)
}

pub fn weights(name: &str) -> Weights {
    Weights::open(&path(name)).expect("the fixture is sound")
}

/// Says that something is not tested, past the test harness, which would hide it.
pub fn skipped(what: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}").expect("stderr can be written to");
}

/// How an engine is made; what of it must not change a reply.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub threads: usize,
    pub isa: Isa,
    pub blocks: u64,
    pub slots: usize,
    pub step_tokens: usize,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { threads: 1, isa: Isa::best(), blocks: 256, slots: 64, step_tokens: 512 }
    }
}

pub fn executor(weights: &Weights, setup: Setup) -> CpuExecutor {
    let threads = NonZeroUsize::new(setup.threads).expect("a test has threads");
    let context = Arc::new(Context::new(threads, setup.isa).expect("threads can be had"));
    let config = weights.config();
    let row_bytes = 2 * config.layers * config.kv_heads * config.head_dim * 4;
    let cache_bytes = setup.blocks * 16 * row_bytes as u64;
    let read = &mut |name: &str| weights.tensor(name);
    CpuExecutor::from_tensors(config, read, context, cache_bytes).expect("the fixture is sound")
}

pub fn options(setup: Setup) -> EngineOptions {
    EngineOptions {
        slots: setup.slots,
        step_tokens: setup.step_tokens,
        ..EngineOptions::new("tiny")
    }
}

pub fn start(name: &str, setup: Setup, options: EngineOptions) -> Arc<Engine> {
    let weights = weights(name);
    let executor = Box::new(executor(&weights, setup));
    let parts = ModelParts::read(&weights, [7; 32]).expect("the fixture is sound");
    Engine::start(executor, parts, options).expect("the engine starts")
}

pub fn engine(name: &str, setup: Setup) -> Arc<Engine> {
    start(name, setup, options(setup))
}

pub fn message(role: ChatRole, text: &str) -> Message {
    Message { role, text: text.to_owned(), tokens: Vec::new() }
}

/// Asks for a reply to one message.
pub fn request(text: &str, max_tokens: u32, call_index: u32) -> Request {
    Request {
        model: "tiny".to_owned(),
        messages: vec![message(ChatRole::User, text)],
        max_tokens,
        sampling: PLAIN,
        stop: Vec::new(),
        grammar: None,
        key: CallKey { seat_seed: 11, call_index },
    }
}

/// Asks for all replies at once, each from a thread of its own.
pub fn at_once(engine: &Engine, requests: &[Request]) -> Vec<Result<Completion, ModelError>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            requests.iter().map(|request| scope.spawn(|| engine.complete(request))).collect();
        threads.into_iter().map(|thread| thread.join().expect("asking does not panic")).collect()
    })
}
