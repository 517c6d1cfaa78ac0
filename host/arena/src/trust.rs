//! Whom an auditor believes: the key or the policy that the command line names.
//!
//! There is no default. A key that comes with a log proves nothing about who made the log, so
//! none is ever taken from there unasked.

use std::path::Path;

use arena_log::note::Vkey;
use arena_log::policy::Policy;
use arena_log::policy_text::POLICY_BYTES_MAX;

use crate::cli::audit::TrustArgs;
use crate::error::{CliError, Complaint};
use crate::{files, screen};

/// Longest file of a verifier key in bytes.
const VKEY_BYTES_MAX: u64 = 1_024;

/// Reads whom to believe about `log`, a folder or file that the command line named.
///
/// # Errors
/// Neither a key nor a policy is named, or it cannot be read.
pub fn policy(args: &TrustArgs, log: &Path) -> Result<Policy, CliError> {
    match (&args.key, &args.policy) {
        (Some(key), _) => {
            warn_of_own_key(key, log);
            let vkey = vkey(key)?;
            Policy::of_vkey(vkey)
                .map_err(|error| CliError::Config(Complaint::new("cannot use `--key`", error)))
        }
        (None, Some(path)) => {
            let bytes = files::read(path, POLICY_BYTES_MAX as u64).map_err(CliError::Config)?;
            Policy::parse(&bytes).map_err(|error| {
                let failed = format!("cannot use the policy `{}`", path.display());
                CliError::Config(Complaint::new(failed, error))
            })
        }
        (None, None) => Err(CliError::Config(nobody(log))),
    }
}

/// Reads a verifier key: the key itself, or the file that holds it on its only line.
///
/// # Errors
/// It is neither.
pub fn vkey(key: &str) -> Result<Vkey, CliError> {
    let not_a_key = match Vkey::parse(key) {
        Ok(vkey) => return Ok(vkey),
        Err(error) => error,
    };
    let path = Path::new(key);
    let failed = format!("cannot use the key `{}`", key.escape_debug());
    let text = match files::read_text(path, VKEY_BYTES_MAX) {
        Ok(text) => text,
        Err(mut complaint) => {
            complaint.failed = failed;
            complaint.facts = vec![
                format!("as a key: {not_a_key}"),
                format!("as a file: {}", complaint.facts.join("; ")),
            ];
            return Err(CliError::Config(complaint));
        }
    };
    Vkey::parse(text.strip_suffix('\n').unwrap_or(&text)).map_err(|error| {
        let hint = "a verifier key looks like `name+0123abcd+BASE64`; `arena log keygen` prints it";
        CliError::Config(Complaint::new(failed, error).hint(hint))
    })
}

fn nobody(log: &Path) -> Complaint {
    let fact = "neither `--key` nor `--policy` says whose signature to believe";
    let own = log.join("log.vkey");
    let hint = "get the organiser's verifier key from elsewhere than the log";
    let hint = match own.symlink_metadata() {
        Ok(_) => format!(
            "{hint}; to check only that the log agrees with itself, `--key {}`",
            own.display()
        ),
        Err(_) => hint.to_owned(),
    };
    Complaint::new(format!("cannot audit `{}`", log.display()), fact).hint(hint)
}

/// Says what a key is worth that lies in the log's own folder.
fn warn_of_own_key(key: &str, log: &Path) {
    let inside =
        |(file, folder): (std::path::PathBuf, std::path::PathBuf)| file.starts_with(folder);
    let both = Path::new(key).canonicalize().ok().zip(log.canonicalize().ok());
    if both.is_some_and(inside) {
        screen::remark(
            "note: the key lies in the log's own folder, so this shows that the log agrees with \
             itself, not who made it",
        );
    }
}
