//! Attention over keys and values in blocks of 16 tokens.

use crate::context::Context;
use crate::reduction::{exp_and_sum, maximum};

/// Tokens of a block.
pub const BLOCK_TOKENS: usize = 16;

/// Heads of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// Query heads, a multiple of `kv_heads`; query heads `g * i .. g * (i + 1)` share key and
    /// value head `i`, where `g = heads / kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
}

/// Keys and values of one layer, in blocks.
///
/// A block of keys is `[kv_heads, head_dim, 16 tokens]`, a block of values
/// `[kv_heads, 16 tokens, head_dim]`.
pub struct KvBlocks {
    kv_heads: usize,
    head_dim: usize,
    blocks: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl KvBlocks {
    /// Makes `blocks` blocks of zeros. The operating system gives memory when a block is first
    /// written.
    pub fn new(blocks: usize, kv_heads: usize, head_dim: usize) -> KvBlocks {
        let len = blocks * kv_heads * head_dim * BLOCK_TOKENS;
        KvBlocks { kv_heads, head_dim, blocks, keys: vec![0.0; len], values: vec![0.0; len] }
    }

    /// Returns how many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns how many bytes a block takes, keys and values together.
    pub const fn block_bytes(kv_heads: usize, head_dim: usize) -> usize {
        2 * kv_heads * head_dim * BLOCK_TOKENS * size_of::<f32>()
    }

    /// Writes key and value, `[kv_heads, head_dim]` each, of the token at `slot` of a block.
    ///
    /// # Panics
    /// If there is no such block or slot, or a length does not fit.
    pub fn store(&mut self, block: u32, slot: usize, key: &[f32], value: &[f32]) {
        let width = self.kv_heads * self.head_dim;
        assert!((block as usize) < self.blocks, "block {block} of {}", self.blocks);
        assert!(slot < BLOCK_TOKENS, "slot {slot} of {BLOCK_TOKENS}");
        assert!(key.len() == width, "a key of {} elements of {width}", key.len());
        assert!(value.len() == width, "a value of {} elements of {width}", value.len());
        let at = block as usize * width * BLOCK_TOKENS;
        let keys = &mut self.keys[at..][..width * BLOCK_TOKENS];
        for (tokens, key) in keys.chunks_exact_mut(BLOCK_TOKENS).zip(key) {
            tokens[slot] = *key;
        }
        let values = &mut self.values[at..][..width * BLOCK_TOKENS];
        let heads = values.chunks_exact_mut(BLOCK_TOKENS * self.head_dim);
        for (tokens, value) in heads.zip(value.chunks_exact(self.head_dim)) {
            tokens[slot * self.head_dim..][..self.head_dim].copy_from_slice(value);
        }
    }

    /// Copies the first `rows` tokens of block `from` to block `to`.
    ///
    /// # Panics
    /// If there is no such block, or a block has fewer tokens.
    pub fn copy_rows(&mut self, from: u32, to: u32, rows: usize) {
        assert!((from as usize) < self.blocks, "block {from} of {}", self.blocks);
        assert!((to as usize) < self.blocks, "block {to} of {}", self.blocks);
        assert!(rows <= BLOCK_TOKENS, "{rows} tokens of {BLOCK_TOKENS}");
        let width = self.kv_heads * self.head_dim;
        let (from, to) = (from as usize, to as usize);
        let (from, to) = (from * width * BLOCK_TOKENS, to * width * BLOCK_TOKENS);
        for i in 0..width {
            let tokens = from + i * BLOCK_TOKENS;
            self.keys.copy_within(tokens..tokens + rows, to + i * BLOCK_TOKENS);
        }
        for head in 0..self.kv_heads {
            let at = head * BLOCK_TOKENS * self.head_dim;
            let tokens = from + at..from + at + rows * self.head_dim;
            self.values.copy_within(tokens, to + at);
        }
    }
}

/// What one query row attends to.
#[derive(Debug, Clone, Copy)]
pub struct AttentionRow<'a> {
    /// The blocks of its sequence, at least as many as the context needs.
    pub blocks: &'a [u32],
    /// Tokens that it sees, its own among them; at least 1.
    pub context_tokens: usize,
}

/// Attends: for every row and head, `scores[t]` is the chain of `q[d] * k[t][d]` over ascending
/// `d`, times `1 / sqrt(head_dim)`; `out[d]` is the chain of `e^(scores[t] - max) * v[t][d]` over
/// ascending `t`, divided by the sum of the exponentials. Shapes: `q` and `out` are
/// `[rows, heads * head_dim]`.
///
/// Source: Vaswani et al. 2017, equation 1; grouped heads of Ainslie et al. 2023.
///
/// # Panics
/// If a length does not fit the shape, or a row's blocks are too few or do not exist.
pub fn attention(
    context: &Context,
    shape: &AttentionShape,
    q: &[f32],
    rows: &[AttentionRow],
    kv: &KvBlocks,
    out: &mut [f32],
) {
    let width = shape.heads * shape.head_dim;
    assert!(shape.heads.is_multiple_of(shape.kv_heads), "{shape:?}");
    assert!(shape.kv_heads == kv.kv_heads && shape.head_dim == kv.head_dim, "{shape:?}");
    assert!(q.len() == rows.len() * width, "{} queries, {} rows of {width}", q.len(), rows.len());
    assert!(q.len() == out.len(), "{} elements in, {} out", q.len(), out.len());
    let _ = context;
    let group = shape.heads / shape.kv_heads;
    let scale = 1.0 / (shape.head_dim as f32).sqrt();
    let head_len = shape.head_dim * BLOCK_TOKENS;
    let heads = q.chunks_exact(shape.head_dim).zip(out.chunks_exact_mut(shape.head_dim));
    for (index, (q, out)) in heads.enumerate() {
        let (row, head) = (&rows[index / shape.heads], index % shape.heads / group);
        let block_at = |token: usize| {
            let block = row.blocks[token / BLOCK_TOKENS] as usize;
            (block * shape.kv_heads + head) * head_len
        };
        let score = |token: usize| {
            let keys = &kv.keys[block_at(token)..][..head_len];
            let keys = keys.iter().skip(token % BLOCK_TOKENS).step_by(BLOCK_TOKENS);
            q.iter().zip(keys).fold(0.0_f32, |sum, (q, k)| q.mul_add(*k, sum)) * scale
        };
        let mut scores: Vec<f32> = (0..row.context_tokens).map(score).collect();
        let max = maximum(&scores);
        let sum = exp_and_sum(&mut scores, max);
        out.fill(0.0);
        for (token, score) in scores.iter().enumerate() {
            let at = block_at(token) + token % BLOCK_TOKENS * shape.head_dim;
            for (out, value) in out.iter_mut().zip(&kv.values[at..][..shape.head_dim]) {
                *out = score.mul_add(*value, *out);
            }
        }
        for out in out {
            *out /= sum;
        }
    }
}
