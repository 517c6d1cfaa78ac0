//! Products of floats with free strides, by tiles: what gradients are made of.
//!
//! The right side is panels: 32 columns side by side each, zeros behind the last real one. The left
//! side is read where it lies along its rows; across them, a tile's part is packed first, because
//! it is read once for every panel, and far apart in memory.
//!
//! Twin: `multiply_plainly`.
//!
//! Not here: how work is divided among threads (`gradient`), products with weights (`multiply`).

// Tiles read and write through pointers: threads write different columns of the same rows.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]
// `r` is a row and `v` a vector in all of a tile's arrays.
#![allow(clippy::needless_range_loop)]

use std::mem::MaybeUninit;

use crate::attend::PairTile;
use crate::isa::Isa;
use crate::multiply::even_runs;
use crate::pack::PANEL_ROWS;
use crate::simd::{self, Kernel, Simd};

/// Columns of a panel.
pub(crate) const PANEL: usize = PANEL_ROWS;
/// Most elements of a chain whose left side is read across its rows.
pub(crate) const ACROSS_DEPTH_MAX: usize = 256;
/// Most rows of a tile.
const ROWS_MAX: usize = 12;
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

/// `out[r][lane]` is the chain of `left[r][k] * right[k][lane]` over ascending `k`, from 0.0 or
/// from what is there. The pointers are good for `rows`, `depth` and `lanes`.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub left: Left,
    /// `[panels, depth, 32]`.
    pub panels: *const f32,
    /// From one panel to the next.
    pub panel_stride: usize,
    pub out: *mut f32,
    pub out_stride: usize,
    pub rows: usize,
    pub depth: usize,
    /// Columns of all panels that are real.
    pub lanes: usize,
    /// Whether sums begin with 0.0.
    pub begins: bool,
}

impl Product {
    /// Does it.
    ///
    /// # Safety
    /// The pointers are good, and nobody else has these outputs meanwhile.
    ///
    /// # Panics
    /// If it goes across more than [`ACROSS_DEPTH_MAX`] rows.
    pub(crate) unsafe fn run_by(self, isa: Isa) {
        let is_across = matches!(self.left, Left::Columns { .. });
        assert!(!is_across || self.depth <= ACROSS_DEPTH_MAX, "{} rows across", self.depth);
        simd::run(isa, self, |product| unsafe { multiply_plainly(product) });
    }
}

impl Kernel for Product {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for rows in even_runs(self.rows, S::TILE_ROWS_MAX) {
            let out = self.out.wrapping_add(rows.start * self.out_stride);
            let strips = Product { out, ..self };
            match self.left {
                Left::Rows { start, stride } => {
                    let start = start.wrapping_add(rows.start * stride);
                    S::narrow_pairs(rows.len(), Along { start, stride, strips });
                }
                Left::Columns { start, stride } => {
                    let start = start.wrapping_add(rows.start);
                    S::narrow_pairs(rows.len(), Across { start, stride, strips });
                }
            }
        }
    }
}

/// Tiles whose left side is read along its rows.
struct Along {
    start: *const f32,
    stride: usize,
    strips: Product,
}

impl PairTile for Along {
    #[inline(always)]
    unsafe fn run<S: Simd, const R: usize, const V: usize>(self) {
        tiles::<S, R, V>(&self.strips, self.start, self.stride, 1);
    }
}

/// Tiles whose left side is read across its rows.
struct Across {
    start: *const f32,
    stride: usize,
    strips: Product,
}

impl PairTile for Across {
    #[inline(always)]
    unsafe fn run<S: Simd, const R: usize, const V: usize>(self) {
        let mut packed = MaybeUninit::<[f32; ACROSS_DEPTH_MAX * ROWS_MAX]>::uninit();
        let packed = packed.as_mut_ptr().cast::<f32>();
        for k in 0..self.strips.depth {
            let from = self.start.wrapping_add(k * self.stride).cast::<[f32; R]>();
            packed.wrapping_add(k * R).cast::<[f32; R]>().write(from.read());
        }
        tiles::<S, R, V>(&self.strips, packed, 1, R);
    }
}

/// `R` rows by all columns; the left side's element `k` of row `r` is `left[r * row + k * step]`.
#[inline(always)]
unsafe fn tiles<S: Simd, const R: usize, const V: usize>(
    strips: &Product,
    left: *const f32,
    row: usize,
    step: usize,
) {
    let width = V * S::LANES;
    for lane in (0..strips.lanes).step_by(width) {
        let panel = strips.panels.wrapping_add(lane / PANEL * strips.panel_stride + lane % PANEL);
        let out = strips.out.wrapping_add(lane);
        let lanes = (strips.lanes - lane).min(width);
        tile::<S, R, V>(&Product { panels: panel, out, lanes, ..*strips }, left, row, step);
    }
}

/// `R` rows by `V` vectors.
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
    let mut panel = strip.panels;
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
                let panel = product.panels.wrapping_add(lane / PANEL * product.panel_stride);
                sum = left.mul_add(*panel.wrapping_add(k * PANEL + lane % PANEL), sum);
            }
            *out = sum;
        }
    }
}

/// Packs `rows` rows of `width` elements each: `[width / 32, rows, 32]`.
pub(crate) fn pack<'a>(
    rows: usize,
    width: usize,
    row: impl Fn(usize) -> &'a [f32],
    to: &mut [f32],
) {
    let panels = to[..width.div_ceil(PANEL) * rows * PANEL].chunks_exact_mut(rows * PANEL);
    for (panel, to) in panels.enumerate() {
        let lanes = (width - panel * PANEL).min(PANEL);
        for (k, to) in to.chunks_exact_mut(PANEL).enumerate() {
            let from = &row(k)[panel * PANEL..][..lanes];
            if lanes == PANEL {
                to.copy_from_slice(from);
            } else {
                to[..lanes].copy_from_slice(from);
                to[lanes..].fill(0.0);
            }
        }
    }
}
