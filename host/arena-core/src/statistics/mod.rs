//! Sums over pairs, and what can be said from them with how much certainty.
//!
//! A [`Tally`] takes each pair once, in any order, and keeps sums only: its memory depends on
//! the agents, the pairings between them and at most [`BLOCKS_MAX`] blocks, never on how many
//! pairs there are.
//!
//! The unit of resampling is the *block*: all pairs whose item has the same number modulo the
//! block count. A pair is never split, so scenario luck cancels inside it, and role advantage where
//! it has two legs; pairs on the same item share budget, cost and list price, so they are drawn
//! together, and with them all repetitions that share a scenario. This is a cluster bootstrap
//! (Davison and Hinkley 1997, section 3.8; Field and Welsh 2007). Resampling single matches instead
//! would count one lucky item once for every pairing that met it, and print intervals that are too
//! narrow. With up to as many items as blocks, a block is an item. Everything is conditional on the
//! field: other opponents would give other means.
//!
//! Where candidates take one role only, a pair has one leg. Agents of one side are then compared as
//! ever, paired on blocks. What the side is worth cannot be told from who sits on it, so neither is
//! it estimated nor are agents of two sides compared.
//!
//! Not here: layout (`arena`), formulas of a single match (`score`).

pub mod bootstrap;
pub mod bradley_terry;
pub mod compare;
pub mod fragility;
pub mod inference;
pub mod metric;
pub mod reference;
pub mod special;

use std::collections::BTreeMap;
use std::fmt;

use crate::config::Roles;
use crate::fault::{Fault, VoidReason};
use crate::record::{MatchRecord, Outcome, VoidRecord};
use crate::scenario::Role;
use crate::score::{SeatMeasures, measure};
use fragility::PairSums;
use metric::{Mean, Metrics};
use reference::Scenarios;

/// The most blocks that are kept.
pub const BLOCKS_MAX: usize = 1_024;

/// The fewest blocks that a tally is ready to keep, however many agents there are.
pub const BLOCKS_MIN: usize = 32;

/// Pairings times blocks above which fewer blocks are kept, so that a large field does not
/// take gigabytes.
pub const CELLS_MAX: usize = 1 << 20;

/// Everything that a report needs of the pairs played.
#[derive(Clone, Debug)]
pub struct Tally {
    roles: Roles,
    seed: u64,
    block_count: usize,
    pair_count: u64,
    agents: Vec<AgentTally>,
    pairings: BTreeMap<(u16, u16), Pairing>,
    voids: BTreeMap<VoidReason, u64>,
    scenarios: Scenarios,
    /// Whether a pair fell into each block; blocks beyond the end are empty.
    blocks_present: Vec<bool>,
}

/// What is kept of one agent.
#[derive(Clone, Debug, Default)]
pub struct AgentTally {
    /// Means as buyer and as seller.
    pub roles: [Metrics; 2],
    /// Matches lost by each fault, in the order of [`Fault::ALL`].
    pub faults: [u64; Fault::ALL.len()],
    /// Matches ended by a penalised move.
    pub violations: u64,
    /// Sums per block; blocks beyond the end are empty.
    blocks: Vec<BlockSums>,
}

/// What is kept of one agent in one block, by role.
#[derive(Clone, Copy, Debug, Default)]
struct BlockSums {
    reward: [Mean; 2],
    surplus_share: [Mean; 2],
}

/// What is kept of two agents' meetings. The first has the lower number.
#[derive(Clone, Debug, Default)]
struct Pairing {
    /// Rewards by who buys (0: the lower) and role.
    rewards: [[Mean; 2]; 2],
    /// Wins per block, by who buys; blocks beyond the end are empty.
    blocks: Vec<[BlockWins; 2]>,
    /// The pairs' reward sums, for fragility.
    sums: PairSums,
}

/// Wins in the matches of one block in which one agent bought and another sold.
#[derive(Clone, Copy, Debug, Default)]
struct BlockWins {
    match_count: u32,
    /// Two for each match in which the buyer's reward was higher, one for equal rewards.
    buyer_halves: u32,
}

