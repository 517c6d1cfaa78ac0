//! Who gets which rows of the next batch, and which blocks.
//!
//! Every step takes one row of each sequence that is writing, and fills up with rows of prompts,
//! all by order of arrival. Where blocks are short, the youngest running sequence gives back its
//! own and waits; its tokens are kept and computed again later. The oldest gives to nobody, and a
//! pool holds one whole context: so every step moves the oldest on, and every sequence ends.
//!
//! Pure: no executor, no threads.
//!
//! Not here: sampling (`sequence`), what is cached (`cache`).

use std::collections::BTreeMap;
use std::ops::Range;

use crate::cache::{PrefixCache, RowCopy};
use crate::executor::{BLOCK_TOKENS, Batch, SequenceRows};
use crate::sequence::Sequence;

/// Most logits of replies that are scored, in one step.
const SCORED_ROWS_MAX: usize = 64;

/// The number of a request, by order of arrival.
pub(crate) type Arrival = u64;

/// What is to be computed in one step.
#[derive(Default)]
pub(crate) struct Plan {
    /// To be done first, in this order.
    pub copies: Vec<RowCopy>,
    pub batch: Batch,
    /// Whose logits are where in the batch's result.
    pub wanted: Vec<(Arrival, Range<usize>)>,
    /// How far each sequence of the batch is when it is computed.
    computed: Vec<(Arrival, usize)>,
}

/// Counts of a scheduler's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub prompt_tokens: u64,
    pub reused_tokens: u64,
    pub preemptions: u64,
}

/// The sequences and the pool.
pub(crate) struct Schedule {
    cache: PrefixCache,
    running: BTreeMap<Arrival, Sequence>,
    waiting: BTreeMap<Arrival, Sequence>,
    slots: usize,
    step_tokens: usize,
    step: u64,
    arrivals: Arrival,
    pub counts: Counts,
}

/// What is left to give out in one step.
struct Budget {
    prompt_rows: usize,
    scored_rows: usize,
}

impl Schedule {
    pub fn new(cache: PrefixCache, slots: usize, step_tokens: usize) -> Schedule {
        assert!(step_tokens >= slots, "a step has a row for every sequence");
        Schedule {
            cache,
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            slots,
            step_tokens,
            step: 0,
            arrivals: 0,
            counts: Counts::default(),
        }
    }

    pub fn add(&mut self, sequence: Sequence) {
        self.counts.prompt_tokens += sequence.prompt_count as u64;
        self.waiting.insert(self.arrivals, sequence);
        self.arrivals += 1;
    }

    pub fn running_count(&self) -> usize {
        self.running.len()
    }

    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    pub fn has_room(&self) -> bool {
        self.running.len() + self.waiting.len() < self.slots
    }

    pub fn cache(&self) -> &PrefixCache {
        &self.cache
    }

    /// Says whether a sequence that is not done is computed with a version.
    pub fn uses(&self, number: u64) -> bool {
        let mut all = self.running.values().chain(self.waiting.values());
        all.any(|sequence| sequence.version.number == number)
    }

    /// Forgets what was computed with a version.
    pub fn forget(&mut self, number: u64) {
        self.cache.forget(number);
    }

    pub fn running_mut(&mut self) -> impl Iterator<Item = (Arrival, &mut Sequence)> {
        self.running.iter_mut().map(|(&arrival, sequence)| (arrival, sequence))
    }

    /// Plans the next step. Nothing of the schedule may change before
    /// [`Schedule::note_computed`] is told that the plan was done.
    pub fn plan(&mut self) -> Plan {
        self.step += 1;
        let mut plan = Plan::default();
        let is_writing = |sequence: &Sequence| sequence.target() - sequence.computed == 1;
        let writing = self.running.values().filter(|sequence| is_writing(sequence)).count();
        let prompt_rows = self.step_tokens - writing;
        let mut budget = Budget { prompt_rows, scored_rows: SCORED_ROWS_MAX };
        let preemptions = self.counts.preemptions;
        let order: Vec<Arrival> = self.running.keys().copied().collect();
        for arrival in order {
            while self.running.contains_key(&arrival)
                && !self.place(arrival, &mut budget, &mut plan)
            {
                self.preempt_youngest();
            }
        }
        if preemptions == self.counts.preemptions {
            self.admit(&mut budget, &mut plan);
        }
        plan
    }

    /// Notes that a plan was computed.
    pub fn note_computed(&mut self, plan: &Plan) {
        for &(arrival, computed) in &plan.computed {
            let sequence = self.running.get_mut(&arrival).expect("planned sequences run");
            sequence.computed = computed;
        }
    }

