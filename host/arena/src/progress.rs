//! How a run is going, on standard error: a bar on a terminal, else a line now and then.

use std::time::{Duration, Instant};

use arena_runner::event::{Counts, RunEvent, Voiding};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::escape::escape;
use crate::render::transcript::{count, thousands};
use crate::screen;

/// Time between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Most voided pairs that are told one by one.
const VOIDS_TOLD_MAX: u64 = 20;

/// Shows the events of one run.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    told: Instant,
    matches_before: u64,
    voids_told: u64,
}

impl Progress {
    /// Starts the clock.
    pub fn new() -> Progress {
        let style = ProgressStyle::with_template(
            "{wide_bar} {human_pos}/{human_len} pairs, {msg}{eta} left",
        )
        .expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style);
        let now = Instant::now();
        Progress { bar, started: now, told: now, matches_before: 0, voids_told: 0 }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { pairs_done, pair_count } => self.start(*pairs_done, *pair_count),
            RunEvent::Progress { counts, pair_count } => self.go_on(counts, *pair_count),
            RunEvent::Voided(voiding) => self.tell_void(voiding),
            RunEvent::Finished(_) => self.bar.finish_and_clear(),
        }
    }

    /// Removes the bar, so that an error does not share its line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn start(&mut self, pairs_done: u64, pair_count: u64) {
        self.started = Instant::now();
        self.told = self.started;
        self.matches_before = pairs_done * 2;
        if pairs_done > 0 {
            let all = count(pair_count, "pair");
            screen::remark(&format!("the log holds {} of {all}", thousands(pairs_done)));
        }
        self.bar.set_length(pair_count);
        self.bar.set_position(pairs_done);
        // Pairs of an earlier run say nothing about the speed of this one.
        self.bar.reset_eta();
    }

    fn go_on(&mut self, counts: &Counts, pair_count: u64) {
        let state = self.state(counts);
        self.bar.set_position(counts.pairs_done);
        self.bar.set_message(format!("{state}, "));
        if self.bar.is_hidden() && self.told.elapsed() >= LINE_INTERVAL {
            self.told = Instant::now();
            let (done, all) = (thousands(counts.pairs_done), count(pair_count, "pair"));
            screen::remark(&format!("{done} of {all}, {state}"));
        }
    }

    fn state(&self, counts: &Counts) -> String {
        let played = counts.match_count.saturating_sub(self.matches_before);
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = thousands(played.saturating_mul(1_000) / millis);
        format!("{rate} matches/s, {}", count(counts.fault_count(), "fault"))
    }

    fn tell_void(&mut self, voiding: &Voiding) {
        self.voids_told += 1;
        if self.voids_told > VOIDS_TOLD_MAX {
            return;
        }
        let Voiding { pair_index, attempt, reason, detail } = voiding;
        let line = format!(
            "pair {pair_index} is played again ({}, attempt {}): {}",
            reason.name(),
            attempt + 1,
            escape(detail)
        );
        self.bar.suspend(|| screen::remark(&line));
    }
}
