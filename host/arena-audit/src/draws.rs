//! Where everything that was drawn comes from, and that nobody could choose it.
//!
//! The secret must be the one that was committed to before the first match, the contributions
//! those of the announcement, the beacon's round the announced one and signed by its chain. From
//! them follow the root of all draws and the catalog.
//!
//! Not here: what is drawn from the root (`matches`).

use std::collections::BTreeSet;

use arena_core::catalog::{Budget, Catalog, synthetic, uniform};
use arena_core::config::CatalogKind;
use arena_core::draws::{CommittedDraws, Draws, commit_contribution, commit_secret, master};
use arena_core::entry::{DrawEntry, Reveal};
use arena_core::hexadecimal::hex;
use arena_core::seed::Root;

use crate::announcement::Announced;
use crate::beacon;
use crate::sightings::{self, Sighting};
use crate::submissions;
use crate::verdict::{Finding, Findings, Verdict, count, shorten};

/// Why what is withheld cannot be checked.
pub(crate) const WITHHELD: &str = "withheld until the close";

/// What the log holds besides the announcement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    pub draw: Option<&'a DrawEntry>,
    pub reveal: Option<&'a Reveal>,
    /// The index of the last entry, where the reveal is.
    pub last: u64,
    /// What trusted witnesses say of the log's heads.
    pub sightings: &'a [Sighting],
}

/// Returns the root of the draws, as far as it is shown.
pub(crate) fn root(announced: &Announced, shown: Shown<'_>) -> Option<Root> {
    match &announced.announcement.draws {
        Draws::PublicSeed(seed) => Some(Root::Seed(*seed)),
        Draws::Committed(_) => {
            let secret = shown.reveal?.secret?;
            Some(master(&secret, announced.id, shown.draw))
        }
    }
}

/// Checks secret, contributions and beacon.
pub(crate) fn check(announced: &Announced, shown: Shown<'_>) -> Verdict {
    let mut found = Findings::default();
    match &announced.announcement.draws {
        Draws::PublicSeed(seed) => {
            if let Some(reveal) = shown.reveal.filter(|reveal| reveal.secret.is_some()) {
                let secret = reveal.secret.map_or(String::new(), |secret| hex(&secret));
                let what = "the secret of a public seed";
                found.add(Finding::new(what, secret, "none").at(shown.last));
            }
            found.or_verified(format!(
                "the seed {seed} was public from the start: anyone could predict every draw"
            ))
        }
        Draws::Committed(committed) => {
            if announced.config.seed.is_some() {
                let what = "the draws of a tournament file with a seed";
                found.add(Finding::new(what, "a committed secret", "the seed").at(0));
            }
            check_announced(&mut found, announced, committed);
            if let Some(draw) = shown.draw {
                check_draw(&mut found, committed, draw);
            }
            let seen = sightings::about_round(announced, shown.sightings);
            let seen = seen.unwrap_or_else(|finding| {
                found.add(finding);
                String::new()
            });
            match shown.reveal {
                None => found.or_not_checked(format!("the secret is {WITHHELD}")),
                Some(reveal) => {
                    found.check(check_secret(committed, reveal, shown.last));
                    found.or_verified(detail(committed, shown.draw, seen))
                }
            }
        }
    }
}

fn check_announced(found: &mut Findings, announced: &Announced, committed: &CommittedDraws) {
    let round = committed.beacon.map(|beacon| beacon.round);
    if round != announced.config.beacon_round {
        let shown = |round: Option<u64>| round.map_or("none".to_owned(), |round| round.to_string());
        let (is, should) = (shown(round), shown(announced.config.beacon_round));
        found.add(Finding::new("the announced round of the beacon", is, should).at(0));
    }
    // One that is nobody's could be opened or left out, once the round is known, as it suits.
    let stated = submissions::contributions(&announced.announcement);
    for contribution in committed.contributions.iter().filter(|one| !stated.contains(*one)) {
        let what = "an announced contribution";
        found.add(Finding::new(what, hex(contribution), "one that an author states").at(0));
    }
    let different: BTreeSet<&[u8; 32]> = committed.contributions.iter().collect();
    if different.len() != committed.contributions.len() {
        let what = "different contributions";
        found.add(Finding::new(what, different.len(), committed.contributions.len()).at(0));
    }
}

fn check_draw(found: &mut Findings, committed: &CommittedDraws, draw: &DrawEntry) {
    if draw.contributions.len() != committed.contributions.len() {
        let (is, should) = (draw.contributions.len(), committed.contributions.len());
        found.add(Finding::new("the number of contributions", is, should).at(1));
    }
    for (place, (opened, commitment)) in
        draw.contributions.iter().zip(&committed.contributions).enumerate()
    {
        let Some(opened) = opened else { continue };
        let is = commit_contribution(opened);
        if is != *commitment {
            let what = format!("the commitment of contribution {place}");
            found.add(Finding::new(what, hex(&is), hex(commitment)).at(1));
        }
    }
    match (&committed.beacon, &draw.beacon) {
        (None, None) => {}
        (Some(announced), Some(value)) => {
            found.check(beacon::check(announced, value).map_err(|finding| finding.at(1)));
        }
        (announced, value) => {
            let said = |is: bool| if is { "a round" } else { "none" };
            let (is, should) = (said(value.is_some()), said(announced.is_some()));
            found.add(Finding::new("the beacon", is, should).at(1));
        }
    }
}

fn check_secret(committed: &CommittedDraws, reveal: &Reveal, last: u64) -> Result<(), Finding> {
    let what = "the commitment of the revealed secret";
    let wanted = hex(&committed.secret_commitment);
    match reveal.secret.as_ref().map(commit_secret) {
        Some(is) if is == committed.secret_commitment => Ok(()),
        Some(is) => Err(Finding::new(what, hex(&is), wanted).at(last)),
        None => Err(Finding::new(what, "no secret", wanted).at(last)),
    }
}

