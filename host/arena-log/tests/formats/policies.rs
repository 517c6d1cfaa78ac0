//! Policies: what the file says, and which heads it lets pass.

use arena_log::checkpoint::Head;
use arena_log::cosignature;
use arena_log::note::{Note, NoteError, NoteSignature, SIGNATURES_MAX};
use arena_log::policy::{Cosigned, Policy, PolicyError};
use arena_log::policy_text::WITNESSES_MAX;
use proptest::prelude::*;

use crate::sample::{ORIGIN, Tree, key};

/// Policies here name the keys with the numbers 11 to 16 as `{1}` to `{6}`, and the log's as
/// `{log}`.
fn policy_of(lines: &str) -> Result<Policy, String> {
    let mut text = lines.replace("{log}", &key(1).vkey(ORIGIN).expect("a name").to_string());
    for number in 1..=6u8 {
        let vkey = witness_vkey(number).to_string();
        text = text.replace(&format!("{{{number}}}"), &vkey);
    }
    Policy::parse(text.as_bytes()).map_err(|error| error.to_string())
}

fn witness_vkey(number: u8) -> arena_log::note::Vkey {
    key(10 + number).cosigner_vkey(&format!("w{number}.example")).expect("a good name")
}

fn head() -> Head {
    Tree::of_size(5).head()
}

/// A head of the sample log, cosigned by the witnesses with these numbers.
fn cosigned_by(numbers: &[u8]) -> Note {
    let signed = head().sign(&key(1)).expect("it is a head");
    let lines: Vec<_> = numbers
        .iter()
        .map(|number| {
            let (key, name) = (key(10 + number), format!("w{number}.example"));
            cosignature::cosign(&key, &name, &head(), u64::from(*number)).expect("a good name")
        })
        .collect();
    let note = Note::parse(signed.as_bytes()).expect("it is a note");
    note.with_signatures(&lines).expect("a few lines fit")
}

fn open(policy: &Policy, note: &Note) -> Result<Vec<String>, PolicyError> {
    let opened = policy.open(note.to_string().as_bytes())?;
    assert_eq!(opened.head, head());
    assert_eq!(opened.log.name(), ORIGIN);
    Ok(opened.cosigned.into_iter().map(|cosigned| cosigned.witness).collect())
}

const TWO_LEVELS: &str = "log {log}\n\
    \n\
    witness X1 {1}\n\
    witness X2 {2}\n\
    witness X3 {3}\n\
    group X-witnesses 2 X1 X2 X3\n\
    \t# a comment, indented\n\
    witness Y1 {4} https://y1.example/\n\
    witness Y2\t{5}  \n\
    group Y-witnesses any Y1 Y2\n\
    \n\
    group X-and-Y all X-witnesses Y-witnesses\n\
    quorum X-and-Y\n\
    witness unused {6}\n";

#[test]
fn a_quorum_of_groups_is_met_exactly_as_the_lines_say() {
    let policy = policy_of(TWO_LEVELS).expect("it is a policy");
    for subset in 0..32u8 {
        let numbers: Vec<u8> = (1..=5).filter(|number| subset >> (number - 1) & 1 == 1).collect();
        let x_count = numbers.iter().filter(|number| **number <= 3).count();
        let met = x_count >= 2 && numbers.len() > x_count;
        let opened = open(&policy, &cosigned_by(&numbers));
        assert_eq!(opened.is_ok(), met, "{numbers:?}");
        if let Err(error) = opened {
            let PolicyError::Quorum { cosigned, absent } = error else { panic!("{error}") };
            assert_eq!((cosigned, cosigned + absent.len()), (numbers.len(), 6));
        }
    }
}

#[test]
fn opening_tells_who_cosigned_and_when() {
    let policy = policy_of(TWO_LEVELS).expect("it is a policy");
    let note = cosigned_by(&[5, 2, 1]).to_string();
    let opened = policy.open(note.as_bytes()).expect("the quorum is met");
    let stated = |number: u64| Cosigned { witness: format!("w{number}.example"), time: number };
    assert_eq!(opened.cosigned, [stated(1), stated(2), stated(5)]);
}

