//! Weights, packed to be multiplied with.
//!
//! A product is the same to the bit for any number of rows of inputs, threads, and instruction
//! set: see [`Matrix::multiply`].
//!
//! Not here: where the weights of a panel lie (`pack`), the loops over them (`multiply`).

// Threads write different columns of the same rows of outputs, through a pointer.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::context::Context;
use crate::error::KernelsError;
use crate::format::Format;
use crate::lines::{LINE, Lines};
use crate::multiply::{Inputs, Panels};
use crate::pack::{BLOCK, PANEL_ROWS, pack_row, panel_bytes, unpack};
use crate::shared::SharedMut;
use crate::simd;

/// Rows of inputs that one thread multiplies a panel with before it takes the next panel.
const CHUNK_ROWS_MAX: usize = 256;
/// Rows of inputs below which a chunk is not worth dequantising a panel for.
const CHUNK_ROWS_MIN: usize = 64;
/// Pieces of work a thread that there should be, so that none waits long for the last.
const ITEMS_PER_THREAD: usize = 8;
/// Panels that one thread takes at once where there are many.
const ITEM_PANELS_MAX: usize = 8;

/// A matrix of weights `[rows, columns]`: `rows` outputs of `columns` inputs each.
pub struct Matrix {
    rows: usize,
    columns: usize,
    parts: Vec<Part>,
}

/// Rows of one format.
struct Part {
    format: Format,
    /// Its rows, of the matrix'.
    rows: Range<usize>,
    panel_bytes: usize,
    panels: Lines,
}

impl Part {
    fn new(
        format: Format,
        start: usize,
        rows: usize,
        columns: usize,
        bytes: &[u8],
    ) -> Result<Part, KernelsError> {
        let Some(row_bytes) = format.row_bytes(columns) else {
            return Err(KernelsError::Columns { format, columns });
        };
        let size = KernelsError::Size { rows, columns };
        if rows == 0 || columns == 0 {
            return Err(size);
        }
        if row_bytes.checked_mul(rows) != Some(bytes.len()) {
            return Err(KernelsError::Bytes { format, rows, columns, bytes: bytes.len() });
        }
        let Some(panel_bytes) = panel_bytes(format, columns) else { return Err(size) };
        let count = rows.div_ceil(PANEL_ROWS);
        let Some(total) = panel_bytes.checked_mul(count) else { return Err(size) };
        assert!(panel_bytes.is_multiple_of(LINE), "a panel has whole lines");
        let mut part =
            Part { format, rows: start..start + rows, panel_bytes, panels: Lines::new(total) };
        let panels = part.panels.bytes_mut().chunks_exact_mut(panel_bytes);
        for (panel, rows) in panels.zip(bytes.chunks(PANEL_ROWS * row_bytes)) {
            for (lane, row) in rows.chunks_exact(row_bytes).enumerate() {
                pack_row(format, row, lane, panel);
            }
        }
        Ok(part)
    }

    /// Returns the bytes of panel `index`.
    fn panel(&self, index: usize) -> &[u8] {
        &self.panels.bytes()[index * self.panel_bytes..][..self.panel_bytes]
    }

    fn panel_count(&self) -> usize {
        self.rows.len().div_ceil(PANEL_ROWS)
    }
}

impl Matrix {
    /// Packs parts that lie one below the other: each is a format, its number of rows, and the
    /// rows' bytes as files hold them.
    ///
    /// # Errors
    /// Rows that are no whole number of blocks, bytes that do not fit the shape, an empty matrix.
    pub fn new(parts: &[(Format, usize, &[u8])], columns: usize) -> Result<Matrix, KernelsError> {
        let mut packed = Vec::with_capacity(parts.len());
        let mut start = 0;
        for &(format, rows, bytes) in parts {
            packed.push(Part::new(format, start, rows, columns, bytes)?);
            start += rows;
        }
        if start == 0 {
            return Err(KernelsError::Size { rows: start, columns });
        }
        Ok(Matrix { rows: start, columns, parts: packed })
    }

    /// Returns the number of outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of inputs.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns how many bytes the packed weights take.
    pub fn byte_count(&self) -> usize {
        self.parts.iter().map(|part| part.panels.bytes().len()).sum()
    }

