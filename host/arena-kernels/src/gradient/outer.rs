//! Gradients of weights: sums of outer products.

// Threads write different columns of the same output.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use crate::context::Context;
use crate::product::{ACROSS_DEPTH_MAX, Left, PANEL, Product, pack};
use crate::shared::SharedMut;

/// Most panels of inputs of a piece: with the rows of a block, they stay in a second-level cache.
const PIECE_PANELS_MAX: usize = 4;
/// Rows of a block, which are packed together.
const BLOCK_ROWS: usize = ACROSS_DEPTH_MAX;
/// Pieces of work a thread that there should be, so that none waits long for the last.
const ITEMS_PER_THREAD: usize = 8;
/// Outputs of a piece, at least, if there are more.
const PIECE_OUTPUTS_MIN: usize = 48;

thread_local! {
    /// The packed right side, kept from one product to the next.
    static PACKED: RefCell<Vec<f32>> = const { RefCell::new(vec![]) };
}

/// Some columns of a matrix of rows.
#[derive(Debug, Clone)]
pub struct Columns<'a> {
    /// The matrix, row by row.
    pub values: &'a [f32],
    /// From one row to the next.
    pub stride: usize,
    /// Which columns.
    pub columns: Range<usize>,
}

impl<'a> Columns<'a> {
    /// Returns all columns of a matrix with rows of `width`.
    pub fn all(values: &'a [f32], width: usize) -> Columns<'a> {
        Columns { values, stride: width, columns: 0..width }
    }

    fn check(&self, rows: usize) {
        assert!(self.columns.start <= self.columns.end, "columns {:?}", self.columns);
        assert!(self.columns.end <= self.stride, "columns {:?} of {}", self.columns, self.stride);
        let end = rows.saturating_sub(1) * self.stride + self.columns.end;
        assert!(rows == 0 || end <= self.values.len(), "{rows} rows of {}", self.stride);
    }
}

/// Goes on with the chains `out[o][i] += left[m][o] * right[m][i]` over ascending `m`, by fused
/// multiply-adds: the gradient of a linear layer's weights from that of its outputs, `left`, and
/// its inputs, `right`. Shapes: `left` is `[rows, outputs]`, `right` is `[rows, inputs]`, the parts
/// of `outs` one below the other are `[outputs, inputs]`.
///
/// # Panics
/// If a length does not fit.
pub fn add_outer_products(
    context: &Context,
    rows: usize,
    left: &Columns,
    right: &Columns,
    outs: &mut [&mut [f32]],
) {
    left.check(rows);
    right.check(rows);
    let width = right.columns.len();
    let outputs: usize = outs.iter().map(|out| out.len() / width.max(1)).sum();
    let whole = outs.iter().all(|out| width > 0 && out.len().is_multiple_of(width));
    assert!(whole && outputs == left.columns.len(), "{outputs} outputs, {:?}", left.columns);
    let pieces = pieces(context, width, outs);
    let outs: Vec<SharedMut> = outs.iter_mut().map(|out| SharedMut::new(out)).collect();
    PACKED.with_borrow_mut(|packed| {
        let padded = width.next_multiple_of(PANEL);
        if packed.len() < rows * padded {
            packed.resize(rows * padded, 0.0);
        }
        pack_right(context, rows, right, &mut packed[..rows * padded]);
        context.run(pieces.len(), &|index| {
            let piece = &pieces[index];
            for start in (0..rows).step_by(BLOCK_ROWS) {
                let depth = (rows - start).min(BLOCK_ROWS);
                let first = start * left.stride + left.columns.start + piece.first_left;
                let from = left.values[first..].as_ptr();
                let product = Product {
                    left: Left::Columns { start: from, stride: left.stride },
                    panels: packed[start * padded + piece.first_input * depth..].as_ptr(),
                    panel_stride: depth * PANEL,
                    out: outs[piece.out].at(piece.outputs.start * width + piece.first_input),
                    out_stride: width,
                    rows: piece.outputs.len(),
                    depth,
                    lanes: piece.inputs,
                    begins: false,
                };
                // SAFETY: lengths were checked, and pieces are different outputs.
                unsafe { product.run_by(context.isa()) };
            }
        });
    });
}

/// Packs the right side block by block.
fn pack_right(context: &Context, rows: usize, right: &Columns, packed: &mut [f32]) {
    let width = right.columns.len();
    let padded = width.next_multiple_of(PANEL);
    let packed = SharedMut::new(packed);
    context.run(rows.div_ceil(BLOCK_ROWS), &|block| {
        let start = block * BLOCK_ROWS;
        let depth = (rows - start).min(BLOCK_ROWS);
        // SAFETY: blocks do not overlap, and `packed` outlives the region.
        let packed = unsafe { packed.elements(start * padded, depth * padded) };
        let first = start * right.stride + right.columns.start;
        let row = |k: usize| &right.values[first + k * right.stride..][..width];
        pack(depth, width, row, packed);
    });
}

/// Some outputs by some inputs.
struct Piece {
    out: usize,
    /// Rows of that output.
    outputs: Range<usize>,
    /// The first one's column of the left side, among its columns.
    first_left: usize,
    first_input: usize,
    inputs: usize,
}

/// Divides the outputs among threads.
fn pieces(context: &Context, width: usize, outs: &[&mut [f32]]) -> Vec<Piece> {
    let threads = context.threads().get();
    let wanted = if threads == 1 { 1 } else { threads * ITEMS_PER_THREAD };
    let total: usize = outs.iter().map(|out| out.len() / width).sum();
    let chunks_max = total.div_ceil(PIECE_OUTPUTS_MIN);
    let panels = width.div_ceil(PANEL);
    let piece_panels = (panels * chunks_max / wanted).clamp(1, PIECE_PANELS_MAX);
    let chunks = wanted.div_ceil(panels.div_ceil(piece_panels));
    let chunk = total.div_ceil(chunks).max(PIECE_OUTPUTS_MIN);
    let mut pieces = Vec::new();
    for first_input in (0..width).step_by(piece_panels * PANEL) {
        let inputs = (width - first_input).min(piece_panels * PANEL);
        let mut before = 0;
        for (out, values) in outs.iter().enumerate() {
            let count = values.len() / width;
            for start in (0..count).step_by(chunk) {
                let outputs = start..(start + chunk).min(count);
                let first_left = before + start;
                pieces.push(Piece { out, outputs, first_left, first_input, inputs });
            }
            before += count;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::isa::Isa;

    fn numbers(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + salt * 31) % 2_003) as f32 / 1_000.0 - 1.0).collect()
    }

