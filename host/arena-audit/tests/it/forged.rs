//! Logs of a dishonest organiser: changed before they were signed, so that tree and heads hold.
//! Each case is one change, the step that must fail, and what must be said.

use arena_core::draws::{BeaconValue, Draws};
use arena_core::entry::{DrawEntry, Entry, MatchEntry, TournamentId};
use arena_core::fault::{Fault, VoidReason};
use arena_core::price::Price;
use arena_core::record::{Outcome, VoidRecord};
use arena_core::scenario::Role;
use arena_core::seat::{ModelCall, Sampling};
use arena_core::turn::Move;

use crate::honest::{Drawn, Recorded, Tournament, VOIDED_PAIR, assert_fails, submission};

struct Case {
    name: &'static str,
    change: fn(&mut Tournament),
    step: &'static str,
    says: &'static str,
}

fn check(drawn: Drawn, cases: &[Case]) {
    let honest = Tournament::play(drawn, 4);
    for Case { name, change, step, says } in cases {
        let mut tournament = honest.clone();
        change(&mut tournament);
        assert_fails(name, &tournament.write().audit(), &[step], says);
    }
}

fn entry_of(recorded: &mut Recorded) -> &mut MatchEntry {
    match &mut recorded.entry {
        Entry::Match(entry) => entry,
        other => panic!("{other:?} is not a match"),
    }
}

#[test]
fn the_order_of_matches_is_the_announced_one() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "a match is recorded twice",
                change: |log| {
                    let place = log.match_at(4, 1);
                    log.records.insert(place, log.records[place].clone());
                },
                step: "schedule",
                says: "the match: found leg 1 of pair 4, expected leg 0 of pair 5",
            },
            Case {
                name: "a match is not in the schedule",
                change: |log| {
                    let close = log.close_at();
                    log.records.insert(close, log.records[close - 2].clone());
                    log.forge(close, |transcript| transcript.record.pair_index = 12);
                },
                step: "schedule",
                says: "the match: found leg 0 of pair 12, expected the close",
            },
            Case {
                name: "a lost pair is left out",
                change: |log| {
                    let place = log.match_at(5, 0);
                    log.records.drain(place..place + 2);
                },
                step: "schedule",
                says: "the match: found leg 0 of pair 6, expected leg 0 of pair 5",
            },
            Case {
                name: "the last pair is left out",
                change: |log| {
                    let close = log.close_at();
                    log.records.drain(close - 2..close);
                },
                step: "schedule",
                says: "the entry: found the close, expected leg 0 of pair 11",
            },
            Case {
                name: "two pairs change places",
                change: |log| {
                    let place = log.match_at(6, 0);
                    log.records[place..place + 4].rotate_left(2);
                },
                step: "schedule",
                says: "the match: found leg 0 of pair 7, expected leg 0 of pair 6",
            },
            Case {
                name: "a void is left out",
                change: |log| {
                    let place = log.match_at(VOIDED_PAIR, 0) - 1;
                    let void = VoidRecord { pair_index: 9, attempt: 0, reason: VoidReason::Host };
                    let Entry::Void(entry) = &mut log.records[place].entry else {
                        panic!("a void comes before its pair");
                    };
                    entry.void = void;
                },
                step: "schedule",
                says: "the void: found void 0 of pair 9, expected void 0 of pair 2",
            },
        ],
    );
}

#[test]
fn who_plays_whom_over_what_follows_from_the_announcement() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "another agent sits there",
                change: |log| {
                    let place = log.match_at(3, 0);
                    log.forge(place, |transcript| transcript.record.agents.swap(0, 1));
                },
                step: "schedule",
                says: "the agents of leg 0 of pair 3: found",
            },
            Case {
                name: "another item is played",
                change: |log| {
                    let place = log.match_at(3, 1);
                    log.forge(place, |transcript| transcript.record.item_index = 0);
                },
                step: "schedule",
                says: "the item of leg 1 of pair 3: found 0, expected 1",
            },
        ],
    );
}

