//! Tiles of a product: a few rows of inputs by a few vectors of outputs, held in registers.
//!
//! Few rows read quantised weights once and dequantise them in registers. Many rows share a slab
//! of dequantised weights, which stays in the cache. Both add the same products in the same order.
//!
//! Twin: `Matrix::multiply_plainly`.
//!
//! Not here: how work is divided among threads (`matrix`).

// Tiles read and write through pointers: threads write different columns of the same rows.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use crate::format::Format;
use crate::pack::{BLOCK, PANEL_ROWS};
use crate::simd::weights::{Bf16, F16, F32, Lanes, Q4_0, Q4_1, Q4K, Q6K, Q8_0, Weights};
use crate::simd::{Kernel, Simd};

/// Columns of a slab, which takes 64 KiB: it stays in a second-level cache, and what a tile does
/// once is little beside what it does for so many columns.
pub(crate) const SLAB_COLUMNS: usize = 512;
const _: () = assert!(SLAB_COLUMNS.is_multiple_of(BLOCK), "a slab has whole blocks");

/// Rows of inputs up to which weights are dequantised in registers.
const FEW_ROWS_MAX: usize = 7;
/// Most outputs of a tile: four vectors of sixteen lanes.
const TILE_LANES_MAX: usize = 64;

/// Dequantised weights of a panel: `[SLAB_COLUMNS, PANEL_ROWS]`.
#[repr(C, align(64))]
struct Slab(MaybeUninit<[f32; SLAB_COLUMNS * PANEL_ROWS]>);

/// Panels of one format, and rows of inputs to multiply them with.
#[derive(Clone, Copy)]
pub(crate) struct Panels {
    pub format: Format,
    /// The first panel.
    pub panel: *const u8,
    pub panel_bytes: usize,
    /// Outputs: rows of the panels that are real, at most 32 a panel.
    pub outputs: usize,
    pub columns: usize,
    pub inputs: Inputs,
    /// Row 0 of the outputs, at the first output of the panels.
    pub y: *mut f32,
    pub y_stride: usize,
    /// Whether sums begin with 0.0, or with the outputs that are there.
    pub begins: bool,
    /// Whether sums are added to the outputs that are there.
    pub adds: bool,
}

/// Rows of inputs.
#[derive(Clone, Copy)]
pub(crate) struct Inputs {
    pub x: *const f32,
    pub stride: usize,
    pub rows: usize,
}

impl Panels {
    /// Returns the same panels with some of the rows of inputs.
    fn of_rows(&self, rows: Range<usize>) -> Panels {
        let x = self.inputs.x.wrapping_add(rows.start * self.inputs.stride);
        let inputs = Inputs { x, rows: rows.len(), ..self.inputs };
        Panels { inputs, y: self.y.wrapping_add(rows.start * self.y_stride), ..*self }
    }
}

impl Kernel for Panels {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        match self.format {
            Format::F32 => multiply_panels::<S, F32>(&self),
            Format::F16 => multiply_panels::<S, F16>(&self),
            Format::Bf16 => multiply_panels::<S, Bf16>(&self),
            Format::Q4_0 => multiply_panels::<S, Q4_0>(&self),
            Format::Q4_1 => multiply_panels::<S, Q4_1>(&self),
            Format::Q8_0 => multiply_panels::<S, Q8_0>(&self),
            Format::Q4K => multiply_panels::<S, Q4K>(&self),
            Format::Q6K => multiply_panels::<S, Q6K>(&self),
        }
    }
}

/// Columns that tiles go over: from a block on, and whether the sums begin with them.
#[derive(Clone, Copy)]
struct Span {
    first_block: usize,
    columns: usize,
    begins: bool,
}

/// Multiplies the panels by all rows.
unsafe fn multiply_panels<S: Simd, W: Weights>(panels: &Panels) {
    let few = if W::ARE_F32 { S::FEW_TILE_ROWS_MAX } else { FEW_ROWS_MAX };
    if panels.inputs.rows <= few {
        let span = Span { first_block: 0, columns: panels.columns, begins: panels.begins };
        for rows in even_runs(panels.inputs.rows, S::FEW_TILE_ROWS_MAX) {
            tiles_of_panels::<S, W>(&panels.of_rows(rows), span);
        }
        return;
    }
    for index in 0..panels.outputs.div_ceil(PANEL_ROWS) {
        let panel = Panels {
            panel: panels.panel.wrapping_add(index * panels.panel_bytes),
            outputs: (panels.outputs - index * PANEL_ROWS).min(PANEL_ROWS),
            y: panels.y.wrapping_add(index * PANEL_ROWS),
            ..*panels
        };
        multiply_by_slabs::<S, W>(&panel);
    }
}

