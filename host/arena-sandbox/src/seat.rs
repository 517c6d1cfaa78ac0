//! One guest in one match, as the referee sees it.
//!
//! A seat has a store of its own that nothing else has touched or will touch. Whatever ends a
//! guest becomes a [`Fault`] of the closed list, decided by codes and never by error text.
//!
//! Not here: what a move means (`arena_core::referee`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arena_core::config::Limits;
use arena_core::fault::{Fault, SeatError, VoidReason};
use arena_core::price::Price;
use arena_core::scenario::{Brief, Role};
use arena_core::seat::{Seat, Usage};
use arena_core::turn::{Belief, End, Event, Move, Reply};
use wasmtime::{Engine, Store, Trap};

use crate::bindings::arena::negotiation::types as wit;
use crate::bindings::exports::arena::negotiation::negotiator::Guest;
use crate::bindings::{Agent, AgentPre};
use crate::refusal::{LoadError, Refusal, SandboxError};
use crate::state::{Grants, SeatState, Stop};

/// A component in play on one side of one match.
pub struct GuestSeat {
    store: Store<SeatState>,
    agent: Agent,
    fuel_turn_max: u64,
    fuel_left: u64,
    talk_bytes_max: u32,
    /// What ended the guest. It is not called again.
    ended: Option<SeatError>,
    // After the store, so that a slot is free only when its instance is gone.
    _slot: Slot,
}

/// The right to one instance of the pool.
pub(crate) struct Slot(Arc<AtomicU32>);

impl Slot {
    /// Takes a slot, unless `slots` are taken.
    pub(crate) fn take(taken: &Arc<AtomicU32>, slots: u32) -> Result<Slot, SeatError> {
        let more = |count: u32| (count < slots).then_some(count + 1);
        match taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(_) => Ok(Slot(Arc::clone(taken))),
            Err(_) => Err(void(format!("all {slots} seats of the sandbox are in play"))),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What it takes to start a guest.
pub(crate) struct Start<'a> {
    pub engine: &'a Engine,
    pub pre: &'a AgentPre<SeatState>,
    pub limits: &'a Limits,
    pub grants: &'a Grants,
    pub seed: u64,
    pub deadline_ticks: u64,
}

impl Start<'_> {
    /// Makes a store for one guest, with its start-up budget.
    fn store(&self) -> Result<Store<SeatState>, SeatError> {
        let limits = self.limits;
        let state = SeatState::new(limits, self.grants, self.seed, self.deadline_ticks);
        let mut store = Store::new(self.engine, state);
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(limits.lifted_bytes_max as usize);
        store.set_max_component_handles(limits.handles_max as usize);
        set_up(&mut store, limits.fuel_start_max)?;
        Ok(store)
    }

    /// Starts a guest once and asks whether its exports have the contract's types.
    pub(crate) fn try_out(&self) -> Result<(), LoadError> {
        let trial = |error: SeatError| match error {
            SeatError::Fault(fault) => LoadError::Refused(Refusal::Start { fault }),
            SeatError::Void { detail, .. } => LoadError::Host(SandboxError::Trial { detail }),
        };
        let mut store = self.store().map_err(trial)?;
        let instance = match self.pre.instance_pre().instantiate(&mut store) {
            Ok(instance) => instance,
            Err(error) => {
                return Err(trial(classify(&error, &store.data().meter, Phase::Start)));
            }
        };
        match Agent::new(&mut store, &instance) {
            Ok(_) => Ok(()),
            Err(error) => Err(Refusal::Interface { detail: format!("{error:#}") }.into()),
        }
    }
}

impl GuestSeat {
    /// Makes a fresh instance under the start-up budget.
    pub(crate) fn start(start: &Start<'_>, slot: Slot) -> Result<GuestSeat, SeatError> {
        let mut store = start.store()?;
        let agent = match start.pre.instantiate(&mut store) {
            Ok(agent) => agent,
            Err(error) => return Err(classify(&error, &store.data().meter, Phase::Start)),
        };
        Ok(GuestSeat {
            store,
            agent,
            fuel_turn_max: start.limits.fuel_turn_max,
            fuel_left: start.limits.fuel_match_max,
            talk_bytes_max: start.limits.talk_bytes_max,
            ended: None,
            _slot: slot,
        })
    }

    /// Calls an export under the turn's budget, and returns its result and the fuel it took.
    fn call<T>(
        &mut self,
        export: impl FnOnce(&Guest, &mut Store<SeatState>) -> wasmtime::Result<T>,
    ) -> Result<(T, u64), SeatError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let called = self.call_once(export);
        if let Err(error) = &called {
            self.ended = Some(error.clone());
        }
        called
    }

    fn call_once<T>(
        &mut self,
        export: impl FnOnce(&Guest, &mut Store<SeatState>) -> wasmtime::Result<T>,
    ) -> Result<(T, u64), SeatError> {
        let fuel = self.fuel_turn_max.min(self.fuel_left);
        set_up(&mut self.store, fuel)?;
        let guest = self.agent.arena_negotiation_negotiator();
        let result = export(guest, &mut self.store)
            .map_err(|error| classify(&error, &self.store.data().meter, Phase::Call))?;
        // Only here is the engine's counter up to date.
        let left = self.store.get_fuel().map_err(|error| void(error.to_string()))?;
        let used = fuel.saturating_sub(left);
        self.fuel_left = self.fuel_left.saturating_sub(used);
        Ok((result, used))
    }
}

