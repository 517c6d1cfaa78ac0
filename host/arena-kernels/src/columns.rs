//! Columns of a matrix, copied.

// Threads write different rows of the same matrix.
#![allow(unsafe_code)]

use crate::context::{Context, row_parts};
use crate::shared::SharedMut;

/// Copies columns `first..first + to_width` of a matrix with rows of `from_width`.
///
/// # Panics
/// If the columns are not there, or the matrices have another number of rows.
pub fn take_columns(
    context: &Context,
    (from, from_width): (&[f32], usize),
    first: usize,
    (to, to_width): (&mut [f32], usize),
) {
    let rows = check(from.len(), from_width, first, to.len(), to_width);
    let parts = row_parts(rows, to_width);
    let to = SharedMut::new(to);
    context.run(parts.len(), &|part| {
        for row in parts.rows(part) {
            // SAFETY: every row is of one part, and `to` outlives the region.
            let to = unsafe { to.elements(row * to_width, to_width) };
            to.copy_from_slice(&from[row * from_width + first..][..to_width]);
        }
    });
}

/// Writes a matrix with rows of `from_width` to columns `first..first + from_width` of another.
///
/// # Panics
/// As [`take_columns`].
pub fn put_columns(
    context: &Context,
    (from, from_width): (&[f32], usize),
    first: usize,
    (to, to_width): (&mut [f32], usize),
) {
    let rows = check(to.len(), to_width, first, from.len(), from_width);
    let parts = row_parts(rows, from_width);
    let to = SharedMut::new(to);
    context.run(parts.len(), &|part| {
        for row in parts.rows(part) {
            // SAFETY: every row is of one part, and `to` outlives the region.
            let to = unsafe { to.elements(row * to_width + first, from_width) };
            to.copy_from_slice(&from[row * from_width..][..from_width]);
        }
    });
}

/// Checks that columns of the wide matrix fit the narrow one, and returns the number of rows.
fn check(wide: usize, wide_width: usize, first: usize, narrow: usize, width: usize) -> usize {
    assert!(width > 0 && first + width <= wide_width, "{first} + {width} of {wide_width} columns");
    let rows = narrow / width;
    assert!(narrow == rows * width && wide == rows * wide_width, "{wide} and {narrow} elements");
    rows
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::isa::Isa;

    #[test]
    fn columns_are_taken_and_put_back() {
        let threads = NonZeroUsize::new(2).expect("two");
        let context = Context::new(threads, Isa::best()).expect("available");
        let all: Vec<f32> = (0..21).map(|at| at as f32).collect();
        let mut some = vec![0.0; 6];
        take_columns(&context, (&all, 7), 2, (&mut some, 2));
        assert_eq!(some, [2.0, 3.0, 9.0, 10.0, 16.0, 17.0]);
        let mut back = vec![-1.0; 9];
        put_columns(&context, (&some, 2), 1, (&mut back, 3));
        assert_eq!(back, [-1.0, 2.0, 3.0, -1.0, 9.0, 10.0, -1.0, 16.0, 17.0]);
    }

    #[test]
    #[should_panic(expected = "2 + 2 of 3 columns")]
    fn columns_that_are_not_there_panic() {
        let context = Context::new(NonZeroUsize::MIN, Isa::best()).expect("available");
        take_columns(&context, (&[0.0; 6], 3), 2, (&mut [0.0; 4], 2));
    }
}
