//! The log against others that keep the same bytes as safe from a crash.
//!
//! All take the same encoded matches and make them durable after as many. What they keep them
//! safe from differs: only the log notices a change, and can prove what it holds.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use arena_core::transcript::Transcript;
use criterion::{Criterion, SamplingMode};
use rusqlite::Connection;

use crate::fixture::Tournament;
use crate::log::{self, CHECKPOINT_EVERY, Encoded, GROUP_RECORDS, MATCHES};

/// Measures the log and its peers, one after the other.
pub fn peers(criterion: &mut Criterion) {
    let records = Tournament::new(CHECKPOINT_EVERY).records(u64::from(MATCHES) / 2);
    let transcripts: Vec<Transcript> = records.into_iter().map(log::transcript).collect();
    let encoded: Vec<Encoded> = transcripts.iter().map(Encoded::of).collect();
    let mut group = criterion.benchmark_group("peers");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.bench_function("arena-log", |bencher| {
        log::per_match(bencher, || log::append(&encoded, CHECKPOINT_EVERY).0);
    });
    group.bench_function("sqlite", |bencher| log::per_match(bencher, || sqlite(&encoded)));
    group.bench_function("plain-file", |bencher| log::per_match(bencher, || plain(&encoded)));
    group.finish();
}

/// A table in a database with a write-ahead log; each commit waits for the disk.
fn sqlite(encoded: &[Encoded]) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let mut connection = Connection::open(folder.path().join("log.sqlite")).expect("a database");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE record (
                 number INTEGER PRIMARY KEY, entry BLOB NOT NULL, attachment BLOB NOT NULL
             ) STRICT;",
        )
        .expect("sound statements");
    let start = Instant::now();
    for unsaved in encoded.chunks(CHECKPOINT_EVERY as usize) {
        let transaction = connection.transaction().expect("nothing else is under way");
        let insert = "INSERT INTO record (entry, attachment) VALUES (?, ?)";
        let mut insert = transaction.prepare(insert).expect("a sound statement");
        for Encoded { entry, attachment } in unsaved {
            insert.execute((entry, attachment)).expect("the disk works");
        }
        drop(insert);
        transaction.commit().expect("the disk works");
    }
    // What is left of its write-ahead log goes into the table.
    connection.close().expect("the disk works");
    start.elapsed()
}

/// One file without any structure: what the disk alone costs.
fn plain(encoded: &[Encoded]) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let mut file = File::create(folder.path().join("log")).expect("the disk works");
    let start = Instant::now();
    for unsaved in encoded.chunks(CHECKPOINT_EVERY as usize) {
        for group in unsaved.chunks(GROUP_RECORDS) {
            let parts = group.iter().flat_map(|one| [one.entry.as_slice(), &one.attachment]);
            let bytes: Vec<u8> = parts.flatten().copied().collect();
            file.write_all(&bytes).expect("the disk works");
        }
        file.sync_all().expect("the disk works");
    }
    start.elapsed()
}
