//! Proofs that an entry is in a tree, and that one tree is the beginning of another.
//!
//! Verified by the algorithms of RFC 9162, which use up the whole size of the tree: a proof
//! fits one index and one size, or two sizes, and no others. Sizes must come from a signed
//! head and never from whoever gives the proof.
//!
//! Not here: where the hashes of nodes come from; whoever makes a proof brings them.

use std::fmt;

use crate::hash::Hash;
use crate::tree::{self, Node};

/// Most hashes that a proof has: one per level below the root, and one for the old root.
pub const PROOF_HASHES_MAX: usize = 65;

/// Proves that the entry at `index` is in the tree of `size` entries (RFC 6962 §2.1.1): the
/// siblings on the way up, from the leaf's on. Asks `node` for perfect nodes of that tree.
///
/// The error type is the source's own, so that a missing tile is told as what it is.
///
/// # Errors
/// There is no such entry, or whatever `node` answers.
pub fn inclusion_proof<E: From<ProofError>>(
    index: u64,
    size: u64,
    node: &mut dyn FnMut(Node) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    if index >= size {
        return Err(ProofError::Index { index, size }.into());
    }
    let (mut start, mut end) = (0, size);
    let mut siblings = Vec::new();
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            siblings.push(root_between(middle, end, node)?);
            end = middle;
        } else {
            siblings.push(root_between(start, middle, node)?);
            start = middle;
        }
    }
    siblings.reverse();
    Ok(siblings)
}

/// Proves that the tree of `old` entries is the beginning of the tree of `new` entries (RFC
/// 6962 §2.1.2). Asks `node` for perfect nodes of the new tree. Of an empty old tree, and of
/// two equal sizes, there is nothing to prove, and the proof is empty.
///
/// # Errors
/// The old tree is the larger one, or whatever `node` answers.
pub fn consistency_proof<E: From<ProofError>>(
    old: u64,
    new: u64,
    node: &mut dyn FnMut(Node) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    if old > new {
        return Err(ProofError::Shrunk { old, new }.into());
    }
    if old == 0 || old == new {
        return Ok(Vec::new());
    }
    let (mut start, mut end) = (0, new);
    let mut hashes = Vec::new();
    // The old tree ends at `old`: go down until it ends where a node does.
    while end != old {
        let middle = start + split(end - start);
        if old <= middle {
            hashes.push(root_between(middle, end, node)?);
            end = middle;
        } else {
            hashes.push(root_between(start, middle, node)?);
            start = middle;
        }
    }
    // The verifier has the old root already where the old tree is a single node.
    if start != 0 {
        hashes.push(root_between(start, end, node)?);
    }
    hashes.reverse();
    Ok(hashes)
}

/// Checks that the tree of `size` entries under `root` holds `leaf` at `index` (RFC 9162
/// §2.1.3.2).
///
/// # Errors
/// It does not, or the proof does not show it.
pub fn verify_inclusion(
    leaf: Hash,
    index: u64,
    size: u64,
    root: Hash,
    proof: &[Hash],
) -> Result<(), ProofError> {
    if index >= size {
        return Err(ProofError::Index { index, size });
    }
    let mut place = Place { at: index, last: size - 1 };
    let mut computed = leaf;
    for sibling in proof {
        computed = match place.climb().ok_or(ProofError::Long { found: proof.len() })? {
            Side::Left => Hash::node(sibling, &computed),
            Side::Right => Hash::node(&computed, sibling),
        };
    }
    if place.last != 0 {
        return Err(ProofError::Short { found: proof.len() });
    }
    check_root(computed, root)
}

