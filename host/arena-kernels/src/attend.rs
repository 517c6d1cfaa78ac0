//! Attention by vectors: scores, exponentials, and the values that they weigh.
//!
//! Some rows of one sequence and the query heads of one key head are pairs that read the same
//! keys and values. Scores are computed for whole blocks, lanes being tokens; those behind a row's
//! context are never looked at.
//!
//! Twin: `attention::attend_plainly`.

// Tiles read and write through pointers; all of them are inside of slices whose lengths
// `attention` has checked.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]
// `r` is a pair and `v` a vector in all of a tile's arrays.
#![allow(clippy::needless_range_loop)]

use std::cell::RefCell;
use std::ops::Range;

use crate::attention::{AttentionRow, AttentionShape, BLOCK_TOKENS};
use crate::isa::Isa;
use crate::reduction::{divide_by, exp_and_sum_by, maximum_by};
use crate::shared::SharedMut;
use crate::simd::{Kernel, Simd};

/// Blocks that all pairs go through before the next ones: their keys of one head fit in a
/// first-level or second-level cache.
const CHUNK_BLOCKS: usize = 8;

thread_local! {
    /// Scores of a pass, `[pairs, tokens]`. They are kept from one to the next.
    static SCORES: RefCell<Vec<f32>> = const { RefCell::new(vec![]) };
}

/// Some rows of one sequence, and one head of its keys.
pub(crate) struct Pass<'a> {
    pub isa: Isa,
    pub shape: AttentionShape,
    pub kv_head: usize,
    pub first_row: usize,
    pub rows: &'a [AttentionRow<'a>],
    pub q: &'a [f32],
    pub keys: &'a [f32],
    pub values: &'a [f32],
    pub out: SharedMut,
}

impl Pass<'_> {
    /// Returns what scores are multiplied by.
    pub(crate) fn scale(&self) -> f32 {
        1.0 / (self.shape.head_dim as f32).sqrt()
    }

    fn group(&self) -> usize {
        self.shape.heads / self.shape.kv_heads
    }

    /// Returns where the query, and the output, of a pair begins.
    fn start_of(&self, pair: usize) -> usize {
        let row = self.first_row + pair / self.group();
        let head = self.kv_head * self.group() + pair % self.group();
        (row * self.shape.heads + head) * self.shape.head_dim
    }
}

impl Kernel for Pass<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        SCORES.with_borrow_mut(|scores| attend::<S>(&self, scores));
    }
}

unsafe fn attend<S: Simd>(pass: &Pass, scores: &mut Vec<f32>) {
    let contexts = || pass.rows.iter().map(|row| row.context_tokens);
    let (shortest, longest) = (contexts().min().unwrap_or(0), contexts().max().unwrap_or(0));
    let tokens = longest.next_multiple_of(BLOCK_TOKENS);
    let pairs = pass.rows.len() * pass.group();
    if scores.len() < pairs * tokens {
        scores.resize(pairs * tokens, 0.0);
    }
    let scores = &mut scores[..pairs * tokens];
    let blocks = &pass.rows[0].blocks[..tokens / BLOCK_TOKENS];
    let work = Work { pass, blocks, scores: scores.as_mut_ptr(), tokens };
    for start in (0..blocks.len()).step_by(CHUNK_BLOCKS) {
        let end = (start + CHUNK_BLOCKS).min(blocks.len());
        each_tile::<S, _>(0..pairs, |first_pair| Score { work, first_pair, start, end });
    }
    let mut sums = vec![0.0; pairs];
    for ((pair, scores), sum) in scores.chunks_exact_mut(tokens).enumerate().zip(&mut sums) {
        let seen = pass.rows[pair / pass.group()].context_tokens;
        // Whole vectors are faster, and e^-infinity adds 0.0.
        let padded = &mut scores[..seen.next_multiple_of(BLOCK_TOKENS)];
        padded[seen..].fill(f32::NEG_INFINITY);
        let max = maximum_by(pass.isa, padded);
        *sum = exp_and_sum_by(pass.isa, padded, max);
    }
    work.weigh::<S>(0..pairs, 0..shortest);
    for (index, seen) in contexts().enumerate() {
        if seen > shortest {
            let first = index * pass.group();
            work.weigh::<S>(first..first + pass.group(), shortest..seen);
        }
    }
    for (pair, sum) in sums.iter().enumerate() {
        let out = pass.out.elements(pass.start_of(pair), pass.shape.head_dim);
        divide_by(pass.isa, out, *sum);
    }
}

