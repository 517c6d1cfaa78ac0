//! Cases that others published: proofs, edge cases of the curve, a whole log, a cosigned head.

use std::collections::BTreeMap;

use arena_log::checkpoint::Head;
use arena_log::cosignature;
use arena_log::hash::Hash;
use arena_log::key::PublicKey;
use arena_log::note::{Note, NoteError, Vkey};
use arena_log::policy::{Policy, PolicyError};
use arena_log::proof::{ProofError, verify_consistency, verify_inclusion};
use arena_log::tree::{self, Node};

use crate::sample::{Tree, bit_flips};

const PROOFS: &str = include_str!("../data/merkle-proofs.txt");
const EDGE_CASES: &str = include_str!("../data/ed25519-edge-cases.txt");
const COSIGNED: &str = include_str!("../data/cosigned-checkpoint");
const COSIGNED_POLICY: &str = include_str!("../data/cosigned-checkpoint.policy");

const TESSERA_VKEY: &str =
    "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx";
const TESSERA_CHECKPOINTS: &str = include_str!("../data/tessera/checkpoints");
const TESSERA_TILE: &[u8] = include_bytes!("../data/tessera/tile-0-000.p-15");
const TESSERA_ENTRIES: &[u8] = include_bytes!("../data/tessera/tile-entries-000.p-15");

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

/// Whether a proof of the file is accepted. What is no hash never gets as far as a verifier:
/// no reader of this crate takes it.
fn accepts(case: &[&str], hashes: &BTreeMap<&str, Option<Hash>>) -> bool {
    let [kind, first, second, one, other, proof, ..] = case else {
        panic!("a case has eight items: {case:?}")
    };
    let number = |digits: &str| digits.parse::<u64>().expect("sizes are numbers");
    let proof: Option<Vec<Hash>> = match *proof {
        "-" => Some(Vec::new()),
        listed => listed.split(',').map(|name| hashes[name]).collect(),
    };
    let (Some(one), Some(other), Some(proof)) = (hashes[one], hashes[other], proof) else {
        return false;
    };
    let (first, second) = (number(first), number(second));
    let verified = match *kind {
        "inclusion" => verify_inclusion(one, first, second, other, &proof),
        _ => verify_consistency((first, one), (second, other), &proof),
    };
    verified.is_ok()
}

#[test]
fn published_proofs_are_accepted_and_refused_as_published() {
    let mut hashes = BTreeMap::new();
    let mut counts = BTreeMap::new();
    let mut stricter = Vec::new();
    for case in lines(PROOFS) {
        if let [name, value] = case[..] {
            hashes.insert(name, Hash::from_base64(value.strip_prefix('=').expect("a value")));
            continue;
        }
        let (verdict, name) = (case[6], case[7]);
        let is_accepted = accepts(&case, &hashes);
        if verdict == "ok" && !is_accepted {
            stricter.push(name);
            continue;
        }
        assert_eq!(is_accepted, verdict == "ok", "{name}");
        *counts.entry((case[0], verdict)).or_insert(0) += 1;
    }
    let expected = [
        (("consistency", "ok"), 11),
        (("consistency", "refused"), 186),
        (("inclusion", "ok"), 18),
        (("inclusion", "refused"), 279),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    // The first two state a root that is no hash; the last gives a tree without entries another
    // root than the one such a tree has. Theirs looks at neither.
    let expected = [
        "consistency/additional/sizes-are-equal-one-and-proof-is-empty",
        "subtreeconsistency/additional/sizes-are-equal-one-and-proof-is-empty",
        concat!(
            "subtreeconsistency/additional/",
            "subtree-is-empty-sizes-are-equal-zero-subtree-root-valid-tree-root-random-proof-is-empty",
        ),
    ];
    assert_eq!(stricter, expected);
}

fn bytes_of<const N: usize>(hex: &str) -> [u8; N] {
    let mut bytes = [0; N];
    assert_eq!(hex.len(), 2 * N);
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).expect("hexadecimal");
    }
    bytes
}

#[test]
fn edge_cases_of_the_curve_are_judged_as_strict_verification_judges_them() {
    let mut values = BTreeMap::new();
    let (mut accepted, mut total) = (0, 0);
    for case in lines(EDGE_CASES) {
        if let [name, hex] = case[..] {
            values.insert(name, bytes_of::<32>(hex));
            continue;
        }
        let [key, r, s, message, flags] = case[..] else { panic!("a case has five items") };
        let message = match message {
            "-" => "ed25519vectors".to_owned(),
            number => format!("ed25519vectors {number}"),
        };
        let signature = [values[r], values[s]].concat();
        let key = PublicKey::from_bytes(&values[key]);
        let is_accepted = key.is_ok_and(|key| key.verifies(message.as_bytes(), &signature));
        // A point that merely has a component of small order still needs the secret.
        let expected = flags.chars().all(|flag| matches!(flag, 'c' | 'C' | '-'));
        assert_eq!(is_accepted, expected, "{case:?}");
        accepted += usize::from(is_accepted);
        total += 1;
    }
    assert_eq!((accepted, total), (43, 914));
}

