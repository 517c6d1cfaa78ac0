//! Reads a log once and has the calls of its chosen matches scored, several matches at a time.
//!
//! Matches are read, entered and complained about in the order of the log, so that how many are
//! scored at once shows nowhere but in the time that it takes.
//!
//! Not here: which models score, and what the scores show.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};

use arena_audit::Finding;
use arena_audit::rescore::{MatchScores, RescoreError};
use arena_audit::sample::Sample;
use arena_core::entry::TournamentId;
use arena_core::record::MatchRecord;
use arena_core::seat::{SampledToken, Sampling};
use arena_llm::model::ModelError;
use arena_log::checkpoint::Head;
use arena_log::reader::{Access, LogReader};
use arena_model::engine::{Engine, ScoreRequest};

use super::Subject;
use crate::advance::Advance;
use crate::error::{CliError, Complaint};
use crate::reading;
use crate::reexecution::{Chosen, size};

/// Most matches that are scored at once: that many calls at most are in the engine's batch, and
/// that many records in memory.
const MATCHES_AT_ONCE_MAX: usize = 16;

/// One reading of the log.
pub struct Pass<'a> {
    /// The log's folder.
    pub log: &'a Path,
    /// The head that was audited.
    pub head: &'a Head,
    /// The tournament that was announced.
    pub tournament: TournamentId,
    /// Which matches are scored.
    pub sample: &'a Sample,
    /// Matches of the whole tournament.
    pub match_count: u64,
}

/// A match to be scored.
struct Task {
    entry_index: u64,
    record: MatchRecord,
}

/// Why a match's calls have no scores.
enum Unscored {
    /// No model can have written the reply.
    Finding(Finding),
    /// It cannot be said.
    Failure(CliError),
}

/// What came of a match: the scores of each subject that has an engine, by its place.
type Found = Result<Vec<(usize, MatchScores)>, Unscored>;

impl Pass<'_> {
    /// Scores the calls of the chosen matches, and returns how many matches that were, or the first
    /// call that no model can have answered.
    ///
    /// # Errors
    /// The log cannot be read any more, or the machine failed.
    pub fn score(&self, subjects: &mut [Subject]) -> Result<Result<u64, Finding>, CliError> {
        if subjects.iter().all(|subject| subject.engine.is_err()) {
            return Ok(Ok(0));
        }
        let mut reader = LogReader::open(self.log, Access::Public)
            .map_err(|error| reading::complain(self.log, &error))?;
        let mut chosen = Chosen::new(&mut reader, self.sample, self.head);
        let total = size(self.sample, self.match_count);
        let mut advance = Advance::new("scored", "match", total);
        let mut done = 0;
        // Every pass takes matches of the log, or ends.
        loop {
            let tasks = self.next_tasks(&mut chosen)?;
            if tasks.is_empty() {
                return Ok(Ok(done));
            }
            for found in score_at_once(subjects, &tasks)? {
                let found = match found {
                    Ok(found) => found,
                    Err(Unscored::Finding(finding)) => return Ok(Err(finding)),
                    Err(Unscored::Failure(failure)) => return Err(failure),
                };
                found.iter().for_each(|(place, scores)| subjects[*place].rescoring.add(scores));
                done += 1;
                advance.show(done, total);
            }
        }
    }

    /// Reads the next matches; none at the end.
    fn next_tasks(&self, chosen: &mut Chosen<'_>) -> Result<Vec<Task>, CliError> {
        let mut tasks = Vec::with_capacity(MATCHES_AT_ONCE_MAX);
        while tasks.len() < MATCHES_AT_ONCE_MAX {
            let Some(task) = chosen.next() else { break };
            let entry_index = task.entry_index;
            let read = reading::read_transcript(self.tournament, &task.entry, &task.transcript);
            let record = read.map_err(|fact| {
                reading::complain(self.log, &format!("entry {entry_index}: {fact}"))
            })?;
            tasks.push(Task { entry_index, record });
        }
        match chosen.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(tasks),
        }
    }
}

/// Scores matches, each on a thread of its own, and returns what came of them in their order.
fn score_at_once(subjects: &[Subject], tasks: &[Task]) -> Result<Vec<Found>, CliError> {
    let join = |thread: ScopedJoinHandle<'_, Found>| match thread.join() {
        Ok(found) => found,
        Err(panic) => resume_unwind(panic),
    };
    thread::scope(|scope| {
        let spawn = |task| {
            let thread = thread::Builder::new().name("arena-score".to_owned());
            thread.spawn_scoped(scope, move || score_match(subjects, task))
        };
        let threads: Result<Vec<_>, _> = tasks.iter().map(spawn).collect();
        let threads = threads.map_err(|error| {
            CliError::Infrastructure(Complaint::new("cannot start a thread that scores", error))
        })?;
        Ok(threads.into_iter().map(join).collect())
    })
}

fn score_match(subjects: &[Subject], task: &Task) -> Found {
    let mut found = Vec::with_capacity(subjects.len());
    for (place, Subject { name, engine, rescoring }) in subjects.iter().enumerate() {
        let Ok(engine) = engine else { continue };
        // Tokens that the model does not have, or more than its context holds, are the log's
        // mistake and not this machine's.
        let refused = Cell::new(false);
        let score = |prompt: &[u32], output: &[u32]| score(engine, prompt, output, &refused);
        let error = match rescoring.score(&task.record, &score) {
            Ok(scores) => {
                found.push((place, scores));
                continue;
            }
            Err(error) => error,
        };
        if refused.get() || matches!(error, RescoreError::Prompt { .. }) {
            let what = format!("a reply of `{name}`");
            let finding = Finding::new(what, error, "one that the model can have written");
            return Err(Unscored::Finding(finding.at(task.entry_index)));
        }
        let failed = format!("cannot score entry {} again", task.entry_index);
        return Err(Unscored::Failure(CliError::Infrastructure(Complaint::new(failed, error))));
    }
    Ok(found)
}

/// Scores a reply under the model's own distribution: temperature 1, nothing cut. Sets `refused`
/// where the tokens cannot be the model's.
fn score(
    engine: &Engine,
    prompt: &[u32],
    output: &[u32],
    refused: &Cell<bool>,
) -> Result<Vec<SampledToken>, String> {
    if output.is_empty() {
        return Ok(Vec::new());
    }
    let request = ScoreRequest {
        prompt: prompt.to_vec(),
        output: output.to_vec(),
        sampling: Sampling { temperature_milli: 1_000, ..Sampling::GREEDY },
        grammar: None,
    };
    engine.score(&request).map_err(|error| {
        refused.set(matches!(error, ModelError::InvalidInput(_)));
        error.to_string()
    })
}
