//! The engine's thread: takes requests, computes step after step, answers.
//!
//! Whatever goes wrong with the executor, or panics, ends the thread; what it had not answered is
//! answered by the state that it leaves behind. So nobody waits for ever.
//!
//! Not here: who gets which rows (`schedule`), what callers see (`engine`).

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arena_kernels::context::Context;
use arena_llm::model::{FinishReason, ModelError};
use arena_weights::adapter::Adapter;

use crate::error::EngineError;
use crate::event::{Listener, TokenEvent};
use crate::executor::{ADAPTER_SLOTS, AdapterId, Executor, ExecutorError};
use crate::schedule::{Arrival, Plan, Schedule};
use crate::sequence::{NoToken, Reply, Sequence, Version, Work};
use crate::statistics::Statistics;
use crate::vocabulary::Vocabulary;

/// Most requests that wait to be taken in; further callers block before that.
const QUEUE_MAX: usize = 1_024;

/// What the thread is asked.
pub(crate) enum Job {
    Sequence(Box<Sequence>),
    Adapter { adapter: Option<Box<Adapter>>, reply: SyncSender<Result<(), EngineError>> },
}

enum State {
    Open,
    Stopping,
    Failed(String),
}

struct Inbox {
    jobs: VecDeque<Job>,
    state: State,
}

/// What callers and thread share.
pub(crate) struct Shared {
    inbox: Mutex<Inbox>,
    /// Something for the thread to do.
    work: Condvar,
    /// Room for another job, or no hope for it.
    room: Condvar,
    statistics: Mutex<Statistics>,
}

impl Shared {
    pub fn new() -> Shared {
        Shared {
            inbox: Mutex::new(Inbox { jobs: VecDeque::new(), state: State::Open }),
            work: Condvar::new(),
            room: Condvar::new(),
            statistics: Mutex::new(Statistics::default()),
        }
    }

