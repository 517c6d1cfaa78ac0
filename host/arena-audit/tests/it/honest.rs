//! A small tournament, played and written down honestly, that tests can change before it is
//! signed (as a dishonest organiser would) or after (as anyone could).

use std::path::{Path, PathBuf};

use arena_audit::{Audit, AuditOptions, Verdict, beacon};
use arena_core::announcement::{AgentEntry, Announcement, ModelEntry};
use arena_core::catalog::{Catalog, draw_scenario, uniform};
use arena_core::config::{CatalogKind, ModelConfig, TournamentConfig};
use arena_core::draws::{
    BeaconRound, BeaconValue, CommittedDraws, Draws, commit_contribution, commit_secret, master,
};
use arena_core::entry::{
    AnnouncementEntry, Close, DrawEntry, Entry, Reveal, TournamentId, VoidEntry,
};
use arena_core::fault::VoidReason;
use arena_core::hexadecimal::hex;
use arena_core::record::{MatchRecord, VoidRecord};
use arena_core::referee;
use arena_core::report::{Report, ReportOptions};
use arena_core::rules::Rules;
use arena_core::schedule::Schedule;
use arena_core::seed::Root;
use arena_core::statistics::Tally;
use arena_core::submission::{Submission, params_sha256};
use arena_core::transcript::Transcript;
use arena_log::blobs::Visibility;
use arena_log::key::SigningKey;
use arena_log::note::{Note, Vkey};
use arena_log::policy::Policy;
use arena_log::writer::{LogSettings, LogWriter, Record};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::players::Player;

pub const ORIGIN: &str = "arena.example/spring";
pub const SECRET: [u8; 32] = [0x5e; 32];
/// Agents that come with a statement; the second one only where there is something to draw in
/// common.
const STATED: [&str; 2] = ["alpha", "beta"];
/// What the authors of these agents contribute then.
pub const CONTRIBUTIONS: [[u8; 32]; 2] = [[0xc0; 32], [0xc1; 32]];
/// A round that quicknet published, and its signature.
pub const ROUND: u64 = 123;
const ROUND_SIGNATURE: &str = "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d4376548\
                               2e26cd02df835d3546d23c4b13e0dfc92";
/// The pair that is voided once.
pub const VOIDED_PAIR: u64 = 2;

/// Where the draws of a test tournament come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    Publicly,
    InCommon,
}

/// A tournament before it is written.
#[derive(Clone)]
pub struct Tournament {
    pub key_seed: [u8; 32],
    pub opening: AnnouncementEntry,
    /// The announcement as it is published: its hash should be the one in the opening.
    pub announcement: Announcement,
    pub config: TournamentConfig,
    pub catalog: Catalog,
    pub id: TournamentId,
    pub root: Root,
    pub records: Vec<Recorded>,
    /// Withheld until the close: components and catalog.
    pub blobs: Vec<Vec<u8>>,
    pub results: Option<String>,
}

/// An entry with what lies beside it.
#[derive(Clone)]
pub struct Recorded {
    pub entry: Entry,
    pub attachment: Vec<u8>,
}

/// A tournament as it lies on the disk.
pub struct Log {
    pub folder: TempDir,
    pub vkey: Vkey,
    announcement_sha256: [u8; 32],
}

fn config_toml(drawn: Drawn, item_count: u32, agents: &[&str]) -> String {
    let head = match drawn {
        Drawn::Publicly => "name = \"spring\"\nseed = 7\n".to_owned(),
        Drawn::InCommon => format!("name = \"spring\"\n[draws]\nbeacon_round = {ROUND}\n"),
    };
    let agents: String = agents
        .iter()
        .map(|name| {
            let is_stated =
                STATED.contains(name) && (drawn == Drawn::InCommon || *name == STATED[0]);
            let submission = if is_stated { "submission = \"its.note\"\n" } else { "" };
            format!("[[agents]]\nname = \"{name}\"\ncomponent = \"{name}.wasm\"\n{submission}")
        })
        .collect();
    format!(
        "{head}[log]\ncheckpoint_every = 256\n[rules]\nopener = \"drawn\"\n\
         horizon = {{ mean_turns = 8, max_turns = 20 }}\n[catalog]\nkind = \"uniform\"\n\
         items = {item_count}\nlow = \"10\"\nhigh = \"200\"\n{agents}"
    )
}

