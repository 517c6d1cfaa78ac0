//! What a run says while it goes on: a line for each step and each evaluation, on standard error.
//!
//! Not here: what is written into the run's folder (`arena_train::metrics`).

use std::time::{Duration, Instant};

use arena_train::metrics::evaluation::Interval;
use arena_train::metrics::rows::{EvaluationRow, StepRow};

use crate::render::transcript::{count, thousands};
use crate::screen;

/// Between two lines about a warm start.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Tells how far a run has come.
pub struct Progress {
    told: Instant,
    /// Seconds of the steps since the program was started, and how many they are.
    spent: f64,
    steps_done: u32,
    step_count: u32,
}

impl Progress {
    /// Nothing is done yet, out of so many steps.
    pub fn new(step_count: u32) -> Progress {
        Progress { told: Instant::now(), spent: 0.0, steps_done: 0, step_count }
    }

    /// Tells of a step.
    pub fn step(&mut self, row: &StepRow) {
        self.steps_done += 1;
        self.spent += row.pace.seconds.unwrap_or(0.0);
        let each = Duration::from_secs_f64(self.spent / f64::from(self.steps_done));
        let left = self.step_count - row.step;
        let StepRow { step, play, learning, pace } = row;
        let speed = pace.tokens_per_second.unwrap_or(0.0);
        screen::remark(&format!(
            "step {step:>4} of {all}  reward {reward}  deals {deals}  opening {opening}  overshoot \
             {overshoot}  invalid {invalid}  entropy {entropy}  {speed} tokens/s  {seconds} s  \
             {left} left",
            all = self.step_count,
            reward = signed(play.reward),
            deals = percent(play.deal_rate),
            opening = percent(play.opening_ratio),
            overshoot = percent(play.overshoot_rate),
            invalid = percent(play.invalid_rate),
            entropy = decimals(learning.entropy, 2),
            speed = thousands(speed as u64),
            seconds = decimals(pace.seconds, 1),
            left = duration(each * left),
        ));
    }

    /// Tells of updates from demonstrations, now and then.
    pub fn imitation(&mut self, done: u32, all: u32, loss: f64) {
        if self.told.elapsed() >= LINE_INTERVAL || done == all {
            self.told = Instant::now();
            let all = count(u64::from(all), "update");
            screen::remark(&format!("warm start: {done} of {all}, loss {loss:.3}"));
        }
    }

    /// Tells of an evaluation.
    pub fn evaluation(&self, row: &EvaluationRow) {
        let EvaluationRow { step, agent, field, mode, measures, improvement } = row;
        let gain = improvement.map_or(String::new(), |gain| format!("  gain {}", interval(&gain)));
        screen::remark(&format!(
            "after {step:>4}  {mode:<7}  {agent} against {field}: reward {reward}  deals {deals}  \
             opening {opening}  overshoot {overshoot}{gain}",
            reward = interval(&measures.reward),
            deals = percent(measures.deal_rate.value),
            opening = percent(measures.opening_ratio.value),
            overshoot = percent(measures.overshoot_rate.value),
        ));
    }
}

fn interval(interval: &Interval) -> String {
    match (interval.low, interval.high) {
        (Some(low), Some(high)) => {
            format!("{} [{low:+.3}, {high:+.3}]", signed(interval.value))
        }
        _ => signed(interval.value),
    }
}

fn signed(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:+.3}"))
}

fn decimals(value: Option<f64>, places: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.places$}"))
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0))
}

fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_told_as_people_say_it() {
        let told = [5, 59, 61, 3_599, 3_600, 7_260];
        let told = told.map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(told, ["5 s", "59 s", "2 min", "60 min", "1 h 0 min", "2 h 1 min"]);
    }

    #[test]
    fn what_has_no_value_is_a_dash() {
        assert_eq!([signed(None), percent(None), decimals(None, 2)], ["-", "-", "-"]);
        let known = Interval { value: Some(0.25), low: Some(-0.5), high: Some(1.0) };
        assert_eq!(interval(&known), "+0.250 [-0.500, +1.000]");
    }
}
