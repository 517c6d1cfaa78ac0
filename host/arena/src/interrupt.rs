//! Ctrl-C: the first asks to stop where the log stays contiguous, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{CliError, Complaint, EXIT_INTERRUPTED};

/// Returns a flag that the first SIGINT or SIGTERM sets. A second one ends the process.
///
/// # Errors
/// The system refuses a handler.
pub fn stop_flag() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let fails = |error: std::io::Error| {
        CliError::Infrastructure(Complaint::new("cannot listen for Ctrl-C", error))
    };
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the exit acts only when an earlier signal has set the flag.
        let code = i32::from(EXIT_INTERRUPTED);
        flag::register_conditional_shutdown(signal, code, Arc::clone(&stop)).map_err(fails)?;
        flag::register(signal, Arc::clone(&stop)).map_err(fails)?;
    }
    Ok(stop)
}
