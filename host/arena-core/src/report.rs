//! Everything that a tournament's log says, as values: who played, who did how well and how
//! sure that is.
//!
//! A report is a function of the announcement and the pairs alone. It holds no layout, and no
//! NaN: what has no value is `None`, which JSON shows as null and tables as `-`. Columns stand
//! side by side; there is no composite.

use serde::Serialize;

use crate::entry::Announcement;
use crate::fault::{Fault, VoidReason};
use crate::scenario::Role;
use crate::statistics::Tally;
use crate::statistics::metric::{Mean, Metric, Metrics};

/// How a report is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// Resamples per interval.
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
    /// What a reader should know before trusting the rest.
    pub warnings: Vec<String>,
}

/// What was played.
#[derive(Clone, Debug, Serialize)]
pub struct Header {
    /// The tournament's name.
    pub tournament: String,
    /// The root seed in force.
    pub seed: u64,
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
    /// Matches played.
    pub match_count: u64,
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
        let _ = options;
        let rows = rows(announcement, tally);
        let order: Vec<u16> = rows.iter().map(|row| row.agent).collect();
        let head_to_head = order
            .iter()
            .map(|row| {
                order
                    .iter()
                    .map(|column| meeting(tally, *row, *column))
                    .collect()
            })
            .collect();
        let warnings = twice_entered(announcement);
        Report {
            header: header(announcement, tally),
            rows,
            head_to_head,
            warnings,
        }
    }
}

fn header(announcement: &Announcement, tally: &Tally) -> Header {
    Header {
        tournament: announcement.name.clone(),
        seed: announcement.seed,
        agent_count: announcement.agents.len(),
        item_count: announcement.item_count,
        pair_count: announcement.pair_count,
        pairs_played: tally.pair_count(),
        matches_played: tally.pair_count() * 2,
        voids_model_provider: tally.void_count(VoidReason::ModelProvider),
        voids_host: tally.void_count(VoidReason::Host),
    }
}

fn rows(announcement: &Announcement, tally: &Tally) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(announcement.agents.len());
    for (agent, (entry, sums)) in (0_u16..).zip(announcement.agents.iter().zip(tally.agents())) {
        let metrics = sums.both_roles();
        let faults = Fault::ALL.into_iter().map(|fault| FaultCount {
            fault,
            count: sums.faults[fault as usize],
        });
        rows.push(Row {
            rank: 0,
            agent,
            name: entry.name.clone(),
            component_sha256: hexadecimal(&entry.component_sha256),
            match_count: metrics.mean(Metric::Reward).weight as u64,
            metrics,
            buyer: sums.roles[Role::Buyer.index()].clone(),
            seller: sums.roles[Role::Seller.index()].clone(),
            faults: faults.filter(|entry| entry.count > 0).collect(),
            violations: sums.violations,
        });
    }
    // Agents without a match come last; equal means stand in announcement order.
    let key = |row: &Row| row.metrics.get(Metric::Reward).unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    for (place, row) in rows.iter_mut().enumerate() {
        row.rank = place + 1;
    }
    rows
}

fn meeting(tally: &Tally, row: u16, column: u16) -> Option<Meeting> {
    let as_buyer = tally.rewards_between(row, column)[Role::Buyer.index()];
    let as_seller = tally.rewards_between(column, row)[Role::Seller.index()];
    let mut both: Mean = as_buyer;
    both.merge(as_seller);
    both.value().map(|reward| Meeting {
        match_count: both.weight as u64,
        reward,
        as_buyer: as_buyer.value(),
        as_seller: as_seller.value(),
    })
}

fn twice_entered(announcement: &Announcement) -> Vec<String> {
    let mut warnings = Vec::new();
    for (place, entry) in announcement.agents.iter().enumerate() {
        let earlier = announcement.agents[..place].iter().find(|other| {
            other.component_sha256 == entry.component_sha256 && other.params == entry.params
        });
        if let Some(other) = earlier {
            warnings.push(format!(
                "agents `{}` and `{}` are the same component with the same parameters",
                other.name, entry.name
            ));
        }
    }
    warnings
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