fn tessera_entries() -> Vec<Vec<u8>> {
    let mut rest = TESSERA_ENTRIES;
    let mut entries = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk() {
        let (entry, tail) = tail.split_at(usize::from(u16::from_be_bytes(*length)));
        entries.push(entry.to_vec());
        rest = tail;
    }
    entries
}

#[test]
fn a_log_of_tessera_verifies_head_by_head_down_to_its_entries() {
    let vkey = Vkey::parse(TESSERA_VKEY).expect("it is a verifier key");
    let entries = tessera_entries();
    assert_eq!(entries.len(), 15);
    assert_eq!(entries[..3], [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
    let tree = Tree::of_entries(entries.into_iter());
    let tile: Vec<u8> = tree.leaves.iter().flat_map(|leaf| leaf.0).collect();
    assert_eq!(tile, TESSERA_TILE);
    let heads: Vec<Head> = TESSERA_CHECKPOINTS
        .split("====\n")
        .map(|checkpoint| Head::open(checkpoint.as_bytes(), &vkey).expect("Tessera signed it"))
        .collect();
    assert_eq!(heads.len(), 16);
    for (size, head) in heads.iter().enumerate() {
        assert_eq!((head.size, head.root), (size as u64, tree.root_at(size)));
        assert_eq!(tree::root_of(&tree.leaves[..size]), head.root);
        for later in &heads[size..] {
            let proof = tree.consistency(head.size, later.size).expect("the log grew");
            let (old, new) = ((head.size, head.root), (later.size, later.root));
            assert_eq!(verify_consistency(old, new, &proof), Ok(()));
        }
    }
}

#[test]
fn every_flipped_bit_of_the_log_of_tessera_shows() {
    let vkey = Vkey::parse(TESSERA_VKEY).expect("it is a verifier key");
    let last = TESSERA_CHECKPOINTS.rsplit("====\n").next().expect("there are 16");
    let head = Head::open(last.as_bytes(), &vkey).expect("Tessera signed it");
    for (byte, flipped) in bit_flips(last.as_bytes()) {
        assert!(Head::open(&flipped, &vkey).is_err(), "byte {byte}");
    }
    for (byte, flipped) in bit_flips(TESSERA_TILE) {
        let hashes: Vec<Hash> =
            flipped.chunks(32).map(|hash| Hash(hash.try_into().expect("32 bytes"))).collect();
        assert_ne!(tree::root_of(&hashes), head.root, "byte {byte}");
    }
}

#[test]
fn a_public_log_and_its_witnesses_are_believed() {
    let policy = Policy::parse(COSIGNED_POLICY.as_bytes()).expect("it is a policy");
    let opened = policy.open(COSIGNED.as_bytes()).expect("four witnesses cosigned");
    assert_eq!(opened.head.size, 1_432_088_532);
    assert_eq!(opened.cosigned.len(), 4);
    let times: Vec<u64> = opened.cosigned.iter().map(|cosigned| cosigned.time).collect();
    assert_eq!(times, [1_779_573_024; 4]);

    // A key that cosigned nothing is not missed, but one of the four is.
    let lines: Vec<&str> = COSIGNED.lines().filter(|line| !line.contains("remora")).collect();
    let fewer = lines.join("\n") + "\n";
    let refused = policy.open(fewer.as_bytes());
    let absent = vec!["remora.n621.de".to_owned(), "rgdd.se/poc-witness".to_owned()];
    assert_eq!(refused, Err(PolicyError::Quorum { cosigned: 3, absent }));

    let note = Note::parse(COSIGNED.as_bytes()).expect("it is a note");
    assert_eq!(note.to_string(), COSIGNED);
    let stranger = &policy.witnesses()[4];
    assert!(matches!(cosignature::verify(&note, stranger), Err(NoteError::Unsigned { .. })));
    let smaller = COSIGNED.replacen("1432088532", "1432088531", 1);
    let refused = policy.open(smaller.as_bytes());
    assert!(matches!(refused, Err(PolicyError::Note(NoteError::BadSignature { .. }))));
}

#[test]
fn proofs_need_no_more_than_the_nodes_of_the_tree() {
    let tree = Tree::of_size(15);
    let missing = arena_log::proof::inclusion_proof(3, 15, &mut |node: Node| {
        if node.level < 3 { Ok(tree.node(node)) } else { Err(Missing(node)) }
    });
    // The proof ends in the root over leaves 8 to 14: nodes of 4, 2 and 1 leaves.
    assert_eq!(missing.map(|proof| proof.len()), Ok(4));
    let missing = arena_log::proof::inclusion_proof(9, 15, &mut |node: Node| {
        if node.level < 3 { Ok(tree.node(node)) } else { Err(Missing(node)) }
    });
    assert_eq!(missing, Err(Missing(Node { level: 3, index: 0 })));
}

#[derive(Debug, PartialEq)]
struct Missing(Node);

impl From<ProofError> for Missing {
    fn from(error: ProofError) -> Missing {
        panic!("the entry is in the tree: {error}")
    }
}
