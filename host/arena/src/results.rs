//! Publishes a finished tournament's tables beside its log.
//!
//! The file says nothing that the log does not: it is what `arena tournament show --json`
//! prints, and whoever audits the log computes it again and compares.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use arena_audit::results::RESULTS_FILE;

use crate::error::{CliError, Complaint};

/// Writes the file, whole or not at all. One that says the same is left alone.
///
/// # Errors
/// The folder cannot be written.
pub fn publish(out_dir: &Path, document: &str) -> Result<(), CliError> {
    let path = out_dir.join(RESULTS_FILE);
    write(out_dir, &path, document).map_err(|error| {
        let failed = format!("cannot write `{}`", path.display());
        let complaint = Complaint::new(failed, error);
        CliError::Infrastructure(complaint.hint("once the cause is gone, give the same command"))
    })
}

fn write(out_dir: &Path, path: &Path, document: &str) -> io::Result<()> {
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    if is_file && fs::read(path)? == document.as_bytes() {
        return Ok(());
    }
    // In the private folder, so that nothing half written is ever published.
    let new = out_dir.join(crate::secrets::PRIVATE_DIR).join("results.new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
    file.write_all(document.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(out_dir)?.sync_all()
}