    /// Takes a sequence that is done out, and leaves its blocks to be found again.
    pub fn finish(&mut self, arrival: Arrival) -> Sequence {
        let mut sequence = self.running.remove(&arrival).expect("finished sequences run");
        let lease = sequence.lease.take().expect("running sequences hold a lease");
        self.cache.close(lease, &sequence.tokens[..sequence.computed]);
        if sequence.is_score() {
            self.cache.forget(scoring_version(arrival));
        }
        sequence
    }

    fn preempt_youngest(&mut self) {
        let (arrival, mut sequence) = self.running.pop_last().expect("somebody runs");
        let lease = sequence.lease.take().expect("running sequences hold a lease");
        self.cache.close(lease, &sequence.tokens[..sequence.computed]);
        sequence.computed = 0;
        self.waiting.insert(arrival, sequence);
        self.counts.preemptions += 1;
    }

    /// Lets waiting sequences run, oldest first, while there are slots, rows and blocks.
    fn admit(&mut self, budget: &mut Budget, plan: &mut Plan) {
        while self.running.len() < self.slots && budget.prompt_rows > 0 {
            let Some((arrival, mut sequence)) = self.waiting.pop_first() else {
                return;
            };
            let number = match sequence.is_score() {
                true => scoring_version(arrival),
                false => sequence.version.number,
            };
            let mut lease = self.cache.open(number);
            let reused = match sequence.is_score() {
                true => 0,
                false => self.cache.take_shared(&mut lease, &sequence.tokens, 0),
            };
            // Each running sequence may need a block soon: better wait than be preempted.
            let blocks = (sequence.target() + 1).div_ceil(BLOCK_TOKENS) - lease.table().len();
            let has_room = blocks + self.running.len() <= self.cache.available_count();
            if !has_room && !self.running.is_empty() {
                self.cache.close(lease, &sequence.tokens[..reused]);
                self.waiting.insert(arrival, sequence);
                return;
            }
            sequence.computed = reused;
            sequence.lease = Some(lease);
            if !sequence.is_score() && sequence.output.is_empty() {
                self.counts.reused_tokens += reused as u64;
            }
            self.running.insert(arrival, sequence);
            if !self.place(arrival, budget, plan) {
                self.preempt_youngest();
                return;
            }
        }
    }

    /// Gives a sequence its rows of this step. Returns false, and gives none, if there are no
    /// blocks for them.
    fn place(&mut self, arrival: Arrival, budget: &mut Budget, plan: &mut Plan) -> bool {
        let sequence = self.running.get_mut(&arrival).expect("only running sequences are placed");
        let (is_score, target) = (sequence.is_score(), sequence.target());
        let wanted_from = sequence.wanted_from();
        let is_writing = !is_score && target - sequence.computed == 1;
        let lease = sequence.lease.as_mut().expect("running sequences hold a lease");
        if !is_score && !is_writing {
            let before = sequence.computed;
            let (cache, tokens) = (&mut self.cache, &sequence.tokens);
            let mut computed = cache.take_shared(lease, tokens, before);
            if let Some(copy) = cache.take_part(lease, tokens, computed, self.step) {
                computed += copy.rows;
                plan.copies.push(copy);
            }
            sequence.computed = computed;
            if sequence.output.is_empty() {
                self.counts.reused_tokens += (computed - before) as u64;
            }
        }
        let start = sequence.computed;
        let mut rows = match is_writing {
            true => 1,
            false => (target - start).min(budget.prompt_rows),
        };
        if is_score {
            rows = rows.min((wanted_from + budget.scored_rows).saturating_sub(start));
        }
        if rows == 0 {
            return true;
        }
        if !self.cache.reserve(lease, start + rows) {
            return false;
        }
        let end = start + rows;
        self.cache.publish(lease, &sequence.tokens[..end], start, self.step);
        let first_row = plan.batch.tokens.len();
        plan.batch.tokens.extend(&sequence.tokens[start..end]);
        plan.batch.sequences.push(SequenceRows {
            rows: first_row..first_row + rows,
            start_position: u32::try_from(start).expect("contexts are far smaller"),
            blocks: lease.table()[..end.div_ceil(BLOCK_TOKENS)].to_vec(),
            adapter: sequence.version.slot,
        });
        plan.computed.push((arrival, end));
        if !is_writing {
            budget.prompt_rows -= rows;
        }
        if end > wanted_from {
            let first = plan.batch.logits_of.len();
            let from = wanted_from.max(start);
            plan.batch.logits_of.extend(first_row + from - start..first_row + rows);
            plan.wanted.push((arrival, first..plan.batch.logits_of.len()));
            if is_score {
                budget.scored_rows -= end - from;
            }
        }
        true
    }
}

/// Scored sequences share blocks with nobody: each has a version of its own.
fn scoring_version(arrival: Arrival) -> u64 {
    u64::MAX - arrival
}

#[cfg(test)]
mod tests;
