//! Exponentials, and sums in a fixed order.
//!
//! A sum has sixteen partial sums: partial sum `i` takes the elements `i, i + 16, i + 32, …` in
//! this order, from 0.0. Then a tree adds partial sum `i + 8` to `i`, `i + 4` to `i`, and so on.
//!
//! Not here: the same by vectors (`rows`).

use std::sync::LazyLock;

use crate::isa::Isa;
use crate::rows::{Divide, ExpAndSum, Maximum, SumOfExp, WeightedSum};
use crate::simd;

/// Partial sums of a sum.
pub(crate) const PARTIALS: usize = 16;

/// What functions without a context are computed by.
static BEST: LazyLock<Isa> = LazyLock::new(Isa::best);

/// Below, the exponential is 0.
pub(crate) const EXP_MIN: f32 = -105.0;
/// Above, it is infinite.
pub(crate) const EXP_MAX: f32 = 90.0;
/// 1.5 * 2^23: adding it rounds to an integer, in the low bits of the sum.
pub(crate) const ROUNDING: f32 = 12_582_912.0;
/// The upper bits of `ln 2`, so few that their product with an exponent is exact.
pub(crate) const LN_2_HIGH: f32 = 0.693_359_4;
/// `ln 2` less its upper bits.
pub(crate) const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Coefficients of `(e^r - 1 - r) / r^2`, highest power first.
pub(crate) const EXP_POLYNOMIAL: [f32; 6] =
    [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// Returns `e^x`: within 1.1 units in the last place where that is a normal number, 0.0 below -104,
/// infinity above 88.8, NaN for NaN.
///
/// By `e^x = 2^n e^r` with `n` the integer nearest to `x / ln 2`, the remainder in two parts
/// (Cody and Waite 1980, chapter 6) and a polynomial with the coefficients of Cephes' `expf`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    let clamped = if x > EXP_MIN { x } else { EXP_MIN };
    let clamped = if clamped < EXP_MAX { clamped } else { EXP_MAX };
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUNDING);
    let whole = shifted - ROUNDING;
    let r = whole.mul_add(-LN_2_HIGH, clamped);
    let r = whole.mul_add(-LN_2_LOW, r);
    let mut p = EXP_POLYNOMIAL[0];
    for coefficient in &EXP_POLYNOMIAL[1..] {
        p = p.mul_add(r, *coefficient);
    }
    let e = p.mul_add(r * r, r) + 1.0;
    // The power is applied in two halves, so that results near the ends of the range are right.
    let n = shifted.to_bits().cast_signed() - ROUNDING.to_bits().cast_signed();
    let half = n >> 1;
    e * power_of_two(half) * power_of_two(n - half)
}

/// Returns `2^n` for `n` in -126..=127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23).cast_unsigned())
}

/// Adds the squares of the elements to partial sums, by fused multiply-adds, and sums these up.
#[inline(always)]
pub(crate) fn sum_squares_from(mut partials: [f32; PARTIALS], x: &[f32]) -> f32 {
    for chunk in x.chunks(PARTIALS) {
        for (partial, x) in partials.iter_mut().zip(chunk) {
            *partial = x.mul_add(*x, *partial);
        }
    }
    tree(partials)
}

/// Returns the largest element, taking NaN as the lowest; negative infinity if there is none.
pub fn maximum(x: &[f32]) -> f32 {
    maximum_by(*BEST, x)
}

pub(crate) fn maximum_by(isa: Isa, x: &[f32]) -> f32 {
    // The order in which lanes are compared decides which zero is the largest: make it 0.0.
    simd::run(isa, Maximum(x), |x| maximum_plainly(x.0)) + 0.0
}

#[inline(always)]
pub(crate) fn maximum_plainly(x: &[f32]) -> f32 {
    x.iter().fold(f32::NEG_INFINITY, |max, &x| if x > max { x } else { max })
}

/// Replaces every element by `e^(x - max)` and returns the sum.
pub fn exp_and_sum(x: &mut [f32], max: f32) -> f32 {
    exp_and_sum_by(*BEST, x, max)
}

pub(crate) fn exp_and_sum_by(isa: Isa, x: &mut [f32], max: f32) -> f32 {
    let twin = |k: ExpAndSum| exp_and_sum_from([0.0; PARTIALS], k.x, k.max);
    simd::run(isa, ExpAndSum { x, max }, twin)
}

#[inline(always)]
pub(crate) fn exp_and_sum_from(mut partials: [f32; PARTIALS], x: &mut [f32], max: f32) -> f32 {
    for chunk in x.chunks_mut(PARTIALS) {
        for (partial, x) in partials.iter_mut().zip(chunk) {
            *x = exp(*x - max);
            *partial += *x;
        }
    }
    tree(partials)
}

/// Returns the sum of `weights[i] * max(x[i], -105)`, by fused multiply-adds: what is lower has the
/// exponential 0, and its weight of 0 is not to meet an infinity.
///
/// # Panics
/// If the lengths differ.
pub fn weighted_sum(weights: &[f32], x: &[f32]) -> f32 {
    weighted_sum_by(*BEST, weights, x)
}

fn weighted_sum_by(isa: Isa, weights: &[f32], x: &[f32]) -> f32 {
    assert!(weights.len() == x.len(), "{} weights of {}", weights.len(), x.len());
    let twin = |k: WeightedSum| weighted_sum_from([0.0; PARTIALS], k.weights, k.x);
    simd::run(isa, WeightedSum { weights, x }, twin)
}

#[inline(always)]
pub(crate) fn weighted_sum_from(mut partials: [f32; PARTIALS], weights: &[f32], x: &[f32]) -> f32 {
    for (at, (weight, x)) in weights.iter().zip(x).enumerate() {
        let x = if *x > EXP_MIN { *x } else { EXP_MIN };
        partials[at % PARTIALS] = weight.mul_add(x, partials[at % PARTIALS]);
    }
    tree(partials)
}

