//! Whether recorded replies can be what a language model said: holds recorded scores against those
//! that the same model gives to the same tokens now.
//!
//! A model that reads a prompt and its reply at once says of each token how likely it was. Where
//! the recorded tokens are the model's, both figures are the same up to rounding: different
//! devices, kernels and batches round differently, so equal bits are counted and never asked for.
//! Other weights, coarser ones or edited text show in the differences.
//!
//! Not here: engines, and which calls to look at. Memory does not grow with what is scored.

use std::fmt;

use arena_core::dialogue;
use arena_core::record::MatchRecord;
use arena_core::scenario::Role;
use arena_core::seat::{ModelCall, SampledToken};

/// Fewest tokens on which a statement stands. In published experiments, weights of 4 bits show in
/// some 300 tokens (Token-DiFR, arXiv 2511.20621); smaller changes need thousands.
pub const TOKENS_MIN: u64 = 300;
/// Highest median of the differences, in millionths, that the rounding of another device explains.
pub const MEDIAN_MICRO_ALIKE: u64 = 10_000;
/// Lowest median that it does not explain.
pub const MEDIAN_MICRO_UNLIKE: u64 = 50_000;
/// Highest 99th percentile of the differences, in millionths, that rounding explains.
pub const P99_MICRO_ALIKE: u64 = 250_000;
/// Lowest 99th percentile that it does not explain.
pub const P99_MICRO_UNLIKE: u64 = 1_000_000;
/// Most tokens of a thousand that may miss the likeliest place although the likeliest was to be
/// taken. At temperature 0, more than 98 % of tokens come out equal elsewhere (Token-DiFR).
pub const MISSES_MILLI_ALIKE: u64 = 10;
/// Fewest misses of a thousand that near ties do not explain.
pub const MISSES_MILLI_UNLIKE: u64 = 50;
/// How far below the likeliest token one may be that ties with it, in millionths.
pub const TIE_MICRO: i64 = 50_000;
/// A single difference that no rounding makes, in millionths, for a token that is certain. For an
/// unlikely one, an eighth of its logarithm comes on top.
pub const GROSS_MICRO: u64 = 2_000_000;

/// Gives the scores of a reply's tokens behind a prompt, computed anew by the model whose calls
/// are looked at: one for each token, with its id.
pub type Scorer<'a> = dyn Fn(&[u32], &[u32]) -> Result<Vec<SampledToken>, String> + 'a;

/// What was compared of one agent's calls, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// Calls that were scored again.
    pub calls: u64,
    /// Calls that hold no tokens, so that nothing can be said about them.
    pub calls_without_tokens: u64,
    /// Tokens of replies that were scored again.
    pub tokens: u64,
    /// Tokens whose score came out equal to the last digit.
    pub equal: u64,
    /// Tokens by their rank under the model now: the likeliest first, and last all that are not
    /// among the five likeliest.
    pub ranks: [u64; 6],
    /// Tokens of calls in which the likeliest token was to be taken and no grammar bound it.
    pub greedy: u64,
    /// Those of them that are not the likeliest, and do not tie with it.
    pub greedy_misses: u64,
    /// Tokens whose score differs by more than any rounding.
    pub gross: u64,
    differences: Histogram,
}

/// What scores say of who wrote the replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// They are what the model says of such tokens.
    Consistent,
    /// They are not.
    Inconsistent {
        /// What does not fit, with both figures.
        because: String,
    },
    /// It cannot be said.
    None {
        /// Why not.
        because: String,
    },
}

/// Why calls cannot be scored again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RescoreError {
    /// The record says of a prompt that it repeats what is not there.
    Prompt {
        /// Whose call it is.
        role: Role,
        /// Which of the seat's calls, from 0.
        call_index: usize,
    },
    /// The engine failed.
    Engine {
        /// What it says.
        detail: String,
    },
    /// The engine scored other tokens than those that it was given.
    Mismatch {
        /// Tokens of the reply.
        asked: usize,
        /// Tokens that it scored.
        scored: usize,
    },
}

impl fmt::Display for RescoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RescoreError::Prompt { role, call_index } => {
                write!(f, "the prompt of model call {call_index} of the {role} is not whole")
            }
            RescoreError::Engine { detail } => write!(f, "the engine failed: {detail}"),
            RescoreError::Mismatch { asked, scored } => {
                write!(f, "the engine was asked for scores of `{asked}` tokens, gave `{scored}`")
            }
        }
    }
}

