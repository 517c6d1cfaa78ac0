//! Runs the agents of a published tournament again and says whether they play the same.
//!
//! Components, catalog and recorded replies of models come from the log; scenarios and seeds
//! are drawn anew; no model is asked. The audit has made sure before that all of this is what
//! was announced, and where it has not, nothing is run.
//!
//! Not here: playing (`arena_runner::reexecution`) and the other steps (`arena_audit`).

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use arena_audit::Audit;
use arena_audit::sample::Sample;
use arena_audit::{Finding, Verdict};
use arena_core::announcement::{Announcement, ModelEntry};
use arena_core::catalog::Catalog;
use arena_core::config::{Limits, TournamentConfig};
use arena_core::draws::{self, Draws};
use arena_core::entry::{Entry, TournamentId};
use arena_core::fault::SeatError;
use arena_core::rules::Rules;
use arena_core::schedule::Schedule;
use arena_core::seat::{ModelCall, Seat};
use arena_core::seed::Root;
use arena_llm::model::{LanguageModel, ModelInfo};
use arena_llm::recorded::Recorded;
use arena_log::checkpoint::Head;
use arena_log::hash::Hash;
use arena_log::reader::{Access, LogReader};
use arena_log::tree::Frontier;
use arena_runner::SeatRequest;
use arena_runner::reexecution::{Reexecution, Task};
use arena_sandbox::{Grants, LoadedAgent, Sandbox, TrainingMode};

use crate::advance::Advance;
use crate::cli::audit::Choice;
use crate::error::{CliError, Complaint};
use crate::render::transcript::{count, thousands};
use crate::replays::{Outcome, Replays};
use crate::{files, preparation, reading, sandbox, screen, secrets};

/// Steps without which running agents again would mean nothing.
const GROUNDS: [&str; 2] = ["scenarios", "components"];

/// Runs the chosen matches again.
///
/// # Errors
/// The log cannot be read any more, or the machine failed. What is wrong with the log is a
/// verdict and no error.
pub fn run(
    log: &Path,
    audit: &Audit,
    choice: Choice,
    workers: NonZeroUsize,
) -> Result<Outcome, CliError> {
    for id in GROUNDS {
        let verdict = audit.step(id).map(|step| &step.verdict);
        if !verdict.is_some_and(Verdict::is_verified) {
            return Ok(not_checked(format!("step `{id}` is not verified")).into());
        }
    }
    let (Some(announcement), Some(tournament), Some(head)) =
        (&audit.announcement, audit.tournament, audit.head())
    else {
        return Ok(not_checked("there is no announcement to go by".to_owned()).into());
    };
    let mut reader =
        LogReader::open(log, Access::Public).map_err(|error| reading::complain(log, &error))?;
    let config = TournamentConfig::parse(&announcement.config_toml)
        .map_err(|error| reading::complain(log, &error.message))?;
    let sandbox = sandbox::open(&config.limits, workers)?;
    if let Some(reason) = other_engine(&announcement.engine, &sandbox.fingerprint()) {
        return Ok(not_checked(reason).into());
    }
    let schedule = schedule(log, announcement, &config)?;
    let Some(sample) = sample(audit, choice, &schedule)? else {
        return Ok(not_checked("without tables nobody is known to lead".to_owned()).into());
    };
    let root = root(&mut reader, announcement, tournament)?;
    warn_of_costs(&config.limits, workers);
    let agents = match load(&reader, announcement, &config, &sandbox)? {
        Ok(agents) => agents,
        Err(finding) => {
            return Ok(Verdict::Failed { findings: vec![finding], finding_count: 1 }.into());
        }
    };
    let stage = Stage { head, announcement, config: &config, sandbox: &sandbox, agents: &agents };
    stage.replay(&mut reader, &sample, root, workers)
}

/// Says what strangers' agents may take of this machine, where that is more than is usual: the
/// limits are those of the log.
fn warn_of_costs(limits: &Limits, workers: NonZeroUsize) {
    let usual = Limits::default();
    if limits.fuel_match_max <= usual.fuel_match_max
        && limits.fuel_start_max <= usual.fuel_start_max
        && limits.memory_bytes_max <= usual.memory_bytes_max
    {
        return;
    }
    screen::remark(&format!(
        "note: the log grants each seat {} fuel for its start and {} for a match, and {} MiB of \
         memory; {} at a time are run again\n  hint: Ctrl-C ends this at any time, and \
         `--workers 1` takes less memory",
        thousands(limits.fuel_start_max),
        thousands(limits.fuel_match_max),
        thousands(limits.memory_bytes_max >> 20),
        count(workers.get() as u64, "match"),
    ));
}

