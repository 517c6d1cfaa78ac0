//! The few functions of probability that reports need, in plain `f64`.
//!
//! Published tables are compared byte for byte, so a value has the same bits on every machine:
//! IEEE 754 fixes `+ - * /` and `sqrt`, and `exp` and `ln` are those of `libm`, which are written
//! in these. The standard library's come from the platform and differ in last digits.

use std::f64::consts::{FRAC_2_SQRT_PI, PI, SQRT_2};

use libm::{exp, log};

/// Terms after which a series or continued fraction is cut; each converges long before.
const TERMS_MAX: u32 = 500;

/// What counts as converged, relative to the value.
const PRECISION: f64 = 1e-15;

/// Returns the probability that a standard normal variable is below `z`.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// Returns the complementary error function. Series below 2 (Abramowitz and Stegun 7.1.6),
/// continued fraction above (7.1.14).
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 2.0 {
        return 1.0 - erf_series(x);
    }
    // From the inside out; sixty levels are exact to the last digits from 2 upwards.
    let mut tail = x;
    for level in (1..=60).rev() {
        tail = x + f64::from(level) / 2.0 / tail;
    }
    exp(-x * x) / (PI.sqrt() * tail)
}

fn erf_series(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..TERMS_MAX {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
        if term <= sum * PRECISION {
            break;
        }
    }
    FRAC_2_SQRT_PI * exp(-x * x) * sum
}

/// Returns the continuous ranked probability score of a normal forecast whose mean is off by
/// `error` and whose standard deviation is `spread`, in the unit of both; at least 0.
///
/// CRPS = σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π) with z = error/σ: Gneiting and Raftery 2007,
/// equation 21. With no spread it is |error|.
pub fn normal_crps(error: f64, spread: f64) -> f64 {
    if spread <= 0.0 {
        return error.abs();
    }
    let z = error.abs() / spread;
    let density = exp(-0.5 * z * z) / (2.0 * PI).sqrt();
    let score = z * (2.0 * normal_cdf(z) - 1.0) + 2.0 * density - 1.0 / PI.sqrt();
    (spread * score).max(0.0)
}

/// Returns the probability that |T| is at least |`t`| for Student's T with `freedom` degrees of
/// freedom: I(ν/(ν + t²); ν/2, 1/2), Abramowitz and Stegun 26.7.1 and 26.5.27. An infinite `t`
/// gives 0.
///
/// # Panics
/// If `freedom` is not positive or `t` is NaN.
pub fn student_two_sided(t: f64, freedom: f64) -> f64 {
    assert!(freedom > 0.0, "a t-test needs at least one degree of freedom");
    assert!(!t.is_nan(), "a t statistic is a number");
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// Returns the regularised incomplete beta function I(x; a, b) for 0 <= x <= 1.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let log_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * log(x) + b * log(1.0 - x);
    let front = exp(log_front);
    // The fraction converges fast below the mean of the distribution; above, use symmetry.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(1.0 - x, b, a) / b
    }
}

/// Evaluates the continued fraction 26.5.8 of Abramowitz and Stegun by Lentz's method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..TERMS_MAX {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0).abs() <= PRECISION {
            break;
        }
    }
    value
}

/// Returns ln Γ(x) for x > 0: Stirling's series (Abramowitz and Stegun 6.1.41) after raising x
/// to at least 10 by the recurrence.
fn ln_gamma(x: f64) -> f64 {
    let mut raised = x;
    let mut product = 1.0;
    while raised < 10.0 {
        product *= raised;
        raised += 1.0;
    }
    let square = raised * raised;
    let series = (1.0 / 12.0
        - (1.0 / 360.0
            - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square)
            / square)
        / raised;
    (raised - 0.5) * log(raised) - raised + 0.5 * log(2.0 * PI) + series - log(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    #[test]
    fn normal_probabilities_agree_with_published_tables() {
        close(normal_cdf(0.0), 0.5);
        close(normal_cdf(1.959_963_984_540_054), 0.975);
        close(normal_cdf(-3.0), 0.001_349_898_031_630_094_6);
        close(normal_cdf(6.0), 0.999_999_999_013_412_3);
        close(normal_cdf(-40.0), 0.0);
    }

    #[test]
    fn student_probabilities_agree_with_closed_forms() {
        // One degree of freedom is the Cauchy distribution, two has an algebraic form.
        close(student_two_sided(1.0, 1.0), 0.5);
        close(student_two_sided(-2.0, 2.0), 1.0 - 2.0 / 6.0_f64.sqrt());
        close(student_two_sided(0.0, 7.0), 1.0);
        // The tables' 97.5 % point of 10 degrees of freedom, to nine decimals.
        assert!((student_two_sided(2.228_138_852, 10.0) - 0.05).abs() < 1e-10);
        assert_eq!(student_two_sided(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn student_tends_to_normal() {
        let normal = 2.0 * normal_cdf(-2.0);
        assert!((student_two_sided(2.0, 1e6) - normal).abs() < 1e-6);
    }

    #[test]
    fn gamma_agrees_with_factorials() {
        close(ln_gamma(1.0), 0.0);
        close(ln_gamma(0.5), log(PI.sqrt()));
        close(ln_gamma(21.0), log(2_432_902_008_176_640_000.0));
    }

    #[test]
    fn the_crps_of_a_centred_standard_normal_is_known() {
        close(normal_crps(0.0, 1.0), (2.0_f64.sqrt() - 1.0) / PI.sqrt());
        assert_eq!(normal_crps(-7.0, 0.0), 7.0);
        assert!(normal_crps(1e12, 1e-3).is_finite());
    }

    #[test]
    fn every_machine_gets_these_bits() {
        let bits = [
            normal_cdf(1.25),
            normal_cdf(-2.75),
            normal_crps(0.3, 1.7),
            student_two_sided(2.5, 11.0),
            student_two_sided(0.2, 929.0),
            ln_gamma(3.7),
        ]
        .map(f64::to_bits);
        let expected = [
            0x3fec9e845da8ac7a,
            0x3f686904349ec780,
            0x3fdac633bad975bb,
            0x3f9e36eb3eea42f7,
            0x3feaedc47a21218f,
            0x3ff6d9625e359ba8,
        ];
        assert_eq!(bits, expected, "{bits:#x?}");
    }
}
