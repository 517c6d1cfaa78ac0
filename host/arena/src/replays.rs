//! What came of running matches again, gathered into one verdict.
//!
//! A match that comes out otherwise is a finding. One that the host could not run again is
//! neither here nor there, and keeps the step from being verified.

use arena_audit::compare::compare;
use arena_audit::sample::{Sample, detection_probability};
use arena_audit::{FINDINGS_MAX, Finding, Verdict};
use arena_core::announcement::Announcement;
use arena_core::fault::VoidReason;
use arena_core::record::MatchRecord;
use arena_runner::reexecution::{Ending, Replayed};

use crate::render::transcript::{count, thousands};

/// The share of forged matches that a sample is measured by: one in a thousand.
pub const FRAUD_SHARE: f64 = 0.001;
/// How matches were chosen where all were, in one word.
pub const EVERY_MATCH: &str = "all";

/// What came of running matches again.
#[derive(Debug)]
pub struct Outcome {
    /// What it says of the log.
    pub verdict: Verdict,
    /// How much was run, if anything was.
    pub extent: Option<Extent>,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Outcome {
        Outcome { verdict, extent: None }
    }
}

/// How much was run again, and what that would have shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// How the matches were chosen, in one word.
    pub chosen: &'static str,
    /// Matches that were run.
    pub match_count: u64,
    /// Matches that the tournament has.
    pub scheduled_count: u64,
    /// Of a random sample: the probability of meeting a forged match, were [`FRAUD_SHARE`] of
    /// all forged.
    pub detection_probability: Option<f64>,
}

/// Results so far.
#[derive(Debug, Default)]
pub struct Replays {
    same_count: u64,
    findings: Vec<Finding>,
    finding_count: u64,
    voided_count: u64,
    first_voided: Option<String>,
}

impl Replays {
    /// Takes up a result.
    pub fn add(&mut self, replayed: Replayed) {
        let index = replayed.entry_index;
        match replayed.ending {
            Ending::Same => self.same_count += 1,
            Ending::Differs { recorded, again } => self.find(difference(&recorded, &again), index),
            Ending::Unreadable { detail } => {
                self.find(Finding::new("the transcript", detail, "the one that is bound"), index);
            }
            // Models are not asked, so only what is on the record can have done this.
            Ending::Voided(voided) if voided.reason == VoidReason::ModelProvider => {
                let what = format!("a recorded reply to the {}", voided.by);
                self.find(Finding::new(what, voided.detail, "one that a model can give"), index);
            }
            Ending::Voided(voided) => {
                self.voided_count += 1;
                self.first_voided
                    .get_or_insert_with(|| format!("entry {index}: {}", voided.detail));
            }
        }
    }

    /// Returns how many matches were run.
    pub fn match_count(&self) -> u64 {
        self.same_count + self.finding_count + self.voided_count
    }

    /// Says what all of it shows. `void_count` pairs of the log are voided.
    pub fn conclude(
        self,
        announcement: &Announcement,
        sample: &Sample,
        void_count: u64,
    ) -> Outcome {
        let match_count = self.match_count();
        let (chosen, detection_probability) = match sample {
            Sample::All => (EVERY_MATCH, None),
            Sample::Drawn(_) => ("drawn", Some(detection_probability(FRAUD_SHARE, match_count))),
            Sample::Agents(_) => ("top", None),
        };
        let scheduled_count = announcement.pair_count.saturating_mul(2);
        let extent = Extent { chosen, match_count, scheduled_count, detection_probability };
        let verdict = self.verdict(announcement, sample, void_count);
        Outcome { verdict, extent: Some(extent) }
    }

    fn verdict(self, announcement: &Announcement, sample: &Sample, void_count: u64) -> Verdict {
        let match_count = self.match_count();
        if self.finding_count > 0 {
            let Replays { findings, finding_count, .. } = self;
            return Verdict::Failed { findings, finding_count };
        }
        if let Some(first) = self.first_voided {
            let voided = count(self.voided_count, "match");
            let reason = format!("{voided} could not be run again on this machine: {first}");
            return Verdict::NotChecked { reason };
        }
        if match_count == 0 {
            return Verdict::NotChecked { reason: "there is no match to run again".to_owned() };
        }
        let mut detail = shown(announcement, sample, match_count);
        if !announcement.models.is_empty() {
            detail.push_str("; models were not asked, their recorded replies were given again");
        }
        if void_count > 0 {
            let pairs = count(void_count, "void");
            detail.push_str(&format!("; {pairs} left nothing to run again"));
        }
        Verdict::Verified { detail }
    }

    fn find(&mut self, finding: Finding, index: u64) {
        self.finding_count += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding.at(index));
        }
    }
}

/// Tells the first difference, and how many more there are.
fn difference(recorded: &MatchRecord, again: &MatchRecord) -> Finding {
    let differences = compare(recorded, again);
    let first = differences.first().expect("records that differ do so in a field");
    let turn = first.turn_index.map_or(String::new(), |index| format!("turn {}, ", index + 1));
    let more = match differences.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let what = format!("run again: {turn}{}{more}", first.field);
    Finding::new(what, &first.recorded, &first.again)
}

/// Says what was run, and what that would have shown.
fn shown(announcement: &Announcement, sample: &Sample, match_count: u64) -> String {
    let scheduled = announcement.pair_count.saturating_mul(2);
    let (ran, all) = (thousands(match_count), count(scheduled, "match"));
    match sample {
        Sample::All => format!(
            "re-executed all {all}: every move, talk, belief, note, metric, model request and \
             fuel figure is as recorded"
        ),
        Sample::Drawn(_) => format!(
            "re-executed {ran} of {all}: had {} of matches been forged, this would have shown it \
             with probability {}",
            percent(FRAUD_SHARE),
            percent(detection_probability(FRAUD_SHARE, match_count)),
        ),
        Sample::Agents(agents) => {
            let name = |agent: &u16| announcement.agents.get(usize::from(*agent));
            let names = agents.iter().filter_map(name).map(|agent| agent.name.as_str());
            let names: Vec<&str> = names.collect();
            format!("re-executed {ran} of {all}: every one of {}", names.join(", "))
        }
    }
}

/// Shows a share without claiming more than it is: rounded down, to a tenth near 0 and 100 %.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let needs_a_decimal = percent < 1.0 || (99.0..100.0).contains(&percent);
    match needs_a_decimal {
        true => format!("{} %", floor_tenth(percent)),
        false => format!("{:.0} %", percent.floor()),
    }
}

fn floor_tenth(percent: f64) -> String {
    // A little is added, because 0.1 % is not exactly a tenth in binary.
    let tenths = (percent * 10.0 + 1e-6).floor();
    let (whole, tenth) = ((tenths / 10.0).floor(), tenths % 10.0);
    if tenth == 0.0 { format!("{whole:.0}") } else { format!("{whole:.0}.{tenth:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_down() {
        for (share, text) in [
            (0.001, "0.1 %"),
            (0.0, "0 %"),
            (0.0999, "9 %"),
            (0.99, "99 %"),
            (0.9901, "99 %"),
            (0.9999, "99.9 %"),
            (0.5, "50 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
    }

    #[test]
    fn a_sample_of_4603_says_99_percent() {
        assert_eq!(percent(detection_probability(FRAUD_SHARE, 4_603)), "99 %");
    }
}
