//! Checks single values of a tournament file: names, paths, prices, numbers.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;

use crate::catalog::PRICE_CENTS_MAX;
use crate::entry::ORIGIN_BYTES_MAX;
use crate::hexadecimal::unhex;
use crate::price::Price;

use super::check::Checked;
use super::error::Mistake;
use super::parse::{Decimal, Given};
use super::{NAME_BYTES_MAX, PATH_BYTES_MAX};

/// Returns whether a text can be the name of a tournament, an agent or a model: up to
/// [`NAME_BYTES_MAX`] letters, digits, `-`, `_` and `.`.
pub fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

pub(super) fn check_name(given: &Spanned<String>) -> Checked<String> {
    let name = given.get_ref();
    if !is_name(name) {
        let message = format!("`{}` is not a name", name);
        let hint = format!("1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`");
        return Err(Mistake::at(given.span(), message).hint(hint));
    }
    Ok(name.clone())
}

pub(super) fn check_path(given: &Spanned<String>) -> Checked<String> {
    check_length(given, 1..=PATH_BYTES_MAX)?;
    let path = given.get_ref();
    if path.contains('\0') {
        return Err(Mistake::at(given.span(), "a path holds no zero byte".to_owned()));
    }
    Ok(path.clone())
}

/// Returns whether a text can be the origin of a log, and so the name of its key: printable
/// ASCII without space and `+`.
pub fn is_origin(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'+';
    (1..=ORIGIN_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

pub(super) fn check_origin(given: &Spanned<String>) -> Checked<String> {
    let origin = given.get_ref();
    if is_origin(origin) {
        return Ok(origin.clone());
    }
    let message = format!("`{}` is not an origin", origin.escape_debug());
    let hint = format!(
        "a URL without its scheme, such as `arena.example/2027-spring`: 1 to {ORIGIN_BYTES_MAX} \
         printable ASCII characters, no space and no `+`"
    );
    Err(Mistake::at(given.span(), message).hint(hint))
}

/// Reads a SHA-256.
pub(super) fn check_digest(given: &Spanned<String>) -> Checked<[u8; 32]> {
    unhex(given.get_ref()).ok_or_else(|| {
        Mistake::at(given.span(), format!("`{}` is no SHA-256", given.get_ref()))
            .hint("64 hexadecimal digits, in lower case".to_owned())
    })
}

pub(super) fn check_length(given: &Spanned<String>, range: RangeInclusive<usize>) -> Checked<()> {
    let bytes = given.get_ref().len();
    if range.contains(&bytes) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(Mistake::at(given.span(), format!("`{bytes}` bytes, not `{low}` to `{high}`")))
}

pub(super) fn price(given: &Spanned<String>) -> Checked<Price> {
    let price = Price::parse(given.get_ref())
        .map_err(|error| Mistake::at(given.span(), error.to_string()))?;
    if price.cents() > PRICE_CENTS_MAX {
        let message = format!("`{price}` is above `{}`", Price(PRICE_CENTS_MAX));
        return Err(Mistake::at(given.span(), message));
    }
    Ok(price)
}

/// Reads a number with at most three decimals as thousandths.
pub(super) fn milli(
    value: Decimal,
    span: Range<usize>,
    range: RangeInclusive<u32>,
) -> Checked<u32> {
    value.milli(*range.end()).filter(|milli| range.contains(milli)).ok_or_else(|| {
        let [low, high] = [range.start(), range.end()].map(|milli| f64::from(*milli) / 1_000.0);
        let message =
            format!("`{value}` is not from `{low}` to `{high}` with three decimals at most");
        Mistake::at(span, message)
    })
}

pub(super) fn number<T>(given: &Spanned<i128>, range: RangeInclusive<T>) -> Checked<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    let value = *given.get_ref();
    match T::try_from(value) {
        Ok(narrow) if range.contains(&narrow) => Ok(narrow),
        _ => {
            let (low, high) = (range.start(), range.end());
            Err(Mistake::at(given.span(), format!("`{value}` is not from `{low}` to `{high}`")))
        }
    }
}

pub(super) fn number_or<T>(given: &Given<i128>, range: RangeInclusive<T>, default: T) -> Checked<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    given.as_ref().map_or(Ok(default), |given| number(given, range))
}