fn not_checked(reason: String) -> Verdict {
    Verdict::NotChecked { reason }
}

/// Says in which line the announced engine is not this program's.
fn other_engine(announced: &str, own: &str) -> Option<String> {
    let (mut announced, mut own) = (announced.lines(), own.lines());
    // Ends with the first line that differs, or with both texts.
    loop {
        let pair = (announced.next(), own.next());
        if pair == (None, None) {
            return None;
        }
        let shown = |line: Option<&str>| line.unwrap_or("nothing").to_owned();
        if pair.0 != pair.1 {
            return Some(format!(
                "it was played on another engine: announced is `{}`, this program has `{}`; \
                 use the build that it was played with",
                shown(pair.0),
                shown(pair.1)
            ));
        }
    }
}

/// Returns the schedule of a log that was audited.
pub fn schedule(
    log: &Path,
    announcement: &Announcement,
    config: &TournamentConfig,
) -> Result<Schedule, CliError> {
    Schedule::new(config, announcement.item_count).map_err(|error| reading::complain(log, &error))
}

/// Chooses the matches; `None` where it is not known who leads.
fn sample(audit: &Audit, choice: Choice, schedule: &Schedule) -> Result<Option<Sample>, CliError> {
    Ok(match choice {
        Choice::All => Some(Sample::All),
        // Nobody who made the log could know which matches these will be.
        Choice::Count(count) => Some(Sample::of(schedule, count, secrets::random_value()?)),
        Choice::Top => audit.report.as_ref().map(Sample::top),
    })
}

/// Returns what every draw came from.
fn root(
    reader: &mut LogReader,
    announcement: &Announcement,
    tournament: TournamentId,
) -> Result<Root, CliError> {
    let committed = match &announcement.draws {
        Draws::PublicSeed(seed) => return Ok(Root::Seed(*seed)),
        draws @ Draws::Committed(_) => draws,
    };
    let draw = match committed.need_draw_entry() {
        true => match entry(reader, 1)? {
            Entry::Draw(draw) => Some(draw),
            _ => return Err(not_there(reader, "a draw in entry 1")),
        },
        false => None,
    };
    let last = reader.head().size.saturating_sub(1);
    let secret = match entry(reader, last)? {
        Entry::Reveal(reveal) => reveal.secret,
        _ => None,
    };
    let secret = secret.ok_or_else(|| not_there(reader, "the secret in the last entry"))?;
    Ok(draws::master(&secret, tournament, draw.as_ref()))
}

fn entry(reader: &mut LogReader, index: u64) -> Result<Entry, CliError> {
    let log = reader.folder().to_owned();
    let record = reader.get(index).map_err(|error| reading::complain(&log, &error))?;
    Entry::decode(record.entry)
        .map_err(|error| reading::complain(&log, &format!("entry {index}: {error}")))
}

/// The audit found it, so the log has changed since.
fn not_there(reader: &LogReader, what: &str) -> CliError {
    let fact = format!("{what} is not there any more");
    reading::complain(reader.folder(), &fact)
}

/// An agent that is ready to be seated.
struct Agent {
    component: LoadedAgent,
    models: Vec<ModelInfo>,
    training: Option<TrainingMode>,
}

