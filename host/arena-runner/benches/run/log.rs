//! What the signed log costs for a match: the whole, and part by part.
//!
//! One iteration is one match. `whole` is all that happens between a finished match and a signed
//! head over it; the parts that follow add up to it, each measured by itself.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use arena_core::entry::{Entry, TournamentId};
use arena_core::record::MatchRecord;
use arena_core::transcript::{self, Transcript};
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::tree::Frontier;
use arena_log::writer::{LogSettings, LogWriter, Record};
use criterion::{Bencher, Criterion, SamplingMode};

use crate::fixture::{ORIGIN, ROOT, Tournament};

/// A head is signed after so many entries, where a tournament's file says nothing.
pub const CHECKPOINT_EVERY: u32 = 4_096;
/// A distance of heads beyond the end of any log here.
const NEVER: u32 = 1 << 20;
/// Heads of a log here.
const HEADS: u32 = 4;
/// Matches of a log here.
pub const MATCHES: u32 = HEADS * CHECKPOINT_EVERY;
/// Records that are appended together: what a worker hands over at once.
pub const GROUP_RECORDS: usize = 32;

/// Measures the whole and the parts.
pub fn parts(criterion: &mut Criterion) {
    let records = Tournament::new(CHECKPOINT_EVERY).records(u64::from(MATCHES) / 2);
    let transcripts: Vec<Transcript> = records.iter().cloned().map(transcript).collect();
    let encoded: Vec<Encoded> = transcripts.iter().map(Encoded::of).collect();
    let mut group = criterion.benchmark_group("log");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.bench_function("whole", |bencher| per_match(bencher, || whole(&records)));
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
        per_match(bencher, || append(&encoded, NEVER).0);
    });
    group.bench_function("seal", |bencher| per_match(bencher, || seal(&encoded)));
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

fn whole(records: &[MatchRecord]) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = start(folder.path(), CHECKPOINT_EVERY);
    // Copied before the clock starts.
    let records = records.to_vec();
    let mut records = records.into_iter();
    let start = Instant::now();
    loop {
        let group = records.by_ref().take(GROUP_RECORDS).map(transcript);
        let group: Vec<Encoded> = group.map(|transcript| Encoded::of(&transcript)).collect();
        if group.is_empty() {
            break;
        }
        append_group(&mut writer, &group);
    }
    let elapsed = start.elapsed();
    assert_eq!(writer.signed().map(|head| head.size), Some(u64::from(MATCHES)), "all is signed");
    elapsed
}

/// Appends everything, with a head after each `checkpoint_every`.
pub fn append(encoded: &[Encoded], checkpoint_every: u32) -> (Duration, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = start(folder.path(), checkpoint_every);
    let start = Instant::now();
    encoded.chunks(GROUP_RECORDS).for_each(|group| append_group(&mut writer, group));
    (start.elapsed(), folder)
}

/// Measures only the heads: bundles, tiles, reading them back, signature, every sync.
fn seal(encoded: &[Encoded]) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = start(folder.path(), NEVER);
    let heads = encoded.chunks(CHECKPOINT_EVERY as usize).map(|unsigned| {
        unsigned.chunks(GROUP_RECORDS).for_each(|group| append_group(&mut writer, group));
        let start = Instant::now();
        writer.checkpoint().expect("the disk works");
        start.elapsed()
    });
    heads.sum()
}

fn start(folder: &Path, checkpoint_every: u32) -> LogWriter {
    let key = SigningKey::from_seed([1; 32]);
    let checkpoint_every = u64::from(checkpoint_every);
    let settings = LogSettings { origin: ORIGIN.to_owned(), key, checkpoint_every };
    LogWriter::create(folder, settings).expect("the disk works")
}

fn append_group(writer: &mut LogWriter, group: &[Encoded]) {
    let records: Vec<Record<'_>> = group.iter().map(Encoded::as_record).collect();
    writer.append_all(&records).expect("the disk works");
}
