//! Rewards and metrics of one match, computed from its record.
//!
//! Everything here is a pure function of a [`MatchRecord`], so that anyone who holds the log
//! gets the same numbers. Nothing is NaN or infinite: what has no value is `None`.
//!
//! Notation: B the budget, C the cost, p the price of the deal, o₁, o₂, … a seat's own
//! delivered offers, L the list price, Z = max(|B − C|, one dollar).
//!
//! Not here: averages over matches (`statistics`), composites (nowhere: surplus and deal rate
//! are only readable side by side).

pub mod numbers;

use std::collections::BTreeSet;

use crate::fault::Fault;
use crate::price::Price;
use crate::record::{MatchRecord, Outcome, TurnRecord};
use crate::rules::breaks_reserve;
use crate::scenario::Role;
use crate::statistics::special::normal_crps;
use crate::turn::Move;
use numbers::Leak;

/// The least |B − C| that a reward is divided by, in cents. It keeps thin margins from blowing
/// the ratio up.
pub const ROOM_CENTS_MIN: i64 = 100;

/// Whether a deal is worth making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// B > C: some prices leave both better off.
    Feasible,
    /// B = C: one price leaves both where they are. Counts in neither class.
    Level,
    /// B < C: every price costs somebody; the right outcome is no deal.
    Infeasible,
}

/// Moves beyond the own reserve, by class. They are counted in every regulation mode: refused
/// attempts, the penalised move, and delivered ones. An illegal move is not one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Offers beyond the own reserve.
    pub offers: u32,
    /// Acceptances of a price beyond the own reserve.
    pub accepts: u32,
}

impl Attempts {
    /// Returns how many there are of both classes.
    pub fn total(self) -> u32 {
        self.offers.saturating_add(self.accepts)
    }
}

/// How far off stated beliefs about the opponent's reserve R were, as shares of the list price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeliefErrors {
    /// |belief − R| / L of the last belief; at least 0.
    pub last: f64,
    /// The mean of |belief − R| / L over all stated beliefs; at least 0.
    pub mean: f64,
    /// The mean continuous ranked probability score of the normal distributions that the
    /// beliefs describe, divided by L; at least 0, and |belief − R| / L when the spread is 0.
    /// Gneiting and Raftery 2007, "Strictly Proper Scoring Rules", section 4.2.
    pub crps: f64,
}

/// Everything that is measured of one seat in one match.
///
/// Sources: the reward is that of arXiv 2604.09855, mirrored for the seller; SE+, CSE+, AGR+
/// and FAGR- are those of arXiv 2605.13909 (TERMS-Bench), whose means are taken in
/// `statistics`.
#[derive(Clone, Debug, PartialEq)]
pub struct SeatMeasures {
    /// See [`reward`]; in [-1, 1].
    pub reward: f64,
    /// Whether there was a deal.
    pub deal: bool,
    /// Whether a deal was worth making.
    pub prospect: Prospect,
    /// B − C in cents where feasible, else 0: what first best would have gained.
    pub room_cents: u32,
    /// The seat's share of the surplus where feasible: (B − p)/(B − C) for the buyer,
    /// (p − C)/(B − C) for the seller, 0 without a deal. In [0, 1] between the reserves; cut to
    /// [-1, 2] beyond them, so that the two shares of a deal still add up to 1. Its mean is SE+,
    /// its mean over deals CSE+. `None` where infeasible.
    pub surplus_share: Option<f64>,
    /// Whether there was a deal where infeasible; `None` elsewhere. Its mean is FAGR-.
    pub false_agreement: Option<bool>,
    /// Where infeasible: whether the match ended without a deal and without a fault or a
    /// penalised move of this seat. `None` elsewhere.
    pub walk_away_correct: Option<bool>,
    /// The first own delivered offer.
    pub opening: Option<Price>,
    /// o₁ / own reserve; at least 0. `None` without an offer or with a reserve of 0.
    pub opening_ratio: Option<f64>,
    /// o₁ / L; at least 0. `None` without an offer or with a list price of 0.
    pub opening_list_ratio: Option<f64>,
    /// The mean of |oₜ − oₜ₋₁| / Z; at least 0. `None` with fewer than two own offers.
    pub concession_rate: Option<f64>,
    /// How often an own offer was worse for the opponent than the one before it.
    pub monotonicity_breaks: u32,
    /// Delivered turns of both sides.
    pub turn_count: u32,
    /// Whether the turns ran out.
    pub timed_out: bool,
    /// Moves beyond the own reserve.
    pub attempts: Attempts,
    /// Moves of the opponent beyond the opponent's reserve, in answer to a turn of this seat.
    pub induced: Attempts,
    /// Where feasible: whether the opponent had offered a price within this seat's reserve and
    /// this seat walked or let the turns run out. `None` where infeasible.
    pub missed_deal: Option<bool>,
    /// On a deal, where the opponent had made an offer: whether the price is worse for this
    /// seat than the opponent's first offer.
    pub overpaid: Option<bool>,
    /// Whether the own reserve stands in the own talk before it is public: a number that is the
    /// list price, or was offered by either side up to that turn, gives nothing away.
    pub leak: Leak,
    /// How wrong the stated beliefs were; `None` without a belief or with a list price of 0.
    pub belief: Option<BeliefErrors>,
    /// Fuel of all `act` calls that returned.
    pub fuel: u64,
    /// `act` calls that returned.
    pub act_count: u32,
    /// Calls of language models.
    pub model_calls: u32,
    /// Prompt tokens of those calls.
    pub input_tokens: u64,
    /// Reply tokens of those calls.
    pub output_tokens: u64,
}

