//! Evaluations: tournaments over held-out items, and the rows that are said of them.
//!
//! What an evaluation says can be computed from its log again, so a run that was killed plays only
//! what is missing.
//!
//! Not here: the statistics (`arena_train::metrics`).

use arena_core::record::MatchRecord;
use arena_core::scenario::Role;
use arena_train::experiment::{EvaluateConfig, Experiment, LEARNER, Mode, Occasion};
use arena_train::metrics::Played;
use arena_train::metrics::evaluation::{evaluate, improvement};
use arena_train::metrics::rows::EvaluationRow;
use arena_train::reward::{Episode, Reward, RewardMicro, Surplus};
use arena_train::run_folder::RunFolder;

use crate::error::{CliError, Complaint};
use crate::training::run::folder_error;

/// The file of all rows.
pub const EVALUATIONS: &str = "evaluations.jsonl";

/// A match with what it was worth to the side that is measured: always the surplus, whatever is
/// learned from.
pub struct Measured {
    record: MatchRecord,
    reward: RewardMicro,
}

/// Measures the matches of an evaluation.
pub fn measure(records: Vec<MatchRecord>, role: Role) -> Vec<Measured> {
    let worth = |record: &MatchRecord| {
        let episode = Episode { record, role, model: "", vocabulary: 0, verdict: None };
        Surplus.of(&episode).expect("every record has a surplus")
    };
    records.into_iter().map(|record| Measured { reward: worth(&record), record }).collect()
}

/// Returns the rows of an evaluation; `first` has the matches of the first one in this mode.
pub fn rows(
    experiment: &Experiment,
    config: &EvaluateConfig,
    step: u32,
    mode: Mode,
    matches: &[Measured],
    first: Option<&[Measured]>,
) -> Vec<EvaluationRow> {
    let met = experiment.met(Occasion::Evaluation { step, mode });
    let baselines = experiment.compared(Occasion::Evaluation { step, mode });
    let names = std::iter::once(LEARNER).chain(baselines.iter().map(|agent| &agent.name[..]));
    let compared_first = experiment.compared(Occasion::Evaluation { step: 0, mode }).len();
    let mut rows = Vec::new();
    for (agent, name) in names.enumerate() {
        for field in &config.fields {
            let side = |candidates: usize| Side {
                role: experiment.learner.role,
                agent,
                opponents: field
                    .opponents
                    .iter()
                    .filter_map(|place| met.iter().position(|one| one == place))
                    .map(|place| place + candidates)
                    .collect(),
            };
            let now = side(1 + baselines.len());
            let then = side(1 + compared_first);
            let seed = experiment.seed;
            rows.push(EvaluationRow {
                step,
                agent: name.to_owned(),
                field: field.name.clone(),
                mode: mode.name().to_owned(),
                measures: evaluate(now.of(matches), seed),
                improvement: first.map(|first| improvement(then.of(first), now.of(matches), seed)),
            });
        }
    }
    rows
}

/// One agent against some others, by their places in the announcement.
struct Side {
    role: Role,
    agent: usize,
    opponents: Vec<usize>,
}

impl Side {
    fn of<'m>(&self, matches: &'m [Measured]) -> Vec<Played<'m>> {
        let is_of = |measured: &&Measured| {
            let agents = measured.record.agents.map(usize::from);
            let (own, other) = (agents[self.role.index()], agents[self.role.other().index()]);
            own == self.agent && self.opponents.contains(&other)
        };
        let played = matches.iter().filter(is_of).map(|measured| Played {
            record: &measured.record,
            role: self.role,
            reward: measured.reward,
        });
        played.collect()
    }
}

/// Reads the rows that a run has.
///
/// # Errors
/// The file is damaged.
pub fn read_rows(run: &RunFolder) -> Result<Vec<EvaluationRow>, CliError> {
    let text = run.read_lines(EVALUATIONS).map_err(|error| folder_error(&error))?;
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            let failed = format!("cannot read `{}`", run.path().join(EVALUATIONS).display());
            CliError::Input(Complaint::new(failed, format!("line {}: {error}", number + 1)))
        })
    };
    text.lines().enumerate().map(read).collect()
}

/// Writes all rows.
///
/// # Errors
/// The disk failed.
pub fn write_rows(run: &RunFolder, rows: &[EvaluationRow]) -> Result<(), CliError> {
    let mut text = String::new();
    for row in rows {
        text.push_str(&serde_json::to_string(row).expect("a row is plain numbers"));
        text.push('\n');
    }
    run.write(EVALUATIONS, text.as_bytes()).map_err(|error| folder_error(&error))
}
