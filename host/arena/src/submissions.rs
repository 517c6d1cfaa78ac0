//! Reads what authors sign about their agents, and holds a tournament file to it.
//!
//! A statement that is taken names this tournament, this agent, its component, its parameters and
//! both roles, and is signed by the key that it names. Whether that key is the author's is not
//! known here: whoever knows the author compares it.
//!
//! Not here: writing statements, and the form of their text (`arena_core::submission`).

use arena_core::config::AgentConfig;
use arena_core::hexadecimal::hex;
use arena_core::scenario::Role;
use arena_core::submission::{SUBMISSION_BYTES_MAX, Submission, params_sha256};
use arena_log::note::{Note, Vkey};

use crate::error::{CliError, Complaint};
use crate::files;
use crate::inputs::TournamentFile;

/// A statement that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The whole note, as it was handed in.
    pub note: String,
    /// What it says.
    pub statement: Submission,
}

/// Reads and checks the statement about an agent; `None` where the file names none.
///
/// # Errors
/// It cannot be read, is not signed by the key that it names, or is about something else.
pub fn read(
    file: &TournamentFile,
    agent: &AgentConfig,
    component_sha256: [u8; 32],
) -> Result<Option<Signed>, CliError> {
    let Some(given) = &agent.submission else {
        return Ok(None);
    };
    let path = file.resolve(given);
    let fails = |mut complaint: Complaint| {
        complaint.failed = format!("agent `{}`: {}", agent.name, complaint.failed);
        CliError::Input(complaint)
    };
    let note = files::read_text(&path, SUBMISSION_BYTES_MAX as u64).map_err(fails)?;
    let entered = Entered {
        tournament: &file.config.name,
        agent,
        component_sha256,
        taken: file.config.roles_of(agent),
    };
    let statement =
        open(&note).and_then(|statement| hold(&statement, &entered).map(|()| statement));
    match statement {
        Ok(statement) => Ok(Some(Signed { note, statement })),
        Err(fact) => {
            let failed = format!("cannot take the submission `{}`", path.display());
            let hint = "the author signs a new one with `arena submit`";
            Err(fails(Complaint::new(failed, fact).hint(hint)))
        }
    }
}

/// Reads a statement and verifies it with the key that it names.
fn open(note: &str) -> Result<Submission, String> {
    let note = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
    let statement = Submission::parse(note.text()).map_err(|error| error.to_string())?;
    let author = Vkey::parse(&statement.author).map_err(|error| error.to_string())?;
    note.verify(&author).map_err(|error| error.to_string())?;
    Ok(statement)
}

/// What a tournament file enters.
struct Entered<'a> {
    tournament: &'a str,
    agent: &'a AgentConfig,
    component_sha256: [u8; 32],
    /// Whether it buys and whether it sells.
    taken: [bool; 2],
}

/// Compares a statement with what the tournament file enters.
fn hold(statement: &Submission, entered: &Entered<'_>) -> Result<(), String> {
    let &Entered { tournament, agent, component_sha256, taken } = entered;
    if statement.tournament != tournament {
        let found = &statement.tournament;
        return Err(format!("it is for the tournament `{found}`, this is `{tournament}`"));
    }
    if statement.agent != agent.name {
        let (found, wanted) = (&statement.agent, &agent.name);
        return Err(format!("it is about the agent `{found}`, the file enters `{wanted}`"));
    }
    if statement.component_sha256 != component_sha256 {
        let (found, wanted) = (hex(&statement.component_sha256), hex(&component_sha256));
        return Err(format!("it is about the component {found}, the file enters {wanted}"));
    }
    if statement.params_sha256 != params_sha256(&agent.params) {
        let params = agent.params.escape_debug();
        return Err(format!("it is for other parameters than `{params}`, which the file gives"));
    }
    let refused = |role: &Role| taken[role.index()] && !statement.roles[role.index()];
    match Role::BOTH.into_iter().find(refused) {
        Some(_) if taken == [true, true] => {
            Err("it grants one role only, and here every agent plays both".into())
        }
        Some(role) => Err(format!("it does not grant the role of the {role}, which is played")),
        None => Ok(()),
    }
}