/// Records that are not the legs of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairError {
    /// An agent that was not announced.
    Agent {
        /// The pair's place in the schedule.
        pair_index: u64,
        /// The number found.
        found: u16,
        /// How many agents were announced.
        agent_count: usize,
    },
    /// Not leg 0 and leg 1 of one pair with the roles swapped, or not leg 0 alone where a pair has
    /// one leg.
    Legs {
        /// The first record's place in the schedule.
        pair_index: u64,
        /// How many legs a pair has.
        leg_count: u8,
    },
}

impl fmt::Display for PairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PairError::Agent { pair_index, found, agent_count } => {
                write!(f, "pair `{pair_index}`: agent `{found}` of {agent_count} does not exist")
            }
            PairError::Legs { pair_index, leg_count: 1 } => {
                write!(f, "pair `{pair_index}`: the record is not its only leg")
            }
            PairError::Legs { pair_index, .. } => {
                write!(f, "pair `{pair_index}`: the records are not its two legs, roles swapped")
            }
        }
    }
}

impl std::error::Error for PairError {}

impl Tally {
    /// Starts an empty tally for agents numbered from 0, whose pairs have as many legs as `roles`
    /// says. `seed` is [`crate::draws::Draws::resampling_seed`]; it only moves the resampling,
    /// which draws from its own streams.
    pub fn new(agent_count: usize, roles: Roles, seed: u64) -> Tally {
        let pairings = (agent_count * (agent_count + 1) / 2).max(1);
        Tally {
            roles,
            seed,
            block_count: (CELLS_MAX / pairings).clamp(BLOCKS_MIN, BLOCKS_MAX),
            pair_count: 0,
            agents: vec![AgentTally::default(); agent_count],
            pairings: BTreeMap::new(),
            voids: BTreeMap::new(),
            scenarios: Scenarios::default(),
            blocks_present: Vec::new(),
        }
    }

    /// Adds a finished pair: leg 0, then leg 1 where there is one.
    ///
    /// # Errors
    /// The records are not the legs of one pair between announced agents. Nothing is added then.
    pub fn add_pair(&mut self, legs: &[MatchRecord]) -> Result<(), PairError> {
        let first = self.check_pair(legs)?;
        let block = first.item_index as usize % self.block_count;
        let mut rewards: Vec<[f64; 2]> = Vec::with_capacity(legs.len());
        for record in legs {
            let seats = measure(record);
            for role in Role::BOTH {
                let agent = usize::from(record.agents[role.index()]);
                self.agents[agent].add(role, block, &seats[role.index()]);
            }
            self.note_misbehaviour(record);
            rewards.push(seats.map(|seat| seat.reward));
        }
        let pairing = self.pairings.entry(ordered(first.agents)).or_default();
        pairing.add(first.agents, block, &rewards);
        self.scenarios.add(first);
        if self.blocks_present.len() <= block {
            self.blocks_present.resize(block + 1, false);
        }
        self.blocks_present[block] = true;
        self.pair_count += 1;
        Ok(())
    }

    /// Counts a voided pair.
    pub fn add_void(&mut self, void: &VoidRecord) {
        *self.voids.entry(void.reason).or_default() += 1;
    }

    /// Returns how many pairs were added.
    pub fn pair_count(&self) -> u64 {
        self.pair_count
    }

    /// Returns how many matches were added.
    pub fn match_count(&self) -> u64 {
        self.pair_count * u64::from(self.roles.leg_count())
    }

    /// Returns who buys and who sells.
    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// Returns how many pairs were voided for a reason.
    pub fn void_count(&self, reason: VoidReason) -> u64 {
        self.voids.get(&reason).copied().unwrap_or(0)
    }

    /// Returns what is kept of each agent, in announcement order.
    pub fn agents(&self) -> &[AgentTally] {
        &self.agents
    }

