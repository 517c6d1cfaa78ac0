//! The hidden temper of one seat: traits drawn from its seed, within ranges that its parameters
//! give. What the other side cannot see and has to find out.
//!
//! Not here: how a temper acts (`agents/parametric-seller`).

use crate::game::Role;
use crate::params::{ParamError, Params};
use crate::rng::Rng;

/// Each further kind of argument brings this much of what the one before would have.
const DIMINISHING: f64 = 0.8;
/// Steps of a range that is drawn from.
const STEPS: u64 = 1 << 20;

/// The traits of one seat.
#[derive(Clone, Debug, PartialEq)]
pub struct Temper {
    /// Gain that is asked for beyond the reserve, as a share of it.
    pub markup: f64,
    /// Gain that is hoped for beyond the other side's first offer, as a share of it.
    pub anchor: f64,
    /// Share of the way to the goal that time alone brings.
    pub yields: f64,
    /// The exponent 1/b of time: below 1 late, above 1 early.
    pub b: f64,
    /// Turns without moving at first.
    pub patience: u32,
    /// Share of the way that each kind of argument would bring now.
    pub persuasion: [f64; 5],
    /// An offer below this share of the own price is an insult.
    pub tolerance: f64,
    /// What a fresh argument makes of the tolerance, as a factor.
    pub excused: f64,
    /// Chance to leave over an insult.
    pub temper: f64,
    /// Turns in which the other side does not move that are put up with.
    pub stalls: u32,
    /// Whether it never leaves.
    pub stays: bool,
}

impl Temper {
    /// Draws a temper. Takes the parameters `markup`, `anchor`, `yields`, `b`, `patience`,
    /// `argument`, `tolerance`, `excused`, `temper` and `stalls`, each a number or a range, and
    /// `deaf` and `never-walks` (`no`, `yes`).
    ///
    /// # Errors
    /// A parameter that cannot be read.
    pub fn draw(params: &mut Params, rng: &mut Rng) -> Result<Temper, ParamError> {
        let mut unit = || rng.below(STEPS) as f64 / (STEPS - 1) as f64;
        let mut drawn = |key, default, high| {
            let [low, high] = params.range(key, default, [0.0, high])?;
            Ok(low + unit() * (high - low))
        };
        let mut temper = Temper {
            markup: drawn("markup", [0.02, 0.12], 1.0)?,
            anchor: drawn("anchor", [0.05, 0.15], 1.0)?,
            yields: drawn("yields", [0.6, 0.9], 1.0)?,
            b: drawn("b", [0.7, 1.5], 100.0)?.max(0.01),
            patience: whole(drawn("patience", [0.0, 1.0], 1_000.0)?),
            persuasion: [drawn("argument", [0.03, 0.09], 1.0)?; 5],
            tolerance: drawn("tolerance", [0.4, 0.6], 1.0)?,
            excused: drawn("excused", [0.6, 0.8], 1.0)?,
            temper: drawn("temper", [0.2, 0.6], 1.0)?,
            stalls: whole(drawn("stalls", [2.0, 4.0], 1_000.0)?),
            stays: false,
        };
        // Everyone has an ear for some kinds more than for others.
        temper.persuasion = temper.persuasion.map(|gain| gain * (0.5 + unit()));
        if params.choice("deaf", &["no", "yes"])? == 1 {
            temper.persuasion = [0.0; 5];
        }
        temper.stays = params.choice("never-walks", &["no", "yes"])? == 1;
        Ok(temper)
    }

    /// Takes in an argument of a kind that was not heard before, and returns the share of the
    /// way that it brings.
    pub fn persuade(&mut self, kind: usize) -> f64 {
        let gain = self.persuasion[kind];
        self.persuasion = self.persuasion.map(|gain| gain * DIMINISHING);
        gain
    }

    /// Returns the price in cents that a seat with this reserve goes towards.
    pub fn goal(&self, role: Role, reserve: u32) -> f64 {
        f64::from(reserve) * (1.0 + sign(role) * self.markup)
    }

    /// Returns the price in cents that the other side's first offer lets it hope for. It does not
    /// go beyond that, however far its goal lies.
    pub fn hope(&self, role: Role, first: u32) -> f64 {
        f64::from(first) * (1.0 + sign(role) * self.anchor)
    }

    /// Says whether an offer is an insult, made against an own price. `is_excused` says that a
    /// fresh argument came with it.
    pub fn is_insult(&self, role: Role, own: u32, theirs: u32, is_excused: bool) -> bool {
        let tolerance = self.tolerance * if is_excused { self.excused } else { 1.0 };
        let [own, theirs] = [f64::from(own), f64::from(theirs)];
        match role {
            Role::Seller => theirs < tolerance * own,
            Role::Buyer => own < tolerance * theirs,
        }
    }
}

/// Which way a role's gain lies.
fn sign(role: Role) -> f64 {
    match role {
        Role::Buyer => -1.0,
        Role::Seller => 1.0,
    }
}

fn whole(number: f64) -> u32 {
    (number + 0.5) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(text: &str, seed: u64) -> Temper {
        let mut params = Params::parse(text).expect("pairs");
        let temper = Temper::draw(&mut params, &mut Rng::new(seed)).expect("a temper");
        params.finish().expect("every pair is known");
        temper
    }

    #[test]
    fn tempers_differ_between_seeds_and_stay_within_their_ranges() {
        let drawn: Vec<Temper> =
            (0..200).map(|seed| draw("markup=10%/20% stalls=2", seed)).collect();
        assert_eq!(draw("markup=10%/20% stalls=2", 7), drawn[7]);
        assert!(drawn.iter().all(|temper| (0.1..=0.2).contains(&temper.markup)));
        assert!(drawn.iter().all(|temper| temper.stalls == 2));
        assert!(drawn.iter().any(|temper| temper.markup < 0.11));
        assert!(drawn.iter().any(|temper| temper.markup > 0.19));
        assert!(drawn.iter().any(|temper| temper.patience == 0));
        assert!(drawn.iter().any(|temper| temper.patience == 1));
    }

    #[test]
    fn each_argument_brings_less_than_the_one_before_and_the_deaf_take_none() {
        let mut temper = draw("argument=10%", 1);
        let second = temper.persuasion[1];
        assert!((0.05..=0.15).contains(&second));
        assert!(temper.persuade(0) > 0.0);
        assert_eq!(temper.persuade(1), second * DIMINISHING);
        assert_eq!(draw("deaf=yes", 1).persuade(3), 0.0);
    }

    #[test]
    fn gains_lie_above_a_sellers_reserve_and_below_a_buyers() {
        let temper = draw("markup=10% anchor=20%", 1);
        assert_eq!(
            [Role::Seller, Role::Buyer].map(|role| temper.goal(role, 5_000) as u32),
            [5_500, 4_500]
        );
        assert_eq!(
            [Role::Seller, Role::Buyer].map(|role| temper.hope(role, 5_000) as u32),
            [6_000, 4_000]
        );
    }

    #[test]
    fn an_argument_excuses_what_would_be_an_insult() {
        let temper = draw("tolerance=50% excused=80%", 1);
        let insult = |role, own, theirs, excused| temper.is_insult(role, own, theirs, excused);
        assert!(insult(Role::Seller, 10_000, 4_999, false));
        assert!(!insult(Role::Seller, 10_000, 5_000, false));
        assert!(!insult(Role::Seller, 10_000, 4_001, true));
        assert!(insult(Role::Seller, 10_000, 3_999, true));
        assert!(insult(Role::Buyer, 4_999, 10_000, false));
        assert!(!insult(Role::Buyer, 5_000, 10_000, false));
    }
}