impl std::error::Error for RescoreError {}

/// What came of one match's calls of a model, by the seats' roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchScores {
    agents: [u16; 2],
    of_roles: [Scores; 2],
}

/// The comparison of one model's calls, of each agent and of all together.
#[derive(Clone, Debug)]
pub struct Rescoring {
    model: String,
    agents: Vec<Scores>,
    all: Scores,
}

impl Rescoring {
    /// Begins a comparison of the calls of `model` in a tournament of so many agents.
    pub fn new(model: &str, agent_count: usize) -> Rescoring {
        let agents = vec![Scores::default(); agent_count];
        Rescoring { model: model.to_owned(), agents, all: Scores::default() }
    }

    /// Scores a match's calls of the model again. Several matches may be scored at once.
    ///
    /// # Errors
    /// See [`RescoreError`].
    pub fn score(
        &self,
        record: &MatchRecord,
        score: &Scorer<'_>,
    ) -> Result<MatchScores, RescoreError> {
        let mut of_roles = [Scores::default(), Scores::default()];
        for role in Role::BOTH {
            let calls = &record.usage[role.index()].model_calls;
            let of_model = |(_, call): &(usize, &ModelCall)| call.model == self.model;
            for (call_index, _) in calls.iter().enumerate().filter(of_model) {
                let prompt = || RescoreError::Prompt { role, call_index };
                add_call(&mut of_roles[role.index()], calls, call_index, score, prompt)?;
            }
        }
        Ok(MatchScores { agents: record.agents, of_roles })
    }

    /// Adds what came of a match. All orders come to the same.
    ///
    /// # Panics
    /// If the match's record names an agent beyond the number of agents.
    pub fn add(&mut self, found: &MatchScores) {
        for (agent, scores) in found.agents.iter().zip(&found.of_roles) {
            self.agents[usize::from(*agent)].merge(scores);
            self.all.merge(scores);
        }
    }

    /// Returns what was compared, by the agents' places in the announcement.
    pub fn agents(&self) -> &[Scores] {
        &self.agents
    }

    /// Returns what was compared of all agents.
    pub fn all(&self) -> &Scores {
        &self.all
    }
}

fn add_call(
    scores: &mut Scores,
    calls: &[ModelCall],
    number: usize,
    score: &Scorer<'_>,
    broken: impl Fn() -> RescoreError,
) -> Result<(), RescoreError> {
    let call = &calls[number];
    let Some(tokens) = &call.tokens else {
        scores.calls_without_tokens += 1;
        return Ok(());
    };
    let prompt = dialogue::prompt(calls, number).ok_or_else(broken)?;
    let output: Vec<u32> = tokens.output.iter().map(|token| token.id).collect();
    let again = score(&prompt, &output).map_err(|detail| RescoreError::Engine { detail })?;
    if !again.iter().map(|token| token.id).eq(output.iter().copied()) {
        return Err(RescoreError::Mismatch { asked: output.len(), scored: again.len() });
    }
    scores.calls += 1;
    let is_greedy = call.sampling.temperature_milli == 0 && !call.is_grammar_bound;
    for (recorded, again) in tokens.output.iter().zip(&again) {
        scores.add(recorded, again, is_greedy);
    }
    Ok(())
}

impl Scores {
    fn add(&mut self, recorded: &SampledToken, again: &SampledToken, is_greedy: bool) {
        let difference = u64::from(recorded.logprob_micro.abs_diff(again.logprob_micro));
        self.tokens += 1;
        self.equal += u64::from(difference == 0);
        self.differences.add(difference);
        let likelier = recorded.logprob_micro.max(again.logprob_micro).unsigned_abs();
        self.gross += u64::from(difference > GROSS_MICRO + u64::from(likelier) / 8);
        let place = again.top.iter().position(|score| score.id == again.id);
        self.ranks[place.unwrap_or(5).min(5)] += 1;
        if is_greedy {
            self.greedy += 1;
            let likeliest = again.top.first().map_or(0, |score| i64::from(score.logprob_micro));
            let below = likeliest - i64::from(again.logprob_micro);
            self.greedy_misses += u64::from(below > TIE_MICRO);
        }
    }

    fn merge(&mut self, other: &Scores) {
        self.calls += other.calls;
        self.calls_without_tokens += other.calls_without_tokens;
        self.tokens += other.tokens;
        self.equal += other.equal;
        for (rank, more) in self.ranks.iter_mut().zip(other.ranks) {
            *rank += more;
        }
        self.greedy += other.greedy;
        self.greedy_misses += other.greedy_misses;
        self.gross += other.gross;
        self.differences.merge(&other.differences);
    }

