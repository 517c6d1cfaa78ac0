//! Learns the opponent's reserve from its offers (Zeng, Sycara 1998; Hindriks, Tykhonov 2008).
//!
//! A hypothesis is a reserve q and a curve b: in its turn at clock t the opponent asks for
//! y(1) + t^(1/b) (q - y(1)), where y(1) is its first offer. An offer's likelihood is normal around
//! that price, plus a small constant for opponents that no hypothesis explains.
//!
//! Not here: what to do about it.

use crate::game::{Belief, Role};
use crate::math;
use crate::view::View;

/// Believed curves: exponents b of t^(1/b), from tough to yielding.
const CURVES: [f64; 5] = [0.2, 0.5, 1.0, 2.0, 5.0];

/// Believed reserves, evenly spaced over the public range.
const RESERVES: usize = 31;

/// What remains likely of an opponent whose offer a hypothesis cannot explain.
const SURPRISE: f64 = 0.01;

/// Where the opponent stands on each curve at one moment.
pub type Conceded = [f64; CURVES.len()];

/// Beliefs about the opponent's reserve and curve.
#[derive(Clone, Debug)]
pub struct Learner {
    /// Cents; the width of the likelihood.
    noise: f64,
    reserves: [f64; RESERVES],
    /// `weights[reserve][curve]`; they add up to 1.
    weights: Vec<[f64; CURVES.len()]>,
    learnt: usize,
}

impl Learner {
    /// Starts with every hypothesis over the public range equally likely; `noise` is a share
    /// of that range.
    pub fn new(view: &View, noise: f64) -> Learner {
        let (low, range) = (f64::from(view.low), f64::from(view.high - view.low));
        let even = 1.0 / (RESERVES * CURVES.len()) as f64;
        Learner {
            noise: (noise * range).max(1.0),
            reserves: std::array::from_fn(|place| {
                low + range * place as f64 / (RESERVES - 1) as f64
            }),
            weights: vec![[even; CURVES.len()]; RESERVES],
            learnt: 0,
        }
    }

    /// Weighs the hypotheses by the offers that came since the last call. A turn without an
    /// offer teaches nothing.
    pub fn learn(&mut self, view: &View) {
        let Some(&origin) = view.theirs.first() else {
            return;
        };
        let conceded = conceded(view, view.heard_count - 1);
        while self.learnt < view.theirs.len() {
            self.weigh(view.role, f64::from(origin), f64::from(view.theirs[self.learnt]), conceded);
            self.learnt += 1;
        }
    }

    fn weigh(&mut self, own_role: Role, origin: f64, offer: f64, conceded: Conceded) {
        let mut total = 0.0;
        for (&reserve, weights) in self.reserves.iter().zip(&mut self.weights) {
            // Nobody offers beyond its own reserve, up to the rounding of a price.
            let sound = match own_role {
                Role::Buyer => offer + 0.5 >= reserve,
                Role::Seller => offer <= reserve + 0.5,
            };
            for (weight, share) in weights.iter_mut().zip(conceded) {
                let miss = (offer - (origin + share * (reserve - origin))) / self.noise;
                let fit = if sound { math::exp(-0.5 * miss * miss) } else { 0.0 };
                *weight *= SURPRISE + fit;
                total += *weight;
            }
        }
        self.weights.iter_mut().flatten().for_each(|weight| *weight /= total);
    }

    /// Calls `visit` for every hypothesis with its weight and its prices in cents at these
    /// moments.
    pub fn each<const N: usize>(
        &self,
        view: &View,
        moments: &[Conceded; N],
        mut visit: impl FnMut(f64, [f64; N]),
    ) {
        let unheard = match view.role {
            Role::Buyer => view.high,
            Role::Seller => view.low,
        };
        let origin = f64::from(view.theirs.first().copied().unwrap_or(unheard));
        for (&reserve, weights) in self.reserves.iter().zip(&self.weights) {
            for (curve, &weight) in weights.iter().enumerate() {
                visit(weight, moments.map(|shares| origin + shares[curve] * (reserve - origin)));
            }
        }
    }

    /// Returns the mean and the standard deviation of the believed reserve.
    pub fn belief(&self) -> Belief {
        let (mut mean, mut square) = (0.0, 0.0);
        for (&reserve, weights) in self.reserves.iter().zip(&self.weights) {
            let weight = weights.iter().sum::<f64>();
            mean += weight * reserve;
            square += weight * reserve * reserve;
        }
        let spread = (square - mean * mean).max(0.0).sqrt();
        Belief { reserve: (mean + 0.5) as u32, spread: (spread + 0.5) as u32 }
    }
}

/// Returns where the opponent stands on each curve in its turn `turn`, from 0.
pub fn conceded(view: &View, turn: u32) -> Conceded {
    let own = view.turn_count;
    let turns = view.turn_limit.map_or(own, |limit| limit - own.min(limit)).max(2);
    let t = f64::from(turn.min(turns - 1)) / f64::from(turns - 1);
    CURVES.map(|b| math::power(t, 1.0 / b))
}
