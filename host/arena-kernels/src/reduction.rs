//! Exponentials, and sums in a fixed order.
//!
//! A sum has sixteen partial sums: partial sum `i` takes the elements `i, i + 16, i + 32, …` in
//! this order, from 0.0. Then a tree adds partial sum `i + 8` to `i`, `i + 4` to `i`, and so on.

/// Partial sums of a sum.
const PARTIALS: usize = 16;

/// Returns `e^x`. Within 2 units in the last place for normal results; 0.0 below -104, infinity
/// above 88.8, NaN for NaN.
///
/// By `e^x = 2^n e^r` with `n` the integer nearest to `x / ln 2`, the remainder in two parts
/// (Cody and Waite 1980, chapter 6) and a polynomial with the coefficients of Cephes' `expf`.
pub fn exp(x: f32) -> f32 {
    /// 1.5 * 2^23: adding it rounds to an integer, in the low bits of the sum.
    const ROUNDING: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    if x.is_nan() {
        return x;
    }
    let clamped = if x > -105.0 { x } else { -105.0 };
    let clamped = if clamped < 90.0 { clamped } else { 90.0 };
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUNDING);
    let whole = shifted - ROUNDING;
    let r = whole.mul_add(-LN_2_HIGH, clamped);
    let r = whole.mul_add(-LN_2_LOW, r);
    let p = 1.987_569_1e-4_f32;
    let p = p.mul_add(r, 1.398_199_9e-3);
    let p = p.mul_add(r, 8.333_452e-3);
    let p = p.mul_add(r, 4.166_579_6e-2);
    let p = p.mul_add(r, 1.666_666_5e-1);
    let p = p.mul_add(r, 0.5);
    let e = p.mul_add(r * r, r) + 1.0;
    // The power is applied in two halves, so that results near the ends of the range are right.
    let n = shifted.to_bits().cast_signed() - ROUNDING.to_bits().cast_signed();
    let half = n >> 1;
    e * power_of_two(half) * power_of_two(n - half)
}

/// Returns `2^n` for `n` in -126..=127.
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23).cast_unsigned())
}

/// Returns the sum of the squares, by fused multiply-adds.
pub fn sum_squares(x: &[f32]) -> f32 {
    let mut partials = [0.0_f32; PARTIALS];
    for chunk in x.chunks(PARTIALS) {
        for (partial, x) in partials.iter_mut().zip(chunk) {
            *partial = x.mul_add(*x, *partial);
        }
    }
    tree(partials)
}

/// Returns the largest element, taking NaN as the lowest; negative infinity if there is none.
pub fn maximum(x: &[f32]) -> f32 {
    x.iter().fold(f32::NEG_INFINITY, |max, &x| if x > max { x } else { max })
}

/// Replaces every element by `e^(x - max)` and returns the sum.
pub fn exp_and_sum(x: &mut [f32], max: f32) -> f32 {
    let mut partials = [0.0_f32; PARTIALS];
    for chunk in x.chunks_mut(PARTIALS) {
        for (partial, x) in partials.iter_mut().zip(chunk) {
            *x = exp(*x - max);
            *partial += *x;
        }
    }
    tree(partials)
}

/// Replaces logits by probabilities: `e^(x - max) / sum`.
pub fn softmax(x: &mut [f32]) {
    let max = maximum(x);
    let sum = exp_and_sum(x, max);
    for x in x {
        *x /= sum;
    }
}

/// Returns `ln(sum(e^x))` as `max + ln(sum(e^(x - max)))`; negative infinity for no elements.
pub fn log_sum_exp(x: &[f32]) -> f32 {
    let max = maximum(x);
    if max == f32::NEG_INFINITY {
        return max;
    }
    let mut partials = [0.0_f32; PARTIALS];
    for chunk in x.chunks(PARTIALS) {
        for (partial, x) in partials.iter_mut().zip(chunk) {
            *partial += exp(*x - max);
        }
    }
    max + libm::log(f64::from(tree(partials))) as f32
}

fn tree(mut partials: [f32; PARTIALS]) -> f32 {
    let mut width = PARTIALS / 2;
    while width > 0 {
        for i in 0..width {
            partials[i] += partials[i + width];
        }
        width /= 2;
    }
    partials[0]
}