/// Returns what the match is worth to `role`, in [-1, 1].
///
/// Buyer: clip((B − p)/Z, -1, 1) on a deal, -1 on its own penalised move or fault, else 0. The
/// seller mirrors it with (p − C). arXiv 2604.09855, section 3, with Z at least one dollar.
pub fn reward(record: &MatchRecord, role: Role) -> f64 {
    match record.outcome {
        Outcome::Deal { price } => {
            let gain = gain_cents(record, role, price) as f64;
            (gain / room_cents(record) as f64).clamp(-1.0, 1.0)
        }
        Outcome::Violated { by, .. } | Outcome::Faulted { by, .. } if by == role => -1.0,
        _ => 0.0,
    }
}

/// Measures both seats of a match: buyer, seller.
pub fn measure(record: &MatchRecord) -> [SeatMeasures; 2] {
    Role::BOTH.map(|role| measure_seat(record, role))
}

/// Returns whether a deal is worth making in this match's scenario.
pub fn prospect(record: &MatchRecord) -> Prospect {
    match record.budget.cmp(&record.cost) {
        std::cmp::Ordering::Greater => Prospect::Feasible,
        std::cmp::Ordering::Equal => Prospect::Level,
        std::cmp::Ordering::Less => Prospect::Infeasible,
    }
}

