//! A model provider that fails is nobody's loss: the pair is voided, on the record, and played
//! again.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arena_core::announcement::{AgentEntry, Announcement, ModelEntry};
use arena_core::catalog::{Catalog, uniform};
use arena_core::config::TournamentConfig;
use arena_core::draws::Draws;
use arena_core::entry::{AnnouncementEntry, Entry};
use arena_core::fault::VoidReason;
use arena_core::price::Price;
use arena_core::record::VoidRecord;
use arena_core::rules::Rules;
use arena_core::schedule::Schedule;
use arena_core::seat::Seat;
use arena_core::seed::Root;
use arena_llm::model::{Completion, LanguageModel, ModelError, ModelInfo, REPLY_BYTES_MAX};
use arena_log::hash::Hash;
use arena_runner::error::RunError;
use arena_runner::event::{RunStatus, Summary};
use arena_runner::{Job, SeatRequest, VOID_ATTEMPTS_MAX};
use arena_sandbox::{Grants, LoadedAgent, Sandbox};

use crate::logs;
use crate::models::Failing;

/// The name of the logs.
pub const ORIGIN: &str = "arena.test/failures";

const SCRIPT: &str = "default = \"Action: [REJECT]\"";
const TEXT: &str = "name = \"failures\"\nseed = 5\nschedule = \"round-robin\"\n\
    [rules]\nset = \"standard\"\nhorizon = { turns = 6 }\n\
    [catalog]\nkind = \"uniform\"\nitems = 4\nlow = \"10\"\nhigh = \"110\"\n\
    [limits]\nmodel_calls = 8\n\
    [[models]]\nname = \"scripted\"\nscript = \"s.toml\"\n\
    [[agents]]\nname = \"llm\"\ncomponent = \"builtin:llm-buyer\"\nmodels = [\"scripted\"]\n\
    [[agents]]\nname = \"linear\"\ncomponent = \"builtin:linear\"\n";

/// A small tournament between an agent that has a model and one that has none.
pub struct Stage {
    config: TournamentConfig,
    catalog: Catalog,
    schedule: Schedule,
    announcement: Announcement,
    opening: AnnouncementEntry,
    sandbox: Sandbox,
    agents: Vec<LoadedAgent>,
    blobs: Vec<Vec<u8>>,
}