/// Divides `0..count` into as few runs of at most `most` as it takes, of about the same length.
pub(crate) fn even_runs(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let runs = count.div_ceil(most);
    let mut start = 0;
    (0..runs).map(move |run| {
        let end = start + (count - start).div_ceil(runs - run);
        std::mem::replace(&mut start, end)..end
    })
}

/// Multiplies one panel by many rows, slab by slab.
unsafe fn multiply_by_slabs<S: Simd, W: Weights>(panel: &Panels) {
    let mut slab = Slab(MaybeUninit::uninit());
    let slab = slab.0.as_mut_ptr().cast::<f32>();
    let mut start = 0;
    while start < panel.columns {
        let columns = (panel.columns - start).min(SLAB_COLUMNS);
        let begins = panel.begins && start == 0;
        let span = Span { first_block: start / BLOCK, columns, begins };
        let weights = if W::ARE_F32 {
            panel.panel.wrapping_add(size_of::<f32>() * start * PANEL_ROWS)
        } else {
            S::call(Fill::<W> { panel: panel.panel, span, slab, weights: PhantomData });
            slab.cast_const().cast()
        };
        let span = Span { first_block: 0, ..span };
        let mut part = Panels { panel: weights, ..*panel };
        part.inputs.x = part.inputs.x.wrapping_add(start);
        for rows in even_runs(panel.inputs.rows, S::TILE_ROWS_MAX) {
            tiles_of_slab::<S>(&part.of_rows(rows), span);
        }
        start += columns;
    }
}

/// Multiplies panels by few rows, reading the weights as they are stored.
unsafe fn tiles_of_panels<S: Simd, W: Weights>(panels: &Panels, span: Span) {
    let rows = panels.inputs.rows;
    let is_wide = rows + usize::from(W::HAVE_MINIMA) <= S::WIDE_TILE_ROWS_MAX;
    let width = if is_wide { 4 * S::LANES } else { 2 * S::LANES };
    for at in (0..panels.outputs).step_by(width) {
        let mut tile = tile_at(panels, span, at);
        if is_wide {
            // Where a tile spans panels and one is left, it reads that one again.
            if tile.outputs <= PANEL_ROWS {
                tile.panel_bytes = 0;
            }
            S::wide_tile::<W>(rows, tile);
        } else {
            S::narrow_tile::<W>(rows, tile);
        }
    }
}

/// Multiplies one panel of f32 by the rows of one of many tiles.
unsafe fn tiles_of_slab<S: Simd>(panel: &Panels, span: Span) {
    for at in (0..panel.outputs).step_by(2 * S::LANES) {
        S::slab_tile(panel.inputs.rows, tile_at(panel, span, at));
    }
}

/// Returns the tile whose first output is `at`.
#[inline(always)]
fn tile_at(panels: &Panels, span: Span, at: usize) -> TileOf {
    TileOf {
        panel: panels.panel.wrapping_add(at / PANEL_ROWS * panels.panel_bytes),
        panel_bytes: panels.panel_bytes,
        lane: at % PANEL_ROWS,
        outputs: panels.outputs - at,
        span,
        inputs: panels.inputs,
        y: panels.y.wrapping_add(at),
        y_stride: panels.y_stride,
        adds: panels.adds,
    }
}

/// What a tile multiplies.
#[derive(Clone, Copy)]
pub(crate) struct TileOf {
    panel: *const u8,
    panel_bytes: usize,
    lane: usize,
    outputs: usize,
    span: Span,
    inputs: Inputs,
    y: *mut f32,
    y_stride: usize,
    adds: bool,
}

/// A tile of `R` rows and `V` vectors.
pub(crate) struct Tile<W, const R: usize, const V: usize> {
    of: TileOf,
    weights: PhantomData<W>,
}

impl<W, const R: usize, const V: usize> Tile<W, R, V> {
    /// Makes a tile.
    pub(crate) fn new(of: TileOf) -> Self {
        Tile { of, weights: PhantomData }
    }
}

