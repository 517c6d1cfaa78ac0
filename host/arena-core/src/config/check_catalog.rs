//! Checks the `[catalog]` table of a tournament file.

use std::ops::Range;

use toml::Spanned;

use crate::catalog::ITEMS_MAX;

use super::check::Checked;
use super::error::Mistake;
use super::parse::{Factor, RawCatalog, RawCatalogKind};
use super::values::{check_path, milli, number, price};
use super::{BUDGET_FACTOR_MILLI_MAX, CatalogConfig, CatalogKind, Split};

/// Share of synthetic items without a possible deal where the file says nothing.
const INFEASIBLE_MILLI: u32 = 150;
/// Budget factor of the AmazonHistoryPrice products where the file says nothing.
const BUDGET_FACTOR_MILLI: u32 = 800;

pub(super) fn check_catalog(given: &Spanned<RawCatalog>) -> Checked<CatalogConfig> {
    let raw = given.get_ref();
    check_catalog_keys(raw)?;
    let required = |key: &str| {
        let message = format!("missing key `{key}`");
        let hint = format!("kind `{}` needs it", raw.kind.name());
        Mistake::at(given.span(), message).hint(hint)
    };
    let items = || {
        let items = raw.items.as_ref().ok_or_else(|| required("items"))?;
        number(items, 1..=ITEMS_MAX)
    };
    let kind = match raw.kind {
        RawCatalogKind::Synthetic => CatalogKind::Synthetic {
            items: items()?,
            infeasible_milli: match &raw.infeasible_share {
                None => INFEASIBLE_MILLI,
                Some(share) => milli(*share.get_ref(), share.span(), 0..=1_000)?,
            },
        },
        RawCatalogKind::Uniform => {
            let items = items()?;
            let low = price(raw.low.as_ref().ok_or_else(|| required("low"))?)?;
            let high_given = raw.high.as_ref().ok_or_else(|| required("high"))?;
            let high = price(high_given)?;
            if low >= high {
                let message = format!("`{high}` is not above `low`, which is `{low}`");
                return Err(Mistake::at(high_given.span(), message));
            }
            CatalogKind::Uniform { items, low, high }
        }
        RawCatalogKind::AmazonHistoryPrice => CatalogKind::AmazonHistoryPrice {
            folder: check_path(raw.folder.as_ref().ok_or_else(|| required("folder"))?)?,
            budget_factor_milli: match &raw.budget_factor {
                None => [BUDGET_FACTOR_MILLI; 2],
                Some(factor) => check_factor(factor)?,
            },
        },
    };
    let split = raw.split.map_or(Split::All, Split::from);
    let sample = match &raw.sample {
        None => None,
        Some(sample) => Some(check_sample(sample, &kind, split)?),
    };
    Ok(CatalogConfig { kind, split, sample })
}

/// Checks a sample against what it is drawn from, as far as the file alone tells.
fn check_sample(given: &Spanned<i128>, kind: &CatalogKind, split: Split) -> Checked<u32> {
    let sample = number(given, 1..=ITEMS_MAX)?;
    let (CatalogKind::Synthetic { items, .. } | CatalogKind::Uniform { items, .. }) = kind else {
        return Ok(sample);
    };
    if split == Split::All && sample > *items {
        let message = format!("a sample of `{sample}` cannot be drawn from `{items}` items");
        return Err(Mistake::at(given.span(), message));
    }
    Ok(sample)
}

/// Refuses keys that would have no effect on the chosen kind of catalog.
fn check_catalog_keys(raw: &RawCatalog) -> Checked<()> {
    let span = |given: Option<Range<usize>>, key, kinds: &'static [RawCatalogKind]| {
        given.map(|span| (span, key, kinds))
    };
    use RawCatalogKind::{AmazonHistoryPrice, Synthetic, Uniform};
    let given = [
        span(raw.items.as_ref().map(Spanned::span), "items", &[Synthetic, Uniform]),
        span(raw.infeasible_share.as_ref().map(Spanned::span), "infeasible_share", &[Synthetic]),
        span(raw.low.as_ref().map(Spanned::span), "low", &[Uniform]),
        span(raw.high.as_ref().map(Spanned::span), "high", &[Uniform]),
        span(raw.folder.as_ref().map(Spanned::span), "folder", &[AmazonHistoryPrice]),
        span(raw.budget_factor.as_ref().map(Spanned::span), "budget_factor", &[AmazonHistoryPrice]),
    ];
    for (span, key, kinds) in given.into_iter().flatten() {
        if !kinds.contains(&raw.kind) {
            let message = format!("`{key}` has no effect on kind `{}`", raw.kind.name());
            let names: Vec<String> =
                kinds.iter().map(|kind| format!("`{}`", kind.name())).collect();
            let hint = format!("it belongs to kind {}", names.join(" and "));
            return Err(Mistake::at(span, message).hint(hint));
        }
    }
    Ok(())
}

fn check_factor(given: &Spanned<Factor>) -> Checked<[u32; 2]> {
    let Factor { low, high } = given.get_ref();
    let low = milli(*low, given.span(), 1..=BUDGET_FACTOR_MILLI_MAX)?;
    let high = milli(*high, given.span(), 1..=BUDGET_FACTOR_MILLI_MAX)?;
    if low > high {
        let message = "the range runs from high to low".to_owned();
        return Err(Mistake::at(given.span(), message));
    }
    Ok([low, high])
}
