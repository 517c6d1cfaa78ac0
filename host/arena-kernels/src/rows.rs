//! Functions of rows of floats, by vectors.
//!
//! Sums are those of `reduction`: sixteen partial sums, then a tree.
//!
//! Twins: the plain functions of `reduction`, `norm` and `activation`.

// Each is compared bit for bit with its twin in plain Rust. Elements behind the last whole vector
// go through the twin.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]

use crate::reduction::{self, PARTIALS};
use crate::simd::{Kernel, Simd};

/// Most vectors that hold the partial sums.
const PARTIAL_VECTORS_MAX: usize = 2;

/// See `reduction::exp`.
#[inline(always)]
pub(crate) unsafe fn exp<S: Simd>(x: S::Floats) -> S::Floats {
    let clamped = S::maximum(x, S::splat(reduction::EXP_MIN));
    let clamped = S::minimum(clamped, S::splat(reduction::EXP_MAX));
    let rounding = S::splat(reduction::ROUNDING);
    let shifted = S::fma(clamped, S::splat(std::f32::consts::LOG2_E), rounding);
    let whole = S::sub(shifted, rounding);
    let r = S::fma(whole, S::splat(-reduction::LN_2_HIGH), clamped);
    let r = S::fma(whole, S::splat(-reduction::LN_2_LOW), r);
    let mut p = S::splat(reduction::EXP_POLYNOMIAL[0]);
    for coefficient in &reduction::EXP_POLYNOMIAL[1..] {
        p = S::fma(p, r, S::splat(*coefficient));
    }
    let e = S::add(S::fma(p, S::mul(r, r), r), S::splat(1.0));
    let n = S::sub_bits(S::bits(shifted), S::bits(rounding));
    let half = S::halve(n);
    let power = |n| S::from_bits(S::shift_left::<23>(S::add_bits(n, S::splat_bits(127))));
    S::unless_nan(x, S::mul(S::mul(e, power(half)), power(S::sub_bits(n, half))))
}

/// Sums what `each` makes of the whole vectors of `len` elements, and returns the partial sums and
/// how many elements were taken. `each` gets a partial sum and an index.
#[inline(always)]
pub(crate) unsafe fn partial_sums<S: Simd>(
    len: usize,
    mut each: impl FnMut(S::Floats, usize) -> S::Floats,
) -> ([f32; PARTIALS], usize) {
    let vectors = PARTIALS / S::LANES;
    let mut sums = [S::splat(0.0); PARTIAL_VECTORS_MAX];
    let whole = len / PARTIALS * PARTIALS;
    let mut at = 0;
    while at < whole {
        for sum in &mut sums[..vectors] {
            *sum = each(*sum, at);
            at += S::LANES;
        }
    }
    let mut partials = [0.0; PARTIALS];
    for (partials, sum) in partials.chunks_exact_mut(S::LANES).zip(sums) {
        S::store(partials.as_mut_ptr(), sum);
    }
    (partials, whole)
}

/// The largest element; see `reduction::maximum`.
pub(crate) struct Maximum<'a>(pub &'a [f32]);

impl Kernel for Maximum<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let whole = self.0.len() / PARTIALS * PARTIALS;
        let vectors = PARTIALS / S::LANES;
        let mut largest = [S::splat(f32::NEG_INFINITY); PARTIAL_VECTORS_MAX];
        let mut at = 0;
        while at < whole {
            for largest in &mut largest[..vectors] {
                *largest = S::maximum(S::load(self.0.as_ptr().add(at)), *largest);
                at += S::LANES;
            }
        }
        let mut lanes = [0.0; PARTIALS];
        for (lanes, largest) in lanes.chunks_exact_mut(S::LANES).zip(largest) {
            S::store(lanes.as_mut_ptr(), largest);
        }
        let rest = reduction::maximum_plainly(&self.0[whole..]);
        reduction::maximum_plainly(&[reduction::maximum_plainly(&lanes), rest])
    }
}

/// See `reduction::exp_and_sum`.
pub(crate) struct ExpAndSum<'a> {
    pub x: &'a mut [f32],
    pub max: f32,
}

