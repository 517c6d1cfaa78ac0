//! The likeliest of many.
//!
//! Ties go to the lower index, and NaN counts as lower than any number.

use std::cmp::Ordering;

/// Returns the index of the largest element; `None` if there is none.
pub fn arg_max(x: &[f32]) -> Option<u32> {
    top_k(x, 1).first().map(|&(index, _)| index)
}

/// Returns index and value of the `k` largest elements, largest first.
///
/// # Panics
/// If there are more elements than a `u32` counts.
pub fn top_k(x: &[f32], k: usize) -> Vec<(u32, f32)> {
    assert!(u32::try_from(x.len()).is_ok(), "{} elements", x.len());
    let mut all: Vec<(u32, f32)> = (0_u32..).zip(x.iter().copied()).collect();
    all.sort_by(descending);
    all.truncate(k);
    all
}

/// Orders by value, largest first, then by index.
fn descending(a: &(u32, f32), b: &(u32, f32)) -> Ordering {
    let by_value = match (a.1.is_nan(), b.1.is_nan()) {
        (false, false) => b.1.partial_cmp(&a.1).expect("neither is NaN"),
        (a, b) => a.cmp(&b),
    };
    by_value.then(a.0.cmp(&b.0))
}
