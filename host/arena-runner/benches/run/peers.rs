//! The log against others that keep the same bytes as safe from a crash.
//!
//! All take the same encoded matches and make them durable after as many. What they keep them
//! safe from differs: only the log notices a change, and can prove what it holds.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use arena_core::transcript::Transcript;
use criterion::Criterion;
use rusqlite::Connection;

use crate::fixture::Tournament;
use crate::log::{self, CHECKPOINT_EVERY, Encoded, GROUP_RECORDS, Log, MATCHES};

/// Measures the log and its peers, one after the other.
pub fn peers(criterion: &mut Criterion) {
    let records = Tournament::new(CHECKPOINT_EVERY).records(u64::from(MATCHES) / 2);
    let transcripts: Vec<Transcript> = records.into_iter().map(log::transcript).collect();
    let encoded: Vec<Encoded> = transcripts.iter().map(Encoded::of).collect();
    let mut group = log::disk_group(criterion, "peers");
    let mut log = Log::new(CHECKPOINT_EVERY);
    group.bench_function("arena-log", |bencher| log::per_match(bencher, || log.append(&encoded)));
    let folder = tempfile::tempdir().expect("a folder");
    let mut connection = database(&folder.path().join("log.sqlite"));
    group.bench_function("sqlite", |bencher| {
        log::per_match(bencher, || insert(&mut connection, &encoded));
    });
    let mut file = File::create(folder.path().join("log")).expect("the disk works");
    group.bench_function("plain-file", |bencher| {
        log::per_match(bencher, || write(&mut file, &encoded));
    });
    group.finish();
}

/// A table in a database with a write-ahead log; each commit waits for the disk.
fn database(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a database");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE record (
                 number INTEGER PRIMARY KEY, entry BLOB NOT NULL, attachment BLOB NOT NULL
             ) STRICT;",
        )
        .expect("sound statements");
    connection
}

fn insert(connection: &mut Connection, encoded: &[Encoded]) -> Duration {
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
    start.elapsed()
}

/// Writes to a file without any structure: what the disk alone costs.
fn write(file: &mut File, encoded: &[Encoded]) -> Duration {
    let start = Instant::now();
    for unsaved in encoded.chunks(CHECKPOINT_EVERY as usize) {
        for group in unsaved.chunks(GROUP_RECORDS) {
            let parts = group.iter().flat_map(|one| [one.entry.as_slice(), &one.attachment]);
            let parts: Vec<&[u8]> = parts.collect();
            file.write_all(&parts.concat()).expect("the disk works");
        }
        file.sync_all().expect("the disk works");
    }
    start.elapsed()
}
