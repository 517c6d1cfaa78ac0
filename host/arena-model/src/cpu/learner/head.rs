//! From what leaves the last layer to scores, and from their slopes back.
//!
//! Logits are there for scored rows alone, and [`LOGITS_MAX`] of them at a time. On the way back
//! they are computed again, unless those of all rows are still there. A token's log-probability is
//! the one that the sampler says (`sampler`), in its order of sums.

use std::sync::Mutex;

use arena_kernels::gradient::logits::{LogitsRow, logits_gradient};
use arena_kernels::gradient::outer::{Columns, add_outer_products};
use arena_kernels::norm::rms_norm;

use crate::cpu::scratch::sized;
use crate::executor::ExecutorError;
use crate::learner::{Scores, Slopes};
use crate::sampler::score;

use super::model::{Model, Work};
use super::parameters::Sums;
use super::rows::{Rows, ScoredRow};

/// Logits that there are at once, if they are not one row's: 128 MiB.
const LOGITS_MAX: usize = 1 << 25;
/// Rows whose logits are computed together, at most.
const ROWS_MAX: usize = 1_024;
/// Logits that one thread scores in one go.
const PART_LOGITS: usize = 16_384;

/// What is said of one scored row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Score {
    logprob: f32,
    /// Without slopes.
    row: LogitsRow,
}

/// Appends what learners return of scores.
pub(super) fn push(scores: &[Score], to: &mut Scores) {
    to.logprobs.extend(scores.iter().map(|score| score.logprob));
    to.entropies.extend(scores.iter().map(|score| score.row.entropy));
}

/// Checks that there is a slope for every score.
pub(super) fn check_slopes(slopes: &Slopes, count: usize) -> Result<(), ExecutorError> {
    let (logprobs, entropies) = (slopes.logprobs.len(), slopes.entropies.len());
    if logprobs == count && (entropies == count || entropies == 0) {
        return Ok(());
    }
    Err(ExecutorError::Slopes { logprobs, entropies, scores: count })
}

impl Model {
    /// Scores rows. Shape: `x` is `[rows, hidden]`.
    pub fn score(
        &self,
        rows: &Rows,
        x: &[f32],
        work: &mut Work,
    ) -> Result<Vec<Score>, ExecutorError> {
        let vocab = self.config.vocab;
        let mut scores = Vec::with_capacity(rows.scored.len());
        for scored in rows.scored.chunks(self.chunk_rows()) {
            self.logits(scored, x, work);
            let part_rows = (PART_LOGITS / vocab).max(1);
            let parts: Vec<Mutex<Vec<Option<Score>>>> =
                scored.chunks(part_rows).map(|_| Mutex::new(Vec::new())).collect();
            let logits = &work.logits[..scored.len() * vocab];
            self.context.run(parts.len(), &|part| {
                let first = part * part_rows;
                let scored = scored[first..].iter().take(part_rows);
                let logits = logits[first * vocab..].chunks_exact(vocab);
                let found = scored.zip(logits).map(|(row, logits)| self.score_row(row, logits));
                *parts[part].lock().expect("no part panics") = found.collect();
            });
            let found = parts.into_iter().flat_map(|p| p.into_inner().expect("no part panics"));
            for (row, score) in scored.iter().zip(found) {
                let detail = || format!("logits before token {} are no distribution", row.token);
                let index = row.sequence;
                let refuse = || ExecutorError::Sequence { index, detail: detail() };
                scores.push(score.ok_or_else(refuse)?);
            }
        }
        Ok(scores)
    }

    fn score_row(&self, row: &ScoredRow, logits: &[f32]) -> Option<Score> {
        let found = score(&logits[..self.token_count], row.token, row.temperature).ok()?;
        let row = LogitsRow {
            token: row.token,
            temperature: row.temperature,
            max: found.max,
            log_total: found.log_total as f32,
            entropy: found.entropy as f32,
            logprob_slope: 0.0,
            entropy_slope: 0.0,
        };
        Some(Score { logprob: found.logprob as f32, row })
    }

    fn chunk_rows(&self) -> usize {
        (LOGITS_MAX / self.config.vocab).clamp(1, ROWS_MAX)
    }

    /// Computes the logits of some rows: `work.wanted` is what left the last layer,
    /// `work.normed` its norm, `work.logits` `[scored, vocab]`.
    fn logits(&self, scored: &[ScoredRow], x: &[f32], work: &mut Work) {
        let hidden = self.config.hidden;
        let wanted = sized(&mut work.wanted, scored.len() * hidden);
        for (wanted, scored) in wanted.chunks_exact_mut(hidden).zip(scored) {
            wanted.copy_from_slice(&x[scored.row * hidden..][..hidden]);
        }
        let normed = sized(&mut work.normed, wanted.len());
        rms_norm(&self.context, wanted, &self.network.final_norm, self.config.rms_eps, normed);
        let logits = sized(&mut work.logits, scored.len() * self.config.vocab);
        self.network.head().multiply(&self.context, normed, logits);
    }

    /// Writes the gradient of what left the last layer to `dx`, and adds those of the head and of
    /// the last norm.
    pub fn head_backward(
        &self,
        rows: &Rows,
        x: &[f32],
        (scores, slopes): (&[Score], &Slopes),
        dx: &mut Vec<f32>,
        sums: &mut Sums<'_>,
        work: &mut Work,
    ) {
        let (hidden, vocab) = (self.config.hidden, self.config.vocab);
        dx.clear();
        dx.resize(x.len(), 0.0);
        let mut first = 0;
        for scored in rows.scored.chunks(self.chunk_rows()) {
            let range = first..first + scored.len();
            first = range.end;
            // Where there is one chunk, the buffers are as scoring left them.
            if rows.scored.len() > scored.len() {
                self.logits(scored, x, work);
            }
            let with_slopes = |at: usize| LogitsRow {
                logprob_slope: slopes.logprobs[at],
                entropy_slope: slopes.entropies.get(at).copied().unwrap_or(0.0),
                ..scores[at].row
            };
            let gradient_rows: Vec<LogitsRow> = range.map(with_slopes).collect();
            let logits = &mut work.logits[..scored.len() * vocab];
            logits_gradient(&self.context, vocab, self.token_count, &gradient_rows, logits);
            let places = sums.places().map(|places| (places.head, places.final_norm));
            if let Some((head, _)) = places {
                let (left, right) =
                    (Columns::all(logits, vocab), Columns::all(&work.normed, hidden));
                let out = &mut [&mut sums.gradients[head][..]];
                add_outer_products(&self.context, scored.len(), &left, &right, out);
            }
            let dnormed = sized(&mut work.dnormed, scored.len() * hidden);
            self.across.head.multiply(&self.context, logits, dnormed);
            let dwanted = sized(&mut work.out, scored.len() * hidden);
            dwanted.fill(0.0);
            let norm = (&work.wanted[..dwanted.len()], &self.network.final_norm[..]);
            let place = (places.map(|places| places.1), &mut work.scales);
            self.norm_back(norm, dnormed, dwanted, sums, place);
            // A row that is shared is scored by several.
            for (dwanted, scored) in dwanted.chunks_exact(hidden).zip(scored) {
                let dx = &mut dx[scored.row * hidden..][..hidden];
                dx.iter_mut().zip(dwanted).for_each(|(dx, dwanted)| *dx += dwanted);
            }
        }
    }
}