/// What the tiles of a pass share.
#[derive(Clone, Copy)]
struct Work<'a> {
    pass: &'a Pass<'a>,
    blocks: &'a [u32],
    scores: *mut f32,
    /// Scores of a pair.
    tokens: usize,
}

impl Work<'_> {
    /// Returns where a block of the pass's head begins, in keys and in values.
    #[inline(always)]
    fn block(&self, index: usize) -> usize {
        let shape = &self.pass.shape;
        let block = self.blocks[index] as usize;
        (block * shape.kv_heads + self.pass.kv_head) * shape.head_dim * BLOCK_TOKENS
    }

    /// Adds the weighted values of some tokens to the outputs of some pairs.
    unsafe fn weigh<S: Simd>(&self, pairs: Range<usize>, tokens: Range<usize>) {
        for start in tokens.clone().step_by(CHUNK_BLOCKS * BLOCK_TOKENS) {
            let end = (start + CHUNK_BLOCKS * BLOCK_TOKENS).min(tokens.end);
            let weigh = |first_pair| Weigh { work: *self, first_pair, start, end };
            each_tile::<S, _>(pairs.clone(), weigh);
        }
    }
}

/// Divides pairs into tiles of about the same size, and runs what `make` makes of the first pair.
unsafe fn each_tile<S: Simd, T: PairTile>(pairs: Range<usize>, make: impl Fn(usize) -> T) {
    let tiles = pairs.len().div_ceil(S::TILE_ROWS_MAX);
    let mut first = pairs.start;
    for tile in 0..tiles {
        let count = (pairs.end - first).div_ceil(tiles - tile);
        if 2 * count <= S::TILE_ROWS_MAX {
            S::wide_pairs(count, make(first));
        } else {
            S::narrow_pairs(count, make(first));
        }
        first += count;
    }
}

/// Work on a few pairs at once.
pub(crate) trait PairTile {
    /// Does it for `R` pairs by `V` vectors. To be marked `#[inline(always)]`.
    ///
    /// # Safety
    /// As for [`Kernel::run`].
    unsafe fn run<S: Simd, const R: usize, const V: usize>(self);
}

/// A tile of `R` pairs and `V` vectors.
pub(crate) struct Pairs<T, const R: usize, const V: usize>(pub T);

impl<T: PairTile, const R: usize, const V: usize> Kernel for Pairs<T, R, V> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        self.0.run::<S, R, V>();
    }
}

/// Scores of some blocks.
struct Score<'a> {
    work: Work<'a>,
    first_pair: usize,
    start: usize,
    end: usize,
}

impl PairTile for Score<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd, const R: usize, const V: usize>(self) {
        let pass = self.work.pass;
        let scale = S::splat(pass.scale());
        let q: [*const f32; R] = std::array::from_fn(|r| {
            pass.q[pass.start_of(self.first_pair + r)..][..pass.shape.head_dim].as_ptr()
        });
        let mut block = self.start;
        while block < self.end {
            // Where fewer blocks are left than vectors, the last one is computed again.
            let index: [usize; V] =
                std::array::from_fn(|v| (block + v * S::LANES / BLOCK_TOKENS).min(self.end - 1));
            let keys: [*const f32; V] = std::array::from_fn(|v| {
                pass.keys[self.work.block(index[v]) + v * S::LANES % BLOCK_TOKENS..].as_ptr()
            });
            let mut sums = [[S::splat(0.0); V]; R];
            for d in 0..pass.shape.head_dim {
                let mut keys_of_d = [S::splat(0.0); V];
                for v in 0..V {
                    keys_of_d[v] = S::load(keys[v].wrapping_add(d * BLOCK_TOKENS));
                }
                for r in 0..R {
                    let q = S::splat(*q[r].wrapping_add(d));
                    for v in 0..V {
                        sums[r][v] = S::fma(q, keys_of_d[v], sums[r][v]);
                    }
                }
            }
            for r in 0..R {
                let scores =
                    self.work.scores.wrapping_add((self.first_pair + r) * self.work.tokens);
                for v in 0..V {
                    let at = index[v] * BLOCK_TOKENS + v * S::LANES % BLOCK_TOKENS;
                    S::store(scores.wrapping_add(at), S::mul(sums[r][v], scale));
                }
            }
            block += V * S::LANES / BLOCK_TOKENS;
        }
    }
}

