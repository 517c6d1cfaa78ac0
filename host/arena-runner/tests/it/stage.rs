//! A small tournament and what its runs leave behind.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use arena_core::announcement::{AgentEntry, Announcement};
use arena_core::catalog::{Catalog, uniform};
use arena_core::config::TournamentConfig;
use arena_core::draws::{
    BeaconRound, BeaconValue, CommittedDraws, Draws, commit_contribution, commit_secret, master,
};
use arena_core::entry::{AnnouncementEntry, DrawEntry, Entry, TournamentId};
use arena_core::fault::SeatError;
use arena_core::price::Price;
use arena_core::rules::Rules;
use arena_core::schedule::Schedule;
use arena_core::seat::Seat;
use arena_core::seed::Root;
use arena_core::transcript::Transcript;
use arena_log::checkpoint::Head;
use arena_log::hash::Hash;
use arena_log::key::SigningKey;
use arena_log::reader::{Access, LogReader};
use arena_log::writer::LogSettings;
use arena_runner::error::RunError;
use arena_runner::event::{RunEvent, RunStatus, Summary};
use arena_runner::{Job, SeatRequest, SeatSource, tournament_id};

use crate::hagglers::{Haggler, TALK_BYTES_MAX};

/// The public seed of a stage.
const SEED: u64 = 11;
/// The secret of a stage whose draws are committed.
pub const SECRET: [u8; 32] = [0x5e; 32];
/// What two entrants contribute to such a stage; the second one never opens it.
pub const CONTRIBUTIONS: [[u8; 32]; 2] = [[0xc0; 32], [0xc1; 32]];
/// The round of the beacon that such a stage names.
pub const ROUND: u64 = 1_000;

/// Where a log keeps what no head covers yet.
pub const JOURNAL: &str = "private/journal";
/// What a journal begins with, which is written before it is a log's.
pub const JOURNAL_HEADER_BYTES: usize = 24;

/// Everything of a job but its seats.
pub struct Stage {
    pub config: TournamentConfig,
    pub catalog: Catalog,
    pub rules: Rules,
    pub schedule: Schedule,
    pub announcement: Announcement,
    pub opening: AnnouncementEntry,
    pub draw: Option<DrawEntry>,
    pub secret: Option<[u8; 32]>,
    pub key: SigningKey,
    pub blobs: Vec<Vec<u8>>,
}

impl Stage {
    /// A round robin of four agents, self-play included: ten pairings on each item. Heads are
    /// signed as often as a log allows.
    pub fn new(items: u32) -> Stage {
        let agents = ["ada", "bea", "cid", "dov"];
        let mut text = format!(
            "name = \"stage\"\nseed = {SEED}\nself_play = true\n\
             [log]\ncheckpoint_every = 256\n\
             [rules]\nset = \"standard\"\nopener = \"drawn\"\n\
             horizon = {{ mean_turns = 8, max_turns = 30 }}\n\
             [catalog]\nkind = \"uniform\"\nitems = {items}\nlow = \"10\"\nhigh = \"110\"\n\
             [limits]\ntalk_bytes = {TALK_BYTES_MAX}\n"
        );
        for agent in agents {
            text += &format!("[[agents]]\nname = \"{agent}\"\ncomponent = \"{agent}.wasm\"\n");
        }
        Stage::of(text, agents, items)
    }

    /// Two candidates that buy from two others, or sell to them: four matches on each item in each
    /// of six repetitions, every three of which share a scenario.
    pub fn one_sided(roles: &str, items: u32) -> Stage {
        let agents = ["ada", "bea", "cid", "dov"];
        let mut text = format!(
            "name = \"stage\"\nseed = {SEED}\nschedule = \"gauntlet\"\nroles = \"{roles}\"\n\
             repetitions = 6\nscenario_group = 3\n\
             [log]\ncheckpoint_every = 256\n\
             [rules]\nset = \"standard\"\nopener = \"drawn\"\n\
             horizon = {{ mean_turns = 8, max_turns = 30 }}\n\
             [catalog]\nkind = \"uniform\"\nitems = {items}\nlow = \"10\"\nhigh = \"110\"\n\
             [limits]\ntalk_bytes = {TALK_BYTES_MAX}\n"
        );
        for (place, agent) in agents.iter().enumerate() {
            text += &format!(
                "[[agents]]\nname = \"{agent}\"\ncomponent = \"{agent}.wasm\"\n\
                 candidate = {}\n",
                place % 2 == 1
            );
        }
        Stage::of(text, agents, items)
    }