    /// Returns the difference, in millionths of the natural logarithm, that `milli` of a thousand
    /// tokens do not exceed, at most 4 % too high; `None` without tokens.
    pub fn difference_micro(&self, milli: u64) -> Option<u64> {
        self.differences.quantile(milli)
    }

    /// Says what the scores show.
    pub fn statement(&self) -> Statement {
        if self.gross > 0 {
            let because = format!(
                "{} of {} tokens differ by more than any rounding",
                self.gross, self.tokens
            );
            return Statement::Inconsistent { because };
        }
        if self.tokens < TOKENS_MIN {
            let because = format!("{} tokens are too few, it takes {TOKENS_MIN}", self.tokens);
            return Statement::None { because };
        }
        let measures = self.measures();
        if let Some(measure) = measures.iter().find(|measure| measure.found >= measure.unlike) {
            return Statement::Inconsistent { because: measure.to_string() };
        }
        if let Some(measure) = measures.iter().find(|measure| measure.found > measure.alike) {
            return Statement::None { because: measure.to_string() };
        }
        // Whoever edits a reply would leave its tokens out.
        if self.calls_without_tokens > 0 {
            let all = self.calls + self.calls_without_tokens;
            let because = format!("{} of {all} calls hold no tokens", self.calls_without_tokens);
            return Statement::None { because };
        }
        Statement::Consistent
    }

    fn measures(&self) -> [Measure; 3] {
        let difference = |milli| self.difference_micro(milli).unwrap_or(0);
        [
            Measure {
                what: "the median difference in millionths",
                found: difference(500),
                alike: MEDIAN_MICRO_ALIKE,
                unlike: MEDIAN_MICRO_UNLIKE,
            },
            Measure {
                what: "the 99th percentile of the differences in millionths",
                found: difference(990),
                alike: P99_MICRO_ALIKE,
                unlike: P99_MICRO_UNLIKE,
            },
            Measure {
                what: "how many of a thousand tokens are not the likeliest as they should be",
                found: (self.greedy_misses * 1_000).checked_div(self.greedy).unwrap_or(0),
                alike: MISSES_MILLI_ALIKE,
                unlike: MISSES_MILLI_UNLIKE,
            },
        ]
    }
}

/// A figure with what may be and what may not.
struct Measure {
    what: &'static str,
    found: u64,
    alike: u64,
    unlike: u64,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measure { what, found, alike, unlike } = self;
        write!(f, "{what}: {found}, up to {alike} is alike and from {unlike} on is not")
    }
}

/// Bits of a value, below its highest one, that its place in a histogram keeps.
const PLACE_BITS: u32 = 5;

/// Counts of values up to 2^32 in places that are at most 4 % wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    fn add(&mut self, value: u64) {
        let place = place(value);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.total += 1;
    }

    fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// Returns the highest value of the place in which the quantile lies.
    fn quantile(&self, milli: u64) -> Option<u64> {
        let needed = (self.total * milli).div_ceil(1_000).max(1);
        let mut before = 0;
        let reached = self.counts.iter().position(|count| {
            before += count;
            before >= needed
        });
        reached.map(highest)
    }
}

/// Returns the place of a value: itself while it is small, then its highest bits.
fn place(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PLACE_BITS + 1);
    ((value >> shift) as usize) + ((shift as usize) << PLACE_BITS)
}

/// Returns the highest value of a place.
fn highest(place: usize) -> u64 {
    let shift = (place >> PLACE_BITS).saturating_sub(1);
    let kept = (place - (shift << PLACE_BITS)) as u64;
    ((kept + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_holds_values_that_differ_by_little() {
        for value in (0..10_000).chain([u64::from(u32::MAX), 1 << 31, (1 << 31) - 1]) {
            let top = highest(place(value));
            assert!(top >= value && top <= value + value / 32, "{value} is in a place up to {top}");
            assert_eq!(place(top), place(value));
            assert_eq!(place(top + 1), place(value) + 1, "places follow each other");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(500), None);
        (0..=50).for_each(|value| histogram.add(value));
        assert_eq!(histogram.quantile(0), Some(0));
        assert_eq!(histogram.quantile(500), Some(25));
        assert_eq!(histogram.quantile(1_000), Some(50));
    }
}