fn detail(committed: &CommittedDraws, draw: Option<&DrawEntry>, seen: String) -> String {
    let mut parts = vec!["the revealed secret is the committed one".to_owned()];
    if let Some(draw) = draw.filter(|draw| !draw.contributions.is_empty()) {
        let (opened, of) = (draw.contributions.iter().flatten().count(), draw.contributions.len());
        parts.push(format!("{opened} of {of} contributions were opened"));
        if opened < of {
            let left_out = of - opened;
            parts.push(format!("leaving {left_out} out was a choice among 2^{left_out} draws"));
        }
    }
    match committed.beacon {
        Some(beacon) => parts.push(match beacon::round_time(beacon.round) {
            Some(time) => format!(
                "round {} of quicknet, which came out {time} seconds after 1970, is mixed in",
                beacon.round
            ),
            None => format!("round {} of quicknet is mixed in", beacon.round),
        }),
        None if committed.contributions.is_empty() => {
            parts.push("the organiser alone chose it, and could try several".to_owned());
        }
        None => {}
    }
    parts.extend(Some(seen).filter(|seen| !seen.is_empty()));
    parts.join("; ")
}

/// The items of a tournament, and what is to be said of them.
#[derive(Debug)]
pub(crate) struct Items {
    /// Items with the announced hash, if any are at hand.
    pub catalog: Option<Catalog>,
    /// Whether they are those that the tournament file leads to.
    pub verdict: Verdict,
}

/// Makes the catalog again, or selects it from the one that the auditor `imported`, or else
/// reads the one that the log brings, and compares its hash with the announced one.
///
/// What was `found` of the published file before goes into the verdict.
pub(crate) fn catalog(
    announced: &Announced,
    shown: Shown<'_>,
    imported: Option<&Catalog>,
    published: Option<&[u8]>,
    mut found: Findings,
) -> Items {
    let brought = published.map(Catalog::decode);
    let brought = match brought {
        None => None,
        Some(Ok(catalog)) => Some(catalog),
        Some(Err(error)) => {
            found.add(Finding::new("the published catalog", error, "a catalog"));
            None
        }
    };
    let draws = &announced.announcement.draws;
    let secret = shown.reveal.and_then(|reveal| reveal.secret);
    if matches!(draws, Draws::Committed(_)) && secret.is_none() {
        let verdict = found.or_not_checked(format!("the secret is {WITHHELD}"));
        return Items { catalog: fitting(announced, brought), verdict };
    }
    let root = draws.catalog_root(secret.as_ref());
    let whole = match (&announced.config.catalog.kind, imported) {
        (CatalogKind::Synthetic { items, infeasible_milli }, _) => {
            Some(synthetic::generate(*items, *infeasible_milli, root))
        }
        (CatalogKind::Uniform { items, low, high }, _) => {
            Some(uniform::generate(*items, *low, *high, root))
        }
        (CatalogKind::AmazonHistoryPrice { .. }, imported) => imported.cloned(),
    };
    let Some(whole) = whole else {
        let reason = without_source(&announced.config.catalog.kind);
        return Items {
            catalog: fitting(announced, brought),
            verdict: found.or_not_checked(reason),
        };
    };
    let settings = &announced.config.catalog;
    let made = match whole.select(settings.split, settings.sample, root) {
        Ok(made) => made,
        Err(error) => {
            found.add(Finding::new("the items to play", error, "a selection"));
            return Items { catalog: fitting(announced, brought), verdict: found.or_verified("") };
        }
    };
    let (is, should) = (hex(&announced.announcement.catalog_sha256), hex(&made.sha256()));
    if is != should {
        found.add(Finding::new("the announced hash of the catalog", is, should).at(0));
        return Items { catalog: fitting(announced, brought), verdict: found.or_verified("") };
    }
    if made.entries.len() as u64 != u64::from(announced.announcement.item_count) {
        let what = "the announced number of items";
        let (is, should) = (announced.announcement.item_count, made.entries.len());
        found.add(Finding::new(what, is, should).at(0));
        return Items { catalog: None, verdict: found.or_verified("") };
    }
    let items = count(made.entries.len() as u64, "item", "items");
    let mut detail = format!("{items} of `{}`, {is}", made.name);
    let is_generated = !matches!(settings.kind, CatalogKind::AmazonHistoryPrice { .. });
    // They are announced before the round and the contributions, which they cannot depend on.
    if secret.is_some() && (is_generated || settings.sample.is_some()) {
        detail.push_str("; they follow from the organiser's secret alone, who could try several");
    }
    Items { catalog: Some(made), verdict: found.or_verified(detail) }
}

/// Says why items are not compared with where they come from.
fn without_source(kind: &CatalogKind) -> String {
    let named = match kind {
        CatalogKind::AmazonHistoryPrice { folder, .. } => {
            format!(" (folder `{}`)", shorten(folder))
        }
        _ => String::new(),
    };
    format!(
        "its source, AmazonHistoryPrice{named}, was not given: the items are only those whose \
         hash was announced"
    )
}

/// Returns a catalog that the log brings if it is the announced one and can be played.
fn fitting(announced: &Announced, brought: Option<Catalog>) -> Option<Catalog> {
    let item_count = u64::from(announced.announcement.item_count);
    let factors = matches!(announced.config.catalog.kind, CatalogKind::AmazonHistoryPrice { .. });
    brought.filter(|catalog| {
        catalog.sha256() == announced.announcement.catalog_sha256
            && catalog.entries.len() as u64 == item_count
            // Only this kind of file gives the factors that such items need.
            && (factors || catalog.entries.iter().all(|entry| entry.budget != Budget::Factor))
    })
}
