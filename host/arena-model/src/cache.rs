//! Which sequence has which KV block, and what finished ones left behind.
//!
//! Full blocks stand in a tree: a node is the 16 tokens of its block, and its path from the root
//! is everything before them, so equal paths have equal keys and values and are shared. There is
//! one root for each version of the adapter. What no sequence uses stays until its block is
//! needed; the block that was used longest ago goes first, leaves before what they stand on.
//! Blocks of a sequence that are not full, or not yet in the tree, are its own.
//!
//! Pure bookkeeping: no keys, no values, no clock. The same calls give the same answers.
//!
//! Not here: the blocks themselves (`executor`), who gets blocks first (`schedule`).

use std::collections::{BTreeMap, BTreeSet};

use crate::executor::{BLOCK_TOKENS, BlockId};

/// Stands where a block has no token. No vocabulary reaches it.
const NO_TOKEN: u32 = u32::MAX;

/// Rows that must be copied before the next batch is computed, in the order of the copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCopy {
    /// The block that begins with the same tokens.
    pub from: BlockId,
    /// The sequence's own block.
    pub to: BlockId,
    /// How many tokens they share.
    pub rows: usize,
}

/// What a sequence holds of the pool.
#[derive(Debug)]
pub struct Lease {
    version: u64,
    /// Nodes of the tree, from the root.
    path: Vec<usize>,
    /// Every block, oldest first: those of the path, then the sequence's own.
    table: Vec<BlockId>,
}

impl Lease {
    /// Returns the blocks, oldest first.
    pub fn table(&self) -> &[BlockId] {
        &self.table
    }

    fn owns_blocks(&self) -> bool {
        self.table.len() > self.path.len()
    }
}

type BlockTokens = [u32; BLOCK_TOKENS];

/// A node's place: siblings are sorted by their tokens, so that those which begin with the same
/// tokens are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    version: u64,
    parent: Option<usize>,
    tokens: BlockTokens,
}

#[derive(Debug)]
struct Node {
    place: Place,
    block: BlockId,
    /// Leases whose path it is on.
    users: usize,
    children: usize,
    /// When it was last given back.
    stamp: u64,
    /// The step in which its rows are computed; they can be copied in later ones.
    step: u64,
}

/// The pool's books.
#[derive(Debug)]
pub struct PrefixCache {
    block_count: usize,
    free: Vec<BlockId>,
    nodes: Vec<Option<Node>>,
    vacant: Vec<usize>,
    places: BTreeMap<Place, usize>,
    /// Leaves that nobody uses, by stamp.
    leaves: BTreeSet<(u64, usize)>,
    /// Nodes that nobody uses. What is below such a node is not used either.
    idle: usize,
    clock: u64,
}

impl PrefixCache {
    /// Returns the books of an empty pool.
    pub fn new(block_count: usize) -> PrefixCache {
        let last = u32::try_from(block_count).expect("pools have fewer than 2^32 blocks");
        PrefixCache {
            block_count,
            // The lowest block is given out first.
            free: (0..last).rev().map(BlockId).collect(),
            nodes: Vec::new(),
            vacant: Vec::new(),
            places: BTreeMap::new(),
            leaves: BTreeSet::new(),
            idle: 0,
            clock: 0,
        }
    }

    /// Returns how many blocks the pool has.
    pub fn block_count(&self) -> usize {
        self.block_count
    }

    /// Returns how many blocks sequences hold.
    pub fn used_count(&self) -> usize {
        self.block_count - self.available_count()
    }

    /// Returns how many blocks could be had without taking any from a sequence.
    pub fn available_count(&self) -> usize {
        self.free.len() + self.idle
    }

    /// Opens a lease that holds nothing.
    pub fn open(&self, version: u64) -> Lease {
        Lease { version, path: Vec::new(), table: Vec::new() }
    }

    /// Takes full blocks of the tree that go on where the lease ends, as long as they hold
    /// `tokens` and leave at least one token to compute. Returns the tokens that the lease covers
    /// now.
    ///
    /// Does nothing unless the lease covers exactly `computed` tokens by full blocks of the tree.
    pub fn take_shared(&mut self, lease: &mut Lease, tokens: &[u32], computed: usize) -> usize {
        if lease.owns_blocks() || lease.path.len() * BLOCK_TOKENS != computed {
            return computed;
        }
        let mut covered = computed;
        while covered + BLOCK_TOKENS < tokens.len() {
            let place = place(lease, &tokens[covered..covered + BLOCK_TOKENS]);
            let Some(&node) = self.places.get(&place) else {
                break;
            };
            self.enter(lease, node);
            covered += BLOCK_TOKENS;
        }
        covered
    }

