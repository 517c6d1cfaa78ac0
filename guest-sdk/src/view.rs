//! What a seat knows in the middle of a match, and the few moves that are always sound.
//!
//! A view is made from the brief, hears the news of each turn and writes down the own moves.
//! The replies that it makes are legal under both rule sets and never beyond the own reserve,
//! whatever the strategy asks for.
//!
//! The clock: with T own turns, turn i = 0..T-1 is at t = i/(T-1), which reaches 1 on the last
//! own turn. Under a hidden horizon T is unknown; the parameter `turns` (10 unless given) takes
//! its place, and the clock stays at 1 from there on.
//!
//! The public price range: nobody knows the other reserve, so a buyer's plans start at `low` (20 %
//! of the list price unless given) and a seller's at `high` (the list price unless given), or
//! at the own reserve where that is more modest still.

use std::fmt;

use crate::game::{Brief, Event, Move, Reply, Role};
use crate::params::{ParamError, Params};

/// Most offers of one side that are kept; longer than any match.
const OFFERS_MAX: usize = 4_096;

/// Own turns that are planned for when the horizon is hidden.
const HIDDEN_TURNS: u32 = 10;

/// One seat's knowledge.
#[derive(Clone, Debug)]
pub struct View {
    /// The own side.
    pub role: Role,
    /// The own reserve in cents.
    pub reserve: u32,
    /// The public price in cents.
    pub list_price: u32,
    /// The low end of the public price range in cents.
    pub low: u32,
    /// The high end of the public price range in cents.
    pub high: u32,
    /// Own turns in the whole match, known or assumed; at least 1.
    pub turn_count: u32,
    /// Own turns made so far; during a turn, its index.
    pub turn_index: u32,
    /// The opponent's turns so far.
    pub heard_count: u32,
    /// Own offers in cents, oldest first.
    pub own: Vec<u32>,
    /// The opponent's offers in cents, oldest first.
    pub theirs: Vec<u32>,
    /// What the opponent said last. Hostile input.
    pub talk: String,
    /// Turns of both sides together, if known.
    pub turn_limit: Option<u32>,
    opens: bool,
    any_offer_stands: bool,
    last: Option<Move>,
}

impl View {
    /// Starts from a brief; takes the parameters `low`, `high` (prices) and `turns`.
    ///
    /// # Errors
    /// A parameter that cannot be read, or `low` above `high`.
    pub fn new(brief: &Brief, params: &mut Params) -> Result<View, ParamError> {
        let view = View::without_clock(brief, params)?;
        let assumed = params.count("turns", HIDDEN_TURNS, [1, 1_000])?;
        let turn_count = if brief.turn_limit.is_none() { assumed } else { view.turn_count };
        Ok(View { turn_count, ..view })
    }

    /// Does the same for a strategy that plans by no clock: `turns` would have no effect on it
    /// and is left, so that it is refused as unknown.
    ///
    /// # Errors
    /// A parameter that cannot be read, or `low` above `high`.
    pub fn without_clock(brief: &Brief, params: &mut Params) -> Result<View, ParamError> {
        let list_price = brief.item.list_price;
        let low = params.price("low", list_price)?.unwrap_or(list_price / 5);
        let high = params.price("high", list_price)?.unwrap_or(list_price.max(low));
        if low > high {
            let expected = format!("a price up to `high`, which is {high}");
            return Err(ParamError::Value { key: "low", value: low.to_string(), expected });
        }
        let own_turns = brief.turn_limit.map(|limit| (limit + u32::from(brief.opens)) / 2);
        Ok(View {
            role: brief.role,
            reserve: brief.reserve,
            list_price,
            low,
            high,
            turn_count: own_turns.unwrap_or(HIDDEN_TURNS).max(1),
            turn_index: 0,
            heard_count: 0,
            own: Vec::new(),
            theirs: Vec::new(),
            talk: String::new(),
            turn_limit: brief.turn_limit,
            opens: brief.opens,
            any_offer_stands: brief.rules == Brief::AMAZON_HISTORY_PRICE,
            last: None,
        })
    }

    /// Takes in the events since the last own turn.
    pub fn hear(&mut self, news: &[Event]) {
        for event in news {
            match event {
                Event::Refused => self.undo(),
                Event::Turn(turn) => {
                    self.heard_count += 1;
                    self.talk.clone_from(&turn.talk);
                    if let Move::Offer(cents) = turn.action
                        && self.theirs.len() < OFFERS_MAX
                    {
                        self.theirs.push(cents);
                    }
                }
            }
        }
    }

