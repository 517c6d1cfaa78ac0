//! The tree and its heads: bits, order, cut tails, rewritten history. Kinds 1 to 7.

use arena_log::hash::Hash;
use arena_log::tile;

use crate::tampering::honest::drawn;
use crate::tampering::rewrite::{Rewrite, Tables};
use crate::tampering::scene::{Asked, Scene};
use crate::tampering::{By, Expect, Tampering, assert_caught};

/// The bundle of all entries: one of the announcement, one of the draw, twelve of matches, the
/// close and the reveal.
const ENTRIES: &str = "tile/entries/000.p/16";

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 1,
        what: "a bit of an entry is flipped",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.flip(ENTRIES);
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "tree",
            what: "tile/0/000.p/15: hash",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 1,
        what: "a bit of a hash is flipped",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.flip("tile/0/000.p/16");
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "tree",
            what: "tile/0/000.p/16: hash 8",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 1,
        what: "a bit of a component is flipped",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.flip(&component(&scene.rewrite(), 0));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "files, components",
            what: "the hash of the bytes",
            found: "",
            wanted: "its name",
        },
    },
    Tampering {
        number: 1,
        what: "a bit of a transcript is flipped",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            // Two empty attachments of four bytes, a length, and the transcript from there on.
            scene.flip_at("attachment/000.p/16", 60);
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "tree",
            what: "attachment/000.p/15: the bytes",
            found: "another byte at",
            wanted: "what `attachment/000.p/16` starts with",
        },
    },
    Tampering {
        number: 2,
        what: "two entries change places",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let mut entries = entries(scene);
            entries.swap(4, 5);
            scene.put(ENTRIES, &bundle(&entries));
            Asked::audit(&[])
        },
        expect: Expect::Fails { steps: "tree", what: "hash 4", found: "", wanted: "" },
    },
    Tampering {
        number: 2,
        what: "two pairs change places",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(2, 0);
                log.rows[index..index + 4].rotate_left(2);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the match",
            found: "leg 0 of pair 3",
            wanted: "leg 0 of pair 2",
        },
    },
    Tampering {
        number: 3,
        what: "an entry in the middle is deleted",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let mut entries = entries(scene);
            entries.remove(6);
            scene.put(ENTRIES, &bundle(&entries));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "tree",
            what: "tile/entries/000.p/16: the bundle",
            found: "it runs beyond the end of the file",
            wanted: "whole entries",
        },
    },
    Tampering {
        number: 3,
        what: "a match in the middle is deleted",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(2, 1);
                log.rows.remove(index);
                log.recount();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the match",
            found: "leg 0 of pair 3",
            wanted: "leg 1 of pair 2",
        },
    },
    Tampering {
        number: 4,
        what: "an older head is served, to one who holds a newer one",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.cut(15);
            Asked::audit(&["--held", "held"])
        },
        expect: Expect::Fails {
            steps: "held-heads",
            what: "the entries of the log",
            found: "15",
            wanted: "at least the 16 of held head 1",
        },
    },
    Tampering {
        number: 4,
        what: "an older head is served, to one who holds nothing",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.cut(2);
            Asked::audit(&[])
        },
        expect: Expect::Unchecked {
            steps: "draws, catalog, schedule, counts, transcripts, scenarios, rules, usage, \
                    results, components; not asked for: re-execution",
            reason: "the log is not closed: 0 of 12 matches are there, each in its place",
        },
    },
    Tampering {
        number: 4,
        what: "the reveal is cut off, to one who holds nothing",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.cut(15);
            Asked::audit(&[])
        },
        expect: Expect::Unchecked {
            steps: "draws, catalog, counts, scenarios, results; not asked for: re-execution",
            reason: "nothing was revealed: its tail is cut off",
        },
    },
    Tampering {
        number: 4,
        what: "an older head is served, and later files lie about",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.put("checkpoint", &scene.get("checkpoints/15"));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "tree",
            what: "the log",
            found: "log/checkpoints/16` has size 16, but the last signed size is 15",
            wanted: "one that can be read",
        },
    },
    Tampering {
        number: 5,
        what: "the tail is cut off and the rest signed, to one who holds the newest head",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(cut_to_eight);
            Asked::audit(&["--held", "held"])
        },
        expect: Expect::Fails {
            steps: "held-heads",
            what: "the entries of the log",
            found: "8",
            wanted: "at least the 16 of held head 1",
        },
    },
    Tampering {
        number: 5,
        what: "the tail is cut off and the rest signed, at a size that is never signed",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(cut_to_eight);
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "held-heads",
            what: "checkpoints/8: the head",
            found: "one",
            wanted: "none of this size",
        },
    },
    Tampering {
        number: 5,
        what: "a witness is to cosign a log that was cut",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            let witness = begin_witness(scene);
            scene.forge(cut_to_eight);
            witness
        },
        expect: Expect::Says {
            code: 3,
            words: &["it has 8 entries, the last head cosigned had 16: the log shrank"],
        },
    },
    Tampering {
        number: 6,
        what: "history is rewritten, to one who holds the head from before",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(another_story);
            Asked::audit(&["--held", "held"])
        },
        expect: Expect::Fails {
            steps: "held-heads",
            what: "the root of 16 entries by held head 1",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 6,
        what: "a witness is to cosign a log that was rewritten",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            let witness = begin_witness(scene);
            scene.forge(another_story);
            witness
        },
        expect: Expect::Says {
            code: 3,
            words: &["it does not continue the last head cosigned, 16 entries with root"],
        },
    },
    Tampering {
        number: 7,
        what: "two logs for two readers, who compare their heads",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(another_story);
            Asked::arena(&["audit", "diff", "held", "log", "--key", "key.vkey"])
        },
        expect: Expect::Says {
            code: 1,
            words: &["verdict: EQUIVOCATION", "signed head of held:", "signed head of log:"],
        },
    },
    Tampering {
        number: 7,
        what: "two logs for two readers, of which the witnesses cosigned the other one",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.ask_for_witnesses(1);
            let cosigned = scene.cosigned("checkpoint", "first", &[1_796_000_000]);
            scene.forge(another_story);
            scene.put("witness/first", cosigned.as_bytes());
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
        number: 7,
        what: "two logs for two readers, who never meet",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(another_story);
            Asked::audit(&[])
        },
        expect: Expect::Named {
            limit: "Whether others were shown another log under the same key.",
            shown: "0 held ones: nothing shows that others saw the same log",
        },
    },
];