#[test]
fn counts_and_the_end_are_those_of_the_log() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "the close hides a void",
                change: |log| {
                    let place = log.close_at();
                    let Entry::Close(close) = &mut log.records[place].entry else {
                        panic!("the close");
                    };
                    close.void_count = 0;
                },
                step: "counts",
                says: "voided pairs in the close: found 0, expected 1",
            },
            Case {
                name: "the tail is gone, and tables are published",
                change: |log| {
                    // A head is signed here, so that the log looks like a running one.
                    log.records.truncate(1);
                },
                step: "counts",
                says: "the close: found none, though the folder has results.json",
            },
            Case {
                name: "nothing is revealed, and tables are published",
                change: |log| {
                    log.records.pop();
                },
                step: "counts",
                says: "the reveal: found none, though the folder has results.json",
            },
            Case {
                name: "the tables are better than the log",
                change: |log| {
                    let results = log.results.as_mut().expect("tables");
                    *results = results.replacen("\"rank\": 1", "\"rank\": 2", 1);
                },
                step: "results",
                says: "found `\"rank\": 2,`, expected `\"rank\": 1,`",
            },
        ],
    );
}

#[test]
fn entries_are_of_one_tournament_and_in_order() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "an entry of another tournament",
                change: |log| {
                    let place = log.match_at(1, 0);
                    entry_of(&mut log.records[place]).tournament = TournamentId([9; 32]);
                },
                step: "entries",
                says: "entry 3: the tournament: found 0909",
            },
            Case {
                name: "a match after the close",
                change: |log| {
                    let close = log.close_at();
                    log.records.insert(close + 1, log.records[close - 1].clone());
                },
                step: "entries",
                says: "the entry: found a match, expected the reveal",
            },
            Case {
                name: "a draw that was not announced",
                change: |log| {
                    let draw =
                        DrawEntry { tournament: log.id, contributions: vec![], beacon: None };
                    let place = log.match_at(1, 0);
                    log.records[place].entry = Entry::Draw(draw);
                },
                step: "entries",
                says: "entry 3: the entry: found a draw, expected a match, a void or the close",
            },
        ],
    );
}

#[test]
fn only_known_entries_in_canonical_form_are_read() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, Change, &str); 5] = [
        ("another magic", |bytes| bytes[0] = b'X', "does not start with `ARNA`"),
        ("a later version", |bytes| bytes[5] = 4, "layout version is 4, this program reads 3"),
        ("an unknown kind", |bytes| bytes[7] = 77, "unexpected kind 77"),
        ("a trailing byte", |bytes| bytes.push(0), "body does not decode"),
        ("a byte too few", |bytes| bytes.truncate(bytes.len() - 1), "body does not decode"),
    ];
    let honest = Tournament::play(Drawn::Publicly, 4);
    let place = honest.match_at(2, 1);
    for (name, change, says) in cases {
        let log = honest.write_raw(&|index, entry| {
            let mut bytes = entry.encode();
            if index == place {
                change(&mut bytes);
            }
            bytes
        });
        assert_fails(name, &log.audit(), &["entries"], says);
    }
}

#[test]
fn transcripts_are_those_that_the_entries_bind() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "the entry tells another outcome",
                change: |log| {
                    let place = log.match_at(1, 0);
                    entry_of(&mut log.records[place]).outcome = Outcome::Deal { price: Price(1) };
                },
                step: "transcripts",
                says: "the transcript's outcome: found",
            },
            Case {
                name: "another transcript lies beside the entry",
                change: |log| {
                    let (place, other) = (log.match_at(1, 0), log.match_at(1, 1));
                    log.records[place].attachment = log.records[other].attachment.clone();
                },
                step: "transcripts",
                says: "the hash of the transcript: found",
            },
            Case {
                name: "a transcript of another tournament",
                change: |log| {
                    let place = log.match_at(1, 0);
                    let id = log.id;
                    log.forge(place, |transcript| transcript.tournament = TournamentId([9; 32]));
                    entry_of(&mut log.records[place]).tournament = id;
                },
                step: "transcripts",
                says: "the transcript's tournament: found 0909",
            },
            Case {
                name: "something lies beside the close",
                change: |log| {
                    let place = log.close_at();
                    log.records[place].attachment = b"smuggled".to_vec();
                },
                step: "transcripts",
                says: "the attachment: found 8 bytes, expected none",
            },
        ],
    );
}