/// Weighted values of some tokens.
struct Weigh<'a> {
    work: Work<'a>,
    first_pair: usize,
    start: usize,
    end: usize,
}

impl PairTile for Weigh<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd, const R: usize, const V: usize>(self) {
        let dim = self.work.pass.shape.head_dim;
        let mut d = 0;
        while d + V * S::LANES <= dim {
            self.strip::<S, R, V>(d);
            d += V * S::LANES;
        }
        while d + S::LANES <= dim {
            self.strip::<S, R, 1>(d);
            d += S::LANES;
        }
        for d in d..dim {
            self.single::<R>(d);
        }
    }
}

impl Weigh<'_> {
    /// Returns where the outputs of pair `r` from element `d` on are, and its weights.
    #[inline(always)]
    unsafe fn pair(&self, r: usize, d: usize) -> (*mut f32, *const f32) {
        let pair = self.first_pair + r;
        let out = self.work.pass.out.at(self.work.pass.start_of(pair) + d);
        (out, self.work.scores.wrapping_add(pair * self.work.tokens))
    }

    /// Elements `d` to `d + V * S::LANES` of the outputs.
    #[inline(always)]
    unsafe fn strip<S: Simd, const R: usize, const V: usize>(&self, d: usize) {
        let dim = self.work.pass.shape.head_dim;
        let pairs: [_; R] = std::array::from_fn(|r| self.pair(r, d));
        let mut sums = [[S::splat(0.0); V]; R];
        if self.start > 0 {
            for r in 0..R {
                for v in 0..V {
                    sums[r][v] = S::load(pairs[r].0.wrapping_add(v * S::LANES));
                }
            }
        }
        let mut token = self.start;
        while token < self.end {
            let end = ((token / BLOCK_TOKENS + 1) * BLOCK_TOKENS).min(self.end);
            let block = self.work.block(token / BLOCK_TOKENS);
            let block = self.work.pass.values[block..][..dim * BLOCK_TOKENS].as_ptr();
            for token in token..end {
                let from = block.wrapping_add(token % BLOCK_TOKENS * dim + d);
                let mut values = [S::splat(0.0); V];
                for v in 0..V {
                    values[v] = S::load(from.wrapping_add(v * S::LANES));
                }
                for r in 0..R {
                    let weight = S::splat(*pairs[r].1.wrapping_add(token));
                    for v in 0..V {
                        sums[r][v] = S::fma(weight, values[v], sums[r][v]);
                    }
                }
            }
            token = end;
        }
        for r in 0..R {
            for v in 0..V {
                S::store(pairs[r].0.wrapping_add(v * S::LANES), sums[r][v]);
            }
        }
    }

    /// Element `d` of the outputs: heads are rarely no multiple of a vector.
    #[inline(always)]
    unsafe fn single<const R: usize>(&self, d: usize) {
        let dim = self.work.pass.shape.head_dim;
        for r in 0..R {
            let (out, weights) = self.pair(r, d);
            let mut sum = if self.start > 0 { *out } else { 0.0 };
            for token in self.start..self.end {
                let block = self.work.block(token / BLOCK_TOKENS);
                let value = self.work.pass.values[block + token % BLOCK_TOKENS * dim + d];
                sum = (*weights.wrapping_add(token)).mul_add(value, sum);
            }
            *out = sum;
        }
    }
}
