//! Who meets whom, over what and in which order: computed from an index, never listed.
//!
//! A pair is one pairing of agents over one item in one repetition, played as two legs with the
//! roles swapped, or as one leg where candidates take one role only. Pair indices count pairings
//! fastest, then items, then repetitions, so that any prefix of a log covers all items and agents
//! as evenly as it can. Within one item, a round robin goes by the circle method: neighbouring
//! pairings are disjoint.
//!
//! The schedule of 10^12 pairs takes as much memory and time per look-up as one of ten.
//!
//! Not here: what is played (`catalog::draw_scenario`) and playing it (`arena-runner`).

use std::fmt;

use crate::config::{Roles, ScheduleKind, TournamentConfig};
use crate::scenario::Role;
use crate::seed::{Root, Stream};

/// Most pairs that a schedule may hold: twice as many matches are still counted in a u64.
pub const PAIRS_MAX: u64 = u64::MAX / 2;

/// The complete order of play of a tournament.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pairings: Pairings,
    pairing_count: u64,
    item_count: u32,
    pair_count: u64,
    roles: Roles,
    scenario_group: u32,
}

/// One pair of a schedule: one or two matches over one scenario, two with the roles swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairPlan {
    /// The pair's place in the schedule, from 0.
    pub index: u64,
    /// Agents by their place in the announcement. In leg 0 the first one buys.
    pub agents: [u16; 2],
    /// The item by its place in the catalog.
    pub item_index: u32,
    /// Which repetition of the pairing on this item this is, from 0.
    pub repetition: u32,
}

impl PairPlan {
    /// Returns who sits where in a leg: buyer, seller.
    ///
    /// # Panics
    /// If `leg` is neither 0 nor 1.
    pub fn seats(&self, leg: u8) -> [u16; 2] {
        match leg {
            0 => self.agents,
            1 => [self.agents[1], self.agents[0]],
            _ => panic!("a pair has two legs"),
        }
    }
}

/// A tournament that cannot be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// More agents than records can refer to.
    TooManyAgents {
        /// How many there are.
        agent_count: usize,
    },
    /// No two agents meet.
    NoPairing {
        /// How many agents there are.
        agent_count: usize,
        /// How many of them are candidates.
        candidate_count: usize,
    },
    /// There is nothing to negotiate about.
    NoItem,
    /// Every pairing would be played zero times.
    NoRepetition,
    /// More pairs than [`PAIRS_MAX`].
    TooManyPairs {
        /// Pairings of agents.
        pairing_count: u64,
        /// Items.
        item_count: u32,
        /// Repetitions.
        repetitions: u32,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::TooManyAgents { agent_count } => {
                write!(f, "`{agent_count}` agents, a schedule holds at most `{}`", u16::MAX)
            }
            ScheduleError::NoPairing { agent_count, candidate_count } => write!(
                f,
                "no two agents meet: `{agent_count}` in all, `{candidate_count}` of them candidates"
            ),
            ScheduleError::NoItem => write!(f, "the catalog has no item to play"),
            ScheduleError::NoRepetition => {
                write!(f, "`repetitions` is `0`, at least `1` is needed")
            }
            ScheduleError::TooManyPairs { pairing_count, item_count, repetitions } => write!(
                f,
                "`{pairing_count}` pairings x `{item_count}` items x `{repetitions}` repetitions \
                 are more pairs than can be counted"
            ),
        }
    }
}

impl std::error::Error for ScheduleError {}

impl Schedule {
    /// Returns the schedule of a tournament over a catalog of `item_count` items.
    ///
    /// # Errors
    /// There is nothing to play, or more than can be counted.
    pub fn new(config: &TournamentConfig, item_count: u32) -> Result<Schedule, ScheduleError> {
        let agent_count = config.agents.len();
        if agent_count > usize::from(u16::MAX) {
            return Err(ScheduleError::TooManyAgents { agent_count });
        }
        let pairings = Pairings::new(config);
        let pairing_count = pairings.count();
        if pairing_count == 0 {
            let candidate_count = config.agents.iter().filter(|agent| agent.candidate).count();
            return Err(ScheduleError::NoPairing { agent_count, candidate_count });
        }
        if item_count == 0 {
            return Err(ScheduleError::NoItem);
        }
        let repetitions = config.repetitions;
        if repetitions == 0 {
            return Err(ScheduleError::NoRepetition);
        }
        let pair_count = pairing_count
            .checked_mul(u64::from(item_count))
            .and_then(|pairs| pairs.checked_mul(u64::from(repetitions)))
            .filter(|&pairs| pairs <= PAIRS_MAX)
            .ok_or(ScheduleError::TooManyPairs { pairing_count, item_count, repetitions })?;
        let TournamentConfig { roles, scenario_group, .. } = *config;
        Ok(Schedule { pairings, pairing_count, item_count, pair_count, roles, scenario_group })
    }

    /// Returns how many pairs are scheduled, at least 1.
    pub fn pair_count(&self) -> u64 {
        self.pair_count
    }

    /// Returns how many matches are scheduled: as many for each pair as it has legs.
    pub fn match_count(&self) -> u64 {
        self.pair_count * u64::from(self.leg_count())
    }

    /// Returns how many legs each pair has: 1 or 2.
    pub fn leg_count(&self) -> u8 {
        self.roles.leg_count()
    }

    /// Returns how many pairings of agents there are; each is played once per item and
    /// repetition.
    pub fn pairing_count(&self) -> u64 {
        self.pairing_count
    }

