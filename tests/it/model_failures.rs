//! A model provider that fails is nobody's loss: the pair is voided, on the record, and played
//! again.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arena_core::announcement::{AgentEntry, Announcement};
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
use arena_llm::model::LanguageModel;
use arena_log::hash::Hash;
use arena_runner::error::RunError;
use arena_runner::event::{RunStatus, Summary};
use arena_runner::{Job, SeatRequest, VOID_ATTEMPTS_MAX};
use arena_sandbox::{Grants, LoadedAgent, Sandbox};

use crate::logs;
use crate::models::Failing;

const SCRIPT: &str = "default = \"Action: [REJECT]\"";
const TEXT: &str = "name = \"failures\"\nseed = 5\nschedule = \"round-robin\"\n\
    [rules]\nset = \"standard\"\nhorizon = { turns = 6 }\n\
    [catalog]\nkind = \"uniform\"\nitems = 4\nlow = \"10\"\nhigh = \"110\"\n\
    [limits]\nmodel_calls = 8\n\
    [[models]]\nname = \"scripted\"\nscript = \"s.toml\"\n\
    [[agents]]\nname = \"llm\"\ncomponent = \"builtin:llm-buyer\"\nmodels = [\"scripted\"]\n\
    [[agents]]\nname = \"linear\"\ncomponent = \"builtin:linear\"\n";

struct Stage {
    config: TournamentConfig,
    catalog: Catalog,
    schedule: Schedule,
    announcement: Announcement,
    opening: AnnouncementEntry,
    sandbox: Sandbox,
    agents: Vec<LoadedAgent>,
}

impl Stage {
    fn new() -> Stage {
        let config = TournamentConfig::parse(TEXT).expect("a sound file");
        let catalog = uniform::generate(4, Price(1_000), Price(11_000), Root::Seed(5));
        let schedule = Schedule::new(&config, 4).expect("a schedule");
        let sandbox = crate::kit::sandbox(config.limits);
        let load = |name: &str| {
            let component = arena_agents::find(name).expect("a built-in agent").component;
            sandbox.load(component).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let agents = vec![load("llm-buyer"), load("linear")];
        let entries = config.agents.iter().zip(&agents).map(|(agent, loaded)| AgentEntry {
            name: agent.name.clone(),
            component_sha256: loaded.sha256(),
            params: agent.params.clone(),
            submission: None,
        });
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml: TEXT.to_owned(),
            draws: Draws::PublicSeed(5),
            engine: sandbox.fingerprint(),
            models: Vec::new(),
            agents: entries.collect(),
            catalog_sha256: catalog.sha256(),
            item_count: 4,
            pair_count: schedule.pair_count(),
            checkpoint_every: config.log.checkpoint_every,
        };
        let opening = AnnouncementEntry {
            origin: "arena.test/failures".to_owned(),
            log_key: logs::key().public().to_bytes(),
            announcement_sha256: Hash::of(&announcement.encode()).0,
        };
        Stage { config, catalog, schedule, announcement, opening, sandbox, agents }
    }

    /// Runs on one thread, so that the model's calls come in one order.
    fn run(&self, out_dir: &Path, model: &Arc<Failing>) -> Result<Summary, RunError> {
        let model: Arc<dyn LanguageModel> = model.clone();
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
            blobs: &[],
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

#[test]
fn a_pair_whose_model_failed_once_is_voided_and_played_again_with_the_same_end() {
    let stage = Stage::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = |name: &str| folder.path().join(name);
    let sound = Arc::new(Failing::new(SCRIPT, 0..0));
    stage.run(&out("sound"), &sound).expect("a run");
    // The seat asks three times in a leg, so call 10 falls into the second leg of pair 1.
    let failing = Arc::new(Failing::new(SCRIPT, 10..11));
    let summary = stage.run(&out("failing"), &failing).expect("a run");
    assert_eq!((summary.status, summary.counts.void_count), (RunStatus::Finished, 1));
    let sound = logs::read(&out("sound"));
    let failing = logs::read(&out("failing"));
    let void = VoidRecord { pair_index: 1, attempt: 0, reason: VoidReason::ModelProvider };
    assert_eq!(voids(&failing), [void]);
    assert_eq!(voids(&sound), []);
    assert_eq!(sound.records.len(), 8);
    assert_eq!(failing.records, sound.records);
}

#[test]
fn a_model_that_stays_down_stops_the_run_and_the_same_call_goes_on_once_it_is_back() {
    let stage = Stage::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let down = Arc::new(Failing::new(SCRIPT, 7..u32::MAX));
    let ended = stage.run(&out, &down);
    let Err(RunError::Voided { attempts, last }) = ended else { panic!("{ended:?}") };
    assert_eq!((attempts, last.pair_index), (VOID_ATTEMPTS_MAX, 1));
    assert_eq!(
        (last.reason, last.detail.as_str()),
        (VoidReason::ModelProvider, "the server is down")
    );
    let stopped = logs::read(&out);
    assert_eq!((stopped.records.len(), voids(&stopped).len()), (2, 3));
    let back = Arc::new(Failing::new(SCRIPT, 0..0));
    let summary = stage.run(&out, &back).expect("a run");
    assert_eq!(summary.status, RunStatus::Finished);
    let ended = logs::read(&out);
    assert_eq!((ended.records.len(), voids(&ended).len()), (8, 3));
    assert!(matches!(ended.entries[..], [.., Entry::Close(_), Entry::Reveal(_)]));
}