    /// Takes back the own last move, which was not delivered.
    fn undo(&mut self) {
        if let Some(last) = self.last.take() {
            self.turn_index -= 1;
            if matches!(last, Move::Offer(_)) {
                self.own.pop();
            }
        }
    }

    /// Returns the own best price: where plans start.
    pub fn start(&self) -> u32 {
        match self.role {
            Role::Buyer => self.low.min(self.reserve),
            Role::Seller => self.high.max(self.reserve),
        }
    }

    /// Returns the clock, from 0 on the first own turn to 1 on the last.
    pub fn clock(&self) -> f64 {
        self.clock_at(self.turn_index)
    }

    /// Returns the clock at an own turn.
    pub fn clock_at(&self, turn_index: u32) -> f64 {
        match self.turn_count {
            1 => 1.0,
            count => f64::from(turn_index.min(count - 1)) / f64::from(count - 1),
        }
    }

    /// Returns whether this is the own last turn, as far as is known.
    pub fn is_last_own_turn(&self) -> bool {
        self.turn_limit.is_some() && self.turn_index + 1 >= self.turn_count
    }

    /// Returns whether the opponent cannot answer any more.
    pub fn is_final_turn(&self) -> bool {
        let turns_before = 2 * self.turn_index + u32::from(!self.opens);
        self.turn_limit.is_some_and(|limit| turns_before + 1 >= limit)
    }

    /// Returns the index of the last own turn that the opponent can answer, if there is one.
    pub fn last_answered_turn(&self) -> Option<u32> {
        let is_ours = |limit: u32| (limit % 2 == 1) == self.opens;
        match self.turn_limit {
            Some(limit) if is_ours(limit) => self.turn_count.checked_sub(2),
            _ => Some(self.turn_count - 1),
        }
    }

    /// Returns the opponent's latest offer in cents.
    pub fn standing(&self) -> Option<u32> {
        self.theirs.last().copied()
    }

    /// Returns the best offer that the opponent has made, whether or not it may be accepted.
    pub fn best_heard(&self) -> Option<u32> {
        let better = |a: u32, b: u32| if self.role.likes(a, b) { a } else { b };
        self.theirs.iter().copied().reduce(better)
    }

    /// Returns the best offer that may be accepted now: the latest, or any earlier one where
    /// the rules allow that.
    pub fn best_available(&self) -> Option<u32> {
        if self.any_offer_stands { self.best_heard() } else { self.standing() }
    }

    /// Returns every offer that may be accepted now, the best first, each price once.
    pub fn available(&self) -> Vec<u32> {
        if !self.any_offer_stands {
            return self.standing().into_iter().collect();
        }
        let mut offers = self.theirs.clone();
        offers.sort_unstable();
        offers.dedup();
        if self.role == Role::Seller {
            offers.reverse();
        }
        offers
    }

    /// Returns whether a price is within the own reserve.
    pub fn affords(&self, cents: u32) -> bool {
        self.role.likes(cents, self.reserve)
    }

    /// Returns the price nearest to `cents` between the own start and the own reserve, rounded
    /// to the own advantage.
    pub fn price(&self, cents: f64) -> u32 {
        // A millionth of a cent, so that the dust of binary fractions does not cost a cent.
        const DUST: f64 = 1e-6;
        let (start, reserve) = (f64::from(self.start()), f64::from(self.reserve));
        // Not `clamp`: its panic message would pull the printing of floats into every component.
        match self.role {
            Role::Buyer => (cents + DUST).floor().max(start).min(reserve) as u32,
            Role::Seller => (cents - DUST).ceil().min(start).max(reserve) as u32,
        }
    }

    /// Returns the price that lies the share `conceded` of the way from the own start to the own
    /// reserve.
    pub fn concede(&self, conceded: f64) -> u32 {
        let (start, reserve) = (f64::from(self.start()), f64::from(self.reserve));
        self.price(start + conceded * (reserve - start))
    }

    /// Returns how much of the way from the own reserve to the own start a price keeps: 1 at the
    /// start, 0 at the reserve, and 0 everywhere when the two are the same.
    pub fn kept(&self, cents: u32) -> f64 {
        self.kept_at(f64::from(cents))
    }

    /// Does the same for a price that is no whole number of cents.
    pub fn kept_at(&self, cents: f64) -> f64 {
        let (start, reserve) = (f64::from(self.start()), f64::from(self.reserve));
        if start == reserve { 0.0 } else { (cents - reserve) / (start - reserve) }
    }

