//! What a match costs besides its agents: schedule, referee, encoding, order and log.
//!
//! Native seats play twenty turns without thinking, and the log is a real folder. A run whose
//! heads are far apart shows what signing them costs.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_core::announcement::{AgentEntry, Announcement};
use arena_core::catalog::{self, Catalog, uniform};
use arena_core::config::TournamentConfig;
use arena_core::draws::Draws;
use arena_core::entry::{AnnouncementEntry, Entry};
use arena_core::fault::SeatError;
use arena_core::price::Price;
use arena_core::referee;
use arena_core::rules::Rules;
use arena_core::scenario::{Brief, Role};
use arena_core::schedule::Schedule;
use arena_core::seat::{Seat, Usage};
use arena_core::seed::Root;
use arena_core::transcript::Transcript;
use arena_core::turn::{End, Event, Move, Reply};
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};
use arena_runner::{Job, SeatRequest};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const ITEMS: u32 = 20_000;
const TURNS: u32 = 20;
/// The public seed.
const SEED: u64 = 1;
/// The distance of heads where a file says nothing, and one beyond the end of the log.
const CHECKPOINT_EVERY: [u32; 2] = [4_096, 1 << 20];

/// Offers a little more each turn and never accepts, so that every match has all its turns.
struct Walker {
    role: Role,
    reserve: u32,
    acts: u32,
    usage: Usage,
}

impl Seat for Walker {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        self.reserve = brief.reserve.cents();
        Ok(())
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        black_box(news);
        self.acts += 1;
        self.usage.fuel_per_act.push(12_345);
        let distance = 20 - self.acts;
        let price = match self.role {
            Role::Buyer => self.reserve - distance,
            Role::Seller => self.reserve + distance,
        };
        let talk = "I can do a little better.".to_owned();
        Ok(Reply { action: Move::Offer(Price(price)), talk, belief: None })
    }

    fn finish(&mut self, _end: &End) {}

    fn take_usage(&mut self) -> Usage {
        std::mem::take(&mut self.usage)
    }
}

fn seat(request: SeatRequest) -> Result<Box<dyn Seat>, SeatError> {
    Ok(Box::new(walker(request.role)))
}

fn walker(role: Role) -> Walker {
    Walker { role, reserve: 0, acts: 0, usage: Usage::default() }
}

struct Tournament {
    config: TournamentConfig,
    catalog: Catalog,
    rules: Rules,
    schedule: Schedule,
    announcement: Announcement,
    opening: AnnouncementEntry,
    key: SigningKey,
}

impl Tournament {
    fn new(checkpoint_every: u32) -> Tournament {
        let text = format!(
            "name = \"bench\"\nseed = {SEED}\nrules.horizon.turns = {TURNS}\n\
             catalog = {{ kind = \"uniform\", items = {ITEMS}, low = \"10\", high = \"110\" }}\n\
             [[agents]]\nname = \"a\"\ncomponent = \"a.wasm\"\n\
             [[agents]]\nname = \"b\"\ncomponent = \"b.wasm\"\n"
        );
        let config = TournamentConfig::parse(&text).expect("the file is well formed");
        let catalog = uniform::generate(ITEMS, Price(1_000), Price(11_000), Root::Seed(SEED));
        let schedule = Schedule::new(&config, ITEMS).expect("there are pairs");
        let agent = |name: &str| AgentEntry {
            name: name.to_owned(),
            component_sha256: [0; 32],
            params: String::new(),
            submission: None,
        };
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml: text,
            draws: Draws::PublicSeed(SEED),
            engine: String::new(),
            models: Vec::new(),
            agents: vec![agent("a"), agent("b")],
            catalog_sha256: catalog.sha256(),
            item_count: ITEMS,
            pair_count: schedule.pair_count(),
            checkpoint_every,
        };
        let key = SigningKey::from_seed([1; 32]);
        let opening = AnnouncementEntry {
            origin: "arena.example/bench".to_owned(),
            log_key: key.public().to_bytes(),
            announcement_sha256: Hash::of(&announcement.encode()).0,
        };
        let rules = Rules::new(&config.rules, &config.limits);
        Tournament { config, catalog, rules, schedule, announcement, opening, key }
    }

    /// Plays everything into a new folder and returns how long that took.
    fn play(&self, workers: usize) -> (Duration, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        (self.run(folder.path(), workers), folder)
    }

    fn run(&self, out_dir: &Path, workers: usize) -> Duration {
        let job = Job {
            announcement: &self.announcement,
            opening: &self.opening,
            draw: None,
            secret: None,
            key: &self.key,
            blobs: &[],
            rules: &self.rules,
            schedule: &self.schedule,
            catalog: &self.catalog,
            config: &self.config,
            out_dir,
            workers: NonZeroUsize::new(workers).expect("at least one worker"),
            seats: &seat,
        };
        let start = Instant::now();
        arena_runner::run(&job, &AtomicBool::new(false), &mut |_| {}).expect("the disk works");
        start.elapsed()
    }
}

fn runs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("run");
    group.sample_size(10);
    for every in CHECKPOINT_EVERY {
        let tournament = Tournament::new(every);
        group.throughput(Throughput::Elements(tournament.schedule.match_count()));
        for workers in [1, 2] {
            let name = format!("{workers}-workers-20-turns-head-every-{every}");
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|times| (0..times).map(|_| tournament.play(workers).0).sum());
            });
        }
    }
    group.finish();
}

fn pieces(criterion: &mut Criterion) {
    let tournament = Tournament::new(CHECKPOINT_EVERY[0]);
    let (_, folder) = tournament.play(1);
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
        bencher.iter(|| tournament.run(folder.path(), 1));
    });
    group.finish();
    let mut transcript: Option<Transcript> = None;
    read(&folder, |_, bytes| transcript = transcript.take().or(Transcript::decode(bytes).ok()));
    let transcript = transcript.expect("matches were played");
    let root = Root::Seed(SEED);
    let scenario = catalog::draw_scenario(&tournament.config, &tournament.catalog, root, 0, 0);
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
            let transcript = Transcript::new(tournament, root, record);
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

criterion_group!(benches, runs, pieces);
criterion_main!(benches);
