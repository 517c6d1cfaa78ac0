//! Products of floats with free strides, by tiles: what gradients are made of.
//!
//! The right side is a panel: 32 columns side by side, zeros behind the last real one. The left
//! side is read where it lies, along its rows or across them.
//!
//! Twin: `multiply_plainly`.
//!
//! Not here: how work is divided among threads (`gradient`), products with weights (`multiply`).

// Tiles read and write through pointers: threads write different columns of the same rows.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]
// `r` is a row and `v` a vector in all of a tile's arrays.
#![allow(clippy::needless_range_loop)]

use crate::attend::PairTile;
use crate::isa::Isa;
use crate::multiply::even_runs;
use crate::pack::PANEL_ROWS;
use crate::simd::{self, Kernel, Simd};

/// Columns of a panel.
pub(crate) const PANEL: usize = PANEL_ROWS;
/// Vectors of a tile.
const TILE_VECTORS: usize = 2;
/// Most lanes of a tile: two vectors of sixteen.
const TILE_LANES_MAX: usize = 32;

/// The left side of a product: element `k` of row `r`.
#[derive(Clone, Copy)]
pub(crate) enum Left {
    /// `start[r * stride + k]`.
    Rows { start: *const f32, stride: usize },
    /// `start[k * stride + r]`: the rows are columns of what lies there.
    Columns { start: *const f32, stride: usize },
}

/// `out[r][lane]` is the chain of `left[r][k] * panel[k][lane]` over ascending `k`, from 0.0 or from
/// what is there. The pointers are good for `rows`, `depth` and `lanes`.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub left: Left,
    /// `[depth, 32]`.
    pub panel: *const f32,
    pub out: *mut f32,
    pub out_stride: usize,
    pub rows: usize,
    pub depth: usize,
    /// Columns of the panel that are real, at most 32.
    pub lanes: usize,
    /// Whether sums begin with 0.0.
    pub begins: bool,
}

impl Product {
    /// Does it.
    ///
    /// # Safety
    /// The pointers are good, and nobody else has these outputs meanwhile.
    pub(crate) unsafe fn run_by(self, isa: Isa) {
        simd::run(isa, self, |product| unsafe { multiply_plainly(product) });
    }
}

impl Kernel for Product {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for lane in (0..self.lanes).step_by(TILE_VECTORS * S::LANES) {
            for rows in even_runs(self.rows, S::TILE_ROWS_MAX) {
                let strip = Product {
                    panel: self.panel.wrapping_add(lane),
                    out: self.out.wrapping_add(rows.start * self.out_stride + lane),
                    lanes: (self.lanes - lane).min(TILE_VECTORS * S::LANES),
                    ..self
                };
                match self.left {
                    Left::Rows { start, stride } => {
                        let start = start.wrapping_add(rows.start * stride);
                        S::narrow_pairs(rows.len(), Along { start, stride, strip });
                    }
                    Left::Columns { start, stride } => {
                        let start = start.wrapping_add(rows.start);
                        S::narrow_pairs(rows.len(), Across { start, stride, strip });
                    }
                }
            }
        }
    }
}

/// A tile whose left side is read along its rows.
struct Along {
    start: *const f32,
    stride: usize,
    strip: Product,
}

impl PairTile for Along {
    #[inline(always)]
    unsafe fn run<S: Simd, const R: usize, const V: usize>(self) {
        tile::<S, R, V>(&self.strip, self.start, self.stride, 1);
    }
}

/// A tile whose left side is read across its rows.
struct Across {
    start: *const f32,
    stride: usize,
    strip: Product,
}

impl PairTile for Across {
    #[inline(always)]
    unsafe fn run<S: Simd, const R: usize, const V: usize>(self) {
        tile::<S, R, V>(&self.strip, self.start, 1, self.stride);
    }
}

/// `R` rows by `V` vectors; the left side's element `k` of row `r` is `left[r * row + k * step]`.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const V: usize>(
    strip: &Product,
    mut left: *const f32,
    row: usize,
    step: usize,
) {
    let mut sums = [[S::splat(0.0); V]; R];
    if !strip.begins {
        load::<S, R, V>(strip, &mut sums);
    }
    let mut panel = strip.panel;
    for _ in 0..strip.depth {
        let mut right = [S::splat(0.0); V];
        for v in 0..V {
            right[v] = S::load(panel.wrapping_add(v * S::LANES));
        }
        for r in 0..R {
            let left = S::splat(*left.wrapping_add(r * row));
            for v in 0..V {
                sums[r][v] = S::fma(left, right[v], sums[r][v]);
            }
        }
        left = left.wrapping_add(step);
        panel = panel.wrapping_add(PANEL);
    }
    store::<S, R, V>(strip, &sums);
}

#[inline(always)]
unsafe fn load<S: Simd, const R: usize, const V: usize>(
    strip: &Product,
    sums: &mut [[S::Floats; V]; R],
) {
    for r in 0..R {
        let mut from = strip.out.wrapping_add(r * strip.out_stride).cast_const();
        let mut lanes = [0.0; TILE_LANES_MAX];
        if strip.lanes < V * S::LANES {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), strip.lanes);
            from = lanes.as_ptr();
        }
        for v in 0..V {
            sums[r][v] = S::load(from.wrapping_add(v * S::LANES));
        }
    }
}

#[inline(always)]
unsafe fn store<S: Simd, const R: usize, const V: usize>(
    strip: &Product,
    sums: &[[S::Floats; V]; R],
) {
    for r in 0..R {
        let mut lanes = [0.0; TILE_LANES_MAX];
        let is_whole = strip.lanes == V * S::LANES;
        let out = strip.out.wrapping_add(r * strip.out_stride);
        let to = if is_whole { out } else { lanes.as_mut_ptr() };
        for v in 0..V {
            S::store(to.wrapping_add(v * S::LANES), sums[r][v]);
        }
        if !is_whole {
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), out, strip.lanes);
        }
    }
}

/// The twin of the tiles: one output after the other.
unsafe fn multiply_plainly(product: Product) {
    let (start, row, step) = match product.left {
        Left::Rows { start, stride } => (start, stride, 1),
        Left::Columns { start, stride } => (start, 1, stride),
    };
    for r in 0..product.rows {
        for lane in 0..product.lanes {
            let out = product.out.wrapping_add(r * product.out_stride + lane);
            let mut sum = if product.begins { 0.0 } else { *out };
            for k in 0..product.depth {
                let left = *start.wrapping_add(r * row + k * step);
                sum = left.mul_add(*product.panel.wrapping_add(k * PANEL + lane), sum);
            }
            *out = sum;
        }
    }
}

/// Copies `depth` rows of at most 32 columns into a panel: row `k` begins at `k * stride`.
pub(crate) fn pack(from: &[f32], stride: usize, lanes: usize, panel: &mut [f32]) {
    for (k, to) in panel.chunks_exact_mut(PANEL).enumerate() {
        let from = &from[k * stride..][..lanes];
        if lanes == PANEL {
            to.copy_from_slice(from);
        } else {
            to[..lanes].copy_from_slice(from);
            to[lanes..].fill(0.0);
        }
    }
}