    /// Finds the block of the tree that shares most tokens with what follows `computed`, gives
    /// the lease a block of its own, and returns the copy that fills it: at least one token, and
    /// at least one is left to compute. Only blocks computed before `step` are copied.
    ///
    /// Does nothing unless the lease covers exactly `computed` tokens by full blocks of the tree.
    pub fn take_part(
        &mut self,
        lease: &mut Lease,
        tokens: &[u32],
        computed: usize,
        step: u64,
    ) -> Option<RowCopy> {
        if lease.owns_blocks() || lease.path.len() * BLOCK_TOKENS != computed {
            return None;
        }
        let wanted = &tokens[computed..tokens.len().saturating_sub(1).max(computed)];
        let wanted = &wanted[..wanted.len().min(BLOCK_TOKENS)];
        let (rows, node) = self
            .neighbours(lease, wanted)
            .filter(|&(rows, node)| rows > 0 && self.node(node).step < step)
            .max_by_key(|&(rows, _)| rows)?;
        // The source must not be what makes room for the copy.
        self.hold(node);
        let to = self.allocate();
        self.unhold(node);
        let from = self.node(node).block;
        let to = to?;
        lease.table.push(to);
        Some(RowCopy { from, to, rows })
    }

    /// Gives the lease blocks of its own until it has room for `tokens` tokens. Returns whether
    /// it could; if not, nothing changes.
    pub fn reserve(&mut self, lease: &mut Lease, tokens: usize) -> bool {
        let missing = tokens.div_ceil(BLOCK_TOKENS).saturating_sub(lease.table.len());
        if missing > self.available_count() {
            return false;
        }
        for _ in 0..missing {
            let block = self.allocate().expect("blocks were counted");
            lease.table.push(block);
        }
        true
    }

    /// Puts the lease's own full blocks into the tree, where others find them. `tokens` are those
    /// whose rows are computed by the end of `step`; the first `written` were before it.
    ///
    /// Where the tree has an equal block already, the lease changes over to it, unless its own is
    /// being written in this step: then it keeps its own, and what follows, until a later call.
    pub fn publish(&mut self, lease: &mut Lease, tokens: &[u32], written: usize, step: u64) {
        while (lease.path.len() + 1) * BLOCK_TOKENS <= tokens.len() {
            let start = lease.path.len() * BLOCK_TOKENS;
            let end = start + BLOCK_TOKENS;
            let place = place(lease, &tokens[start..end]);
            let block = lease.table[lease.path.len()];
            match self.places.get(&place) {
                Some(_) if end > written => return,
                Some(&node) => {
                    self.hold(node);
                    self.free.push(block);
                    lease.table[lease.path.len()] = self.node(node).block;
                    lease.path.push(node);
                }
                None => {
                    let step = if end > written { step } else { 0 };
                    let node = self.insert(place, block, step);
                    self.hold(node);
                    lease.path.push(node);
                }
            }
        }
    }

    /// Gives everything back. `tokens` are those whose rows are computed: their blocks stay in
    /// the tree while there is room, the last one too if it is partly filled.
    pub fn close(&mut self, mut lease: Lease, tokens: &[u32]) {
        self.publish(&mut lease, tokens, tokens.len(), 0);
        let full = lease.path.len() * BLOCK_TOKENS;
        let mut own = lease.table.split_off(lease.path.len());
        if full < tokens.len() {
            let rest = &tokens[full..];
            let is_held = self.neighbours(&lease, rest).any(|(rows, _)| rows == rest.len());
            if !is_held {
                let block = own.remove(0);
                let node = self.insert(place(&lease, rest), block, 0);
                self.hold(node);
                lease.path.push(node);
            }
        }
        self.free.extend(own);
        self.clock += 1;
        for &node in lease.path.iter().rev() {
            self.node_mut(node).stamp = self.clock;
            self.unhold(node);
        }
    }

