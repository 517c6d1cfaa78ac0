//! Attention is the same bits for any batch, chunk, threads and instruction set.

use std::num::NonZeroUsize;

use crate::attention::{AttentionRow, AttentionShape, BLOCK_TOKENS, KvBlocks, attention};
use crate::context::Context;
use crate::isa::Isa;

fn numbers(seed: usize, count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 10_007) as f32 / 2_500.0 - 2.0).collect()
}

fn context(threads: usize, isa: Isa) -> Context {
    Context::new(NonZeroUsize::new(threads).expect("not zero"), isa).expect("available")
}

/// A sequence of `tokens` tokens in blocks that are taken from the end.
fn filled(shape: &AttentionShape, tokens: usize) -> (KvBlocks, Vec<u32>) {
    let count = tokens.div_ceil(BLOCK_TOKENS);
    let mut kv = KvBlocks::new(count + 2, shape.kv_heads, shape.head_dim);
    let blocks: Vec<u32> = (0..count).map(|block| (count - block) as u32).collect();
    let width = shape.kv_heads * shape.head_dim;
    for token in 0..tokens {
        let (key, value) = (numbers(token, width), numbers(token + 5000, width));
        kv.store(blocks[token / BLOCK_TOKENS], token % BLOCK_TOKENS, &key, &value);
    }
    (kv, blocks)
}

/// Attends to each of the last `rows` tokens of a sequence, as rows of one batch.
fn attend(shape: &AttentionShape, tokens: usize, rows: usize, context: &Context) -> Vec<f32> {
    let (kv, blocks) = filled(shape, tokens);
    let q = numbers(17, rows * shape.heads * shape.head_dim);
    let row = |row| AttentionRow { blocks: &blocks, context_tokens: tokens - rows + 1 + row };
    let rows: Vec<AttentionRow> = (0..rows).map(row).collect();
    let mut out = vec![f32::NAN; q.len()];
    attention(context, shape, &q, &rows, &kv, &mut out);
    out
}

#[test]
fn every_instruction_set_and_number_of_threads_gives_the_same_bits() {
    for (heads, kv_heads, head_dim) in [(9, 3, 64), (4, 4, 8), (8, 1, 20), (3, 3, 128), (26, 2, 33)]
    {
        let shape = AttentionShape { heads, kv_heads, head_dim };
        for (tokens, rows) in [(1, 1), (16, 1), (33, 9), (40, 40), (300, 3), (531, 1)] {
            let plain = attend(&shape, tokens, rows, &context(1, Isa::Portable));
            for isa in Isa::available() {
                for threads in [1, 2, 3] {
                    let is = attend(&shape, tokens, rows, &context(threads, isa));
                    assert!(is == plain, "{shape:?}, {tokens}, {rows}, {}, {threads}", isa.name());
                }
            }
        }
    }
}

#[test]
fn a_row_attends_alone_as_in_a_chunk() {
    let shape = AttentionShape { heads: 9, kv_heads: 3, head_dim: 64 };
    let context = context(2, Isa::best());
    let width = shape.heads * shape.head_dim;
    let together = attend(&shape, 50, 50, &context);
    let (kv, blocks) = filled(&shape, 50);
    let q = numbers(17, 50 * width);
    for row in 0..50 {
        let mut out = vec![f32::NAN; width];
        let rows = [AttentionRow { blocks: &blocks, context_tokens: row + 1 }];
        attention(&context, &shape, &q[row * width..][..width], &rows, &kv, &mut out);
        assert_eq!(out, together[row * width..][..width], "row {row}");
    }
}

#[test]
fn what_lies_behind_a_context_is_not_looked_at() {
    let shape = AttentionShape { heads: 2, kv_heads: 1, head_dim: 16 };
    let context = context(1, Isa::best());
    let (mut kv, blocks) = filled(&shape, 40);
    let q = numbers(3, 2 * 2 * 16);
    let attend = |kv: &KvBlocks| {
        let rows = [20, 21].map(|context_tokens| AttentionRow { blocks: &blocks, context_tokens });
        let mut out = vec![f32::NAN; q.len()];
        attention(&context, &shape, &q, &rows, kv, &mut out);
        out
    };
    let before = attend(&kv);
    for slot in 5..BLOCK_TOKENS {
        kv.store(blocks[1], slot, &[f32::NAN; 16], &[f32::NAN; 16]);
    }
    let after = attend(&kv);
    assert!(after.iter().all(|x| x.is_finite()));
    assert_eq!(before, after);
}

#[test]
fn attention_is_the_weighted_mean_of_values() {
    let shape = AttentionShape { heads: 2, kv_heads: 1, head_dim: 16 };
    let tokens = 37;
    let is = attend(&shape, tokens, 1, &context(1, Isa::best()));
    let q: Vec<f64> = numbers(17, 32).iter().map(|x| f64::from(*x)).collect();
    for head in 0..2 {
        let weight = |token: usize| {
            let key = numbers(token, 16);
            let dot: f64 = (0..16).map(|d| q[head * 16 + d] * f64::from(key[d])).sum();
            (dot / 4.0).exp()
        };
        let sum: f64 = (0..tokens).map(weight).sum();
        for d in 0..16 {
            let value = |token: usize| f64::from(numbers(token + 5000, 16)[d]);
            let mean = (0..tokens).map(|token| weight(token) * value(token)).sum::<f64>() / sum;
            let is = f64::from(is[head * 16 + d]);
            assert!((is - mean).abs() < 1e-4, "{is} is not {mean}");
        }
    }
}

#[test]
fn copied_tokens_are_attended_to_as_the_originals() {
    let shape = AttentionShape { heads: 2, kv_heads: 2, head_dim: 8 };
    let context = context(1, Isa::best());
    let (mut kv, blocks) = filled(&shape, 32);
    kv.copy_rows(blocks[1], 0, 5);
    let copied = [blocks[0], 0];
    let q = numbers(3, 16);
    let attend = |blocks: &[u32]| {
        let mut out = vec![0.0; 16];
        let rows = [AttentionRow { blocks, context_tokens: 21 }];
        attention(&context, &shape, &q, &rows, &kv, &mut out);
        out
    };
    assert_eq!(attend(&blocks), attend(&copied));
}

#[test]
#[should_panic(expected = "2 blocks of 1")]
fn blocks_that_are_too_few_panic() {
    let shape = AttentionShape { heads: 1, kv_heads: 1, head_dim: 8 };
    let rows = [AttentionRow { blocks: &[0], context_tokens: 17 }];
    let kv = KvBlocks::new(1, 1, 8);
    attention(&context(1, Isa::best()), &shape, &[0.0; 8], &rows, &kv, &mut [0.0; 8]);
}

#[test]
#[should_panic(expected = "a block that is not one of 1")]
fn blocks_that_do_not_exist_panic() {
    let shape = AttentionShape { heads: 1, kv_heads: 1, head_dim: 8 };
    let rows = [AttentionRow { blocks: &[1], context_tokens: 1 }];
    let kv = KvBlocks::new(1, 1, 8);
    attention(&context(1, Isa::best()), &shape, &[0.0; 8], &rows, &kv, &mut [0.0; 8]);
}
