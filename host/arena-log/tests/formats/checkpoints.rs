//! Heads and cosignatures: three lines, one spelling, one signer.

use arena_log::checkpoint::{Head, HeadError};
use arena_log::cosignature::{self, TIME_MAX};
use arena_log::hash::Hash;
use arena_log::note::{Note, NoteError, NoteSignature};
use proptest::prelude::*;

use crate::sample::{ORIGIN, Tree, bit_flips, key};

fn head() -> Head {
    Tree::of_size(17).head()
}

#[test]
fn a_head_opens_as_what_was_signed() {
    let vkey = key(1).vkey(ORIGIN).expect("the name is a good one");
    for size in [0, 1, 17] {
        let head = Tree::of_size(size).head();
        let note = head.sign(&key(1)).expect("it is a head");
        assert_eq!(Head::open(note.as_bytes(), &vkey), Ok(head));
    }
    let largest = Head { origin: ORIGIN.to_owned(), size: u64::MAX, root: Hash::of(b"") };
    assert_eq!(Head::parse(&largest.text()), Ok(largest));
}

#[test]
fn every_other_text_is_no_head() {
    let text = head().text();
    let root = head().root.to_base64();
    let change = |from: &str, to: &str| text.replacen(from, to, 1);
    for (what, changed, words) in [
        ("nothing", String::new(), "0 lines"),
        ("one line", "a\n".to_owned(), "1 lines"),
        ("two lines", "a\n1\n".to_owned(), "2 lines"),
        ("an extension line", format!("{text}extension\n"), "extension line `extension`"),
        ("a blank extension line", format!("{text}\n"), "extension line ``"),
        ("no last newline", text.trim_end().to_owned(), "2 lines"),
        ("no origin", change(ORIGIN, ""), "no name for a key"),
        ("a space in the origin", change("arena", "ar na"), "no name for a key"),
        ("a leading zero", change("\n17\n", "\n017\n"), "`017` is not the size"),
        ("two zeros", change("\n17\n", "\n00\n"), "`00` is not the size"),
        ("a plus sign", change("\n17\n", "\n+17\n"), "`+17` is not the size"),
        ("a minus sign", change("\n17\n", "\n-17\n"), "`-17` is not the size"),
        ("hexadecimal", change("\n17\n", "\n0x11\n"), "is not the size"),
        ("2^64", change("\n17\n", "\n18446744073709551616\n"), "is not the size"),
        ("no size", change("\n17\n", "\n\n"), "`` is not the size"),
        ("Arabic digits", change("\n17\n", "\n١٧\n"), "is not the size"),
        ("a short root", change(&root, "AAAA"), "`AAAA` is not a root"),
        ("no padding", change("=\n", "\n"), "is not a root"),
        ("a root of nothing", change("\n17\n", "\n0\n"), "the empty tree has e3b0c442"),
    ] {
        let error = Head::parse(&changed).expect_err(what).to_string();
        assert!(error.contains(words), "{what}: {error}");
    }
}

#[test]
fn the_head_of_another_log_is_refused() {
    let note = head().sign(&key(1)).expect("it is a head");
    let other = key(1).vkey("arena.example/autumn").expect("the name is a good one");
    let refused = Head::open(note.as_bytes(), &other);
    let (found, wanted) = (ORIGIN.to_owned(), "arena.example/autumn".to_owned());
    assert_eq!(refused, Err(HeadError::Origin { found, wanted }));
    // Signed by the right key and under the right name, but the text is another log's.
    let signature = key(1).sign_note("arena.example/autumn", &head().text());
    let line = signature.expect("the name is a good one");
    let forged = Note::new(head().text(), vec![line]).expect("it is a note").to_string();
    assert!(matches!(Head::open(forged.as_bytes(), &other), Err(HeadError::Origin { .. })));
    let stranger = key(2).vkey(ORIGIN).expect("the name is a good one");
    let unsigned = Head::open(note.as_bytes(), &stranger);
    assert!(matches!(unsigned, Err(HeadError::Note(NoteError::Unsigned { .. }))));
}

#[test]
fn what_would_not_open_is_not_signed() {
    let long = "x".repeat(256);
    for origin in ["", "two words", "a+b", "a\nb", long.as_str()] {
        let head = Head { origin: origin.to_owned(), ..head() };
        assert!(head.sign(&key(1)).is_err(), "{origin}");
    }
    let empty = Head { size: 0, ..head() };
    assert!(matches!(empty.sign(&key(1)), Err(HeadError::EmptyRoot { .. })));
}