    /// Forgets all that was computed with a version, except what sequences hold.
    pub fn forget(&mut self, version: u64) {
        loop {
            let is_of = |node: usize| self.node(node).place.version == version;
            let Some(leaf) = self.leaves.iter().copied().find(|&(_, node)| is_of(node)) else {
                return;
            };
            self.evict(leaf);
        }
    }

    /// Returns the blocks that could go on where the lease's path ends and share most tokens with
    /// `wanted`: how many, and the node.
    fn neighbours(
        &self,
        lease: &Lease,
        wanted: &[u32],
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let key = place(lease, wanted);
        // Among sorted texts, the one that shares most with another is next to it.
        let after = self.places.range(key..).next();
        let before = self.places.range(..key).next_back();
        let shared = [before, after].map(|neighbour| {
            let (found, &node) = neighbour?;
            let is_sibling = (found.version, found.parent) == (key.version, key.parent);
            is_sibling.then(|| (shared_count(&found.tokens, wanted), node))
        });
        shared.into_iter().flatten()
    }

    fn enter(&mut self, lease: &mut Lease, node: usize) {
        self.hold(node);
        lease.table.push(self.node(node).block);
        lease.path.push(node);
    }

    /// Takes a free block, or that of the leaf that was used longest ago.
    fn allocate(&mut self) -> Option<BlockId> {
        if self.free.is_empty() {
            let leaf = self.leaves.first().copied()?;
            self.evict(leaf);
        }
        self.free.pop()
    }

    fn evict(&mut self, leaf: (u64, usize)) {
        assert!(self.leaves.remove(&leaf), "only unused leaves are evicted");
        let node = self.nodes[leaf.1].take().expect("leaves are nodes");
        self.vacant.push(leaf.1);
        self.places.remove(&node.place);
        self.idle -= 1;
        self.free.push(node.block);
        if let Some(parent) = node.place.parent {
            self.node_mut(parent).children -= 1;
            self.note_leaf(parent);
        }
    }

    fn insert(&mut self, place: Place, block: BlockId, step: u64) -> usize {
        let node = Node { place, block, users: 0, children: 0, stamp: self.clock, step };
        let index = self.vacant.pop().unwrap_or(self.nodes.len());
        if index == self.nodes.len() {
            self.nodes.push(Some(node));
        } else {
            self.nodes[index] = Some(node);
        }
        let earlier = self.places.insert(place, index);
        assert!(earlier.is_none(), "a place has one node");
        if let Some(parent) = place.parent {
            let leaf = (self.node(parent).stamp, parent);
            self.leaves.remove(&leaf);
            self.node_mut(parent).children += 1;
        }
        self.idle += 1;
        self.note_leaf(index);
        index
    }

    fn hold(&mut self, index: usize) {
        let leaf = (self.node(index).stamp, index);
        self.leaves.remove(&leaf);
        let node = self.node_mut(index);
        node.users += 1;
        if node.users == 1 {
            self.idle -= 1;
        }
    }

    fn unhold(&mut self, index: usize) {
        let node = self.node_mut(index);
        assert!(node.users > 0, "a node is given back as often as it is taken");
        node.users -= 1;
        if node.users == 0 {
            self.idle += 1;
            self.note_leaf(index);
        }
    }

    fn note_leaf(&mut self, index: usize) {
        let node = self.node(index);
        if node.users == 0 && node.children == 0 {
            let leaf = (node.stamp, index);
            self.leaves.insert(leaf);
        }
    }

    fn node(&self, index: usize) -> &Node {
        self.nodes[index].as_ref().expect("indices are of nodes")
    }

    fn node_mut(&mut self, index: usize) -> &mut Node {
        self.nodes[index].as_mut().expect("indices are of nodes")
    }
}

/// The place under the lease's last node that holds `tokens`, at most a block of them.
fn place(lease: &Lease, tokens: &[u32]) -> Place {
    let mut padded = [NO_TOKEN; BLOCK_TOKENS];
    padded[..tokens.len()].copy_from_slice(tokens);
    Place { version: lease.version, parent: lease.path.last().copied(), tokens: padded }
}

/// How many tokens both begin with.
fn shared_count(held: &BlockTokens, wanted: &[u32]) -> usize {
    held.iter().zip(wanted).take_while(|(held, wanted)| held == wanted).count()
}

#[cfg(test)]
mod tests;
