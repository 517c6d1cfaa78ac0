//! A small tournament and what its runs leave behind.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use arena_core::catalog::{Catalog, uniform};
use arena_core::config::TournamentConfig;
use arena_core::entry::{AgentEntry, Announcement, Entry};
use arena_core::fault::SeatError;
use arena_core::price::Price;
use arena_core::rules::Rules;
use arena_core::schedule::Schedule;
use arena_core::seat::Seat;
use arena_log::plain::path_in;
use arena_log::plain::reader::LogReader;
use arena_runner::error::RunError;
use arena_runner::event::{RunEvent, Summary};
use arena_runner::{Job, SeatRequest, SeatSource};

use crate::hagglers::{Haggler, TALK_BYTES_MAX};

/// Everything of a job but its seats.
pub struct Stage {
    pub config: TournamentConfig,
    pub catalog: Catalog,
    pub rules: Rules,
    pub schedule: Schedule,
    pub announcement: Announcement,
}

impl Stage {
    /// A round robin of four agents, self-play included: ten pairings on each item.
    pub fn new(items: u32) -> Stage {
        let agents = ["ada", "bea", "cid", "dov"];
        let mut text = format!(
            "name = \"stage\"\nseed = 11\nself_play = true\n\
             [rules]\nset = \"standard\"\nopener = \"drawn\"\n\
             horizon = {{ mean_turns = 8, max_turns = 30 }}\n\
             [catalog]\nkind = \"uniform\"\nitems = {items}\nlow = \"10\"\nhigh = \"110\"\n\
             [limits]\ntalk_bytes = {TALK_BYTES_MAX}\n"
        );
        for agent in agents {
            text += &format!("[[agents]]\nname = \"{agent}\"\ncomponent = \"{agent}.wasm\"\n");
        }
        let config = TournamentConfig::parse(&text).expect("the stage's file is well formed");
        let catalog = uniform::generate(items, Price(1_000), Price(11_000), config.seed);
        let schedule = Schedule::new(&config, items).expect("the stage has pairs");
        let agent = |name: &&str| AgentEntry {
            name: (*name).to_owned(),
            component_sha256: [1; 32],
            params: String::new(),
        };
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml: text,
            seed: config.seed,
            engine: "native=1\nfuel=none".to_owned(),
            agents: agents.iter().map(agent).collect(),
            catalog_sha256: catalog.sha256(),
            item_count: items,
            pair_count: schedule.pair_count(),
        };
        let rules = Rules::new(&config.rules, &config.limits);
        Stage { config, catalog, rules, schedule, announcement }
    }

    pub fn run_with(
        &self,
        out_dir: &Path,
        workers: usize,
        stop: &AtomicBool,
        seats: &SeatSource<'_, '_>,
        events: &mut dyn FnMut(RunEvent),
    ) -> Result<Summary, RunError> {
        let job = Job {
            announcement: &self.announcement,
            rules: &self.rules,
            schedule: &self.schedule,
            catalog: &self.catalog,
            config: &self.config,
            out_dir,
            workers: NonZeroUsize::new(workers).expect("at least one worker"),
            seats,
        };
        arena_runner::run(&job, stop, events)
    }

    /// Runs without interruption and without looking at the news.
    pub fn run(
        &self,
        out_dir: &Path,
        workers: usize,
        seats: &SeatSource<'_, '_>,
    ) -> Result<Summary, RunError> {
        self.run_with(out_dir, workers, &AtomicBool::new(false), seats, &mut |_| {})
    }

    /// Returns the bytes that every run of hagglers must leave.
    pub fn reference(&self) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder for the test");
        self.run(folder.path(), 1, &hagglers).expect("hagglers play to the end");
        bytes(folder.path())
    }
}

/// Seats everyone with a haggler. Some take their time, so that workers get out of step.
pub fn hagglers(request: SeatRequest) -> Result<Box<dyn Seat>, SeatError> {
    for _ in 0..request.seed % 32 {
        std::thread::yield_now();
    }
    Ok(Box::new(Haggler::new(request.seed)))
}

/// Returns a folder's log as bytes.
pub fn bytes(folder: &Path) -> Vec<u8> {
    fs::read(path_in(folder)).expect("there is a log")
}

/// Returns a folder's log as entries, all of them sound.
pub fn entries(folder: &Path) -> Vec<Entry> {
    let mut reader = LogReader::open(folder).expect("there is a log");
    let mut entries = Vec::new();
    while let Some(bytes) = reader.next_entry().expect("the log is whole") {
        entries.push(Entry::decode(bytes).expect("the runner writes sound entries"));
    }
    entries
}

/// How far pairs may be begun ahead of the log by two workers.
pub const WINDOW: u64 = 2 * 128;

/// How far the pairs of a run have been begun, for seats that wait for it.
#[derive(Default)]
pub struct Farthest {
    pair_index: Mutex<u64>,
    moved: Condvar,
}

impl Farthest {
    /// Notes that a seat of this pair is made.
    pub fn note(&self, pair_index: u64) {
        let mut farthest = self.pair_index.lock().expect("nobody panics");
        *farthest = u64::max(*farthest, pair_index);
        self.moved.notify_all();
    }

    /// Returns how far pairs have come once they are at `wanted`, and some time after, for
    /// whoever might go further.
    pub fn wait(&self, wanted: u64) -> u64 {
        let farthest = self.pair_index.lock().expect("nobody panics");
        let come = self.moved.wait_while(farthest, |farthest| *farthest < wanted);
        let come = come.expect("nobody panics");
        let further = |farthest: &mut u64| *farthest <= wanted;
        let waited = self.moved.wait_timeout_while(come, Duration::from_millis(300), further);
        *waited.expect("nobody panics").0
    }
}
