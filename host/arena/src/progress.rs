//! How a run is going, on standard error: a bar on a terminal, else a line now and then.
//!
//! Matches of language models take minutes, so that a thread of its own tells what the models do
//! while no match ends.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arena_runner::event::{Counts, RunEvent, Voiding};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::escape::escape;
use crate::render::transcript::{count, thousands};
use crate::screen;

/// Time between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two looks at what models do.
const TICK: Duration = Duration::from_secs(1);
/// Most voided pairs that are told one by one.
const VOIDS_TOLD_MAX: u64 = 20;

/// What the models of a run have done since they were loaded, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Those that were there already.
    pub cached_tokens: u64,
    /// Those that were computed, some of them more than once.
    pub computed_tokens: u64,
    /// Tokens of replies.
    pub output_tokens: u64,
    /// Steps: batches that were computed.
    pub steps: u64,
    /// Dialogues in all steps together.
    pub sequences: u64,
    /// Most dialogues that a step can have.
    pub slots: u64,
    /// Dialogues that lost their place in the cache to others, and were computed again.
    pub preemptions: u64,
}

/// Reads the meters of the models.
pub type Meter = Box<dyn Fn() -> Reading + Send>;

/// Shows the events of one run.
pub struct Progress {
    state: Arc<Mutex<State>>,
    ticker: Option<Ticker>,
}

struct State {
    bar: ProgressBar,
    started: Instant,
    told: Instant,
    matches_before: u64,
    voids_told: u64,
    counts: Counts,
    pair_count: u64,
    models: Option<Models>,
}

/// What is known of the models, and since when.
struct Models {
    meter: Meter,
    before: Reading,
    read: Instant,
    shown: String,
}

/// A thread that looks at the models until it is dropped.
struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the clock. `meter` is there if models are computed in this program.
    pub fn new(meter: Option<Meter>) -> Progress {
        let style = ProgressStyle::with_template(
            "{wide_bar} {human_pos}/{human_len} pairs, {msg}{eta} left",
        )
        .expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style);
        let now = Instant::now();
        let models =
            meter.map(|meter| Models { before: meter(), meter, read: now, shown: String::new() });
        let is_ticking = models.is_some();
        let state = Arc::new(Mutex::new(State {
            bar,
            started: now,
            told: now,
            matches_before: 0,
            voids_told: 0,
            counts: Counts::default(),
            pair_count: 0,
            models,
        }));
        let ticker = is_ticking.then(|| Ticker::start(Arc::clone(&state))).flatten();
        Progress { state, ticker }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &RunEvent) {
        let mut state = lock(&self.state);
        match event {
            RunEvent::Started { pairs_done, pair_count, matches_done } => {
                state.start(*pairs_done, *pair_count, *matches_done);
            }
            RunEvent::Progress { counts, .. } => {
                state.counts = *counts;
                state.tell();
            }
            RunEvent::Voided(voiding) => state.tell_void(voiding),
            RunEvent::Finished(_) => state.bar.finish_and_clear(),
        }
    }

    /// Removes the bar, so that an error does not share its line.
    pub fn clear(&mut self) {
        self.ticker = None;
        lock(&self.state).bar.finish_and_clear();
    }
}

