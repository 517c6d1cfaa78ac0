//! The tables again, from the transcripts alone.
//!
//! Not here: formulas (`arena_core::score`, `arena_core::statistics`).

use arena_core::announcement::Announcement;
use arena_core::record::{MatchRecord, VoidRecord};
use arena_core::report::{Report, ReportOptions};
use arena_core::statistics::Tally;

use crate::announcement::Announced;
use crate::folder::Folder;
use crate::verdict::{Finding, Findings, Verdict};

/// Where published tables lie.
pub const RESULTS_FILE: &str = "results.json";

/// How many bytes more than the recomputed ones are read of published tables, to name the line
/// that differs.
const MORE_BYTES_MAX: u64 = 64 << 10;

/// Returns what `results.json` must hold: the report of a finished log.
pub fn published_bytes(report: &Report) -> Vec<u8> {
    report.document(true).into_bytes()
}

/// Gathers the matches of a log, pair by pair.
#[derive(Debug)]
pub(crate) struct Results {
    tally: Tally,
    leg_count: usize,
    /// The legs of the pair that is not whole yet.
    legs: Vec<MatchRecord>,
    found: Findings,
}

impl Results {
    pub fn new(announced: &Announced) -> Results {
        let Announced { announcement, config, .. } = announced;
        let seed = announcement.draws.resampling_seed();
        let tally = Tally::new(announcement.agents.len(), config.roles, seed);
        let leg_count = usize::from(config.roles.leg_count());
        Results { tally, leg_count, legs: Vec::with_capacity(2), found: Findings::default() }
    }

    pub fn add_match(&mut self, index: u64, record: MatchRecord) {
        self.legs.push(record);
        if self.legs.len() < self.leg_count {
            return;
        }
        let added = self.tally.add_pair(&self.legs);
        self.legs.clear();
        let wrong = |error| Finding::new("the pair", error, "its legs").at(index);
        self.found.check(added.map_err(wrong));
    }

    pub fn add_void(&mut self, void: &VoidRecord) {
        self.tally.add_void(void);
    }

    /// Makes the report and compares it with the published one.
    pub fn conclude(mut self, announcement: &Announcement, folder: &Folder) -> (Report, Verdict) {
        let report = Report::build(announcement, &self.tally, &ReportOptions::default());
        let computed = published_bytes(&report);
        let most = (computed.len() as u64).saturating_add(MORE_BYTES_MAX);
        let verdict = match folder.read(RESULTS_FILE, most) {
            Ok(None) => self.found.or_not_checked(format!(
                "there is no `{RESULTS_FILE}` to compare the recomputed tables with"
            )),
            Err(finding) => {
                self.found.add(finding);
                self.found.or_verified("")
            }
            Ok(Some(bytes)) => {
                self.found.check(same_bytes(&bytes, &computed));
                self.found.or_verified(format!(
                    "`{RESULTS_FILE}` is, to the byte, what the transcripts give: {} agents, {} \
                     pairs",
                    report.rows.len(),
                    report.header.pairs_played,
                ))
            }
        };
        (report, verdict)
    }
}

/// Compares line by line, since both are laid out the same way.
fn same_bytes(published: &[u8], computed: &[u8]) -> Result<(), Finding> {
    if published == computed {
        return Ok(());
    }
    let (mut left, mut right) = (published.split(|b| *b == b'\n'), computed.split(|b| *b == b'\n'));
    let mut line_number = 0_u64;
    loop {
        line_number += 1;
        let (is, should) = (left.next(), right.next());
        if is != should {
            let shown = |line: Option<&[u8]>| match line {
                Some(line) => format!("`{}`", String::from_utf8_lossy(line).trim()),
                None => "no such line".to_owned(),
            };
            let what = format!("line {line_number}");
            return Err(Finding::new(what, shown(is), shown(should)).within(RESULTS_FILE));
        }
        assert!(is.is_some(), "texts that differ do so in a line");
    }
}
