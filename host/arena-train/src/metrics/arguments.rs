//! Which turns carried an argument, and whether the opponent gave way to it.
//!
//! What counts as an argument is the trained agent's to say: for every `act` it reports the metric
//! [`ARGUMENT_METRIC`]. Nothing here reads words.
//!
//! **Argument lift.** After an own turn that the opponent answered with another offer or with a
//! rejection, the opponent has conceded (a - b)/a, a being its offer before that turn and b the one
//! after (a again if it rejected); mirrored where the opponent buys. The lift is the mean
//! concession after turns with an argument minus that after turns without, compared at the same
//! place in the dialogue (own turn 0, 1, …) and averaged over places with the weights n₁ n₀/(n₁ +
//! n₀) (Cochran 1954; Mantel and Haenszel 1959). Answers that end the match are not concessions.
//!
//! It is a comparison, not an experiment: an agent that argues where the opponent would have
//! given way anyway has a lift too.

use std::collections::BTreeMap;

use arena_core::price::Price;
use arena_core::record::MatchRecord;
use arena_core::scenario::Role;
use arena_core::statistics::metric::Mean;
use arena_core::turn::Move;

/// The metric that an agent reports once for every `act`: the number of its argument's kind from
/// 1, or 0 without one. The number itself, not thousandths of it.
pub const ARGUMENT_METRIC: &str = "argument";

/// Turns with and without an argument, and what came after them.
#[derive(Clone, Debug, Default)]
pub struct ArgumentTally {
    untagged_count: u64,
    argued: Mean,
    /// Concessions by place of the own turn: after turns without an argument, with one.
    concessions: BTreeMap<u32, [Mean; 2]>,
}

impl ArgumentTally {
    /// Adds a match. One whose agent did not report an argument or none for every act counts as
    /// untagged and adds nothing else.
    pub fn add(&mut self, record: &MatchRecord, role: Role) {
        let Some(tags) = tags(record, role) else {
            self.untagged_count += 1;
            return;
        };
        tags.iter().for_each(|argued| self.argued.add(if *argued { 1.0 } else { 0.0 }));
        let mut standing: Option<Price> = None;
        let mut own_turn = 0_u32;
        for (place, turn) in record.turns.iter().enumerate() {
            if turn.by != role {
                standing = offered(&turn.action).or(standing);
                continue;
            }
            let answer = record.turns.get(place + 1).filter(|answer| answer.by != role);
            let conceded = standing.zip(answer).and_then(|(before, answer)| {
                let after = match answer.action {
                    Move::Offer(price) => price,
                    Move::Reject => before,
                    Move::Accept(_) | Move::Walk => return None,
                };
                conceded(role.other(), before, after)
            });
            if let Some(conceded) = conceded {
                let cell = self.concessions.entry(own_turn).or_default();
                cell[usize::from(tags[own_turn as usize])].add(conceded);
            }
            own_turn += 1;
        }
    }

    /// Returns the share of own turns with an argument.
    pub fn share(&self) -> Option<f64> {
        self.argued.value()
    }

    /// Returns the argument lift; `None` where no place has turns of both kinds.
    pub fn lift(&self) -> Option<f64> {
        let mut lift = Mean::default();
        for [without, with] in self.concessions.values() {
            if let (Some(plain), Some(argued)) = (without.value(), with.value()) {
                let weight = with.weight * without.weight / (with.weight + without.weight);
                lift.add_weighted(argued - plain, weight);
            }
        }
        lift.value()
    }

    /// Returns how many matches said nothing about arguments.
    pub fn untagged_count(&self) -> u64 {
        self.untagged_count
    }
}

/// Returns of each delivered own turn whether it carried an argument; `None` where the reports do
/// not go with the acts.
fn tags(record: &MatchRecord, role: Role) -> Option<Vec<bool>> {
    let metrics = &record.usage[role.index()].metrics;
    let reports = metrics.iter().filter(|(name, _)| name == ARGUMENT_METRIC);
    let reported: Vec<bool> = reports.map(|(_, kind)| *kind > 0).collect();
    let mut acts = 0_usize;
    let mut tags = Vec::new();
    for turn in record.turns.iter().filter(|turn| turn.by == role) {
        acts += turn.refused.len();
        // The referee passes in place of a seat whose every move it refused.
        let is_forced =
            !turn.refused.is_empty() && turn.action == Move::Reject && turn.talk.is_empty();
        let act = if is_forced { acts.checked_sub(1)? } else { acts };
        acts += usize::from(!is_forced);
        tags.push(!is_forced && *reported.get(act)?);
    }
    // Acts of the turn that ended the match undelivered are reported too, or not.
    let undelivered = record.unfinished.len() + 1;
    (acts..=acts + undelivered).contains(&reported.len()).then_some(tags)
}

fn offered(action: &Move) -> Option<Price> {
    match action {
        Move::Offer(price) => Some(*price),
        _ => None,
    }
}

/// Returns how far `role` came from one offer to the next, as a share of the first.
fn conceded(role: Role, before: Price, after: Price) -> Option<f64> {
    let moved = match role {
        Role::Seller => before.minus(after),
        Role::Buyer => after.minus(before),
    };
    (before.cents() > 0).then(|| moved as f64 / f64::from(before.cents()))
}
