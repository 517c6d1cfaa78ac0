//! Everything that a tournament's log says, as values: who played, who did how well and how
//! sure that is.
//!
//! A report is a function of the announcement and the pairs alone. It holds no layout, and no
//! NaN: what has no value is `None`, which JSON shows as null and tables as `-`. Columns stand
//! side by side; there is no composite. Agents are named by their place in the announcement.

mod warnings;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::announcement::Announcement;
use crate::config::{CatalogKind, TournamentConfig};
use crate::draws::Draws;
use crate::fault::{Fault, VoidReason};
use crate::hexadecimal::hex;
use crate::scenario::Role;
use crate::statistics::Tally;
use crate::statistics::bootstrap::Estimate;
use crate::statistics::compare::{SIGNIFICANCE, groups, holm, letter};
use crate::statistics::inference::{AgentEstimates, Fragility, Rating};
use crate::statistics::metric::{Mean, Metric, Metrics};
use crate::statistics::reference::{References, SECOND_BEST_UNIFORM};

/// How a report is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// Resamples per interval, at most [`crate::statistics::bootstrap::RESAMPLES_MAX`]; with 0
    /// there are no intervals.
    pub resamples: u32,
}

impl Default for ReportOptions {
    fn default() -> ReportOptions {
        ReportOptions { resamples: 1_000 }
    }
}

/// A tournament's result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was played.
    pub header: Header,
    /// One row per agent, best mean reward first.
    pub rows: Vec<Row>,
    /// Mean rewards of rows against columns, both in the order of `rows`; `None` where they
    /// never met.
    pub head_to_head: Vec<Vec<Option<Meeting>>>,
    /// Every two agents that played, by rank: who is ahead, and whether that is more than luck.
    /// Only two of one side where candidates take one role only.
    pub comparisons: Vec<Comparison>,
    /// Agents that cannot be told apart, best first; one agent may stand in several.
    pub groups: Vec<Group>,
    /// What the side of the table is worth.
    pub role_effect: RoleEffect,
    /// How many pairs the first place hangs on; `None` with fewer than two agents that played, on
    /// the candidates' side where candidates take one role only.
    pub fragility: Option<Fragility>,
    /// Lines to read the means against.
    pub references: References,
    /// What a reader should know before trusting the rest.
    pub warnings: Vec<String>,
}

/// What was played.
#[derive(Clone, Debug, Serialize)]
pub struct Header {
    /// The tournament's name.
    pub tournament: String,
    /// The public seed of every draw; `None` where the draws come from a committed secret.
    pub seed: Option<u64>,
    /// How many agents were announced.
    pub agent_count: usize,
    /// How many items the catalog has.
    pub item_count: u32,
    /// How many pairs are scheduled.
    pub pair_count: u64,
    /// How many pairs are in this report.
    pub pairs_played: u64,
    /// How many matches those are.
    pub matches_played: u64,
    /// How many blocks the pairs were resampled in; see [`crate::statistics`].
    pub block_count: usize,
    /// Voided pairs because a model provider failed.
    pub voids_model_provider: u64,
    /// Voided pairs because the host failed.
    pub voids_host: u64,
}

/// One agent.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The place in the table, from 1.
    pub rank: usize,
    /// The place in the announcement, from 0.
    pub agent: u16,
    /// The label.
    pub name: String,
    /// The component's SHA-256 in hexadecimal: the identity.
    pub component_sha256: String,
    /// Seats taken: matches played, where one against itself counts twice.
    pub match_count: u64,
    /// The letters of the groups that the agent stands in: agents that share a letter cannot be
    /// told apart. Empty without a match.
    pub group_letters: String,
    /// The headline numbers with intervals.
    pub estimates: AgentEstimates,
    /// Bradley-Terry strength in points: 400 are odds of ten to one, 0 is the field's mean.
    pub rating: Estimate,
    /// All metrics over both roles.
    pub metrics: Metrics,
    /// All metrics as buyer.
    pub buyer: Metrics,
    /// All metrics as seller.
    pub seller: Metrics,
    /// Matches lost by fault.
    pub faults: Vec<FaultCount>,
    /// Matches ended by a penalised move of this agent.
    pub violations: u64,
}

/// How many matches an agent lost by one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FaultCount {
    /// The fault.
    pub fault: Fault,
    /// Matches; at least 1, as faults that never happened are left out.
    pub count: u64,
}

/// How one agent did against another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Meeting {
    /// Matches between the two.
    pub match_count: u64,
    /// Mean reward over both roles.
    pub reward: f64,
    /// Mean reward as buyer.
    pub as_buyer: Option<f64>,
    /// Mean reward as seller.
    pub as_seller: Option<f64>,
}

