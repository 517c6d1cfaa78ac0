//! What was drawn and who could have known it: secrets, nonces, the beacon, clocks. Kinds 30 to 37.

use arena_core::draws::{Draws, commit_secret};
use arena_core::entry::{DrawEntry, Entry, Reveal};
use arena_core::record::Outcome;
use arena_core::submission::{Submission, params_sha256};

use crate::tampering::honest::{ROUND_TIME, drawn, drawn_again, seeded, signed, statement};
use crate::tampering::rewrite::{Rewrite, Tables};
use crate::tampering::scene::{Asked, Scene};
use crate::tampering::{By, Expect, Tampering, assert_caught};

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 30,
        what: "a budget is another one after the match",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(1, 0);
                log.forge_record(index, |record| record.budget.0 += 1);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "scenarios",
            what: "the buyer's budget",
            found: "$",
            wanted: "$",
        },
    },
    Tampering {
        number: 30,
        what: "another secret is revealed than the one committed to",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| reveal(log).secret = Some([1; 32]));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "draws",
            what: "the commitment of the revealed secret",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 30,
        what: "another contribution is opened than the one committed to",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| draw(log).contributions[1] = Some([7; 32]));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "draws",
            what: "the commitment of contribution 1",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 31,
        what: "a match has the nonce of another match",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let [index, other] = [log.match_at(1, 0), log.match_at(1, 1)];
                let nonce = log.transcript(other).nonce;
                log.forge(index, |transcript| transcript.nonce = nonce);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "scenarios",
            what: "the transcript's nonce",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 31,
        what: "a match is bound by the transcript of another match",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let [index, other] = [log.match_at(1, 0), log.match_at(1, 1)];
                let bytes = log.rows[other].attachment.clone();
                let bound = log.transcript(other).entry(&bytes).transcript_sha256;
                log.rows[index].attachment = bytes;
                let Entry::Match(entry) = &mut log.rows[index].entry else { panic!("a match") };
                entry.transcript_sha256 = bound;
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "transcripts",
            what: "the transcript's match",
            found: "leg 1 of pair 1",
            wanted: "leg 0 of pair 1",
        },
    },
    Tampering {
        number: 31,
        what: "one author's commitment is announced as another's as well",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let Draws::Committed(committed) = &mut log.announcement.draws else {
                    panic!("committed draws");
                };
                committed.contributions[1] = committed.contributions[0];
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "submissions, draws",
            what: "different contributions",
            found: "1",
            wanted: "2",
        },
    },
    Tampering {
        number: 32,
        what: "a transcript has a nonce that can be guessed",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(1, 0);
                log.forge(index, |transcript| transcript.nonce = [0; 32]);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "scenarios",
            what: "the transcript's nonce",
            found: "0000000000000000000000000000000000000000000000000000000000000000",
            wanted: "",
        },
    },
    Tampering {
        number: 33,
        what: "the organiser tries secrets once the beacon's round is out",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            // Whoever saw the announcement before the round holds its head.
            scene.write("before", &scene.get("checkpoints/1"));
            scene.show(&drawn_again().log());
            Asked::audit(&["--held", "before"])
        },
        expect: Expect::Fails {
            steps: "held-heads",
            what: "the root of 1 entries by held head 1",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 33,
        what: "the secret is announced anew, and what was played stays",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let Draws::Committed(committed) = &mut log.announcement.draws else {
                    panic!("committed draws");
                };
                committed.secret_commitment = commit_secret(&[1; 32]);
                reveal(log).secret = Some([1; 32]);
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "catalog, scenarios",
            what: "the announced hash of the catalog",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 33,
        what: "the organiser tries secrets once the round is out, and no witness saw the first",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.show(&drawn_again().log());
            Asked::audit(&[])
        },
        expect: Expect::Named {
            limit: "from before the beacon's round or the first match",
            shown: "no trusted witness shows that the announcement is older than the round",
        },
    },
    Tampering {
        number: 34,
        what: "the beacon's value is invented",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                draw(log).beacon.as_mut().expect("a round").signature = [0x80; 48];
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "draws",
            what: "the beacon's signature",
            found: "8080",
            wanted: "quicknet's signature of round 123",
        },
    },
    Tampering {
        number: 34,
        what: "the beacon's value is of another round",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| draw(log).beacon.as_mut().expect("a round").round = 124);
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "draws",
            what: "the beacon's round",
            found: "124",
            wanted: "123",
        },
    },
    Tampering {
        number: 34,
        what: "the beacon is another one",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let Draws::Committed(committed) = &mut log.announcement.draws else {
                    panic!("committed draws");
                };
                committed.beacon.as_mut().expect("a round").chain = [1; 32];
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "draws",
            what: "the beacon's chain",
            found: "0101",
            wanted: "52db9ba70e0cc0f6",
        },
    },
    Tampering {
        number: 35,
        what: "a match opens with the other side",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(1, 0);
                log.forge_record(index, |record| record.opener = record.opener.other());
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "scenarios, rules",
            what: "the opener",
            found: "seller",
            wanted: "buyer",
        },
    },
    Tampering {
        number: 35,
        what: "two agents change seats",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 0);
                log.forge_record(index, |record| record.agents.swap(0, 1));
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule, usage",
            what: "the agents of leg 0 of pair 0",
            found: "2 buys from 1",
            wanted: "1 buys from 2",
        },
    },
    Tampering {
        number: 35,
        what: "a match is over another item",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 1);
                log.forge_record(index, |record| record.item_index = 1 - record.item_index);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the item of leg 1 of pair 0",
            found: "1",
            wanted: "0",
        },
    },
    Tampering {
        number: 36,
        what: "nothing is revealed",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                log.rows.pop();
                log.tables = Tables::Unpublished;
            });
            Asked::audit(&[])
        },
        expect: Expect::Unchecked {
            steps: "draws, catalog, counts, scenarios, results; not asked for: re-execution",
            reason: "the log is closed, but nothing was revealed",
        },
    },
    Tampering {
        number: 36,
        what: "nothing is revealed, and tables are published",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| drop(log.rows.pop()));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "counts",
            what: "the reveal",
            found: "none, though the folder has results.json",
            wanted: "one",
        },
    },
    Tampering {
        number: 36,
        what: "the reveal has no secret",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| reveal(log).secret = None);
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "draws",
            what: "the commitment of the revealed secret",
            found: "no secret",
            wanted: "",
        },
    },
    Tampering {
        number: 37,
        what: "a witness saw the beacon's round before it came out",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.ask_for_witnesses(1);
            let cosigned = scene.cosigned("checkpoint", "first", &[ROUND_TIME - 1]);
            scene.put("witness/first", cosigned.as_bytes());
            Asked::audit_by_policy()
        },
        expect: Expect::Fails {
            steps: "draws",
            what: "the time at which `first` saw the beacon's round",
            found: "1692803732",
            wanted: "at least 1692803733, when the round came out",
        },
    },
    Tampering {
        number: 37,
        what: "a witness saw the end before the beginning",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.ask_for_witnesses(1);
            for (head, time) in [("checkpoint", 1_796_000_000), ("checkpoints/2", 1_796_000_001)] {
                let cosigned = scene.cosigned(head, "first", &[time]);
                let name = head.replace('/', "-");
                scene.put(&format!("witness/{name}"), cosigned.as_bytes());
            }
            Asked::audit_by_policy()
        },
        expect: Expect::Fails {
            steps: "held-heads",
            what: "the time at which `first` saw 16 entries",
            found: "1796000000",
            wanted: "at least 1796000001, when it saw 2",
        },
    },
    Tampering {
        number: 37,
        what: "a time-out is granted before the time is out",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.find(|record| record.outcome.deal_price().is_some());
                log.forge_record(index, |record| {
                    record.outcome = Outcome::TimedOut;
                    let by = record.turns.pop().expect("the deal").by;
                    let usage = &mut record.usage[by.index()];
                    usage.fuel_per_act.pop();
                    let acts = usage.fuel_per_act.len();
                    usage.model_calls.retain(|call| (call.act_index as usize) < acts);
                });
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "rules",
            what: "the match by the rules",
            found: "",
            wanted: "one that they allow",
        },
    },
    Tampering {
        number: 15,
        what: "an author's statement is that of another tournament",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            restate(scene, |stated| stated.tournament = "autumn".to_owned());
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "submissions",
            what: "the tournament in the statement of agent `random`",
            found: "autumn",
            wanted: "tampered",
        },
    },
    Tampering {
        number: 24,
        what: "an agent plays with other parameters than its author stated",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            restate(scene, |stated| stated.params_sha256 = params_sha256("low=30%"));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "submissions",
            what: "the hash of the parameters of agent `random`",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 37,
        what: "an author's statement is dated back",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            restate(scene, |stated| stated.time = 1);
            Asked::audit(&[])
        },
        expect: Expect::Named {
            limit: "when anything happened: times are claims of whoever states them",
            shown: "2 of 3 agents have one; their keys are nobody's in particular",
        },
    },
];