/// Gives the next call its fuel and its deadline.
fn set_up(store: &mut Store<SeatState>, fuel: u64) -> Result<(), SeatError> {
    store.data_mut().meter.denied = false;
    store.set_epoch_deadline(store.data().deadline_ticks);
    store.set_fuel(fuel).map_err(|error| void(error.to_string()))
}

impl Seat for GuestSeat {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        let brief = brief_for_guest(brief);
        self.call(|guest, store| guest.call_begin(store, &brief)).map(|_| ())
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        let news: Vec<wit::Event> = news.iter().map(event_for_guest).collect();
        self.store.data_mut().begin_turn();
        let (reply, fuel) = self.call(|guest, store| guest.call_act(store, &news))?;
        self.store.data_mut().usage.fuel_per_act.push(fuel);
        if reply.talk.len() > self.talk_bytes_max as usize {
            self.ended = Some(SeatError::Fault(Fault::TalkTooLong));
            return Err(SeatError::Fault(Fault::TalkTooLong));
        }
        Ok(reply_from_guest(reply))
    }

    fn finish(&mut self, end: &End) {
        let end = match end {
            End::Deal(price) => wit::End::Deal(price.0),
            End::Impasse => wit::End::Impasse,
            End::Fault(name) => wit::End::Fault(name.clone()),
        };
        self.store.data_mut().finishing = true;
        let before = self.store.data().usage.clone();
        if let Err(SeatError::Void { .. }) =
            self.call(|guest, store| guest.call_finish(store, &end))
        {
            // Only the watchdog ends a call at a point that no replay would repeat.
            self.store.data_mut().usage = before;
        }
    }

    fn take_usage(&mut self) -> Usage {
        std::mem::take(&mut self.store.data_mut().usage)
    }
}

/// What was running when a guest ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    Call,
}

fn void(detail: String) -> SeatError {
    SeatError::Void { reason: VoidReason::Host, detail }
}

/// Sorts what ended a guest into the closed list of faults.
fn classify(error: &wasmtime::Error, meter: &crate::meter::Meter, phase: Phase) -> SeatError {
    if meter.host_failed
        || error.is::<wasmtime::PoolConcurrencyLimitError>()
        || error.is::<wasmtime::OutOfMemory>()
    {
        return void(format!("{error:#}"));
    }
    if let Some(Stop(error)) = error.downcast_ref::<Stop>() {
        return error.clone();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => SeatError::Fault(Fault::Fuel),
        Some(Trap::Interrupt) => void("the watchdog ended a guest call".to_owned()),
        // What a runtime does whose allocator was told that there is no more memory.
        Some(Trap::UnreachableCodeReached) if meter.denied => SeatError::Fault(Fault::Memory),
        Some(_) => SeatError::Fault(Fault::Trap),
        // The engine says so of an instance that would start with too much.
        None if phase == Phase::Start && meter.denied => SeatError::Fault(Fault::Memory),
        // What is left is the canonical ABI: pointers, discriminants, text, handles, sizes.
        None => SeatError::Fault(Fault::Protocol),
    }
}

fn role_for_guest(role: Role) -> wit::Role {
    match role {
        Role::Buyer => wit::Role::Buyer,
        Role::Seller => wit::Role::Seller,
    }
}

fn brief_for_guest(brief: &Brief) -> wit::Brief {
    let item = wit::Item {
        title: brief.item.title.clone(),
        category: brief.item.category.clone(),
        description: brief.item.description.clone(),
        list_price: brief.item.list_price.0,
    };
    wit::Brief {
        role: role_for_guest(brief.role),
        item,
        reserve: brief.reserve.0,
        message_limit: brief.turn_limit,
        opens: brief.opens,
        rules: brief.rules.name().to_owned(),
        params: brief.params.clone(),
        // High half, low half.
        seed: ((brief.seed >> 32) as u32, brief.seed as u32),
    }
}

fn event_for_guest(event: &Event) -> wit::Event {
    match event {
        Event::Refused => wit::Event::Refused,
        Event::Turn(turn) => wit::Event::Turn(wit::Turn {
            by: role_for_guest(turn.by),
            move_: match turn.action {
                Move::Offer(price) => wit::Move::Offer(price.0),
                Move::Accept(price) => wit::Move::Accept(price.map(Price::cents)),
                Move::Reject => wit::Move::Reject,
                Move::Walk => wit::Move::Walk,
            },
            talk: turn.talk.clone(),
        }),
    }
}

fn reply_from_guest(reply: wit::Reply) -> Reply {
    let action = match reply.move_ {
        wit::Move::Offer(cents) => Move::Offer(Price(cents)),
        wit::Move::Accept(cents) => Move::Accept(cents.map(Price)),
        wit::Move::Reject => Move::Reject,
        wit::Move::Walk => Move::Walk,
    };
    let belief = reply
        .belief
        .map(|belief| Belief { reserve: Price(belief.reserve), spread: Price(belief.spread) });
    Reply { action, talk: reply.talk, belief }
}
