//! The authors' signed statements about their agents.
//!
//! A statement names the tournament, the agent, its component, its parameters and its author's
//! key, and is signed with that key.
//! Whose key that is, only the auditor's own list of authors can say.
//!
//! Not here: the components themselves (`components`).

use std::collections::BTreeSet;

use arena_core::announcement::{AgentEntry, Announcement};
use arena_core::draws::Draws;
use arena_core::hexadecimal::hex;
use arena_core::scenario::Role;
use arena_core::submission::{Submission, params_sha256};
use arena_log::note::{Note, Vkey};

use crate::announcement::Announced;
use crate::verdict::{Finding, Findings, Verdict};

/// Checks every statement; `authors` are the keys that the auditor knows, by agent.
pub(crate) fn check(announced: &Announced, authors: &[(String, Vkey)]) -> Verdict {
    let Announced { announcement, config, .. } = announced;
    let mut found = Findings::default();
    let mut stated = 0_usize;
    let mut named = 0_usize;
    for (agent, given) in announcement.agents.iter().zip(&config.agents) {
        let taken = config.roles_of(given);
        let known = authors.iter().find(|(name, _)| *name == agent.name).map(|(_, key)| key);
        match (&agent.submission, known) {
            (None, None) => {}
            (None, Some(_)) => found.add(about(agent, "the statement", "none", "one")),
            (Some(note), known) => {
                stated += 1;
                named += usize::from(known.is_some());
                found.check(statement(announcement, agent, taken, note, known));
            }
        }
    }
    for (name, _) in authors {
        if !announcement.agents.iter().any(|agent| agent.name == *name) {
            let what = "the agent of a known author";
            found.add(Finding::new(what, "none", format!("`{name}`")).at(0));
        }
    }
    let of = announcement.agents.len();
    let keys = match (stated, named) {
        (0, _) => {
            return found.or_verified("no agent came with a statement: who made them is not shown");
        }
        (_, 0) => "; their keys are nobody's in particular".to_owned(),
        _ => format!(", {named} of them by known authors"),
    };
    found.or_verified(format!("{stated} of {of} agents have one{keys}"))
}

fn statement(
    announcement: &Announcement,
    agent: &AgentEntry,
    taken: [bool; 2],
    text: &str,
    known: Option<&Vkey>,
) -> Result<(), Finding> {
    let note = Note::parse(text.as_bytes())
        .map_err(|error| about(agent, "the statement", error, "a signed note"))?;
    let stated = Submission::parse(note.text())
        .map_err(|error| about(agent, "the statement", error, "a submission"))?;
    let author = Vkey::parse(&stated.author)
        .map_err(|error| about(agent, "the author's key", error, "a verifier key"))?;
    note.verify(&author)
        .map_err(|error| about(agent, "the author's signature", error, &stated.author))?;
    if let Some(known) = known.filter(|known| **known != author) {
        return Err(about(agent, "the author's key", author, known));
    }
    if stated.agent != agent.name {
        return Err(about(agent, "the agent in the statement", &stated.agent, &agent.name));
    }
    if stated.tournament != announcement.name {
        let (found, wanted) = (&stated.tournament, &announcement.name);
        return Err(about(agent, "the tournament in the statement", found, wanted));
    }
    let params = params_sha256(&agent.params);
    if stated.params_sha256 != params {
        let (found, wanted) = (hex(&params), hex(&stated.params_sha256));
        return Err(about(agent, "the hash of the parameters", found, wanted));
    }
    if stated.component_sha256 != agent.component_sha256 {
        let (found, wanted) = (hex(&agent.component_sha256), hex(&stated.component_sha256));
        return Err(about(agent, "the component", found, wanted));
    }
    let refused = |role: &Role| taken[role.index()] && !stated.roles[role.index()];
    if let Some(role) = Role::BOTH.into_iter().find(refused) {
        return Err(about(agent, "the role", role, "one that the author allows"));
    }
    match stated.contribution {
        Some(commitment) if !commitments(announcement).contains(&commitment) => {
            let wanted = hex(&commitment);
            Err(about(agent, "the contribution to the draws", "none", wanted))
        }
        _ => Ok(()),
    }
}

/// Returns what the authors commit to contribute to the draws, as far as statements can be read.
pub(crate) fn contributions(announcement: &Announcement) -> BTreeSet<[u8; 32]> {
    let read = |text: &String| {
        let note = Note::parse(text.as_bytes()).ok()?;
        Submission::parse(note.text()).ok()?.contribution
    };
    announcement
        .agents
        .iter()
        .filter_map(|agent| agent.submission.as_ref())
        .filter_map(read)
        .collect()
}

fn commitments(announcement: &Announcement) -> &[[u8; 32]] {
    match &announcement.draws {
        Draws::PublicSeed(_) => &[],
        Draws::Committed(committed) => &committed.contributions,
    }
}

fn about(
    agent: &AgentEntry,
    what: &str,
    found: impl std::fmt::Display,
    wanted: impl std::fmt::Display,
) -> Finding {
    Finding::new(format!("{what} of agent `{}`", agent.name), found, wanted).at(0)
}
