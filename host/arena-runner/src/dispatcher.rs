//! The calling thread of a run: restores schedule order, writes the log, tells the news.
//!
//! It alone touches the log. Pairs that arrive before their turn wait; the board's window
//! bounds how many. While a head is signed, workers play on within that window.
//!
//! Not here: playing (`worker`), and what an old log holds (`opening`, `resume`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use arena_core::entry::{Close, Entry, Reveal};
use arena_log::storage::Storage;
use arena_log::writer::{LogWriter, Record};

use crate::board::{Board, POLL, Window};
use crate::error::RunError;
use crate::event::{Counts, RunEvent, RunStatus, Summary};
use crate::identity::Identity;
use crate::opening::{self, Opened, Unfinished};
use crate::resume::Phase;
use crate::worker::{BATCH_PAIRS_MAX, Delivery, Encoded, Failure, PlayedPair, Start, Worker};
use crate::{Job, WORKERS_MAX};

/// How many pairs each worker may be ahead of the log, on average.
/// More than what is played while a head is signed, which takes a tenth of a second.
const WINDOW_PAIRS: u64 = 1_024;
/// How many bytes of finished pairs each worker may be ahead of the log, on average.
const WINDOW_BYTES: u64 = 32 << 20;
/// How many bytes of finished pairs all workers together may be ahead of the log: many workers are
/// for models, which no worker outruns.
const WINDOW_BYTES_MAX: u64 = 512 << 20;
/// Deliveries that may be on their way, for each worker: all that the window lets it play.
const DELIVERIES: usize = WINDOW_PAIRS as usize / BATCH_PAIRS_MAX;
/// Most bytes that are appended together; a pair may be larger.
const GROUP_BYTES_MAX: u64 = 16 << 20;
/// Stack of a worker in bytes: a guest's host calls run on it.
const STACK_BYTES: usize = 8 << 20;
/// Between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Between two syncs: what a crash of the machine can cost.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Voided pairs that are told between two reports of progress.
const VOIDS_TOLD_MAX: u32 = 16;

/// Plays the job. See [`crate::run_on`].
pub fn run(
    job: &Job<'_, '_>,
    identity: &Identity,
    storage: &Arc<dyn Storage>,
    stop: &AtomicBool,
    events: &mut dyn FnMut(RunEvent),
) -> Result<Summary, RunError> {
    let pair_count = job.schedule.pair_count();
    let unfinished = match opening::open(job, identity, storage)? {
        Opened::Unfinished(unfinished) => unfinished,
        Opened::Finished(counts) => {
            let pairs_resumed = counts.pairs_done;
            let status = RunStatus::Finished;
            let summary = Summary { status, counts, pair_count, pairs_resumed };
            events(RunEvent::Finished(summary));
            return Ok(summary);
        }
    };
    let Unfinished { writer, phase, counts, start } = *unfinished;
    let (pairs_resumed, matches_done) = (counts.pairs_done, counts.match_count);
    events(RunEvent::Started { pairs_done: pairs_resumed, pair_count, matches_done });
    let mut dispatcher = Dispatcher::new(writer, counts, pair_count, events);
    let failure = dispatcher.play(job, identity, stop, start)?;
    let status = dispatcher.finish(job, identity, phase, failure)?;
    let counts = dispatcher.counts;
    let summary = Summary { status, counts, pair_count, pairs_resumed };
    events(RunEvent::Finished(summary));
    Ok(summary)
}

/// The writing side of a run.
struct Dispatcher<'e> {
    writer: LogWriter,
    counts: Counts,
    pair_count: u64,
    waiting: BTreeMap<u64, PlayedPair>,
    events: &'e mut dyn FnMut(RunEvent),
    told: Counts,
    told_at: Instant,
    voids_told: u32,
    synced_at: Instant,
    synced_size: u64,
}

