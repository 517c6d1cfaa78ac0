//! What was played, by whom, on what, and what it was worth. Kinds 23, 25 to 29, 38 to 40.

use arena_core::entry::Entry;
use arena_core::hexadecimal::hex;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::scenario::Role;
use arena_core::seat::Usage;
use arena_core::turn::Move;
use arena_log::hash::Hash;

use crate::kit;
use crate::tampering::honest::{drawn, seeded};
use crate::tampering::rewrite::{Rewrite, Tables};
use crate::tampering::scene::{Asked, Scene};
use crate::tampering::tree::component;
use crate::tampering::{By, Expect, Tampering, assert_caught};

/// Runs everything again, which is what the kinds below are found by, if nothing else finds them.
pub const AGAIN: &[&str] = &["--reexecute"];

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 23,
        what: "a component is exchanged on the way",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let name = component(&scene.rewrite(), 2);
            scene.put(&name, builtin("boulware"));
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
        number: 23,
        what: "a component is announced that its author did not sign",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| exchange(log, 0, builtin("boulware")));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "submissions",
            what: "the component of agent `random`",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 23,
        what: "a component is announced, without an author, that did not play",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| exchange(log, 2, builtin("boulware")));
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails { steps: "re-execution", what: "run again: ", found: "", wanted: "" },
    },
    Tampering {
        number: 23,
        what: "a component is not published",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.remove(&component(&scene.rewrite(), 2));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "components",
            what: "the component of agent `linear`",
            found: "none",
            wanted: "one",
        },
    },
    Tampering {
        number: 25,
        what: "a match that never ran is made up, and is legal",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 0);
                log.forge_record(index, make_up);
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails {
            steps: "re-execution",
            what: "run again: turn 1, action",
            found: "Walk",
            wanted: "",
        },
    },
    Tampering {
        number: 25,
        what: "a match that never ran is made up, and nobody runs it",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 0);
                log.forge_record(index, make_up);
            });
            Asked::audit(&[])
        },
        expect: Expect::Named {
            limit: "a transcript that comes out again is as good as a run",
            shown: "not checked  re-execution",
        },
    },
    Tampering {
        number: 26,
        what: "an offer is edited",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.find(|record| first_offer(record).is_some());
                log.forge_record(index, |record| {
                    let place = first_offer(record).expect("an offer");
                    let Move::Offer(price) = &mut record.turns[place].action else {
                        panic!("an offer");
                    };
                    price.0 -= 1;
                });
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails {
            steps: "re-execution",
            what: "run again: turn ",
            found: "Offer(",
            wanted: "Offer(",
        },
    },
    Tampering {
        number: 26,
        what: "a price is edited where it decides",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.find(|record| record.outcome.deal_price().is_some());
                log.forge_record(index, |record| {
                    let Outcome::Deal { price } = &mut record.outcome else { panic!("a deal") };
                    price.0 += 1;
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
        number: 26,
        what: "what was said is edited",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 0);
                log.forge_record(index, |record| record.turns[0].talk = "I resign.".to_owned());
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails {
            steps: "re-execution",
            what: "run again: turn 1, talk",
            found: "\"I resign.\"",
            wanted: "\"",
        },
    },
    Tampering {
        number: 26,
        what: "two turns change places",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.find(|record| record.turns.len() > 2);
                log.forge_record(index, |record| record.turns.swap(0, 1));
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
        number: 26,
        what: "the entry tells another end than the transcript",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 0);
                let Entry::Match(entry) = &mut log.rows[index].entry else {
                    panic!("a match");
                };
                entry.outcome = Outcome::Deal { price: Price(1) };
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "transcripts",
            what: "the transcript's outcome",
            found: "",
            wanted: "a deal at $0.01",
        },
    },
    Tampering {
        number: 27,
        what: "a published reward is edited",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| edit_number(scene, "\"reward\": {", "\"value\": "),
        expect: Expect::Fails {
            steps: "results",
            what: "results.json: line",
            found: "\"value\": ",
            wanted: "\"value\": ",
        },
    },
    Tampering {
        number: 28,
        what: "a published rating is edited",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| edit_number(scene, "\"rating\": {", "\"value\": "),
        expect: Expect::Fails {
            steps: "results",
            what: "results.json: line",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 29,
        what: "the published tables rank the last one first",
        by: By::Stranger,
        of: drawn,
        tamper: |scene| {
            let tables = scene.text("results.json");
            scene.put("results.json", tables.replacen("\"rank\": 3", "\"rank\": 1", 1).as_bytes());
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "results",
            what: "results.json: line",
            found: "`\"rank\": 1,`",
            wanted: "`\"rank\": 3,`",
        },
    },
    Tampering {
        number: 29,
        what: "tables of another tournament are published",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            let other = Scene::of(seeded()).get("results.json");
            scene.forge(|log| log.tables = Tables::As(other));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "results",
            what: "results.json: line",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 38,
        what: "a turn burned more fuel than allowed",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 0);
                log.forge_record(index, |record| record.usage[0].fuel_per_act[0] = u64::MAX);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "usage",
            what: "the fuel of a turn of the buyer",
            found: "18446744073709551615",
            wanted: "at most ",
        },
    },
    Tampering {
        number: 38,
        what: "a turn burned other fuel than recorded, within the limits",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.match_at(0, 0);
                log.forge_record(index, |record| record.usage[0].fuel_per_act[0] = 77);
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails {
            steps: "re-execution",
            what: "run again: buyer.fuel_per_act[0]",
            found: "77",
            wanted: "",
        },
    },
    Tampering {
        number: 38,
        what: "a match was played by another horizon",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let index = log.find(|record| record.outcome == Outcome::TimedOut);
                log.forge_record(index, |record| record.horizon.turn_limit = 7);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "scenarios, rules",
            what: "the horizon",
            found: "7 turns",
            wanted: "6 turns",
        },
    },
    Tampering {
        number: 39,
        what: "the announcement names another engine",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                let engine = &log.announcement.engine;
                log.announcement.engine = engine.replace("host-call-fuel=", "host-call-fuel=9");
                log.announce();
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Unchecked {
            steps: "re-execution",
            reason: "it was played on another engine: announced is `host-call-fuel=9",
        },
    },
    Tampering {
        number: 40,
        what: "an agent needs what is not the same on every machine",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                let clock =
                    kit::raw(r#"(component (import "wasi:sockets/network@0.2.0" (instance)))"#);
                exchange(log, 2, &clock);
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails {
            steps: "re-execution",
            what: "the component of agent `linear`",
            found: "wasi:sockets/network@0.2.0",
            wanted: "one that the sandbox takes",
        },
    },
];

