//! Keys, signatures and quorums. Kinds 10 to 12, 14, 15, 49.

use arena_core::entry::{Entry, TournamentId};
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::note::{Note, NoteSignature};

use crate::tampering::honest::{drawn, seeded, statement};
use crate::tampering::scene::{Asked, Scene};
use crate::tampering::{By, Expect, Tampering, assert_caught};

/// When witnesses see the log, long after the beacon's round.
const TIME: u64 = 1_796_000_000;

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 10,
        what: "the log is signed anew with another key of the same name",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| log.key = stranger);
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "no signature of `arena.example/drawn`",
            wanted: "a trusted one",
        },
    },
    Tampering {
        number: 10,
        what: "a signature of another key states the real key's name and id",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| {
                let note = Note::parse(honest.as_bytes()).expect("a note");
                let real = &note.signatures()[0];
                let forged = stranger().sign_note(&real.name, note.text()).expect("a name");
                let forged = NoteSignature { key_id: real.key_id, ..forged };
                Note::new(note.text().to_owned(), vec![forged]).expect("a note").to_string()
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "is not one of this text",
            wanted: "a trusted one",
        },
    },
    Tampering {
        number: 10,
        what: "the real key signs under another log's name",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                log.opening.origin = "arena.example/other".to_owned();
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "the checkpoint is of the log `arena.example/other`",
            wanted: "a trusted one",
        },
    },
    Tampering {
        number: 10,
        what: "the announcement names another key than the one that signs",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                log.opening.log_key = stranger().public().to_bytes();
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "announcement",
            what: "the log's key",
            found: "`",
            wanted: "`",
        },
    },
    Tampering {
        number: 10,
        what: "the key that is to be believed states another key's id",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let vkey = scene.text("log.vkey");
            let (name, rest) = vkey.trim_end().split_once('+').expect("a name");
            let (_, key) = rest.split_once('+').expect("an id");
            Asked::arena(&["audit", "log", "--key", &format!("{name}+01234567+{key}")])
        },
        expect: Expect::Says {
            code: 2,
            words: &["a verifier key has the id `01234567`, its key gives `"],
        },
    },
    Tampering {
        number: 11,
        what: "the key that is to be believed is a weak one",
        by: By::Stranger,
        of: drawn,
        tamper: |_| Asked::arena(&["audit", "log", "--key", &weak_vkey("arena.local/weak")]),
        expect: Expect::Says { code: 2, words: &["cannot use the key", "weak"] },
    },
    Tampering {
        number: 11,
        what: "an author's key is a weak one, which any signature of zeros is by",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                let mut stated = statement("random", "zero-intelligence", [0xa1; 32], false);
                stated.author = weak_vkey("author");
                let signature = NoteSignature {
                    name: "author".to_owned(),
                    key_id: weak_key_id("author"),
                    signature: [&WEAK_KEY[..], &[0; 32]].concat(),
                };
                let note = Note::new(stated.text(), vec![signature]).expect("a note");
                log.announcement.agents[0].submission = Some(note.to_string());
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "submissions",
            what: "the author's key of agent `random`",
            found: "weak",
            wanted: "a verifier key",
        },
    },
    Tampering {
        number: 12,
        what: "the signature is another one that the equation holds for",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.change_head(|honest| {
                let note = Note::parse(honest.as_bytes()).expect("a note");
                let mut signature = note.signatures()[0].clone();
                add_order(&mut signature.signature[32..]);
                Note::new(note.text().to_owned(), vec![signature]).expect("a note").to_string()
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "is not one of this text",
            wanted: "a trusted one",
        },
    },
    Tampering {
        number: 12,
        what: "the signature has another spelling in base64",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            // 68 bytes leave four unused bits in the last letter before the padding.
            scene.change_head(|honest| {
                let (rest, last) = honest.split_at(honest.len() - 3);
                let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
                let place = letters.find(&last[..1]).expect("a letter of base64");
                format!("{rest}{}{}", &letters[place + 1..place + 2], &last[1..])
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "the log",
            found: "is not the signature line of a note",
            wanted: "with a signed head",
        },
    },
    Tampering {
        number: 14,
        what: "one witness signs twice to make a quorum of two",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.ask_for_witnesses(2);
            let cosigned = scene.cosigned("checkpoint", "first", &[TIME, TIME + 1]);
            scene.put("witness/first", cosigned.as_bytes());
            Asked::audit_by_policy()
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "the quorum of witnesses is not met: 1 cosigned, missing are `second`",
            wanted: "a trusted one",
        },
    },
    Tampering {
        number: 14,
        what: "a policy lists one witness under two names",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.ask_for_witnesses(2);
            let policy = std::fs::read_to_string(scene.path("policy")).expect("a policy");
            let key = SigningKey::from_seed([5; 32]);
            let lines = policy.lines().map(|line| match line.strip_prefix("witness second ") {
                Some(_) => {
                    format!("witness second {}", key.cosigner_vkey("second").expect("a name"))
                }
                None => line.to_owned(),
            });
            let policy: Vec<String> = lines.collect();
            scene.write("policy", (policy.join("\n") + "\n").as_bytes());
            Asked::audit_by_policy()
        },
        expect: Expect::Says { code: 2, words: &["cannot use the policy `policy`"] },
    },
    Tampering {
        number: 15,
        what: "another tournament's log is served, signed with the same key",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.show(&seeded().log());
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "the checkpoint is of the log `arena.example/seeded`",
            wanted: "a trusted one",
        },
    },
    Tampering {
        number: 15,
        what: "another tournament's match is put in",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            let mut other = Scene::of(drawn()).rewrite();
            let index = other.match_at(1, 0);
            scene.forge(|log| log.rows[2] = other.rows.swap_remove(index));
            Asked::audit(&[])
        },
        expect: Expect::Fails { steps: "entries", what: "the tournament", found: "", wanted: "" },
    },
    Tampering {
        number: 15,
        what: "another tournament's transcript is put in",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                let (index, id) = (log.match_at(1, 0), log.id());
                log.forge(index, |transcript| transcript.tournament = TournamentId([9; 32]));
                let Entry::Match(entry) = &mut log.rows[index].entry else { panic!("a match") };
                entry.tournament = id;
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "transcripts",
            what: "the transcript's tournament",
            found: "0909",
            wanted: "",
        },
    },
    Tampering {
        number: 49,
        what: "no witness cosigned",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.ask_for_witnesses(2);
            Asked::audit_by_policy()
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "the quorum of witnesses is not met: 0 cosigned, missing are `first`, `second`",
            wanted: "a trusted one",
        },
    },
    Tampering {
        number: 49,
        what: "a witness cosigned an older head",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.ask_for_witnesses(1);
            let cosigned = scene.cosigned("checkpoints/2", "second", &[TIME]);
            scene.put("witness/second", cosigned.as_bytes());
            Asked::audit_by_policy()
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "the quorum of witnesses is not met: 0 cosigned",
            wanted: "a trusted one",
        },
    },
    Tampering {
        number: 49,
        what: "a witness's cosignature is of another head",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.ask_for_witnesses(1);
            let cosigned = scene.cosigned("checkpoints/2", "second", &[TIME]);
            let cosigned = Note::parse(cosigned.as_bytes()).expect("a note");
            let honest = Note::parse(&scene.get("checkpoint")).expect("a note");
            let forged = honest.with_signatures(&cosigned.signatures()[1..]).expect("a note");
            scene.put("witness/second", forged.to_string().as_bytes());
            Asked::audit_by_policy()
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "checkpoint: the head",
            found: "the signature of `second` is not one of this text",
            wanted: "a trusted one",
        },
    },
];

