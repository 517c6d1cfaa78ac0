//! An agent's Rust type as a seat, without WebAssembly around it.
//!
//! The same source as the built-in component, compiled for the machine: what it costs more to
//! play the component is the price of the sandbox. Nothing is limited here and no fuel counted.
//!
//! Not here: the sandbox (`arena_sandbox`).

use arena_core::fault::SeatError;
use arena_core::price::Price;
use arena_core::scenario::{Brief, Role};
use arena_core::seat::{Seat, Usage};
use arena_core::turn::{Belief, End, Event, Move, Reply};
use arena_guest::game;

/// A native strategy in play.
pub struct NativeSeat<A> {
    agent: Option<A>,
}

impl<A: game::Agent> NativeSeat<A> {
    /// Returns a seat for one match.
    pub fn new() -> NativeSeat<A> {
        NativeSeat { agent: None }
    }

    fn agent(&mut self) -> &mut A {
        self.agent.as_mut().expect("the referee begins a seat before it asks")
    }
}

impl<A: game::Agent> Default for NativeSeat<A> {
    fn default() -> NativeSeat<A> {
        NativeSeat::new()
    }
}

impl<A: game::Agent> Seat for NativeSeat<A> {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        self.agent = Some(A::begin(&guest_brief(brief)));
        Ok(())
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        let news: Vec<game::Event> = news.iter().map(guest_event).collect();
        let reply = self.agent().act(&news);
        Ok(Reply {
            action: host_move(reply.action),
            talk: reply.talk,
            belief: reply.belief.map(host_belief),
        })
    }

    fn finish(&mut self, end: &End) {
        let end = match end {
            End::Deal(price) => game::End::Deal(price.cents()),
            End::Impasse => game::End::Impasse,
            End::Fault(name) => game::End::Fault(name.clone()),
        };
        self.agent().finish(&end);
    }

    fn take_usage(&mut self) -> Usage {
        Usage::default()
    }
}

fn guest_role(role: Role) -> game::Role {
    match role {
        Role::Buyer => game::Role::Buyer,
        Role::Seller => game::Role::Seller,
    }
}

fn guest_brief(brief: &Brief) -> game::Brief {
    let item = &brief.item;
    game::Brief {
        role: guest_role(brief.role),
        item: game::Item {
            title: item.title.clone(),
            category: item.category.clone(),
            description: item.description.clone(),
            list_price: item.list_price.cents(),
        },
        reserve: brief.reserve.cents(),
        turn_limit: brief.turn_limit,
        opens: brief.opens,
        rules: brief.rules.name().to_owned(),
        params: brief.params.clone(),
        seed: brief.seed,
    }
}

fn guest_event(event: &Event) -> game::Event {
    match event {
        Event::Refused => game::Event::Refused,
        Event::Turn(turn) => game::Event::Turn(game::Turn {
            by: guest_role(turn.by),
            action: guest_move(turn.action),
            talk: turn.talk.clone(),
        }),
    }
}

fn guest_move(action: Move) -> game::Move {
    match action {
        Move::Offer(price) => game::Move::Offer(price.cents()),
        Move::Accept(named) => game::Move::Accept(named.map(Price::cents)),
        Move::Reject => game::Move::Reject,
        Move::Walk => game::Move::Walk,
    }
}

fn host_move(action: game::Move) -> Move {
    match action {
        game::Move::Offer(cents) => Move::Offer(Price(cents)),
        game::Move::Accept(named) => Move::Accept(named.map(Price)),
        game::Move::Reject => Move::Reject,
        game::Move::Walk => Move::Walk,
    }
}

fn host_belief(belief: game::Belief) -> Belief {
    Belief { reserve: Price(belief.reserve), spread: Price(belief.spread) }
}