impl Kernel for ExpAndSum<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let max = S::splat(self.max);
        let x = self.x.as_mut_ptr();
        let (partials, whole) = partial_sums::<S>(self.x.len(), |sum, at| {
            let e = exp::<S>(S::sub(S::load(x.add(at)), max));
            S::store(x.add(at), e);
            S::add(sum, e)
        });
        reduction::exp_and_sum_from(partials, &mut self.x[whole..], self.max)
    }
}

/// The sum of `e^(x - max)`.
pub(crate) struct SumOfExp<'a> {
    pub x: &'a [f32],
    pub max: f32,
}

impl Kernel for SumOfExp<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let max = S::splat(self.max);
        let (partials, whole) = partial_sums::<S>(self.x.len(), |sum, at| {
            S::add(sum, exp::<S>(S::sub(S::load(self.x.as_ptr().add(at)), max)))
        });
        reduction::sum_of_exp_from(partials, &self.x[whole..], self.max)
    }
}

/// See `reduction::weighted_sum`.
pub(crate) struct WeightedSum<'a> {
    pub weights: &'a [f32],
    pub x: &'a [f32],
}

impl Kernel for WeightedSum<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let least = S::splat(reduction::EXP_MIN);
        let (partials, whole) = partial_sums::<S>(self.x.len(), |sum, at| {
            let x = S::maximum(S::load(self.x.as_ptr().add(at)), least);
            S::fma(S::load(self.weights.as_ptr().add(at)), x, sum)
        });
        reduction::weighted_sum_from(partials, &self.weights[whole..], &self.x[whole..])
    }
}

/// Divides by a number.
pub(crate) struct Divide<'a> {
    pub x: &'a mut [f32],
    pub by: f32,
}

impl Kernel for Divide<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let by = S::splat(self.by);
        let mut vectors = self.x.chunks_exact_mut(S::LANES);
        for x in &mut vectors {
            S::store(x.as_mut_ptr(), S::div(S::load(x.as_ptr()), by));
        }
        for x in vectors.into_remainder() {
            *x /= self.by;
        }
    }
}

/// See `norm::rms_norm`, of which this is one row.
pub(crate) struct RmsNorm<'a> {
    pub x: &'a [f32],
    pub weight: &'a [f32],
    pub epsilon: f32,
    pub out: &'a mut [f32],
}

impl Kernel for RmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let n = self.x.len();
        assert!(self.weight.len() == n && self.out.len() == n, "rows of {n} elements");
        let (partials, whole) = partial_sums::<S>(n, |sum, at| {
            let x = S::load(self.x.as_ptr().add(at));
            S::fma(x, x, sum)
        });
        let squares = reduction::sum_squares_from(partials, &self.x[whole..]);
        let scale = crate::norm::scale(squares, n, self.epsilon);
        let mut at = 0;
        while at + S::LANES <= n {
            let x = S::mul(S::load(self.x.as_ptr().add(at)), S::splat(scale));
            let x = S::mul(x, S::load(self.weight.as_ptr().add(at)));
            S::store(self.out.as_mut_ptr().add(at), x);
            at += S::LANES;
        }
        crate::norm::scale_plainly(&self.x[at..], &self.weight[at..], scale, &mut self.out[at..]);
    }
}

/// See `activation::swiglu`, of which this is one row.
pub(crate) struct Swiglu<'a> {
    pub gates: &'a [f32],
    pub ups: &'a [f32],
    pub out: &'a mut [f32],
}

impl Kernel for Swiglu<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let n = self.out.len();
        assert!(self.gates.len() == n && self.ups.len() == n, "rows of {n} elements");
        let mut at = 0;
        while at + S::LANES <= n {
            let gate = S::load(self.gates.as_ptr().add(at));
            let e = exp::<S>(S::sub(S::splat(0.0), gate));
            let silu = S::div(gate, S::add(S::splat(1.0), e));
            let up = S::load(self.ups.as_ptr().add(at));
            S::store(self.out.as_mut_ptr().add(at), S::mul(silu, up));
            at += S::LANES;
        }
        let (gates, ups) = (&self.gates[at..], &self.ups[at..]);
        crate::activation::swiglu_plainly(gates, ups, &mut self.out[at..]);
    }
}
