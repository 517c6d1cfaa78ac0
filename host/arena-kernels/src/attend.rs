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
use crate::multiply::even_runs;
use crate::reduction::{divide_by, exp_and_sum_by, maximum_by};
use crate::shared::SharedMut;
use crate::simd::{Kernel, Simd};

/// Blocks that all pairs go through before the next ones: their keys of one head fit in a
/// first-level or second-level cache.
const CHUNK_BLOCKS: usize = 8;

thread_local! {
    /// Scores of a pass that one thread does alone. They are kept from one to the next.
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
    pub stage: Stage,
}

/// What is done of a pass. Where rows are few and see much, threads share passes: each stage is
/// done for all before the next, on scores of [`Pass::score_count`] floats.
#[derive(Clone)]
pub(crate) enum Stage {
    /// All of it.
    Whole,
    /// The scores of some blocks.
    Score { blocks: Range<usize>, scores: SharedMut },
    /// The exponentials and their sum, of one pair.
    Soften { pair: usize, scores: SharedMut },
    /// Some elements of the outputs.
    Weigh { dims: Range<usize>, scores: SharedMut },
}

impl Pass<'_> {
    /// Returns what scores are multiplied by.
    pub(crate) fn scale(&self) -> f32 {
        1.0 / (self.shape.head_dim as f32).sqrt()
    }

    /// Returns how many pairs there are.
    pub(crate) fn pairs(&self) -> usize {
        self.rows.len() * self.group()
    }

    /// Returns how many blocks the longest context has.
    pub(crate) fn blocks(&self) -> usize {
        self.longest().div_ceil(BLOCK_TOKENS)
    }

    /// Returns how many floats the scores take: `[pairs, tokens]`, and a sum a pair.
    pub(crate) fn score_count(&self) -> usize {
        self.pairs() * (self.blocks() * BLOCK_TOKENS + 1)
    }

    fn longest(&self) -> usize {
        self.rows.iter().map(|row| row.context_tokens).max().unwrap_or(0)
    }

    fn shortest(&self) -> usize {
        self.rows.iter().map(|row| row.context_tokens).min().unwrap_or(0)
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
        match self.stage.clone() {
            Stage::Whole => SCORES.with_borrow_mut(|scores| {
                if scores.len() < self.score_count() {
                    scores.resize(self.score_count(), 0.0);
                }
                let work = Work::new(&self, SharedMut::new(scores));
                work.score::<S>(0..self.blocks());
                (0..self.pairs()).for_each(|pair| work.soften(pair));
                work.weigh::<S>(0..self.shape.head_dim);
            }),
            Stage::Score { blocks, scores } => Work::new(&self, scores).score::<S>(blocks),
            Stage::Soften { pair, scores } => Work::new(&self, scores).soften(pair),
            Stage::Weigh { dims, scores } => Work::new(&self, scores).weigh::<S>(dims),
        }
    }
}

/// What the tiles of a pass share.
#[derive(Clone, Copy)]
struct Work<'a> {
    pass: &'a Pass<'a>,
    blocks: &'a [u32],
    scores: *mut f32,
    /// One sum a pair.
    sums: *mut f32,
    /// Scores of a pair.
    tokens: usize,
}

impl<'a> Work<'a> {
    fn new(pass: &'a Pass, scores: SharedMut) -> Work<'a> {
        let blocks = &pass.rows[0].blocks[..pass.blocks()];
        let tokens = pass.blocks() * BLOCK_TOKENS;
        let sums = scores.at(pass.pairs() * tokens);
        Work { pass, blocks, scores: scores.at(0), sums, tokens }
    }

    /// Returns where a block of the pass's head begins, in keys and in values.
    #[inline(always)]
    fn block(&self, index: usize) -> usize {
        let shape = &self.pass.shape;
        let block = self.blocks[index] as usize;
        (block * shape.kv_heads + self.pass.kv_head) * shape.head_dim * BLOCK_TOKENS
    }

    /// Computes the scores of all pairs in some blocks.
    unsafe fn score<S: Simd>(&self, blocks: Range<usize>) {
        let work = *self;
        for start in blocks.clone().step_by(CHUNK_BLOCKS) {
            let end = (start + CHUNK_BLOCKS).min(blocks.end);
            let score = |first_pair| Score { work, first_pair, start, end };
            each_tile::<S, _>(0..self.pass.pairs(), score);
        }
    }

    /// Replaces the scores of a pair by their exponentials, and sums these up.
    unsafe fn soften(&self, pair: usize) {
        let seen = self.pass.rows[pair / self.pass.group()].context_tokens;
        // Whole vectors are faster, and e^-infinity adds 0.0.
        let padded = seen.next_multiple_of(BLOCK_TOKENS);
        let scores = self.scores.wrapping_add(pair * self.tokens);
        let scores = std::slice::from_raw_parts_mut(scores, padded);
        scores[seen..].fill(f32::NEG_INFINITY);
        let max = maximum_by(self.pass.isa, scores);
        *self.sums.wrapping_add(pair) = exp_and_sum_by(self.pass.isa, scores, max);
    }

    /// Computes some elements of the outputs of all pairs.
    unsafe fn weigh<S: Simd>(&self, dims: Range<usize>) {
        let (pass, shortest) = (self.pass, self.pass.shortest());
        self.add_values::<S>(0..pass.pairs(), 0..shortest, &dims);
        for (index, row) in pass.rows.iter().enumerate() {
            if row.context_tokens > shortest {
                let first = index * pass.group();
                let tokens = shortest..row.context_tokens;
                self.add_values::<S>(first..first + pass.group(), tokens, &dims);
            }
        }
        for pair in 0..pass.pairs() {
            let out = pass.out.elements(pass.start_of(pair) + dims.start, dims.len());
            divide_by(pass.isa, out, *self.sums.wrapping_add(pair));
        }
    }

    /// Adds the weighted values of some tokens to the outputs of some pairs.
    unsafe fn add_values<S: Simd>(
        &self,
        pairs: Range<usize>,
        tokens: Range<usize>,
        dims: &Range<usize>,
    ) {
        let (work, first_dim, last_dim) = (*self, dims.start, dims.end);
        for start in tokens.clone().step_by(CHUNK_BLOCKS * BLOCK_TOKENS) {
            let end = (start + CHUNK_BLOCKS * BLOCK_TOKENS).min(tokens.end);
            let weigh = |first_pair| Weigh { work, first_pair, start, end, first_dim, last_dim };
            each_tile::<S, _>(pairs.clone(), weigh);
        }
    }
}

/// Divides pairs into tiles of about the same size, and runs what `make` makes of the first pair.
unsafe fn each_tile<S: Simd, T: PairTile>(pairs: Range<usize>, make: impl Fn(usize) -> T) {
    for run in even_runs(pairs.len(), S::TILE_ROWS_MAX) {
        let tile = make(pairs.start + run.start);
        if 2 * run.len() <= S::TILE_ROWS_MAX {
            S::wide_pairs(run.len(), tile);
        } else {
            S::narrow_pairs(run.len(), tile);
        }
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
    first_dim: usize,
    last_dim: usize,
}

impl PairTile for Weigh<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd, const R: usize, const V: usize>(self) {
        let mut d = self.first_dim;
        while d + V * S::LANES <= self.last_dim {
            self.strip::<S, R, V>(d);
            d += V * S::LANES;
        }
        while d + S::LANES <= self.last_dim {
            self.strip::<S, R, 1>(d);
            d += S::LANES;
        }
        for d in d..self.last_dim {
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
