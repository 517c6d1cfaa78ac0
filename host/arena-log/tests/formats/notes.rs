//! Notes and verifier keys: one spelling each, and what is refused by which words.

use arena_log::key::KeyError;
use arena_log::note::{
    KeyKind, NOTE_BYTES_MAX, Note, NoteError, NoteSignature, SIGNATURES_MAX, Vkey,
};
use proptest::prelude::*;

use crate::sample::{ORIGIN, bit_flips, key};

/// The example in the specification of signed notes.
const EXAMPLE_VKEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const EXAMPLE_NOTE: &str = "This is an example message.\n\n\
    \u{2014} example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZ\
    XsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

fn signed(text: &str) -> Note {
    let signature = key(1).sign_note(ORIGIN, text).expect("the name is a good one");
    Note::new(text.to_owned(), vec![signature]).expect("the text is a good one")
}

fn vkey() -> Vkey {
    key(1).vkey(ORIGIN).expect("the name is a good one")
}

/// A line of someone else: any name, any bytes.
fn stranger(number: usize, bytes: usize) -> NoteSignature {
    let signature = vec![7; bytes];
    NoteSignature {
        name: format!("stranger{number}.example"),
        key_id: [number as u8; 4],
        signature,
    }
}

#[test]
fn the_example_of_the_specification_verifies_and_reads_back() {
    let vkey = Vkey::parse(EXAMPLE_VKEY).expect("it is a verifier key");
    assert_eq!(vkey.to_string(), EXAMPLE_VKEY);
    assert_eq!((vkey.name(), vkey.kind()), ("example.com/foo", KeyKind::Log));
    let note = Note::parse(EXAMPLE_NOTE.as_bytes()).expect("it is a note");
    assert_eq!(note.to_string(), EXAMPLE_NOTE);
    assert_eq!(note.verify(&vkey), Ok(()));
}

#[test]
fn the_last_blank_line_separates() {
    let note = signed("a text\n\nwith blank lines\n\n\n\u{2014} and a line like a signature\n");
    let parsed = Note::parse(note.to_string().as_bytes()).expect("it is a note");
    assert_eq!(parsed, note);
    assert_eq!(parsed.verify(&vkey()), Ok(()));
}

#[test]
fn every_other_spelling_of_a_note_is_refused() {
    let whole = signed("text\n").to_string();
    let change = |from: &str, to: &str| whole.replacen(from, to, 1);
    let refused = [
        ("CRLF", whole.replace('\n', "\r\n"), "control character 0x0d"),
        ("a control character in the text", change("text", "te\u{1}xt"), "0x01 at byte 2"),
        ("a tab in the text", change("text", "te\txt"), "0x09 at byte 2"),
        ("a NUL", change("text", "te\0xt"), "0x00"),
        ("no last newline", whole.trim_end().to_owned(), "does not end in a newline"),
        ("no blank line", change("\n\n", "\n"), "no signatures"),
        ("a second blank line in front of the signatures", change("\n\n", "\n\n\n"), ""),
        ("a blank line after the signatures", format!("{whole}\n"), "no signatures"),
        ("junk after the signatures", format!("{whole}junk\n"), "`junk` is not the signature"),
        ("junk without a newline", format!("{whole}junk"), "does not end in a newline"),
        ("another dash", change("\u{2014}", "-"), "is not the signature line"),
        ("two spaces after the dash", change("\u{2014} ", "\u{2014}  "), ""),
        ("two spaces in front of the signature", change("spring ", "spring  "), "signature line"),
        ("a space at the end of the line", change("=\n", "= \n"), "signature line"),
        ("a plus in the name", change("spring", "spr+ng"), "no name for a key"),
        ("a no-break space in the name", change("spring", "spr\u{a0}ng"), "no name for a key"),
        ("an ideographic space in the name", change("spring", "\u{3000}"), "no name for a key"),
        ("no padding", change("=\n", "\n"), "signature line"),
        ("too much padding", change("=\n", "==\n"), "signature line"),
        ("base64 of URLs", format!("{}\u{2014} a.b AAAAA__-\n", whole), "signature line"),
        ("a key id and no signature", format!("{whole}\u{2014} a.b AAAAAA==\n"), "signature line"),
        ("half a key id", format!("{whole}\u{2014} a.b AAA=\n"), "signature line"),
        ("no name", format!("{whole}\u{2014}  AAAAAAAA\n"), "no name for a key"),
    ];
    for (what, bytes, words) in refused {
        match Note::parse(bytes.as_bytes()) {
            Err(error) => assert!(error.to_string().contains(words), "{what}: {error}"),
            // What still is a note is another one, which the key did not sign.
            Ok(note) => assert!(words.is_empty() && note.verify(&vkey()).is_err(), "{what}"),
        }
    }
    let mut bytes = whole.into_bytes();
    bytes[2] = 0xff;
    assert_eq!(Note::parse(&bytes), Err(NoteError::NotUtf8 { offset: 2 }));
    assert_eq!(Note::parse(b""), Err(NoteError::NoSignatures));
}

