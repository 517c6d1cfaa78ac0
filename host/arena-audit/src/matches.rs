//! One match: its transcript, what was drawn for it, the rules, and the limits of its seats.
//!
//! Each check is a function of the entry, the transcript and what was announced; none keeps
//! anything of a match but a count.
//!
//! Not here: the order of matches (`schedule`) and what they are worth (`results`).

use arena_core::catalog::{Catalog, draw_scenario};
use arena_core::config::TournamentConfig;
use arena_core::entry::MatchEntry;
use arena_core::hexadecimal::hex;
use arena_core::price::Price;
use arena_core::record::MatchRecord;
use arena_core::scenario::{Horizon, Scenario};
use arena_core::schedule::{PairPlan, Schedule};
use arena_core::seed::Root;
use arena_core::transcript::{Transcript, nonce};
use sha2::{Digest, Sha256};

use crate::announcement::Announced;
use crate::verdict::Finding;

/// Reads the transcript that an entry binds.
///
/// # Errors
/// It is another one, does not decode, or says something else than the entry.
pub(crate) fn transcript(entry: &MatchEntry, bytes: &[u8]) -> Result<Transcript, Finding> {
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    if hash != entry.transcript_sha256 {
        let wanted = hex(&entry.transcript_sha256);
        return Err(Finding::new("the hash of the transcript", hex(&hash), wanted));
    }
    let transcript = Transcript::decode(bytes)
        .map_err(|error| Finding::new("the transcript", error, "one in canonical form"))?;
    if transcript.tournament != entry.tournament {
        let (is, should) = (transcript.tournament, entry.tournament);
        return Err(Finding::new("the transcript's tournament", is, should));
    }
    agrees(entry, &transcript.record)?;
    Ok(transcript)
}

fn agrees(entry: &MatchEntry, record: &MatchRecord) -> Result<(), Finding> {
    let turn_count = record.turns.len() as u64;
    let place = (record.pair_index, record.leg, record.item_index, record.repetition);
    let wanted = (entry.pair_index, entry.leg, entry.item_index, entry.repetition);
    if place != wanted {
        let shown = |(pair, leg, item, repetition): (u64, u8, u32, u32)| {
            format!("leg {leg} of pair {pair}, item {item}, repetition {repetition}")
        };
        return Err(Finding::new("the transcript's match", shown(place), shown(wanted)));
    }
    if record.agents != entry.agents {
        let shown = |agents: [u16; 2]| format!("{} buys from {}", agents[0], agents[1]);
        let (is, should) = (shown(record.agents), shown(entry.agents));
        return Err(Finding::new("the transcript's agents", is, should));
    }
    if record.outcome != entry.outcome {
        return Err(Finding::new("the transcript's outcome", record.outcome, entry.outcome));
    }
    if turn_count != u64::from(entry.turn_count) {
        return Err(Finding::new("the transcript's turns", turn_count, entry.turn_count));
    }
    Ok(())
}

/// What is drawn for matches, with the last scenario: the matches on one item in one repetition
/// stand together and share it.
#[derive(Debug)]
pub(crate) struct Drawn<'a> {
    config: &'a TournamentConfig,
    schedule: &'a Schedule,
    catalog: &'a Catalog,
    root: Root,
    last: Option<((u32, u32), Scenario)>,
    seeds: Option<(PairPlan, [[u64; 2]; 2])>,
}

impl<'a> Drawn<'a> {
    pub fn new(announced: &'a Announced, catalog: &'a Catalog, root: Root) -> Drawn<'a> {
        let Announced { config, schedule, .. } = announced;
        Drawn { config, schedule, catalog, root, last: None, seeds: None }
    }

    /// Compares a match with what the draws give for it.
    ///
    /// # Errors
    /// The first value that is not the drawn one.
    pub fn check(&mut self, transcript: &Transcript) -> Result<(), Finding> {
        let record = &transcript.record;
        let address = (record.item_index, record.repetition);
        if record.leg > 1 || record.item_index as usize >= self.catalog.entries.len() {
            let wanted = format!("one of {} items", self.catalog.entries.len());
            return Err(Finding::new("the item", record.item_index, wanted));
        }
        let Drawn { config, schedule, catalog, root, .. } = *self;
        if self.last.as_ref().is_none_or(|(of, _)| *of != address) {
            let scenario = draw_scenario(config, catalog, root, address.0, address.1);
            self.last = Some((address, scenario));
        }
        if let Some((_, scenario)) = &self.last {
            same_scenario(record, scenario)?;
        }
        let mut plan = PairPlan {
            index: record.pair_index,
            agents: record.agents,
            item_index: record.item_index,
            repetition: record.repetition,
        };
        // Swapped twice, they stand as in leg 0.
        plan.agents = plan.seats(record.leg);
        if self.seeds.is_none_or(|(of, _)| of != plan) {
            self.seeds = Some((plan, schedule.seat_seeds(root, &plan)));
        }
        let seeds = self.seeds.map(|(_, seeds)| seeds[usize::from(record.leg)]);
        if let Some(seeds) = seeds.filter(|seeds| *seeds != record.seeds) {
            let shown = |seeds: [u64; 2]| format!("{} and {}", seeds[0], seeds[1]);
            return Err(Finding::new("the seats' seeds", shown(record.seeds), shown(seeds)));
        }
        let drawn = nonce(root, record.pair_index, record.leg);
        if drawn != transcript.nonce {
            let (is, should) = (hex(&transcript.nonce), hex(&drawn));
            return Err(Finding::new("the transcript's nonce", is, should));
        }
        Ok(())
    }
}

fn same_scenario(record: &MatchRecord, scenario: &Scenario) -> Result<(), Finding> {
    let prices: [(&str, Price, Price); 3] = [
        ("the list price", record.list_price, scenario.item.list_price),
        ("the buyer's budget", record.budget, scenario.budget),
        ("the seller's cost", record.cost, scenario.cost),
    ];
    if let Some((what, is, should)) = prices.into_iter().find(|(_, is, should)| is != should) {
        return Err(Finding::new(what, is, should));
    }
    if record.opener != scenario.opener {
        return Err(Finding::new("the opener", record.opener, scenario.opener));
    }
    if record.horizon != scenario.horizon {
        let shown = |horizon: Horizon| {
            let hidden = if horizon.hidden { ", hidden" } else { "" };
            format!("{} turns{hidden}", horizon.turn_limit)
        };
        let (is, should) = (shown(record.horizon), shown(scenario.horizon));
        return Err(Finding::new("the horizon", is, should));
    }
    Ok(())
}

/// Judges every move again.
///
/// # Errors
/// The first place where the record is not what the rules produce.
pub(crate) fn rules(announced: &Announced, record: &MatchRecord) -> Result<(), Finding> {
    arena_core::rules::replay(&announced.rules, record)
        .map_err(|error| Finding::new("the match by the rules", error, "one that they allow"))
}
