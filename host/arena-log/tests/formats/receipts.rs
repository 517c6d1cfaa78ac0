//! Receipts: one entry of one log, and nothing else.

use arena_log::checkpoint::Head;
use arena_log::cosignature;
use arena_log::note::Note;
use arena_log::policy::{Policy, PolicyError};
use arena_log::proof::ProofError;
use arena_log::receipt::{EXTRA_BYTES_MAX, Receipt, ReceiptError};
use proptest::prelude::*;

use crate::sample::{ORIGIN, Tree, bit_flips, key};

fn policy() -> Policy {
    Policy::of_vkey(key(1).vkey(ORIGIN).expect("a good name")).expect("it is a log's key")
}

fn receipt(index: u64, size: usize, extra: Option<&[u8]>) -> (Tree, Receipt) {
    let tree = Tree::of_size(size);
    let proof = tree.inclusion(index, size as u64).expect("it is in the tree");
    let checkpoint = tree.head().sign(&key(1)).expect("it is a head");
    let extra = extra.map(<[u8]>::to_vec);
    (tree, Receipt { extra, index, proof, checkpoint })
}

#[test]
fn a_receipt_shows_its_entry_to_whoever_trusts_the_log() {
    for (index, size) in [(0, 1), (0, 2), (6, 7), (255, 256), (256, 300)] {
        let (tree, receipt) = receipt(index, size, None);
        let text = receipt.to_string();
        assert!(text.starts_with("c2sp.org/tlog-proof@v1\nindex "));
        let parsed = Receipt::parse(text.as_bytes()).expect("it was written here");
        assert_eq!(parsed, receipt);
        let opened = parsed.verify(tree.leaves[index as usize], &policy());
        assert_eq!(opened.expect("the entry is in the log").head, tree.head());
    }
}

#[test]
fn a_receipt_shows_no_other_entry() {
    let (tree, receipt) = receipt(3, 7, None);
    let refused = receipt.verify(tree.leaves[4], &policy());
    assert!(matches!(refused, Err(ReceiptError::Proof(ProofError::Root { .. }))));
    let moved = Receipt { index: 4, ..receipt.clone() };
    assert!(moved.verify(tree.leaves[3], &policy()).is_err());
    let beyond = Receipt { index: 7, ..receipt.clone() };
    let refused = beyond.verify(tree.leaves[3], &policy());
    let error = ProofError::Index { index: 7, size: 7 };
    assert_eq!(refused, Err(ReceiptError::Proof(error)));
    // The head of another size, truly signed.
    let checkpoint = Tree::of_size(8).head().sign(&key(1)).expect("it is a head");
    let other_head = Receipt { checkpoint, ..receipt.clone() };
    assert!(other_head.verify(tree.leaves[3], &policy()).is_err());
    let stranger = Policy::of_vkey(key(2).vkey(ORIGIN).expect("a good name"));
    let refused = receipt.verify(tree.leaves[3], &stranger.expect("it is a log's key"));
    assert!(matches!(refused, Err(ReceiptError::Policy(PolicyError::Note(_)))));
}

#[test]
fn every_flipped_bit_of_a_receipt_is_refused() {
    let (tree, receipt) = receipt(9, 13, None);
    for (byte, flipped) in bit_flips(receipt.to_string().as_bytes()) {
        let refused =
            Receipt::parse(&flipped).and_then(|receipt| receipt.verify(tree.leaves[9], &policy()));
        assert!(refused.is_err(), "byte {byte}");
    }
}

#[test]
fn extra_data_change_nothing_and_prove_nothing() {
    let (tree, receipt) = receipt(9, 13, Some(b"claims of anyone"));
    let text = receipt.to_string();
    let honest = receipt.verify(tree.leaves[9], &policy()).expect("the entry is in the log");
    let extra_line = text.find("extra ").expect("there is such a line");
    let extra_end = extra_line + text[extra_line..].find('\n').expect("lines end");
    let mut accepted = 0;
    for (byte, flipped) in bit_flips(text.as_bytes()) {
        let opened =
            Receipt::parse(&flipped).and_then(|receipt| receipt.verify(tree.leaves[9], &policy()));
        if let Ok(opened) = opened {
            assert!((extra_line..extra_end).contains(&byte), "byte {byte}");
            assert_eq!(opened, honest);
            accepted += 1;
        }
    }
    assert!(accepted > 0, "nobody vouches for the extra data, so they can be changed");
}