#[test]
fn every_flipped_bit_of_a_checkpoint_is_refused() {
    let vkey = key(1).vkey(ORIGIN).expect("the name is a good one");
    let note = head().sign(&key(1)).expect("it is a head");
    for (byte, flipped) in bit_flips(note.as_bytes()) {
        assert!(Head::open(&flipped, &vkey).is_err(), "byte {byte}");
    }
}

#[test]
fn a_cosignature_states_a_time_over_one_head() {
    let head = head();
    let signed = head.sign(&key(1)).expect("it is a head");
    let note = Note::parse(signed.as_bytes()).expect("it is a note");
    let line = cosignature::cosign(&key(5), "witness.example", &head, 1_800_000_000);
    let line = line.expect("the name is a good one");
    assert_eq!(line.signature.len(), 72);
    let cosigned = note.clone().with_signatures(std::slice::from_ref(&line)).expect("it fits");
    let vkey = key(5).cosigner_vkey("witness.example").expect("the name is a good one");
    assert_eq!(cosignature::verify(&cosigned, &vkey), Ok(1_800_000_000));
    assert!(matches!(cosignature::verify(&note, &vkey), Err(NoteError::Unsigned { .. })));

    // The same line under the head of one entry more.
    let later = Head { size: 18, ..head.clone() };
    let moved = Note::new(later.text(), vec![line.clone()]).expect("it is a note");
    assert!(matches!(cosignature::verify(&moved, &vkey), Err(NoteError::BadSignature { .. })));
    // Every bit of the time and the signature counts.
    for (byte, flipped) in bit_flips(&line.signature) {
        let mut line = line.clone();
        line.signature = flipped;
        let forged = note.clone().with_signatures(&[line]).expect("it fits");
        assert!(cosignature::verify(&forged, &vkey).is_err(), "byte {byte}");
    }
    // A plain signature of the same key is no cosignature.
    let log_vkey = key(5).vkey("witness.example").expect("the name is a good one");
    let refused = cosignature::verify(&cosigned, &log_vkey);
    assert!(matches!(refused, Err(NoteError::WrongUse { .. })));
    let too_late = cosignature::cosign(&key(5), "witness.example", &head, TIME_MAX + 1);
    let error = NoteError::Time { time: TIME_MAX + 1 };
    assert_eq!(too_late, Err(error.clone()));
    // A witness that states such a time all the same, with a signature that fits it.
    let message = format!("cosignature/v1\ntime {}\n{}", TIME_MAX + 1, head.text());
    let time = (TIME_MAX + 1).to_be_bytes();
    let signature = [&time[..], &key(5).sign(message.as_bytes())].concat();
    let forged = note.with_signatures(&[NoteSignature { signature, ..line }]).expect("it fits");
    assert_eq!(cosignature::verify(&forged, &vkey), Err(error));
}

#[test]
fn of_several_cosignatures_all_must_be_right_and_the_earliest_counts() {
    let head = head();
    let at = |time| cosignature::cosign(&key(5), "w.example", &head, time).expect("a good name");
    let vkey = key(5).cosigner_vkey("w.example").expect("the name is a good one");
    let note = Note::new(head.text(), vec![at(30), at(10), at(20)]).expect("it is a note");
    assert_eq!(cosignature::verify(&note, &vkey), Ok(10));
    let mut wrong = at(5);
    wrong.signature[70] ^= 1;
    let mixed = note.with_signatures(&[wrong]).expect("it fits");
    assert!(matches!(cosignature::verify(&mixed, &vkey), Err(NoteError::BadSignature { .. })));
}

proptest! {
    #[test]
    fn a_text_that_parses_is_the_text_of_its_head(
        lines in "[a-z.]{0,6}\n[0-9]{0,21}\n",
        root in "[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\n\n?",
    ) {
        let text = lines + &root;
        if let Ok(head) = Head::parse(&text) {
            prop_assert_eq!(head.text(), text);
        }
    }

    #[test]
    fn heads_read_back(
        origin in "[a-z0-9./-]{1,30}",
        size in any::<u64>(),
        root in any::<[u8; 32]>(),
    ) {
        let root = if size == 0 { Hash::EMPTY_TREE } else { Hash(root) };
        let head = Head { origin, size, root };
        prop_assert_eq!(Head::parse(&head.text()), Ok(head));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let vkey = key(1).vkey(ORIGIN).expect("the name is a good one");
        prop_assert!(Head::open(&bytes, &vkey).is_err());
        let _ = Head::parse(&String::from_utf8_lossy(&bytes));
    }
}