impl<W: Weights, const R: usize, const V: usize> Kernel for Tile<W, R, V> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let TileOf { panel, panel_bytes, lane, span, inputs, .. } = self.of;
        let lanes = Lanes::<V> { panel, panel_bytes, lane };
        let mut sums = [[S::splat(0.0); V]; R];
        if !span.begins {
            self.load::<S>(&mut sums);
        }
        let mut x = inputs.x;
        let end = span.first_block + span.columns / BLOCK;
        for block in span.first_block..end {
            let mut cursor = W::open::<S, V>(lanes, block);
            for step in 0..7 {
                for column in 0..4 {
                    let at = x.wrapping_add(4 * step + column);
                    let w = W::weights::<S, V, false>(&cursor, step, column);
                    add_products::<S, R, V>(&mut sums, w, at, inputs.stride);
                }
                W::advance(&mut cursor, step);
            }
            for column in 0..4 {
                let w = W::weights::<S, V, true>(&cursor, 7, column);
                add_products::<S, R, V>(&mut sums, w, x.wrapping_add(28 + column), inputs.stride);
            }
            x = x.wrapping_add(BLOCK);
        }
        // Only formats whose blocks are single weights have columns left.
        if !span.columns.is_multiple_of(BLOCK) {
            let cursor = W::open::<S, V>(lanes, end);
            for column in 0..span.columns % BLOCK {
                let w = W::weights::<S, V, false>(&cursor, 0, column);
                add_products::<S, R, V>(&mut sums, w, x.wrapping_add(column), inputs.stride);
            }
        }
        if self.of.adds {
            let mut before = [[S::splat(0.0); V]; R];
            self.load::<S>(&mut before);
            for (sums, before) in sums.iter_mut().zip(before) {
                for (sum, before) in sums.iter_mut().zip(before) {
                    *sum = S::add(before, *sum);
                }
            }
        }
        self.store::<S>(&sums);
    }
}

/// Adds the products of one column.
#[inline(always)]
unsafe fn add_products<S: Simd, const R: usize, const V: usize>(
    sums: &mut [[S::Floats; V]; R],
    weights: [S::Floats; V],
    x: *const f32,
    stride: usize,
) {
    for (r, sums) in sums.iter_mut().enumerate() {
        let x = S::splat(*x.wrapping_add(r * stride));
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = S::fma(weight, x, *sum);
        }
    }
}

impl<W: Weights, const R: usize, const V: usize> Tile<W, R, V> {
    /// Returns where the outputs of row `r` are.
    #[inline(always)]
    fn outputs_of(&self, r: usize) -> *mut f32 {
        self.of.y.wrapping_add(r * self.of.y_stride)
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(&self, sums: &mut [[S::Floats; V]; R]) {
        let is_whole = self.of.outputs >= V * S::LANES;
        for (r, sums) in sums.iter_mut().enumerate() {
            let mut from = self.outputs_of(r).cast_const();
            let mut lanes = [0.0; TILE_LANES_MAX];
            if !is_whole {
                std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), self.of.outputs);
                from = lanes.as_ptr();
            }
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = S::load(from.wrapping_add(v * S::LANES));
            }
        }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(&self, sums: &[[S::Floats; V]; R]) {
        let is_whole = self.of.outputs >= V * S::LANES;
        for (r, sums) in sums.iter().enumerate() {
            let mut lanes = [0.0; TILE_LANES_MAX];
            let to = if is_whole { self.outputs_of(r) } else { lanes.as_mut_ptr() };
            for (v, sum) in sums.iter().enumerate() {
                S::store(to.wrapping_add(v * S::LANES), *sum);
            }
            if !is_whole {
                let to = self.outputs_of(r);
                std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, self.of.outputs);
            }
        }
    }
}

/// Dequantises a span of a panel into a slab.
struct Fill<W> {
    panel: *const u8,
    span: Span,
    slab: *mut f32,
    weights: PhantomData<W>,
}

impl<W: Weights> Kernel for Fill<W> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut lane = 0;
        while lane < PANEL_ROWS {
            self.fill_lanes::<S>(lane);
            lane += 2 * S::LANES;
        }
    }
}

impl<W: Weights> Fill<W> {
    #[inline(always)]
    unsafe fn fill_lanes<S: Simd>(&self, lane: usize) {
        let lanes = Lanes::<2> { panel: self.panel, panel_bytes: 0, lane };
        let mut to = self.slab.wrapping_add(lane);
        let mut put = |weights: [S::Floats; 2]| {
            S::store(to, weights[0]);
            S::store(to.wrapping_add(S::LANES), weights[1]);
            to = to.wrapping_add(PANEL_ROWS);
        };
        let end = self.span.first_block + self.span.columns / BLOCK;
        for block in self.span.first_block..end {
            let mut cursor = W::open::<S, 2>(lanes, block);
            for step in 0..7 {
                for column in 0..4 {
                    put(W::weights::<S, 2, false>(&cursor, step, column));
                }
                W::advance(&mut cursor, step);
            }
            for column in 0..4 {
                put(W::weights::<S, 2, true>(&cursor, 7, column));
            }
        }
        if !self.span.columns.is_multiple_of(BLOCK) {
            let cursor = W::open::<S, 2>(lanes, end);
            for column in 0..self.span.columns % BLOCK {
                put(W::weights::<S, 2, false>(&cursor, 0, column));
            }
        }
    }
}
