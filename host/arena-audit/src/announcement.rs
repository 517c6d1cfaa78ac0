//! What was announced, read back and held against itself.
//!
//! Entry 0 binds the announcement, a blob, by hash; the announcement holds the tournament file as
//! it stood. Whatever both say must be the same, and the complete schedule follows from it.
//!
//! Not here: the authors' statements (`submissions`), where the draws come from (`draws`).

use arena_core::announcement::{Announcement, MODEL_ENGINE_BYTES_MAX};
use arena_core::config::{CHECKPOINT_STEP, TournamentConfig, is_name, is_origin};
use arena_core::entry::{AnnouncementEntry, TournamentId};
use arena_core::hexadecimal::hex;
use arena_core::rules::Rules;
use arena_core::schedule::Schedule;
use arena_core::submission::SUBMISSION_BYTES_MAX;
use arena_log::note::Vkey;

use crate::verdict::{Finding, Findings, count};

/// Longest list of engine settings, in bytes.
pub const ENGINE_BYTES_MAX: usize = 64 << 10;

/// An announcement with what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Announced {
    pub id: TournamentId,
    pub announcement: Announcement,
    pub config: TournamentConfig,
    pub schedule: Schedule,
    pub rules: Rules,
}

impl Announced {
    /// Reads the blob that entry 0 binds.
    ///
    /// # Errors
    /// It does not decode, its tournament file is none, or no schedule follows from it.
    pub fn read(id: TournamentId, blob: &[u8]) -> Result<Announced, Finding> {
        let announcement = Announcement::decode(blob)
            .map_err(|error| Finding::new("the announcement", error, "an announcement"))?;
        let config = TournamentConfig::parse(&announcement.config_toml).map_err(|error| {
            let found = format!("{error}");
            Finding::new("the tournament file", found, "one that can be played").at(0)
        })?;
        // Everything that grows with the agents is bounded by what the file may hold.
        let counts = [
            ("the number of agents", announcement.agents.len(), config.agents.len()),
            ("the number of models", announcement.models.len(), config.models.len()),
        ];
        for (what, is, should) in counts {
            if is != should {
                return Err(Finding::new(what, is, should).at(0));
            }
        }
        let schedule = Schedule::new(&config, announcement.item_count)
            .map_err(|error| Finding::new("the schedule", error, "matches").at(0))?;
        let rules = Rules::new(&config.rules, &config.limits);
        Ok(Announced { id, announcement, config, schedule, rules })
    }

    /// Holds the announcement against entry 0, the key that signs the log, and its own file.
    pub fn check(&self, opening: &AnnouncementEntry, log: &Vkey) -> Findings {
        let mut found = Findings::default();
        check_log(&mut found, opening, log, &self.config);
        self.check_file(&mut found);
        self.check_agents(&mut found);
        self.check_models(&mut found);
        found
    }

    fn check_file(&self, found: &mut Findings) {
        let Announcement { name, pair_count, checkpoint_every, engine, .. } = &self.announcement;
        let config = &self.config;
        same(found, "the tournament's name", name, &config.name);
        same(found, "the number of pairs", pair_count, &self.schedule.pair_count());
        let every = &config.log.checkpoint_every;
        same(found, "the entries between two heads", checkpoint_every, every);
        if *checkpoint_every == 0 || !checkpoint_every.is_multiple_of(CHECKPOINT_STEP) {
            let wanted = format!("a multiple of {CHECKPOINT_STEP}");
            let what = "the entries between two heads";
            found.add(Finding::new(what, checkpoint_every, wanted).at(0));
        }
        if engine.is_empty() || engine.len() > ENGINE_BYTES_MAX {
            let wanted = format!("1 to {ENGINE_BYTES_MAX} bytes");
            let length = format!("{} bytes", engine.len());
            found.add(Finding::new("the engine's settings", length, wanted).at(0));
        }
    }

    fn check_agents(&self, found: &mut Findings) {
        let agents = &self.announcement.agents;
        for (place, (agent, given)) in agents.iter().zip(&self.config.agents).enumerate() {
            let what = |field: &str| format!("{field} of agent {place}");
            same(found, &what("the name"), &agent.name, &given.name);
            same(found, &what("the parameters"), &agent.params, &given.params);
            if !is_name(&agent.name) {
                found.add(Finding::new(what("the name"), &agent.name, "a name").at(0));
            }
            let stated = agent.submission.as_ref();
            let has = |is: bool| if is { "a statement" } else { "no statement" };
            let (is, should) = (has(stated.is_some()), has(given.submission.is_some()));
            same(found, &what("the author's statement"), &is, &should);
            if let Some(note) = stated.filter(|note| note.len() > SUBMISSION_BYTES_MAX) {
                let length = format!("{} bytes", note.len());
                let wanted = format!("at most {SUBMISSION_BYTES_MAX}");
                found.add(Finding::new(what("the author's statement"), length, wanted).at(0));
            }
        }
    }

    fn check_models(&self, found: &mut Findings) {
        let models = &self.announcement.models;
        for (place, (model, given)) in models.iter().zip(&self.config.models).enumerate() {
            same(found, &format!("the name of model {place}"), &model.name, &given.name);
            if model.engine.len() > MODEL_ENGINE_BYTES_MAX {
                let length = format!("{} bytes", model.engine.len());
                let wanted = format!("at most {MODEL_ENGINE_BYTES_MAX}");
                found.add(
                    Finding::new(format!("the engine of model {place}"), length, wanted).at(0),
                );
            }
        }
    }

    /// Says in a line what is played.
    pub fn detail(&self) -> String {
        let Announcement { name, agents, item_count, .. } = &self.announcement;
        format!(
            "`{name}`: {}, {}, {}; tournament {}",
            count(agents.len() as u64, "agent", "agents"),
            count((*item_count).into(), "item", "items"),
            count(self.schedule.match_count(), "match", "matches"),
            self.id
        )
    }
}

/// Checks that entry 0 names the log and the key that signs it.
fn check_log(
    found: &mut Findings,
    opening: &AnnouncementEntry,
    log: &Vkey,
    config: &TournamentConfig,
) {
    same(found, "the log's origin", &opening.origin.as_str(), &log.name());
    if !is_origin(&opening.origin) {
        let wanted = "printable ASCII, which nothing else looks like";
        found.add(Finding::new("the log's origin", &opening.origin, wanted).at(0));
    }
    let (announced, signing) = (hex(&opening.log_key), hex(&log.key().to_bytes()));
    same(found, "the log's key", &announced, &signing);
    if let Some(origin) = &config.log.origin {
        same(found, "the log's origin", &opening.origin, origin);
    }
}

fn same<T: PartialEq + std::fmt::Display>(found: &mut Findings, what: &str, is: &T, should: &T) {
    if is != should {
        found.add(Finding::new(what, format!("`{is}`"), format!("`{should}`")).at(0));
    }
}
