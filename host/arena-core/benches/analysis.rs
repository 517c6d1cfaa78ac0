//! What a tournament of 10^6 pairs costs besides playing it: looking up the whole schedule,
//! adding the pairs up, and making the report.
//!
//! `cargo bench -p arena-core`. Twelve agents over 930 items, as a round robin of the products
//! would be; records have twelve turns with talk.

use std::hint::black_box;
use std::time::Duration;

use arena_core::announcement::{AgentEntry, Announcement};
use arena_core::config::{
    AgentConfig, CatalogConfig, CatalogKind, ComponentSource, HorizonConfig, Limits, LogConfig,
    OpenerConfig, Roles, RulesConfig, ScheduleKind, Split, TournamentConfig, Training,
};
use arena_core::draws::Draws;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::report::{Report, ReportOptions};
use arena_core::scenario::{Horizon, Regulation, Role, RuleSet};
use arena_core::schedule::{PairPlan, Schedule, seat_seeds};
use arena_core::seat::Usage;
use arena_core::seed::{Root, Stream};
use arena_core::statistics::Tally;
use arena_core::turn::Move;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const PAIRS: u64 = 1_000_000;
const AGENTS: usize = 12;
const ITEMS: u32 = 930;
const TURNS: u32 = 12;

fn config() -> TournamentConfig {
    let agent = |number: usize| AgentConfig {
        name: format!("agent-{number}"),
        component: ComponentSource::Builtin("linear".to_owned()),
        params: String::new(),
        candidate: false,
        models: Vec::new(),
        training: Training::None,
        submission: None,
    };
    TournamentConfig {
        name: "bench".to_owned(),
        seed: Some(1),
        beacon_round: None,
        log: LogConfig { origin: None, checkpoint_every: 4_096 },
        schedule: ScheduleKind::RoundRobin,
        roles: Roles::Both,
        self_play: false,
        // 66 pairings of 930 items, 17 times, are just over a million pairs.
        repetitions: 17,
        scenario_group: 1,
        rules: RulesConfig {
            set: RuleSet::Standard,
            regulation: [Regulation::Refuse; 2],
            retries: 2,
            opener: OpenerConfig::Buyer,
            horizon: HorizonConfig::Fixed { turns: TURNS },
        },
        catalog: CatalogConfig {
            kind: CatalogKind::Synthetic { items: ITEMS, infeasible_milli: 150 },
            split: Split::All,
            sample: None,
        },
        limits: Limits::default(),
        models: Vec::new(),
        agents: (0..AGENTS).map(agent).collect(),
    }
}

fn schedule() -> Schedule {
    let schedule = Schedule::new(&config(), ITEMS).expect("twelve agents can be scheduled");
    assert!(schedule.pair_count() >= PAIRS, "the schedule has a million pairs");
    schedule
}

fn announcement() -> Announcement {
    let entry = |number: usize| AgentEntry {
        name: format!("agent-{number}"),
        component_sha256: [u8::try_from(number).expect("few agents"); 32],
        params: String::new(),
        submission: None,
    };
    Announcement {
        name: "bench".to_owned(),
        config_toml: String::new(),
        draws: Draws::PublicSeed(1),
        engine: String::new(),
        models: Vec::new(),
        agents: (0..AGENTS).map(entry).collect(),
        catalog_sha256: [0; 32],
        item_count: ITEMS,
        pair_count: PAIRS,
        checkpoint_every: 4_096,
    }
}

/// Makes the record of a negotiation that ends at a drawn price, or not at all.
fn record(plan: &PairPlan, leg: u8) -> MatchRecord {
    let mut stream = Stream::derive(Root::Seed(1), "bench", &[plan.index, u64::from(leg)]);
    let cost = 5_000 + 10 * plan.item_index;
    let budget = if plan.item_index.is_multiple_of(7) { cost - 1_000 } else { cost + 4_000 };
    let price = Price(cost + stream.below(4_000) as u32);
    let turns = (0..TURNS).map(|turn| TurnRecord {
        by: if turn.is_multiple_of(2) { Role::Buyer } else { Role::Seller },
        refused: Vec::new(),
        action: if turn + 1 < TURNS { Move::Offer(price) } else { Move::Accept(None) },
        talk: "I can offer $52.10, which is 3 % more than before.".to_owned(),
        belief: None,
    });
    let agreed = budget > cost && stream.below(10) > 0;
    MatchRecord {
        pair_index: plan.index,
        leg,
        agents: plan.seats(leg),
        item_index: plan.item_index,
        repetition: plan.repetition,
        list_price: Price(cost * 2),
        budget: Price(budget),
        cost: Price(cost),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: TURNS, hidden: false },
        seeds: [0, 0],
        turns: turns.collect(),
        unfinished: Vec::new(),
        outcome: if agreed { Outcome::Deal { price } } else { Outcome::TimedOut },
        usage: [Usage::default(), Usage::default()],
    }
}

fn look_up_the_schedule(criterion: &mut Criterion) {
    let schedule = schedule();
    let mut group = criterion.benchmark_group("schedule");
    group.sample_size(10).throughput(Throughput::Elements(PAIRS));
    group.bench_function("10^6 pairs", |bencher| {
        bencher.iter(|| {
            for index in 0..PAIRS {
                black_box(schedule.pair(index));
            }
        });
    });
    group.bench_function("seat seeds of 10^6 pairs", |bencher| {
        bencher.iter(|| {
            for index in 0..PAIRS {
                black_box(seat_seeds(Root::Seed(1), index));
            }
        });
    });
    group.finish();
}

fn add_up(criterion: &mut Criterion) {
    let schedule = schedule();
    let mut group = criterion.benchmark_group("tally");
    group.sample_size(10).throughput(Throughput::Elements(10_000));
    group.bench_function("10^4 pairs", |bencher| {
        let pairs: Vec<[MatchRecord; 2]> =
            (0..10_000).map(|index| [0, 1].map(|leg| record(&schedule.pair(index), leg))).collect();
        bencher.iter_batched_ref(
            || Tally::new(AGENTS, Roles::Both, 1),
            |tally| pairs.iter().for_each(|pair| tally.add_pair(pair).expect("a pair")),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn make_the_report(criterion: &mut Criterion) {
    let schedule = schedule();
    let mut tally = Tally::new(AGENTS, Roles::Both, 1);
    for index in 0..PAIRS {
        let plan = schedule.pair(index);
        tally.add_pair(&[0, 1].map(|leg| record(&plan, leg))).expect("a pair");
    }
    let announcement = announcement();
    let options = ReportOptions::default();
    let mut group = criterion.benchmark_group("report");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    group.bench_function("rating and intervals of 10^6 pairs", |bencher| {
        bencher.iter(|| tally.rating(&tally.resamples(options.resamples)));
    });
    group.bench_function("fragility of 10^6 pairs", |bencher| {
        let ranked: Vec<u16> = (0..).take(AGENTS).collect();
        bencher.iter(|| tally.fragility(&ranked));
    });
    group.bench_function("reference lines of 10^6 pairs", |bencher| {
        bencher.iter(|| tally.references(None));
    });
    group.bench_function("whole report of 10^6 pairs", |bencher| {
        bencher.iter(|| Report::build(&announcement, &tally, &options));
    });
    group.finish();
}

criterion_group!(benches, look_up_the_schedule, add_up, make_the_report);
criterion_main!(benches);