pub fn component(agent: usize) -> Vec<u8> {
    format!("the component of agent {agent}").into_bytes()
}

/// Signs a statement of the author of agent 0.
pub fn submission(component_sha256: [u8; 32], contribution: Option<[u8; 32]>) -> String {
    submission_of(STATED[0], component_sha256, contribution)
}

fn submission_of(
    agent: &str,
    component_sha256: [u8; 32],
    contribution: Option<[u8; 32]>,
) -> String {
    let key = author_key();
    let author = key.vkey(agent).expect("a name").to_string();
    let stated = Submission {
        agent: agent.to_owned(),
        tournament: "spring".to_owned(),
        component_sha256,
        params_sha256: params_sha256(""),
        roles: [true, true],
        time: 1_796_000_000,
        contribution,
        author,
    };
    let signature = key.sign_note(&stated.agent, &stated.text()).expect("a name");
    Note::new(stated.text(), vec![signature]).expect("a note").to_string()
}

pub fn author_key() -> SigningKey {
    SigningKey::from_seed([0xa1; 32])
}

pub fn round_value() -> BeaconValue {
    let digits = ROUND_SIGNATURE.as_bytes().chunks(2);
    let bytes: Vec<u8> = digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
        .collect();
    BeaconValue { round: ROUND, signature: bytes.try_into().expect("48 bytes") }
}

fn draws(drawn: Drawn) -> Draws {
    match drawn {
        Drawn::Publicly => Draws::PublicSeed(7),
        Drawn::InCommon => Draws::Committed(CommittedDraws {
            secret_commitment: commit_secret(&SECRET),
            contributions: CONTRIBUTIONS.iter().map(commit_contribution).collect(),
            beacon: Some(BeaconRound { chain: beacon::QUICKNET_CHAIN, round: ROUND }),
        }),
    }
}

impl Tournament {
    /// Plays a tournament of three agents over `item_count` items: six matches on each.
    pub fn play(drawn: Drawn, item_count: u32) -> Tournament {
        Tournament::play_among(&["alpha", "beta", "gamma"], drawn, item_count)
    }

    /// Plays a tournament of some agents, of whom `alpha` comes with a statement, and `beta`
    /// where draws are made in common.
    pub fn play_among(agents: &[&str], drawn: Drawn, item_count: u32) -> Tournament {
        Tournament::play_file(config_toml(drawn, item_count, agents), drawn)
    }

    /// Plays a tournament in which alpha and gamma buy from two others, in four repetitions of
    /// which every two share a scenario: sixteen matches over four items, twice.
    pub fn play_one_sided(roles: &str) -> Tournament {
        let agents = ["alpha", "beta", "gamma", "delta"];
        let head = format!(
            "schedule = \"gauntlet\"\nroles = \"{roles}\"\nrepetitions = 4\nscenario_group = 2\n"
        );
        let mut file =
            config_toml(Drawn::Publicly, 4, &agents).replacen("[log]", &format!("{head}[log]"), 1);
        for name in ["alpha", "gamma"] {
            let component = format!("component = \"{name}.wasm\"\n");
            file = file.replacen(&component, &format!("{component}candidate = true\n"), 1);
        }
        Tournament::play_file(file, Drawn::Publicly)
    }

