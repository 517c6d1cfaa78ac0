//! Strengths from won and lost matches: Bradley-Terry with a role term.
//!
//! P(buyer i beats seller j) = 1 / (1 + exp(-(θᵢ − θⱼ + γ))), where a seat beats the other if
//! its reward is higher and equal rewards count half for each. Bradley and Terry 1952; the term
//! γ for the side that is played is that of Davidson and Beaver 1977. It is what being the buyer
//! is worth, and taking it out lets agents be compared that bought and sold unequally often.
//!
//! The fit maximises the likelihood times a normal prior of precision [`PRIOR_PRECISION`] on
//! every θ and on γ. The prior is worth about as much as half a match: it keeps agents that won
//! or lost everything finite, and makes the maximum unique even where agents never met. The θ of
//! the maximum add up to 0, which anchors the scale. Newton's method with step halving; the
//! objective is strictly concave, so there is nothing else to converge to. Every machine gets the
//! same bits (see `special`).

use libm::{exp, log1p};

/// Precision (1/variance) of the prior on each strength and on the role term, in logits⁻².
pub const PRIOR_PRECISION: f64 = 0.1;

/// Points of the Elo-like scale per logit: 400/ln 10, so that 400 points are odds of ten to one.
pub const POINTS_PER_LOGIT: f64 = 400.0 / std::f64::consts::LN_10;

/// Newton steps after which a fit stops; it needs fewer than ten.
const STEPS_MAX: u32 = 100;

/// Halvings of one Newton step.
const HALVINGS_MAX: u32 = 40;

/// A step below this, in logits, ends the fit.
const PRECISION: f64 = 1e-10;

/// The matches of one agent as buyer against one agent as seller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duel {
    /// The buyer's number.
    pub buyer: usize,
    /// The seller's number. An agent's matches against itself say nothing and are left out.
    pub seller: usize,
    /// Matches.
    pub count: f64,
    /// Matches in which the buyer's reward was higher, plus half of those with equal rewards.
    pub won: f64,
}

/// Fitted strengths.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// θ of each agent in logits. They add up to 0.
    pub strengths: Vec<f64>,
    /// γ: what being the buyer is worth, in logits.
    pub buyer_term: f64,
}

/// Fits strengths to results, starting from `start` if there is one.
///
/// # Panics
/// If a duel names an agent that is not below `agent_count`.
pub fn fit(agent_count: usize, duels: &[Duel], start: Option<&Fit>) -> Fit {
    let mut at = match start {
        Some(start) => [start.strengths.as_slice(), &[start.buyer_term]].concat(),
        None => vec![0.0; agent_count + 1],
    };
    assert_eq!(at.len(), agent_count + 1, "a start has as many strengths as there are agents");
    let mut worth = objective(&at, duels);
    for _ in 0..STEPS_MAX {
        let step = newton_step(&at, duels);
        let mut scale = 1.0;
        for _ in 0..HALVINGS_MAX {
            let next: Vec<f64> = at.iter().zip(&step).map(|(x, dx)| x + scale * dx).collect();
            let next_worth = objective(&next, duels);
            if next_worth >= worth {
                at = next;
                worth = next_worth;
                break;
            }
            scale /= 2.0;
        }
        if step.iter().all(|change| (scale * change).abs() < PRECISION) {
            break;
        }
    }
    let buyer_term = at.pop().expect("there is a role term after the strengths");
    Fit { strengths: at, buyer_term }
}

/// Returns the log-likelihood plus the log-prior, up to a constant.
fn objective(at: &[f64], duels: &[Duel]) -> f64 {
    let prior: f64 = at.iter().map(|value| value * value).sum();
    let likelihood: f64 = rated(duels)
        .map(|duel| {
            let lead = lead(at, duel);
            // ln σ(x) and ln σ(-x), without overflow for a large |x|.
            let log_win = -ln_1p_exp(-lead);
            let log_loss = -ln_1p_exp(lead);
            duel.won * log_win + (duel.count - duel.won) * log_loss
        })
        .sum();
    likelihood - PRIOR_PRECISION / 2.0 * prior
}

fn rated(duels: &[Duel]) -> impl Iterator<Item = &Duel> {
    duels.iter().filter(|duel| duel.buyer != duel.seller && duel.count > 0.0)
}

fn lead(at: &[f64], duel: &Duel) -> f64 {
    at[duel.buyer] - at[duel.seller] + at[at.len() - 1]
}

fn ln_1p_exp(x: f64) -> f64 {
    if x > 0.0 { x + log1p(exp(-x)) } else { log1p(exp(x)) }
}

/// Solves (−H) step = gradient.
fn newton_step(at: &[f64], duels: &[Duel]) -> Vec<f64> {
    let size = at.len();
    let role = size - 1;
    let mut gradient: Vec<f64> = at.iter().map(|value| -PRIOR_PRECISION * value).collect();
    let mut curvature = vec![0.0; size * size];
    for place in 0..size {
        curvature[place * size + place] = PRIOR_PRECISION;
    }
    for duel in rated(duels) {
        let win = 1.0 / (1.0 + exp(-lead(at, duel)));
        let surprise = duel.won - duel.count * win;
        let weight = duel.count * win * (1.0 - win);
        let signs = [(duel.buyer, 1.0), (duel.seller, -1.0), (role, 1.0)];
        for (row, sign) in signs {
            gradient[row] += sign * surprise;
            for (column, other) in signs {
                curvature[row * size + column] += sign * other * weight;
            }
        }
    }
    solve(curvature, gradient)
}