/// The difference between two agents' mean rewards.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The agent with the better rank.
    pub ahead: u16,
    /// The agent with the worse rank.
    pub behind: u16,
    /// Mean reward of the first minus that of the second; at least 0.
    pub difference: f64,
    /// Its standard error, paired on blocks.
    pub standard_error: Option<f64>,
    /// The p-value of this comparison alone.
    pub p: f64,
    /// The p-value after Holm's correction for all comparisons of the table.
    pub p_holm: f64,
    /// Whether the corrected p-value is at most [`SIGNIFICANCE`].
    pub differ: bool,
}

/// Agents on consecutive ranks of which no two differ significantly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Its letter in the rows.
    pub letter: String,
    /// The agents, best first.
    pub agents: Vec<u16>,
}

/// What the side of the table is worth, two ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoleEffect {
    /// Mean reward of buyers minus mean reward of sellers.
    pub buyer_reward_lead: Estimate,
    /// What buying adds to a strength, in points. Ratings have it taken out.
    pub buyer_points: Estimate,
}

impl Report {
    /// Makes the report of the pairs in `tally`, which numbers agents as `announcement` does.
    ///
    /// # Panics
    /// If the tally was made for another number of agents.
    pub fn build(announcement: &Announcement, tally: &Tally, options: &ReportOptions) -> Report {
        assert_eq!(
            tally.agents().len(),
            announcement.agents.len(),
            "a tally numbers agents as the announcement does"
        );
        let resamples = tally.resamples(options.resamples);
        let rating = tally.rating(&resamples);
        let mut rows = rows(announcement, tally, &tally.estimates(&resamples), &rating);
        let sides = sides(tally, &rows);
        let comparisons = comparisons(tally, &sides);
        let groups = groups_of(&sides, &comparisons);
        for row in &mut rows {
            let own = groups.iter().filter(|group| group.agents.contains(&row.agent));
            row.group_letters = own.map(|group| group.letter.as_str()).collect();
        }
        Report {
            header: header(announcement, tally),
            head_to_head: head_to_head(tally, &rows),
            comparisons,
            groups,
            role_effect: RoleEffect {
                buyer_reward_lead: tally.role_gap(&resamples),
                buyer_points: rating.buyer_points,
            },
            fragility: sides.first().and_then(|ranked| tally.fragility(ranked)),
            references: tally.references(second_best(announcement)),
            warnings: warnings::collect(announcement, tally, &rating),
            rows,
        }
    }

    /// Returns the report as one JSON document that leaves nothing out: what is published as
    /// `results.json`, byte for byte. `complete` says whether the log has its close.
    ///
    /// Keys stand in the order of the fields here, whatever else is built into the program.
    pub fn document(&self, complete: bool) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            complete: bool,
            report: &'a Report,
        }
        let mut text = serde_json::to_string_pretty(&Document { complete, report: self })
            .expect("a report has no maps with odd keys");
        text.push('\n');
        text
    }
}

fn header(announcement: &Announcement, tally: &Tally) -> Header {
    Header {
        tournament: announcement.name.clone(),
        seed: match announcement.draws {
            Draws::PublicSeed(seed) => Some(seed),
            Draws::Committed(_) => None,
        },
        agent_count: announcement.agents.len(),
        item_count: announcement.item_count,
        pair_count: announcement.pair_count,
        pairs_played: tally.pair_count(),
        matches_played: tally.match_count(),
        block_count: tally.blocks_present(),
        voids_model_provider: tally.void_count(VoidReason::ModelProvider),
        voids_host: tally.void_count(VoidReason::Host),
    }
}

fn rows(
    announcement: &Announcement,
    tally: &Tally,
    estimates: &[AgentEstimates],
    rating: &Rating,
) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(announcement.agents.len());
    for (agent, (entry, sums)) in (0_u16..).zip(announcement.agents.iter().zip(tally.agents())) {
        let metrics = sums.both_roles();
        let faults = Fault::ALL
            .into_iter()
            .map(|fault| FaultCount { fault, count: sums.faults[fault as usize] });
        rows.push(Row {
            rank: 0,
            agent,
            name: entry.name.clone(),
            component_sha256: hex(&entry.component_sha256),
            match_count: metrics.mean(Metric::Reward).weight as u64,
            group_letters: String::new(),
            estimates: estimates[usize::from(agent)],
            rating: rating.points[usize::from(agent)],
            metrics,
            buyer: sums.roles[Role::Buyer.index()].clone(),
            seller: sums.roles[Role::Seller.index()].clone(),
            faults: faults.filter(|entry| entry.count > 0).collect(),
            violations: sums.violations,
        });
    }
    // Agents without a match come last; equal means stand in announcement order. The key is the
    // very number that the table shows: a sum in another order may differ in its last bit.
    let key = |row: &Row| row.estimates.reward.value.unwrap_or(f64::NEG_INFINITY);
    let side = |row: &Row| side(tally, row).unwrap_or(usize::MAX);
    rows.sort_by(|a, b| side(a).cmp(&side(b)).then(key(b).total_cmp(&key(a))));
    for (place, row) in rows.iter_mut().enumerate() {
        row.rank = place + 1;
    }
    rows
}

