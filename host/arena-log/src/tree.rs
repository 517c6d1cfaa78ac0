//! The Merkle tree of RFC 6962 §2.1: which nodes it has, and its root while it grows.
//!
//! A node is named by its level and its index on that level: node (l, i) stands above the
//! leaves i·2^l to (i+1)·2^l − 1. Only such perfect nodes are ever stored; every other hash
//! of a tree is computed from them.
//!
//! Not here: proofs (`proof`) and files (`tile`).

use crate::hash::Hash;

/// A perfect node of the tree, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// The height: 0 for leaves.
    pub level: u8,
    /// The place on its level, from the left, counted from 0.
    pub index: u64,
}

/// The right edge of a growing tree: enough to know its root and to go on.
///
/// Takes one hash for each set bit of the size, thus at most 64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// The roots of the perfect trees that the size splits into, the largest first.
    peaks: Vec<Hash>,
}

impl Frontier {
    /// Returns the frontier of the empty tree.
    pub fn new() -> Frontier {
        Frontier::default()
    }

    /// Takes up a tree of `size` leaves whose perfect nodes are known. Asks `node` for one
    /// hash per set bit of the size.
    ///
    /// # Errors
    /// Whatever `node` answers.
    pub fn resume<E>(
        size: u64,
        node: &mut dyn FnMut(Node) -> Result<Hash, E>,
    ) -> Result<Frontier, E> {
        let peaks = perfect_nodes(0, size).into_iter().map(node).collect::<Result<_, E>>()?;
        Ok(Frontier { size, peaks })
    }

    /// Adds a leaf at the right.
    ///
    /// # Panics
    /// The tree has 2^64 − 1 leaves.
    pub fn append(&mut self, leaf: Hash) {
        let mut root = leaf;
        // Each set bit at the low end of the size is a perfect tree of the same size as the
        // one that has just been completed.
        for _ in 0..self.size.trailing_ones() {
            let left = self.peaks.pop().expect("each set bit of the size has its peak");
            root = Hash::node(&left, &root);
        }
        self.peaks.push(root);
        self.size = self.size.checked_add(1).expect("a tree has fewer than 2^64 leaves");
        assert_eq!(self.peaks.len(), self.size.count_ones() as usize);
    }

    /// Returns how many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the tree as it stands.
    pub fn root(&self) -> Hash {
        root_of_peaks(&self.peaks)
    }
}

/// Returns the root of a tree over `leaves`, which are leaf hashes (or, for a tile that stands
/// higher up, the hashes of the nodes on its level).
pub fn root_of(leaves: &[Hash]) -> Hash {
    let mut frontier = Frontier::new();
    leaves.iter().for_each(|leaf| frontier.append(*leaf));
    frontier.root()
}

/// Splits the leaves `start..end` into perfect nodes, the left ones first.
///
/// A range that a proof needs starts at a multiple of the smallest power of two that is not
/// below its length; then there is one node per set bit of the length.
pub(crate) fn perfect_nodes(start: u64, end: u64) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut at = start;
    while at < end {
        let level = (end - at).ilog2();
        assert!(at.is_multiple_of(1 << level), "a range starts at a multiple of its width");
        nodes.push(Node { level: level as u8, index: at >> level });
        at += 1 << level;
    }
    nodes
}

/// Folds the roots of perfect trees, the largest first, into the root of all their leaves.
pub(crate) fn root_of_peaks(peaks: &[Hash]) -> Hash {
    let folded = peaks.iter().rev().copied().reduce(|right, left| Hash::node(&left, &right));
    folded.unwrap_or(Hash::EMPTY_TREE)
}