/// Solves A x = b for a symmetric positive definite A (row-major) by Cholesky factorisation.
fn solve(mut a: Vec<f64>, mut b: Vec<f64>) -> Vec<f64> {
    let size = b.len();
    for row in 0..size {
        for column in 0..=row {
            let (head, tail) = (column * size, row * size);
            let dot: f64 = (0..column).map(|place| a[head + place] * a[tail + place]).sum();
            let rest = a[tail + column] - dot;
            // The prior keeps every pivot at PRIOR_PRECISION or more, up to rounding.
            a[tail + column] = if row == column {
                rest.max(f64::MIN_POSITIVE).sqrt()
            } else {
                rest / a[head + column]
            };
        }
    }
    for row in 0..size {
        let dot: f64 = (0..row).map(|place| a[row * size + place] * b[place]).sum();
        b[row] = (b[row] - dot) / a[row * size + row];
    }
    for row in (0..size).rev() {
        let dot: f64 = (row + 1..size).map(|place| a[place * size + row] * b[place]).sum();
        b[row] = (b[row] - dot) / a[row * size + row];
    }
    b
}

#[cfg(test)]
mod tests {
    use libm::log;

    use super::*;

    fn duel(buyer: usize, seller: usize, count: f64, won: f64) -> Duel {
        Duel { buyer, seller, count, won }
    }

    #[test]
    fn two_agents_differ_by_the_log_odds_and_the_role_by_the_rest() {
        // As buyer, the first wins 3 of 4 and the second 2 of 3: with two agents the model is
        // saturated, so θ₀ − θ₁ + γ = ln 3 and θ₁ − θ₀ + γ = ln 2.
        let found = fit(2, &[duel(0, 1, 40_000.0, 30_000.0), duel(1, 0, 30_000.0, 20_000.0)], None);
        let lead = (log(3.0) - log(2.0)) / 2.0;
        let role = (log(3.0) + log(2.0)) / 2.0;
        assert!((found.strengths[0] - found.strengths[1] - lead).abs() < 1e-4, "{found:?}");
        assert!((found.buyer_term - role).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn the_prior_is_worth_less_than_a_match() {
        // 60 of 100 in each role: the log odds are ln 1.5.
        let found = fit(2, &[duel(0, 1, 100.0, 60.0), duel(1, 0, 100.0, 40.0)], None);
        let lead = found.strengths[0] - found.strengths[1];
        let one_match_less = log(119.0 / 80.0);
        assert!(lead < log(1.5) && lead > one_match_less, "{lead}");
    }

    #[test]
    fn winning_everything_stays_finite_and_ordered() {
        let all_won = [duel(0, 1, 1e6, 1e6), duel(1, 0, 1e6, 0.0), duel(1, 2, 5.0, 5.0)];
        let found = fit(4, &all_won, None);
        assert!(found.strengths.iter().all(|strength| strength.is_finite()), "{found:?}");
        assert!(found.strengths[0] > found.strengths[1], "{found:?}");
        assert!(found.strengths[1] > found.strengths[2], "{found:?}");
        assert_eq!(found.strengths[3], 0.0, "who never played is where the prior is");
    }

    #[test]
    fn strengths_add_up_to_zero_and_the_gradient_vanishes() {
        let duels = [
            duel(0, 1, 20.0, 13.5),
            duel(1, 0, 20.0, 9.0),
            duel(1, 2, 20.0, 11.0),
            duel(2, 0, 7.0, 0.5),
        ];
        let found = fit(3, &duels, None);
        assert!(found.strengths.iter().sum::<f64>().abs() < 1e-9);
        let at = [found.strengths.as_slice(), &[found.buyer_term]].concat();
        let best = objective(&at, &duels);
        for place in 0..at.len() {
            for change in [-1e-3, 1e-3] {
                let mut moved = at.clone();
                moved[place] += change;
                assert!(objective(&moved, &duels) < best, "moving {place} by {change} is better");
            }
        }
    }

    #[test]
    fn a_far_start_ends_at_the_same_place() {
        let duels = [duel(0, 1, 10.0, 7.0), duel(1, 2, 10.0, 6.0), duel(2, 0, 10.0, 4.0)];
        let near = fit(3, &duels, None);
        let far = Fit { strengths: vec![30.0, -20.0, 5.0], buyer_term: -9.0 };
        let found = fit(3, &duels, Some(&far));
        for (a, b) in near.strengths.iter().zip(&found.strengths) {
            assert!((a - b).abs() < 1e-6, "{near:?} {found:?}");
        }
    }

    #[test]
    fn results_against_oneself_change_nothing() {
        let without = fit(2, &[duel(0, 1, 8.0, 5.0)], None);
        let with = fit(2, &[duel(0, 1, 8.0, 5.0), duel(1, 1, 9.0, 9.0)], None);
        assert_eq!(without, with);
    }

    #[test]
    fn four_hundred_points_are_odds_of_ten_to_one() {
        assert!((log(10.0) * POINTS_PER_LOGIT - 400.0).abs() < 1e-9);
    }

    #[test]
    fn every_machine_gets_these_bits() {
        let duels = [duel(0, 1, 20.0, 13.5), duel(1, 2, 20.0, 11.0), duel(2, 0, 7.0, 0.5)];
        let found = fit(3, &duels, None);
        let at = [found.strengths.as_slice(), &[found.buyer_term]].concat();
        let bits: Vec<u64> = at.into_iter().map(f64::to_bits).collect();
        let expected =
            [0x3ff0b08394ce26cf, 0xbfc671e7b6280161, 0xbfebc48d3c124d48, 0xbfdf8e5a43a11a87];
        assert_eq!(bits, expected, "{bits:#x?}");
    }
}
