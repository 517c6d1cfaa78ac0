//! The agents' components: whether they are there for anyone to run again.
//!
//! Not here: running them (`arena-runner`).

use std::collections::BTreeSet;

use arena_core::announcement::Announcement;
use arena_log::hash::Hash;
use arena_log::reader::LogReader;

use crate::files::COMPONENT_BYTES_MAX;
use crate::folder::Folder;
use crate::verdict::{Finding, Findings, Verdict, count};

/// Checks that every announced component is published, with the bytes of its hash.
pub(crate) fn check(announcement: &Announcement, reader: &LogReader, folder: &Folder) -> Verdict {
    let mut found = Findings::default();
    let mut seen = BTreeSet::new();
    for agent in &announcement.agents {
        let hash = Hash(agent.component_sha256);
        if !seen.insert(hash) {
            continue;
        }
        match reader.blob(&hash, COMPONENT_BYTES_MAX) {
            Ok(Some(_)) => {}
            Ok(None) => {
                let what = format!("the component of agent `{}`", agent.name);
                let file = arena_log::tile::blob(&hash);
                found.add(Finding::new(what, "none", "one").within(file));
            }
            Err(error) => found.add(folder.finding(&error)),
        }
    }
    let components = count(seen.len() as u64, "component", "components");
    let agents = count(announcement.agents.len() as u64, "agent", "agents");
    found.or_verified(format!("{components} of {agents}"))
}