    fn of(text: String, agents: [&str; 4], items: u32) -> Stage {
        let config = TournamentConfig::parse(&text).expect("the stage's file is well formed");
        let catalog = uniform::generate(items, Price(1_000), Price(11_000), Root::Seed(SEED));
        let schedule = Schedule::new(&config, items).expect("the stage has pairs");
        let component = b"a component".to_vec();
        let agent = |name: &&str| AgentEntry {
            name: (*name).to_owned(),
            component_sha256: Hash::of(&component).0,
            params: String::new(),
            submission: None,
        };
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml: text,
            draws: Draws::PublicSeed(SEED),
            engine: "native=1\nfuel=none".to_owned(),
            models: Vec::new(),
            agents: agents.iter().map(agent).collect(),
            catalog_sha256: catalog.sha256(),
            item_count: items,
            pair_count: schedule.pair_count(),
            checkpoint_every: config.log.checkpoint_every,
        };
        let key = SigningKey::from_seed([7; 32]);
        let opening = AnnouncementEntry {
            origin: "arena.example/stage".to_owned(),
            log_key: key.public().to_bytes(),
            announcement_sha256: Hash::of(&announcement.encode()).0,
        };
        let rules = Rules::new(&config.rules, &config.limits);
        let blobs = vec![component, catalog.encode()];
        let (draw, secret) = (None, None);
        Stage { config, catalog, rules, schedule, announcement, opening, draw, secret, key, blobs }
    }

    /// The same with draws that nobody knows: of two contributions one is opened.
    pub fn committed(items: u32) -> Stage {
        let draws = Draws::Committed(CommittedDraws {
            secret_commitment: commit_secret(&SECRET),
            contributions: CONTRIBUTIONS.iter().map(commit_contribution).collect(),
            beacon: Some(BeaconRound { chain: [0xbe; 32], round: ROUND }),
        });
        let mut stage = Stage::new(items);
        stage.announce_draws(draws);
        stage.draw = Some(DrawEntry {
            tournament: stage.tournament(),
            contributions: vec![Some(CONTRIBUTIONS[0]), None],
            beacon: Some(BeaconValue { round: ROUND, signature: [0x51; 48] }),
        });
        stage
    }

    /// The same with a secret of the organiser alone.
    pub fn secret(items: u32) -> Stage {
        let mut stage = Stage::new(items);
        let secret_commitment = commit_secret(&SECRET);
        let (contributions, beacon) = (Vec::new(), None);
        let draws = CommittedDraws { secret_commitment, contributions, beacon };
        stage.announce_draws(Draws::Committed(draws));
        stage
    }

    fn announce_draws(&mut self, draws: Draws) {
        self.announcement.draws = draws;
        self.secret = Some(SECRET);
        self.bind();
    }

    /// Lets the opening name the announcement and the key as they are now.
    pub fn bind(&mut self) {
        self.opening.announcement_sha256 = Hash::of(&self.announcement.encode()).0;
        self.opening.log_key = self.key.public().to_bytes();
    }

    pub fn tournament(&self) -> TournamentId {
        tournament_id(&self.opening)
    }

    pub fn root(&self) -> Root {
        match (&self.announcement.draws, &self.secret) {
            (Draws::Committed(_), Some(secret)) => {
                master(secret, self.tournament(), self.draw.as_ref())
            }
            _ => Root::Seed(SEED),
        }
    }

    /// Returns what this stage's log is written with.
    pub fn settings(&self) -> LogSettings {
        LogSettings {
            origin: self.opening.origin.clone(),
            key: self.key.clone(),
            checkpoint_every: u64::from(self.announcement.checkpoint_every),
        }
    }

    /// Does something with the stage as a job.
    pub fn with_job<T>(
        &self,
        out_dir: &Path,
        workers: usize,
        seats: &SeatSource<'_, '_>,
        action: impl FnOnce(&Job<'_, '_>) -> T,
    ) -> T {
        let blobs: Vec<&[u8]> = self.blobs.iter().map(Vec::as_slice).collect();
        action(&Job {
            announcement: &self.announcement,
            opening: &self.opening,
            draw: self.draw.as_ref(),
            secret: self.secret,
            key: &self.key,
            blobs: &blobs,
            rules: &self.rules,
            schedule: &self.schedule,
            catalog: &self.catalog,
            config: &self.config,
            out_dir,
            workers: NonZeroUsize::new(workers).expect("at least one worker"),
            seats,
        })
    }

    pub fn announce(&self, out_dir: &Path) -> Result<Head, RunError> {
        self.with_job(out_dir, 1, &nobody, arena_runner::announce)
    }

    pub fn run_with(
        &self,
        out_dir: &Path,
        workers: usize,
        stop: &AtomicBool,
        seats: &SeatSource<'_, '_>,
        events: &mut dyn FnMut(RunEvent),
    ) -> Result<Summary, RunError> {
        self.with_job(out_dir, workers, seats, |job| arena_runner::run(job, stop, events))
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

    /// Returns all files of a run that was told to stop at the first seat of a pair.
    pub fn interrupted(&self, pair_index: u64, seats: &SeatSource<'_, '_>) -> Files {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let stop = AtomicBool::new(false);
        let seats = |request: SeatRequest| {
            stop.fetch_or(request.pair_index == pair_index, Ordering::Relaxed);
            seats(request)
        };
        let summary = self.run_with(folder.path(), 1, &stop, &seats, &mut |_| {});
        let summary = summary.expect("being stopped is no failure");
        assert_eq!(summary.status, RunStatus::Interrupted);
        assert_eq!(summary.counts.pairs_done, pair_index);
        files(folder.path())
    }

    /// Returns the public files that every run of hagglers must leave.
    pub fn reference(&self) -> Files {
        let folder = tempfile::tempdir().expect("a folder for the test");
        self.run(folder.path(), 1, &hagglers).expect("hagglers play to the end");
        public(folder.path())
    }
}

