//! Programs that we did not write accept what this crate writes: the note reader and the tile
//! reader of Cloudflare's `azul`, ports of the ones behind Go's checksum database.

#![cfg(test)]

// The sample log and keys of the tests of our own formats, which use more of it.
#[allow(dead_code)]
#[path = "../../../host/arena-log/tests/formats/sample.rs"]
mod sample;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use signed_note::{Note as TheirNote, StandardVerifier, VerifierList};
use tempfile::TempDir;
use tlog_tiles::{
    Checkpoint, Error, HashReader, Tile, TileHashReader, TileReader, check_record, check_tree,
    prove_record, prove_tree, stored_hash_index, tree_hash,
};

use arena_log::hash::Hash;
use arena_log::tree::Node;
use arena_log::writer::{LogSettings, LogWriter, Record};

use crate::sample::{ORIGIN, Tree, bit_flips, key};

/// Hashes in a full tile, and the height of such a tile.
const TILE_WIDTH: u64 = 256;
const TILE_HEIGHT: u8 = 8;

/// The tiles of a tree as they lie in a published folder, by path.
fn published_tiles(tree: &Tree) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut row = tree.size();
    for tile_level in 0.. {
        if row == 0 {
            break;
        }
        for number in 0..row.div_ceil(TILE_WIDTH) {
            let width = (row - number * TILE_WIDTH).min(TILE_WIDTH);
            let hashes = (0..width).flat_map(|at| {
                let (level, index) = (tile_level * TILE_HEIGHT, number * TILE_WIDTH + at);
                tree.node(Node { level, index }).0
            });
            let path = arena_log::tile::hash_tile(tile_level, number, width);
            files.insert(path, hashes.collect());
        }
        row /= TILE_WIDTH;
    }
    files
}

/// Hands tiles to their reader, and notes which ones it has authenticated.
struct Folder {
    read: Box<dyn Fn(&str) -> Option<Vec<u8>>>,
    authenticated: RefCell<BTreeSet<String>>,
}

impl Folder {
    fn in_memory(files: BTreeMap<String, Vec<u8>>) -> Folder {
        let read = Box::new(move |path: &str| files.get(path).cloned());
        Folder { read, authenticated: RefCell::default() }
    }

    fn on_disk(folder: &Path) -> Folder {
        let folder = folder.to_owned();
        let read = Box::new(move |path: &str| fs::read(folder.join(path)).ok());
        Folder { read, authenticated: RefCell::default() }
    }
}

/// Their paths name the height of tiles; those of C2SP tlog-tiles, where it is 8, do not.
fn published_path(tile: &Tile) -> String {
    tile.path().replacen("tile/8/", "tile/", 1)
}