#[test]
fn every_flipped_bit_of_a_note_is_refused() {
    let whole = signed("arena.example/spring\n17\ntext\n").to_string();
    for (byte, flipped) in bit_flips(whole.as_bytes()) {
        let refused = Note::parse(&flipped).and_then(|note| note.verify(&vkey()));
        assert!(refused.is_err(), "byte {byte}");
    }
}

#[test]
fn a_wrong_signature_of_a_known_key_refuses_the_note_and_so_does_its_absence() {
    let (good, other) = (signed("text\n"), signed("another text\n"));
    let both = good.clone().with_signatures(other.signatures()).expect("two lines fit");
    let name = ORIGIN.to_owned();
    assert_eq!(both.verify(&vkey()), Err(NoteError::BadSignature { name }));
    let unsigned = good.verify(&key(2).vkey(ORIGIN).expect("the name is a good one"));
    assert!(matches!(unsigned, Err(NoteError::Unsigned { .. })));
    let renamed = good.verify(&key(1).vkey("other.example").expect("the name is a good one"));
    assert!(matches!(renamed, Err(NoteError::Unsigned { .. })));
    // A line with the id of the key and a signature of another length.
    let mut short = good.signatures()[0].clone();
    short.signature.pop();
    let note = Note::new("text\n".to_owned(), vec![short]).expect("it is a note");
    assert_eq!(note.verify(&vkey()), Err(NoteError::BadSignature { name: ORIGIN.to_owned() }));
}