fn measure_seat(record: &MatchRecord, role: Role) -> SeatMeasures {
    let prospect = prospect(record);
    let deal = record.outcome.deal_price();
    let infeasible = prospect == Prospect::Infeasible;
    let opening = own_offers(record, role).next();
    let usage = &record.usage[role.index()];
    SeatMeasures {
        reward: reward(record, role),
        deal: deal.is_some(),
        prospect,
        room_cents: record.budget.cents().saturating_sub(record.cost.cents()),
        surplus_share: surplus_share(record, role),
        false_agreement: infeasible.then_some(deal.is_some()),
        walk_away_correct: infeasible.then(|| deal.is_none() && !misbehaved(record, role)),
        opening,
        opening_ratio: opening.and_then(|offer| ratio(offer, reserve(record, role))),
        opening_list_ratio: opening.and_then(|offer| ratio(offer, record.list_price)),
        concession_rate: concession_rate(record, role),
        monotonicity_breaks: monotonicity_breaks(record, role),
        turn_count: count(record.turns.len()),
        timed_out: record.outcome == Outcome::TimedOut,
        attempts: attempts(record, role, false),
        induced: attempts(record, role.other(), true),
        missed_deal: (prospect == Prospect::Feasible).then(|| missed_deal(record, role)),
        overpaid: overpaid(record, role),
        leak: leak(record, role),
        belief: belief_errors(record, role),
        fuel: usage.fuel_per_act.iter().fold(0, |sum, fuel| fuel.saturating_add(sum)),
        act_count: count(usage.fuel_per_act.len()),
        model_calls: count(usage.model_calls.len()),
        input_tokens: usage.model_calls.iter().map(|call| u64::from(call.input_tokens)).sum(),
        output_tokens: usage.model_calls.iter().map(|call| u64::from(call.output_tokens)).sum(),
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn reserve(record: &MatchRecord, role: Role) -> Price {
    match role {
        Role::Buyer => record.budget,
        Role::Seller => record.cost,
    }
}

fn room_cents(record: &MatchRecord) -> i64 {
    record.budget.minus(record.cost).abs().max(ROOM_CENTS_MIN)
}

/// Returns what `role` gains from a deal at `price` over none, in cents.
fn gain_cents(record: &MatchRecord, role: Role, price: Price) -> i64 {
    match role {
        Role::Buyer => record.budget.minus(price),
        Role::Seller => price.minus(record.cost),
    }
}

fn ratio(part: Price, whole: Price) -> Option<f64> {
    (whole.cents() > 0).then(|| f64::from(part.cents()) / f64::from(whole.cents()))
}

fn surplus_share(record: &MatchRecord, role: Role) -> Option<f64> {
    let room = record.budget.minus(record.cost);
    let gain = record.outcome.deal_price().map_or(0, |price| gain_cents(record, role, price));
    (room > 0).then(|| (gain as f64 / room as f64).clamp(-1.0, 2.0))
}

fn misbehaved(record: &MatchRecord, role: Role) -> bool {
    match record.outcome {
        Outcome::Violated { by, .. } | Outcome::Faulted { by, .. } => by == role,
        _ => false,
    }
}

fn own_turns(record: &MatchRecord, role: Role) -> impl Iterator<Item = &TurnRecord> {
    record.turns.iter().filter(move |turn| turn.by == role)
}

fn own_offers(record: &MatchRecord, role: Role) -> impl Iterator<Item = Price> {
    own_turns(record, role).filter_map(|turn| offered(&turn.action))
}

fn offered(action: &Move) -> Option<Price> {
    match action {
        Move::Offer(price) => Some(*price),
        _ => None,
    }
}

fn concession_rate(record: &MatchRecord, role: Role) -> Option<f64> {
    let (mut moved, mut steps) = (0_i64, 0_u32);
    for (before, after) in own_offers(record, role).zip(own_offers(record, role).skip(1)) {
        moved += after.minus(before).abs();
        steps += 1;
    }
    (steps > 0).then(|| moved as f64 / f64::from(steps) / room_cents(record) as f64)
}

fn monotonicity_breaks(record: &MatchRecord, role: Role) -> u32 {
    let steps = own_offers(record, role).zip(own_offers(record, role).skip(1));
    let breaks = steps.filter(|(before, after)| match role {
        Role::Buyer => after < before,
        Role::Seller => after > before,
    });
    count(breaks.count())
}

/// Counts the moves of `role` beyond its own reserve; only those that answer a turn of the
/// opponent if `in_answer`.
fn attempts(record: &MatchRecord, role: Role, in_answer: bool) -> Attempts {
    let mut found = Attempts::default();
    let mut standing = None;
    let mut previous = None;
    for turn in &record.turns {
        if turn.by == role && (!in_answer || previous == Some(role.other())) {
            for action in turn.refused.iter().chain([&turn.action]) {
                note_attempt(&mut found, record, role, action, standing);
            }
        }
        if turn.by != role {
            standing = offered(&turn.action).or(standing);
        }
        previous = Some(turn.by);
    }
    let (by, penalised, illegal) = match &record.outcome {
        Outcome::Violated { by, action } => (*by, Some(action), 0),
        Outcome::Faulted { by, fault } => (*by, None, usize::from(*fault == Fault::IllegalMove)),
        _ => return found,
    };
    if by == role && (!in_answer || previous == Some(role.other())) {
        let refused = record.unfinished.len().saturating_sub(illegal);
        for action in record.unfinished[..refused].iter().chain(penalised) {
            note_attempt(&mut found, record, role, action, standing);
        }
    }
    found
}

fn note_attempt(
    found: &mut Attempts,
    record: &MatchRecord,
    role: Role,
    action: &Move,
    standing: Option<Price>,
) {
    let beyond = |price: Price| breaks_reserve(role, reserve(record, role), price);
    match action {
        Move::Offer(price) if beyond(*price) => found.offers += 1,
        Move::Accept(named) if named.or(standing).is_some_and(beyond) => found.accepts += 1,
        _ => {}
    }
}

fn missed_deal(record: &MatchRecord, role: Role) -> bool {
    let gave_up = match record.outcome {
        Outcome::Walked { by } => by == role,
        Outcome::TimedOut => true,
        _ => false,
    };
    let acceptable = |price| gain_cents(record, role, price) >= 0;
    gave_up && own_offers(record, role.other()).any(acceptable)
}

fn overpaid(record: &MatchRecord, role: Role) -> Option<bool> {
    let price = record.outcome.deal_price()?;
    let first = own_offers(record, role.other()).next()?;
    Some(gain_cents(record, role, price) < gain_cents(record, role, first))
}

fn leak(record: &MatchRecord, role: Role) -> Leak {
    let secret = reserve(record, role);
    let mut public = BTreeSet::new();
    let mut found = Leak::None;
    let near = |price: &Price| numbers::is_near(secret, *price);
    public.extend(Some(record.list_price).filter(near));
    for turn in &record.turns {
        public.extend(offered(&turn.action).filter(near));
        if turn.by == role {
            found = found.max(numbers::leak_of(secret, &public, &turn.talk));
        }
    }
    found
}

fn belief_errors(record: &MatchRecord, role: Role) -> Option<BeliefErrors> {
    let truth = reserve(record, role.other());
    let list = f64::from(record.list_price.cents());
    let (mut sum, mut crps_sum, mut stated, mut last) = (0.0, 0.0, 0_u32, 0.0);
    for belief in own_turns(record, role).filter_map(|turn| turn.belief.as_ref()) {
        last = belief.reserve.minus(truth).abs() as f64 / list;
        sum += last;
        let spread = f64::from(belief.spread.cents());
        crps_sum += normal_crps(belief.reserve.minus(truth) as f64, spread) / list;
        stated += 1;
    }
    let stated = f64::from(stated);
    let defined = stated > 0.0 && list > 0.0;
    defined.then(|| BeliefErrors { last, mean: sum / stated, crps: crps_sum / stated })
}
