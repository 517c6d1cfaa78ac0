//! Threads that the kernels run on.

use std::num::NonZeroUsize;

use crate::error::KernelsError;
use crate::isa::Isa;

/// The most threads that a context may have.
pub const THREADS_MAX: usize = 256;

/// An instruction set and threads that stay.
pub struct Context {
    threads: NonZeroUsize,
    isa: Isa,
}

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
        Ok(Context { threads, isa })
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
    /// done. Parts are taken in ascending order, as threads become free.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        for part in 0..parts {
            work(part);
        }
    }
}