impl Stage {
    /// Prepares a tournament with this model.
    pub fn new(model: &dyn LanguageModel) -> Stage {
        let config = TournamentConfig::parse(TEXT).expect("a sound file");
        let catalog = uniform::generate(4, Price(1_000), Price(11_000), Root::Seed(5));
        let schedule = Schedule::new(&config, 4).expect("a schedule");
        let sandbox = crate::kit::sandbox(config.limits);
        let component =
            |name: &str| arena_agents::find(name).expect("a built-in agent").component.to_vec();
        let load = |name: &str| {
            sandbox.load(&component(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let agents = vec![load("llm-buyer"), load("linear")];
        let entries = config.agents.iter().zip(&agents).map(|(agent, loaded)| AgentEntry {
            name: agent.name.clone(),
            component_sha256: loaded.sha256(),
            params: agent.params.clone(),
            submission: None,
        });
        let ModelInfo { name, context_tokens, sha256, engine } = model.info();
        let announced = ModelEntry { name, context_tokens, sha256, engine };
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml: TEXT.to_owned(),
            draws: Draws::PublicSeed(5),
            engine: sandbox.fingerprint(),
            models: vec![announced],
            agents: entries.collect(),
            catalog_sha256: catalog.sha256(),
            item_count: 4,
            pair_count: schedule.pair_count(),
            checkpoint_every: config.log.checkpoint_every,
        };
        let opening = AnnouncementEntry {
            origin: ORIGIN.to_owned(),
            log_key: logs::key().public().to_bytes(),
            announcement_sha256: Hash::of(&announcement.encode()).0,
        };
        let blobs = vec![component("llm-buyer"), component("linear"), catalog.encode()];
        Stage { config, catalog, schedule, announcement, opening, sandbox, agents, blobs }
    }

    /// Runs on one thread, so that the model's calls come in one order.
    pub fn run(&self, out_dir: &Path, model: Arc<dyn LanguageModel>) -> Result<Summary, RunError> {
        let blobs: Vec<&[u8]> = self.blobs.iter().map(Vec::as_slice).collect();
        let grants = [Grants { models: vec![model], training: None }, Grants::default()];
        let seats = |request: SeatRequest| {
            let agent = usize::from(request.agent);
            let seat = self.sandbox.seat(&self.agents[agent], &grants[agent], request.seed)?;
            Ok(Box::new(seat) as Box<dyn Seat>)
        };
        let job = Job {
            announcement: &self.announcement,
            opening: &self.opening,
            draw: None,
            secret: None,
            key: &logs::key(),
            blobs: &blobs,
            rules: &Rules::new(&self.config.rules, &self.config.limits),
            schedule: &self.schedule,
            catalog: &self.catalog,
            config: &self.config,
            out_dir,
            workers: NonZeroUsize::MIN,
            seats: &seats,
        };
        arena_runner::run(&job, &AtomicBool::new(false), &mut |_| {})
    }
}

fn voids(log: &logs::Log) -> Vec<VoidRecord> {
    let voids = log.entries.iter().filter_map(|entry| match entry {
        Entry::Void(entry) => Some(entry.void),
        _ => None,
    });
    voids.collect()
}

type Failure = (&'static str, fn(Completion) -> Result<Completion, ModelError>);

/// What a provider can do to a call, and what the operator reads of it.
const FAILURES: &[Failure] = &[
    ("the server is down", |_| Err(ModelError::Unavailable("the server is down".to_owned()))),
    // A model has a time-out of its own.
    ("no answer within 60 s", |_| Err(ModelError::Unavailable("no answer within 60 s".to_owned()))),
    ("model is not supported", |_| Err(ModelError::NotSupported)),
    ("replied with 300000 tokens, was asked for at most ", |reply| {
        Ok(Completion { output_tokens: 300_000, ..reply })
    }),
    ("replied with 16385 bytes, at most 16384 are kept", |reply| {
        Ok(Completion { text: "\u{7}".repeat(REPLY_BYTES_MAX + 1), ..reply })
    }),
    ("and counts no tokens of them", |reply| Ok(Completion { output_tokens: 0, ..reply })),
    ("counted ", |reply| Ok(Completion { input_tokens: reply.input_tokens + 1, ..reply })),
];

#[test]
fn a_pair_whose_model_failed_once_is_voided_and_played_again_with_the_same_end() {
    let sound = Arc::new(Failing::new(SCRIPT, 0..0));
    let stage = Stage::new(&*sound);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = |name: &str| folder.path().join(name);
    stage.run(&out("sound"), sound).expect("a run");
    let sound = logs::read(&out("sound"));
    assert_eq!((voids(&sound).len(), sound.records.len()), (0, 8));
    for (says, how) in FAILURES {
        // The seat asks three times in a leg, so call 10 falls into the second leg of pair 1.
        let failing = Arc::new(Failing { how: *how, ..Failing::new(SCRIPT, 10..11) });
        let summary = stage.run(&out(says), failing).expect("a run");
        assert_eq!((summary.status, summary.counts.void_count), (RunStatus::Finished, 1));
        let failing = logs::read(&out(says));
        let void = VoidRecord { pair_index: 1, attempt: 0, reason: VoidReason::ModelProvider };
        assert_eq!(voids(&failing), [void], "{says}");
        assert_eq!(failing.records, sound.records, "{says}");
    }
}

#[test]
fn a_model_that_stays_down_stops_the_run_and_the_same_call_goes_on_once_it_is_back() {
    let stage = Stage::new(&Failing::new(SCRIPT, 0..0));
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (says, how) in FAILURES {
        let out = folder.path().join(says);
        let down = Arc::new(Failing { how: *how, ..Failing::new(SCRIPT, 7..u32::MAX) });
        let ended = stage.run(&out, down);
        let Err(RunError::Voided { attempts, last }) = ended else { panic!("{ended:?}") };
        assert_eq!((attempts, last.pair_index), (VOID_ATTEMPTS_MAX, 1));
        assert_eq!(last.reason, VoidReason::ModelProvider);
        assert!(last.detail.contains(says), "{}: {says}", last.detail);
        let stopped = logs::read(&out);
        assert_eq!((stopped.records.len(), voids(&stopped).len()), (2, 3));
        let back = Arc::new(Failing::new(SCRIPT, 0..0));
        let summary = stage.run(&out, back).expect("a run");
        assert_eq!(summary.status, RunStatus::Finished);
        let ended = logs::read(&out);
        assert_eq!((ended.records.len(), voids(&ended).len()), (8, 3));
        assert!(matches!(ended.entries[..], [.., Entry::Close(_), Entry::Reveal(_)]));
    }
}
