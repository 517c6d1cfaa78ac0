//! Seats that do everything a seat can do, as their seed says: a run of a few hundred matches
//! sees every move, outcome and fault.

use arena_core::fault::{Fault, SeatError};
use arena_core::price::Price;
use arena_core::scenario::{Brief, Role};
use arena_core::seat::{ModelCall, Sampling, Seat, Usage};
use arena_core::turn::{Belief, End, Event, Move, Reply};

/// Longest talk that the tests' tournaments allow.
pub const TALK_BYTES_MAX: usize = 60;

/// A seat whose every act is a function of its seed, its brief and its news.
pub struct Haggler {
    seed: u64,
    acts: u64,
    role: Role,
    reserve: u32,
    usage: Usage,
}

impl Haggler {
    pub fn new(seed: u64) -> Haggler {
        Haggler { seed, acts: 0, role: Role::Buyer, reserve: 0, usage: Usage::default() }
    }

    fn draw(&self, purpose: u64) -> u64 {
        mix(self.seed ^ mix(self.acts << 8 | purpose))
    }

    fn offer(&self) -> Move {
        let step = (self.draw(1) % 4_000) as u32;
        let far = self.draw(2).is_multiple_of(10);
        Move::Offer(Price(match (self.role, far) {
            (Role::Buyer, false) | (Role::Seller, true) => self.reserve.saturating_sub(step),
            (Role::Seller, false) | (Role::Buyer, true) => self.reserve + step,
        }))
    }
}

impl Seat for Haggler {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        assert_eq!(brief.seed, self.seed, "a seat is told the seed that it was made with");
        self.role = brief.role;
        self.reserve = brief.reserve.cents();
        if self.draw(3).is_multiple_of(40) { Err(Fault::Trap.into()) } else { Ok(()) }
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        self.acts += 1;
        let chance = self.draw(4) % 100;
        if chance < 3 {
            // An illegal move is not claimed but made: acceptance of nothing, at the first turn.
            let claimed = Fault::ALL.into_iter().filter(|fault| *fault != Fault::IllegalMove);
            let claimed: Vec<Fault> = claimed.collect();
            return Err(claimed[self.draw(5) as usize % claimed.len()].into());
        }
        self.usage.fuel_per_act.push(self.draw(6) % 1_000_000);
        self.usage.trace.push(format!("act {} after {} events", self.acts, news.len()));
        if chance < 10 {
            self.usage.model_calls.push(call(self.acts as u32 - 1));
        }
        let action = match chance {
            0..8 => Move::Accept(None),
            8..10 => Move::Walk,
            10..20 => Move::Reject,
            _ => self.offer(),
        };
        let talk_bytes = if chance > 97 { TALK_BYTES_MAX + 1 } else { chance as usize % 50 };
        let talk = "x".repeat(talk_bytes);
        let belief =
            chance.is_multiple_of(2).then_some(Belief { reserve: Price(7), spread: Price(1) });
        Ok(Reply { action, talk, belief })
    }

    fn finish(&mut self, end: &End) {
        self.usage.trace.push(format!("{end:?}"));
    }

    fn take_usage(&mut self) -> Usage {
        std::mem::take(&mut self.usage)
    }
}

fn call(act_index: u32) -> ModelCall {
    ModelCall {
        act_index,
        model: "table".to_owned(),
        request_sha256: [9; 32],
        sampling: Sampling::GREEDY,
        is_grammar_bound: false,
        text: "a reply".to_owned(),
        finish_reason: 0,
        input_tokens: 3,
        output_tokens: 2,
        weight_milli: None,
        tokens: None,
    }
}

/// Spreads the bits of a number over all 64 (the finaliser of SplitMix64).
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
