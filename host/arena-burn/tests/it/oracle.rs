//! The CPU kernels and burn against each other: two programs that share no arithmetic.

use std::num::NonZeroUsize;
use std::path::Path;

use arena_burn::executor::BurnExecutor;
use arena_core::seat::Sampling;
use arena_llm::model::LanguageModel as _;
use arena_llm::request::{CallKey, ChatRole, Message, Request};
use arena_model::cpu::CpuExecutor;
use arena_model::engine::{Engine, EngineOptions, ModelParts};
use arena_model::executor::{AdapterId, BlockId, Executor};
use arena_weights::weights::Weights;

use crate::tiny::{self, Piece, Random, assert_close, piece, run};

/// Greedy steps after the prompts.
const STEPS: usize = 32;

/// Bytes of cache, enough for every fixture's blocks.
const CACHE_BYTES: u64 = 1 << 20;

/// What an executor made of the same requests.
#[derive(Default)]
struct Played {
    /// The likeliest token of every sequence after every step.
    tokens: Vec<u32>,
    /// Of every row.
    logits: Vec<f32>,
}

impl Played {
    /// Computes some rows, and puts each sequence's likeliest token after them.
    fn step(&mut self, executor: &mut dyn Executor, pieces: &mut [Piece]) {
        let logits = run(executor, pieces);
        let vocab = executor.shape().vocab;
        let mut end = 0;
        for piece in pieces.iter_mut() {
            end += piece.tokens.len();
            let row = &logits[(end - 1) * vocab..end * vocab];
            let best = (0..vocab).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a)));
            let best = best.expect("there are tokens") as u32;
            self.tokens.push(best);
            piece.start += piece.tokens.len();
            piece.tokens = vec![best];
        }
        self.logits.extend(logits);
    }
}

/// Plays prompts of different lengths, one of them in chunks while others go on, one with an
/// adapter, one that starts from a copied block.
fn play(executor: &mut dyn Executor) -> Played {
    let mut played = Played::default();
    let prompts: Vec<Vec<u32>> =
        [21, 5, 33].iter().map(|&count| Random(count).tokens(count as usize)).collect();
    let mut adapted = piece(0, &prompts[1], &[1, 4, 7]);
    adapted.adapter = Some(AdapterId(2));
    let mut talks = vec![piece(0, &prompts[0], &[0, 3, 6, 9]), adapted];
    played.step(executor, &mut talks);

    let blocks = [2, 5, 8, 11, 14];
    talks.push(piece(0, &prompts[2][..20], &blocks));
    played.step(executor, &mut talks);
    talks[2] = piece(20, &prompts[2][20..], &blocks);
    // The same first ten tokens as the first prompt, then others.
    executor.copy_rows(BlockId(0), BlockId(10), 10).expect("the device works");
    talks.push(piece(10, &Random(44).tokens(3), &[10, 12, 13]));
    for _ in 0..STEPS {
        played.step(executor, &mut talks);
    }
    played
}

fn fixture(name: &str) -> Weights {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/fixtures");
    Weights::open(&fixtures.join(name)).expect("the fixture is sound")
}

fn cpu(weights: &Weights) -> CpuExecutor {
    let threads = NonZeroUsize::new(2).expect("two is not zero");
    CpuExecutor::load(weights, threads, CACHE_BYTES).expect("the fixture can be loaded")
}

#[test]
fn the_cpu_kernels_and_burn_agree() {
    for name in ["tiny-llama", "tiny-qwen3", "tiny-qwen3-moe", "tiny-qwen3-moe-raw"] {
        let weights = fixture(name);
        let adapter = tiny::adapter(
            weights.config(),
            &["model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.o_proj.weight"],
        );
        let mut cpu = cpu(&weights);
        cpu.set_adapter(AdapterId(2), Some(&adapter)).expect("it fits the model");
        let expected = play(&mut cpu);
        for device in tiny::devices() {
            let mut burn =
                BurnExecutor::load(&weights, device, CACHE_BYTES).expect("the device is there");
            burn.set_adapter(AdapterId(2), Some(&adapter)).expect("it fits the model");
            let found = play(&mut burn);
            assert_eq!(found.tokens, expected.tokens, "{name} on {device}");
            assert_close(&found.logits, &expected.logits, &format!("{name} on {device}"));
        }
    }
}

/// Returns a request of its own length and sampling.
fn request(index: u32) -> Request {
    let text = &"I offer $12.50 for the hose. It is used."[..5 + 5 * index as usize];
    let warm = Sampling { temperature_milli: 900, top_k: 40, ..Sampling::GREEDY };
    Request {
        model: "tiny".to_string(),
        messages: vec![Message {
            role: ChatRole::User,
            text: text.to_string(),
            tokens: Vec::new(),
        }],
        max_tokens: 12 + index,
        sampling: if index.is_multiple_of(2) { Sampling::GREEDY } else { warm },
        stop: Vec::new(),
        grammar: None,
        key: CallKey { seat_seed: 7, call_index: index },
    }
}

/// Returns the tokens that an engine answers some requests with, all asked at once.
fn answers(executor: Box<dyn Executor>, weights: &Weights) -> Vec<Vec<u32>> {
    let parts = ModelParts::read(weights, [7; 32]).expect("the fixture is sound");
    let options = EngineOptions::new("tiny");
    let engine = Engine::start(executor, parts, options).expect("the engine starts");
    let answer = |index| {
        let reply = engine.complete(&request(index)).expect("the request is sound");
        let tokens = reply.tokens.expect("the engine knows its tokens");
        tokens.output.iter().map(|token| token.id).collect()
    };
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..7).map(|index| scope.spawn(move || answer(index))).collect();
        asked.into_iter().map(|thread| thread.join().expect("it is answered")).collect()
    })
}

#[test]
fn an_engine_answers_the_same_with_burn_as_with_the_cpu_kernels() {
    for name in ["tiny-llama", "tiny-qwen3", "tiny-qwen3-moe"] {
        let weights = fixture(name);
        let expected = answers(Box::new(cpu(&weights)), &weights);
        for device in tiny::devices() {
            let burn =
                BurnExecutor::load(&weights, device, CACHE_BYTES).expect("the device is there");
            assert_eq!(answers(Box::new(burn), &weights), expected, "{name} on {device}");
        }
    }
}
