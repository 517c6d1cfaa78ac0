//! What workers and dispatcher share: who plays which pair, how far the log is, when to stop.
//!
//! No worker starts a pair that lies further than the window beyond the log's end, or while
//! more bytes wait than may, so that what waits for an earlier pair, or for a head to be
//! signed, is bounded. The pair that the log waits for is always started.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often a waiting thread looks at the stop flag, which nobody signals.
pub const POLL: Duration = Duration::from_millis(50);

/// Shared by the threads of one run.
pub struct Board<'a> {
    stop: &'a AtomicBool,
    halt: AtomicBool,
    next: AtomicU64,
    written: AtomicU64,
    waiting_bytes: AtomicU64,
    pair_count: u64,
    window: Window,
    gate: Mutex<()>,
    moved: Condvar,
}

/// How far workers may be ahead of the log.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Pairs.
    pub pairs: u64,
    /// Bytes of finished pairs. Pairs in play come on top.
    pub bytes: u64,
}

impl<'a> Board<'a> {
    /// Returns the board of a run of which `written` pairs are in the log.
    pub fn new(stop: &'a AtomicBool, written: u64, pair_count: u64, window: Window) -> Board<'a> {
        Board {
            stop,
            halt: AtomicBool::new(false),
            next: AtomicU64::new(written),
            written: AtomicU64::new(written),
            waiting_bytes: AtomicU64::new(0),
            pair_count,
            window,
            gate: Mutex::new(()),
            moved: Condvar::new(),
        }
    }

    /// Claims the next pair; `None` when there is none or the run stops.
    pub fn claim(&self) -> Option<u64> {
        if self.is_stopping() {
            return None;
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.pair_count).then_some(index)
    }

    /// Returns whether a claimed pair lies within the window.
    pub fn is_open(&self, index: u64) -> bool {
        let written = self.written.load(Ordering::Acquire);
        let is_near = index < written.saturating_add(self.window.pairs);
        let has_room = self.waiting_bytes.load(Ordering::Relaxed) < self.window.bytes;
        index == written || is_near && has_room
    }

    /// Waits until a claimed pair lies within the window; false when the run stops before. A
    /// pair that came into the window is played although another one failed meanwhile, so
    /// that the log ends where the failed one would be.
    pub fn wait_until_open(&self, index: u64) -> bool {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_open(index) && !self.is_stopping() {
            let waited = self.moved.wait_timeout(gate, POLL);
            gate = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.is_open(index) && !self.is_stopped()
    }

    /// Tells that a pair of this many bytes is finished and waits to be written.
    pub fn hold(&self, bytes: u64) {
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Tells that the log holds this many pairs now, and that this many bytes wait no more.
    pub fn advance(&self, written: u64, bytes: u64) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.written.store(written, Ordering::Release);
        self.moved.notify_all();
    }

    /// Ends the run because something failed. Pairs in play are still finished.
    pub fn halt(&self) {
        self.halt.store(true, Ordering::Relaxed);
    }

    /// Returns whether a person wants the run to stop: matches in play are given up.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopped() || self.halt.load(Ordering::Relaxed)
    }
}