#[test]
fn a_receipt_of_a_cosigned_head_needs_the_quorum_that_the_policy_asks_for() {
    let (tree, bare) = receipt(2, 5, None);
    let head = tree.head();
    let line = cosignature::cosign(&key(5), "w.example", &head, 9).expect("a good name");
    let note = Note::parse(bare.checkpoint.as_bytes()).expect("it is a note");
    let cosigned = note.with_signatures(&[line]).expect("it fits").to_string();
    let (log, witness) = (key(1).vkey(ORIGIN), key(5).cosigner_vkey("w.example"));
    let (log, witness) = (log.expect("a good name"), witness.expect("a good name"));
    let policy = Policy::parse(format!("log {log}\nwitness w {witness}\nquorum w\n").as_bytes());
    let policy = policy.expect("it is a policy");
    let refused = bare.verify(tree.leaves[2], &policy);
    assert!(matches!(refused, Err(ReceiptError::Policy(PolicyError::Quorum { .. }))));
    let receipt = Receipt { checkpoint: cosigned, ..bare };
    let text = receipt.to_string();
    let opened = receipt.verify(tree.leaves[2], &policy).expect("the quorum is met");
    assert_eq!((opened.head, opened.cosigned[0].time), (head, 9));
    for (byte, flipped) in bit_flips(text.as_bytes()) {
        let refused =
            Receipt::parse(&flipped).and_then(|receipt| receipt.verify(tree.leaves[2], &policy));
        assert!(refused.is_err(), "byte {byte}");
    }
}

#[test]
fn every_other_spelling_of_a_receipt_is_refused() {
    let (tree, receipt) = receipt(1, 3, Some(b"x"));
    let text = receipt.to_string();
    let first_hash = receipt.proof[0].to_base64();
    let change = |from: &str, to: &str| text.replacen(from, to, 1);
    let many = format!("{first_hash}\n").repeat(66);
    let large = format!("extra {}", "A".repeat(2 * EXTRA_BYTES_MAX));
    for (what, changed, words) in [
        ("nothing", String::new(), "not a receipt"),
        ("another version", change("@v1", "@v2"), "not a receipt"),
        ("CRLF", text.replace('\n', "\r\n"), "not a receipt"),
        ("no index", change("index 1\n", ""), "is not `index NUMBER`"),
        ("a leading zero", change("index 1", "index 01"), "`index 01`"),
        ("a negative index", change("index 1", "index -1"), "`index -1`"),
        ("2^64", change("index 1", "index 18446744073709551616"), "is not `index NUMBER`"),
        ("the index first", change("extra eA==\nindex 1\n", "index 1\nextra eA==\n"), "not a hash"),
        ("two extra lines", change("extra eA==\n", "extra eA==\nextra eA==\n"), "`index NUMBER`"),
        ("extra bits", change("extra eA==", "extra eB=="), "extra data"),
        ("too much extra data", change("extra eA==", &large), "extra data"),
        ("a short hash", change(&first_hash, "AAAA"), "`AAAA` in a receipt is not a hash"),
        ("an empty hash", change(&first_hash, ""), "control"),
        ("a space after a hash", change(&first_hash, &format!("{first_hash} ")), "not a hash"),
        ("too many hashes", change(&format!("{first_hash}\n"), &many), "more than 65 hashes"),
        ("no blank line", change("\n\narena", "\narena"), ""),
        ("two blank lines", change("\n\narena", "\n\n\narena"), ""),
        ("no checkpoint", text[..text.find("\n\n").expect("there is one") + 2].into(), "no sig"),
        ("junk at the end", format!("{text}junk\n"), "`junk` is not the signature line"),
        ("an extension line", change("\n\n\u{2014}", "\nmore\n\n\u{2014}"), "extension line"),
    ] {
        let refused = Receipt::parse(changed.as_bytes())
            .and_then(|receipt| receipt.verify(tree.leaves[1], &policy()));
        let error = refused.expect_err(what).to_string();
        assert!(error.contains(words) || words == "control", "{what}: {error}");
    }
    assert_eq!(Receipt::parse(b"\xff"), Err(ReceiptError::NotUtf8 { offset: 0 }));
    let huge = vec![b'x'; 1 << 20];
    assert_eq!(Receipt::parse(&huge), Err(ReceiptError::TooLarge { bytes: 1 << 20 }));
}

proptest! {
    #[test]
    fn receipts_read_back(
        size in 1usize..60,
        at in 0usize..60,
        extra in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
    ) {
        let (tree, receipt) = receipt((at % size) as u64, size, extra.as_deref());
        let parsed = Receipt::parse(receipt.to_string().as_bytes());
        prop_assert_eq!(parsed.as_ref(), Ok(&receipt));
        prop_assert!(receipt.verify(tree.leaves[at % size], &policy()).is_ok());
    }

    #[test]
    fn no_bytes_make_a_receipt_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [b"c2sp.org/tlog-proof@v1\nindex 0\n", &tail[..]].concat();
        prop_assert!(Receipt::parse(&bytes).is_err());
        prop_assert!(Receipt::parse(&tail).is_err());
    }
}

#[test]
fn the_head_of_a_receipt_is_told_from_the_head_of_another_log() {
    let (tree, receipt) = receipt(1, 3, None);
    let other = Head { origin: "other.example".to_owned(), ..tree.head() };
    let checkpoint = other.sign(&key(1)).expect("it is a head");
    let moved = Receipt { checkpoint, ..receipt };
    let refused = moved.verify(tree.leaves[1], &policy());
    assert!(matches!(refused, Err(ReceiptError::Policy(PolicyError::UnknownLog { .. }))));
}