fn builtin(name: &str) -> &'static [u8] {
    arena_agents::find(name).expect("a built-in agent").component
}

/// Announces another component of an agent, publishes it, and corrects the tables.
fn exchange(log: &mut Rewrite, agent: usize, component: &[u8]) {
    let was = log.announcement.agents[agent].component_sha256;
    log.blobs.retain(|blob| Hash::of(blob).0 != was);
    log.blobs.push(component.to_vec());
    let is = Hash::of(component).0;
    log.announcement.agents[agent].component_sha256 = is;
    log.announce();
    if let Tables::Made { before } = &mut log.tables {
        let text = String::from_utf8(before.clone()).expect("JSON");
        *before = text.replace(&hex(&was), &hex(&is)).into_bytes();
    }
}

/// Makes of a match one in which the buyer walks away at once.
fn make_up(record: &mut MatchRecord) {
    let by = Role::Buyer;
    record.turns = vec![TurnRecord {
        by,
        refused: Vec::new(),
        action: Move::Walk,
        talk: String::new(),
        belief: None,
    }];
    record.unfinished = Vec::new();
    record.outcome = Outcome::Walked { by };
    let usage = Usage { fuel_per_act: vec![1_000], ..Usage::default() };
    record.usage = [usage, Usage::default()];
}

/// Returns the place of an offer above a cent that was not taken.
fn first_offer(record: &MatchRecord) -> Option<usize> {
    let is_it = |turn: &TurnRecord| matches!(turn.action, Move::Offer(Price(1_000..)));
    let is_idle = record.outcome == Outcome::TimedOut;
    record.turns.iter().position(is_it).filter(|_| is_idle)
}

/// Changes the first digit of a number in the published tables.
fn edit_number(scene: &Scene, within: &str, key: &str) -> Asked {
    let tables = scene.text("results.json");
    let start = tables.find(within).unwrap_or_else(|| panic!("no `{within}` in:\n{tables}"));
    let at = tables[start..].find(key).expect("a number there") + start + key.len();
    let at = tables[at..].find(|c: char| c.is_ascii_digit()).expect("a digit") + at;
    let digit = if &tables[at..=at] == "9" { "8" } else { "9" };
    let edited = format!("{}{digit}{}", &tables[..at], &tables[at + 1..]);
    scene.put("results.json", edited.as_bytes());
    Asked::audit(&[])
}

#[test]
fn lies_about_what_was_played_and_by_whom_are_caught() {
    assert_caught(TAMPERINGS);
}