impl<'e> Dispatcher<'e> {
    fn new(
        writer: LogWriter,
        counts: Counts,
        pair_count: u64,
        events: &'e mut dyn FnMut(RunEvent),
    ) -> Dispatcher<'e> {
        let now = Instant::now();
        let synced_size = writer.size();
        Dispatcher {
            writer,
            counts,
            pair_count,
            waiting: BTreeMap::new(),
            events,
            told: counts,
            told_at: now,
            voids_told: 0,
            synced_at: now,
            synced_size,
        }
    }

    /// Runs the workers until they are done. Returns what stopped one of them.
    fn play(
        &mut self,
        job: &Job<'_, '_>,
        identity: &Identity,
        stop: &AtomicBool,
        start: Start,
    ) -> Result<Option<Failure>, RunError> {
        let left = self.pair_count - self.counts.pairs_done;
        let worker_count = job.workers.get().min(WORKERS_MAX);
        let worker_count =
            usize::try_from(left).map_or(worker_count, |left| worker_count.min(left));
        let workers = worker_count as u64;
        let bytes = (workers * WINDOW_BYTES).min(WINDOW_BYTES_MAX);
        let window = Window { pairs: workers * WINDOW_PAIRS, bytes };
        let board = Board::new(stop, self.counts.pairs_done, self.pair_count, window);
        let (sender, receiver) = mpsc::sync_channel(worker_count * DELIVERIES);
        thread::scope(|scope| {
            // Whatever ends this closure, a panic of the caller's too, ends the workers.
            let _halt = HaltOnDrop(&board);
            for number in 0..worker_count {
                let worker = Worker::new(job, identity, &board, sender.clone(), start);
                let thread = thread::Builder::new()
                    .name(format!("arena-worker-{number}"))
                    .stack_size(STACK_BYTES);
                thread.spawn_scoped(scope, || worker.work()).map_err(RunError::Thread)?;
            }
            drop(sender);
            self.receive(&board, receiver)
        })
    }

    /// Takes deliveries until every worker is gone.
    fn receive(
        &mut self,
        board: &Board<'_>,
        deliveries: Receiver<Delivery>,
    ) -> Result<Option<Failure>, RunError> {
        let mut failure: Option<Failure> = None;
        loop {
            match deliveries.recv_timeout(POLL) {
                Ok(Delivery::Pairs(pairs)) => {
                    self.waiting.extend(pairs.into_iter().map(|pair| (pair.index, pair)));
                    let bytes = self.write_ready()?;
                    board.advance(self.counts.pairs_done, bytes);
                }
                Ok(Delivery::Voided(voiding)) => {
                    if self.voids_told < VOIDS_TOLD_MAX {
                        self.voids_told += 1;
                        (self.events)(RunEvent::Voided(voiding));
                    }
                }
                Ok(Delivery::Failed(failed)) => {
                    board.halt();
                    if failure.as_ref().is_none_or(|other| failed.index < other.index) {
                        failure = Some(*failed);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(failure),
            }
            self.tell()?;
        }
    }

    /// Writes the pairs whose turn has come, all legs of each together. Returns their bytes.
    fn write_ready(&mut self) -> Result<u64, RunError> {
        let mut ready: Vec<PlayedPair> = Vec::with_capacity(BATCH_PAIRS_MAX);
        let (mut bytes, mut written) = (0, 0);
        let mut next = self.counts.pairs_done;
        while let Some(pair) = self.waiting.remove(&next) {
            let more = pair.byte_count();
            if bytes + more > GROUP_BYTES_MAX {
                self.write(&ready)?;
                ready.clear();
                written += bytes;
                bytes = 0;
            }
            bytes += more;
            next += 1;
            ready.push(pair);
        }
        self.write(&ready)?;
        Ok(written + bytes)
    }

    fn write(&mut self, pairs: &[PlayedPair]) -> Result<(), RunError> {
        let records: Vec<Record<'_>> =
            pairs.iter().flat_map(|pair| &pair.records).map(Encoded::as_record).collect();
        self.writer.append_all(&records)?;
        for pair in pairs {
            self.counts.add(&pair.counts);
        }
        Ok(())
    }

    /// Tells the news and syncs, when it is time for either.
    fn tell(&mut self) -> Result<(), RunError> {
        let now = Instant::now();
        if now - self.told_at >= PROGRESS_INTERVAL {
            self.told_at = now;
            self.voids_told = 0;
            if self.told != self.counts {
                self.told = self.counts;
                let (counts, pair_count) = (self.counts, self.pair_count);
                (self.events)(RunEvent::Progress { counts, pair_count });
            }
        }
        if now - self.synced_at >= SYNC_INTERVAL && self.synced_size != self.writer.size() {
            self.writer.sync()?;
            self.synced_at = now;
            self.synced_size = self.writer.size();
        }
        Ok(())
    }

    /// Brings the log to an end that can be gone on with, or that is final.
    fn finish(
        &mut self,
        job: &Job<'_, '_>,
        identity: &Identity,
        phase: Phase,
        failure: Option<Failure>,
    ) -> Result<RunStatus, RunError> {
        if let Some(Failure { index, error, voids }) = failure {
            if index == self.counts.pairs_done {
                let voids: Vec<Record<'_>> = voids.iter().map(Encoded::as_record).collect();
                self.writer.append_all(&voids)?;
            }
            self.writer.sync()?;
            return Err(error);
        }
        if self.counts.pairs_done < self.pair_count {
            self.writer.sync()?;
            return Ok(RunStatus::Interrupted);
        }
        self.seal(job, identity, phase)?;
        Ok(RunStatus::Finished)
    }

    /// Closes the log, publishes what was private, and reveals the secret: each only once the
    /// step before is durable, and none that `phase` says was done.
    fn seal(
        &mut self,
        job: &Job<'_, '_>,
        identity: &Identity,
        phase: Phase,
    ) -> Result<(), RunError> {
        let tournament = identity.tournament;
        if phase == Phase::Pairs {
            let Counts { match_count, void_count, .. } = self.counts;
            self.append(&Entry::Close(Close { tournament, match_count, void_count }))?;
        }
        self.writer.checkpoint()?;
        self.writer.publish()?;
        if phase != Phase::Over {
            self.append(&Entry::Reveal(Reveal { tournament, secret: job.secret }))?;
            self.writer.checkpoint()?;
        }
        Ok(())
    }

    fn append(&mut self, entry: &Entry) -> Result<(), RunError> {
        let encoded = Encoded::alone(entry);
        Ok(self.writer.append_all(&[encoded.as_record()])?)
    }
}

/// Ends the workers of a run when it goes out of scope.
struct HaltOnDrop<'a, 'b>(&'a Board<'b>);

impl Drop for HaltOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.halt();
    }
}
