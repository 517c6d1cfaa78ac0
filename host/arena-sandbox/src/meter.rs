//! How much memory and table space a seat takes, over all of its instances together.
//!
//! Growth succeeds or fails by this rule alone, never by what the machine happens to have
//! left: within the limit a failure of the machine is the host's failure.

use wasmtime::ResourceLimiter;

/// The running sums of one store.
#[derive(Debug)]
pub(crate) struct Meter {
    memory_bytes_left: u64,
    table_elements_left: u64,
    /// Whether something was denied since the last call began.
    pub denied: bool,
    /// Whether the machine failed to provide what the rule allows.
    pub host_failed: bool,
}

impl Meter {
    pub(crate) fn new(memory_bytes_max: u64, table_elements_max: u32) -> Meter {
        Meter {
            memory_bytes_left: memory_bytes_max,
            table_elements_left: u64::from(table_elements_max),
            denied: false,
            host_failed: false,
        }
    }

    /// Tells apart growth beyond what the type or table can hold, which the guest is told,
    /// and a refusal of the operating system, which ends the call as the host's failure.
    fn judge_failure(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        let is_system = error.is::<std::io::Error>() || error.is::<rustix::io::Errno>();
        if is_system || error.is::<wasmtime::OutOfMemory>() {
            self.host_failed = true;
            return Err(error);
        }
        self.denied = true;
        Ok(())
    }
}

/// Takes `desired - current` from what is left, or takes nothing and says no.
fn take(left: &mut u64, current: usize, desired: usize, maximum: Option<usize>) -> bool {
    // The engine asks also for growth that the memory's own maximum forbids, and then
    // refuses it; such growth takes nothing.
    if maximum.is_some_and(|maximum| desired > maximum) {
        return false;
    }
    let more = desired.saturating_sub(current) as u64;
    match left.checked_sub(more) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = take(&mut self.memory_bytes_left, current, desired, maximum);
        self.denied |= !granted;
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = take(&mut self.table_elements_left, current, desired, maximum);
        self.denied |= !granted;
        Ok(granted)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.judge_failure(error)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.judge_failure(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 64 << 10;

    #[test]
    fn memories_count_together_and_denied_growth_takes_nothing() {
        let mut meter = Meter::new(10 * PAGE as u64, 0);
        let mut grow = |from: usize, to: usize, maximum: Option<usize>| {
            let maximum = maximum.map(|pages| pages * PAGE);
            meter.memory_growing(from * PAGE, to * PAGE, maximum).expect("says yes or no")
        };
        assert!(grow(0, 4, None), "the first memory starts");
        assert!(grow(0, 4, None), "the second memory starts");
        assert!(!grow(4, 7, None), "three pages more are one too many");
        assert!(!grow(4, 6, Some(5)), "beyond its own maximum");
        assert!(grow(4, 6, Some(6)), "two pages are left");
        assert!(!grow(4, 5, None), "none is left");
        assert!(meter.denied && !meter.host_failed);
    }

    #[test]
    fn tables_count_together_and_apart_from_memories() {
        let mut meter = Meter::new(0, 100);
        assert!(meter.table_growing(0, 60, None).expect("says yes or no"));
        assert!(meter.table_growing(0, 40, None).expect("says yes or no"));
        assert!(!meter.denied);
        assert!(!meter.table_growing(40, 41, None).expect("says yes or no"));
        assert!(meter.denied);
    }

    #[test]
    fn a_refusal_of_the_system_is_the_hosts_failure_and_a_limit_of_the_type_is_not() {
        let mut meter = Meter::new(u64::MAX, 0);
        let limit = wasmtime::Error::msg("memory growth exceeds memory type's limits");
        assert!(meter.memory_grow_failed(limit).is_ok());
        assert!(meter.denied && !meter.host_failed);
        let system = wasmtime::Error::from(std::io::Error::from(std::io::ErrorKind::OutOfMemory));
        assert!(meter.memory_grow_failed(system).is_err());
        assert!(meter.host_failed);
    }
}
