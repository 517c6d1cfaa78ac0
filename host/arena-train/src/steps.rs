//! What a step learns from its matches: rewards, groups, advantages, lessons.
//!
//! Everything is a pure function of the experiment, the step's number and the matches, so that an
//! auditor computes it again.
//!
//! Groups come in the order of their items, then of the learner's opponents, then of their
//! scenarios, whatever the order of the log.
//!
//! Not here: playing, and what a learner does with a lesson (`trainer`).

use std::collections::BTreeMap;
use std::fmt;

use arena_core::record::MatchRecord;
use arena_core::scenario::Role;
use arena_core::seed::{Root, Stream};

use crate::advantage::{AdvantageError, advantages};
use crate::example::{self, Example, ExampleError, Purpose, Terms};
use crate::experiment::{Experiment, POLICY};
use crate::objective::Objective;
use crate::reward::{Episode, RewardError, RewardMicro};
use crate::trainer::{Course, Lesson};

/// A match as far as advantages follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewarded {
    /// Agents by their place in the announcement: buyer, seller.
    pub agents: [u16; 2],
    /// The item by its place in the catalog.
    pub item_index: u32,
    /// Which repetition this is, from 0.
    pub repetition: u32,
    /// What it was worth.
    pub reward: RewardMicro,
}

/// What is learned from the matches of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepAdvantages {
    /// Of each match, in the order of the matches; `None` where nothing is learned from it.
    pub advantages: Vec<Option<f64>>,
    /// How many groups there are.
    pub group_count: u32,
    /// Groups that nothing is learned from.
    pub dropped_groups: u32,
    /// Groups whose rewards were all equal.
    pub level_groups: u32,
}

/// A policy as far as records are read by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyFacts {
    /// Most tokens of a sequence.
    pub context_tokens: usize,
    /// Rows of the model's embedding.
    pub vocabulary: u32,
}

/// Why nothing can be learned from a match.
#[derive(Debug)]
pub struct StepError {
    /// The match's place in the log, from 0.
    pub match_index: usize,
    /// Why.
    pub reason: StepFault,
}

