//! Weights, packed to be multiplied with.

use crate::context::Context;
use crate::error::KernelsError;
use crate::format::{Format, dequantise};

/// A matrix of weights `[rows, columns]`: `rows` outputs of `columns` inputs each.
pub struct Matrix {
    rows: usize,
    columns: usize,
    parts: Vec<(Format, usize, Vec<u8>)>,
}

impl Matrix {
    /// Packs parts that lie one below the other: each is a format, its number of rows, and the
    /// rows' bytes as files hold them.
    ///
    /// # Errors
    /// Rows that are no whole number of blocks, bytes that do not fit the shape, an empty matrix.
    pub fn new(parts: &[(Format, usize, &[u8])], columns: usize) -> Result<Matrix, KernelsError> {
        let mut rows = 0_usize;
        for &(format, part_rows, bytes) in parts {
            let Some(row_bytes) = format.row_bytes(columns) else {
                return Err(KernelsError::Columns { format, columns });
            };
            if part_rows == 0 || columns == 0 {
                return Err(KernelsError::Size { rows: part_rows, columns });
            }
            if row_bytes.checked_mul(part_rows) != Some(bytes.len()) {
                let bytes = bytes.len();
                return Err(KernelsError::Bytes { format, rows: part_rows, columns, bytes });
            }
            rows += part_rows;
        }
        if rows == 0 {
            return Err(KernelsError::Size { rows, columns });
        }
        let parts = parts.iter().map(|&(f, rows, bytes)| (f, rows, bytes.to_vec())).collect();
        Ok(Matrix { rows, columns, parts })
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
        self.parts.iter().map(|(_, _, bytes)| bytes.len()).sum()
    }

    /// Writes row `row`, as f32, to `out` of `columns` weights.
    ///
    /// # Panics
    /// If there is no such row, or `out` has another length.
    pub fn row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows, "row {row} of a matrix of {} rows", self.rows);
        assert!(out.len() == self.columns, "{} weights of {}", out.len(), self.columns);
        let mut row = row;
        for (format, rows, bytes) in &self.parts {
            if row < *rows {
                let row_bytes = bytes.len() / rows;
                dequantise(*format, &bytes[row * row_bytes..][..row_bytes], out);
                return;
            }
            row -= rows;
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
        let _ = context;
        let mut weights = vec![0.0; self.columns];
        for n in 0..self.rows {
            self.row(n, &mut weights);
            for (x, y) in x.chunks_exact(self.columns).zip(y.chunks_exact_mut(self.rows)) {
                y[n] = weights.iter().zip(x).fold(0.0, |sum, (w, x)| w.mul_add(*x, sum));
            }
        }
    }
}
