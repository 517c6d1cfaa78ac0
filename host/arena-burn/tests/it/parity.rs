//! What `transformers` computes for checkpoints of every architecture (`tests/parity/README.md`).

use std::fs;
use std::path::{Path, PathBuf};

use arena_burn::device::BurnDevice;
use arena_burn::executor::BurnExecutor;
use arena_model::executor::{AdapterId, BLOCK_TOKENS, Executor as _};
use arena_weights::adapter::Adapter;
use arena_weights::weights::Weights;
use serde_json::Value;

use crate::tiny::{self, Piece, assert_close, run};

/// A prompt, and what follows it.
struct Case {
    prompt: Vec<u32>,
    output: Vec<u32>,
    /// For the first of `output`; empty where only tokens are known.
    first_logits: Vec<f32>,
    /// For the last of `output`.
    last_logits: Vec<f32>,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/fixtures").join(name)
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("the fixture is there");
    serde_json::from_str(&text).expect("the fixture is JSON")
}

fn case(value: &Value) -> Case {
    let ids = |key: &str| -> Vec<u32> {
        let ids = value[key].as_array().expect("a list of ids");
        ids.iter().map(|id| id.as_u64().expect("an id") as u32).collect()
    };
    let logits = |key: &str| -> Vec<f32> {
        let logits = value[key].as_array().into_iter().flatten();
        logits.map(|logit| logit.as_f64().expect("a logit") as f32).collect()
    };
    Case {
        prompt: ids("ids"),
        output: ids("output"),
        first_logits: logits("first_logits"),
        last_logits: logits("last_logits"),
    }
}

/// Returns what follows each prompt if the likeliest token is always taken, with the logits of all
/// steps. All prompts are in one batch, and so is every step after them.
fn greedy(
    executor: &mut BurnExecutor,
    cases: &[Case],
    adapter: Option<AdapterId>,
    steps: usize,
) -> Vec<(Vec<u32>, Vec<Vec<f32>>)> {
    let blocks_each = executor.block_count() / cases.len();
    let mut pieces = Vec::with_capacity(cases.len());
    for (at, case) in cases.iter().enumerate() {
        assert!(case.prompt.len() + steps <= blocks_each * BLOCK_TOKENS, "the cache is too small");
        let blocks = (at * blocks_each..(at + 1) * blocks_each).map(|block| block as u32);
        let (tokens, blocks) = (case.prompt.clone(), blocks.collect());
        pieces.push(Piece { start: 0, tokens, blocks, adapter });
    }
    let mut found = vec![(Vec::new(), Vec::new()); cases.len()];
    for _ in 0..steps {
        let all = run(executor, &pieces);
        let vocab = executor.shape().vocab;
        let mut end = 0;
        for (piece, (tokens, logits)) in pieces.iter_mut().zip(&mut found) {
            end += piece.tokens.len();
            let row = &all[(end - 1) * vocab..end * vocab];
            let best = (0..vocab).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a)));
            let best = best.expect("there are tokens") as u32;
            tokens.push(best);
            logits.push(row.to_vec());
            piece.start += piece.tokens.len();
            piece.tokens = vec![best];
        }
    }
    found
}

fn check(executor: &mut BurnExecutor, expected: &str, adapter: Option<AdapterId>) {
    let cases: Vec<Case> = read(&fixture(expected).join("expected.json"))
        .as_array()
        .expect("a list of cases")
        .iter()
        .map(case)
        .collect();
    let steps = cases[0].output.len();
    for (case, (tokens, logits)) in cases.iter().zip(greedy(executor, &cases, adapter, steps)) {
        assert_eq!(tokens, case.output, "{expected}");
        assert_close(&logits[0], &case.first_logits, expected);
        assert_close(&logits[steps - 1], &case.last_logits, expected);
    }
}

fn load(name: &str, device: BurnDevice) -> (Weights, BurnExecutor) {
    let weights = Weights::open(&fixture(name)).expect("the fixture is sound");
    let executor = BurnExecutor::load(&weights, device, 1 << 20).expect("the device is there");
    (weights, executor)
}

#[test]
fn tiny_checkpoints_get_the_logits_of_transformers() {
    for device in tiny::devices() {
        for name in ["tiny-llama", "tiny-qwen3", "tiny-qwen3-moe", "tiny-qwen3-moe-raw"] {
            check(&mut load(name, device).1, name, None);
        }
    }
}

#[test]
fn an_adapter_of_peft_gets_the_logits_of_transformers() {
    for device in tiny::devices() {
        let (weights, mut executor) = load("tiny-llama", device);
        let adapter = Adapter::open(&fixture("tiny-llama-adapter"), weights.config())
            .expect("the fixture is sound");
        executor.set_adapter(AdapterId(0), Some(&adapter)).expect("it fits the model");
        check(&mut executor, "tiny-llama-adapter", Some(AdapterId(0)));
        // Without it, the model is as before.
        executor.set_adapter(AdapterId(0), None).expect("a slot can be emptied");
        check(&mut executor, "tiny-llama", None);
    }
}

/// Returns the packaged model, if it was fetched to this machine.
fn smollm2() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let store = folder("ARENA_MODELS").map(PathBuf::from).or_else(|| {
        let data = folder("XDG_DATA_HOME").map(PathBuf::from);
        let data = data.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/share")));
        Some(data?.join("arena/models"))
    });
    store.map(|store| store.join("smollm2/model.gguf")).filter(|path| path.exists())
}

/// Short prompts, so that the test takes seconds: burn's CPU backend makes twenty tokens a second.
const SHORT: [&str; 4] = ["chat-question", "chat-forged-marks", "text-one-letter", "text-json"];

/// Lets SmolLM2 continue prompts by some tokens.
fn check_smollm2(device: BurnDevice, prompts: &[&str], steps: usize) {
    let Some(path) = smollm2() else {
        return tiny::skipped("SmolLM2 is not here: `arena model pull smollm2`");
    };
    if !tiny::is_here(device) {
        return;
    }
    let weights = Weights::open(&path).expect("the packaged model is sound");
    let all = read(&fixture("smollm2.json"));
    let all = all["cases"].as_array().expect("a list of cases");
    let named = |name: &&str| {
        case(all.iter().find(|case| case["name"] == **name).expect("the case is there"))
    };
    let cases: Vec<Case> = prompts.iter().map(named).collect();
    let mut executor = BurnExecutor::load(&weights, device, 32 << 20).expect("the device is there");
    for (case, (tokens, _)) in cases.iter().zip(greedy(&mut executor, &cases, None, steps)) {
        assert_eq!(tokens, case.output[..steps], "on {device}");
    }
}

#[test]
fn smollm2_writes_what_it_writes_with_transformers() {
    check_smollm2(BurnDevice::Flex, &SHORT, 8);
}

#[test]
fn smollm2_writes_the_same_on_wgpu() {
    // Software adapters make a token a second.
    check_smollm2(BurnDevice::Wgpu, &SHORT[3..], 3);
}

#[test]
fn smollm2_writes_the_same_on_cuda() {
    check_smollm2(BurnDevice::Cuda, &SHORT, 8);
}
