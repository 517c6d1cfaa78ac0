//! Attention over keys and values in blocks of 16 tokens.
//!
//! Not here: the same by vectors (`attend`).

// Threads write different rows and heads of the same output.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::attend::{Pass, Stage};
use crate::context::Context;
use crate::isa::Isa;
use crate::reduction::{exp_and_sum_by, maximum_by};
use crate::shared::SharedMut;
use crate::simd;

/// Passes a thread below which threads share them, where contexts are long.
const SHARED_PARTS_MAX: usize = 2;
/// The shortest context that is worth sharing.
const SHARED_TOKENS_MIN: usize = 256;
/// Blocks that are scored by one thread where passes are shared.
const SHARED_BLOCKS: usize = 16;
/// Elements of a head that one thread computes where passes are shared.
const SHARED_DIMS: usize = 32;

/// Query rows times heads that are computed together: keys are read once for so many.
const PASS_PAIRS: usize = 24;

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
    /// The blocks of its sequence, at least as many as the context needs. Rows of one sequence
    /// that share the slice itself are computed together.
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
    assert!(width > 0 && shape.heads.is_multiple_of(shape.kv_heads), "{shape:?}");
    assert!(shape.kv_heads == kv.kv_heads && shape.head_dim == kv.head_dim, "{shape:?}");
    assert!(q.len() == rows.len() * width, "{} queries, {} rows of {width}", q.len(), rows.len());
    assert!(q.len() == out.len(), "{} elements in, {} out", q.len(), out.len());
    for row in rows {
        let needed = row.context_tokens.div_ceil(BLOCK_TOKENS);
        assert!(needed > 0, "a row that sees nothing");
        assert!(needed <= row.blocks.len(), "{needed} blocks of {}", row.blocks.len());
        let exist = row.blocks[..needed].iter().all(|&block| (block as usize) < kv.blocks);
        assert!(exist, "a block that is not one of {}", kv.blocks);
    }
    let out = SharedMut::new(out);
    let pass = |rows_of_pass: &Range<usize>, kv_head: usize, stage: Stage| Pass {
        isa: context.isa(),
        shape: *shape,
        kv_head,
        first_row: rows_of_pass.start,
        rows: &rows[rows_of_pass.clone()],
        q,
        keys: &kv.keys,
        values: &kv.values,
        out,
        stage,
    };
    let passes = passes(shape, rows);
    let longest = rows.iter().map(|row| row.context_tokens).max().unwrap_or(0);
    let parts = passes.len() * shape.kv_heads;
    let is_shared = parts < SHARED_PARTS_MAX * context.threads().get()
        && longest >= SHARED_TOKENS_MIN
        && context.threads().get() > 1
        && context.isa() != Isa::Portable;
    if is_shared {
        attend_in_stages(context, &passes, shape, &pass);
        return;
    }
    context.run(parts, &|part| {
        let (rows, kv_head) = (&passes[part / shape.kv_heads], part % shape.kv_heads);
        simd::run(context.isa(), pass(rows, kv_head, Stage::Whole), attend_plainly);
    });
}

