//! Fixed ladder: climbs a list of prices that was fixed beforehand, deaf to the opponent (the
//! offer generator of Xia et al. 2024).

use arena_guest::compact;
use arena_guest::params::{self, ParamError, Params};
use arena_guest::view::View;
use arena_guest::{Agent, Brief, Event, Reply, Role};

/// The buyer's rungs as shares of its reserve: the best six against a seller that takes any
/// price above its cost, over the AmazonHistoryPrice products at budget factor 0.8.
const BUYER: [f64; 6] = [0.44, 0.63, 0.75, 0.84, 0.90, 0.95];

/// The seller's rungs as shares of the way from `high` to its reserve.
const SELLER: [f64; 6] = [0.0, 0.25, 0.45, 0.60, 0.75, 0.90];

/// Most rungs.
const RUNGS_MAX: usize = 64;
/// Kinds of argument that there are.
const ARGUMENTS_MAX: u32 = compact::ARGUMENTS.len() as u32;

/// Parameters: `rungs` (percentages joined by `/`, for example `44%/63%/95%`: a buyer's of its
/// reserve, a seller's of the way from `high` to its reserve), `low`, `high`, `turns`. With more or
/// fewer turns than rungs, the rungs are spread evenly over the turns. A buyer brings another kind
/// of argument forward in each of its first `arguments` offers (0 to 5, 0 without it).
pub struct FixedLadder {
    view: View,
    rungs: Vec<f64>,
    arguments: usize,
}

impl Agent for FixedLadder {
    fn begin(brief: &Brief) -> FixedLadder {
        params::read(brief, |params| {
            let view = View::new(brief, params)?;
            let arguments = match view.role {
                Role::Buyer => params.count("arguments", 0, [0, ARGUMENTS_MAX])? as usize,
                // There are no sentences for sellers.
                Role::Seller => 0,
            };
            Ok(FixedLadder { rungs: rungs(view.role, params)?, view, arguments })
        })
    }

    fn act(&mut self, news: &[Event]) -> Reply {
        self.view.hear(news);
        let (turn, turns) = (self.view.turn_index as usize, self.view.turn_count as usize);
        let count = self.rungs.len();
        let rung = self.rungs[(turn * count / turns).min(count - 1)];
        let next = match self.view.role {
            // Not `View::price`, which would lift a rung below the public range into it.
            Role::Buyer => (rung * f64::from(self.view.reserve) + 1e-6).floor() as u32,
            Role::Seller => self.view.concede(rung),
        };
        let threshold = if self.view.is_final_turn() { self.view.reserve } else { next };
        match self.view.accept_at(threshold) {
            Some(reply) => reply,
            None if turn < self.arguments => {
                self.view.offer(next).saying(compact::sentence(turn, 0).to_owned())
            }
            None => self.view.offer(next),
        }
    }
}

fn rungs(role: Role, params: &mut Params) -> Result<Vec<f64>, ParamError> {
    match params.shares("rungs", RUNGS_MAX)? {
        Some(rungs) => Ok(rungs),
        None if role == Role::Buyer => Ok(BUYER.to_vec()),
        None => Ok(SELLER.to_vec()),
    }
}

arena_guest::export!(FixedLadder);