    /// Puts a job into the queue, and waits for room in it.
    ///
    /// # Errors
    /// Why the engine does not run any more.
    pub fn submit(&self, job: Job) -> Result<(), String> {
        let mut inbox = self.lock();
        while matches!(inbox.state, State::Open) && inbox.jobs.len() >= QUEUE_MAX {
            inbox = self.room.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
        if !matches!(inbox.state, State::Open) {
            return Err(reason(&inbox.state));
        }
        inbox.jobs.push_back(job);
        self.work.notify_one();
        Ok(())
    }

    pub fn stop(&self) {
        let mut inbox = self.lock();
        if matches!(inbox.state, State::Open) {
            inbox.state = State::Stopping;
        }
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Returns why the engine does not answer.
    pub fn reason(&self) -> String {
        reason(&self.lock().state)
    }

    pub fn statistics(&self) -> Statistics {
        *self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, reason: String) {
        let mut inbox = self.lock();
        inbox.state = State::Failed(reason);
        // Their callers learn it when their channel closes.
        inbox.jobs.clear();
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reason(state: &State) -> String {
    match state {
        State::Failed(reason) => reason.clone(),
        State::Open | State::Stopping => "the engine was stopped".to_owned(),
    }
}

/// What the thread owns.
pub(crate) struct Worker {
    pub shared: Arc<Shared>,
    pub executor: Box<dyn Executor>,
    pub vocabulary: Arc<Vocabulary>,
    pub context: Arc<Context>,
    pub schedule: Schedule,
    pub adapters: Adapters,
    pub listener: Option<Listener>,
    pub logits: Vec<f32>,
}

/// Which version is in which slot of the executor.
#[derive(Default)]
pub(crate) struct Adapters {
    /// Version numbers, 0 for an empty slot.
    slots: [u64; ADAPTER_SLOTS],
    /// How many versions there were.
    count: u64,
    newest: Option<AdapterId>,
}

impl Adapters {
    /// Returns what sequences begin with.
    pub fn newest(&self) -> Version {
        let number = self.newest.map_or(0, |slot| self.slots[slot.0 as usize]);
        Version { number, slot: self.newest }
    }

    /// Puts an adapter into a slot that nobody uses, in place of the newest.
    pub fn change(
        &mut self,
        adapter: &Adapter,
        free: AdapterId,
        executor: &mut dyn Executor,
    ) -> Result<(), ExecutorError> {
        self.slots[free.0 as usize] = 0;
        executor.set_adapter(free, Some(adapter))?;
        self.count += 1;
        self.slots[free.0 as usize] = self.count;
        self.newest = Some(free);
        Ok(())
    }

    /// Returns a slot whose version nobody uses.
    fn find_free(&self, schedule: &Schedule) -> Option<AdapterId> {
        let ids = (0..).map(AdapterId).zip(&self.slots);
        let mut free = ids
            .filter(|&(slot, _)| Some(slot) != self.newest)
            .filter(|&(_, &number)| number == 0 || !schedule.uses(number))
            .map(|(slot, _)| slot);
        free.next()
    }
}

/// Runs the thread until it is stopped or fails.
pub(crate) fn run(mut worker: Worker) {
    let shared = Arc::clone(&worker.shared);
    let outcome = catch_unwind(AssertUnwindSafe(|| worker.serve()));
    let reason = match outcome {
        Ok(Ok(())) => "the engine was stopped".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
            format!("the engine panicked: {text}")
        }
    };
    // First the reason, then the channels close: whoever learns of the end finds the reason.
    shared.fail(reason);
    drop(worker);
}

impl Worker {
    fn serve(&mut self) -> Result<(), ExecutorError> {
        while self.take_jobs()? {
            let plan = self.schedule.plan();
            if plan.batch.tokens.is_empty() {
                continue;
            }
            for copy in &plan.copies {
                self.executor.copy_rows(copy.from, copy.to, copy.rows)?;
            }
            self.executor.forward(&plan.batch, &mut self.logits)?;
            self.schedule.note_computed(&plan);
            let faults = self.sample(&plan.wanted);
            self.deliver(&plan, faults);
        }
        Ok(())
    }

    /// Takes as many requests as there are slots. Waits while there is nothing to do. Returns
    /// false when the engine is to stop.
    fn take_jobs(&mut self) -> Result<bool, ExecutorError> {
        let shared = Arc::clone(&self.shared);
        let mut inbox = shared.lock();
        loop {
            if matches!(inbox.state, State::Stopping) {
                return Ok(false);
            }
            while self.schedule.has_room() && !inbox.jobs.is_empty() {
                let job = inbox.jobs.pop_front().expect("it is not empty");
                match job {
                    Job::Sequence(mut sequence) => {
                        sequence.version = self.adapters.newest();
                        self.schedule.add(*sequence);
                    }
                    Job::Adapter { adapter, reply } => {
                        let Some(free) = self.adapters.find_free(&self.schedule) else {
                            // What came before it is answered first.
                            inbox.jobs.push_front(Job::Adapter { adapter, reply });
                            break;
                        };
                        let result = self.change_adapter(adapter.as_deref(), free);
                        // Nobody is hurt if the caller has gone.
                        let _ = reply.send(result.map_err(EngineError::from));
                    }
                }
                shared.room.notify_one();
            }
            if self.schedule.running_count() + self.schedule.waiting_count() > 0 {
                self.note_statistics(inbox.jobs.len());
                return Ok(true);
            }
            self.note_statistics(inbox.jobs.len());
            inbox = shared.work.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change_adapter(
        &mut self,
        adapter: Option<&Adapter>,
        free: AdapterId,
    ) -> Result<(), ExecutorError> {
        let Some(adapter) = adapter else {
            self.adapters.newest = None;
            return Ok(());
        };
        let old = self.adapters.slots[free.0 as usize];
        if old != 0 {
            self.schedule.forget(old);
        }
        self.adapters.change(adapter, free, &mut *self.executor)
    }

    /// Picks the next tokens of every sequence whose logits are there, on all threads.
    fn sample(&mut self, wanted: &[(Arrival, Range<usize>)]) -> Vec<(Arrival, NoToken)> {
        struct Task<'a> {
            arrival: Arrival,
            sequence: &'a mut Sequence,
            logits: &'a [f32],
            fault: Option<NoToken>,
        }
        let (vocabulary, width) = (&*self.vocabulary, self.vocabulary.rows());
        let mut ranges = wanted.iter();
        let mut next = ranges.next();
        let mut tasks = Vec::with_capacity(wanted.len());
        // Both are by arrival.
        for (arrival, sequence) in self.schedule.running_mut() {
            let Some((_, range)) = next.filter(|(wanted, _)| *wanted == arrival) else { continue };
            let logits = &self.logits[range.start * width..range.end * width];
            tasks.push(Mutex::new(Task { arrival, sequence, logits, fault: None }));
            next = ranges.next();
        }
        assert!(tasks.len() == wanted.len(), "whoever wants logits runs");
        self.context.run(tasks.len(), &|part| {
            let mut task = tasks[part].lock().unwrap_or_else(PoisonError::into_inner);
            let task = &mut *task;
            task.fault = task.sequence.pick(task.logits, vocabulary).err();
        });
        let tasks = tasks.into_iter().map(|task| {
            let task = task.into_inner().unwrap_or_else(PoisonError::into_inner);
            task.fault.map(|fault| (task.arrival, fault))
        });
        tasks.flatten().collect()
    }

    /// Takes the picked tokens into the replies, and answers those that are done.
    fn deliver(&mut self, plan: &Plan, faults: Vec<(Arrival, NoToken)>) {
        let mut done: Vec<(Arrival, Option<FinishReason>)> = Vec::new();
        let mut ranges = plan.wanted.iter();
        let mut next = ranges.next();
        let mut written = 0;
        for (arrival, sequence) in self.schedule.running_mut() {
            if next.is_none_or(|(wanted, _)| *wanted != arrival) {
                continue;
            }
            next = ranges.next();
            let token = sequence.output.last().map(|token| token.id);
            let (Some(id), false) = (token, faults.iter().any(|(who, _)| *who == arrival)) else {
                continue;
            };
            let count = sequence.output.len();
            match &mut sequence.work {
                Work::Score { .. } => {
                    if sequence.prompt_count + count == sequence.tokens.len() {
                        done.push((arrival, None));
                    }
                }
                Work::Generate(generation) => {
                    written += 1;
                    sequence.tokens.push(id);
                    let end = generation.take(id, count, &self.vocabulary);
                    if let Some(listener) = &self.listener {
                        let text = match end {
                            Some(_) => generation.text.take_rest(),
                            None => generation.text.take_certain(),
                        };
                        if !text.is_empty() {
                            listener(&TokenEvent { key: generation.key, text });
                        }
                    }
                    if end.is_some() {
                        done.push((arrival, end));
                    }
                }
            }
        }
        self.count_step(plan, written);
        for (arrival, fault) in faults {
            answer(self.schedule.finish(arrival), Err(fault.into()));
        }
        for (arrival, end) in done {
            answer(self.schedule.finish(arrival), Ok(end.unwrap_or(FinishReason::Stop)));
        }
    }

    fn count_step(&self, plan: &Plan, written: u64) {
        let mut statistics = self.shared.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.steps += 1;
        statistics.rows += plan.batch.tokens.len() as u64;
        statistics.sequences += plan.batch.sequences.len() as u64;
        statistics.output_tokens += written;
    }

    fn note_statistics(&self, queued: usize) {
        let counts = self.schedule.counts;
        let mut statistics = self.shared.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.prompt_tokens = counts.prompt_tokens;
        statistics.reused_tokens = counts.reused_tokens;
        statistics.preemptions = counts.preemptions;
        statistics.running = self.schedule.running_count();
        statistics.waiting = self.schedule.waiting_count() + queued;
        statistics.blocks_used = self.schedule.cache().used_count();
        statistics.blocks = self.schedule.cache().block_count();
    }
}

/// Answers a request; nobody is hurt if the caller has gone.
fn answer(sequence: Sequence, outcome: Result<FinishReason, ModelError>) {
    let Sequence { output, work, .. } = sequence;
    match work {
        Work::Generate(generation) => {
            let _ = generation.reply.send(outcome.map(|finish_reason| Reply {
                text: generation.text.finish(),
                finish_reason,
                output,
            }));
        }
        Work::Score { reply } => {
            let _ = reply.send(outcome.map(|_| output));
        }
    }
}
