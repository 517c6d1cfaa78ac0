//! Proofs: ours verify, nothing else does, and an independent crate makes the same ones.

use arena_log::hash::Hash;
use arena_log::proof::{ProofError, verify_consistency, verify_inclusion};
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use proptest::prelude::*;
use sha2::Sha256;

use crate::sample::{Tree, bit_flips};

const ALL_PAIRS_MAX: usize = 64;

/// The same tree in a crate that we did not write.
fn oracle(size: usize) -> MemoryBackedTree<Sha256, Vec<u8>> {
    let mut tree = MemoryBackedTree::new();
    (0..size).for_each(|number| tree.push(number.to_string().into_bytes()));
    tree
}

fn flat(proof: &[Hash]) -> Vec<u8> {
    proof.iter().flat_map(|hash| hash.0).collect()
}

#[test]
fn every_inclusion_proof_verifies_and_is_the_one_that_an_oracle_makes() {
    let tree = Tree::of_size(ALL_PAIRS_MAX);
    for size in 1..=ALL_PAIRS_MAX {
        let (oracle, root) = (oracle(size), tree.root_at(size));
        assert_eq!(oracle.root().as_bytes().as_slice(), root.0);
        for index in 0..size {
            let proof = tree.inclusion(index as u64, size as u64).expect("it is in the tree");
            assert_eq!(oracle.prove_inclusion(index).as_bytes(), flat(&proof));
            let leaf = tree.leaves[index];
            verify_inclusion(leaf, index as u64, size as u64, root, &proof).expect("it is proved");
        }
    }
}

#[test]
fn every_consistency_proof_verifies_and_is_the_one_that_an_oracle_makes() {
    let tree = Tree::of_size(ALL_PAIRS_MAX);
    for new in 1..=ALL_PAIRS_MAX {
        let oracle = oracle(new);
        for old in 0..=new {
            let (old_head, new_head) =
                ((old as u64, tree.root_at(old)), (new as u64, tree.root_at(new)));
            let proof = tree.consistency(old as u64, new as u64).expect("the tree grew");
            verify_consistency(old_head, new_head, &proof).expect("it is proved");
            if 0 < old && old < new {
                assert_eq!(oracle.prove_consistency(new - old).as_bytes(), flat(&proof));
            }
        }
    }
}

#[test]
fn an_inclusion_proof_fits_one_index_and_one_size() {
    let tree = Tree::of_size(24);
    for size in 1..=20 {
        for index in 0..size {
            let proof = tree.inclusion(index, size).expect("it is in the tree");
            let (leaf, root) = (tree.leaves[index as usize], tree.root_at(size as usize));
            for other in (0..24).filter(|other| *other != index) {
                assert!(verify_inclusion(leaf, other, size, root, &proof).is_err());
            }
            for other in (0..=24).filter(|other| *other != size) {
                let other_root = tree.root_at(other as usize);
                assert!(verify_inclusion(leaf, index, other, other_root, &proof).is_err());
            }
        }
    }
}

#[test]
fn a_consistency_proof_fits_one_pair_of_sizes() {
    let tree = Tree::of_size(20);
    let head = |size: u64| (size, tree.root_at(size as usize));
    for new in 1..=16 {
        for old in 1..new {
            let proof = tree.consistency(old, new).expect("the tree grew");
            for (other_old, other_new) in (0..=20).flat_map(|a| (0..=20).map(move |b| (a, b))) {
                let fits = verify_consistency(head(other_old), head(other_new), &proof).is_ok();
                assert_eq!(fits, (other_old, other_new) == (old, new), "{old} {new}");
            }
        }
    }
}

