//! What the signed log costs for a match: the whole, and part by part.
//!
//! One iteration is one match. `whole` is all that happens between a finished match and a signed
//! head over it; the parts that follow are measured each by itself.

use std::hint::black_box;
use std::time::{Duration, Instant};

use arena_core::entry::{Entry, TournamentId};
use arena_core::record::MatchRecord;
use arena_core::transcript::{self, Transcript};
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::tree::Frontier;
use arena_log::writer::{LogSettings, LogWriter, Record};
use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkGroup, Criterion, SamplingMode};

use crate::fixture::{ORIGIN, ROOT, Tournament};

/// A head is signed after so many entries, where a tournament's file says nothing.
pub const CHECKPOINT_EVERY: u32 = 4_096;
/// A distance of heads beyond the end of any log here.
const NEVER: u32 = 1 << 31;
/// Matches that are measured together: those of four heads.
pub const MATCHES: u32 = 4 * CHECKPOINT_EVERY;
/// Records that are appended together: what a worker hands over at once.
pub const GROUP_RECORDS: usize = 32;

/// Measures the whole and the parts.
pub fn parts(criterion: &mut Criterion) {
    let records = Tournament::new(CHECKPOINT_EVERY).records(u64::from(MATCHES) / 2);
    let transcripts: Vec<Transcript> = records.iter().cloned().map(transcript).collect();
    let encoded: Vec<Encoded> = transcripts.iter().map(Encoded::of).collect();
    let (mut log, mut unsigned, mut sealed) =
        (Log::new(CHECKPOINT_EVERY), Log::new(NEVER), Log::new(NEVER));
    let mut group = disk_group(criterion, "log");
    group.bench_function("whole", |bencher| per_match(bencher, || whole(&mut log, &records)));
    group.bench_function("draw-nonce", |bencher| {
        each(bencher, &records, |record| {
            black_box(transcript::nonce(ROOT, record.pair_index, record.leg));
        });
    });
    group.bench_function("encode-transcript", |bencher| {
        each(bencher, &transcripts, |transcript| _ = black_box(transcript.encode()));
    });
    group.bench_function("hash-transcript-and-encode-entry", |bencher| {
        let pairs: Vec<_> = transcripts.iter().zip(&encoded).collect();
        each(bencher, &pairs, |(transcript, encoded)| {
            black_box(Entry::Match(transcript.entry(&encoded.attachment)).encode());
        });
    });
    group.bench_function("hash-entry-and-grow-tree", |bencher| {
        let mut tree = Frontier::new();
        each(bencher, &encoded, |encoded| tree.append(Hash::leaf(&encoded.entry)));
        black_box(tree.root());
    });
    group.bench_function("append-to-journal", |bencher| {
        per_match(bencher, || unsigned.append(&encoded));
    });
    group.bench_function("seal", |bencher| per_match(bencher, || seal(&mut sealed, &encoded)));
    group.finish();
}

/// An entry and what lies beside it.
pub struct Encoded {
    pub entry: Vec<u8>,
    pub attachment: Vec<u8>,
}

impl Encoded {
    /// Encodes a match as a worker does.
    pub fn of(transcript: &Transcript) -> Encoded {
        let attachment = transcript.encode();
        let entry = Entry::Match(transcript.entry(&attachment)).encode();
        Encoded { entry, attachment }
    }

    fn as_record(&self) -> Record<'_> {
        Record { entry: &self.entry, attachment: &self.attachment }
    }
}

/// Gives a record its nonce.
pub fn transcript(record: MatchRecord) -> Transcript {
    Transcript::new(TournamentId([7; 32]), ROOT, record)
}

/// Measures something that is done with [`MATCHES`] matches.
pub fn per_match(bencher: &mut Bencher<'_>, mut run: impl FnMut() -> Duration) {
    bencher.iter_custom(|times| (0..times).map(|_| run()).sum::<Duration>() / MATCHES);
}

fn each<T>(bencher: &mut Bencher<'_>, matches: &[T], mut act: impl FnMut(&T)) {
    assert_eq!(matches.len(), MATCHES as usize, "one iteration is one match");
    per_match(bencher, || {
        let start = Instant::now();
        matches.iter().for_each(&mut act);
        start.elapsed()
    });
}

/// Begins a group of benchmarks that wait for the disk.
pub fn disk_group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    group
}

/// A log that grows as long as it is measured. Making and removing folders all the time would
/// measure how a file system looks for names that were not just deleted.
pub struct Log {
    writer: LogWriter,
    _folder: tempfile::TempDir,
}

impl Log {
    /// Starts an empty log that has a head after each `checkpoint_every` entries.
    pub fn new(checkpoint_every: u32) -> Log {
        let folder = tempfile::tempdir().expect("a folder");
        let key = SigningKey::from_seed([1; 32]);
        let checkpoint_every = u64::from(checkpoint_every);
        let settings = LogSettings { origin: ORIGIN.to_owned(), key, checkpoint_every };
        let writer = LogWriter::create(folder.path(), settings).expect("the disk works");
        Log { writer, _folder: folder }
    }

    /// Appends everything, group by group, and returns how long that took.
    pub fn append(&mut self, encoded: &[Encoded]) -> Duration {
        let start = Instant::now();
        encoded.chunks(GROUP_RECORDS).for_each(|group| self.append_group(group));
        start.elapsed()
    }

    fn append_group(&mut self, group: &[Encoded]) {
        let records: Vec<Record<'_>> = group.iter().map(Encoded::as_record).collect();
        self.writer.append_all(&records).expect("the disk works");
    }
}

fn whole(log: &mut Log, records: &[MatchRecord]) -> Duration {
    let records: Vec<MatchRecord> = records.to_vec();
    let mut records = records.into_iter();
    let start = Instant::now();
    // Ends with the records.
    loop {
        let group = records.by_ref().take(GROUP_RECORDS).map(transcript);
        let group: Vec<Encoded> = group.map(|transcript| Encoded::of(&transcript)).collect();
        if group.is_empty() {
            break;
        }
        log.append_group(&group);
    }
    let elapsed = start.elapsed();
    let signed = log.writer.signed().map(|head| head.size);
    assert_eq!(signed, Some(log.writer.size()), "everything is signed");
    elapsed
}

/// Measures only the heads: bundles, tiles, reading them back, signature, every sync.
fn seal(log: &mut Log, encoded: &[Encoded]) -> Duration {
    let heads = encoded.chunks(CHECKPOINT_EVERY as usize).map(|unsigned| {
        log.append(unsigned);
        let start = Instant::now();
        log.writer.checkpoint().expect("the disk works");
        start.elapsed()
    });
    heads.sum()
}