/// A view that panicked elsewhere is still a view.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ticker {
    /// Starts the thread; where the system has none to give, nothing ticks.
    fn start(state: Arc<Mutex<State>>) -> Option<Ticker> {
        let (stop, stopped) = mpsc::channel();
        let tick = move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let mut state = lock(&state);
                if !state.bar.is_finished() && state.pair_count > 0 {
                    state.look();
                    state.tell();
                }
            }
        };
        let thread = thread::Builder::new().name("arena-progress".to_owned()).spawn(tick).ok()?;
        Some(Ticker { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    fn start(&mut self, pairs_done: u64, pair_count: u64, matches_done: u64) {
        self.started = Instant::now();
        self.told = self.started;
        self.matches_before = matches_done;
        self.counts = Counts { pairs_done, match_count: matches_done, ..Counts::default() };
        self.pair_count = pair_count;
        if pairs_done > 0 {
            let all = count(pair_count, "pair");
            screen::remark(&format!("the log holds {} of {all}", thousands(pairs_done)));
        }
        self.bar.set_length(pair_count);
        self.bar.set_position(pairs_done);
        // Pairs of an earlier run say nothing about the speed of this one.
        self.bar.reset_eta();
    }

    /// Reads the meters. Rates are those since the last line, or the last look on a terminal.
    fn look(&mut self) {
        let is_due = !self.bar.is_hidden() || self.told.elapsed() >= LINE_INTERVAL;
        if let Some(models) = self.models.as_mut().filter(|_| is_due) {
            models.look();
        }
    }

    fn tell(&mut self) {
        let state = self.describe();
        self.bar.set_position(self.counts.pairs_done);
        self.bar.set_message(format!("{state}, "));
        if self.bar.is_hidden() && self.told.elapsed() >= LINE_INTERVAL {
            self.told = Instant::now();
            let (done, all) = (thousands(self.counts.pairs_done), count(self.pair_count, "pair"));
            screen::remark(&format!("{done} of {all}, {state}"));
        }
    }

    fn describe(&self) -> String {
        let faults = count(self.counts.fault_count(), "fault");
        match &self.models {
            Some(models) => {
                let matches = count(self.counts.match_count, "match");
                format!("{matches}, {faults}{}", models.shown)
            }
            None => {
                let played = self.counts.match_count.saturating_sub(self.matches_before);
                format!("{} matches/s, {faults}", thousands(per_second(played, self.started)))
            }
        }
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

impl Models {
    fn look(&mut self) {
        let now = (self.meter)();
        self.shown = describe(&self.before, &now, self.read);
        (self.before, self.read) = (now, Instant::now());
    }
}

/// Says what models did between two readings, the first of which was at `since`.
fn describe(before: &Reading, now: &Reading, since: Instant) -> String {
    let written = now.output_tokens.saturating_sub(before.output_tokens);
    let computed = now.computed_tokens.saturating_sub(before.computed_tokens);
    let steps = now.steps.saturating_sub(before.steps);
    let sequences = now.sequences.saturating_sub(before.sequences);
    // Over the whole run: what is cached hangs on where in their dialogues matches are.
    let prompts = now.prompt_tokens;
    format!(
        "; {} tokens/s written, {} read; {} of {} slots; {} of prompts cached; {} preempted",
        thousands(per_second(written, since)),
        thousands(per_second(computed, since)),
        tenths(sequences, steps),
        now.slots,
        match prompts {
            0 => "-".to_owned(),
            _ => format!("{}%", now.cached_tokens * 100 / prompts),
        },
        thousands(now.preemptions),
    )
}

fn per_second(number: u64, since: Instant) -> u64 {
    let millis = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    number.saturating_mul(1_000) / millis
}

/// Returns a mean with one decimal.
fn tenths(sum: u64, number: u64) -> String {
    match number {
        0 => "0".to_owned(),
        _ => format!("{}.{}", sum / number, sum * 10 / number % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_did_is_told_in_rates_and_means() {
        let before = Reading { output_tokens: 100, slots: 64, ..Reading::default() };
        let now = Reading {
            prompt_tokens: 1_000,
            cached_tokens: 700,
            computed_tokens: 350,
            output_tokens: 100,
            steps: 10,
            sequences: 315,
            slots: 64,
            preemptions: 2,
        };
        let told = describe(&before, &now, Instant::now());
        assert!(told.starts_with("; 0 tokens/s written, "), "{told}");
        assert!(told.ends_with("31.5 of 64 slots; 70% of prompts cached; 2 preempted"), "{told}");
    }

    #[test]
    fn models_that_did_nothing_yet_divide_by_nothing() {
        let told = describe(&Reading::default(), &Reading::default(), Instant::now());
        assert!(told.contains("0 of 0 slots; - of prompts cached"), "{told}");
    }
}
