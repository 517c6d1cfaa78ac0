//! The right edge of the tree in tiles: the last, unfinished tile of each level.
//!
//! Takes at most 8 tiles of 255 hashes, however large the log is.
//!
//! Not here: files. The same edge serves the one who writes tiles and those who compare them.

use crate::error::LogError;
use crate::hash::Hash;
use crate::tile::{Kind, Tile, WIDTH};
use crate::tree::{Frontier, Node, root_of};

/// Levels of the tree that one tile spans: 256 = 2^8 hashes.
const LEVELS_PER_TILE: u8 = 8;

/// What is done with a tile that is full.
pub(crate) type TakeTile<'a> = dyn FnMut(Tile, &[Hash]) -> Result<(), LogError> + 'a;

/// The unfinished tiles of a tree of some size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edge {
    size: u64,
    tiles: Vec<Vec<Hash>>,
}

impl Edge {
    /// Returns how many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf, and hands over each tile that it completes, the lowest first.
    pub fn push(&mut self, leaf: Hash, full: &mut TakeTile<'_>) -> Result<(), LogError> {
        self.size += 1;
        let mut hash = leaf;
        for level in 0.. {
            if self.tiles.len() == level {
                self.tiles.push(Vec::with_capacity(WIDTH as usize));
            }
            self.tiles[level].push(hash);
            if self.tiles[level].len() < WIDTH as usize {
                break;
            }
            let tile = self.last_tile(level);
            full(tile, &self.tiles[level])?;
            hash = root_of(&self.tiles[level]);
            self.tiles[level].clear();
        }
        Ok(())
    }

    /// Returns the unfinished tiles that hold anything, the lowest first.
    pub fn partial(&self) -> impl Iterator<Item = (Tile, &[Hash])> {
        let levels = self.tiles.iter().enumerate().filter(|(_, tile)| !tile.is_empty());
        levels.map(|(level, tile)| (self.last_tile(level), tile.as_slice()))
    }

    /// Forgets the leaves of the unfinished bundle, so that they can be pushed again.
    pub fn cut_to_bundle(&mut self) {
        if let Some(leaves) = self.tiles.first_mut() {
            self.size -= leaves.len() as u64;
            leaves.clear();
        }
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> Hash {
        let node = &mut |node: Node| Ok::<Hash, std::convert::Infallible>(self.node(node));
        match Frontier::resume(self.size, node) {
            Ok(frontier) => frontier.root(),
            Err(never) => match never {},
        }
    }

    /// Returns a perfect node at the right edge.
    fn node(&self, node: Node) -> Hash {
        let tile = &self.tiles[usize::from(node.level / LEVELS_PER_TILE)];
        let width = 1 << (node.level % LEVELS_PER_TILE);
        let start = (node.index * width % WIDTH) as usize;
        root_of(&tile[start..start + width as usize])
    }

    /// Names the tile that is being filled on a level, or has just become full.
    fn last_tile(&self, level: usize) -> Tile {
        let width = self.tiles[level].len() as u64;
        let hashes = self.size >> (8 * level);
        Tile { kind: Kind::Hashes(level as u8), number: (hashes - 1) / WIDTH, width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile;

    #[test]
    fn roots_and_tiles_are_those_of_the_tree() {
        let mut edge = Edge::default();
        let mut frontier = Frontier::new();
        let mut full = 0;
        for index in 0..70_000_u64 {
            let leaf = Hash::leaf(&index.to_be_bytes());
            let size = index + 1;
            let seen = edge.push(leaf, &mut |tile, hashes| {
                full += 1;
                assert_eq!((tile.width, hashes.len()), (WIDTH, 256));
                let Kind::Hashes(level) = tile.kind else { panic!("{tile:?}") };
                assert_eq!(tile.end(), tile::hash_count(level, size));
                Ok(())
            });
            assert!(seen.is_ok());
            frontier.append(leaf);
            if size.is_multiple_of(97) || size.is_multiple_of(256) || size > 69_990 {
                assert_eq!(edge.root(), frontier.root(), "size {size}");
                for (tile, hashes) in edge.partial() {
                    let Kind::Hashes(level) = tile.kind else { panic!("{tile:?}") };
                    assert_eq!(tile.end(), tile::hash_count(level, size));
                    assert_eq!(tile.width, hashes.len() as u64);
                }
            }
        }
        assert_eq!(full, 70_000 / 256 + 1);
    }
}