#[test]
fn what_is_drawn_follows_from_the_draws() {
    check(
        Drawn::InCommon,
        &[
            Case {
                name: "a larger budget",
                change: |log| {
                    let place = log.match_at(1, 0);
                    log.forge(place, |transcript| transcript.record.budget.0 += 1);
                },
                step: "scenarios",
                says: "the buyer's budget: found",
            },
            Case {
                name: "another seed",
                change: |log| {
                    let place = log.match_at(1, 1);
                    log.forge(place, |transcript| transcript.record.seeds[0] ^= 1);
                },
                step: "scenarios",
                says: "the seats' seeds: found",
            },
            Case {
                name: "a constant nonce",
                change: |log| {
                    let place = log.match_at(1, 1);
                    log.forge(place, |transcript| transcript.nonce = [0; 32]);
                },
                step: "scenarios",
                says: "the transcript's nonce: found 0000",
            },
        ],
    );
}

#[test]
fn every_move_is_judged_again() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "a better price",
                change: |log| {
                    let place = log.find(|record| record.outcome.deal_price().is_some());
                    log.forge(place, |transcript| {
                        let price = transcript.record.outcome.deal_price().expect("a deal");
                        transcript.record.outcome = Outcome::Deal { price: Price(price.0 + 1) };
                    });
                },
                step: "rules",
                says: "the turns lead to a deal at",
            },
            Case {
                name: "an offer beyond the reserve is delivered",
                change: |log| {
                    let place = log.find(|record| record.turns.len() > 2);
                    log.forge(place, |transcript| {
                        let turn = transcript.record.turns.first_mut().expect("a turn");
                        let beyond = match turn.by {
                            Role::Buyer => Price(u32::MAX),
                            Role::Seller => Price(0),
                        };
                        turn.action = Move::Offer(beyond);
                    });
                },
                step: "rules",
                says: "is recorded as delivered, by the rules it is refused",
            },
            Case {
                name: "turns in another order",
                change: |log| {
                    let place = log.find(|record| record.turns.len() > 2);
                    log.forge(place, |transcript| transcript.record.turns.swap(0, 1));
                },
                step: "rules",
                says: "not your turn",
            },
        ],
    );
}

#[test]
fn every_seat_stayed_within_its_limits() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "more fuel than a turn has",
                change: |log| {
                    let place = log.match_at(1, 0);
                    log.forge(place, |transcript| {
                        transcript.record.usage[0].fuel_per_act[0] = 20_000_001;
                    });
                },
                step: "usage",
                says: "the fuel of a turn of the buyer",
            },
            Case {
                name: "a turn without its fuel",
                change: |log| {
                    let place = log.match_at(1, 0);
                    log.forge(place, |transcript| {
                        transcript.record.usage[1].fuel_per_act.pop();
                    });
                },
                step: "usage",
                says: "the fuel figures of the seller",
            },
            Case {
                name: "more notes than are kept",
                change: |log| {
                    let place = log.match_at(1, 0);
                    log.forge(place, |transcript| {
                        transcript.record.usage[0].trace.push("x".repeat(16_385));
                    });
                },
                step: "usage",
                says: "the bytes of notes of the buyer",
            },
            Case {
                name: "a model that was not granted",
                change: |log| {
                    let place = log.match_at(1, 0);
                    log.forge(place, |transcript| {
                        transcript.record.usage[0].model_calls.push(ModelCall {
                            act_index: 0,
                            model: "oracle".to_owned(),
                            request_sha256: [0; 32],
                            sampling: Sampling::GREEDY,
                            is_grammar_bound: false,
                            text: String::new(),
                            finish_reason: 0,
                            input_tokens: 1,
                            output_tokens: 1,
                            weight_milli: None,
                            tokens: None,
                        });
                    });
                },
                step: "usage",
                says: "the model of the buyer `alpha`: found `oracle`, expected one of []",
            },
        ],
    );
}

