//! Encodings, names, unknown things, files that are none, and what nothing is read from. Kinds 43
//! to 47, 50.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use arena_core::entry::Entry;
use arena_log::hash::Hash;

use crate::tampering::honest::{drawn, seeded};
use crate::tampering::scene::{Asked, Scene};
use crate::tampering::tree::component;
use crate::tampering::{By, Expect, Tampering, assert_caught};

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 43,
        what: "an entry has a byte more",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| respell(scene, |bytes| bytes.push(0)),
        expect: Expect::Fails {
            steps: "entries",
            what: "the entry",
            found: "body does not decode",
            wanted: "an entry in canonical form",
        },
    },
    Tampering {
        number: 43,
        what: "an entry has a byte less",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| respell(scene, |bytes| bytes.truncate(bytes.len() - 1)),
        expect: Expect::Fails {
            steps: "entries",
            what: "the entry",
            found: "body does not decode",
            wanted: "an entry in canonical form",
        },
    },
    Tampering {
        number: 43,
        what: "a tag has a value that says the same",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            // The reveal ends in a tag, 1 for a secret, and the secret.
            let log = scene.rewrite();
            let last = log.rows.len() - 1;
            scene.publish_raw(&log, &|index, entry| {
                let mut bytes = entry.encode();
                let tag = bytes.len() - 33;
                if index == last {
                    assert_eq!(bytes[tag], 1);
                    bytes[tag] = 2;
                }
                bytes
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "held-heads, entries",
            what: "the entry",
            found: "body does not decode",
            wanted: "an entry in canonical form",
        },
    },
    Tampering {
        number: 43,
        what: "a transcript has a byte more, and its entry binds that",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 0);
                let row = &mut log.rows[index];
                row.attachment.push(0);
                let Entry::Match(entry) = &mut row.entry else { panic!("a match") };
                entry.transcript_sha256 = Hash::of(&row.attachment).0;
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "transcripts",
            what: "the transcript",
            found: "body does not decode",
            wanted: "one in canonical form",
        },
    },
    Tampering {
        number: 44,
        what: "a key is twice in the published tables",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let tables = scene.text("results.json");
            let twice = tables.replacen("\"rank\": 1,", "\"rank\": 1, \"rank\": 1,", 1);
            scene.put("results.json", twice.as_bytes());
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "results",
            what: "results.json: line",
            found: "`\"rank\": 1, \"rank\": 1,`",
            wanted: "`\"rank\": 1,`",
        },
    },
    Tampering {
        number: 44,
        what: "an integer is a floating-point number in the published tables",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let tables = scene.text("results.json");
            let changed = tables.replacen("\"rank\": 1,", "\"rank\": 1.0,", 1);
            scene.put("results.json", changed.as_bytes());
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "results",
            what: "results.json: line",
            found: "`\"rank\": 1.0,`",
            wanted: "`\"rank\": 1,`",
        },
    },
    Tampering {
        number: 45,
        what: "an agent's name has a letter that only looks like the right one",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                log.announcement.agents[2].name = "line\u{430}r".to_owned();
                let file = &mut log.announcement.config_toml;
                *file = file.replacen("name = \"linear\"", "name = \"line\u{430}r\"", 1);
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "files, announcement",
            what: "the tournament file",
            found: "line",
            wanted: "one that can be played",
        },
    },
    Tampering {
        number: 45,
        what: "the announcement and its own file spell a name differently",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                log.announcement.agents[2].name = "line\u{430}r".to_owned();
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "announcement",
            what: "the name of agent 2",
            found: "line",
            wanted: "`linear`",
        },
    },
    Tampering {
        number: 45,
        what: "what was said is normalised to other bytes that look the same",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let is_it = |talk: &String| talk.contains("caf\u{e9}");
                let index = log.find(|record| record.turns.iter().any(|turn| is_it(&turn.talk)));
                log.forge_record(index, |record| {
                    for turn in &mut record.turns {
                        turn.talk = turn.talk.replace('\u{e9}', "e\u{301}");
                    }
                });
            });
            Asked::audit(&["--reexecute"])
        },
        expect: Expect::Fails {
            steps: "re-execution",
            what: ", talk",
            found: "my cafe",
            wanted: "my caf",
        },
    },
    Tampering {
        number: 46,
        what: "an entry of a kind that nobody knows",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| respell(scene, |bytes| bytes[7] = 77),
        expect: Expect::Fails {
            steps: "entries",
            what: "the entry",
            found: "kind 77",
            wanted: "an entry in canonical form",
        },
    },
    Tampering {
        number: 46,
        what: "an entry of a later version",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| respell(scene, |bytes| bytes[5] = 4),
        expect: Expect::Fails {
            steps: "entries",
            what: "the entry",
            found: "version is 4, this program reads 3",
            wanted: "an entry in canonical form",
        },
    },
    Tampering {
        number: 47,
        what: "a blob whose name leads out of the folder",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.put("blob/..%2f..%2fetc/passwd", b"root");
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "files",
            what: "passwd: the blob",
            found: "one",
            wanted: "none of this name",
        },
    },
    Tampering {
        number: 47,
        what: "a file that no log has",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.put("README.html", b"<p>verified by us");
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "files",
            what: "README.html: the name",
            found: "a file",
            wanted: "none of this name",
        },
    },
    Tampering {
        number: 47,
        what: "a link in place of the bundles",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            fs::rename(scene.log().join("tile/entries"), scene.path("elsewhere")).expect("moved");
            symlink(scene.path("elsewhere"), scene.log().join("tile/entries")).expect("a link");
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "tree",
            what: "tile/entries/000.p/16: the file",
            found: "a link or no regular file",
            wanted: "a regular file",
        },
    },
    Tampering {
        number: 47,
        what: "a link in place of the newest head",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.remove("checkpoint");
            symlink("checkpoints/16", scene.log().join("checkpoint")).expect("a link");
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "the log",
            found: "is a link or no regular file",
            wanted: "with a signed head",
        },
    },
    Tampering {
        number: 47,
        what: "a link in place of a component",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let name = component(&scene.rewrite(), 2);
            scene.remove(&name);
            symlink("/etc/passwd", scene.log().join(&name)).expect("a link");
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "files, components",
            what: "the file",
            found: "a link or no regular file",
            wanted: "a regular file",
        },
    },
    Tampering {
        number: 47,
        what: "a pipe in place of the tables, which nobody writes to",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            scene.remove("results.json");
            let made = Command::new("mkfifo").arg(scene.log().join("results.json")).status();
            assert!(made.expect("mkfifo runs").success());
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "files, results",
            what: "results.json: the name",
            found: "a link, pipe or device",
            wanted: "a file",
        },
    },
    Tampering {
        number: 47,
        what: "a head of a terabyte",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| grow(scene, "checkpoint"),
        expect: Expect::Fails {
            steps: "checkpoint",
            what: "the log",
            found: "1099511627776 bytes",
            wanted: "with a signed head",
        },
    },
    Tampering {
        number: 47,
        what: "a tile of a terabyte",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| grow(scene, "tile/0/000.p/16"),
        expect: Expect::Fails {
            steps: "tree",
            what: "tile/0/000.p/16: the bytes",
            found: "1099511627776",
            wanted: "512",
        },
    },
    Tampering {
        number: 47,
        what: "tables of a terabyte",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| grow(scene, "results.json"),
        expect: Expect::Fails {
            steps: "results",
            what: "results.json: the bytes",
            found: "1099511627776",
            wanted: "at most ",
        },
    },
    Tampering {
        number: 47,
        what: "a component of a terabyte",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| grow(scene, &component(&scene.rewrite(), 2)),
        expect: Expect::Fails {
            steps: "files, components",
            what: "the bytes",
            found: "1099511627776",
            wanted: "at most 25165824",
        },
    },
    Tampering {
        number: 47,
        what: "a transcript that says it has four gigabytes",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            // The announcement and the draw have empty attachments of four bytes.
            let mut bytes = scene.get("attachment/000.p/16");
            bytes[8..12].fill(0xff);
            scene.put("attachment/000.p/16", &bytes);
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "tree",
            what: "attachment/000.p/16: the bundle",
            found: "its length is 4294967295 bytes, the most is 8388608",
            wanted: "whole entries",
        },
    },
    Tampering {
        number: 47,
        what: "more files than anybody lists",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            for number in 0..300 {
                scene.put(&format!("{number}"), b"");
            }
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "files",
            what: "the names in the folder",
            found: "more",
            wanted: "at most 256",
        },
    },
    Tampering {
        number: 50,
        what: "a doctored index lies beside the log",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            make_index(scene, "index.sqlite");
            Asked::audit(&[])
        },
        expect: Expect::Ignored,
    },
    Tampering {
        number: 50,
        what: "a doctored index lies in the log",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            make_index(scene, "log/index.sqlite");
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "files",
            what: "index.sqlite: the name",
            found: "a file",
            wanted: "none of this name",
        },
    },
    Tampering {
        number: 50,
        what: "what is withheld comes along, and says something else",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.put("private/secret", b"5b");
            scene.put("private/journal", b"another story");
            scene.put("private/last-signed", b"17 0000\n");
            scene.put("private/attachment/000.p/16", b"another story");
            Asked::audit(&[])
        },
        expect: Expect::Ignored,
    },
    Tampering {
        number: 50,
        what: "the program that audits is doctored",
        by: By::Organiser,
        of: drawn,
        tamper: |_| Asked::audit(&[]),
        expect: Expect::Named {
            limit: "Whether the program that audits is sound: build it yourself, or use another \
                    reader of the format.",
            shown: "verified     results",
        },
    },
];

/// Signs the log with other bytes of one match's entry.
fn respell(scene: &Scene, change: fn(&mut Vec<u8>)) -> Asked {
    let log = scene.rewrite();
    let place = log.match_at(2, 0);
    scene.publish_raw(&log, &|index, entry| {
        let mut bytes = entry.encode();
        if index == place {
            change(&mut bytes);
        }
        bytes
    });
    Asked::audit(&[])
}

/// Makes a file a terabyte long, without as many bytes on the disk.
fn grow(scene: &Scene, name: &str) -> Asked {
    let file = fs::File::options().write(true).open(scene.log().join(name)).expect(name);
    file.set_len(1 << 40).expect("a sparse file");
    Asked::audit(&[])
}

/// Makes an index of the log, and spoils it.
fn make_index(scene: &Scene, out: &str) {
    let said = scene.run(&["log", "index", "log", "--out", out]);
    assert!(said.status.success(), "{said:?}");
    let mut bytes = fs::read(scene.path(out)).expect("an index");
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0xff);
    fs::write(scene.path(out), bytes).expect("an index");
}

#[test]
fn encodings_names_and_files_that_are_none_are_caught() {
    assert_caught(TAMPERINGS);
}
