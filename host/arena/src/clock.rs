//! The time of day, for statements that claim one. Nothing is decided by it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{CliError, Complaint};

/// Returns the time in POSIX seconds.
///
/// # Errors
/// The machine's clock is before 1970.
pub fn now() -> Result<u64, CliError> {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed
        .map(|elapsed| elapsed.as_secs())
        .map_err(|error| CliError::Infrastructure(Complaint::new("cannot tell the time", error)))
}