/// Does all passes, stage by stage, so that threads can share them.
fn attend_in_stages<'a>(
    context: &Context,
    passes: &[Range<usize>],
    shape: &AttentionShape,
    pass: &(dyn Fn(&Range<usize>, usize, Stage) -> Pass<'a> + Sync),
) {
    let parts: Vec<(&Range<usize>, usize)> =
        passes.iter().flat_map(|rows| (0..shape.kv_heads).map(move |head| (rows, head))).collect();
    let sizes = parts.iter().map(|(rows, head)| {
        let pass = pass(rows, *head, Stage::Whole);
        (pass.score_count(), pass.blocks(), pass.pairs())
    });
    let sizes: Vec<(usize, usize, usize)> = sizes.collect();
    let mut buffers: Vec<Vec<f32>> = sizes.iter().map(|size| vec![0.0; size.0]).collect();
    let scores: Vec<SharedMut> = buffers.iter_mut().map(|buffer| SharedMut::new(buffer)).collect();
    let run = |slices: usize, stage: &(dyn Fn(usize, usize) -> Option<Stage> + Sync)| {
        context.run(parts.len() * slices, &|item| {
            let (part, slice) = (item / slices, item % slices);
            if let Some(stage) = stage(part, slice) {
                let (rows, head) = parts[part];
                simd::run(context.isa(), pass(rows, head, stage), |_| unreachable!("shared"));
            }
        });
    };
    let blocks = sizes.iter().map(|size| size.1).max().unwrap_or(0);
    run(blocks.div_ceil(SHARED_BLOCKS), &|part, slice| {
        let first = slice * SHARED_BLOCKS;
        let last = (first + SHARED_BLOCKS).min(sizes[part].1);
        (first < last).then(|| Stage::Score { blocks: first..last, scores: scores[part] })
    });
    run(sizes.iter().map(|size| size.2).max().unwrap_or(0), &|part, pair| {
        (pair < sizes[part].2).then(|| Stage::Soften { pair, scores: scores[part] })
    });
    run(shape.head_dim.div_ceil(SHARED_DIMS), &|part, slice| {
        let first = slice * SHARED_DIMS;
        let dims = first..(first + SHARED_DIMS).min(shape.head_dim);
        Some(Stage::Weigh { dims, scores: scores[part] })
    });
}

/// Divides rows into runs of neighbours of one sequence.
fn passes(shape: &AttentionShape, rows: &[AttentionRow]) -> Vec<Range<usize>> {
    let rows_max = (PASS_PAIRS * shape.kv_heads / shape.heads).max(1);
    let mut passes: Vec<Range<usize>> = vec![];
    for (index, row) in rows.iter().enumerate() {
        match passes.last_mut() {
            Some(pass)
                if pass.len() < rows_max && std::ptr::eq(rows[pass.start].blocks, row.blocks) =>
            {
                pass.end += 1;
            }
            _ => passes.push(index..index + 1),
        }
    }
    passes
}

/// The twin of `attend`: one row, head and token after the other.
fn attend_plainly(pass: Pass) {
    let dim = pass.shape.head_dim;
    let head_len = dim * BLOCK_TOKENS;
    let group = pass.shape.heads / pass.shape.kv_heads;
    let scale = pass.scale();
    for (index, row) in pass.rows.iter().enumerate() {
        let block_at = |token: usize| {
            let block = row.blocks[token / BLOCK_TOKENS] as usize;
            (block * pass.shape.kv_heads + pass.kv_head) * head_len
        };
        for head in pass.kv_head * group..(pass.kv_head + 1) * group {
            let at = ((pass.first_row + index) * pass.shape.heads + head) * dim;
            let q = &pass.q[at..][..dim];
            let score = |token: usize| {
                let keys = &pass.keys[block_at(token)..][..head_len];
                let keys = keys.iter().skip(token % BLOCK_TOKENS).step_by(BLOCK_TOKENS);
                q.iter().zip(keys).fold(0.0_f32, |sum, (q, k)| q.mul_add(*k, sum)) * scale
            };
            let mut scores: Vec<f32> = (0..row.context_tokens).map(score).collect();
            let max = maximum_by(pass.isa, &scores);
            let sum = exp_and_sum_by(pass.isa, &mut scores, max);
            // SAFETY: every row and head is of one part, and `out` outlives the region.
            let out = unsafe { pass.out.elements(at, dim) };
            out.fill(0.0);
            for (token, score) in scores.iter().enumerate() {
                let at = block_at(token) + token % BLOCK_TOKENS * dim;
                for (out, value) in out.iter_mut().zip(&pass.values[at..][..dim]) {
                    *out = score.mul_add(*value, *out);
                }
            }
            for out in out {
                *out /= sum;
            }
        }
    }
}

#[cfg(test)]
mod tests;
