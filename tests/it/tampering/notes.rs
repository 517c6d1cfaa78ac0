//! Tricks with the text of notes, and claims that are carried along. Kinds 13, 48.

use arena_log::note::Note;

use crate::logs;
use crate::tampering::honest::drawn;
use crate::tampering::proofs::{ask_for_receipt, receipt};
use crate::tampering::scene::{Asked, Scene};
use crate::tampering::{By, Expect, Tampering, assert_caught};

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 13,
        what: "lines end in two bytes",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| honest.replace('\n', "\r\n"));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "",
            found: "a note has the control character 0x0d",
            wanted: "",
        },
    },
    Tampering {
        number: 13,
        what: "a control character in the origin",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| honest.replacen("arena", "arena\u{1b}", 1));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "",
            found: "a note has the control character 0x1b at byte 5",
            wanted: "",
        },
    },
    Tampering {
        number: 13,
        what: "a second blank line",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| honest.replacen("\n\n", "\n\n\n", 1));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "",
            found: "the extension line ``",
            wanted: "",
        },
    },
    Tampering {
        number: 13,
        what: "no last newline",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| honest.trim_end().to_owned());
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "",
            found: "a note does not end in a newline",
            wanted: "",
        },
    },
    Tampering {
        number: 13,
        what: "junk at the end",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| format!("{honest}junk\n"));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "",
            found: "`junk` is not the signature line of a note",
            wanted: "",
        },
    },
    Tampering {
        number: 13,
        what: "a leading zero in the size",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| honest.replacen("\n16\n", "\n016\n", 1));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "",
            found: "`016` is not the size of a log",
            wanted: "",
        },
    },
    Tampering {
        number: 13,
        what: "a size of 2^64 and 16, signed",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| {
                sign_text(honest, |text| text.replacen("\n16\n", "\n18446744073709551632\n", 1))
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "",
            found: "`18446744073709551632` is not the size of a log",
            wanted: "",
        },
    },
    Tampering {
        number: 13,
        what: "a byte that is no text",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let mut bytes = scene.get("checkpoint");
            bytes[3] = 0xff;
            scene.put("checkpoint", &bytes);
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "the log",
            found: "a note is not UTF-8 at byte 3",
            wanted: "with a signed head",
        },
    },
    Tampering {
        number: 48,
        what: "an extension line under a head, signed",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| {
                sign_text(honest, |text| format!("{text}audited by everyone\n"))
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "the log",
            found: "a checkpoint has the extension line `audited by everyone`",
            wanted: "with a signed head",
        },
    },
    Tampering {
        number: 48,
        what: "a receipt carries a claim, in place of the entry",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let (mut receipt, entry) = receipt(scene, 5);
            receipt.extra = Some(b"random won".to_vec());
            let asked = ask_for_receipt(scene, &receipt, &entry);
            std::fs::remove_file(scene.path("it.entry")).expect("it was there");
            asked
        },
        expect: Expect::Says { code: 1, words: &["FAILED", "a proof leads to the root"] },
    },
];

/// Signs, with the real key, a text made of a head's.
fn sign_text(honest: &str, change: impl Fn(&str) -> String) -> String {
    let note = Note::parse(honest.as_bytes()).expect("a note");
    let text = change(note.text());
    let signature = logs::key().sign_note(&note.signatures()[0].name, &text).expect("a name");
    Note::new(text, vec![signature]).expect("a note").to_string()
}

#[test]
fn tricks_with_the_text_of_notes_are_caught() {
    assert_caught(TAMPERINGS);
}

#[test]
fn what_a_receipt_carries_along_is_neither_believed_nor_printed() {
    let scene = Scene::of(drawn());
    let (mut receipt, entry) = receipt(&scene, 5);
    receipt.extra = Some(b"random won".to_vec());
    let said = scene.ask(&ask_for_receipt(&scene, &receipt, &entry));
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert!(!String::from_utf8_lossy(&said.stdout).contains("random won"), "{said:?}");
}
