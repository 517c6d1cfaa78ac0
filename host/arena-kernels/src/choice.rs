//! The likeliest of many.
//!
//! Ties go to the lower index, and NaN counts as lower than any number.

use std::cmp::Ordering;

/// Returns the index of the largest element; `None` if there is none.
///
/// # Panics
/// If there are more elements than a `u32` counts.
pub fn arg_max(x: &[f32]) -> Option<u32> {
    top_k(x, 1).first().map(|&(index, _)| index)
}

/// Returns index and value of the `k` largest elements, largest first.
///
/// # Panics
/// If there are more elements than a `u32` counts.
pub fn top_k(x: &[f32], k: usize) -> Vec<(u32, f32)> {
    assert!(u32::try_from(x.len()).is_ok(), "{} elements", x.len());
    let k = k.min(x.len());
    let mut all = (0_u32..).zip(x.iter().copied());
    let mut kept: Vec<(u32, f32)> = Vec::with_capacity(2 * k);
    kept.extend(all.by_ref().take(k));
    kept.sort_unstable_by(descending);
    let Some(&(_, mut lowest)) = kept.last() else { return kept };
    // A later element that equals the lowest one kept has the higher index, so it stays out. Those
    // that may belong to the largest are gathered, and sorted whenever there are `k` of them.
    for (index, value) in all {
        if value > lowest || (lowest.is_nan() && !value.is_nan()) {
            kept.push((index, value));
            if kept.len() == 2 * k {
                keep(&mut kept, k);
                lowest = kept[k - 1].1;
            }
        }
    }
    keep(&mut kept, k);
    kept
}

/// Keeps the `k` first.
fn keep(kept: &mut Vec<(u32, f32)>, k: usize) {
    kept.sort_unstable_by(descending);
    kept.truncate(k);
}

/// Orders by value, largest first, then by index.
fn descending(a: &(u32, f32), b: &(u32, f32)) -> Ordering {
    let by_value = match (a.1.is_nan(), b.1.is_nan()) {
        (false, false) => b.1.partial_cmp(&a.1).expect("neither is NaN"),
        (a, b) => a.cmp(&b),
    };
    by_value.then(a.0.cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ties_go_to_the_lower_index() {
        assert_eq!(arg_max(&[1.0, 3.0, 3.0, 2.0]), Some(1));
        assert_eq!(top_k(&[3.0, 1.0, 3.0, 3.0], 2), [(0, 3.0), (2, 3.0)]);
        assert_eq!(top_k(&[0.0, -0.0], 1), [(0, 0.0)]);
    }

    #[test]
    fn nan_is_the_lowest() {
        assert_eq!(arg_max(&[f32::NAN, f32::NEG_INFINITY]), Some(1));
        assert_eq!(arg_max(&[f32::NAN, f32::NAN]), Some(0));
        let ids: Vec<u32> = top_k(&[f32::NAN, 1.0, f32::NAN, 2.0], 3).iter().map(|c| c.0).collect();
        assert_eq!(ids, [3, 1, 0]);
    }

    #[test]
    fn there_are_never_more_than_there_are() {
        assert_eq!(arg_max(&[]), None);
        assert_eq!(top_k(&[], 3), []);
        assert_eq!(top_k(&[1.0], 0), []);
        assert_eq!(top_k(&[1.0], 9), [(0, 1.0)]);
    }

    proptest! {
        #[test]
        fn the_largest_are_those_of_a_sorted_list(
            numbers in prop::collection::vec(0_u8..12, 0..80),
            k in 0_usize..20,
        ) {
            let value = |n: u8| if n == 11 { f32::NAN } else { f32::from(n) };
            let x: Vec<f32> = numbers.iter().map(|n| value(*n)).collect();
            let mut sorted: Vec<(u32, f32)> = (0..).zip(x.iter().copied()).collect();
            sorted.sort_by(descending);
            let ids = |list: &[(u32, f32)]| list.iter().map(|c| c.0).take(k).collect::<Vec<_>>();
            prop_assert_eq!(ids(&top_k(&x, k)), ids(&sorted));
        }
    }
}