#[test]
fn a_proof_with_a_hash_too_many_or_too_few_says_so() {
    let tree = Tree::of_size(11);
    let mut proof = tree.inclusion(3, 11).expect("it is in the tree");
    let (leaf, root) = (tree.leaves[3], tree.root());
    let last = proof.pop().expect("a tree of 11 has proofs of 4 hashes");
    let short = verify_inclusion(leaf, 3, 11, root, &proof);
    assert_eq!(short, Err(ProofError::Short { found: 3 }));
    proof.extend([last, last]);
    let long = verify_inclusion(leaf, 3, 11, root, &proof);
    assert_eq!(long, Err(ProofError::Long { found: 5 }));
    let none = verify_consistency((3, tree.root_at(3)), (11, root), &[]);
    assert_eq!(none, Err(ProofError::Short { found: 0 }));
}

#[test]
fn an_empty_log_begins_every_log_and_proves_nothing() {
    let tree = Tree::of_size(3);
    let (empty, full) = ((0, Hash::EMPTY_TREE), (3, tree.root()));
    assert_eq!(verify_consistency(empty, full, &[]), Ok(()));
    assert_eq!(verify_consistency(empty, empty, &[]), Ok(()));
    let padded = verify_consistency(empty, full, &[tree.leaves[0]]);
    assert_eq!(padded, Err(ProofError::Long { found: 1 }));
    let forged = verify_consistency((0, tree.root()), full, &[]);
    let stated = tree.root();
    assert_eq!(forged, Err(ProofError::Root { computed: Hash::EMPTY_TREE, stated }));
    assert!(verify_consistency(empty, (0, tree.root()), &[]).is_err());
    let shrunk = verify_consistency(full, empty, &[]);
    assert_eq!(shrunk, Err(ProofError::Shrunk { old: 3, new: 0 }));
}

#[test]
fn nothing_is_proved_of_what_is_not_there() {
    let tree = Tree::of_size(5);
    assert_eq!(tree.inclusion(5, 5), Err(ProofError::Index { index: 5, size: 5 }));
    assert_eq!(tree.inclusion(0, 0), Err(ProofError::Index { index: 0, size: 0 }));
    assert_eq!(tree.consistency(5, 4), Err(ProofError::Shrunk { old: 5, new: 4 }));
    let root = tree.root();
    let beyond = verify_inclusion(tree.leaves[0], 5, 5, root, &[]);
    assert_eq!(beyond, Err(ProofError::Index { index: 5, size: 5 }));
}

#[test]
fn every_flipped_bit_of_a_proof_is_refused() {
    let tree = Tree::of_size(13);
    let (old, new) = ((6, tree.root_at(6)), (13, tree.root()));
    let inclusion = flat(&tree.inclusion(9, 13).expect("it is in the tree"));
    let consistency = flat(&tree.consistency(6, 13).expect("the tree grew"));
    let hashes = |bytes: &[u8]| -> Vec<Hash> {
        bytes.chunks(32).map(|hash| Hash(hash.try_into().expect("32 bytes"))).collect()
    };
    for (byte, flipped) in bit_flips(&inclusion) {
        let refused = verify_inclusion(tree.leaves[9], 9, 13, new.1, &hashes(&flipped));
        assert!(matches!(refused, Err(ProofError::Root { .. })), "byte {byte}");
    }
    for (byte, flipped) in bit_flips(&consistency) {
        let refused = verify_consistency(old, new, &hashes(&flipped));
        assert!(matches!(refused, Err(ProofError::Root { .. })), "byte {byte}");
    }
}

#[test]
fn a_true_proof_shows_no_other_root_and_no_other_leaf() {
    let tree = Tree::of_size(17);
    let changed = |hash: Hash| {
        let mut bytes = hash.0;
        bytes[31] ^= 1;
        Hash(bytes)
    };
    let is_refused = |verified| matches!(verified, Err(ProofError::Root { .. }));
    for size in 1..=17 {
        let root = tree.root_at(size as usize);
        for index in 0..size {
            let proof = tree.inclusion(index, size).expect("it is in the tree");
            let leaf = tree.leaves[index as usize];
            assert!(is_refused(verify_inclusion(changed(leaf), index, size, root, &proof)));
            assert!(is_refused(verify_inclusion(leaf, index, size, changed(root), &proof)));
        }
        for old in 1..=size {
            let proof = tree.consistency(old, size).expect("the tree grew");
            let old_root = tree.root_at(old as usize);
            let (forged, new) = ((old, changed(old_root)), (size, root));
            assert!(is_refused(verify_consistency(forged, new, &proof)), "{old} {size}");
            let (old, forged) = ((old, old_root), (size, changed(root)));
            assert!(is_refused(verify_consistency(old, forged, &proof)), "{old:?} {size}");
        }
    }
}