/// Collects the commitments to contributions, in the order of the agents.
///
/// # Errors
/// Two agents bring the same one, which would count twice.
pub fn contributions(signed: &[&Signed]) -> Result<Vec<[u8; 32]>, CliError> {
    let mut found: Vec<(&str, [u8; 32])> = Vec::new();
    for statement in signed.iter().map(|signed| &signed.statement) {
        let Some(commitment) = statement.contribution else { continue };
        if let Some((first, _)) = found.iter().find(|(_, other)| *other == commitment) {
            let fact = format!("it is that of agent `{first}`, {}", hex(&commitment));
            let failed = format!("agent `{}`: cannot take its contribution", statement.agent);
            let hint = "each author commits to a random value of its own";
            return Err(CliError::Input(Complaint::new(failed, fact).hint(hint)));
        }
        found.push((&statement.agent, commitment));
    }
    Ok(found.into_iter().map(|(_, commitment)| commitment).collect())
}

#[cfg(test)]
mod tests {
    use arena_core::config::{ComponentSource, Training};
    use arena_log::key::SigningKey;

    use super::*;

    fn agent() -> AgentConfig {
        AgentConfig {
            name: "haggler".to_owned(),
            component: ComponentSource::File("haggler.wasm".to_owned()),
            params: String::new(),
            candidate: false,
            models: Vec::new(),
            training: Training::None,
            submission: Some("haggler.note".to_owned()),
        }
    }

    fn statement(key: &SigningKey) -> Submission {
        Submission {
            agent: "haggler".to_owned(),
            tournament: "spring".to_owned(),
            component_sha256: [7; 32],
            params_sha256: params_sha256(""),
            roles: [true, true],
            time: 1_796_000_000,
            contribution: None,
            author: key.vkey("author").expect("a sound name").to_string(),
        }
    }

    fn held(statement: &Submission, taken: [bool; 2]) -> Result<(), String> {
        let (tournament, component_sha256) = ("spring", [7; 32]);
        hold(statement, &Entered { tournament, agent: &agent(), component_sha256, taken })
    }

    fn sign(key: &SigningKey, statement: &Submission) -> String {
        let text = statement.text();
        let signature = key.sign_note("author", &text).expect("a sound name");
        Note::new(text, vec![signature]).expect("a sound note").to_string()
    }

    #[test]
    fn a_statement_signed_by_the_key_that_it_names_is_taken() {
        let key = SigningKey::from_seed([1; 32]);
        let opened = open(&sign(&key, &statement(&key))).expect("a sound statement");
        assert_eq!(opened, statement(&key));
        assert_eq!(held(&opened, [true, true]), Ok(()));
    }

    #[test]
    fn a_statement_that_another_key_signed_or_that_was_changed_is_refused() {
        let (key, other) = (SigningKey::from_seed([1; 32]), SigningKey::from_seed([2; 32]));
        let forged = open(&sign(&other, &statement(&key))).expect_err("another signer");
        assert!(forged.contains("no signature of `author`"), "{forged}");
        let changed = sign(&key, &statement(&key)).replace("roles buyer seller", "roles buyer");
        let changed = open(&changed).expect_err("a changed text");
        assert!(changed.contains("not one of this text"), "{changed}");
    }

    #[test]
    fn a_statement_about_anything_else_is_refused() {
        let honest = statement(&SigningKey::from_seed([1; 32]));
        let other_agent = Submission { agent: "b".to_owned(), ..honest.clone() };
        let other_component = Submission { component_sha256: [8; 32], ..honest.clone() };
        let other_params = Submission { params_sha256: params_sha256("low=1"), ..honest.clone() };
        let elsewhere = Submission { tournament: "autumn".to_owned(), ..honest.clone() };
        let one_role = Submission { roles: [true, false], ..honest };
        for (statement, piece) in [
            (other_agent, "agent `b`"),
            (other_component, "0808"),
            (other_params, "other parameters"),
            (elsewhere, "tournament `autumn`"),
            (one_role.clone(), "one role only"),
        ] {
            let refused = held(&statement, [true, true]).expect_err(piece);
            assert!(refused.contains(piece), "{refused}");
        }
        assert_eq!(held(&one_role, [true, false]), Ok(()), "where it only buys");
        let refused = held(&one_role, [false, true]).expect_err("where it only sells");
        assert_eq!(refused, "it does not grant the role of the seller, which is played");
    }

    #[test]
    fn one_contribution_counts_once() {
        let key = SigningKey::from_seed([1; 32]);
        let with = |agent: &str, contribution| {
            let statement = Submission { agent: agent.to_owned(), contribution, ..statement(&key) };
            Signed { note: String::new(), statement }
        };
        let [a, b] = [with("a", Some([1; 32])), with("b", None)];
        let [c, d] = [with("c", Some([2; 32])), with("d", Some([1; 32]))];
        assert_eq!(contributions(&[&a, &b, &c]).expect("different ones"), [[1; 32], [2; 32]]);
        assert!(contributions(&[&a, &d]).is_err());
    }
}