/// Loads the components of all agents. One that the sandbox refuses is a finding: it cannot
/// have played.
fn load(
    reader: &LogReader,
    announcement: &Announcement,
    config: &TournamentConfig,
    sandbox: &Sandbox,
) -> Result<Result<Vec<Agent>, Finding>, CliError> {
    let mut loaded: BTreeMap<[u8; 32], LoadedAgent> = BTreeMap::new();
    let mut agents = Vec::with_capacity(announcement.agents.len());
    for (announced, configured) in announcement.agents.iter().zip(&config.agents) {
        let hash = announced.component_sha256;
        let component = match loaded.get(&hash) {
            Some(component) => component.clone(),
            None => {
                let bytes = blob(reader, hash, files::COMPONENT_BYTES_MAX)?;
                match sandbox::load(sandbox, &format!("agent `{}`", announced.name), &bytes) {
                    Ok(component) => component,
                    Err(CliError::Input(complaint)) => {
                        let what = format!("the component of agent `{}`", announced.name);
                        let found = format!("refused: {}", complaint.facts.join("; "));
                        return Ok(Err(Finding::new(what, found, "one that the sandbox takes")));
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        loaded.insert(hash, component.clone());
        let granted = |name: &String| announcement.models.iter().find(|model| model.name == *name);
        let models = configured.models.iter().filter_map(granted).map(info).collect();
        let training = preparation::training(configured.training);
        agents.push(Agent { component, models, training });
    }
    Ok(Ok(agents))
}

fn info(model: &ModelEntry) -> ModelInfo {
    let ModelEntry { name, context_tokens, sha256, engine } = model.clone();
    ModelInfo { name, context_tokens, sha256, engine }
}

fn blob(reader: &LogReader, hash: [u8; 32], bytes_max: u64) -> Result<Vec<u8>, CliError> {
    let found = reader.blob(&Hash(hash), bytes_max);
    let found = found.map_err(|error| reading::complain(reader.folder(), &error))?;
    found.ok_or_else(|| not_there(reader, &format!("the blob {}", Hash(hash))))
}

/// Everything that matches are run again with.
struct Stage<'a> {
    /// The head that was audited.
    head: &'a Head,
    announcement: &'a Announcement,
    config: &'a TournamentConfig,
    sandbox: &'a Sandbox,
    agents: &'a [Agent],
}

impl Stage<'_> {
    fn replay(
        &self,
        reader: &mut LogReader,
        sample: &Sample,
        root: Root,
        workers: NonZeroUsize,
    ) -> Result<Outcome, CliError> {
        let bytes = blob(reader, self.announcement.catalog_sha256, files::CATALOG_BYTES_MAX)?;
        let catalog =
            Catalog::decode(&bytes).map_err(|error| reading::complain(reader.folder(), &error))?;
        let schedule = schedule(reader.folder(), self.announcement, self.config)?;
        let rules = Rules::new(&self.config.rules, &self.config.limits);
        let seats = |request: SeatRequest, calls: &[ModelCall]| self.seat(request, calls);
        let job = Reexecution {
            announcement: self.announcement,
            config: self.config,
            rules: &rules,
            schedule: &schedule,
            catalog: &catalog,
            root,
            workers,
            seats: &seats,
        };
        let mut chosen = Chosen::new(reader, sample, self.head);
        let mut replays = Replays::default();
        let total = size(sample, schedule.match_count());
        let mut advance = Advance::new("run again", "match", total);
        let outcome =
            arena_runner::reexecution::reexecute(&job, &mut || chosen.next(), &mut |replayed| {
                replays.add(replayed);
                advance.show(replays.match_count(), total);
            });
        drop(advance);
        outcome.map_err(|error| {
            CliError::Infrastructure(Complaint::new("cannot run the agents again", error))
        })?;
        match chosen.failure {
            Some(failure) => Err(failure),
            None => Ok(replays.conclude(self.announcement, sample, chosen.void_count)),
        }
    }

    fn seat(
        &self,
        request: SeatRequest,
        calls: &[ModelCall],
    ) -> Result<Box<dyn Seat + '_>, SeatError> {
        let agent = &self.agents[usize::from(request.agent)];
        let calls: Arc<[ModelCall]> =
            if agent.models.is_empty() { [].into() } else { calls.into() };
        let recorded = |info: &ModelInfo| {
            Arc::new(Recorded::new(info.clone(), Arc::clone(&calls))) as Arc<dyn LanguageModel>
        };
        let models = agent.models.iter().map(recorded).collect();
        let grants = Grants { models, training: agent.training };
        Ok(Box::new(self.sandbox.seat(&agent.component, &grants, request.seed)?))
    }
}

/// Returns how many matches are chosen, where that is known before they are read.
pub fn size(sample: &Sample, match_count: u64) -> u64 {
    match sample {
        Sample::Drawn(places) => places.len() as u64,
        Sample::All | Sample::Agents(_) => match_count,
    }
}

/// The chosen matches of a log, one after the other.
pub struct Chosen<'a> {
    reader: &'a mut LogReader,
    sample: &'a Sample,
    head: &'a Head,
    /// The tree of the entries that were read: they must be those that were audited.
    tree: Frontier,
    void_count: u64,
    /// Why there was no next match before the end.
    pub failure: Option<CliError>,
}

