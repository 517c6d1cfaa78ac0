//! Money as whole cents: parse, print, checked arithmetic.
//!
//! Not here: floats. A price that is hashed, compared or paid is an integer.

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};

/// A non-negative amount of money in cents, at most 42,949,672.95 dollars.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct Price(pub u32);

impl Price {
    /// Returns the amount in cents.
    pub fn cents(self) -> u32 {
        self.0
    }

    /// Returns `self - other` in cents, which may be negative.
    pub fn minus(self, other: Price) -> i64 {
        i64::from(self.0) - i64::from(other.0)
    }

    /// Reads an amount such as `$1,123.50`, `1123.5` or `1123`.
    ///
    /// # Errors
    /// Anything but digits, thousands commas in groups of three, at most two decimals and
    /// one optional leading dollar sign; more than `u32::MAX` cents.
    pub fn parse(text: &str) -> Result<Price, PriceError> {
        let error = |reason| PriceError { text: text.to_owned(), reason };
        let digits = text.strip_prefix('$').unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if digits.ends_with('.') || fraction.len() > 2 || !all_digits(fraction) {
            return Err(error("needs at most two decimals"));
        }
        let dollars = parse_whole(whole).ok_or_else(|| error("not an amount in dollars"))?;
        let cents = match fraction.len() {
            0 => 0,
            1 => parse_digits(fraction) * 10,
            _ => parse_digits(fraction),
        };
        let total = dollars.checked_mul(100).and_then(|whole_cents| whole_cents.checked_add(cents));
        match total.map(u32::try_from) {
            Some(Ok(cents)) => Ok(Price(cents)),
            _ => Err(error("more than $42,949,672.95")),
        }
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}.{:02}", self.0 / 100, self.0 % 100))
    }
}

/// Text that is not an amount of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceError {
    /// What was read.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for PriceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a price: {}", self.text.escape_debug(), self.reason)
    }
}

impl std::error::Error for PriceError {}

/// The longest run of digits that is read; longer ones exceed every price.
const DIGITS_MAX: usize = 15;

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse_digits(text: &str) -> u64 {
    text.bytes().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'))
}

fn parse_whole(text: &str) -> Option<u64> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let grouped = rest.is_empty() || first.len() <= 3;
    let threes = rest.iter().all(|group| group.len() == 3);
    let joined: String = std::iter::once(first).chain(rest).collect();
    let readable = !first.is_empty() && joined.len() <= DIGITS_MAX && all_digits(&joined);
    (grouped && threes && readable).then(|| parse_digits(&joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_the_catalog_are_read_to_the_cent() {
        for (text, cents) in
            [("$1,123.50", 112_350), ("925.00", 92_500), ("$4.9", 490), ("0", 0), ("$12", 1_200)]
        {
            assert_eq!(Price::parse(text), Ok(Price(cents)), "{text}");
        }
    }

    #[test]
    fn numeric_traps_are_refused() {
        for text in [
            "",
            "$",
            "-1",
            "1.",
            "1.234",
            "1,00",
            "1000,000",
            ",100",
            "1e3",
            "NaN",
            "٣",
            "1 000",
            "99999999999",
            "42949672.96",
            "999999999999999999999999999",
            "$$1",
            "0x10",
            "1.+5",
        ] {
            assert!(Price::parse(text).is_err(), "{text}");
        }
        assert_eq!(Price::parse("42,949,672.95"), Ok(Price(u32::MAX)));
    }

    #[test]
    fn a_price_prints_as_it_is_read() {
        assert_eq!(Price(112_350).to_string(), "$1123.50");
        assert_eq!(Price::parse(&Price(7).to_string()), Ok(Price(7)));
    }
}
