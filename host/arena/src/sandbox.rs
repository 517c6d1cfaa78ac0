//! Opens the sandbox with this program as its compile worker, and loads agents into it.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use arena_core::config::Limits;
use arena_sandbox::{
    CompileWorker, LoadError, LoadedAgent, Sandbox, SandboxError, SandboxSettings,
};

use crate::error::{CliError, Complaint};

/// Opens a sandbox in which `workers` matches can be played at the same time.
///
/// # Errors
/// The engine cannot be set up on this machine.
pub fn open(limits: &Limits, workers: NonZeroUsize) -> Result<Sandbox, CliError> {
    let fails =
        |fact: String| CliError::Infrastructure(Complaint::new("cannot open the sandbox", fact));
    let program = std::env::current_exe()
        .map_err(|error| fails(format!("cannot find this program's own file: {error}")))?;
    let worker = CompileWorker { program, args: vec!["compile-worker".to_owned()] };
    // Two seats for each match in play.
    let slots = u32::try_from(workers.get() * 2).unwrap_or(u32::MAX);
    let settings =
        SandboxSettings { cache_dir: cache_dir(), ..SandboxSettings::new(*limits, slots, worker) };
    Sandbox::new(&settings).map_err(|error| complain("cannot open the sandbox", &error))
}

/// Makes the host's failure an error, with a hint where the user can act.
fn complain(failed: &str, error: &SandboxError) -> CliError {
    let complaint = Complaint::new(failed, error);
    CliError::Infrastructure(match error {
        SandboxError::CacheFolder { .. } | SandboxError::CacheFile { .. } => {
            complaint.hint("point `XDG_CACHE_HOME` to a folder of your own, or unset it and `HOME`")
        }
        _ => complaint,
    })
}

/// Loads a component that is called `label` in messages.
///
/// # Errors
/// The sandbox refuses it, or fails.
pub fn load(sandbox: &Sandbox, label: &str, bytes: &[u8]) -> Result<LoadedAgent, CliError> {
    let failed = format!("cannot load {label}");
    sandbox.load(bytes).map_err(|error| match &error {
        LoadError::Refused(refusal) => {
            CliError::Input(Complaint::new(failed, &error).hint(refusal.hint()))
        }
        LoadError::Host(error) => complain(&failed, error),
    })
}

/// Where compiled components are kept between runs; nowhere, if the user has no cache folder.
fn cache_dir() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("arena").join("components"))
}
