//! `arena log keygen`: makes a signing key.

use arena_log::key::{KeyError, SigningKey};
use arena_log::note::NoteError;

use crate::cli::log::KeygenArgs;
use crate::error::{CliError, Complaint};
use crate::outputs::{self, Readers};
use crate::secrets::PASSWORD_VARIABLE;
use crate::{files, screen};

/// Longest file of a password in bytes.
const PASSWORD_BYTES_MAX: u64 = 4_096;

/// Writes the key, and prints its verifier key.
///
/// # Errors
/// The name cannot name a key, the file exists, or the machine has no randomness.
pub fn run(args: &KeygenArgs) -> Result<(), CliError> {
    let fails = |error: KeyError| {
        let failed = format!("cannot make the key `{}`", args.out.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    };
    let password = match &args.password_file {
        Some(path) => Some(first_line(
            &files::read_text(path, PASSWORD_BYTES_MAX).map_err(CliError::Config)?,
        )?),
        None => None,
    };
    let key = SigningKey::generate().map_err(fails)?;
    let public = args.name.as_deref().map(|name| match args.witness {
        true => key.cosigner_vkey(name),
        false => key.vkey(name),
    });
    let public = public.transpose().map_err(|error| bad_name(&error))?;
    let pem = key.to_pem(password.as_deref()).map_err(fails)?;
    outputs::create(&args.out, pem.as_bytes(), Readers::Owner)?;
    let out = args.out.display();
    screen::remark(&format!("the key is in {out}; whoever has it can sign in your name"));
    if password.is_some() {
        screen::remark(&format!("its password goes into the variable `{PASSWORD_VARIABLE}`"));
    }
    match public {
        Some(vkey) => screen::results(&format!("{vkey}\n")),
        None => {
            screen::remark("the verifier key needs a name: it is printed where one is given");
            Ok(())
        }
    }
}

fn bad_name(error: &NoteError) -> CliError {
    let complaint = Complaint::new("cannot use `--name`", error);
    CliError::Config(complaint.hint("a name such as `arena.example/2027-spring`"))
}

fn first_line(text: &str) -> Result<String, CliError> {
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => {
            let fact = "the file's first line is empty";
            Err(CliError::Config(Complaint::new("cannot use `--password-file`", fact)))
        }
    }
}