    /// Returns the pair at a place of the schedule.
    ///
    /// # Panics
    /// If `index` is not below [`Schedule::pair_count`].
    pub fn pair(&self, index: u64) -> PairPlan {
        assert!(index < self.pair_count, "a pair's index is below the schedule's pair count");
        let visit = index / self.pairing_count;
        let item_count = u64::from(self.item_count);
        PairPlan {
            index,
            agents: self.pairings.at(index % self.pairing_count),
            item_index: u32::try_from(visit % item_count).expect("an item's index fits"),
            repetition: u32::try_from(visit / item_count).expect("a repetition's index fits"),
        }
    }

    /// Returns the seeds of a pair's seats, as [`seat_seeds`] does, but for the seats of the field
    /// where candidates have one role: whoever meets an agent of the field over an item, in a
    /// group of repetitions, meets it with the same seed, the first draw of the stream `field` at
    /// the item, the group and the agent. What candidates, or the samples of a group, are
    /// compared by is then what they did, and not whom they met.
    pub fn seat_seeds(&self, root: Root, plan: &PairPlan) -> [[u64; 2]; 2] {
        let mut seeds = seat_seeds(root, plan.index);
        if let Some(candidate) = self.roles.of_candidates() {
            let role = candidate.other();
            let agent = plan.seats(0)[role.index()];
            let group = plan.repetition / self.scenario_group;
            let address = [plan.item_index.into(), group.into(), agent.into()];
            seeds[0][role.index()] = Stream::derive(root, "field", &address).bits();
        }
        seeds
    }
}

/// Returns the seeds of a pair's four seats: for each leg, the buyer's and the seller's. A pair of
/// one leg takes the first two, or the candidate's of them ([`Schedule::seat_seeds`]).
///
/// They are the first four draws of the stream `pair` at the pair's index, in this order. A
/// pair that was voided is played again with the same seeds.
pub fn seat_seeds(root: Root, pair_index: u64) -> [[u64; 2]; 2] {
    let mut stream = Stream::derive(root, "pair", &[pair_index]);
    // The elements of an array expression are evaluated from left to right.
    [[stream.bits(), stream.bits()], [stream.bits(), stream.bits()]]
}

/// The pairings of agents, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pairings {
    RoundRobin { agent_count: u16, self_play: bool },
    Gauntlet { candidates: Vec<u16>, field: Vec<u16>, self_play: bool, candidates_sell: bool },
}

impl Pairings {
    fn new(config: &TournamentConfig) -> Pairings {
        let numbered = || (0_u16..).zip(&config.agents);
        let chosen = |candidate: bool| {
            let matching = numbered().filter(move |(_, agent)| agent.candidate == candidate);
            matching.map(|(number, _)| number).collect::<Vec<u16>>()
        };
        let self_play = config.self_play;
        match config.schedule {
            ScheduleKind::RoundRobin => Pairings::RoundRobin {
                agent_count: u16::try_from(config.agents.len()).expect("agents are counted first"),
                self_play,
            },
            ScheduleKind::Gauntlet => Pairings::Gauntlet {
                candidates: chosen(true),
                field: chosen(false),
                self_play,
                candidates_sell: config.roles.of_candidates() == Some(Role::Seller),
            },
        }
    }

    fn count(&self) -> u64 {
        match self {
            Pairings::RoundRobin { agent_count, self_play } => {
                let agents = u64::from(*agent_count);
                let mirrored = if *self_play { agents } else { 0 };
                agents * agents.saturating_sub(1) / 2 + mirrored
            }
            Pairings::Gauntlet { candidates, field, self_play, .. } => {
                let mirrored = if *self_play { candidates.len() } else { 0 };
                (candidates.len() * field.len() + mirrored) as u64
            }
        }
    }

    /// Returns the pairing of a number below [`Pairings::count`]. Pairings of an agent with
    /// itself come last.
    fn at(&self, number: u64) -> [u16; 2] {
        match self {
            Pairings::RoundRobin { agent_count, .. } => {
                round_robin(u64::from(*agent_count), number)
            }
            Pairings::Gauntlet { candidates, field, candidates_sell, .. } => {
                let number = usize::try_from(number).expect("pairings of lists fit in memory");
                let crossed = candidates.len() * field.len();
                match number.checked_sub(crossed) {
                    // Candidates alternate fastest, so that they advance together.
                    None => {
                        let candidate = candidates[number % candidates.len()];
                        let other = field[number / candidates.len()];
                        // Who comes first buys in the first leg, which may be the only one.
                        if *candidates_sell { [other, candidate] } else { [candidate, other] }
                    }
                    Some(mirrored) => [candidates[mirrored]; 2],
                }
            }
        }
    }
}

/// Returns a pairing of the circle method, the lower number first.
///
/// The circle has an odd number of places, `ring`. In round r, the places r + d and r - d meet
/// for each distance d from 1. With an even number of agents, the last agent stands in the
/// middle and meets place r (distance 0).
fn round_robin(agent_count: u64, number: u64) -> [u16; 2] {
    let ring = if agent_count.is_multiple_of(2) { agent_count - 1 } else { agent_count };
    let per_round = agent_count / 2;
    let crossed = agent_count * (agent_count - 1) / 2;
    let (first, second) = if number >= crossed {
        (number - crossed, number - crossed)
    } else {
        let (round, place) = (number / per_round, number % per_round);
        let in_the_middle = ring < agent_count && place == 0;
        let distance = if ring < agent_count { place } else { place + 1 };
        let opposite = if in_the_middle { ring } else { (round + ring - distance) % ring };
        ((round + distance) % ring, opposite)
    };
    let narrow = |agent: u64| u16::try_from(agent).expect("an agent's number fits");
    [narrow(first.min(second)), narrow(first.max(second))]
}