#[test]
fn proofs_hold_in_trees_larger_than_any_disk() {
    // All entries alike: a perfect node depends on its level only.
    let mut levels = vec![Hash::leaf(b"the same entry")];
    for level in 0..63 {
        levels.push(Hash::node(&levels[level], &levels[level]));
    }
    let mut node = |node: arena_log::tree::Node| -> Result<Hash, ProofError> {
        Ok(levels[usize::from(node.level)])
    };
    let size = u64::MAX;
    let frontier = |size| {
        arena_log::tree::Frontier::resume(size, &mut |at| {
            Ok::<_, ProofError>(levels[usize::from(at.level)])
        })
    };
    let root = frontier(size).expect("all nodes are known").root();
    for index in [0, 1, size / 2, size - 2, size - 1] {
        let proof = arena_log::proof::inclusion_proof(index, size, &mut node);
        let proof = proof.expect("all nodes are known");
        assert!(proof.len() <= arena_log::proof::PROOF_HASHES_MAX);
        verify_inclusion(levels[0], index, size, root, &proof).expect("it is proved");
    }
    for old in [1, 2, 3, 1 << 63, (1 << 63) + 1, size - 1, size] {
        let proof = arena_log::proof::consistency_proof(old, size, &mut node);
        let proof = proof.expect("all nodes are known");
        assert!(proof.len() <= arena_log::proof::PROOF_HASHES_MAX);
        let old_root = frontier(old).expect("all nodes are known").root();
        verify_consistency((old, old_root), (size, root), &proof).expect("it is proved");
    }
}

proptest! {
    #[test]
    fn larger_trees_agree_with_the_oracle_too(
        size in 65usize..300,
        at in 0usize..300,
        old in 1usize..300,
    ) {
        let (index, old) = (at % size, 1 + old % (size - 1));
        let (tree, oracle) = (Tree::of_size(size), oracle(size));
        let their_root = oracle.root();
        prop_assert_eq!(their_root.as_bytes().as_slice(), tree.root().0);
        prop_assert_eq!(tree.frontier().root(), tree.root());
        let inclusion = tree.inclusion(index as u64, size as u64).expect("it is in the tree");
        let theirs = oracle.prove_inclusion(index);
        prop_assert_eq!(theirs.as_bytes(), flat(&inclusion));
        let (leaf, root) = (tree.leaves[index], tree.root());
        let verified = verify_inclusion(leaf, index as u64, size as u64, root, &inclusion);
        prop_assert_eq!(verified, Ok(()));
        let consistency = tree.consistency(old as u64, size as u64).expect("the tree grew");
        let theirs = oracle.prove_consistency(size - old);
        prop_assert_eq!(theirs.as_bytes(), flat(&consistency));
        let heads = ((old as u64, tree.root_at(old)), (size as u64, tree.root()));
        prop_assert_eq!(verify_consistency(heads.0, heads.1, &consistency), Ok(()));
    }

    #[test]
    fn no_proof_makes_a_verifier_panic(
        numbers in any::<[u64; 3]>(),
        roots in any::<[[u8; 32]; 3]>(),
        proof in proptest::collection::vec(any::<[u8; 32]>(), 0..70),
    ) {
        let proof: Vec<Hash> = proof.into_iter().map(Hash).collect();
        let [index, old, new] = numbers;
        let [leaf, old_root, new_root] = roots.map(Hash);
        prop_assert!(verify_inclusion(leaf, index, new, new_root, &proof).is_err());
        if old != 0 {
            prop_assert!(verify_consistency((old, old_root), (new, new_root), &proof).is_err());
        }
    }
}