#[test]
fn one_witness_counts_once_however_often_it_signs() {
    let policy = policy_of("log {log}\nwitness a {1}\nwitness b {2}\ngroup g 2 a b\nquorum g\n");
    let policy = policy.expect("it is a policy");
    let head = head();
    let again: Vec<_> = (0..10)
        .map(|time| cosignature::cosign(&key(11), "w1.example", &head, time).expect("a name"))
        .collect();
    let note = cosigned_by(&[1]).with_signatures(&again).expect("a few lines fit");
    assert!(matches!(open(&policy, &note), Err(PolicyError::Quorum { cosigned: 1, .. })));
    // The same key under another name is nobody the policy knows.
    let renamed = cosignature::cosign(&key(11), "w2.example", &head, 3).expect("a good name");
    let note = cosigned_by(&[1]).with_signatures(&[renamed]).expect("a few lines fit");
    assert!(matches!(open(&policy, &note), Err(PolicyError::Quorum { cosigned: 1, .. })));
    assert!(open(&policy, &cosigned_by(&[1, 2])).is_ok());
}

#[test]
fn a_wrong_signature_of_any_listed_key_refuses_the_head() {
    // The quorum is met without the second witness.
    let policy = policy_of("log {log}\nwitness a {1}\nwitness b {2}\nquorum a\n");
    let policy = policy.expect("it is a policy");
    assert!(open(&policy, &cosigned_by(&[1])).is_ok());
    let mut wrong = cosigned_by(&[2]).signatures()[1].clone();
    wrong.signature[20] ^= 1;
    let note = cosigned_by(&[1]).with_signatures(&[wrong]).expect("a few lines fit");
    let name = "w2.example".to_owned();
    assert_eq!(open(&policy, &note), Err(PolicyError::Note(NoteError::BadSignature { name })));
}

#[test]
fn any_listed_log_will_do_but_only_for_its_own_heads() {
    let other = key(2).vkey("other.example").expect("a good name");
    let policy = policy_of(&format!("log {other}\nlog {{log}}\nquorum none\n"));
    let policy = policy.expect("it is a policy");
    assert!(policy.asks_for_no_witness());
    assert_eq!(policy.logs().len(), 2);
    assert_eq!(open(&policy, &cosigned_by(&[1])), Ok(vec![]));
    // The other log signs our head.
    let line = key(2).sign_note("other.example", &head().text()).expect("a good name");
    let note = Note::new(head().text(), vec![line]).expect("it is a note");
    assert!(matches!(open(&policy, &note), Err(PolicyError::Note(NoteError::Unsigned { .. }))));
    let stranger = Head { origin: "third.example".to_owned(), ..head() };
    let signed = stranger.sign(&key(1)).expect("it is a head");
    let refused = policy.open(signed.as_bytes()).expect_err("no such log is listed");
    let words = "is of the log `third.example`, trusted are: `other.example`, `arena";
    assert!(refused.to_string().contains(words), "{refused}");
}

#[test]
fn a_verifier_key_alone_is_a_policy_of_one_log_and_no_witness() {
    let log = key(1).vkey(ORIGIN).expect("a good name");
    let policy = Policy::of_vkey(log).expect("it is a log's key");
    assert_eq!(open(&policy, &cosigned_by(&[])), Ok(vec![]));
    assert!(Policy::of_vkey(witness_vkey(1)).is_err());
    let no_log = policy_of("quorum none\n").expect("a policy may leave out the logs");
    let refused = open(&no_log, &cosigned_by(&[])).expect_err("no log is listed");
    assert!(refused.to_string().contains("trusted are: none"), "{refused}");
}

