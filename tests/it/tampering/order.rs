//! Which matches there are: twice, never, voided, played again elsewhere. Kinds 17 to 22, 24.

use arena_core::entry::Entry;
use arena_core::record::Outcome;
use arena_core::scenario::Role;
use arena_core::seat::Usage;
use arena_core::turn::Move;

use crate::tampering::honest::{drawn, drawn_again, seeded};
use crate::tampering::scene::Asked;
use crate::tampering::{By, Expect, Tampering, assert_caught};

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 17,
        what: "a match is recorded twice",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(2, 1);
                log.rows.insert(index, log.rows[index].clone());
                log.recount();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the match",
            found: "leg 1 of pair 2",
            wanted: "leg 0 of pair 3",
        },
    },
    Tampering {
        number: 18,
        what: "a match is not in the schedule",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let close = log.close_at();
                let more = [log.rows[close - 2].clone(), log.rows[close - 1].clone()];
                log.rows.splice(close..close, more);
                for index in [close, close + 1] {
                    log.forge_record(index, |record| record.pair_index = 6);
                }
                log.recount();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the match",
            found: "leg 0 of pair 6",
            wanted: "the close",
        },
    },
    Tampering {
        number: 18,
        what: "a match is between other agents than scheduled",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.find(|record| record.agents == [0, 2]);
                log.forge_record(index, |record| record.agents = [2, 2]);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the agents of leg ",
            found: "2 buys from 2",
            wanted: "0 buys from 2",
        },
    },
    Tampering {
        number: 19,
        what: "a lost pair is dropped, and the close counts without it",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(4, 0);
                log.rows.drain(index..index + 2);
                log.recount();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the match",
            found: "leg 0 of pair 5",
            wanted: "leg 0 of pair 4",
        },
    },
    Tampering {
        number: 19,
        what: "the last pair is dropped, and the announcement counts without it",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                let close = log.close_at();
                log.rows.drain(close - 2..close);
                log.recount();
                log.announcement.pair_count -= 1;
                log.announce();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "announcement",
            what: "the number of pairs",
            found: "`5`",
            wanted: "`6`",
        },
    },
    Tampering {
        number: 19,
        what: "the close counts other matches than there are",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.close_at();
                let Entry::Close(close) = &mut log.rows[index].entry else { panic!("the close") };
                close.match_count = 10;
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "counts",
            what: "matches in the close",
            found: "10",
            wanted: "12",
        },
    },
    Tampering {
        number: 20,
        what: "a lost pair is voided afterwards",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                log.void(3, 1);
                let index = log.match_at(3, 0);
                log.rows.drain(index..index + 2);
                log.recount();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the match",
            found: "leg 0 of pair 4",
            wanted: "leg 0 of pair 3",
        },
    },
    Tampering {
        number: 20,
        what: "a void is hidden from the close",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| log.void(3, 1));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "counts",
            what: "voided pairs in the close",
            found: "0",
            wanted: "1",
        },
    },
    Tampering {
        number: 20,
        what: "a pair is voided before it is played again",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                log.void(3, 1);
                log.recount();
            });
            Asked::audit(&[])
        },
        expect: Expect::Named {
            limit: "Whether pairs were voided because of how they went",
            shown: "12 matches, 1 void; the highest rate is that of `",
        },
    },
    Tampering {
        number: 21,
        what: "a pair is played again with other seeds",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                for leg in [0, 1] {
                    let index = log.match_at(1, leg);
                    log.forge_record(index, |record| record.seeds = [7, 8]);
                }
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "scenarios",
            what: "the seats' seeds",
            found: "7 and 8",
            wanted: " and ",
        },
    },
    Tampering {
        number: 21,
        what: "an attempt is left out of the count of attempts",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                log.void(3, 2);
                let index = log.match_at(3, 0);
                log.rows.remove(index - 2);
                log.recount();
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the void",
            found: "void 1 of pair 3",
            wanted: "void 0 of pair 3",
        },
    },
    Tampering {
        number: 21,
        what: "a pair is played until the result pleases, with every attempt on record",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                log.void(3, 5);
                log.recount();
            });
            Asked::audit(&[])
        },
        expect: Expect::Named {
            limit: "Whether pairs were voided because of how they went",
            shown: "no pair was voided more than 5 times, which a run does not do without being \
                    started again",
        },
    },
    Tampering {
        number: 22,
        what: "the tournament is played twice and the better one published",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.show(&drawn_again().log());
            Asked::audit(&[])
        },
        expect: Expect::Named {
            limit: "Whether the organiser ran the tournament several times and published the best",
            shown: "the revealed secret is the committed one",
        },
    },
    Tampering {
        number: 22,
        what: "the tournament is played twice, to one who holds the first announcement",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.write("first", &scene.get("checkpoints/1"));
            scene.show(&drawn_again().log());
            Asked::audit(&["--held", "first"])
        },
        expect: Expect::Fails {
            steps: "held-heads",
            what: "the root of 1 entries by held head 1",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 24,
        what: "an agent sits in for another one from the second item on",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.find(|record| record.item_index == 1 && record.agents == [0, 1]);
                log.forge_record(index, |record| record.agents = [2, 1]);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "schedule",
            what: "the agents of leg",
            found: "2 buys from 1",
            wanted: "0 buys from 1",
        },
    },
    Tampering {
        number: 24,
        what: "an agent is replaced by another component from the second item on",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            // What another one plays there: it gives up at once.
            scene.forge(|log| {
                let index = log.find(|record| record.item_index == 1 && record.agents[0] == 2);
                log.forge_record(index, |record| {
                    record.turns.truncate(1);
                    let last = record.turns.last_mut().expect("a first turn");
                    last.action = Move::Walk;
                    record.outcome = Outcome::Walked { by: Role::Buyer };
                    record.usage[0].fuel_per_act.truncate(1);
                    record.usage[1] = Usage::default();
                });
            });
            Asked::audit(&["--reexecute"])
        },
        expect: Expect::Fails {
            steps: "re-execution",
            what: "run again: turn 1, action",
            found: "Walk",
            wanted: "Offer(",
        },
    },
];

#[test]
fn matches_too_many_too_few_or_out_of_place_are_caught() {
    assert_caught(TAMPERINGS);
}
