//! Bytes that nobody wrote honestly: whatever they are, the audit ends with a verdict.

use std::fs;

use arena_audit::compare::compare;
use arena_core::catalog::{Budget, Catalog, CatalogEntry};
use arena_core::entry::Entry;
use arena_core::seed::{Root, Stream};
use arena_core::transcript::Transcript;
use arena_log::checkpoint::Head;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::tile;
use sha2::{Digest, Sha256};

use crate::honest::{Drawn, ORIGIN, Tournament, shown};

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

/// Signs a head with the log's own key.
fn sign(tournament: &Tournament, size: u64) -> Vec<u8> {
    let key = SigningKey::from_seed(tournament.key_seed);
    let head = Head { origin: ORIGIN.to_owned(), size, root: Hash([7; 32]) };
    head.sign(&key).expect("an origin").into_bytes()
}

#[test]
fn a_head_that_claims_more_entries_than_there_can_be_ends_the_audit_at_once() {
    let tournament = Tournament::play(Drawn::Publicly, 1);
    for size in [1 << 40, 1 << 63, u64::MAX] {
        let log = tournament.write();
        log.put("checkpoint", &sign(&tournament, size));
        // Only the first and the last bundle are there.
        let bundle = |width: u64| -> Vec<u8> {
            let entries = (0..width).map(|at| &tournament.records[at.min(5) as usize].entry);
            let bytes = entries.map(Entry::encode);
            bytes
                .flat_map(|entry| [&(entry.len() as u16).to_be_bytes(), &entry[..]].concat())
                .collect()
        };
        let last = (size - 1) / 256;
        for (number, width) in [(0, 256), (last, size - last * 256)] {
            log.put(&tile::entry_bundle(number, width), &bundle(width));
            let nothing = vec![0; 4 * width as usize];
            log.put(&tile::attachment_bundle(number, width), &nothing);
        }
        let shown = shown(&log.audit());
        assert!(shown.contains("tree failed"), "{size}: {shown}");
    }
}

#[test]
fn tables_that_are_longer_than_any_are_not_read_whole() {
    let log = Tournament::play(Drawn::Publicly, 1).write();
    let file = fs::File::options().write(true).open(log.file("results.json")).expect("tables");
    file.set_len(1 << 40).expect("a file with a hole");
    let shown = shown(&log.audit());
    assert!(
        shown.contains("results failed: `results.json`: the bytes: found 1099511627776"),
        "{shown}"
    );
}

#[test]
fn a_crowd_of_cosigned_heads_is_refused_before_it_is_read() {
    let log = Tournament::play(Drawn::Publicly, 1).write();
    let head = log.get("checkpoint");
    for number in 0..256 {
        log.put(&format!("witness/{number}"), &head);
    }
    assert!(log.audit().is_verified_without(&["re-execution"]));
    log.put("witness/one-more", &head);
    let shown = shown(&log.audit());
    assert!(shown.contains("files failed: `witness`: the names in the folder"), "{shown}");
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
