//! Rotary position embedding.

// Threads rotate different rows of the same matrix.
#![allow(unsafe_code)]

use crate::context::{Context, row_parts};
use crate::shared::SharedMut;

/// Cosines and sines of every position, made once.
///
/// Frequencies and angles are rounded to f32 where `transformers` rounds them
/// (`modeling_rope_utils.py`, `modeling_llama.py`), so that far positions agree with it; powers,
/// sines and cosines are computed in f64 by portable code, so that they agree on every machine.
pub struct RopeTable {
    half: usize,
    positions: usize,
    /// Per position: `half` cosines, then `half` sines.
    turns: Vec<f32>,
}

impl RopeTable {
    /// Makes the table for heads of `head_dim` elements, base `theta` and positions below
    /// `positions`.
    ///
    /// # Panics
    /// If `head_dim` is odd or 0.
    pub fn new(head_dim: usize, theta: f64, positions: usize) -> RopeTable {
        assert!(head_dim > 0 && head_dim.is_multiple_of(2), "a head of {head_dim} elements");
        let half = head_dim / 2;
        let frequency = |i: usize| {
            let exponent = (2 * i) as f32 / head_dim as f32;
            1.0 / libm::pow(theta, f64::from(exponent)) as f32
        };
        let frequencies: Vec<f32> = (0..half).map(frequency).collect();
        let mut turns = Vec::with_capacity(positions * head_dim);
        for position in 0..positions {
            let angles = frequencies.iter().map(|frequency| f64::from(position as f32 * frequency));
            turns.extend(angles.clone().map(|angle| libm::cos(angle) as f32));
            turns.extend(angles.map(|angle| libm::sin(angle) as f32));
        }
        RopeTable { half, positions, turns }
    }

    /// Returns how many positions the table has.
    pub fn positions(&self) -> usize {
        self.positions
    }
}

/// Rotates heads in place: with `a` and `b` the first and second half of a head, to
/// `a cos - b sin` and `b cos + a sin`. Shapes: `x` is `[m, heads * head_dim]`, with one position
/// a row.
///
/// Source: Su et al. 2021, equation 34, in the half-split order of `rotate_half` in `transformers`.
///
/// # Panics
/// If `x` is no whole number of heads a row, or a position is not in the table.
pub fn rope(context: &Context, table: &RopeTable, x: &mut [f32], positions: &[u32]) {
    turn(context, table, x, positions, |a, b, cos, sin| (a * cos - b * sin, b * cos + a * sin));
}

/// Rotates the gradient of what [`rope`] returns, in place, to that of what it was given: the
/// other way round, to `a cos + b sin` and `b cos - a sin`.
///
/// # Panics
/// As [`rope`].
pub fn rope_gradient(context: &Context, table: &RopeTable, x: &mut [f32], positions: &[u32]) {
    turn(context, table, x, positions, |a, b, cos, sin| (a * cos + b * sin, b * cos - a * sin));
}

#[inline(always)]
fn turn(
    context: &Context,
    table: &RopeTable,
    x: &mut [f32],
    positions: &[u32],
    rotate: impl Fn(f32, f32, f32, f32) -> (f32, f32) + Sync,
) {
    if positions.is_empty() {
        assert!(x.is_empty(), "{} elements, but no positions", x.len());
        return;
    }
    let row = x.len() / positions.len();
    let head_dim = 2 * table.half;
    assert!(x.len() == row * positions.len(), "{} elements in equal rows", x.len());
    assert!(row > 0 && row.is_multiple_of(head_dim), "{row} elements in heads of {head_dim}");
    let beyond = positions.iter().find(|&&position| position as usize >= table.positions);
    assert!(beyond.is_none(), "position {} of {}", beyond.unwrap_or(&0), table.positions);
    let parts = row_parts(positions.len(), 2 * row);
    let x = SharedMut::new(x);
    context.run(parts.len(), &|part| {
        for at in parts.rows(part) {
            // SAFETY: every row is of one part, and `x` outlives the region.
            let x = unsafe { x.elements(at * row, row) };
            let turns = &table.turns[positions[at] as usize * head_dim..][..head_dim];
            let (cosines, sines) = turns.split_at(table.half);
            for head in x.chunks_exact_mut(head_dim) {
                let (a, b) = head.split_at_mut(table.half);
                for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cosines).zip(sines) {
                    (*a, *b) = rotate(*a, *b, *cos, *sin);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::isa::Isa;

    fn context() -> Context {
        Context::new(NonZeroUsize::new(2).expect("two"), Isa::best()).expect("available")
    }

    #[test]
    fn positions_turn_pairs_of_the_halves() {
        let table = RopeTable::new(4, 10_000.0, 8);
        let mut x = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        rope(&context(), &table, &mut x, &[3]);
        for (head, start) in [(&x[..4], 1.0_f64), (&x[4..], 5.0)] {
            for i in 0..2 {
                let angle = 3.0 / 10_000_f64.powf(i as f64 / 2.0);
                let (a, b) = (start + i as f64, start + 2.0 + i as f64);
                let (first, second) = (f64::from(head[i]), f64::from(head[i + 2]));
                assert!((first - (a * angle.cos() - b * angle.sin())).abs() < 1e-6);
                assert!((second - (b * angle.cos() + a * angle.sin())).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_gradient_is_turned_back() {
        let table = RopeTable::new(4, 10_000.0, 8);
        let mut x = vec![1.0, 2.0, 3.0, 4.0];
        rope(&context(), &table, &mut x, &[3]);
        rope_gradient(&context(), &table, &mut x, &[3]);
        for (found, expected) in x.iter().zip([1.0, 2.0, 3.0, 4.0]) {
            assert!((found - expected).abs() < 1e-6, "{x:?}");
        }
    }

    #[test]
    fn the_first_position_stays() {
        let table = RopeTable::new(8, 100_000.0, 1);
        let mut x: Vec<f32> = (0..8).map(|i| i as f32).collect();
        rope(&context(), &table, &mut x, &[0]);
        assert_eq!(x, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(table.positions(), 1);
    }

    #[test]
    fn no_rows_are_nothing_to_do() {
        rope(&context(), &RopeTable::new(2, 10.0, 1), &mut [], &[]);
    }

    #[test]
    #[should_panic(expected = "position 8 of 8")]
    fn a_position_beyond_the_table_panics() {
        rope(&context(), &RopeTable::new(2, 10_000.0, 8), &mut [1.0, 2.0], &[8]);
    }
}
