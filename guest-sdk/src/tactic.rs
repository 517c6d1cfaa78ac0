//! Tactics that several agents share: how far to concede as time passes.
//!
//! Notation: a(t) is the conceded share of the way from the own best price to the own reserve,
//! t the clock of [`crate::view`]. Prices are rounded to the own advantage.

use crate::game::{Brief, Event, Reply};
use crate::math;
use crate::negmas::{self, Aspiration};
use crate::params::{self, ParamError, Params};
use crate::view::View;

/// How the conceded share grows with time (Faratin, Sierra, Jennings 1998, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// a(t) = k + (1 - k) t^(1/b).
    Polynomial {
        /// The share conceded at once.
        k: f64,
        /// Below 1 tough, 1 linear, above 1 yielding.
        b: f64,
    },
    /// a(t) = exp((1 - t)^b ln k), with k above 0.
    Exponential {
        /// The share conceded at once.
        k: f64,
        /// The larger, the later the concession.
        b: f64,
    },
}

impl Curve {
    /// Takes the parameters `b`, `k` and `curve` (`polynomial` or `exponential`).
    ///
    /// # Errors
    /// A parameter that cannot be read, or an exponential curve that starts at k = 0.
    pub fn take(params: &mut Params, b: f64) -> Result<Curve, ParamError> {
        let b = params.number("b", b, [0.01, 100.0])?;
        let exponential = params.choice("curve", &["polynomial", "exponential"])? == 1;
        if exponential {
            let k = params.number("k", 0.01, [0.000_1, 1.0])?;
            return Ok(Curve::Exponential { k, b });
        }
        Ok(Curve::Polynomial { k: params.number("k", 0.0, [0.0, 1.0])?, b })
    }

    /// Returns a(t) for t in 0..=1.
    pub fn conceded(self, t: f64) -> f64 {
        match self {
            Curve::Polynomial { k, b } => k + (1.0 - k) * math::power(t, 1.0 / b),
            Curve::Exponential { k, b } => math::exp(math::power(1.0 - t, b) * math::ln(k)),
        }
    }
}

/// A strategy that concedes by the clock alone and accepts by AC_next.
#[derive(Clone, Debug)]
pub struct TimeDependent {
    /// What the seat knows.
    pub view: View,
    pace: Pace,
}

#[derive(Clone, Debug)]
enum Pace {
    Own(Curve),
    Negmas(Aspiration),
}

impl TimeDependent {
    /// Takes the parameters of [`View`] and [`Curve`]; `b` is the curve's exponent unless they
    /// say otherwise.
    ///
    /// # Errors
    /// A parameter that cannot be read.
    pub fn new(brief: &Brief, params: &mut Params, b: f64) -> Result<TimeDependent, ParamError> {
        let view = View::new(brief, params)?;
        Ok(TimeDependent { view, pace: Pace::Own(Curve::take(params, b)?) })
    }

    /// Does the same, or with the parameter `compat=negmas` plays as NegMAS does with the
    /// exponent `negmas_e`; see [`crate::negmas`].
    ///
    /// # Panics
    /// If the parameters are refused.
    pub fn begin(brief: &Brief, b: f64, negmas_e: f64) -> TimeDependent {
        params::read(brief, |params| {
            if !negmas::wanted(params)? {
                return TimeDependent::new(brief, params, b);
            }
            let view = View::new(brief, params)?;
            let aspiration = Aspiration::new(brief, &view, params, negmas_e)?;
            Ok(TimeDependent { view, pace: Pace::Negmas(aspiration) })
        })
    }

    /// Makes the next move; see [`crate::Agent::act`].
    pub fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        match &self.pace {
            Pace::Own(curve) => {
                let next = self.view.concede(curve.conceded(self.view.clock()));
                self.view.answer(next)
            }
            Pace::Negmas(aspiration) => aspiration.act(&mut self.view),
        }
    }
}
