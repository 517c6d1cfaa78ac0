//! Gradients of root-mean-square normalisation.

// Threads write different rows, or columns, of the same outputs.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]

use crate::context::{Context, row_parts};
use crate::norm::scale;
use crate::reduction::{PARTIALS, sum_squares_from, tree};
use crate::rows::partial_sums;
use crate::shared::SharedMut;
use crate::simd::{self, Kernel, Simd};

/// Columns of the weights' gradient that one thread computes.
const STRIP: usize = 64;

/// Where the gradient of a norm's weights goes.
#[derive(Debug)]
pub struct WeightGradient<'a> {
    /// The chain that goes on, one element a weight.
    pub sums: &'a mut [f32],
    /// Room for the scale of every row.
    pub scales: &'a mut [f32],
}

/// Adds the gradient of the inputs of `norm::rms_norm` to `dx`, from that of the outputs, `dy`, and
/// goes on with that of the weights. With `s = 1 / sqrt(mean(x^2) + epsilon)`:
/// `dx[i] += s w[i] dy[i] - x[i] s^3 / n * sum(dy w x)`, and `dw[i]` is a chain of
/// `dy[i] * x[i] * s` over ascending rows. Shapes: `x`, `dy` and `dx` are `[m, weight.len()]`.
///
/// Source: derived from Zhang and Sennrich 2019, equation 4.
///
/// # Panics
/// If a length does not fit.
pub fn rms_norm_gradient(
    context: &Context,
    (x, weight, epsilon): (&[f32], &[f32], f32),
    dy: &[f32],
    dx: &mut [f32],
    dweight: Option<WeightGradient<'_>>,
) {
    let n = weight.len();
    assert!(n > 0 && x.len().is_multiple_of(n), "{} elements in rows of {n}", x.len());
    assert!(x.len() == dy.len() && x.len() == dx.len(), "{} {} {}", x.len(), dy.len(), dx.len());
    let rows = x.len() / n;
    let mut none = [];
    let (sums, scales) = match dweight {
        Some(WeightGradient { sums, scales }) => {
            assert!(sums.len() == n, "{} weights of {n}", sums.len());
            assert!(scales.len() == rows, "{} scales of {rows} rows", scales.len());
            (Some(sums), scales)
        }
        None => (None, &mut none[..]),
    };
    let parts = row_parts(rows, 2 * n);
    let (shared, shared_scales) = (SharedMut::new(dx), SharedMut::new(scales));
    context.run(parts.len(), &|part| {
        for row in parts.rows(part) {
            // SAFETY: every row is of one part, and `dx` outlives the region.
            let dx = unsafe { shared.elements(row * n, n) };
            let (x, dy) = (&x[row * n..][..n], &dy[row * n..][..n]);
            let scale = simd::run(context.isa(), Row { x, weight, epsilon, dy, dx }, plain_row);
            if sums.is_some() {
                // SAFETY: as above.
                let scales = unsafe { shared_scales.elements(row, 1) };
                scales[0] = scale;
            }
        }
    });
    let Some(sums) = sums else { return };
    let sums = SharedMut::new(sums);
    context.run(n.div_ceil(STRIP), &|part| {
        let first = part * STRIP;
        // SAFETY: every column is of one part, and `sums` outlives the region.
        let out = unsafe { sums.elements(first, (n - first).min(STRIP)) };
        simd::run(context.isa(), Weights { x, dy, scales, n, first, out }, plain_weights);
    });
}

/// One row; returns its scale.
struct Row<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    epsilon: f32,
    dy: &'a [f32],
    dx: &'a mut [f32],
}

impl Kernel for Row<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let n = self.x.len();
        let (x, weight, dy) = (self.x.as_ptr(), self.weight.as_ptr(), self.dy.as_ptr());
        let (partials, whole) = partial_sums::<S>(n, |sum, at| {
            let x = S::load(x.add(at));
            S::fma(x, x, sum)
        });
        let squares = sum_squares_from(partials, &self.x[whole..]);
        let (partials, whole) = partial_sums::<S>(n, |sum, at| {
            let dy = S::mul(S::load(dy.add(at)), S::load(weight.add(at)));
            S::fma(dy, S::load(x.add(at)), sum)
        });
        let rest = (&self.x[whole..], &self.weight[whole..], &self.dy[whole..]);
        let dot = dot_from(partials, rest.0, rest.1, rest.2);
        let (scale, factor) = factors(squares, dot, n, self.epsilon);
        let mut at = 0;
        while at + S::LANES <= n {
            let dy = S::mul(S::load(dy.add(at)), S::load(weight.add(at)));
            let d = S::fma(S::load(x.add(at)), S::splat(factor), S::mul(dy, S::splat(scale)));
            let dx = self.dx.as_mut_ptr().add(at);
            S::store(dx, S::add(S::load(dx), d));
            at += S::LANES;
        }
        let rest = (&self.x[at..], &self.weight[at..], &self.dy[at..]);
        add_plainly(rest, scale, factor, &mut self.dx[at..]);
        scale
    }
}

fn plain_row(row: Row<'_>) -> f32 {
    let squares = sum_squares_from([0.0; PARTIALS], row.x);
    let dot = dot_from([0.0; PARTIALS], row.x, row.weight, row.dy);
    let (scale, factor) = factors(squares, dot, row.x.len(), row.epsilon);
    add_plainly((row.x, row.weight, row.dy), scale, factor, row.dx);
    scale
}