fn cut_to_eight(log: &mut Rewrite) {
    log.rows.truncate(8);
    log.tables = Tables::Unpublished;
}

/// Changes what an agent is said to have thought: nothing but a head or another run shows it.
pub fn another_story(log: &mut Rewrite) {
    let index = log.match_at(1, 0);
    log.forge_record(index, |record| record.usage[1].trace.push("another story".to_owned()));
}

/// Returns the file of an agent's component.
pub fn component(log: &Rewrite, agent: usize) -> String {
    tile::blob(&Hash(log.announcement.agents[agent].component_sha256))
}

pub fn entries(scene: &Scene) -> Vec<Vec<u8>> {
    scene.rewrite().rows.iter().map(|row| row.entry.encode()).collect()
}

fn bundle(entries: &[Vec<u8>]) -> Vec<u8> {
    let framed = entries.iter().flat_map(|entry| {
        let length = u16::try_from(entry.len()).expect("entries are small");
        [&length.to_be_bytes()[..], entry].concat()
    });
    framed.collect()
}

/// Lets a witness see the honest log; returns how it is asked the next time.
fn begin_witness(scene: &Scene) -> Asked {
    let args = ["log", "keygen", "--out", "witness.pem", "--name", "first", "--witness"];
    assert!(scene.run(&args).status.success());
    let args = ["log", "witness", "log", "--log-key", "key.vkey", "--key", "witness.pem"];
    let args = [&args[..], &["--name", "first", "--state", "seen"]].concat();
    assert!(scene.run(&args).status.success());
    Asked::arena(&args)
}

#[test]
fn changes_to_the_tree_and_its_heads_are_caught() {
    assert_caught(TAMPERINGS);
}