    /// Writes row `row`, as f32, to `out` of `columns` weights.
    ///
    /// # Panics
    /// If there is no such row, or `out` has another length.
    pub fn row(&self, row: usize, out: &mut [f32]) {
        assert!(out.len() == self.columns, "{} weights of {}", out.len(), self.columns);
        let part = self.parts.iter().find(|part| part.rows.contains(&row));
        let part = part.unwrap_or_else(|| panic!("row {row} of a matrix of {} rows", self.rows));
        let row = row - part.rows.start;
        let panel = part.panel(row / PANEL_ROWS);
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            unpack(part.format, panel, block, row % PANEL_ROWS, out);
        }
    }

    /// Multiplies: `y[m][n]` is the chain of `w[n][k] * x[m][k]` over ascending `k`, from 0.0, by
    /// fused multiply-adds. Shapes: `x` is `[m, columns]`, `y` is `[m, rows]`.
    ///
    /// # Panics
    /// If the lengths of `x` and `y` are not the same number of rows.
    pub fn multiply(&self, context: &Context, x: &[f32], y: &mut [f32]) {
        let m = x.len() / self.columns;
        assert!(x.len() == m * self.columns, "{} inputs of {}", x.len(), self.columns);
        assert!(y.len() == m * self.rows, "{} outputs, {m} rows of {}", y.len(), self.rows);
        if m == 0 {
            return;
        }
        let division = Division::new(self, m, context);
        let y = SharedMut::new(y);
        context.run(division.items(), &|item| {
            let piece = division.piece(self, item);
            let twin = |_| self.multiply_plainly(&piece, x, y);
            simd::run(context.isa(), self.panels(&piece, x, y), twin);
        });
    }

    fn panels(&self, piece: &Piece, x: &[f32], y: SharedMut) -> Panels {
        let part = &self.parts[piece.part];
        let first = piece.panels.start * PANEL_ROWS;
        let count = piece.panels.len() * part.panel_bytes;
        let panels = &part.panels.bytes()[piece.panels.start * part.panel_bytes..][..count];
        let x = &x[piece.inputs.start * self.columns..piece.inputs.end * self.columns];
        Panels {
            format: part.format,
            panel: panels.as_ptr(),
            panel_bytes: part.panel_bytes,
            outputs: (part.rows.len() - first).min(piece.panels.len() * PANEL_ROWS),
            columns: self.columns,
            inputs: Inputs { x: x.as_ptr(), stride: self.columns, rows: piece.inputs.len() },
            y: y.at(piece.inputs.start * self.rows + part.rows.start + first),
            y_stride: self.rows,
        }
    }

    /// The twin of the tiles: the same sums, one panel and one row after the other.
    fn multiply_plainly(&self, piece: &Piece, x: &[f32], y: SharedMut) {
        let part = &self.parts[piece.part];
        let mut slab = vec![0.0; self.columns * PANEL_ROWS];
        let mut weights = [0.0; BLOCK];
        for index in piece.panels.clone() {
            let first = index * PANEL_ROWS;
            let outputs = (part.rows.len() - first).min(PANEL_ROWS);
            for (block, slab) in slab.chunks_mut(BLOCK * PANEL_ROWS).enumerate() {
                for lane in 0..outputs {
                    let weights = &mut weights[..slab.len() / PANEL_ROWS];
                    unpack(part.format, part.panel(index), block, lane, weights);
                    for (slab, weight) in slab.chunks_exact_mut(PANEL_ROWS).zip(weights) {
                        slab[lane] = *weight;
                    }
                }
            }
            for row in piece.inputs.clone() {
                let x = &x[row * self.columns..][..self.columns];
                let mut sums = [0.0_f32; PANEL_ROWS];
                for (x, weights) in x.iter().zip(slab.chunks_exact(PANEL_ROWS)) {
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum = weight.mul_add(*x, *sum);
                    }
                }
                let at = row * self.rows + part.rows.start + first;
                // SAFETY: pieces are different columns or rows of `y`, which outlives the region.
                unsafe { y.elements(at, outputs) }.copy_from_slice(&sums[..outputs]);
            }
        }
    }
}

/// How a product is divided among threads: by panels, and by rows of inputs where these are many.
struct Division {
    inputs: usize,
    chunk_rows: usize,
    item_panels: usize,
    /// Per part, how many items its panels make.
    part_items: Vec<usize>,
}

/// What one item is.
struct Piece {
    part: usize,
    panels: Range<usize>,
    inputs: Range<usize>,
}

impl Division {
    fn new(matrix: &Matrix, inputs: usize, context: &Context) -> Division {
        let threads = context.threads().get();
        let wanted = if threads == 1 { 1 } else { threads * ITEMS_PER_THREAD };
        let panels: usize = matrix.parts.iter().map(Part::panel_count).sum();
        let item_panels = (panels / wanted).clamp(1, ITEM_PANELS_MAX);
        let item_panels = item_panels.next_multiple_of(context.isa().tile_panels());
        let chunks = wanted.div_ceil(panels).max(inputs.div_ceil(CHUNK_ROWS_MAX));
        let chunk_rows = inputs.div_ceil(chunks).max(CHUNK_ROWS_MIN);
        let items = |part: &Part| part.panel_count().div_ceil(item_panels);
        let part_items = matrix.parts.iter().map(items).collect();
        Division { inputs, chunk_rows, item_panels, part_items }
    }

    fn items(&self) -> usize {
        self.part_items.iter().sum::<usize>() * self.inputs.div_ceil(self.chunk_rows)
    }

    fn piece(&self, matrix: &Matrix, item: usize) -> Piece {
        let panel_items: usize = self.part_items.iter().sum();
        let (chunk, mut item) = (item / panel_items, item % panel_items);
        let mut part = 0;
        while item >= self.part_items[part] {
            item -= self.part_items[part];
            part += 1;
        }
        let first = item * self.item_panels;
        let last = (first + self.item_panels).min(matrix.parts[part].panel_count());
        let start = chunk * self.chunk_rows;
        let end = (start + self.chunk_rows).min(self.inputs);
        Piece { part, panels: first..last, inputs: start..end }
    }
}

#[cfg(test)]
mod tests;