impl TileReader for Folder {
    fn height(&self) -> u8 {
        TILE_HEIGHT
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, Error> {
        let read = |tile: &Tile| (self.read)(&published_path(tile));
        tiles.iter().map(read).collect::<Option<_>>().ok_or(Error::InvalidTile)
    }

    fn save_tiles(&self, tiles: &[Tile], _data: &[Vec<u8>]) {
        self.authenticated.borrow_mut().extend(tiles.iter().map(published_path));
    }
}

/// Opens a checkpoint with their reader of notes and their reader of checkpoints.
fn their_checkpoint(note: &[u8], vkey: &str) -> Option<Checkpoint> {
    let verifiers = VerifierList::new(vec![Box::new(StandardVerifier::new(vkey).ok()?)]);
    let note = TheirNote::from_bytes(note).ok()?;
    let (verified, unknown) = note.verify(&verifiers).ok()?;
    assert_eq!((verified.len(), unknown.len()), (1, 0));
    Checkpoint::from_bytes(note.text()).ok()
}

/// Reads every leaf through their tile reader, which checks each tile against the root.
fn their_leaves(folder: &Folder, checkpoint: &Checkpoint) -> Result<Vec<Hash>, Error> {
    let reader = TileHashReader::new(checkpoint.size(), *checkpoint.hash(), folder);
    let indexes: Vec<u64> = (0..checkpoint.size()).map(|leaf| stored_hash_index(0, leaf)).collect();
    let hashes = reader.read_hashes(&indexes)?;
    Ok(hashes.into_iter().map(|hash| Hash(hash.0)).collect())
}

/// Writes a log of that many entries as a tournament does, and returns where it lies.
fn written_log(entries: &[Vec<u8>]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let settings = LogSettings { origin: ORIGIN.to_owned(), key: key(1), checkpoint_every: 32_768 };
    let mut writer = LogWriter::create(folder.path(), settings).expect("the folder is empty");
    for group in entries.chunks(1000) {
        let records: Vec<Record<'_>> =
            group.iter().map(|entry| Record { entry, attachment: b"withheld" }).collect();
        writer.append_all(&records).expect("the disk works");
    }
    writer.checkpoint().expect("the disk works");
    folder
}

#[test]
fn an_existing_verifier_accepts_our_checkpoint_and_tiles() {
    for size in [1, 2, 255, 256, 257, 700, 66_000] {
        let entries: Vec<Vec<u8>> =
            (0..size).map(|number: u64| format!("entry {number}").into_bytes()).collect();
        let written = written_log(&entries);
        let read = |path| fs::read(written.path().join(path)).expect("it was published");
        let vkey = String::from_utf8(read("log.vkey")).expect("a verifier key is text");
        let checkpoint = their_checkpoint(&read("checkpoint"), vkey.trim_end());
        let checkpoint = checkpoint.expect("they accept it");
        assert_eq!((checkpoint.origin(), checkpoint.size()), (ORIGIN, size));
        assert_eq!(checkpoint.extension(), "");

        let folder = Folder::on_disk(written.path());
        let leaves = their_leaves(&folder, &checkpoint).expect("they accept the tiles");
        let expected: Vec<Hash> =
            entries.iter().map(|entry| Hash(tlog_tiles::record_hash(entry).0)).collect();
        assert_eq!(leaves, expected);
        let reader = TileHashReader::new(size, *checkpoint.hash(), &folder);
        let root = tree_hash(size, &reader).expect("they accept the tiles");
        assert_eq!(root, *checkpoint.hash());
        // They looked at every tile that C2SP asks a log of this size to have.
        let all = Tile::new_tiles(TILE_HEIGHT, 0, size);
        let all: BTreeSet<String> = all.iter().map(published_path).collect();
        assert_eq!(*folder.authenticated.borrow(), all);
    }
}

#[test]
fn an_existing_verifier_refuses_our_checkpoint_and_tiles_with_any_bit_flipped() {
    let vkey = key(1).vkey(ORIGIN).expect("a good name").to_string();
    let tree = Tree::of_size(258);
    let note = tree.head().sign(&key(1)).expect("it is a head");
    for (byte, flipped) in bit_flips(note.as_bytes()) {
        let is_accepted = their_checkpoint(&flipped, &vkey).is_some();
        // Base64 of theirs is strict, too, so there is no bit that they overlook.
        assert!(!is_accepted, "byte {byte}");
    }
    let checkpoint = their_checkpoint(note.as_bytes(), &vkey).expect("they accept it");
    let files = published_tiles(&tree);
    for (path, bytes) in &files {
        // One bit of each hash: the others differ in nothing that a hash function knows.
        for byte in (0..bytes.len()).step_by(32) {
            let mut files = files.clone();
            files.get_mut(path).expect("the file is there")[byte] ^= 1;
            let refused = their_leaves(&Folder::in_memory(files), &checkpoint);
            assert!(refused.is_err(), "{path} byte {byte}");
        }
    }
}

#[test]
fn an_existing_verifier_makes_and_accepts_the_same_proofs() {
    let tree = Tree::of_size(700);
    let note = tree.head().sign(&key(1)).expect("it is a head");
    let vkey = key(1).vkey(ORIGIN).expect("a good name").to_string();
    let checkpoint = their_checkpoint(note.as_bytes(), &vkey).expect("they accept it");
    let folder = Folder::in_memory(published_tiles(&tree));
    let reader = TileHashReader::new(700, *checkpoint.hash(), &folder);
    let theirs = |hashes: Vec<Hash>| -> Vec<tlog_tiles::Hash> {
        hashes.into_iter().map(|hash| tlog_tiles::Hash(hash.0)).collect()
    };
    for index in (0..700).step_by(13).chain([255, 256, 511, 512, 699]) {
        let proof = theirs(tree.inclusion(index, 700).expect("it is in the tree"));
        assert_eq!(prove_record(700, index, &reader).expect("the tiles are there"), proof);
        let leaf = tlog_tiles::Hash(tree.leaves[index as usize].0);
        check_record(&proof, 700, *checkpoint.hash(), index, leaf).expect("they accept it");
    }
    for old in (1..700).step_by(13).chain([255, 256, 257, 512, 699]) {
        let proof = theirs(tree.consistency(old, 700).expect("the tree grew"));
        assert_eq!(prove_tree(700, old, &reader).expect("the tiles are there"), proof);
        let root = tlog_tiles::Hash(tree.root_at(old as usize).0);
        check_tree(&proof, 700, *checkpoint.hash(), old, root).expect("they accept it");
    }
}
