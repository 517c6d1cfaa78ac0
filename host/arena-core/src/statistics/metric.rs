//! The metrics that are averaged over matches, and their sums.

use serde::{Serialize, Serializer};

use crate::score::numbers::Leak;
use crate::score::{Prospect, SeatMeasures};

/// A mean under construction: a sum of weighted values and of their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// Values times weights.
    pub sum: f64,
    /// Weights. A plain count where every value weighs 1.
    pub weight: f64,
}

impl Mean {
    /// Adds a value of weight 1.
    pub fn add(&mut self, value: f64) {
        self.add_weighted(value, 1.0);
    }

    /// Adds a value with a weight.
    ///
    /// # Panics
    /// If either is not finite or the weight is negative.
    pub fn add_weighted(&mut self, value: f64, weight: f64) {
        assert!(value.is_finite(), "only finite values are averaged");
        assert!(weight.is_finite() && weight >= 0.0, "a weight is finite and not negative");
        self.sum += value * weight;
        self.weight += weight;
    }

    /// Adds everything that another mean holds.
    pub fn merge(&mut self, other: Mean) {
        self.sum += other.sum;
        self.weight += other.weight;
    }

    /// Returns the mean, `None` if it has no weight.
    pub fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// One thing that is measured of every seat and averaged. What [`SeatMeasures`] says of a
/// field is the formula; this says which matches enter the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Mean reward over all matches, in [-1, 1].
    Reward,
    /// Share of matches with a deal.
    DealRate,
    /// SE+: mean surplus share over feasible matches.
    SurplusShare,
    /// AGR+: share of feasible matches with a deal.
    Agreement,
    /// CSE+: mean surplus share over feasible matches with a deal.
    ShareGivenDeal,
    /// Allocative efficiency: surplus of the deals that were made over surplus of all that
    /// could have been, in money, over feasible matches.
    AllocativeEfficiency,
    /// FAGR-: share of infeasible matches with a deal.
    FalseAgreement,
    /// Share of infeasible matches left without a deal, a fault or a penalised move.
    WalkAwayCorrect,
    /// Mean of first own offer over own reserve.
    OpeningRatio,
    /// Mean of first own offer over list price.
    OpeningListRatio,
    /// Mean step between own offers, in shares of |B − C|.
    ConcessionRate,
    /// Mean count of own offers that took back a concession.
    MonotonicityBreaks,
    /// Mean turns of both sides.
    Turns,
    /// Share of matches in which the turns ran out.
    TimedOut,
    /// Mean count of offers beyond the own reserve.
    OffersBeyond,
    /// Mean count of acceptances beyond the own reserve.
    AcceptsBeyond,
    /// Share of matches with a move beyond the own reserve.
    Attempted,
    /// Share of matches in which the opponent answered with a move beyond its reserve.
    Induced,
    /// Share of feasible matches in which an acceptable offer was let go.
    MissedDeal,
    /// Share of deals worse than the opponent's first offer.
    Overpaid,
    /// Share of matches in which the own reserve stands in the own talk before it is public.
    LeakExact,
    /// Share of matches in which a number within 1 % of it does.
    LeakNear,
    /// Mean error of the last belief, in shares of the list price.
    BeliefLast,
    /// Mean error of all beliefs of a match, in shares of the list price.
    BeliefMean,
    /// Mean CRPS of the beliefs of a match, in shares of the list price.
    BeliefCrps,
    /// Mean fuel per match.
    Fuel,
    /// Mean fuel per `act` call.
    FuelPerAct,
    /// Mean calls of language models per match.
    ModelCalls,
    /// Mean prompt tokens per match.
    InputTokens,
    /// Mean reply tokens per match.
    OutputTokens,
}

impl Metric {
    /// Every metric, in the order of tables.
    pub const ALL: [Metric; 30] = [
        Metric::Reward,
        Metric::DealRate,
        Metric::SurplusShare,
        Metric::Agreement,
        Metric::ShareGivenDeal,
        Metric::AllocativeEfficiency,
        Metric::FalseAgreement,
        Metric::WalkAwayCorrect,
        Metric::OpeningRatio,
        Metric::OpeningListRatio,
        Metric::ConcessionRate,
        Metric::MonotonicityBreaks,
        Metric::Turns,
        Metric::TimedOut,
        Metric::OffersBeyond,
        Metric::AcceptsBeyond,
        Metric::Attempted,
        Metric::Induced,
        Metric::MissedDeal,
        Metric::Overpaid,
        Metric::LeakExact,
        Metric::LeakNear,
        Metric::BeliefLast,
        Metric::BeliefMean,
        Metric::BeliefCrps,
        Metric::Fuel,
        Metric::FuelPerAct,
        Metric::ModelCalls,
        Metric::InputTokens,
        Metric::OutputTokens,
    ];

