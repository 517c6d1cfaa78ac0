//! What `transformers` computes for checkpoints of every architecture (`tests/parity/README.md`).

use arena_model::executor::{AdapterId, Batch, BlockId, Executor, SequenceRows};
use arena_weights::adapter::Adapter;

use crate::fixture::{Setup, executor, path, weights};

/// Logits are of the order of 1, and f32 has seven digits.
const TOLERANCE: f32 = 2e-4;

#[derive(serde::Deserialize)]
struct Case {
    ids: Vec<u32>,
    output: Vec<u32>,
    first_logits: Vec<f32>,
    last_logits: Vec<f32>,
}

/// Computes `tokens` from `start` on, and returns the logits of the last.
fn compute(
    executor: &mut dyn Executor,
    tokens: &[u32],
    start: usize,
    adapter: Option<AdapterId>,
) -> Vec<f32> {
    let blocks = (0..20).map(BlockId).collect();
    let rows = 0..tokens.len();
    let start_position = start as u32;
    let batch = Batch {
        tokens: tokens.to_vec(),
        sequences: vec![SequenceRows { rows, start_position, blocks, adapter }],
        logits_of: vec![tokens.len() - 1],
    };
    let mut logits = Vec::new();
    executor.forward(&batch, &mut logits).expect("the device works");
    logits
}

fn check(executor: &mut dyn Executor, expected: &str, adapter: Option<AdapterId>) {
    let text = std::fs::read_to_string(path(expected).join("expected.json"));
    let cases: Vec<Case> =
        serde_json::from_str(&text.expect("the fixture is there")).expect("the fixture is sound");
    assert!(!cases.is_empty());
    for case in cases {
        let mut logits = compute(executor, &case.ids, 0, adapter);
        assert_close(&logits, &case.first_logits, expected);
        for (index, &token) in case.output.iter().enumerate() {
            let best = arena_kernels::choice::arg_max(&logits).expect("there are logits");
            assert_eq!(best, token, "{expected}: token {index}");
            if index + 1 < case.output.len() {
                logits = compute(executor, &[token], case.ids.len() + index, adapter);
            }
        }
        assert_close(&logits, &case.last_logits, expected);
    }
}

fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (id, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (found - expected).abs();
        assert!(difference < TOLERANCE, "{what}: logit {id} is {found}, not {expected}");
    }
}

#[test]
fn tiny_checkpoints_get_the_logits_of_transformers() {
    for name in crate::fixture::TINY {
        check(&mut executor(&weights(name), Setup::default()), name, None);
    }
}

#[test]
fn an_adapter_of_peft_gets_the_logits_of_transformers() {
    let weights = weights("tiny-llama");
    let adapter = Adapter::open(&path("tiny-llama-adapter"), weights.config());
    let mut executor = executor(&weights, Setup::default());
    let slot = AdapterId(2);
    executor.set_adapter(slot, Some(&adapter.expect("it is sound"))).expect("it fits");
    check(&mut executor, "tiny-llama-adapter", Some(slot));
    check(&mut executor, "tiny-llama", None);
    executor.set_adapter(slot, None).expect("a slot can be emptied");
    check(&mut executor, "tiny-llama", None);
}