    /// Accepts what is available if it is as good as the `next` own price (Baarslag, Hindriks,
    /// Jonker 2013: AC_next), or if it is affordable and nobody can answer any more; offers
    /// `next` otherwise.
    pub fn answer(&mut self, next: u32) -> Reply {
        let next = self.price(f64::from(next));
        let threshold = if self.is_final_turn() { self.reserve } else { next };
        match self.accept_at(threshold) {
            Some(reply) => reply,
            None => self.offer(next),
        }
    }

    /// Accepts what is available if it is as good as `threshold` and affordable.
    pub fn accept_at(&mut self, threshold: u32) -> Option<Reply> {
        let good = |cents: &u32| self.affords(*cents) && self.role.likes(*cents, threshold);
        let cents = self.best_available().filter(good)?;
        let named = (Some(cents) != self.standing()).then_some(cents);
        Some(self.make(Move::Accept(named)))
    }

    /// Offers a price, or the own reserve if the price is beyond it.
    pub fn offer(&mut self, cents: u32) -> Reply {
        self.make_offer(if self.affords(cents) { cents } else { self.reserve })
    }

    fn make_offer(&mut self, cents: u32) -> Reply {
        if self.own.len() < OFFERS_MAX {
            self.own.push(cents);
        }
        self.make(Move::Offer(cents))
    }

    /// Passes.
    pub fn reject(&mut self) -> Reply {
        self.make(Move::Reject)
    }

    /// Ends the negotiation.
    pub fn walk(&mut self) -> Reply {
        self.make(Move::Walk)
    }

    fn make(&mut self, action: Move) -> Reply {
        self.turn_index += 1;
        self.last = Some(action);
        Reply::silent(action)
    }

    /// Makes a move that was decided elsewhere, for example by a language model, if it is legal
    /// now and within the own reserve.
    ///
    /// # Errors
    /// What is wrong with the move. Nothing has happened then.
    pub fn attempt(&mut self, action: Move) -> Result<Reply, Unsound> {
        let price = self.price_of(action)?;
        if price.is_some_and(|cents| !self.affords(cents)) {
            return Err(Unsound::BeyondReserve);
        }
        self.attempt_unbounded(action)
    }

    /// Does the same for a move that may lie beyond the own reserve, which the host regulates.
    ///
    /// # Errors
    /// What is illegal about the move. Nothing has happened then.
    pub fn attempt_unbounded(&mut self, action: Move) -> Result<Reply, Unsound> {
        self.price_of(action)?;
        match action {
            Move::Offer(cents) => Ok(self.make_offer(cents)),
            Move::Accept(_) | Move::Reject | Move::Walk => Ok(self.make(action)),
        }
    }

    /// Returns the price that a legal move would be held to, if it has one.
    fn price_of(&self, action: Move) -> Result<Option<u32>, Unsound> {
        match action {
            Move::Offer(cents) => Ok(Some(cents)),
            Move::Accept(named) => self.on_offer(named).map(Some),
            // Where the buyer has to open, it must not leave before that.
            Move::Walk if self.heard_count == 0 => Err(Unsound::TooEarly),
            Move::Reject | Move::Walk => Ok(None),
        }
    }

    /// Returns the price of the offer that an acceptance means.
    fn on_offer(&self, named: Option<u32>) -> Result<u32, Unsound> {
        let latest = self.standing().ok_or(Unsound::NothingOffered)?;
        match named {
            None => Ok(latest),
            Some(cents) if cents == latest => Ok(latest),
            Some(cents) if self.any_offer_stands && self.theirs.contains(&cents) => Ok(cents),
            Some(_) => Err(Unsound::NotOnOffer),
        }
    }
}

/// Why a move would be illegal or against the own interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// The price is worse than the own reserve.
    BeyondReserve,
    /// There is no offer that could be accepted.
    NothingOffered,
    /// The price is not one that may be accepted now.
    NotOnOffer,
    /// The opponent has not moved yet, so there is nothing to walk away from.
    TooEarly,
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsound::BeyondReserve => "the price is beyond your own limit",
            Unsound::NothingOffered => "there is no offer yet that could be accepted",
            Unsound::NotOnOffer => "no offer at that price can be accepted now",
            Unsound::TooEarly => "you cannot leave before the other side has moved",
        })
    }
}

impl std::error::Error for Unsound {}