    /// Plays a tournament file over uniform items. Its models are all of one hash.
    pub fn play_with_models(config_toml: String, model_sha256: [u8; 32]) -> Tournament {
        let mut tournament = Tournament::play_file(config_toml, Drawn::Publicly);
        let model = |given: &ModelConfig| ModelEntry {
            name: given.name.clone(),
            context_tokens: 64,
            sha256: model_sha256,
            engine: "engine=none".to_owned(),
        };
        tournament.announcement.models = tournament.config.models.iter().map(model).collect();
        tournament.announce();
        tournament
    }

    fn play_file(config_toml: String, drawn: Drawn) -> Tournament {
        let config = TournamentConfig::parse(&config_toml).expect("the file is sound");
        let draws = config.seed.map_or_else(|| draws(drawn), Draws::PublicSeed);
        let CatalogKind::Uniform { items, low, high } = config.catalog.kind else {
            panic!("test tournaments are over uniform items");
        };
        let catalog = uniform::generate(items, low, high, draws.catalog_root(Some(&SECRET)));
        let item_count = items;
        let schedule = Schedule::new(&config, item_count).expect("there is something to play");
        let agents = config.agents.iter().enumerate().map(|(place, agent)| {
            let component_sha256 = Sha256::digest(component(place)).into();
            let contribution = match drawn {
                Drawn::Publicly => None,
                Drawn::InCommon => CONTRIBUTIONS.get(place).map(commit_contribution),
            };
            let stated = agent.submission.is_some();
            let submission = || submission_of(&agent.name, component_sha256, contribution);
            AgentEntry {
                name: agent.name.clone(),
                component_sha256,
                params: agent.params.clone(),
                submission: stated.then(submission),
            }
        });
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml,
            draws,
            engine: "engine=none\n".to_owned(),
            models: vec![],
            agents: agents.collect(),
            catalog_sha256: catalog.sha256(),
            item_count,
            pair_count: schedule.pair_count(),
            checkpoint_every: config.log.checkpoint_every,
        };
        let mut blobs: Vec<Vec<u8>> = (0..config.agents.len()).map(component).collect();
        blobs.push(catalog.encode());
        let mut tournament = Tournament {
            key_seed: [0x10; 32],
            opening: AnnouncementEntry {
                origin: ORIGIN.to_owned(),
                log_key: SigningKey::from_seed([0x10; 32]).public().to_bytes(),
                announcement_sha256: [0; 32],
            },
            announcement,
            config,
            catalog,
            id: TournamentId([0; 32]),
            root: Root::Seed(0),
            records: vec![],
            blobs,
            results: None,
        };
        tournament.announce();
        tournament
    }

    /// Binds the announcement as it now stands, and plays everything that follows from it.
    pub fn announce(&mut self) {
        self.opening.announcement_sha256 = Sha256::digest(self.announcement.encode()).into();
        let opening = Entry::Announcement(self.opening.clone());
        self.id = TournamentId::of_first_entry(&opening.encode());
        self.records = vec![Recorded { entry: opening, attachment: vec![] }];
        let mut draw = None;
        let mut secret = None;
        self.root = match &self.announcement.draws {
            Draws::PublicSeed(seed) => Root::Seed(*seed),
            Draws::Committed(committed) => {
                secret = Some(SECRET);
                if self.announcement.draws.need_draw_entry() {
                    draw = Some(DrawEntry {
                        tournament: self.id,
                        contributions: CONTRIBUTIONS.map(Some).to_vec(),
                        beacon: committed.beacon.map(|_| round_value()),
                    });
                }
                master(&SECRET, self.id, draw.as_ref())
            }
        };
        self.push(draw.map(Entry::Draw));
        self.play_pairs();
        let tournament = self.id;
        self.push(Some(Entry::Reveal(Reveal { tournament, secret })));
    }

    /// Binds the announcement as it now stands, and plays nothing: the log is running.
    pub fn announce_only(&mut self) {
        self.opening.announcement_sha256 = Sha256::digest(self.announcement.encode()).into();
        let entry = Entry::Announcement(self.opening.clone());
        self.id = TournamentId::of_first_entry(&entry.encode());
        self.records = vec![Recorded { entry, attachment: vec![] }];
        self.results = None;
    }

    fn push(&mut self, entry: Option<Entry>) {
        self.records.extend(entry.map(|entry| Recorded { entry, attachment: vec![] }));
    }

    fn play_pairs(&mut self) {
        let schedule = Schedule::new(&self.config, self.announcement.item_count).expect("sound");
        let tournament = self.id;
        let seed = self.announcement.draws.resampling_seed();
        let mut tally = Tally::new(self.config.agents.len(), self.config.roles, seed);
        for pair_index in 0..schedule.pair_count() {
            if pair_index == VOIDED_PAIR {
                let void = VoidRecord { pair_index, attempt: 0, reason: VoidReason::Host };
                self.push(Some(Entry::Void(VoidEntry { tournament, void })));
                tally.add_void(&void);
            }
            let legs = 0..schedule.leg_count();
            let legs: Vec<MatchRecord> =
                legs.map(|leg| self.play_leg(&schedule, pair_index, leg)).collect();
            tally.add_pair(&legs).expect("legs of a pair");
            for record in legs {
                let transcript = Transcript::new(self.id, self.root, record);
                let attachment = transcript.encode();
                let entry = Entry::Match(transcript.entry(&attachment));
                self.records.push(Recorded { entry, attachment });
            }
        }
        let match_count = schedule.match_count();
        let void_count = tally.void_count(VoidReason::Host);
        self.push(Some(Entry::Close(Close { tournament, match_count, void_count })));
        let report = Report::build(&self.announcement, &tally, &ReportOptions::default());
        self.results = Some(report.document(true));
    }

    fn play_leg(&self, schedule: &Schedule, pair_index: u64, leg: u8) -> MatchRecord {
        let plan = schedule.pair(pair_index);
        let rules = Rules::new(&self.config.rules, &self.config.limits);
        let (item, repetition) = (plan.item_index, plan.repetition);
        let scenario = draw_scenario(&self.config, &self.catalog, self.root, item, repetition);
        let seeds = schedule.seat_seeds(self.root, &plan)[usize::from(leg)];
        let [mut buyer, mut seller] = plan.seats(leg).map(Player::new);
        let played = referee::play(&rules, &scenario, ["", ""], seeds, [&mut buyer, &mut seller]);
        played.expect("players are never voided").into_record(&plan, leg, &scenario, seeds)
    }

    /// Returns the place of a match among the records: its index in the log.
    pub fn match_at(&self, pair_index: u64, leg: u8) -> usize {
        let is_it = |recorded: &Recorded| match &recorded.entry {
            Entry::Match(entry) => (entry.pair_index, entry.leg) == (pair_index, leg),
            _ => false,
        };
        self.records.iter().position(is_it).expect("the match was played")
    }

    /// Returns the place of the first match that satisfies something.
    pub fn find(&self, is_it: impl Fn(&MatchRecord) -> bool) -> usize {
        let transcript = |recorded: &Recorded| Transcript::decode(&recorded.attachment).ok();
        let found = self
            .records
            .iter()
            .position(|recorded| transcript(recorded).is_some_and(|found| is_it(&found.record)));
        found.expect("some match is like this")
    }

    /// Changes a transcript and binds it anew, as only the organiser can.
    pub fn forge(&mut self, place: usize, change: impl FnOnce(&mut Transcript)) {
        let recorded = &mut self.records[place];
        let mut transcript = Transcript::decode(&recorded.attachment).expect("a match");
        change(&mut transcript);
        recorded.attachment = transcript.encode();
        recorded.entry = Entry::Match(transcript.entry(&recorded.attachment));
    }

    /// Returns the place of the close.
    pub fn close_at(&self) -> usize {
        let is_it = |recorded: &Recorded| matches!(recorded.entry, Entry::Close(_));
        self.records.iter().position(is_it).expect("the tournament was closed")
    }

    /// Writes and signs the log as the organiser does, and publishes after the close.
    pub fn write(&self) -> Log {
        self.write_raw(&|_, entry| entry.encode())
    }

    /// Writes the log with entries encoded by `encode`, which is given their index.
    pub fn write_raw(&self, encode: &dyn Fn(usize, &Entry) -> Vec<u8>) -> Log {
        let folder = TempDir::new().expect("a temporary folder");
        let key = SigningKey::from_seed(self.key_seed);
        let vkey = key.vkey(ORIGIN).expect("an origin");
        let checkpoint_every = 256;
        let settings = LogSettings { origin: ORIGIN.to_owned(), key, checkpoint_every };
        let mut writer = LogWriter::create(folder.path(), settings).expect("a new log");
        let public = self.announcement.encode();
        writer.put_blob(&public, Visibility::Public).expect("it fits");
        for blob in &self.blobs {
            writer.put_blob(blob, Visibility::Private).expect("it fits");
        }
        for (index, recorded) in self.records.iter().enumerate() {
            let entry = encode(index, &recorded.entry);
            let record = Record { entry: &entry, attachment: &recorded.attachment };
            writer.append_all(&[record]).expect("it fits");
            match recorded.entry {
                Entry::Draw(_) if index > 1 => {}
                Entry::Announcement(_) | Entry::Draw(_) | Entry::Reveal(_) => {
                    writer.checkpoint().expect("it is signed");
                }
                Entry::Close(_) => {
                    writer.checkpoint().expect("it is signed");
                    writer.publish().expect("it is published");
                }
                Entry::Match(_) | Entry::Void(_) => {}
            }
        }
        let announcement_sha256 = self.opening.announcement_sha256;
        let log = Log { folder, vkey, announcement_sha256 };
        if let Some(results) = &self.results {
            log.put("results.json", results.as_bytes());
        }
        log
    }
}