/// Puts another statement of the author into the announcement, soundly signed.
fn restate(scene: &Scene, change: fn(&mut Submission)) {
    scene.forge(|log| {
        let mut stated = statement("random", "zero-intelligence", [0xa1; 32], false);
        change(&mut stated);
        log.announcement.agents[0].submission = Some(signed([0xa1; 32], &stated));
        log.announce();
    });
}

fn reveal(log: &mut Rewrite) -> &mut Reveal {
    match &mut log.rows.last_mut().expect("the reveal").entry {
        Entry::Reveal(reveal) => reveal,
        other => panic!("{other:?} is not the reveal"),
    }
}

fn draw(log: &mut Rewrite) -> &mut DrawEntry {
    match &mut log.rows[1].entry {
        Entry::Draw(draw) => draw,
        other => panic!("{other:?} is not the draw"),
    }
}

#[test]
fn draws_that_somebody_chose_are_caught() {
    assert_caught(TAMPERINGS);
}

#[test]
fn no_two_transcripts_have_the_same_nonce_and_none_is_guessed() {
    let log = Scene::of(drawn()).rewrite();
    let is_match = |index: &usize| matches!(log.rows[*index].entry, Entry::Match(_));
    let nonces: Vec<[u8; 32]> =
        (0..log.rows.len()).filter(is_match).map(|index| log.transcript(index).nonce).collect();
    let different: std::collections::BTreeSet<&[u8; 32]> = nonces.iter().collect();
    assert_eq!((nonces.len(), different.len()), (12, 12));
    for nonce in &nonces {
        let bits: u32 = nonce.iter().map(|byte| byte.count_ones()).sum();
        assert!((64..192).contains(&bits), "{bits} of 256 bits are set: {nonce:?}");
    }
}