impl<'a> Chosen<'a> {
    /// Begins with a log's first entry. The entries must be those that were audited up to `head`.
    pub fn new(reader: &'a mut LogReader, sample: &'a Sample, head: &'a Head) -> Chosen<'a> {
        Chosen { reader, sample, head, tree: Frontier::new(), void_count: 0, failure: None }
    }

    /// Returns the next match; `None` at the end, or where that is told by `failure`.
    pub fn next(&mut self) -> Option<Task> {
        match self.find() {
            Ok(task) => task,
            Err(error) => {
                self.failure = Some(error);
                None
            }
        }
    }

    fn find(&mut self) -> Result<Option<Task>, CliError> {
        let log = self.reader.folder().to_owned();
        // Every pass reads an entry, and a log has an end.
        loop {
            let record = match self.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return self.end(&log).map(|()| None),
                Err(error) => return Err(reading::complain(&log, &error)),
            };
            let entry_index = record.index;
            self.tree.append(Hash::leaf(record.entry));
            let played = match Entry::decode(record.entry) {
                Ok(Entry::Match(played)) => played,
                Ok(Entry::Void(_)) => {
                    self.void_count += 1;
                    continue;
                }
                Ok(_) => continue,
                Err(error) => {
                    return Err(reading::complain(&log, &format!("entry {entry_index}: {error}")));
                }
            };
            if self.sample.contains(played.pair_index, played.leg, played.agents) {
                let Some(transcript) = record.attachment.map(<[u8]>::to_vec) else {
                    let fact = format!("entry {entry_index}: its transcript is withheld");
                    return Err(reading::complain(&log, &fact));
                };
                return Ok(Some(Task { entry_index, entry: played, transcript }));
            }
        }
    }

    /// Whoever has the folder could have put other entries there since they were audited.
    fn end(&self, log: &Path) -> Result<(), CliError> {
        let (found, wanted) = (self.tree.root(), self.head.root);
        if (self.tree.size(), found) == (self.head.size, wanted) {
            return Ok(());
        }
        let fact =
            format!("it changed while it was audited: the root is {found}, audited was {wanted}");
        Err(reading::complain(log, &fact))
    }
}

#[cfg(test)]
mod tests {
    use arena_core::entry::Close;
    use arena_log::key::SigningKey;
    use arena_log::writer::{LogSettings, LogWriter, Record};

    use super::*;

    #[test]
    fn entries_that_were_not_audited_are_not_run() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (origin, key) = ("arena.test/log".to_owned(), SigningKey::from_seed([1; 32]));
        let settings = LogSettings { origin, key, checkpoint_every: 256 };
        let mut writer = LogWriter::create(folder.path(), settings).expect("a new log");
        let tournament = TournamentId([0; 32]);
        let close = Entry::Close(Close { tournament, match_count: 0, void_count: 0 }).encode();
        writer.append_all(&[Record { entry: &close, attachment: &[] }]).expect("it is written");
        let audited = writer.checkpoint().expect("it is signed");
        writer.publish().expect("it is published");

        let run = |head: &Head| {
            let mut reader = LogReader::open(folder.path(), Access::Public).expect("a log");
            let mut chosen = Chosen::new(&mut reader, &Sample::All, head);
            assert_eq!(chosen.next(), None, "there is no match");
            chosen.failure.map(|failure| failure.complaint().expect("one").facts.join("; "))
        };
        assert_eq!(run(&audited), None);
        for other in [Head { size: 2, ..audited.clone() }, Head { root: Hash([7; 32]), ..audited }]
        {
            let fact = run(&other).expect("a failure");
            assert!(fact.contains("it changed while it was audited"), "{fact}");
        }
    }

    #[test]
    fn another_engine_is_told_by_its_line_and_both_values() {
        let own = "engine=one 1\ntarget=a\n";
        assert_eq!(other_engine(own, own), None);
        for (announced, pieces) in [
            ("engine=one 2\ntarget=a\n", ["`engine=one 2`", "`engine=one 1`"]),
            ("engine=one 1\ntarget=b\n", ["`target=b`", "`target=a`"]),
            ("engine=one 1\n", ["`nothing`", "`target=a`"]),
            ("engine=one 1\ntarget=a\nmore=c\n", ["`more=c`", "`nothing`"]),
        ] {
            let reason = other_engine(announced, own).expect("another engine");
            assert!(pieces.iter().all(|piece| reason.contains(piece)), "{reason}");
        }
    }
}