/// Returns which side an agent is ranked on, from 0; `None` without a match. There is one side, but
/// for tournaments in which candidates take one role only: there they are the first side, and the
/// others the second.
fn side(tally: &Tally, row: &Row) -> Option<usize> {
    if row.match_count == 0 {
        return None;
    }
    let candidates = tally.roles().of_candidates();
    let [buyer, seller] = [&row.buyer, &row.seller].map(|metrics| metrics.get(Metric::Reward));
    Some(match candidates {
        None => 0,
        Some(Role::Buyer) => usize::from(buyer.is_none()),
        Some(Role::Seller) => usize::from(seller.is_none()),
    })
}

/// Returns the agents that played, by side, best first: only within a side are they compared.
fn sides(tally: &Tally, rows: &[Row]) -> Vec<Vec<u16>> {
    let mut sides: Vec<Vec<u16>> = Vec::new();
    for row in rows {
        if let Some(place) = side(tally, row) {
            sides.resize(sides.len().max(place + 1), Vec::new());
            sides[place].push(row.agent);
        }
    }
    sides
}

fn comparisons(tally: &Tally, sides: &[Vec<u16>]) -> Vec<Comparison> {
    let pair_count = |ranked: &Vec<u16>| ranked.len() * ranked.len().saturating_sub(1) / 2;
    let mut found = Vec::with_capacity(sides.iter().map(pair_count).sum());
    let places = sides.iter().flat_map(|ranked| (0..ranked.len()).map(move |rank| (ranked, rank)));
    for (ranked, rank) in places {
        let ahead = &ranked[rank];
        for behind in &ranked[rank + 1..] {
            if let Some(difference) = tally.compare(*ahead, *behind) {
                found.push(Comparison {
                    ahead: *ahead,
                    behind: *behind,
                    difference: difference.value,
                    standard_error: difference.standard_error,
                    p: difference.p,
                    p_holm: 1.0,
                    differ: false,
                });
            }
        }
    }
    let p_values: Vec<f64> = found.iter().map(|comparison| comparison.p).collect();
    for (comparison, corrected) in found.iter_mut().zip(holm(&p_values)) {
        comparison.p_holm = corrected;
        comparison.differ = corrected <= SIGNIFICANCE;
    }
    found
}

fn groups_of(sides: &[Vec<u16>], comparisons: &[Comparison]) -> Vec<Group> {
    let differing: BTreeSet<(u16, u16)> = comparisons
        .iter()
        .filter(|comparison| comparison.differ)
        .map(|comparison| (comparison.ahead, comparison.behind))
        .collect();
    let runs = sides.iter().flat_map(|ranked| {
        let differ =
            |ahead: usize, behind: usize| differing.contains(&(ranked[ahead], ranked[behind]));
        let runs = groups(ranked.len(), &differ).into_iter();
        runs.map(|(first, last)| ranked[first..=last].to_vec())
    });
    let named = runs.enumerate().map(|(place, agents)| Group { letter: letter(place), agents });
    named.collect()
}

fn head_to_head(tally: &Tally, rows: &[Row]) -> Vec<Vec<Option<Meeting>>> {
    let order: Vec<u16> = rows.iter().map(|row| row.agent).collect();
    let against_all = |row: u16| order.iter().map(|column| meeting(tally, row, *column)).collect();
    order.iter().map(|row| against_all(*row)).collect()
}

/// Returns the second-best line where theory knows it: reserves drawn independently and
/// uniformly from one range.
fn second_best(announcement: &Announcement) -> Option<f64> {
    let config = TournamentConfig::parse(&announcement.config_toml).ok()?;
    matches!(config.catalog.kind, CatalogKind::Uniform { .. }).then_some(SECOND_BEST_UNIFORM)
}

fn meeting(tally: &Tally, row: u16, column: u16) -> Option<Meeting> {
    let as_buyer = tally.rewards_between(row, column)[Role::Buyer.index()];
    let as_seller = tally.rewards_between(column, row)[Role::Seller.index()];
    let mut both: Mean = as_buyer;
    both.merge(as_seller);
    // An agent against itself takes both seats of a match.
    let seats_per_match = if row == column { 2.0 } else { 1.0 };
    both.value().map(|reward| Meeting {
        match_count: (both.weight / seats_per_match) as u64,
        reward,
        as_buyer: as_buyer.value(),
        as_seller: as_seller.value(),
    })
}
