//! What a match costs: sandboxed against native, with the log and without, and per turn.
//!
//! Every match here runs over all of its turns: the item allows no deal, since its cost is above
//! its budget, so boulware and conceder close in on their reserves and never meet. One worker,
//! one core; a sandboxed seat is a fresh instance in every match. `tests/bench/README.md` says
//! how to read the figures. Nothing is judged here.
//!
//! Not here: schedules, tallies and reports (`arena-core`), the runner by itself (`arena-runner`).

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arena_core::announcement::{AgentEntry, Announcement};
use arena_core::catalog::{Budget, Catalog, CatalogEntry, draw_scenario};
use arena_core::config::{Limits, TournamentConfig};
use arena_core::draws::Draws;
use arena_core::entry::AnnouncementEntry;
use arena_core::fault::SeatError;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome};
use arena_core::referee::play;
use arena_core::rules::Rules;
use arena_core::scenario::Item;
use arena_core::schedule::{PairPlan, Schedule};
use arena_core::seat::Seat;
use arena_core::seed::Root;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_runner::{Job, SeatRequest};
use arena_sandbox::{CompileWorker, Grants, LoadedAgent, Sandbox, SandboxSettings};
use arena_tests::native::NativeSeat;
use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};

/// The first argument that makes this program the sandbox's compile child.
const COMPILE_WORKER: &str = "compile-worker";

/// Turns of an ordinary match.
const TURNS: u32 = 20;
/// Turns of a long match: what it costs more is the price of the further turns.
const TURNS_LONG: u32 = 120;
/// Pairs that one call of the runner plays, so that opening the log weighs little.
const PAIRS_PER_RUN: u32 = 1_000;

const AGENTS: [&str; 2] = ["boulware", "conceder"];

/// A tournament of two over one item, ready to be played.
struct Fixture {
    config: TournamentConfig,
    catalog: Catalog,
    schedule: Schedule,
    announcement: Announcement,
    opening: AnnouncementEntry,
    key: SigningKey,
    rules: Rules,
}

impl Fixture {
    fn new(turns: u32, repetitions: u32) -> Fixture {
        let config_toml = format!(
            "name = \"bench\"\nseed = 1\nrepetitions = {repetitions}\n\
             [rules]\nset = \"standard\"\nopener = \"buyer\"\nhorizon = {{ turns = {turns} }}\n\
             [catalog]\nkind = \"uniform\"\nitems = 1\nlow = \"1\"\nhigh = \"100\"\n\
             [[agents]]\nname = \"boulware\"\ncomponent = \"builtin:boulware\"\n\
             [[agents]]\nname = \"conceder\"\ncomponent = \"builtin:conceder\"\n"
        );
        let config = TournamentConfig::parse(&config_toml).expect("the benchmark's file parses");
        let catalog = Catalog { name: "bench".to_owned(), entries: vec![item_without_a_deal()] };
        let schedule = Schedule::new(&config, 1).expect("two agents can be scheduled");
        let agents = AGENTS.map(|name| AgentEntry {
            name: name.to_owned(),
            component_sha256: [0; 32],
            params: String::new(),
            submission: None,
        });
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml,
            draws: Draws::PublicSeed(1),
            engine: "bench".to_owned(),
            models: Vec::new(),
            agents: agents.to_vec(),
            catalog_sha256: catalog.sha256(),
            item_count: 1,
            pair_count: schedule.pair_count(),
            checkpoint_every: config.log.checkpoint_every,
        };
        let key = SigningKey::from_seed([1; 32]);
        let opening = AnnouncementEntry {
            origin: "arena.test/bench".to_owned(),
            log_key: key.public().to_bytes(),
            announcement_sha256: Hash::of(&announcement.encode()).0,
        };
        let rules = Rules::new(&config.rules, &config.limits);
        Fixture { config, catalog, schedule, announcement, opening, key, rules }
    }
}

/// Returns an item of the size of a product, with a cost above the budget.
fn item_without_a_deal() -> CatalogEntry {
    let words = "A plain thing of good make, sold as it is, with no warranty but its looks. ";
    CatalogEntry {
        item: Item {
            id: "bench/0".to_owned(),
            title: "A plain thing of good make for the home and the garden".to_owned(),
            category: "bench".to_owned(),
            description: words.repeat(10),
            list_price: Price(10_000),
        },
        cost: Price(6_000),
        budget: Budget::Fixed(Price(4_000)),
    }
}

