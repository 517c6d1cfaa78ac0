//! Whole runs with their log on a real disk, and what they are made of.
//!
//! A run whose heads are far apart shows what signing them costs.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_core::catalog;
use arena_core::entry::Entry;
use arena_core::fault::SeatError;
use arena_core::referee;
use arena_core::scenario::Role;
use arena_core::seat::Seat;
use arena_core::transcript::Transcript;
use arena_log::reader::{Access, LogReader};
use arena_runner::{Job, SeatRequest};
use criterion::{Criterion, Throughput};

use crate::fixture::{ROOT, Tournament, walker};

/// The distance of heads where a file says nothing, and one beyond the end of the log.
const CHECKPOINT_EVERY: [u32; 2] = [4_096, 1 << 20];

/// Whole runs, on one worker and on two.
pub fn runs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("run");
    group.sample_size(10);
    for every in CHECKPOINT_EVERY {
        let tournament = Tournament::new(every);
        group.throughput(Throughput::Elements(tournament.schedule.match_count()));
        for workers in [1, 2] {
            let name = format!("{workers}-workers-20-turns-head-every-{every}");
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|times| (0..times).map(|_| play(&tournament, workers).0).sum());
            });
        }
    }
    group.finish();
}

/// What a run, or whoever reads its log, does again and again.
pub fn pieces(criterion: &mut Criterion) {
    let tournament = Tournament::new(CHECKPOINT_EVERY[0]);
    let (_, folder) = play(&tournament, 1);
    let mut group = criterion.benchmark_group("pieces");
    group.throughput(Throughput::Elements(tournament.schedule.match_count()));
    group.sample_size(20);
    group.bench_function("read", |bencher| {
        bencher.iter(|| read(&folder, |entry, bytes| _ = black_box((entry, bytes))));
    });
    group.bench_function("read-and-decode", |bencher| {
        bencher.iter(|| {
            read(&folder, |entry, bytes| {
                _ = black_box((Entry::decode(entry), Transcript::decode(bytes)));
            })
        });
    });
    group.bench_function("find-finished", |bencher| {
        bencher.iter(|| run(&tournament, folder.path(), 1));
    });
    group.finish();
    let mut transcript: Option<Transcript> = None;
    read(&folder, |_, bytes| transcript = transcript.take().or(Transcript::decode(bytes).ok()));
    let transcript = transcript.expect("matches were played");
    let scenario = catalog::draw_scenario(&tournament.config, &tournament.catalog, ROOT, 0, 0);
    criterion.bench_function("play-one-match", |bencher| {
        bencher.iter(|| {
            let mut seats = Role::BOTH.map(walker);
            let [buyer, seller] = &mut seats;
            referee::play(&tournament.rules, &scenario, ["", ""], [1, 2], [buyer, seller])
        });
    });
    criterion.bench_function("encode-and-bind-one-match", |bencher| {
        bencher.iter(|| {
            let Transcript { tournament, record, .. } = transcript.clone();
            let transcript = Transcript::new(tournament, ROOT, record);
            let bytes = transcript.encode();
            Entry::Match(transcript.entry(&bytes)).encode()
        });
    });
}

fn read(folder: &tempfile::TempDir, mut each: impl FnMut(&[u8], &[u8])) {
    let reader = LogReader::open(folder.path(), Access::Owner);
    let mut reader = reader.expect("the log is there");
    while let Some(record) = reader.next_record().expect("the log is whole") {
        each(record.entry, record.attachment.expect("it is published"));
    }
}

/// Plays everything into a new folder and returns how long that took.
fn play(tournament: &Tournament, workers: usize) -> (Duration, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    (run(tournament, folder.path(), workers), folder)
}

fn run(tournament: &Tournament, out_dir: &Path, workers: usize) -> Duration {
    let job = Job {
        announcement: &tournament.announcement,
        opening: &tournament.opening,
        draw: None,
        secret: None,
        key: &tournament.key,
        blobs: &[],
        rules: &tournament.rules,
        schedule: &tournament.schedule,
        catalog: &tournament.catalog,
        config: &tournament.config,
        out_dir,
        workers: NonZeroUsize::new(workers).expect("at least one worker"),
        seats: &seat,
    };
    let start = Instant::now();
    arena_runner::run(&job, &AtomicBool::new(false), &mut |_| {}).expect("the disk works");
    start.elapsed()
}

fn seat(request: SeatRequest) -> Result<Box<dyn Seat>, SeatError> {
    Ok(Box::new(walker(request.role)))
}
