//! Threads that the kernels run on.
//!
//! A region of parallel work costs about a microsecond: threads wait for the next one by spinning
//! for some ten microseconds, then by yielding, and then they sleep. A region never waits for a
//! thread that has not come yet, so it loses nothing but help where others want the cores.
//!
//! Not here: which parts there are (`matrix`, `attention`, `norm`, `activation`).

// The closure of a region is lent to threads that live longer than it. `Region` says why it is
// good for as long as they use it.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::error::KernelsError;
use crate::isa::Isa;

/// The most threads that a context may have.
pub const THREADS_MAX: usize = 256;

/// How often a waiting thread looks before it lets others have the core.
const SPINS_MAX: u32 = 400;
/// How often it lets others have the core before it sleeps.
const YIELDS_MAX: u32 = 200;

/// Bit of the state that says that threads may enter the region.
const OPEN: u64 = 1 << 31;
/// Bits of the state that count the threads inside.
const INSIDE: u64 = OPEN - 1;
/// Position of the region's number in the state.
const REGION_SHIFT: u32 = 32;

/// An instruction set and threads that stay.
pub struct Context {
    threads: NonZeroUsize,
    isa: Isa,
    shared: Arc<Shared>,
    /// Held by whoever runs a region.
    turn: Mutex<()>,
    workers: Vec<JoinHandle<()>>,
}

/// What the caller of a region and the other threads share.
struct Shared {
    /// Number of the region, whether it is open, and how many threads are inside.
    state: AtomicU64,
    region: UnsafeCell<Region>,
    /// The next part that nobody has taken.
    next: AtomicUsize,
    panicked: AtomicBool,
    stopped: AtomicBool,
    /// Threads that sleep, or are about to.
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    alarm: Condvar,
}

/// The work of a region.
///
/// It is written by the one that runs regions while the region is closed and nobody is inside, and
/// read by threads inside. The closure is borrowed from a caller that does not return before the
/// region is closed and nobody is inside.
#[derive(Clone, Copy)]
struct Region {
    work: *const (dyn Fn(usize) + Sync),
    parts: usize,
}

// SAFETY: `Region` says when its fields are written and read; the rest is atomics and locks.
unsafe impl Sync for Shared {}
// SAFETY: the closure is `Sync`, and the pointer is followed inside a region alone.
unsafe impl Send for Shared {}

