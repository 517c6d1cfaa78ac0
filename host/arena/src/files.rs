//! Reads what people name on the command line, within limits.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use arena_core::catalog::amazon::FILE_BYTES_MAX;

use crate::error::{CliError, Complaint};

/// Longest tournament file or model script in bytes.
pub const TEXT_BYTES_MAX: u64 = 4 << 20;
/// Longest component that is read at all; the sandbox's own limit is lower.
pub const COMPONENT_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of all files of a catalog together.
pub const CATALOG_BYTES_MAX: u64 = 256 << 20;
/// Most files in a catalog's folder.
pub const CATALOG_FILES_MAX: usize = 1_000;

/// Reads a whole file of at most `bytes_max` bytes.
///
/// # Errors
/// The file is missing, unreadable or too long; nobody's kind yet, so a bare complaint.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Complaint> {
    let unreadable = |error: io::Error| CliError::unreadable(path, &error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // The length that the file system reports may be stale or, for a pipe, absent.
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > bytes_max {
        let fact = format!("more than the permitted {bytes_max} bytes");
        return Err(Complaint::new(format!("cannot read `{}`", path.display()), fact));
    }
    Ok(bytes)
}

/// Reads a whole UTF-8 file of at most `bytes_max` bytes.
///
/// # Errors
/// As [`read`], or the bytes are not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, Complaint> {
    String::from_utf8(read(path, bytes_max)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let failed = format!("cannot read `{}`", path.display());
        Complaint::new(failed, format!("not UTF-8 at byte {at}"))
    })
}

/// Reads the `.json` files of a folder, in order of their names.
///
/// # Errors
/// The folder or a file is missing or unreadable, or there are none or too many.
pub fn read_json_folder(folder: &Path) -> Result<Vec<(String, String)>, Complaint> {
    let failed = || format!("cannot read the catalog in `{}`", folder.display());
    let fails = |error: io::Error| Complaint::new(failed(), error);
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(fails)? {
        let path = entry.map_err(fails)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
        if paths.len() > CATALOG_FILES_MAX {
            let fact = format!("more than {CATALOG_FILES_MAX} JSON files");
            return Err(Complaint::new(failed(), fact));
        }
    }
    if paths.is_empty() {
        return Err(Complaint::new(failed(), "no JSON file in it"));
    }
    paths.sort();
    let mut bytes_left = CATALOG_BYTES_MAX;
    let mut files = Vec::with_capacity(paths.len());
    for path in &paths {
        let text = read_text(path, bytes_left.min(FILE_BYTES_MAX as u64))?;
        bytes_left -= text.len() as u64;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, text));
    }
    Ok(files)
}