/// What is wrong with a match.
#[derive(Debug)]
pub enum StepFault {
    /// It has no reward.
    Reward(RewardError),
    /// Its words cannot be learned from.
    Example(ExampleError),
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "match `{}`: ", self.match_index)?;
        match &self.reason {
            StepFault::Reward(error) => write!(f, "{error}"),
            StepFault::Example(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StepError {}

impl Experiment {
    /// Returns what a match was worth to the learner.
    ///
    /// # Errors
    /// The record does not hold what the reward is computed from.
    pub fn reward(
        &self,
        record: &MatchRecord,
        policy: PolicyFacts,
    ) -> Result<RewardMicro, RewardError> {
        let episode = Episode {
            record,
            role: self.learner.role,
            model: POLICY,
            vocabulary: policy.vocabulary,
            verdict: None,
        };
        self.train.reward.reward().of(&episode)
    }

    /// Returns the advantages of a step's matches.
    ///
    /// # Errors
    /// There are more groups, or episodes of a group, than there can be.
    pub fn advantages(
        &self,
        step: u32,
        matches: &[Rewarded],
    ) -> Result<StepAdvantages, AdvantageError> {
        let mut groups: BTreeMap<[u32; 3], Vec<usize>> = BTreeMap::new();
        for (place, played) in matches.iter().enumerate() {
            groups.entry(self.group(played)).or_default().push(place);
        }
        let mut found = StepAdvantages {
            advantages: vec![None; matches.len()],
            group_count: u32::try_from(groups.len()).unwrap_or(u32::MAX),
            ..StepAdvantages::default()
        };
        for places in groups.values_mut() {
            places.sort_by_key(|place| matches[*place].repetition);
        }
        let rewards: Vec<Vec<RewardMicro>> = groups
            .values()
            .map(|places| places.iter().map(|place| matches[*place].reward).collect())
            .collect();
        let mut computed = advantages(self.train.baseline, &rewards)?;
        if self.train.shuffle_advantages {
            computed.shuffle(&mut self.stream("train-shuffle", step));
        }
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        found.level_groups = narrow(computed.level_groups);
        found.dropped_groups = narrow(computed.dropped_count());
        for (places, values) in groups.values().zip(&computed.groups) {
            for (place, value) in places.iter().zip(values.iter().flatten()) {
                found.advantages[*place] = Some(*value);
            }
        }
        Ok(found)
    }

    /// Returns the lessons of a step: of matches in the order of the log, with their advantages.
    /// A match in which the policy said nothing teaches nothing.
    ///
    /// # Errors
    /// The policy's words in a match cannot be learned from.
    pub fn lessons(
        &self,
        records: &[MatchRecord],
        advantages: &[Option<f64>],
        policy: PolicyFacts,
    ) -> Result<Vec<Lesson>, StepError> {
        let purpose = Purpose::Reinforce { allow_cuts: self.train.allow_cuts };
        let mut lessons = Vec::new();
        for (match_index, (record, advantage)) in records.iter().zip(advantages).enumerate() {
            let Some(advantage) = *advantage else { continue };
            let examples = self.examples(match_index, record, policy, purpose)?;
            if !examples.is_empty() {
                lessons.push(Lesson { examples, advantage });
            }
        }
        Ok(lessons)
    }

    /// Returns the lessons of a teacher's demonstrations.
    ///
    /// # Errors
    /// As [`Experiment::lessons`].
    pub fn demonstrations(
        &self,
        records: &[MatchRecord],
        policy: PolicyFacts,
    ) -> Result<Vec<Lesson>, StepError> {
        let mut lessons = Vec::new();
        for (match_index, record) in records.iter().enumerate() {
            let examples = self.examples(match_index, record, policy, Purpose::Imitate)?;
            if !examples.is_empty() {
                lessons.push(Lesson { examples, advantage: 0.0 });
            }
        }
        Ok(lessons)
    }

    /// Returns the name of what matches are worth.
    pub fn reward_name(&self) -> &'static str {
        self.train.reward.reward().name()
    }

    /// Returns the name of what is minimised.
    pub fn objective_name(&self) -> &'static str {
        match self.train.loss.objective {
            Objective::Grpo { .. } => "grpo",
            Objective::Dapo { .. } => "dapo",
            Objective::DrGrpo { .. } => "dr-grpo",
            Objective::Gspo { .. } => "gspo",
            Objective::Rloo { .. } => "rloo",
            Objective::Cispo { .. } => "cispo",
            Objective::Reinforce => "reinforce",
            Objective::CrossEntropy => "cross-entropy",
        }
    }

    /// Returns how a step's lessons are learned from.
    pub fn course(&self) -> Course {
        let train = &self.train;
        Course {
            loss: train.loss,
            adam: train.adam,
            micro_batch_tokens: train.micro_batch_tokens,
            epochs: train.epochs,
            minibatches: train.minibatches,
            routing: train.routing,
        }
    }

    /// Returns the learning rate of a step, from 1.
    pub fn learning_rate(&self, step: u32) -> f64 {
        self.train.schedule.rate(step - 1)
    }

    /// Returns a stream of draws of a step.
    pub fn stream(&self, purpose: &str, step: u32) -> Stream {
        Stream::derive(Root::Seed(self.seed), purpose, &[u64::from(step)])
    }

    fn group(&self, played: &Rewarded) -> [u32; 3] {
        let opponent = match self.learner.role {
            Role::Buyer => played.agents[1],
            Role::Seller => played.agents[0],
        };
        let scenario = played.repetition / self.train.group_size;
        [played.item_index, u32::from(opponent), scenario]
    }

    fn examples(
        &self,
        match_index: usize,
        record: &MatchRecord,
        policy: PolicyFacts,
        purpose: Purpose,
    ) -> Result<Vec<Example>, StepError> {
        let terms = Terms {
            model: POLICY,
            context_tokens: policy.context_tokens,
            vocabulary: policy.vocabulary,
            purpose,
        };
        example::examples(&record.usage[self.learner.role.index()], &terms)
            .map_err(|error| StepError { match_index, reason: StepFault::Example(error) })
    }
}