/// Seats everyone with a haggler. Some take their time, so that workers get out of step.
pub fn hagglers(request: SeatRequest) -> Result<Box<dyn Seat>, SeatError> {
    for _ in 0..request.seed % 32 {
        std::thread::yield_now();
    }
    Ok(Box::new(Haggler::new(request.seed)))
}

/// Seats nobody: for runs that have nothing to play.
pub fn nobody(_: SeatRequest) -> Result<Box<dyn Seat>, SeatError> {
    panic!("nobody is asked to play")
}

/// Files of a folder by their paths in it.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Returns all files of a folder.
pub fn files(folder: &Path) -> Files {
    let mut files = Files::new();
    collect(folder, "", &mut files);
    files
}

/// Returns the files of a log that are published: all but those that are withheld.
pub fn public(folder: &Path) -> Files {
    let mut files = files(folder);
    files.retain(|path, _| !path.starts_with("private/"));
    files
}

/// Puts files into an empty folder.
pub fn put(folder: &Path, files: &Files) {
    for (path, bytes) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the disk works");
        fs::write(path, bytes).expect("the disk works");
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Files) {
    for item in fs::read_dir(folder).expect("the folder is there") {
        let item = item.expect("the disk works");
        let name = item.file_name().into_string().expect("names are ASCII");
        let path = format!("{prefix}{name}");
        if item.file_type().expect("the disk works").is_dir() {
            collect(&item.path(), &format!("{path}/"), files);
        } else {
            files.insert(path, fs::read(item.path()).expect("the disk works"));
        }
    }
}

/// An entry as it lies in the log, with what lies beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub entry: Entry,
    pub attachment: Vec<u8>,
}

impl Item {
    pub fn transcript(&self) -> Transcript {
        Transcript::decode(&self.attachment).expect("the runner writes sound transcripts")
    }
}

/// Returns everything that a folder's log holds, signed or not, all of it sound.
pub fn items(folder: &Path) -> Vec<Item> {
    let mut reader = LogReader::open(folder, Access::Owner).expect("there is a log");
    let mut items = Vec::new();
    while let Some(record) = reader.next_record().expect("the log is whole") {
        let entry = Entry::decode(record.entry).expect("the runner writes sound entries");
        let attachment = record.attachment.expect("an owner sees everything").to_vec();
        items.push(Item { entry, attachment });
    }
    items
}

/// Returns the sizes at which a folder's log is signed.
pub fn signed_sizes(folder: &Path) -> Vec<u64> {
    let reader = LogReader::open(folder, Access::Public).expect("there is a log");
    reader.signed_sizes().expect("heads are in their folder")
}

/// How far pairs may be begun ahead of the log by two workers.
pub const WINDOW: u64 = 2 * 1_024;
/// How many bytes of finished pairs may wait for the log with two workers.
pub const WINDOW_BYTES: u64 = 2 * (32 << 20);
/// Items of a stage with more pairs than the window holds.
pub const ITEMS_BEYOND_WINDOW: u32 = WINDOW as u32 / 10 + 10;

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
