//! What only the organiser has: the key that signs the log, and the secret behind the draws.
//!
//! Where the command line names no file, they are made from the randomness of the operating
//! system and kept in the log's `private` folder, readable by their owner alone. A log that
//! exists never gets new ones: it could not be gone on with.
//!
//! Not here: what is signed (`arena_log`), and what is drawn from the secret
//! (`arena_core::draws`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use arena_core::hexadecimal::{hex, unhex};
use arena_log::key::{KeyError, PEM_BYTES_MAX, SigningKey};

use crate::error::{CliError, Complaint};
use crate::files;

/// Where the log keeps what must not be published.
pub const PRIVATE_DIR: &str = "private";
/// The password of encrypted key files, as an environment variable: no other process of the
/// machine's users reads it, as they would an argument.
pub const PASSWORD_VARIABLE: &str = "ARENA_KEY_PASSWORD";

const KEY_FILE: &str = "key.pem";
const SECRET_FILE: &str = "secret";
/// Longest file of a 32-byte value in hexadecimal, with its line end.
const VALUE_BYTES_MAX: u64 = 65;

/// What only the organiser has.
pub struct Secrets {
    /// Signs the log's heads.
    pub key: SigningKey,
    /// What committed draws come from; `None` with a public seed.
    pub secret: Option<[u8; 32]>,
    is_new_key: bool,
    is_new_secret: bool,
}

impl Secrets {
    /// Reads what is given or kept, and makes what is neither. Nothing is written yet.
    ///
    /// # Errors
    /// A file is missing or wrong, a log is there without what it was begun with, or the system
    /// has no randomness to give.
    pub fn find(
        key_file: Option<&Path>,
        secret_file: Option<&Path>,
        out_dir: &Path,
        is_committed: bool,
    ) -> Result<Secrets, CliError> {
        if secret_file.is_some() && !is_committed {
            let fact = "the draws come from a public seed, which needs no secret";
            let complaint = Complaint::new("cannot use `--secret`", fact)
                .hint("drop `--secret`, or run without a seed in the file and on the command line");
            return Err(CliError::Config(complaint));
        }
        let (key, is_new_key) = match locate(key_file, out_dir, KEY_FILE, "--key")? {
            Some(path) => (read_key(&path).map_err(CliError::Input)?, false),
            None => (SigningKey::generate().map_err(|error| no_randomness(&error))?, true),
        };
        let (secret, is_new_secret) = match is_committed {
            false => (None, false),
            true => match locate(secret_file, out_dir, SECRET_FILE, "--secret")? {
                Some(path) => (Some(read_value(&path).map_err(CliError::Input)?), false),
                None => (Some(random_value()?), true),
            },
        };
        Ok(Secrets { key, secret, is_new_key, is_new_secret })
    }

    /// Writes what was made to the log's private folder, before the log is begun: a log whose
    /// key is lost can never be finished.
    ///
    /// # Errors
    /// It cannot be written, or another run made its own meanwhile.
    pub fn keep(&self, out_dir: &Path) -> Result<(), CliError> {
        let folder = out_dir.join(PRIVATE_DIR);
        let fails = |error: io::Error| {
            let failed = format!("cannot keep the log's secrets in `{}`", folder.display());
            let complaint = Complaint::new(failed, &error);
            match error.kind() {
                io::ErrorKind::AlreadyExists => CliError::Infrastructure(
                    complaint.hint("another run has begun there; wait for it, then run this again"),
                ),
                io::ErrorKind::DirectoryNotEmpty => {
                    CliError::Input(complaint.hint("choose another folder with `--out`"))
                }
                _ => CliError::Infrastructure(complaint),
            }
        };
        if (self.is_new_key || self.is_new_secret) && !has_log(out_dir) {
            refuse_foreign(out_dir).map_err(fails)?;
        }
        if self.is_new_key {
            let pem = self.key.to_pem(None).map_err(|error| no_randomness(&error))?;
            keep_file(&folder, KEY_FILE, pem.as_bytes()).map_err(fails)?;
        }
        if let Some(secret) = self.secret.filter(|_| self.is_new_secret) {
            keep_file(&folder, SECRET_FILE, format!("{}\n", hex(&secret)).as_bytes())
                .map_err(fails)?;
        }
        Ok(())
    }
}

