//! A small log in memory, and keys with known seeds.

use std::collections::BTreeMap;

use arena_log::checkpoint::Head;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::proof::{self, ProofError};
use arena_log::tree::{Frontier, Node};

/// The name of the sample log.
pub const ORIGIN: &str = "arena.example/spring";

/// Returns the key with this number.
pub fn key(number: u8) -> SigningKey {
    SigningKey::from_seed([number; 32])
}

/// A tree with all its perfect nodes.
pub struct Tree {
    pub leaves: Vec<Hash>,
    nodes: BTreeMap<Node, Hash>,
}

impl Tree {
    /// The tree whose entries are the decimal numbers from 0.
    pub fn of_size(size: usize) -> Tree {
        Tree::of_entries((0..size).map(|number| number.to_string().into_bytes()))
    }

    pub fn of_entries(entries: impl Iterator<Item = Vec<u8>>) -> Tree {
        let leaves: Vec<Hash> = entries.map(|entry| Hash::leaf(&entry)).collect();
        let mut nodes = BTreeMap::new();
        let mut row = leaves.clone();
        for level in 0.. {
            for (index, hash) in row.iter().enumerate() {
                nodes.insert(Node { level, index: index as u64 }, *hash);
            }
            row = row.chunks_exact(2).map(|pair| Hash::node(&pair[0], &pair[1])).collect();
            if row.is_empty() {
                break;
            }
        }
        Tree { leaves, nodes }
    }

    pub fn size(&self) -> u64 {
        self.leaves.len() as u64
    }

    /// The root over the first `size` leaves, by the recursion of RFC 6962 §2.1.
    pub fn root_at(&self, size: usize) -> Hash {
        recursive_root(&self.leaves[..size])
    }

    pub fn root(&self) -> Hash {
        self.root_at(self.leaves.len())
    }

    pub fn node(&self, node: Node) -> Hash {
        self.nodes[&node]
    }

    pub fn frontier(&self) -> Frontier {
        let mut frontier = Frontier::new();
        self.leaves.iter().for_each(|leaf| frontier.append(*leaf));
        frontier
    }

    pub fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Hash>, ProofError> {
        proof::inclusion_proof(index, size, &mut |node| Ok(self.node(node)))
    }

    pub fn consistency(&self, old: u64, new: u64) -> Result<Vec<Hash>, ProofError> {
        proof::consistency_proof(old, new, &mut |node| Ok(self.node(node)))
    }

    pub fn head(&self) -> Head {
        Head { origin: ORIGIN.to_owned(), size: self.size(), root: self.root() }
    }
}

fn recursive_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Hash::EMPTY_TREE,
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
            Hash::node(&recursive_root(left), &recursive_root(right))
        }
    }
}

/// Returns `bytes` once for each of its bits, with that bit flipped, and the bit's byte.
pub fn bit_flips(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> + '_ {
    (0..8 * bytes.len()).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        (bit / 8, flipped)
    })
}
