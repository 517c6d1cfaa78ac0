//! Bytes that nobody wrote honestly: whatever they are, the audit ends with a verdict.

use std::fs;

use arena_audit::compare::compare;
use arena_core::catalog::{Budget, Catalog, CatalogEntry};
use arena_core::entry::Entry;
use arena_core::seed::{Root, Stream};
use arena_core::transcript::Transcript;
use sha2::{Digest, Sha256};

use crate::honest::{Drawn, Tournament, shown};

/// Logs that are changed at random and audited.
const ROUNDS: u64 = 60;

fn place(stream: &mut Stream, length: usize) -> usize {
    usize::try_from(stream.below(length as u64)).expect("below a length")
}

/// Changes a transcript's bytes at random.
fn change(stream: &mut Stream, bytes: &mut Vec<u8>) {
    for _ in 0..=stream.below(3) {
        let at = place(stream, bytes.len());
        bytes[at] ^= 1 << stream.below(8);
    }
    if stream.below(8) == 0 {
        bytes.truncate(place(stream, bytes.len()));
    }
}

#[test]
fn of_a_forged_transcript_only_words_are_left_to_be_found_by_playing_again() {
    let honest = Tournament::play_among(&["alpha", "beta"], Drawn::Publicly, 1);
    let mut unnoticed = 0;
    for round in 0..ROUNDS {
        let mut stream = Stream::derive(Root::Seed(round), "hostile", &[]);
        let mut tournament = honest.clone();
        let at = 1 + place(&mut stream, 2);
        let recorded = &mut tournament.records[at];
        change(&mut stream, &mut recorded.attachment);
        let Entry::Match(entry) = &mut recorded.entry else { panic!("two matches") };
        entry.transcript_sha256 = Sha256::digest(&recorded.attachment).into();
        let audit = tournament.write().audit();
        if audit.steps.iter().any(|step| step.verdict.is_failed()) {
            continue;
        }
        let read = |log: &Tournament| Transcript::decode(&log.records[at].attachment);
        let (forged, played) = (read(&tournament), read(&honest));
        let (forged, played) = (forged.expect("verified"), played.expect("honest"));
        for difference in compare(&played.record, &forged.record) {
            let is_words = difference.field == "talk" || difference.field.contains(".trace[");
            assert!(is_words, "round {round}: {difference}");
            unnoticed += 1;
        }
    }
    assert!(unnoticed > 0, "some forgeries are of words");
}

#[test]
fn files_of_any_bytes_end_in_a_verdict() {
    let log = Tournament::play(Drawn::InCommon, 2).write();
    let files = ["checkpoint", "log.vkey", "results.json", "checkpoints/1", "checkpoints/2"];
    let tiles = ["tile/0/000.p/16", "tile/entries/000.p/16", "attachment/000.p/16"];
    for (number, path) in (0..).zip(files.into_iter().chain(tiles)) {
        let honest = log.get(path);
        for round in 0..12 {
            let mut stream = Stream::derive(Root::Seed(round), "bytes", &[number]);
            let mut bytes = honest.clone();
            match stream.below(4) {
                0 => bytes.truncate(place(&mut stream, honest.len())),
                1 => bytes.extend(vec![0xff; 1 + place(&mut stream, 100_000)]),
                2 => bytes = (0..honest.len()).map(|_| stream.bits() as u8).collect(),
                _ => bytes.rotate_left(1 + place(&mut stream, honest.len() - 1)),
            }
            log.put(path, &bytes);
            let audit = log.audit();
            let failed = audit.steps.iter().any(|step| step.verdict.is_failed());
            assert!(failed || bytes == honest, "{path}, round {round}:\n{}", shown(&audit));
        }
        fs::remove_file(log.file(path)).expect(path);
        let audit = log.audit();
        // The key beside the log is a convenience, and tables need not be published.
        let is_needed = !["log.vkey", "results.json"].contains(&path);
        let failed = audit.steps.iter().any(|step| step.verdict.is_failed());
        assert_eq!(failed, is_needed, "{path} is gone:\n{}", shown(&audit));
        log.put(path, &honest);
    }
    assert!(log.audit().is_verified_without(&["re-execution"]));
}

#[test]
fn a_catalog_that_no_generator_gives_is_not_drawn_from() {
    let mut tournament = Tournament::play(Drawn::Publicly, 2);
    let entry = tournament.catalog.entries[0].clone();
    let open = CatalogEntry { budget: Budget::Factor, ..entry };
    let catalog = Catalog { name: "uniform".to_owned(), entries: vec![open.clone(), open] };
    tournament.announcement.catalog_sha256 = catalog.sha256();
    *tournament.blobs.last_mut().expect("the catalog") = catalog.encode();
    tournament.announce();
    let shown = shown(&tournament.write().audit());
    assert!(shown.contains("catalog failed: entry 0: the announced hash"), "{shown}");
    assert!(shown.contains("scenarios not checked: the root of the draws or the items"), "{shown}");
}