impl Context {
    /// Starts the threads; the caller of a kernel is one of them.
    ///
    /// # Errors
    /// More than [`THREADS_MAX`] threads, instructions that this machine lacks, no thread to be
    /// had.
    pub fn new(threads: NonZeroUsize, isa: Isa) -> Result<Context, KernelsError> {
        if threads.get() > THREADS_MAX {
            return Err(KernelsError::Threads { threads: threads.get(), max: THREADS_MAX });
        }
        if !isa.is_available() {
            return Err(KernelsError::IsaMissing(isa));
        }
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            region: UnsafeCell::new(Region { work: &|_| (), parts: 0 }),
            next: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            bed: Mutex::new(()),
            alarm: Condvar::new(),
        });
        // Made first, so that threads that did start are stopped if a later one does not.
        let mut context = Context { threads, isa, shared, turn: Mutex::new(()), workers: vec![] };
        for index in 1..threads.get() {
            let shared = Arc::clone(&context.shared);
            let worker = std::thread::Builder::new()
                .name(format!("kernels-{index}"))
                .spawn(move || shared.help())
                .map_err(KernelsError::Spawn)?;
            context.workers.push(worker);
        }
        Ok(context)
    }

    /// Returns how many threads work, the caller's among them.
    pub fn threads(&self) -> NonZeroUsize {
        self.threads
    }

    /// Returns the instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Calls `work` once for every part in `0..parts`, on all threads, and returns when all are
    /// done. Parts are taken in ascending order, as threads become free. Where a region runs
    /// already, of another thread or of the caller, the caller does its parts alone.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let turn = match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        };
        if parts < 2 || self.workers.is_empty() || turn.is_none() {
            (0..parts).for_each(work);
            return;
        }
        self.shared.lead(parts, work);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.wake();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its work, so there is nothing to hear from it.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// Opens a region, does its parts with whoever comes, and closes it.
    fn lead(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: the lifetime alone is changed. The closure is used inside the region, which is
        // left by all before this function returns.
        let work: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        // SAFETY: the region is closed and nobody is inside, and the caller's turn keeps other
        // leaders out.
        unsafe { *self.region.get() = Region { work, parts } };
        self.panicked.store(false, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
        let number = (self.state.load(Ordering::Relaxed) >> REGION_SHIFT).wrapping_add(1);
        self.state.store((number << REGION_SHIFT) | OPEN, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
        let mine = catch_unwind(AssertUnwindSafe(|| self.take_parts(parts, work)));
        if mine.is_err() {
            // Parts that nobody has taken are not worth doing any more.
            self.next.store(parts, Ordering::Relaxed);
        }
        self.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0;
        while self.state.load(Ordering::Acquire) & INSIDE != 0 {
            if spins < SPINS_MAX {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        if let Err(panic) = mine {
            resume_unwind(panic);
        }
        assert!(!self.panicked.load(Ordering::Relaxed), "a part of a region panicked");
    }

    fn take_parts(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return;
            }
            work(part);
        }
    }

    /// Helps with region after region until the context is dropped.
    fn help(&self) {
        let mut seen = 0;
        while let Some(state) = self.next_region(seen) {
            seen = state >> REGION_SHIFT;
            if !self.enter(seen) {
                continue;
            }
            // SAFETY: this thread is inside, so the region stays as it is.
            let region = unsafe { *self.region.get() };
            // SAFETY: as above; the leader waits for this thread to leave.
            let work = unsafe { &*region.work };
            if catch_unwind(AssertUnwindSafe(|| self.take_parts(region.parts, work))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
                self.next.store(region.parts, Ordering::Relaxed);
            }
            self.state.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Enters the region of this number, unless it is closed or over.
    fn enter(&self, number: u64) -> bool {
        let is_open = |state: u64| state >> REGION_SHIFT == number && state & OPEN != 0;
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |s| is_open(s).then_some(s + 1))
            .is_ok()
    }

    /// Waits for a region after the one seen; `None` if there will be none.
    fn next_region(&self, seen: u64) -> Option<u64> {
        for look in 0..SPINS_MAX + YIELDS_MAX {
            let state = self.state.load(Ordering::Acquire);
            if state >> REGION_SHIFT != seen {
                return Some(state);
            }
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            if look < SPINS_MAX {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let woken = loop {
            let state = self.state.load(Ordering::SeqCst);
            if state >> REGION_SHIFT != seen {
                break Some(state);
            }
            if self.stopped.load(Ordering::SeqCst) {
                break None;
            }
            bed = self.alarm.wait(bed).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        woken
    }

    fn wake(&self) {
        // The lock orders this after a sleeper's last look, or before it.
        drop(self.bed.lock().unwrap_or_else(PoisonError::into_inner));
        self.alarm.notify_all();
    }
}

/// Elements of simple work that are worth a part of a region: some microseconds.
const PART_ELEMENTS: usize = 16_384;

/// How many rows each part of a region takes.
#[derive(Clone, Copy)]
pub(crate) struct RowParts {
    rows: usize,
    part_rows: usize,
}

/// Divides rows that cost as much as `elements` elements each.
pub(crate) fn row_parts(rows: usize, elements: usize) -> RowParts {
    RowParts { rows, part_rows: (PART_ELEMENTS / elements).max(1) }
}

impl RowParts {
    /// Returns the number of parts.
    pub(crate) fn len(&self) -> usize {
        self.rows.div_ceil(self.part_rows)
    }

    /// Returns the rows of a part.
    pub(crate) fn rows(&self, part: usize) -> Range<usize> {
        let start = part * self.part_rows;
        start..(start + self.part_rows).min(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn context(threads: usize) -> Context {
        let threads = NonZeroUsize::new(threads).expect("not zero");
        Context::new(threads, Isa::Portable).expect("available")
    }

    #[test]
    fn every_part_is_done_once() {
        for threads in 1..=4 {
            let context = context(threads);
            for parts in [0, 1, 2, 3, 100] {
                for _ in 0..200 {
                    let done: Vec<AtomicU32> = (0..parts).map(|_| AtomicU32::new(0)).collect();
                    context.run(parts, &|part| {
                        done[part].fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1));
                }
            }
        }
    }

    #[test]
    fn a_thread_that_slept_comes_again() {
        let context = context(2);
        for _ in 0..3 {
            while context.shared.sleepers.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            // The caller does its part only when another thread has done the other one.
            let other = AtomicBool::new(false);
            context.run(2, &|_| {
                if std::thread::current().name().is_some_and(|name| name == "kernels-1") {
                    other.store(true, Ordering::SeqCst);
                } else {
                    while !other.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                }
            });
        }
    }

    #[test]
    fn a_region_inside_a_region_is_done_by_its_caller() {
        let context = context(3);
        let done = AtomicU32::new(0);
        context.run(5, &|_| {
            context.run(7, &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(done.into_inner(), 35);
    }

    #[test]
    fn callers_at_once_all_get_their_parts_done() {
        let context = context(2);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let sum = AtomicU32::new(0);
                        context.run(10, &|part| {
                            sum.fetch_add(part as u32, Ordering::Relaxed);
                        });
                        assert_eq!(sum.into_inner(), 45);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_threads_stay() {
        let context = context(3);
        for round in 0..20 {
            let region = || context.run(50, &|part| assert!(part != 30, "part 30"));
            assert!(catch_unwind(AssertUnwindSafe(region)).is_err(), "round {round}");
            let done = AtomicU32::new(0);
            context.run(50, &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(done.into_inner(), 50);
        }
    }

    #[test]
    fn what_cannot_be_made_is_said() {
        let error = |threads: usize, isa| {
            let threads = NonZeroUsize::new(threads).expect("not zero");
            Context::new(threads, isa).err().map(|error| error.to_string())
        };
        let expected = "`257` threads are more than the 256 that a context may have";
        assert_eq!(error(257, Isa::Portable).as_deref(), Some(expected));
        for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
            let expected = format!("this machine does not have the instructions `{}`", isa.name());
            assert_eq!(error(1, isa), Some(expected));
        }
    }
}
