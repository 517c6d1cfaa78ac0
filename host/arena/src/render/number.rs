//! Numbers as cells of a table. A number that has no value is `-`.

use arena_core::statistics::bootstrap::{COVERAGE, Estimate};

/// Three decimals.
pub fn decimal(value: Option<f64>) -> String {
    shown(value, |value| format!("{value:.3}"))
}

/// Three decimals and a sign.
pub fn signed(value: Option<f64>) -> String {
    shown(value, |value| format!("{value:+.3}"))
}

/// One decimal.
pub fn tenth(value: Option<f64>) -> String {
    shown(value, |value| format!("{value:.1}"))
}

/// A share as a percentage with one decimal.
pub fn percent(value: Option<f64>) -> String {
    shown(value, |value| format!("{:.1}%", value * 100.0))
}

/// Whole hundredths and a sign.
pub fn hundredths(value: Option<f64>) -> String {
    shown(value, |value| format!("{:+.0}", value * 100.0))
}

/// Whole points and a sign.
pub fn points(value: Option<f64>) -> String {
    shown(value, |value| format!("{value:+.0}"))
}

/// A number of any size in a few digits.
pub fn plain(value: Option<f64>) -> String {
    shown(
        value,
        |value| {
            if value.abs() >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
        },
    )
}

/// What stands above the ends of intervals.
pub fn interval_head() -> String {
    format!("{:.0}% interval", COVERAGE * 100.0)
}

/// Both ends of an interval.
pub fn interval(estimate: &Estimate, show: fn(Option<f64>) -> String) -> String {
    match (estimate.low, estimate.high) {
        (Some(_), Some(_)) => format!("{}..{}", show(estimate.low), show(estimate.high)),
        _ => "-".to_owned(),
    }
}

fn shown(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    // A negative number that rounds to zero would print as `-0`, which nobody means.
    value.map_or_else(|| "-".to_owned(), |value| unsigned_zero(show(value)))
}

fn unsigned_zero(text: String) -> String {
    let is_zero = text.bytes().all(|byte| b"+-0.%".contains(&byte));
    if is_zero { text.trim_start_matches(['+', '-']).to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_once_and_nothing_is_a_dash() {
        assert_eq!(signed(Some(0.12345)), "+0.123");
        assert_eq!(signed(Some(-0.0001)), "0.000");
        assert_eq!(hundredths(Some(-0.004)), "0");
        assert_eq!(percent(Some(0.9527)), "95.3%");
        assert_eq!(plain(Some(123_456.7)), "123457");
        assert_eq!(tenth(None), "-");
    }

    #[test]
    fn an_interval_shows_both_ends() {
        let estimate = Estimate { value: Some(0.3), low: Some(0.25), high: Some(0.35) };
        assert_eq!(interval(&estimate, signed), "+0.250..+0.350");
        assert_eq!(interval(&Estimate::default(), signed), "-");
    }
}