/// Returns the scale, and what `x` is multiplied by.
#[inline(always)]
fn factors(squares: f32, dot: f32, n: usize, epsilon: f32) -> (f32, f32) {
    let scale = scale(squares, n, epsilon);
    (scale, -(dot * scale * scale * scale / n as f32))
}

#[inline(always)]
fn dot_from(mut partials: [f32; PARTIALS], x: &[f32], weight: &[f32], dy: &[f32]) -> f32 {
    for (at, x) in x.iter().enumerate() {
        let partial = &mut partials[at % PARTIALS];
        *partial = (dy[at] * weight[at]).mul_add(*x, *partial);
    }
    tree(partials)
}

#[inline(always)]
fn add_plainly((x, weight, dy): (&[f32], &[f32], &[f32]), scale: f32, factor: f32, dx: &mut [f32]) {
    for (at, dx) in dx.iter_mut().enumerate() {
        *dx += x[at].mul_add(factor, dy[at] * weight[at] * scale);
    }
}

/// Some columns of the weights' gradient.
struct Weights<'a> {
    x: &'a [f32],
    dy: &'a [f32],
    scales: &'a [f32],
    n: usize,
    first: usize,
    out: &'a mut [f32],
}

impl Kernel for Weights<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let width = self.out.len() / S::LANES * S::LANES;
        for (row, scale) in self.scales.iter().enumerate() {
            let at = row * self.n + self.first;
            let (x, dy) = (self.x[at..].as_ptr(), self.dy[at..].as_ptr());
            let mut i = 0;
            while i < width {
                let out = self.out.as_mut_ptr().add(i);
                let product = S::mul(S::load(dy.add(i)), S::load(x.add(i)));
                S::store(out, S::fma(product, S::splat(*scale), S::load(out)));
                i += S::LANES;
            }
        }
        let first = self.first + width;
        plain_weights(Weights { first, out: &mut self.out[width..], ..self });
    }
}

#[inline(always)]
fn plain_weights(weights: Weights<'_>) {
    if weights.out.is_empty() {
        return;
    }
    for (row, scale) in weights.scales.iter().enumerate() {
        let at = row * weights.n + weights.first;
        for (i, out) in weights.out.iter_mut().enumerate() {
            *out = (weights.dy[at + i] * weights.x[at + i]).mul_add(*scale, *out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::isa::Isa;
    use crate::norm::rms_norm;

    fn numbers(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + salt * 31) % 2_003) as f32 / 1_000.0 - 1.0).collect()
    }

    #[test]
    fn every_instruction_set_and_number_of_threads_gives_the_same_bits() {
        for n in [2, 16, 70, 576] {
            let rows = 5;
            let (x, dy, weight) = (numbers(rows * n, 1), numbers(rows * n, 2), numbers(n, 3));
            let compute = |threads, isa| {
                let threads = NonZeroUsize::new(threads).expect("not zero");
                let context = Context::new(threads, isa).expect("available");
                let (mut dx, mut dw, mut scales) =
                    (numbers(rows * n, 4), numbers(n, 5), vec![0.0; rows]);
                let dweight = Some(WeightGradient { sums: &mut dw, scales: &mut scales });
                rms_norm_gradient(&context, (&x, &weight, 1e-5), &dy, &mut dx, dweight);
                (dx, dw)
            };
            let plain = compute(1, Isa::Portable);
            for isa in Isa::available() {
                assert_eq!(compute(2, isa), plain, "{} {n}", isa.name());
            }
        }
    }

    #[test]
    fn gradients_are_what_differences_say() {
        let n = 12;
        let (x, dy, weight) = (numbers(2 * n, 1), numbers(2 * n, 2), numbers(n, 3));
        let context = Context::new(NonZeroUsize::MIN, Isa::best()).expect("available");
        let loss = |x: &[f32], weight: &[f32]| {
            let mut y = vec![0.0; x.len()];
            rms_norm(&context, x, weight, 1e-5, &mut y);
            y.iter().zip(&dy).map(|(y, dy)| f64::from(*y) * f64::from(*dy)).sum::<f64>()
        };
        let (mut dx, mut dw, mut scales) = (vec![0.0; 2 * n], vec![0.0; n], vec![0.0; 2]);
        let dweight = Some(WeightGradient { sums: &mut dw, scales: &mut scales });
        rms_norm_gradient(&context, (&x, &weight, 1e-5), &dy, &mut dx, dweight);
        let step = 1e-2_f32;
        for i in 0..2 * n {
            let moved = |by: f32| {
                let mut x = x.clone();
                x[i] += by;
                loss(&x, &weight)
            };
            let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            assert!((slope - f64::from(dx[i])).abs() < 2e-3, "{i}: {slope} {}", dx[i]);
        }
        for i in 0..n {
            let moved = |by: f32| {
                let mut weight = weight.clone();
                weight[i] += by;
                loss(&x, &weight)
            };
            let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            assert!((slope - f64::from(dw[i])).abs() < 1e-3, "{i}: {slope} {}", dw[i]);
        }
    }
}
