//! Two views of one log, held against each other.
//!
//! Two signed heads of one size with different roots prove that the log told two stories, to
//! anyone who has its key. Of heads of different sizes, the folder of the larger one shows
//! whether it continues the smaller one: its entries are hashed again, since tiles could be
//! damaged where the log is honest.
//!
//! Not here: anything that the entries say.

use std::path::Path;

use arena_log::checkpoint::Head;
use arena_log::hash::Hash;
use arena_log::policy::{Opened, Policy};
use arena_log::reader::{Access, LogReader};
use arena_log::tree::Frontier;

use crate::verdict::Finding;

/// One view: a signed head, and the folder in which its entries lie, if that is at hand.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The signed head.
    pub checkpoint: &'a [u8],
    /// The log's folder.
    pub folder: Option<&'a Path>,
}

/// How two views of a log stand to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are of one size and one root.
    Same,
    /// The larger one continues the smaller one.
    Continued,
    /// The log has told two stories: both heads are signed, and no log can have both.
    Forked {
        /// How many entries the two heads are compared at.
        size: u64,
        /// The root that the first view has at this size.
        first: Hash,
        /// The root that the second view has at this size.
        second: Hash,
    },
    /// They are of two logs, and say nothing about each other.
    Unrelated,
    /// It cannot be told.
    Unknown {
        /// Why not.
        reason: String,
    },
}

/// Two views and how they stand to each other.
#[derive(Clone, Debug)]
pub struct Diff {
    /// The first view's head, as `policy` accepts it.
    pub first: Opened,
    /// The second view's head, as `policy` accepts it.
    pub second: Opened,
    /// How they stand to each other.
    pub relation: Relation,
}

/// Compares two views.
///
/// # Errors
/// A head is not one that `policy` believes: it proves nothing then.
pub fn diff(first: View<'_>, second: View<'_>, policy: &Policy) -> Result<Diff, Finding> {
    let open = |view: View<'_>, which: &str| {
        let opened = policy.open(view.checkpoint);
        opened.map_err(|error| Finding::new(format!("the {which} head"), error, "a trusted head"))
    };
    let (left, right) = (open(first, "first")?, open(second, "second")?);
    let relation = relation((&left.head, first.folder), (&right.head, second.folder));
    Ok(Diff { first: left, second: right, relation })
}

fn relation(
    (first, first_folder): (&Head, Option<&Path>),
    (second, second_folder): (&Head, Option<&Path>),
) -> Relation {
    if first.origin != second.origin {
        return Relation::Unrelated;
    }
    if first.size == second.size {
        let (size, first, second) = (first.size, first.root, second.root);
        return match first == second {
            true => Relation::Same,
            false => Relation::Forked { size, first, second },
        };
    }
    let first_is_larger = first.size > second.size;
    let (small, large, folder) = match first_is_larger {
        true => (second, first, first_folder),
        false => (first, second, second_folder),
    };
    let Some(folder) = folder else {
        let reason = format!(
            "the heads are of {} and {} entries, and the entries of the larger one are not at hand",
            first.size, second.size
        );
        return Relation::Unknown { reason };
    };
    match root_at(folder, large, small.size) {
        Err(reason) => Relation::Unknown { reason },
        Ok(root) if root == small.root => Relation::Continued,
        Ok(root) if first_is_larger => {
            Relation::Forked { size: small.size, first: root, second: small.root }
        }
        Ok(root) => Relation::Forked { size: small.size, first: small.root, second: root },
    }
}

/// Returns the root over the first `size` entries, once all entries gave the root of `head`.
fn root_at(folder: &Path, head: &Head, size: u64) -> Result<Hash, String> {
    let shown = |error: &dyn std::fmt::Display| {
        format!("the entries of the larger head cannot be read: {error}")
    };
    let mut reader = LogReader::open(folder, Access::Public).map_err(|error| shown(&error))?;
    let mut frontier = Frontier::new();
    let mut root = Frontier::new().root();
    while frontier.size() < head.size {
        let record = reader.next_record().map_err(|error| shown(&error))?;
        let Some(record) = record else {
            return Err(format!("`{}` has fewer entries than its head", folder.display()));
        };
        frontier.append(Hash::leaf(record.entry));
        if frontier.size() == size {
            root = frontier.root();
        }
    }
    if frontier.root() != head.root {
        return Err(format!(
            "the entries in `{}` give the root {}, its head has {}",
            folder.display(),
            frontier.root(),
            head.root
        ));
    }
    Ok(root)
}