/// Makes a fresh seat of an agent, by its place in [`AGENTS`].
type SeatMaker<'a> = &'a (dyn Fn(u16, u64) -> Result<Box<dyn Seat + 'a>, SeatError> + Sync);

fn native_seat(agent: u16) -> Box<dyn Seat> {
    match agent {
        0 => Box::new(NativeSeat::<boulware::Boulware>::new()),
        _ => Box::new(NativeSeat::<conceder::Conceder>::new()),
    }
}

fn open_sandbox() -> (Sandbox, [LoadedAgent; 2]) {
    let program = std::env::current_exe().expect("the benchmark has a file");
    let worker = CompileWorker { program, args: vec![COMPILE_WORKER.to_owned()] };
    let settings = SandboxSettings::new(Limits::default(), 2, worker);
    let sandbox = Sandbox::new(&settings).expect("the sandbox opens");
    let agents = AGENTS.map(|name| {
        let builtin = arena_agents::find(name).expect("the agent is built in");
        sandbox.load(builtin.component).expect("a built-in agent is accepted")
    });
    (sandbox, agents)
}

/// Plays the whole tournament into a new folder, on one worker.
fn run_logged(fixture: &Fixture, seats: SeatMaker<'_>) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let make = |request: SeatRequest| seats(request.agent, request.seed);
    let job = Job {
        announcement: &fixture.announcement,
        opening: &fixture.opening,
        draw: None,
        secret: None,
        key: &fixture.key,
        blobs: &[],
        rules: &fixture.rules,
        schedule: &fixture.schedule,
        catalog: &fixture.catalog,
        config: &fixture.config,
        out_dir: folder.path(),
        workers: NonZeroUsize::MIN,
        seats: &make,
    };
    let summary = arena_runner::run(&job, &AtomicBool::new(false), &mut |_| {});
    let summary = summary.expect("the run ends well");
    assert_eq!(summary.counts.pairs_done, fixture.schedule.pair_count(), "all pairs are played");
    assert_eq!(summary.counts.fault_count(), 0, "nobody faults");
}

/// Plays one match and writes nothing.
fn play_unlogged(fixture: &Fixture, seats: SeatMaker<'_>) -> MatchRecord {
    let scenario = draw_scenario(&fixture.config, &fixture.catalog, Root::Seed(1), 0, 0);
    let mut buyer = seats(0, 1).expect("a seat can be made");
    let mut seller = seats(1, 2).expect("a seat can be made");
    let pair: [&mut dyn Seat; 2] = [buyer.as_mut(), seller.as_mut()];
    let played = play(&fixture.rules, &scenario, ["", ""], [1, 2], pair);
    let played = played.expect("nothing fails on the host");
    let plan = PairPlan { index: 0, agents: [0, 1], item_index: 0, repetition: 0 };
    played.into_record(&plan, 0, &scenario, [1, 2])
}

/// Checks that a benchmark measures what it says: a match over all of its turns.
fn check(fixture: &Fixture, turns: u32, seats: SeatMaker<'_>) {
    let record = play_unlogged(fixture, seats);
    assert_eq!(record.outcome, Outcome::TimedOut, "the item allows no deal");
    assert_eq!(record.turns.len(), turns as usize, "every turn is played");
}

fn bench_matches(criterion: &mut Criterion, name: &str, seats: SeatMaker<'_>) {
    let short = Fixture::new(TURNS, PAIRS_PER_RUN);
    let long = Fixture::new(TURNS_LONG, 1);
    check(&short, TURNS, seats);
    check(&long, TURNS_LONG, seats);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(short.schedule.match_count()));
    slow(&mut group);
    group.bench_function("tournament-20-turns-logged", |b| b.iter(|| run_logged(&short, seats)));
    group.finish();
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    group.bench_function("match-20-turns", |b| b.iter(|| play_unlogged(&short, seats)));
    group.bench_function("match-120-turns", |b| b.iter(|| play_unlogged(&long, seats)));
    group.finish();
}

/// Sets a group for benchmarks of which one call takes a sizeable part of a second.
fn slow(group: &mut BenchmarkGroup<'_, WallTime>) {
    group.sample_size(10).measurement_time(Duration::from_secs(10));
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(COMPILE_WORKER) {
        return arena_sandbox::worker::serve();
    }
    let mut criterion = Criterion::default().configure_from_args();
    let (sandbox, agents) = open_sandbox();
    let grants = Grants::default();
    bench_matches(&mut criterion, "sandboxed", &|agent, seed| {
        Ok(Box::new(sandbox.seat(&agents[usize::from(agent)], &grants, seed)?))
    });
    bench_matches(&mut criterion, "native", &|agent, _| Ok(native_seat(agent)));
    criterion.final_summary();
    ExitCode::SUCCESS
}