#[test]
fn every_line_is_understood_or_the_file_is_refused() {
    for (lines, words) in [
        ("", "no quorum line: add `quorum NAME`"),
        ("log {log}\n", "no quorum line"),
        ("quorum none", "line 1 of the policy: it does not end in a newline"),
        ("quorum none\r\n", "control character 0x0d"),
        ("# \u{7f}\nquorum none\n", "control character 0x7f"),
        ("quorum none\nquorum none\n", "line 2 of the policy: a policy has one quorum line"),
        ("quorum\n", "expected `quorum NAME`"),
        ("quorum none none\n", "expected `quorum NAME`"),
        ("quorum w\nwitness w {1}\n", "line 1 of the policy: `w` is not the name"),
        ("log\nquorum none\n", "expected `log VKEY [URL]`"),
        ("log {log} url more\nquorum none\n", "expected `log VKEY [URL]`"),
        ("log {1}\nquorum none\n", "not the key of a log"),
        ("log nonsense\nquorum none\n", "`nonsense` is not a verifier key"),
        ("log {log}\nlog {log}\nquorum none\n", "line 2 of the policy: `arena.example/spring`"),
        ("witness w\nquorum none\n", "expected `witness NAME VKEY [URL]`"),
        ("witness w {log}\nquorum none\n", "not the key of a witness"),
        ("witness w {1}\nwitness w {2}\nquorum w\n", "there is a `w` already"),
        ("witness none {1}\nquorum none\n", "`none` stands for no witness"),
        ("witness v {1}\nwitness w {1}\nquorum w\n", "`w1.example` has the same key as"),
        ("witness w {1}\ngroup g any\nquorum g\n", "expected `group NAME"),
        ("witness w {1}\ngroup g any w w\nquorum g\n", "`w` is in a group already"),
        ("witness w {1}\ngroup g any w\ngroup h any w\nquorum g\n", "`w` is in a group already"),
        ("witness w {1}\ngroup w any w\nquorum w\n", "there is a `w` already"),
        ("witness w {1}\ngroup g any none\nquorum g\n", "`none` is not the name of a witness"),
        ("group g any g\nquorum g\n", "`g` is not the name of a witness"),
        ("witness w {1}\ngroup none any w\nquorum none\n", "`none` stands for no witness"),
        ("witness w {1}\ngroup g 0 w\nquorum g\n", "asks for `0` of 1 members"),
        ("witness w {1}\ngroup g 2 w\nquorum g\n", "asks for `2` of 1 members"),
        ("witness w {1}\ngroup g 01 w\nquorum g\n", "asks for `01` of 1 members"),
        ("witness w {1}\ngroup g most w\nquorum g\n", "asks for `most` of 1 members"),
        ("witness w {1}\ngroup g 99999999999999999999 w\nquorum g\n", "of 1 members"),
        ("Quorum none\n", "`Quorum` is none of `log`"),
        ("mirror x\nquorum none\n", "`mirror` is none of `log`"),
        ("quorum none # enough\n", "expected `quorum NAME`"),
    ] {
        let error = policy_of(lines).expect_err(lines);
        assert!(error.contains(words), "{lines:?}: {error}");
    }
}

#[test]
fn the_key_of_one_witness_has_one_place_whatever_it_is_called() {
    let renamed = key(11).cosigner_vkey("alias.example").expect("a good name");
    let error = policy_of(&format!("witness v {{1}}\nwitness w {renamed}\nquorum w\n"));
    let error = error.expect_err("one key would have two votes");
    assert!(error.contains("`alias.example` has the same key as `w1.example`"), "{error}");
}

#[test]
fn names_are_bytes_and_comments_are_free() {
    let mut text = b"# caf\xe9\n".to_vec();
    let (kelvin, latin) = ("\u{212a}", "K");
    text.extend_from_slice(
        format!("witness {kelvin} {}\nwitness {latin} {}\n", witness_vkey(1), witness_vkey(2))
            .as_bytes(),
    );
    text.extend_from_slice(b"witness \xff ");
    text.extend_from_slice(format!("{}\nquorum ", witness_vkey(3)).as_bytes());
    text.extend_from_slice(b"\xff\n");
    let policy = Policy::parse(&text).expect("names are any bytes");
    assert_eq!(policy.witnesses().len(), 3);
}

#[test]
fn as_many_logs_witnesses_and_groups_fit_as_the_specification_asks_for() {
    let mut lines = String::new();
    for number in 0..32u8 {
        let log = key(100 + number).vkey(&format!("log{number}.example")).expect("a good name");
        let vkey = key(150 + number).cosigner_vkey("w.example").expect("a good name");
        lines += &format!("log {log}\nwitness w{number} {vkey}\ngroup g{number} all w{number}\n");
    }
    let policy = policy_of(&format!("{lines}quorum g31\n")).expect("32 of each fit");
    assert_eq!((policy.logs().len(), policy.witnesses().len()), (32, 32));
    let many: String = (0..65u8)
        .map(|number| format!("log {}\n", key(100 + number).vkey("l.example").expect("a name")))
        .collect();
    let error = policy_of(&format!("{many}quorum none\n")).expect_err("65 logs do not fit");
    assert!(error.contains("line 65 of the policy: there are more than 64"), "{error}");
}