    #[test]
    fn sums_are_one_chain_over_rows_whatever_computes_them() {
        for (rows, outputs, inputs) in [(1, 1, 1), (7, 3, 33), (600, 65, 40), (257, 130, 200)] {
            let (left, right) = (numbers(rows * (outputs + 2), 1), numbers(rows * inputs, 2));
            let mut expected = numbers(outputs * inputs, 3);
            for (at, sum) in expected.iter_mut().enumerate() {
                let (o, i) = (at / inputs, at % inputs);
                for m in 0..rows {
                    *sum = left[m * (outputs + 2) + 1 + o].mul_add(right[m * inputs + i], *sum);
                }
            }
            for isa in Isa::available() {
                for threads in 1..=3 {
                    let threads = NonZeroUsize::new(threads).expect("not zero");
                    let context = Context::new(threads, isa).expect("available");
                    let mut out = numbers(outputs * inputs, 3);
                    let (first, second) = out.split_at_mut(outputs / 3 * inputs);
                    let columns = 1..outputs + 1;
                    let left = Columns { values: &left, stride: outputs + 2, columns };
                    let right = Columns::all(&right, inputs);
                    // In two batches, which must not matter either.
                    let cut = rows / 3;
                    let later = |of: &Columns<'_>| of.values.len().min(cut * of.stride);
                    let rest = (
                        Columns { values: &left.values[later(&left)..], ..left.clone() },
                        Columns { values: &right.values[later(&right)..], ..right.clone() },
                    );
                    let mut outs = [first, second];
                    add_outer_products(&context, cut, &left, &right, &mut outs);
                    add_outer_products(&context, rows - cut, &rest.0, &rest.1, &mut outs);
                    let same = out.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{} {threads} {rows} {outputs} {inputs}", isa.name());
                }
            }
        }
    }
}
