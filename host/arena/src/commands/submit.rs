//! `arena submit`: signs who made an agent, what it is called, and where and how it may play.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use arena_core::config::{Limits, is_name};
use arena_core::draws::commit_contribution;
use arena_core::hexadecimal::hex;
use arena_core::submission::{Submission, params_sha256};
use arena_log::key::SigningKey;
use arena_log::note::{Note, NoteError};

use crate::cli::log::SubmitArgs;
use crate::error::{CliError, Complaint};
use crate::escape::escape;
use crate::outputs::{self, Readers};
use crate::{clock, inputs, sandbox, screen, secrets};

/// Ending of the names of statements.
const STATEMENT_SUFFIX: &str = "submission";
/// Ending of the names of contributions.
const CONTRIBUTION_SUFFIX: &str = "contribution";

/// Writes the statement, and the contribution if one is asked for.
///
/// # Errors
/// The component or the key cannot be read, a name is wrong, or a file exists.
pub fn run(args: &SubmitArgs) -> Result<(), CliError> {
    let agent = agent_name(args)?;
    let component = component(&args.component)?;
    let key = secrets::read_key(&args.key).map_err(CliError::Input)?;
    let author = args.author.as_deref().unwrap_or(&agent);
    let contribution = args.contribute.then(secrets::random_value).transpose()?;
    let statement = Submission {
        agent: agent.clone(),
        tournament: tournament_name(args)?,
        component_sha256: component,
        params_sha256: params_sha256(&args.params),
        roles: args.roles.granted,
        time: clock::now()?,
        contribution: contribution.as_ref().map(commit_contribution),
        author: key.vkey(author).map_err(|error| bad_author(&error))?.to_string(),
    };
    let note = sign(&key, author, &statement).map_err(|error| bad_author(&error))?;
    let default = || PathBuf::from(format!("{agent}.{STATEMENT_SUFFIX}"));
    let out = args.out.clone().unwrap_or_else(default);
    // The contribution first: a statement that commits to a lost one could not be opened.
    if let Some(contribution) = &contribution {
        let path = out.with_extension(CONTRIBUTION_SUFFIX);
        let text = format!("{}\n", hex(contribution));
        outputs::create(&path, text.as_bytes(), Readers::Owner)?;
        screen::remark(&format!(
            "your contribution is in {}; keep it secret until the organiser asks for it, which \
             is after the announcement is signed",
            path.display()
        ));
    }
    outputs::create(&out, note.as_bytes(), Readers::Anyone)?;
    tell(&out, &statement)
}

/// Returns the hash of the component, once the sandbox has taken it as a tournament would.
fn component(named: &str) -> Result<[u8; 32], CliError> {
    let bytes = inputs::component(named).map_err(CliError::Input)?;
    let sandbox = sandbox::open(&Limits::default(), NonZeroUsize::MIN)?;
    let loaded = sandbox::load(&sandbox, &format!("`{}`", escape(named)), &bytes)?;
    Ok(loaded.sha256())
}

/// Makes the note whose text is the statement.
fn sign(key: &SigningKey, author: &str, statement: &Submission) -> Result<String, NoteError> {
    let text = statement.text();
    let signature = key.sign_note(author, &text)?;
    Ok(Note::new(text, vec![signature])?.to_string())
}

fn tell(out: &Path, statement: &Submission) -> Result<(), CliError> {
    let Submission { agent, component_sha256, author, .. } = statement;
    let component = hex(component_sha256);
    screen::results(&format!(
        "{out}: agent {agent}, component {component}\nauthor {author}\n\
         next: send {out} and the component to the organiser, and your verifier key, the line \
         after `author`, to whoever will audit\n",
        out = out.display(),
    ))
}

fn tournament_name(args: &SubmitArgs) -> Result<String, CliError> {
    let hint = "give the `name` of the organiser's tournament file";
    sound_name(&args.tournament, "the tournament", hint)
}

fn agent_name(args: &SubmitArgs) -> Result<String, CliError> {
    let stem = match args.component.strip_prefix("builtin:") {
        Some(name) => name.into(),
        None => Path::new(&args.component).file_stem().unwrap_or_default().to_string_lossy(),
    };
    let hint = "give one of letters, digits, `-`, `_` with `--name`";
    sound_name(args.name.as_deref().unwrap_or(&stem), "the agent", hint)
}

/// Returns a name that a tournament file could hold, or says what cannot be named by it.
fn sound_name(name: &str, whose: &str, hint: &str) -> Result<String, CliError> {
    if is_name(name) {
        return Ok(name.to_owned());
    }
    let fact = format!("`{}` is not a name", name.escape_debug());
    let complaint = Complaint::new(format!("cannot name {whose}"), fact);
    Err(CliError::Config(complaint.hint(hint)))
}

fn bad_author(error: &NoteError) -> CliError {
    let complaint = Complaint::new("cannot name the author", error);
    CliError::Config(complaint.hint("give a name without blanks and `+` with `--author`"))
}