#[test]
fn a_fault_costs_the_figures_of_its_turn() {
    let tournament = Tournament::play(Drawn::Publicly, 4);
    let is_trap = |outcome| matches!(outcome, Outcome::Faulted { fault: Fault::Trap, .. });
    let place = tournament.find(|record| is_trap(record.outcome));
    let mut forged = tournament.clone();
    forged.forge(place, |transcript| {
        let Outcome::Faulted { by, .. } = transcript.record.outcome else {
            panic!("a fault");
        };
        transcript.record.usage[by.index()].fuel_per_act.push(1);
    });
    assert_fails("fuel of a trap", &forged.write().audit(), &["usage"], "the fuel figures");
}

#[test]
fn secret_and_contributions_are_those_announced() {
    check(
        Drawn::InCommon,
        &[
            Case {
                name: "another secret is revealed",
                change: |log| {
                    let last = log.records.last_mut().expect("the reveal");
                    let Entry::Reveal(reveal) = &mut last.entry else { panic!("the reveal") };
                    reveal.secret = Some([1; 32]);
                },
                step: "draws",
                says: "the commitment of the revealed secret: found",
            },
            Case {
                name: "no secret is revealed",
                change: |log| {
                    let last = log.records.last_mut().expect("the reveal");
                    let Entry::Reveal(reveal) = &mut last.entry else { panic!("the reveal") };
                    reveal.secret = None;
                },
                step: "draws",
                says: "the commitment of the revealed secret: found no secret",
            },
            Case {
                name: "another contribution is opened",
                change: |log| {
                    let Entry::Draw(draw) = &mut log.records[1].entry else { panic!("the draw") };
                    draw.contributions[1] = Some([7; 32]);
                },
                step: "draws",
                says: "entry 1: the commitment of contribution 1: found",
            },
        ],
    );
}

#[test]
fn the_beacons_value_is_that_of_the_announced_round() {
    check(
        Drawn::InCommon,
        &[
            Case {
                name: "another round of the beacon",
                change: |log| {
                    let Entry::Draw(draw) = &mut log.records[1].entry else { panic!("the draw") };
                    draw.beacon.as_mut().expect("a beacon").round = 124;
                },
                step: "draws",
                says: "the beacon's round: found 124, expected 123",
            },
            Case {
                name: "an invented value of the beacon",
                change: |log| {
                    let Entry::Draw(draw) = &mut log.records[1].entry else { panic!("the draw") };
                    draw.beacon = Some(BeaconValue { round: 123, signature: [0x80; 48] });
                },
                step: "draws",
                says: "expected quicknet's signature of round 123",
            },
            Case {
                name: "no value of the beacon",
                change: |log| {
                    let Entry::Draw(draw) = &mut log.records[1].entry else { panic!("the draw") };
                    draw.beacon = None;
                },
                step: "draws",
                says: "the beacon: found none, expected a round",
            },
            Case {
                name: "a chain of one's own",
                change: |log| {
                    let Draws::Committed(committed) = &mut log.announcement.draws else {
                        panic!("committed draws");
                    };
                    committed.beacon.as_mut().expect("a beacon").chain = [1; 32];
                    log.announce();
                },
                step: "draws",
                says: "the beacon's chain: found 0101",
            },
        ],
    );
}

