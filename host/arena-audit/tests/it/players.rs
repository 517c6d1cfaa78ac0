//! Players for test logs: plain strategies that report their fuel as a sandboxed guest does.

use arena_core::fault::{Fault, SeatError};
use arena_core::price::Price;
use arena_core::scenario::{Brief, Role};
use arena_core::seat::{Seat, Usage};
use arena_core::turn::{Belief, End, Event, Move, Reply};

/// A seat that concedes from the list price to its reserve.
pub struct Player {
    style: u16,
    brief: Option<Brief>,
    standing: Option<Price>,
    act_count: u32,
    usage: Usage,
}

impl Player {
    /// Returns a player of one of three styles: 0 concedes, 1 first tries what it may not offer,
    /// 2 gives up with a fault at times.
    pub fn new(style: u16) -> Player {
        Player { style, brief: None, standing: None, act_count: 0, usage: Usage::default() }
    }

    fn action(&self, brief: &Brief) -> Result<Move, SeatError> {
        let reserve = brief.reserve.cents();
        let patience = 3 + brief.seed % 5;
        if self.style == 2 && brief.seed.is_multiple_of(4) && self.act_count == 2 {
            return Err(Fault::Trap.into());
        }
        if self.style == 1 && self.act_count == 1 {
            let beyond = match brief.role {
                Role::Buyer => reserve.saturating_add(500),
                Role::Seller => reserve.saturating_sub(500),
            };
            return Ok(Move::Offer(Price(beyond)));
        }
        if let Some(offer) = self.standing {
            let fits = match brief.role {
                Role::Buyer => offer.cents() <= reserve,
                Role::Seller => offer.cents() >= reserve,
            };
            if fits {
                return Ok(Move::Accept(None));
            }
        }
        if u64::from(self.act_count) > patience {
            return Ok(Move::Walk);
        }
        let list = brief.item.list_price.cents();
        let step = self.act_count.min(4);
        let price = match brief.role {
            // Samples of a group have seeds of their own, and so rewards of their own.
            Role::Buyer => reserve / 16 * (7 + (brief.seed % 2) as u32 + 2 * step),
            Role::Seller => list.max(reserve) - (list.max(reserve) - reserve) / 4 * step,
        };
        Ok(Move::Offer(Price(price)))
    }
}

impl Seat for Player {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        self.brief = Some(brief.clone());
        Ok(())
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        for event in news {
            if let Event::Turn(turn) = event
                && let Move::Offer(price) = turn.action
            {
                self.standing = Some(price);
            }
        }
        self.act_count += 1;
        let brief = self.brief.clone().expect("a seat is briefed first");
        let action = self.action(&brief)?;
        self.usage.fuel_per_act.push(1_000 + u64::from(self.act_count));
        self.usage.trace.push(format!("act {}", self.act_count));
        let belief = Belief { reserve: Price(brief.reserve.cents() / 2), spread: Price(100) };
        let talk = format!("this is my turn {}", self.act_count);
        Ok(Reply { action, talk, belief: Some(belief) })
    }

    fn finish(&mut self, _end: &End) {}

    fn take_usage(&mut self) -> Usage {
        std::mem::take(&mut self.usage)
    }
}