/// Returns whether a folder holds a log, or the beginning of one.
fn has_log(out_dir: &Path) -> bool {
    has_head(out_dir) || out_dir.join("private/journal").symlink_metadata().is_ok()
}

/// Returns whether a folder holds a log of which a head was signed.
pub fn has_head(out_dir: &Path) -> bool {
    let names = ["checkpoint", "private/last-signed"];
    names.iter().any(|name| out_dir.join(name).symlink_metadata().is_ok())
}

/// Refuses a folder in which no log can be begun, so that no secret is left in it either.
fn refuse_foreign(out_dir: &Path) -> io::Result<()> {
    let items = match fs::read_dir(out_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        items => items?,
    };
    for item in items {
        let name = item?.file_name();
        if name != PRIVATE_DIR && name != "log.vkey" {
            let name = name.to_string_lossy().into_owned();
            let fact = format!("the folder of the log holds `{name}`, which is not of a log");
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, fact));
        }
    }
    Ok(())
}

/// Reads a key file. The password of an encrypted one comes from [`PASSWORD_VARIABLE`].
///
/// # Errors
/// It is missing, or no key that can be opened.
pub fn read_key(path: &Path) -> Result<SigningKey, Complaint> {
    let pem = files::read_text(path, PEM_BYTES_MAX as u64)?;
    let opened = match SigningKey::from_pem(&pem, None) {
        Err(KeyError::PasswordNeeded) => match std::env::var(PASSWORD_VARIABLE) {
            Ok(password) => SigningKey::from_pem(&pem, Some(&password)),
            Err(_) => Err(KeyError::PasswordNeeded),
        },
        opened => opened,
    };
    opened.map_err(|error| {
        let complaint = Complaint::new(format!("cannot use the key `{}`", path.display()), &error);
        match error {
            KeyError::PasswordNeeded | KeyError::WrongPassword => {
                complaint.hint(format!("its password goes into the variable `{PASSWORD_VARIABLE}`"))
            }
            _ => complaint,
        }
    })
}

/// Reads a file of 32 bytes as 64 lower-case hexadecimal digits on a line.
///
/// # Errors
/// It is missing or anything else.
pub fn read_value(path: &Path) -> Result<[u8; 32], Complaint> {
    let text = files::read_text(path, VALUE_BYTES_MAX)?;
    // What is in the file is not quoted: it is secret.
    unhex(text.strip_suffix('\n').unwrap_or(&text)).ok_or_else(|| {
        let fact = "not 64 lower-case hexadecimal digits on one line";
        let hint = "such a file is made by `openssl rand -hex 32`";
        Complaint::new(format!("cannot read `{}`", path.display()), fact).hint(hint)
    })
}

/// Finds the file: the one named, or the one kept with the log. `None` means that there is
/// none yet and no log that needs one.
fn locate(
    named: Option<&Path>,
    out_dir: &Path,
    kept: &str,
    flag: &str,
) -> Result<Option<PathBuf>, CliError> {
    if let Some(path) = named {
        return Ok(Some(path.to_owned()));
    }
    let path = out_dir.join(PRIVATE_DIR).join(kept);
    if path.symlink_metadata().is_ok() {
        return Ok(Some(path));
    }
    if has_log(out_dir) {
        let failed = format!("cannot go on with the log in `{}`", out_dir.display());
        let fact = format!("it was begun with a file that is not at `{}`", path.display());
        let hint = format!("name the file with `{flag}`, or choose another folder with `--out`");
        return Err(CliError::Input(Complaint::new(failed, fact).hint(hint)));
    }
    Ok(None)
}

/// Draws 32 bytes from the operating system.
///
/// # Errors
/// It has none to give.
pub fn random_value() -> Result<[u8; 32], CliError> {
    let mut value = [0; 32];
    getrandom::fill(&mut value)
        .map_err(|error| no_randomness(&KeyError::Randomness { reason: error.to_string() }))?;
    Ok(value)
}

fn no_randomness(error: &KeyError) -> CliError {
    CliError::Infrastructure(Complaint::new("cannot make a secret", error))
}

/// Writes a file that only its owner may read, whole or not at all, and never over another.
fn keep_file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder.parent().unwrap_or(folder))?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = folder.join(format!("{name}.new"));
    // What an earlier run left when it was killed was never used.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    // Unlike a rename, a link never replaces what is there.
    fs::hard_link(&new, folder.join(name))?;
    fs::remove_file(&new)?;
    File::open(folder)?.sync_all()
}