#[test]
fn the_announcement_fits_the_log_and_its_own_file() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "signed by another key than announced",
                change: |log| {
                    log.opening.log_key = [1; 32];
                    log.announce();
                },
                step: "announcement",
                says: "the log's key: found `0101",
            },
            Case {
                name: "another origin",
                change: |log| {
                    log.opening.origin = "arena.example/autumn".to_owned();
                    log.announce();
                },
                step: "announcement",
                says: "the log's origin: found `arena.example/autumn`",
            },
            Case {
                name: "fewer pairs than the file leads to",
                change: |log| {
                    log.announcement.pair_count -= 1;
                    log.announce();
                },
                step: "announcement",
                says: "the number of pairs: found `11`, expected `12`",
            },
            Case {
                name: "an agent that the file does not name",
                change: |log| {
                    let agent = log.announcement.agents[2].clone();
                    log.announcement.agents.push(agent);
                    log.announce_only();
                },
                step: "announcement",
                says: "the number of agents: found 4, expected 3",
            },
            Case {
                name: "an agent of another name",
                change: |log| {
                    log.announcement.agents[1].name = "delta".to_owned();
                    log.announce();
                },
                step: "announcement",
                says: "the name of agent 1: found `delta`, expected `beta`",
            },
        ],
    );
}

#[test]
fn components_are_those_that_their_authors_signed() {
    check(
        Drawn::Publicly,
        &[
            Case {
                name: "the component was swapped",
                change: |log| {
                    log.announcement.agents[0].submission = Some(submission([3; 32], None));
                    log.announce();
                },
                step: "submissions",
                says: "the component of agent `alpha`: found",
            },
            Case {
                name: "the statement was changed after it was signed",
                change: |log| {
                    let stated = log.announcement.agents[0].submission.as_mut().expect("one");
                    *stated = stated.replacen("time 1796000000", "time 1796000001", 1);
                    log.announce();
                },
                step: "submissions",
                says: "the author's signature of agent `alpha`: found the signature",
            },
            Case {
                name: "a contribution that is not in the draws",
                change: |log| {
                    let component = log.announcement.agents[0].component_sha256;
                    let stated = submission(component, Some([4; 32]));
                    log.announcement.agents[0].submission = Some(stated);
                    log.announce();
                },
                step: "submissions",
                says: "the contribution to the draws of agent `alpha`: found none",
            },
            Case {
                name: "a component is not published",
                change: |log| drop(log.blobs.remove(1)),
                step: "components",
                says: "the component of agent `beta`: found none, expected one",
            },
            Case {
                name: "the catalog is not published",
                change: |log| drop(log.blobs.pop()),
                step: "catalog",
                says: "the catalog: found none, expected one",
            },
        ],
    );
}

#[test]
fn a_contribution_of_nobody_is_found() {
    // Who knows its value can open it or leave it out once the round is known.
    let mut tournament = Tournament::play(Drawn::InCommon, 1);
    tournament.announcement.agents[1].submission = None;
    let file = &mut tournament.announcement.config_toml;
    let beta = file.find("\"beta\"").expect("an agent");
    let (head, tail) = file.split_at(beta);
    *file = format!("{head}{}", tail.replacen("submission = \"its.note\"\n", "", 1));
    tournament.announce();
    let says = "an announced contribution: found";
    assert_fails("nobody's", &tournament.write().audit(), &["draws"], says);
}

#[test]
fn items_are_those_that_the_draws_give() {
    let mut tournament = Tournament::play(Drawn::InCommon, 4);
    tournament.catalog.entries[2].cost.0 += 1;
    tournament.announcement.catalog_sha256 = tournament.catalog.sha256();
    *tournament.blobs.last_mut().expect("the catalog") = tournament.catalog.encode();
    tournament.announce();
    let says = "the announced hash of the catalog: found";
    assert_fails("a chosen item", &tournament.write().audit(), &["catalog"], says);
}