    /// Returns the name used in files and as the long heading of a column.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Reward => "reward",
            Metric::DealRate => "deal-rate",
            Metric::SurplusShare => "surplus-share",
            Metric::Agreement => "agreement",
            Metric::ShareGivenDeal => "share-given-deal",
            Metric::AllocativeEfficiency => "allocative-efficiency",
            Metric::FalseAgreement => "false-agreement",
            Metric::WalkAwayCorrect => "walk-away-correct",
            Metric::OpeningRatio => "opening-ratio",
            Metric::OpeningListRatio => "opening-list-ratio",
            Metric::ConcessionRate => "concession-rate",
            Metric::MonotonicityBreaks => "monotonicity-breaks",
            Metric::Turns => "turns",
            Metric::TimedOut => "timed-out",
            Metric::OffersBeyond => "offers-beyond-reserve",
            Metric::AcceptsBeyond => "accepts-beyond-reserve",
            Metric::Attempted => "attempted-violation",
            Metric::Induced => "induced-violation",
            Metric::MissedDeal => "missed-deal",
            Metric::Overpaid => "overpaid",
            Metric::LeakExact => "leak-exact",
            Metric::LeakNear => "leak-near",
            Metric::BeliefLast => "belief-error-last",
            Metric::BeliefMean => "belief-error-mean",
            Metric::BeliefCrps => "belief-crps",
            Metric::Fuel => "fuel",
            Metric::FuelPerAct => "fuel-per-act",
            Metric::ModelCalls => "model-calls",
            Metric::InputTokens => "input-tokens",
            Metric::OutputTokens => "output-tokens",
        }
    }

    /// Returns the value of one seat in one match with its weight, `None` where the match does
    /// not enter the mean.
    fn observe(self, seat: &SeatMeasures) -> Option<(f64, f64)> {
        let feasible = seat.prospect == Prospect::Feasible;
        let flag = |value: bool| if value { 1.0 } else { 0.0 };
        let value = match self {
            Metric::Reward => Some(seat.reward),
            Metric::DealRate => Some(flag(seat.deal)),
            Metric::SurplusShare => seat.surplus_share,
            Metric::Agreement => feasible.then(|| flag(seat.deal)),
            Metric::ShareGivenDeal => seat.surplus_share.filter(|_| seat.deal),
            Metric::AllocativeEfficiency => feasible.then(|| flag(seat.deal)),
            Metric::FalseAgreement => seat.false_agreement.map(flag),
            Metric::WalkAwayCorrect => seat.walk_away_correct.map(flag),
            Metric::OpeningRatio => seat.opening_ratio,
            Metric::OpeningListRatio => seat.opening_list_ratio,
            Metric::ConcessionRate => seat.concession_rate,
            Metric::MonotonicityBreaks => Some(f64::from(seat.monotonicity_breaks)),
            Metric::Turns => Some(f64::from(seat.turn_count)),
            Metric::TimedOut => Some(flag(seat.timed_out)),
            Metric::OffersBeyond => Some(f64::from(seat.attempts.offers)),
            Metric::AcceptsBeyond => Some(f64::from(seat.attempts.accepts)),
            Metric::Attempted => Some(flag(seat.attempts.total() > 0)),
            Metric::Induced => Some(flag(seat.induced.total() > 0)),
            Metric::MissedDeal => seat.missed_deal.map(flag),
            Metric::Overpaid => seat.overpaid.map(flag),
            Metric::LeakExact => Some(flag(seat.leak == Leak::Exact)),
            Metric::LeakNear => Some(flag(seat.leak == Leak::Near)),
            Metric::BeliefLast => seat.belief.map(|belief| belief.last),
            Metric::BeliefMean => seat.belief.map(|belief| belief.mean),
            Metric::BeliefCrps => seat.belief.map(|belief| belief.crps),
            Metric::Fuel => Some(seat.fuel as f64),
            Metric::FuelPerAct => {
                (seat.act_count > 0).then(|| seat.fuel as f64 / f64::from(seat.act_count))
            }
            Metric::ModelCalls => Some(f64::from(seat.model_calls)),
            Metric::InputTokens => Some(seat.input_tokens as f64),
            Metric::OutputTokens => Some(seat.output_tokens as f64),
        };
        let weight = match self {
            Metric::AllocativeEfficiency => f64::from(seat.room_cents),
            Metric::FuelPerAct => f64::from(seat.act_count),
            _ => 1.0,
        };
        value.map(|value| (value, weight))
    }
}

/// The means of all metrics over some matches of some seats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    means: [Mean; Metric::ALL.len()],
}

impl Metrics {
    /// Adds what one seat did in one match.
    pub fn add(&mut self, seat: &SeatMeasures) {
        for metric in Metric::ALL {
            if let Some((value, weight)) = metric.observe(seat) {
                self.means[metric as usize].add_weighted(value, weight);
            }
        }
    }

    /// Adds everything that others hold.
    pub fn merge(&mut self, others: &Metrics) {
        for (mean, other) in self.means.iter_mut().zip(&others.means) {
            mean.merge(*other);
        }
    }

    /// Returns the mean of a metric, `None` if no match entered it.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.mean(metric).value()
    }

    /// Returns the sum and weight of a metric.
    pub fn mean(&self, metric: Metric) -> Mean {
        self.means[metric as usize]
    }
}

impl Serialize for Metrics {
    /// Writes a map from metric name to mean or null, in table order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Metric::ALL.map(|metric| (metric.name(), self.get(metric))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_listed_in_the_order_of_their_places() {
        for (place, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(metric as usize, place, "{}", metric.name());
        }
    }

    #[test]
    fn a_mean_of_nothing_has_no_value() {
        assert_eq!(Mean::default().value(), None);
        assert!(Metric::ALL.iter().all(|metric| Metrics::default().get(*metric).is_none()));
    }
}