/// A policy that asks for `count` witnesses, all of them, and what each says of the head.
fn policy_of_all(count: usize) -> (Result<Policy, String>, Vec<NoteSignature>) {
    let (mut lines, mut members, mut said) = (String::new(), String::new(), Vec::new());
    for number in 0..count {
        let key = key(100 + u8::try_from(number).expect("few witnesses"));
        let vkey = key.cosigner_vkey("w.example").expect("a good name");
        lines += &format!("witness w{number} {vkey}\n");
        members += &format!(" w{number}");
        said.push(cosignature::cosign(&key, "w.example", &head(), 9).expect("a good name"));
    }
    (policy_of(&format!("log {{log}}\n{lines}group g all{members}\nquorum g\n")), said)
}

#[test]
fn a_quorum_of_all_the_witnesses_that_a_policy_takes_can_be_met() {
    let (policy, said) = policy_of_all(WITNESSES_MAX);
    let policy = policy.expect("so many fit");
    let note = cosigned_by(&[]);
    let whole = note.clone().with_signatures(&said).expect("one note holds them");
    assert_eq!(open(&policy, &whole).expect("all cosigned").len(), WITNESSES_MAX);
    // In notes that strangers have filled, one for each witness.
    let strangers: Vec<NoteSignature> = (0..SIGNATURES_MAX - 2)
        .map(|number| NoteSignature {
            name: format!("s{number}"),
            key_id: [9; 4],
            signature: vec![7],
        })
        .collect();
    let full = note.clone().with_signatures(&strangers).expect("one line is left");
    let beside = said.iter().map(|line| full.clone().with_signatures(std::slice::from_ref(line)));
    let mut beside: Vec<Note> = beside.map(|note| note.expect("a full note")).collect();
    let bytes = note.to_string().into_bytes();
    let opened = policy.open_with(&bytes, &beside).expect("all cosigned");
    assert_eq!(opened.cosigned.len(), WITNESSES_MAX);
    beside.pop();
    let error = policy.open_with(&bytes, &beside).expect_err("one is absent");
    assert!(
        matches!(&error, PolicyError::Quorum { cosigned, .. } if *cosigned == WITNESSES_MAX - 1),
        "{error}"
    );
    let error = policy_of_all(WITNESSES_MAX + 1).0.expect_err("no note has room for it");
    assert!(error.contains("there are more than 63"), "{error}");
}

#[test]
fn a_note_beside_speaks_of_its_own_text_only_and_must_be_right() {
    let policy = policy_of("log {log}\nwitness a {1}\nquorum a\n").expect("a policy");
    let (bytes, line) = (cosigned_by(&[]).to_string(), cosigned_by(&[1]).signatures()[1].clone());
    let later = Tree::of_size(6).head().sign(&key(1)).expect("it is a head");
    let later = Note::parse(later.as_bytes()).expect("it is a note");
    let moved = later.with_signatures(std::slice::from_ref(&line)).expect("a note");
    let error = policy.open_with(bytes.as_bytes(), &[moved]).expect_err("of another head");
    assert!(matches!(error, PolicyError::Quorum { cosigned: 0, .. }), "{error}");
    let mut wrong = line;
    wrong.signature[9] ^= 1;
    let wrong = cosigned_by(&[]).with_signatures(&[wrong]).expect("a note");
    let error = policy.open_with(bytes.as_bytes(), &[cosigned_by(&[1]), wrong]);
    assert!(matches!(error, Err(PolicyError::Note(NoteError::BadSignature { .. }))), "{error:?}");
}

proptest! {
    #[test]
    fn no_bytes_make_a_policy_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Policy::parse(&bytes);
    }

    #[test]
    fn no_lines_make_a_policy_panic(
        items in proptest::collection::vec(
            prop_oneof![
                Just("log"), Just("witness"), Just("group"), Just("quorum"), Just("none"),
                Just("a"), Just("b"), Just("{1}"), Just("{2}"), Just("{log}"), Just("\n"),
                Just("any"), Just("all"), Just("1"), Just("2"), Just("#"),
            ],
            0..40,
        )
    ) {
        if let Ok(policy) = policy_of(&(items.join(" ") + "\n")) {
            let _ = policy.open(cosigned_by(&[1, 2]).to_string().as_bytes());
        }
    }
}
