//! Proofs without the log: that it grew, that an entry is in it. Kinds 8, 9, 16.

use std::mem::swap;

use arena_log::checkpoint::Head;
use arena_log::hash::Hash;
use arena_log::note::Note;
use arena_log::proof::{verify_consistency, verify_inclusion};
use arena_log::reader::{Access, LogReader};
use arena_log::receipt::Receipt;

use crate::tampering::honest::drawn;
use crate::tampering::scene::{Asked, Scene};
use crate::tampering::tree::{another_story, entries};
use crate::tampering::{By, Expect, Tampering, assert_caught};

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 8,
        what: "a proof of growth is used for other sizes",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| growth(scene, |growth| growth.old.0 = 3),
        expect: Expect::Refuses { words: "a proof of 3 hashes is too short" },
    },
    Tampering {
        number: 8,
        what: "a proof of growth is used for another root",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| growth(scene, |growth| growth.old.1 = Hash([7; 32])),
        expect: Expect::Refuses { words: "a proof leads to the root" },
    },
    Tampering {
        number: 8,
        what: "a proof of growth has a hash too many",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| growth(scene, |growth| growth.proof.push(growth.proof[0])),
        expect: Expect::Refuses { words: "a proof of 4 hashes is too long" },
    },
    Tampering {
        number: 8,
        what: "a proof of growth is empty",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| growth(scene, |growth| growth.proof.clear()),
        expect: Expect::Refuses { words: "a proof of 0 hashes is too short" },
    },
    Tampering {
        number: 8,
        what: "a log that was cut is said to have grown",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| growth(scene, |growth| swap(&mut growth.old, &mut growth.new)),
        expect: Expect::Refuses { words: "the log had 16 entries and has 2: it was cut" },
    },
    Tampering {
        number: 9,
        what: "a receipt's proof is of another log",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            let (mut receipt, entry) = receipt(scene, 5);
            scene.forge(another_story);
            receipt.proof = proof(scene, 5);
            ask_for_receipt(scene, &receipt, &entry)
        },
        expect: Expect::Says {
            code: 1,
            words: &["FAILED", "inclusion", "a proof leads to the root", "the head says"],
        },
    },
    Tampering {
        number: 9,
        what: "a receipt's proof is of another entry",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let (mut receipt, entry) = receipt(scene, 5);
            receipt.index = 6;
            ask_for_receipt(scene, &receipt, &entry)
        },
        expect: Expect::Says { code: 1, words: &["FAILED", "a proof leads to the root"] },
    },
    Tampering {
        number: 9,
        what: "a receipt's entry is another one",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let (receipt, _) = receipt(scene, 5);
            ask_for_receipt(scene, &receipt, &entries(scene)[6])
        },
        expect: Expect::Says { code: 1, words: &["FAILED", "a proof leads to the root"] },
    },
    Tampering {
        number: 9,
        what: "a receipt's proof has a hash too many",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let (mut receipt, entry) = receipt(scene, 5);
            receipt.proof.push(receipt.proof[0]);
            ask_for_receipt(scene, &receipt, &entry)
        },
        expect: Expect::Says { code: 1, words: &["a proof of 5 hashes is too long"] },
    },
    Tampering {
        number: 16,
        what: "a node of the tree poses as an entry",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let (mut receipt, _) = receipt(scene, 0);
            receipt.proof.remove(0);
            ask_for_receipt(scene, &receipt, &scene.get("tile/0/000.p/16")[..64])
        },
        expect: Expect::Says { code: 1, words: &["a proof of 3 hashes is too short"] },
    },
    Tampering {
        number: 16,
        what: "a node of the tree poses as an entry of a log of half the size",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            let forged = Head { size: 8, ..head(scene, "checkpoint") };
            let (mut receipt, _) = receipt(scene, 0);
            receipt.proof.remove(0);
            receipt.checkpoint = forged.sign(&crate::logs::key()).expect("a name");
            let nodes = scene.get("tile/0/000.p/16");
            let [left, right] = [0, 32].map(|at| nodes[at..at + 32].try_into().expect("32 bytes"));
            // Both trees have the same nodes on this path: only the prefix of leaves differs.
            let node = Hash::node(&Hash(left), &Hash(right));
            assert_eq!(verify_inclusion(node, 0, 8, forged.root, &receipt.proof), Ok(()));
            ask_for_receipt(scene, &receipt, &nodes[..64])
        },
        expect: Expect::Says {
            code: 1,
            words: &["FAILED", "a proof leads to the root", "the head says"],
        },
    },
];

/// A proof that a log of one size and root grew to another one.
struct Growth {
    old: (u64, Hash),
    new: (u64, Hash),
    proof: Vec<Hash>,
}

impl Growth {
    fn check(&self) -> Result<(), String> {
        let checked = verify_consistency(self.old, self.new, &self.proof);
        checked.map_err(|error| error.to_string())
    }
}

/// Spoils the true proof that the log of two entries grew to what it is, and checks it.
fn growth(scene: &Scene, spoil: fn(&mut Growth)) -> Asked {
    let heads = ["checkpoints/2", "checkpoint"].map(|name| head(scene, name));
    let [old, new] = heads.map(|head| (head.size, head.root));
    let proof = reader(scene).consistency_proof(old.0).expect("a proof");
    let mut growth = Growth { old, new, proof };
    assert_eq!(growth.check(), Ok(()), "it is a true one");
    spoil(&mut growth);
    Asked::Library(growth.check())
}

fn head(scene: &Scene, name: &str) -> Head {
    Head::parse(Note::parse(&scene.get(name)).expect("a note").text()).expect("a head")
}

fn reader(scene: &Scene) -> LogReader {
    LogReader::open(&scene.log(), Access::Public).expect("a log")
}

fn proof(scene: &Scene, index: u64) -> Vec<Hash> {
    reader(scene).inclusion_proof(index).expect("a proof")
}

/// Returns a true receipt, with its entry.
pub fn receipt(scene: &Scene, index: u64) -> (Receipt, Vec<u8>) {
    let checkpoint = scene.text("checkpoint");
    let receipt = Receipt { extra: None, index, proof: proof(scene, index), checkpoint };
    let entry = reader(scene).get(index).expect("an entry").entry.to_vec();
    (receipt, entry)
}

pub fn ask_for_receipt(scene: &Scene, receipt: &Receipt, entry: &[u8]) -> Asked {
    scene.write("it.tlog-proof", receipt.to_string().as_bytes());
    scene.write("it.entry", entry);
    Asked::arena(&["audit", "receipt", "it.tlog-proof", "--key", "key.vkey"])
}

#[test]
fn forged_proofs_are_refused() {
    assert_caught(TAMPERINGS);
}

#[test]
fn a_true_receipt_is_accepted() {
    let scene = Scene::of(drawn());
    let (receipt, entry) = receipt(&scene, 5);
    let said = scene.ask(&ask_for_receipt(&scene, &receipt, &entry));
    assert_eq!(said.status.code(), Some(0), "{said:?}");
}