/// Replaces logits by probabilities: `e^(x - max) / sum`.
pub fn softmax(x: &mut [f32]) {
    softmax_by(*BEST, x);
}

fn softmax_by(isa: Isa, x: &mut [f32]) {
    let max = maximum_by(isa, x);
    let by = exp_and_sum_by(isa, x, max);
    divide_by(isa, x, by);
}

pub(crate) fn divide_by(isa: Isa, x: &mut [f32], by: f32) {
    simd::run(isa, Divide { x, by }, |k| k.x.iter_mut().for_each(|x| *x /= k.by));
}

/// Returns `ln(sum(e^x))` as `max + ln(sum(e^(x - max)))`; negative infinity for no elements.
pub fn log_sum_exp(x: &[f32]) -> f32 {
    log_sum_exp_by(*BEST, x)
}

fn log_sum_exp_by(isa: Isa, x: &[f32]) -> f32 {
    let max = maximum_by(isa, x);
    if max == f32::NEG_INFINITY {
        return if x.iter().any(|x| x.is_nan()) { f32::NAN } else { max };
    }
    let twin = |k: SumOfExp| sum_of_exp_from([0.0; PARTIALS], k.x, k.max);
    let sum = simd::run(isa, SumOfExp { x, max }, twin);
    max + libm::log(f64::from(sum)) as f32
}

#[inline(always)]
pub(crate) fn sum_of_exp_from(mut partials: [f32; PARTIALS], x: &[f32], max: f32) -> f32 {
    for chunk in x.chunks(PARTIALS) {
        for (partial, x) in partials.iter_mut().zip(chunk) {
            *partial += exp(*x - max);
        }
    }
    tree(partials)
}

#[inline(always)]
pub(crate) fn tree(mut partials: [f32; PARTIALS]) -> f32 {
    let mut width = PARTIALS / 2;
    while width > 0 {
        for i in 0..width {
            partials[i] += partials[i + width];
        }
        width /= 2;
    }
    partials[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of many magnitudes, and those that are special.
    fn numbers(count: usize) -> Vec<f32> {
        let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -104.5, 88.7, 89.0];
        let ordinary = (0..count).map(|i| ((i * 7919 % 10_007) as f32 - 5_000.0) / 55.0);
        ordinary.chain(special).collect()
    }

    #[test]
    fn exp_is_as_close_as_it_says() {
        let mut worst = 0.0_f64;
        for i in -8_700_000..8_870_000 {
            if i % 7 != 0 {
                continue;
            }
            let x = i as f32 / 1e5;
            let exact = libm::exp(f64::from(x));
            let (is, unit) =
                (exp(x), f64::from((exact as f32).next_up()) - f64::from(exact as f32));
            worst = worst.max((f64::from(is) - exact).abs() / unit);
        }
        assert!(worst < 1.1, "off by {worst} units");
    }

    #[test]
    fn exp_has_the_limits_of_the_exponential() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-104.5), 0.0);
        assert!(exp(-103.0) > 0.0);
        assert!(exp(88.7).is_finite());
        assert_eq!(exp(88.8), f32::INFINITY);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for count in [0, 1, 15, 16, 17, 100, 1000] {
            let all = numbers(count);
            // An infinity among the terms makes every sum NaN, so there is a list without.
            let finite: Vec<f32> = all.iter().copied().filter(|x| x.is_finite()).collect();
            for (x, isa) in [&all, &finite]
                .into_iter()
                .flat_map(|x| Isa::available().into_iter().map(move |isa| (x, isa)))
            {
                let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                assert!(same(maximum_by(isa, x), maximum_by(Isa::Portable, x)));
                assert!(same(log_sum_exp_by(isa, x), log_sum_exp_by(Isa::Portable, x)));
                let sum = |isa| weighted_sum_by(isa, &vec![0.25; x.len()], x);
                assert!(same(sum(isa), sum(Isa::Portable)));
                let (mut a, mut b) = (x.clone(), x.clone());
                let sums =
                    (exp_and_sum_by(isa, &mut a, 1.5), exp_and_sum_by(Isa::Portable, &mut b, 1.5));
                assert!(same(sums.0, sums.1), "{} sums {count} otherwise", isa.name());
                assert!(a.iter().zip(&b).all(|(a, b)| same(*a, *b)), "{}, {count}", isa.name());
                let (mut a, mut b) = (x.clone(), x.clone());
                softmax_by(isa, &mut a);
                softmax_by(Isa::Portable, &mut b);
                assert!(a.iter().zip(&b).all(|(a, b)| same(*a, *b)), "{}, {count}", isa.name());
            }
        }
    }

    #[test]
    fn probabilities_add_up_to_one() {
        let mut x: Vec<f32> = (0..1000).map(|i| (i % 37) as f32 / 5.0).collect();
        let log_sum = log_sum_exp(&x);
        let exact: f64 = x.iter().map(|x| libm::exp(f64::from(*x))).sum();
        assert!((f64::from(log_sum) - exact.ln()).abs() < 1e-6, "{log_sum}");
        softmax(&mut x);
        let sum: f64 = x.iter().map(|x| f64::from(*x)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn nan_is_the_lowest_when_looking_for_the_largest() {
        assert_eq!(maximum(&[f32::NAN, -3.0, f32::NAN]), -3.0);
        assert_eq!(maximum(&[f32::NAN; 40]), f32::NEG_INFINITY);
        assert_eq!(maximum(&[]), f32::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[]), f32::NEG_INFINITY);
        assert!(log_sum_exp(&[f32::NAN, 1.0]).is_nan());
    }
}
