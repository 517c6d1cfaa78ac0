//! Single matches: receipts without the log, and matches played again.

use arena_audit::compare::compare;
use arena_audit::receipt::{receipt, transcript};
use arena_core::entry::Entry;
use arena_core::transcript::Transcript;
use arena_log::reader::{Access, LogReader};
use arena_log::receipt::Receipt;

use crate::honest::{Drawn, Log, Tournament};

fn receipt_of(log: &Log, index: u64, extra: Option<Vec<u8>>) -> Vec<u8> {
    let mut reader = LogReader::open(log.path(), Access::Public).expect("a log");
    let proof = reader.inclusion_proof(index).expect("an entry");
    let checkpoint = String::from_utf8(log.get("checkpoint")).expect("text");
    Receipt { extra, index, proof, checkpoint }.to_string().into_bytes()
}

#[test]
fn a_receipt_shows_one_match_and_no_other() {
    let tournament = Tournament::play(Drawn::Publicly, 4);
    let log = tournament.write();
    let policy = log.policy();
    let place = tournament.match_at(3, 1);
    let entry = tournament.records[place].entry.encode();
    let bytes = receipt_of(&log, place as u64, None);
    let shown = receipt(&bytes, Some(&entry), &policy).expect("the match is in the log");
    assert_eq!((shown.index, shown.opened.head.size), (place as u64, 28));
    assert_eq!(shown.entry, tournament.records[place].entry);

    let inside = receipt_of(&log, place as u64, Some(entry.clone()));
    assert!(receipt(&inside, None, &policy).is_ok());
    let other = tournament.records[place + 1].entry.encode();
    let error = receipt(&bytes, Some(&other), &policy).expect_err("another match");
    assert!(error.to_string().contains("the receipt: found"), "{error}");
    let error = receipt(&bytes, None, &policy).expect_err("no match");
    assert!(error.to_string().contains("the entry: found none"), "{error}");

    let Entry::Match(bound) = &shown.entry else { panic!("a match") };
    assert!(transcript(bound, &tournament.records[place].attachment).is_ok());
    let error = transcript(bound, &tournament.records[place - 1].attachment);
    let error = error.expect_err("another transcript");
    assert!(error.to_string().contains("the hash of the transcript"), "{error}");
}

#[test]
fn a_match_played_again_differs_where_it_was_changed() {
    let tournament = Tournament::play(Drawn::Publicly, 4);
    let place = tournament.find(|record| record.turns.len() > 3);
    let recorded = Transcript::decode(&tournament.records[place].attachment).expect("a match");
    let recorded = recorded.record;
    assert_eq!(compare(&recorded, &recorded), []);
    let mut again = recorded.clone();
    again.turns[2].talk.push('!');
    again.usage[1].fuel_per_act[0] += 1;
    let differences: Vec<String> =
        compare(&recorded, &again).iter().map(ToString::to_string).collect();
    assert_eq!(differences.len(), 2, "{differences:?}");
    assert!(differences[0].starts_with("turn 3: talk is recorded as \""), "{differences:?}");
    let fuel = "seller.fuel_per_act[0] is recorded as 1001, now 1002";
    assert_eq!(differences[1], fuel);
    again.turns.truncate(1);
    assert!(compare(&recorded, &again).iter().any(|found| found.field == "turns.length"));
}
