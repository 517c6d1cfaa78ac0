//! How far long work has come, on standard error: a bar on a terminal, else a line now and then.
//!
//! Not here: a tournament under way, which has more to tell (`progress`).

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render::transcript::{count, thousands};
use crate::screen;

/// Time between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Shows one piece of work.
pub struct Advance {
    bar: ProgressBar,
    told: Instant,
    verb: &'static str,
    unit: &'static str,
    total: u64,
}

impl Advance {
    /// Starts the clock. `verb` says what was done to each `unit`, such as `checked`.
    pub fn new(verb: &'static str, unit: &'static str, total: u64) -> Advance {
        let style =
            ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len} {msg}, {eta} left")
                .expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.set_message(verb);
        // What is first may take long.
        bar.tick();
        Advance { bar, told: Instant::now(), verb, unit, total }
    }

    /// Shows that so much is done, of `total`.
    pub fn show(&mut self, done: u64, total: u64) {
        if self.total != total {
            self.total = total;
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
        if self.bar.is_hidden() && self.told.elapsed() >= LINE_INTERVAL {
            self.told = Instant::now();
            let all = count(self.total, self.unit);
            screen::remark(&format!("{} {} of {all}", self.verb, thousands(done)));
        }
    }
}

impl Drop for Advance {
    /// Removes the bar, so that what follows does not share its line.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
