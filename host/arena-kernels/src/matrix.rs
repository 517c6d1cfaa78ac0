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
use crate::multiply::{Inputs, Panels, SLAB_COLUMNS};
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
/// Bytes of a weight that is f32.
const F32_BYTES: usize = size_of::<f32>();

/// Most inputs of a product that is [`Sums::Added`]: its sums are never put down in between.
pub const ADDED_COLUMNS_MAX: usize = SLAB_COLUMNS;

/// Where the rows of inputs, or of outputs, lie in a slice: row `m` begins at
/// `first + m * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Where row 0 begins.
    pub first: usize,
    /// From one row to the next.
    pub stride: usize,
}

impl Rows {
    /// Returns rows of `width` elements that follow each other.
    pub fn dense(width: usize) -> Rows {
        Rows { first: 0, stride: width }
    }

    /// Checks that `count` rows of `width` elements lie in a slice and do not overlap.
    pub(crate) fn check(self, count: usize, width: usize, len: usize) {
        assert!(self.stride >= width, "rows of {width} elements every {}", self.stride);
        let end = self.first + count.saturating_sub(1) * self.stride + width;
        assert!(count == 0 || end <= len, "{count} rows of {width}, {self:?}, in {len} elements");
    }
}

/// What becomes of outputs that are there before a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// They are overwritten: sums begin with 0.0.
    Fresh,
    /// Sums begin with them.
    Continued,
    /// Sums begin with 0.0 and are added to them, rounded once more. For at most
    /// [`ADDED_COLUMNS_MAX`] inputs.
    Added,
}

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
        let mut part = Part::empty(format, start, rows, columns)?;
        let row_bytes = format.row_bytes(columns).expect("an empty part was made");
        if row_bytes.checked_mul(rows) != Some(bytes.len()) {
            return Err(KernelsError::Bytes { format, rows, columns, bytes: bytes.len() });
        }
        let panels = part.panels.bytes_mut().chunks_exact_mut(part.panel_bytes);
        for (panel, rows) in panels.zip(bytes.chunks(PANEL_ROWS * row_bytes)) {
            for (lane, row) in rows.chunks_exact(row_bytes).enumerate() {
                pack_row(format, row, lane, panel);
            }
        }
        Ok(part)
    }

    /// Returns a part of zeros.
    fn empty(
        format: Format,
        start: usize,
        rows: usize,
        columns: usize,
    ) -> Result<Part, KernelsError> {
        if format.row_bytes(columns).is_none() {
            return Err(KernelsError::Columns { format, columns });
        }
        let size = KernelsError::Size { rows, columns };
        if rows == 0 || columns == 0 {
            return Err(size);
        }
        let Some(panel_bytes) = panel_bytes(format, columns) else { return Err(size) };
        let count = rows.div_ceil(PANEL_ROWS);
        let Some(total) = panel_bytes.checked_mul(count) else { return Err(size) };
        assert!(panel_bytes.is_multiple_of(LINE), "a panel has whole lines");
        Ok(Part { format, rows: start..start + rows, panel_bytes, panels: Lines::new(total) })
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

    /// Packs weights that are f32, `[rows, columns]` each, one below the other.
    ///
    /// # Errors
    /// As [`Matrix::new`].
    pub fn of_f32(parts: &[&[f32]], columns: usize) -> Result<Matrix, KernelsError> {
        let mut packed = Vec::with_capacity(parts.len());
        let mut start = 0;
        for values in parts {
            let rows = values.len() / columns.max(1);
            let mut part = Part::empty(Format::F32, start, rows, columns)?;
            let bytes = size_of_val(*values);
            if rows * columns != values.len() {
                return Err(KernelsError::Bytes { format: Format::F32, rows, columns, bytes });
            }
            let panels = part.panels.bytes_mut().chunks_exact_mut(part.panel_bytes);
            for (panel, rows) in panels.zip(values.chunks(PANEL_ROWS * columns)) {
                for (lane, row) in rows.chunks_exact(columns).enumerate() {
                    put_lane(panel, lane, row);
                }
            }
            packed.push(part);
            start += rows;
        }
        if start == 0 {
            return Err(KernelsError::Size { rows: start, columns });
        }
        Ok(Matrix { rows: start, columns, parts: packed })
    }

    /// Returns the transpose, its weights as f32.
    ///
    /// # Errors
    /// It is larger than can be addressed.
    pub fn transposed(&self) -> Result<Matrix, KernelsError> {
        let mut part = Part::empty(Format::F32, 0, self.columns, self.rows)?;
        let mut row = vec![0.0; self.columns];
        let panel_bytes = part.panel_bytes;
        for column in 0..self.rows {
            self.row(column, &mut row);
            let panels = part.panels.bytes_mut().chunks_exact_mut(panel_bytes);
            for (panel, weights) in panels.zip(row.chunks(PANEL_ROWS)) {
                let lanes = panel[column * PANEL_ROWS * F32_BYTES..].chunks_exact_mut(F32_BYTES);
                for (lane, weight) in lanes.zip(weights) {
                    lane.copy_from_slice(&weight.to_le_bytes());
                }
            }
        }
        Ok(Matrix { rows: self.columns, columns: self.rows, parts: vec![part] })
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
        let (from, to) = (Rows::dense(self.columns), Rows::dense(self.rows));
        self.multiply_rows(context, m, (x, from), (y, to), Sums::Fresh);
    }

    /// Multiplies `m` rows of inputs that lie anywhere in a slice, as [`Matrix::multiply`] does.
    ///
    /// # Panics
    /// If the rows do not lie in their slices, or are too long for their kind of sums.
    pub fn multiply_rows(
        &self,
        context: &Context,
        m: usize,
        (x, x_rows): (&[f32], Rows),
        (y, y_rows): (&mut [f32], Rows),
        sums: Sums,
    ) {
        x_rows.check(m, self.columns, x.len());
        y_rows.check(m, self.rows, y.len());
        let is_short = self.columns <= ADDED_COLUMNS_MAX;
        assert!(sums != Sums::Added || is_short, "{} inputs to add", self.columns);
        if m == 0 {
            return;
        }
        let division = Division::new(self, m, context);
        let job = Job { x, x_rows, y: SharedMut::new(y), y_rows, sums };
        context.run(division.items(), &|item| {
            let piece = division.piece(self, item);
            let twin = |_| self.multiply_plainly(&piece, &job);
            simd::run(context.isa(), self.panels(&piece, &job), twin);
        });
    }

    fn panels(&self, piece: &Piece, job: &Job) -> Panels {
        let part = &self.parts[piece.part];
        let first = piece.panels.start * PANEL_ROWS;
        let count = piece.panels.len() * part.panel_bytes;
        let panels = &part.panels.bytes()[piece.panels.start * part.panel_bytes..][..count];
        let x = &job.x[job.x_rows.first + piece.inputs.start * job.x_rows.stride..];
        let y = job.y_rows.first + piece.inputs.start * job.y_rows.stride;
        Panels {
            format: part.format,
            panel: panels.as_ptr(),
            panel_bytes: part.panel_bytes,
            outputs: (part.rows.len() - first).min(piece.panels.len() * PANEL_ROWS),
            columns: self.columns,
            inputs: Inputs { x: x.as_ptr(), stride: job.x_rows.stride, rows: piece.inputs.len() },
            y: job.y.at(y + part.rows.start + first),
            y_stride: job.y_rows.stride,
            begins: job.sums != Sums::Continued,
            adds: job.sums == Sums::Added,
        }
    }

    /// The twin of the tiles: the same sums, one panel and one row after the other.
    fn multiply_plainly(&self, piece: &Piece, job: &Job) {
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
                let x = &job.x[job.x_rows.first + row * job.x_rows.stride..][..self.columns];
                let at = job.y_rows.first + row * job.y_rows.stride + part.rows.start + first;
                // SAFETY: pieces are different columns or rows of `y`, which outlives the region.
                let y = unsafe { job.y.elements(at, outputs) };
                let mut sums = [0.0_f32; PANEL_ROWS];
                if job.sums == Sums::Continued {
                    sums[..outputs].copy_from_slice(y);
                }
                for (x, weights) in x.iter().zip(slab.chunks_exact(PANEL_ROWS)) {
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum = weight.mul_add(*x, *sum);
                    }
                }
                for (y, sum) in y.iter_mut().zip(sums) {
                    *y = if job.sums == Sums::Added { *y + sum } else { sum };
                }
            }
        }
    }
}

/// Inputs and outputs of a product.
struct Job<'a> {
    x: &'a [f32],
    x_rows: Rows,
    y: SharedMut,
    y_rows: Rows,
    sums: Sums,
}

/// Writes one row of f32 to lane `lane` of a panel.
fn put_lane(panel: &mut [u8], lane: usize, row: &[f32]) {
    for (column, weight) in panel.chunks_exact_mut(PANEL_ROWS * F32_BYTES).zip(row) {
        column[lane * F32_BYTES..][..F32_BYTES].copy_from_slice(&weight.to_le_bytes());
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
