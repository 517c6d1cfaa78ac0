//! Gradient of log-probability and entropy of a softmax.

// Threads write different rows of the same output.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]

use crate::context::{Context, row_parts};
use crate::reduction::{self, EXP_MIN};
use crate::rows::exp;
use crate::shared::SharedMut;
use crate::simd::{self, Kernel, Simd};

/// One row of logits, of which one token was scored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogitsRow {
    /// The token.
    pub token: u32,
    /// What logits are divided by.
    pub temperature: f32,
    /// The largest logit.
    pub max: f32,
    /// `ln(sum(e^((x - max) / temperature)))`.
    pub log_total: f32,
    /// The entropy of the distribution, in nats.
    pub entropy: f32,
    /// d loss / d log-probability of the token.
    pub logprob_slope: f32,
    /// d loss / d entropy.
    pub entropy_slope: f32,
}

/// Replaces logits by the gradient of the loss. With `l[j] = (x[j] - max) / temperature -
/// log_total`, `p = e^l`, slopes `g` and `h`, entropy `H` and scored token `y`:
/// `dx[j] = (g [j = y] - p[j] (g + h (l[j] + H))) / temperature`. Ids from `token_count` on are no
/// part of the distribution, so theirs is 0. Shape: `logits` is `[rows.len(), width]`.
///
/// # Panics
/// If a length does not fit, or a token is not below `token_count`.
pub fn logits_gradient(
    context: &Context,
    width: usize,
    token_count: usize,
    rows: &[LogitsRow],
    logits: &mut [f32],
) {
    assert!(logits.len() == rows.len() * width, "{} logits, {} rows", logits.len(), rows.len());
    assert!(token_count <= width, "{token_count} tokens of {width}");
    assert!(rows.iter().all(|row| (row.token as usize) < token_count), "a token beyond the last");
    let parts = row_parts(rows.len(), 10 * width);
    let logits = SharedMut::new(logits);
    context.run(parts.len(), &|part| {
        for row in parts.rows(part) {
            // SAFETY: every row is of one part, and `logits` outlives the region.
            let all = unsafe { logits.elements(row * width, width) };
            let (x, without) = all.split_at_mut(token_count);
            without.fill(0.0);
            let row = &rows[row];
            simd::run(context.isa(), Softmax { row, x: &mut *x }, plain_row);
            x[row.token as usize] += row.logprob_slope / row.temperature;
        }
    });
}

struct Softmax<'a> {
    row: &'a LogitsRow,
    x: &'a mut [f32],
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let LogitsRow { temperature, max, log_total, entropy, .. } = *self.row;
        let (g, h) = (S::splat(self.row.logprob_slope), S::splat(self.row.entropy_slope));
        let (max, by) = (S::splat(max), S::splat(temperature));
        let (log_total, entropy) = (S::splat(log_total), S::splat(entropy));
        let minus = S::splat(-1.0 / temperature);
        let mut at = 0;
        while at + S::LANES <= self.x.len() {
            let x = self.x.as_mut_ptr().add(at);
            let l = S::sub(S::div(S::sub(S::load(x), max), by), log_total);
            let l = S::maximum(l, S::splat(EXP_MIN));
            let p = S::mul(exp::<S>(l), minus);
            S::store(x, S::mul(p, S::fma(h, S::add(l, entropy), g)));
            at += S::LANES;
        }
        plain_row(Softmax { row: self.row, x: &mut self.x[at..] });
    }
}

#[inline(always)]
fn plain_row(softmax: Softmax<'_>) {
    let row = softmax.row;
    let minus = -1.0 / row.temperature;
    for x in softmax.x {
        let l = (*x - row.max) / row.temperature - row.log_total;
        // Where the probability is 0, its logarithm must not make it NaN.
        let l = if l > EXP_MIN { l } else { EXP_MIN };
        let p = reduction::exp(l) * minus;
        *x = p * row.entropy_slope.mul_add(l + row.entropy, row.logprob_slope);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::isa::Isa;

    /// The row of a distribution over `logits`, in f64.
    fn row(logits: &[f64], temperature: f64, token: usize) -> (LogitsRow, f64) {
        let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let scaled: Vec<f64> = logits.iter().map(|x| (x - max) / temperature).collect();
        let log_total = scaled.iter().map(|s| s.exp()).sum::<f64>().ln();
        let entropy = -scaled.iter().map(|s| (s - log_total).exp() * (s - log_total)).sum::<f64>();
        let row = LogitsRow {
            token: token as u32,
            temperature: temperature as f32,
            max: max as f32,
            log_total: log_total as f32,
            entropy: entropy as f32,
            logprob_slope: -0.7,
            entropy_slope: 0.3,
        };
        (row, -0.7 * (scaled[token] - log_total) + 0.3 * entropy)
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits_and_the_right_slope() {
        for width in [3, 16, 37] {
            let logits: Vec<f64> = (0..width).map(|i| f64::from(i * 37 % 19) / 3.0).collect();
            let (rows, _) = row(&logits, 0.8, 1);
            let count = logits.len();
            let compute = |isa| {
                let context = Context::new(NonZeroUsize::MIN, isa).expect("available");
                let mut x: Vec<f32> = logits.iter().map(|x| *x as f32).collect();
                x.extend([1.0, 2.0]);
                logits_gradient(&context, count + 2, count, &[rows], &mut x);
                x
            };
            let plain = compute(Isa::Portable);
            assert_eq!(plain[count..], [0.0, 0.0]);
            for isa in Isa::available() {
                assert_eq!(compute(isa), plain, "{} {width}", isa.name());
            }
            for i in 0..count {
                let moved = |by: f64| {
                    let mut logits = logits.clone();
                    logits[i] += by;
                    row(&logits, 0.8, 1).1
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope - f64::from(plain[i])).abs() < 1e-5, "{i} {slope} {}", plain[i]);
            }
        }
    }

    #[test]
    fn a_token_that_cannot_be_has_no_gradient() {
        let context = Context::new(NonZeroUsize::MIN, Isa::best()).expect("available");
        let (row, _) = row(&[1.0, 0.0], 1.0, 0);
        let mut x = [1.0, 0.0, f32::NEG_INFINITY];
        logits_gradient(&context, 3, 3, &[row], &mut x);
        assert!(x.iter().all(|x| x.is_finite()) && x[2] == 0.0, "{x:?}");
    }
}