/// Checks that the tree `old` (its size and root) is the beginning of the tree `new` (RFC 9162
/// §2.1.4.2).
///
/// The RFC leaves an empty old tree out. Here, as with C2SP witnesses, it is the beginning of
/// every tree, with an empty proof; and a tree of size 0 must have the empty tree's root.
///
/// # Errors
/// It is not, or the proof does not show it.
pub fn verify_consistency(
    old: (u64, Hash),
    new: (u64, Hash),
    proof: &[Hash],
) -> Result<(), ProofError> {
    let ((old_size, old_root), (new_size, new_root)) = (old, new);
    if old_size > new_size {
        return Err(ProofError::Shrunk { old: old_size, new: new_size });
    }
    for (size, root) in [old, new] {
        if size == 0 {
            check_root(Hash::EMPTY_TREE, root)?;
        }
    }
    if old_size == 0 || old_size == new_size {
        if !proof.is_empty() {
            return Err(ProofError::Long { found: proof.len() });
        }
        return if old_size == 0 { Ok(()) } else { check_root(old_root, new_root) };
    }
    let mut place = Place { at: old_size - 1, last: new_size - 1 };
    while place.at & 1 == 1 {
        place.up();
    }
    // Where the old tree is a single node, that node is its root and the proof leaves it out.
    let (first, rest) = match proof.split_first() {
        _ if old_size.is_power_of_two() => (old_root, proof),
        Some((first, rest)) => (*first, rest),
        None => return Err(ProofError::Short { found: 0 }),
    };
    let (mut computed_old, mut computed_new) = (first, first);
    for hash in rest {
        match place.climb().ok_or(ProofError::Long { found: proof.len() })? {
            Side::Left => {
                computed_old = Hash::node(hash, &computed_old);
                computed_new = Hash::node(hash, &computed_new);
            }
            Side::Right => computed_new = Hash::node(&computed_new, hash),
        }
    }
    if place.last != 0 {
        return Err(ProofError::Short { found: proof.len() });
    }
    check_root(computed_old, old_root)?;
    check_root(computed_new, new_root)
}

/// Where the sibling of a node lies.
enum Side {
    Left,
    Right,
}

/// A node on its level, and the last node of that level: `fn` and `sn` of RFC 9162.
struct Place {
    at: u64,
    last: u64,
}

impl Place {
    /// Goes to the parent, past the levels where the node has no sibling, and tells on which
    /// side the sibling was; `None` at the root.
    fn climb(&mut self) -> Option<Side> {
        if self.last == 0 {
            return None;
        }
        let side = if self.at & 1 == 1 || self.at == self.last { Side::Left } else { Side::Right };
        if matches!(side, Side::Left) {
            while self.at & 1 == 0 && self.at != 0 {
                self.up();
            }
        }
        self.up();
        Some(side)
    }

    fn up(&mut self) {
        self.at >>= 1;
        self.last >>= 1;
    }
}

/// Returns the largest power of two below `leaves`, which are at least 2 (RFC 6962 §2.1).
fn split(leaves: u64) -> u64 {
    1 << (leaves - 1).ilog2()
}

fn root_between<E>(
    start: u64,
    end: u64,
    node: &mut dyn FnMut(Node) -> Result<Hash, E>,
) -> Result<Hash, E> {
    let nodes = tree::perfect_nodes(start, end);
    let peaks = nodes.into_iter().map(node).collect::<Result<Vec<_>, E>>()?;
    Ok(tree::root_of_peaks(&peaks))
}

fn check_root(computed: Hash, stated: Hash) -> Result<(), ProofError> {
    if computed == stated { Ok(()) } else { Err(ProofError::Root { computed, stated }) }
}

/// A proof that does not show what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofError {
    /// There is no such entry.
    Index {
        /// The entry, counted from 0.
        index: u64,
        /// How many there are.
        size: u64,
    },
    /// The newer tree is the smaller one.
    Shrunk {
        /// Entries of the older.
        old: u64,
        /// Entries of the newer.
        new: u64,
    },
    /// Fewer hashes than the sizes ask for.
    Short {
        /// How many.
        found: usize,
    },
    /// More hashes than the sizes ask for.
    Long {
        /// How many.
        found: usize,
    },
    /// The hashes lead to another root.
    Root {
        /// The root that they give.
        computed: Hash,
        /// The root that was to be shown.
        stated: Hash,
    },
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProofError::Index { index, size } => {
                write!(f, "there is no entry {index} in a log of {size}")
            }
            ProofError::Shrunk { old, new } => {
                write!(f, "the log had {old} entries and has {new}: it was cut")
            }
            ProofError::Short { found } => {
                write!(f, "a proof of {found} hashes is too short for the size of the log")
            }
            ProofError::Long { found } => {
                write!(f, "a proof of {found} hashes is too long for the size of the log")
            }
            ProofError::Root { computed, stated } => {
                write!(f, "a proof leads to the root {computed}, the head says {stated}")
            }
        }
    }
}

impl std::error::Error for ProofError {}
