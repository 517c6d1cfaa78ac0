//! `arena compile-worker`: what the sandbox starts to compile a component.
//!
//! Hidden: it reads a component from standard input and writes machine code, and whoever
//! starts it sets its limits.

use crate::error::CliError;

/// Serves one compilation.
///
/// # Errors
/// None of its own: the worker speaks in exit codes.
pub fn run() -> Result<u8, CliError> {
    Ok(arena_sandbox::worker::serve())
}
