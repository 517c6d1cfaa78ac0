//! What a match costs besides its agents: schedule, referee, encoding, order and log.
//!
//! Native seats play twenty turns without thinking, and the log is a real file.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_core::catalog::{self, Catalog, uniform};
use arena_core::config::TournamentConfig;
use arena_core::entry::{AgentEntry, Announcement, Entry};
use arena_core::fault::SeatError;
use arena_core::price::Price;
use arena_core::record::MatchRecord;
use arena_core::referee;
use arena_core::rules::Rules;
use arena_core::scenario::{Brief, Role};
use arena_core::schedule::Schedule;
use arena_core::seat::{Seat, Usage};
use arena_core::turn::{End, Event, Move, Reply};
use arena_log::plain::reader::LogReader;
use arena_runner::{Job, SeatRequest};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const ITEMS: u32 = 20_000;
const TURNS: u32 = 20;

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
}

impl Tournament {
    fn new() -> Tournament {
        let text = format!(
            "name = \"bench\"\nrules.horizon.turns = {TURNS}\n\
             catalog = {{ kind = \"uniform\", items = {ITEMS}, low = \"10\", high = \"110\" }}\n\
             [[agents]]\nname = \"a\"\ncomponent = \"a.wasm\"\n\
             [[agents]]\nname = \"b\"\ncomponent = \"b.wasm\"\n"
        );
        let config = TournamentConfig::parse(&text).expect("the file is well formed");
        let catalog = uniform::generate(ITEMS, Price(1_000), Price(11_000), config.seed);
        let schedule = Schedule::new(&config, ITEMS).expect("there are pairs");
        let agent = |name: &str| AgentEntry {
            name: name.to_owned(),
            component_sha256: [0; 32],
            params: String::new(),
        };
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml: text,
            seed: config.seed,
            engine: String::new(),
            agents: vec![agent("a"), agent("b")],
            catalog_sha256: catalog.sha256(),
            item_count: ITEMS,
            pair_count: schedule.pair_count(),
        };
        let rules = Rules::new(&config.rules, &config.limits);
        Tournament { config, catalog, rules, schedule, announcement }
    }

    /// Plays everything into a new folder and returns how long that took.
    fn play(&self, workers: usize) -> (Duration, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let job = Job {
            announcement: &self.announcement,
            rules: &self.rules,
            schedule: &self.schedule,
            catalog: &self.catalog,
            config: &self.config,
            out_dir: folder.path(),
            workers: NonZeroUsize::new(workers).expect("at least one worker"),
            seats: &seat,
        };
        let start = Instant::now();
        arena_runner::run(&job, &AtomicBool::new(false), &mut |_| {}).expect("the disk works");
        (start.elapsed(), folder)
    }
}

fn runs(criterion: &mut Criterion) {
    let tournament = Tournament::new();
    let mut group = criterion.benchmark_group("run");
    group.throughput(Throughput::Elements(tournament.schedule.match_count()));
    group.sample_size(10);
    for workers in [1, 2] {
        group.bench_function(format!("{workers}-workers-20-turns"), |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| tournament.play(workers).0).sum());
        });
    }
    group.finish();
}

fn pieces(criterion: &mut Criterion) {
    let tournament = Tournament::new();
    let (_, folder) = tournament.play(1);
    let mut group = criterion.benchmark_group("pieces");
    group.throughput(Throughput::Elements(tournament.schedule.match_count()));
    group.sample_size(20);
    group.bench_function("read-and-check-the-file", |bencher| {
        bencher.iter(|| read(&folder, |bytes| _ = black_box(bytes)));
    });
    group.bench_function("read-and-decode-the-file", |bencher| {
        bencher.iter(|| read(&folder, |bytes| _ = black_box(Entry::decode(bytes))));
    });
    group.finish();
    let mut record: Option<MatchRecord> = None;
    read(&folder, |bytes| {
        if let Ok(Entry::Match(found)) = Entry::decode(bytes) {
            record = Some(found);
        }
    });
    let record = Entry::Match(record.expect("matches were played"));
    let scenario = catalog::draw_scenario(&tournament.config, &tournament.catalog, 1, 0, 0);
    criterion.bench_function("play-one-match", |bencher| {
        bencher.iter(|| {
            let mut seats = Role::BOTH.map(walker);
            let [buyer, seller] = &mut seats;
            referee::play(&tournament.rules, &scenario, ["", ""], [1, 2], [buyer, seller])
        });
    });
    criterion.bench_function("encode-one-match", |bencher| bencher.iter(|| record.encode()));
}

fn read(folder: &tempfile::TempDir, mut each: impl FnMut(&[u8])) {
    let mut reader = LogReader::open(folder.path()).expect("the log is there");
    while let Some(bytes) = reader.next_entry().expect("the log is whole") {
        each(bytes);
    }
}

criterion_group!(benches, runs, pieces);
criterion_main!(benches);