    /// Returns the rewards of `buyer` and `seller` in the matches in which they had these
    /// roles; empty means if they never met so.
    pub fn rewards_between(&self, buyer: u16, seller: u16) -> [Mean; 2] {
        let pairing = self.pairings.get(&ordered([buyer, seller]));
        pairing.map_or([Mean::default(); 2], |found| found.rewards[orientation([buyer, seller])])
    }

    /// Returns the first leg.
    ///
    /// # Panics
    /// If there is no record.
    fn check_pair<'r>(&self, legs: &'r [MatchRecord]) -> Result<&'r MatchRecord, PairError> {
        let first = legs.first().expect("a pair has a leg");
        let agent_count = self.agents.len();
        let pair_index = first.pair_index;
        let known = |agent: &&u16| usize::from(**agent) >= agent_count;
        if let Some(found) = first.agents.iter().find(known) {
            return Err(PairError::Agent { pair_index, found: *found, agent_count });
        }
        let swapped = [first.agents[1], first.agents[0]];
        let is_second = |second: &MatchRecord| {
            let same = second.pair_index == pair_index && second.item_index == first.item_index;
            same && second.leg == 1 && second.agents == swapped
        };
        let leg_count = self.roles.leg_count();
        let are_legs = first.leg == 0
            && legs.len() == usize::from(leg_count)
            && legs[1..].iter().all(is_second);
        if are_legs { Ok(first) } else { Err(PairError::Legs { pair_index, leg_count }) }
    }

    fn note_misbehaviour(&mut self, record: &MatchRecord) {
        match record.outcome {
            Outcome::Faulted { by, fault } => {
                let agent = &mut self.agents[usize::from(record.agents[by.index()])];
                agent.faults[fault as usize] += 1;
            }
            Outcome::Violated { by, .. } => {
                self.agents[usize::from(record.agents[by.index()])].violations += 1;
            }
            _ => {}
        }
    }
}

impl AgentTally {
    /// Returns the means over both roles together.
    pub fn both_roles(&self) -> Metrics {
        let mut both = self.roles[0].clone();
        both.merge(&self.roles[1]);
        both
    }

    fn add(&mut self, role: Role, block: usize, seat: &SeatMeasures) {
        self.roles[role.index()].add(seat);
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, BlockSums::default());
        }
        let sums = &mut self.blocks[block];
        sums.reward[role.index()].add(seat.reward);
        if let Some(share) = seat.surplus_share {
            sums.surplus_share[role.index()].add(share);
        }
    }
}

impl Pairing {
    /// Adds a pair: who bought and who sold in leg 0, and the rewards of each leg by role.
    fn add(&mut self, agents: [u16; 2], block: usize, rewards: &[[f64; 2]]) {
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, Default::default());
        }
        let first = orientation(agents);
        // An agent against itself buys from itself in both legs.
        let swap = usize::from(agents[0] != agents[1]);
        let mut sums = [0.0; 2];
        for (leg, &[buyer, seller]) in rewards.iter().enumerate() {
            let buying = first ^ (leg & swap);
            self.rewards[buying][0].add(buyer);
            self.rewards[buying][1].add(seller);
            let wins = &mut self.blocks[block][buying];
            wins.match_count += 1;
            wins.buyer_halves += match buyer.total_cmp(&seller) {
                std::cmp::Ordering::Greater => 2,
                std::cmp::Ordering::Equal => 1,
                std::cmp::Ordering::Less => 0,
            };
            // The first agent buys in leg 0 and sells in leg 1.
            let [own, other] = if leg == 0 { [buyer, seller] } else { [seller, buyer] };
            sums[0] += own;
            sums[1] += other;
        }
        let by_number = [sums, [sums[1], sums[0]]];
        self.sums.add(by_number[first]);
    }
}

fn ordered(agents: [u16; 2]) -> (u16, u16) {
    (agents[0].min(agents[1]), agents[0].max(agents[1]))
}

/// Returns 0 if the agent with the lower number buys, else 1.
fn orientation(agents: [u16; 2]) -> usize {
    usize::from(agents[0] > agents[1])
}