impl Log {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub fn get(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.file(path)).expect(path)
    }

    pub fn put(&self, path: &str, bytes: &[u8]) {
        let file = self.file(path);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect(path);
        std::fs::write(file, bytes).expect(path);
    }

    /// Returns the name of the announcement's blob.
    pub fn announcement_hash(&self) -> String {
        hex(&self.announcement_sha256)
    }

    pub fn policy(&self) -> Policy {
        Policy::of_vkey(self.vkey.clone()).expect("a log's key")
    }

    pub fn audit(&self) -> Audit {
        self.audit_holding(&[])
    }

    pub fn audit_holding(&self, held: &[Vec<u8>]) -> Audit {
        let policy = self.policy();
        let options = AuditOptions { policy: &policy, held, authors: &[], catalog: None };
        arena_audit::audit(self.path(), &options, &mut |_| {})
    }
}

/// Shows every step that is not verified.
pub fn shown(audit: &Audit) -> String {
    let mut text = String::new();
    for step in &audit.steps {
        match &step.verdict {
            Verdict::Verified { .. } => {}
            Verdict::NotChecked { reason } => {
                text.push_str(&format!("{} not checked: {reason}\n", step.id));
            }
            Verdict::Failed { findings, .. } => {
                for finding in findings {
                    text.push_str(&format!("{} failed: {finding}\n", step.id));
                }
            }
        }
    }
    text
}

/// Asserts that exactly these steps failed, and that a finding says this.
pub fn assert_fails(case: &str, audit: &Audit, steps: &[&str], says: &str) {
    let shown = shown(audit);
    let failed = audit.steps.iter().filter(|step| step.verdict.is_failed());
    let failed: Vec<&str> = failed.map(|step| step.id).collect();
    assert_eq!(failed, steps, "{case}:\n{shown}");
    assert!(shown.contains(says), "{case}: nothing says `{says}`:\n{shown}");
}