#[test]
fn a_signature_with_the_group_order_added_is_refused() {
    // S and S + L would both fit the equation of RFC 8032; only S < L is a signature.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let note = signed("text\n");
    let mut line = note.signatures()[0].clone();
    let mut carry = 0u16;
    for (byte, order) in line.signature[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    assert_eq!(carry, 0, "S + L is below 2^256");
    let malleated = Note::new("text\n".to_owned(), vec![line]).expect("it is a note");
    assert_eq!(malleated.verify(&vkey()), Err(NoteError::BadSignature { name: ORIGIN.to_owned() }));
}

#[test]
fn signatures_of_strangers_are_ignored_up_to_a_limit() {
    // An ML-DSA-44 cosignature has 8 + 2420 bytes, the largest ML-DSA one has 4627.
    let strangers: Vec<_> = (0..16).map(|number| stranger(number, 4635)).collect();
    let note = signed("text\n").with_signatures(&strangers).expect("17 signatures fit");
    let parsed = Note::parse(note.to_string().as_bytes()).expect("it is a note");
    assert_eq!(parsed.signatures().len(), 17);
    assert_eq!(parsed.verify(&vkey()), Ok(()));

    let many: Vec<_> = (0..SIGNATURES_MAX).map(|number| stranger(number, 64)).collect();
    let too_many = signed("text\n").with_signatures(&many);
    assert_eq!(too_many, Err(NoteError::TooManySignatures { found: SIGNATURES_MAX + 1 }));
    let large = signed("text\n").with_signatures(&[stranger(1, NOTE_BYTES_MAX)]);
    assert!(matches!(large, Err(NoteError::TooLarge { .. })));
    let same = signed("text\n").with_signatures(signed("text\n").signatures());
    assert_eq!(same.expect("nothing was added").signatures().len(), 1);
}

#[test]
fn verifier_keys_are_refused_unless_wholly_right() {
    let good = vkey().to_string();
    assert_eq!(Vkey::parse(&good), Ok(vkey()));
    let (name_and_id, _) = good.rsplit_once('+').expect("there are three parts");
    let id = &name_and_id[ORIGIN.len() + 1..];
    let refused = [
        (String::new(), "is not a verifier key"),
        (good.replacen(ORIGIN, "", 1), "no name for a key"),
        (good.replacen(ORIGIN, "arena example", 1), "no name for a key"),
        (good.replacen(ORIGIN, "arena.example/autumn", 1), "its key gives"),
        (good.replacen(id, "00000000", 1), "has the id `00000000`"),
        (good.replacen(id, &id.to_uppercase(), 1), "is not a verifier key"),
        (good.replacen(id, &id[1..], 1), "is not a verifier key"),
        (good.trim_end_matches('=').to_owned() + "A", "is not a verifier key"),
        (format!("{good}\n"), "is not a verifier key"),
        (format!("{good} "), "is not a verifier key"),
        (name_and_id.to_owned(), "is not a verifier key"),
        (format!("{name_and_id}+"), "is not a verifier key"),
        (format!("{name_and_id}+AQ=="), "is not a verifier key"),
        // ML-DSA-44, which this program does not verify.
        (format!("{name_and_id}+BgAA"), "kind 0x06"),
        (format!("{name_and_id}+AgAA"), "kind 0x02"),
    ];
    for (vkey, words) in refused {
        let error = Vkey::parse(&vkey).expect_err(&vkey).to_string();
        assert!(error.contains(words), "{vkey}: {error}");
    }
}

#[test]
fn weak_and_respelled_keys_are_refused_where_they_are_read() {
    let with_key = |bytes: [u8; 32]| {
        let mut encoded = vec![1];
        encoded.extend_from_slice(&bytes);
        // The id does not matter: the key is looked at first.
        Vkey::parse(&format!("weak.example+00000000+{}", base64(&encoded)))
    };
    let mut identity = [0; 32];
    identity[0] = 1;
    assert_eq!(with_key(identity), Err(NoteError::Key(KeyError::Weak)));
    assert_eq!(with_key([0; 32]), Err(NoteError::Key(KeyError::Weak)));
    let mut respelled = [0xff; 32];
    (respelled[0], respelled[31]) = (0xee, 0x7f);
    assert_eq!(with_key(respelled), Err(NoteError::Key(KeyError::NotCanonical)));
    let mut no_point = [0; 32];
    no_point[0] = 2;
    assert_eq!(with_key(no_point), Err(NoteError::Key(KeyError::NotAKey)));
}

fn base64(bytes: &[u8]) -> String {
    use base64ct::{Base64, Encoding};
    Base64::encode_string(bytes)
}

#[test]
fn a_log_key_and_a_witness_key_do_not_stand_in_for_each_other() {
    let note = signed("text\n");
    let witness = key(1).cosigner_vkey(ORIGIN).expect("the name is a good one");
    assert_eq!(Vkey::parse(&witness.to_string()), Ok(witness.clone()));
    assert_ne!(witness.key_id(), vkey().key_id());
    let refused = note.verify(&witness).expect_err("a witness signs no notes");
    assert!(refused.to_string().contains("not the key of a log (kind 0x01)"), "{refused}");
}

proptest! {
    #[test]
    fn what_parses_is_spelled_as_it_was(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(note) = Note::parse(&bytes) {
            prop_assert_eq!(note.to_string().into_bytes(), bytes);
        }
    }

    #[test]
    fn what_nearly_is_a_note_is_spelled_as_it_was(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("\n"), Just("\n\n"), Just("\u{2014} "), Just("name"), Just(" "), Just("="),
                Just("AAAAAAAA"), Just("AAAAAAAA\n"), Just("\u{2014} a.b AAAAAAAA\n"), Just("+"),
            ],
            0..12,
        )
    ) {
        let text = parts.concat();
        if let Ok(note) = Note::parse(text.as_bytes()) {
            prop_assert_eq!(&note.to_string(), &text);
        }
        let _ = Vkey::parse(&text);
    }

    #[test]
    fn what_is_written_reads_back(
        text in "[^\\p{Cc}]{0,40}",
        name in "[a-z0-9./-]{1,20}",
        lines in 1usize..5,
    ) {
        let text = format!("{text}\n");
        let mut signature = key(3).sign_note(&name, &text).expect("the name is a good one");
        let signatures: Vec<_> = (0..lines).map(|line| {
            signature.key_id[0] = line as u8;
            signature.clone()
        }).collect();
        let note = Note::new(text, signatures).expect("it is a note");
        prop_assert_eq!(Note::parse(note.to_string().as_bytes()), Ok(note));
    }
}