fn stranger() -> SigningKey {
    SigningKey::from_seed([0x66; 32])
}

/// The neutral element, as a key: every message has a signature by it that nobody had to make.
const WEAK_KEY: [u8; 32] = {
    let mut key = [0; 32];
    key[0] = 1;
    key
};

fn weak_key_id(name: &str) -> [u8; 4] {
    let hash = Hash::of(&[name.as_bytes(), b"\n\x01", &WEAK_KEY].concat());
    [hash.0[0], hash.0[1], hash.0[2], hash.0[3]]
}

fn weak_vkey(name: &str) -> String {
    let id: String = weak_key_id(name).iter().map(|byte| format!("{byte:02x}")).collect();
    // The kind 0x01, a byte 0x01 and 31 of zeros in base64.
    format!("{name}+{id}+AQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
}

/// Adds the order of the group to a little-endian scalar (RFC 8032 section 5.1).
fn add_order(scalar: &mut [u8]) {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut carry = 0;
    for (digit, add) in scalar.iter_mut().zip(ORDER) {
        let sum = u16::from(*digit) + u16::from(add) + carry;
        *digit = sum as u8;
        carry = sum >> 8;
    }
    assert_eq!(carry, 0, "scalars are far below 2^256");
}

#[test]
fn tricks_with_keys_signatures_and_quorums_are_caught() {
    assert_caught(TAMPERINGS);
}

#[test]
fn a_quorum_that_is_met_is_accepted() {
    let scene = Scene::of(drawn());
    scene.ask_for_witnesses(2);
    for name in crate::tampering::scene::WITNESSES {
        let cosigned = scene.cosigned("checkpoint", name, &[TIME]);
        scene.put(&format!("witness/{name}"), cosigned.as_bytes());
    }
    let said = scene.ask(&Asked::audit_by_policy());
    assert_eq!(said.status.code(), Some(0), "{said:?}");
}
