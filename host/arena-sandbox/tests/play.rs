//! A guest plays: what goes in, what comes out, and that it is the same every time.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;
mod kit;

use arena_core::config::Limits;
use arena_core::fault::{SeatError, VoidReason};
use arena_core::price::Price;
use arena_core::scenario::Role;
use arena_core::seat::Seat;
use arena_core::turn::{Belief, Move};
use arena_sandbox::{Grants, Sandbox};
use harness::{brief, load_and_play, opponent_offers, play, sandbox};
use kit::Guest;

/// Writes a reply from scratch and returns its address.
const FULL_REPLY: &str = "
    (i32.store8 (i32.const 2048) (i32.const 1))
    (i32.store8 (i32.const 2052) (i32.const 1))
    (i32.store (i32.const 2056) (i32.const 777))
    (i32.store (i32.const 2060) (i32.const 3000))
    (i32.store (i32.const 2064) (i32.const 5))
    (i32.store8 (i32.const 2068) (i32.const 1))
    (i32.store (i32.const 2072) (i32.const 6000))
    (i32.store (i32.const 2076) (i32.const 250))
    (i32.const 2048)";

#[test]
fn the_default_guest_offers_fifty_dollars() {
    let played = load_and_play(Limits::default(), &Guest::default().component(), 2);
    assert_eq!(played.error, None);
    assert_eq!(played.replies.len(), 2);
    assert_eq!(played.replies[0].action, Move::Offer(Price(5_000)));
    assert_eq!(played.replies[0].talk, "");
    assert_eq!(played.replies[0].belief, None);
}

#[test]
fn every_field_of_a_reply_arrives() {
    let fields = r#"(data (i32.const 3000) "h\c3\a9y!")"#;
    let guest = Guest { act: FULL_REPLY, fields, ..Guest::default() };
    let reply = load_and_play(Limits::default(), &guest.component(), 1).replies.remove(0);
    assert_eq!(reply.action, Move::Accept(Some(Price(777))));
    assert_eq!(reply.talk, "héy!");
    let belief = Belief { reserve: Price(6_000), spread: Price(250) };
    assert_eq!(reply.belief, Some(belief));
}

#[test]
fn a_guest_reads_its_reserve_in_the_brief_and_the_price_in_the_news() {
    // Brief: role at 0, item at 4 (three texts and a price), reserve at 32. News: event at the
    // pointer, its turn at 4, the move of the turn at 8, the price of the offer at 12.
    let guest = Guest {
        fields: "(global $reserve (mut i32) (i32.const 0))",
        begin: "(global.set $reserve (i32.load offset=32 (local.get 0)))",
        act: "(i32.store (i32.const 1028)
                (i32.sub (global.get $reserve) (i32.load offset=12 (local.get 0))))
              (i32.const 1024)",
        ..Guest::default()
    };
    let sandbox = sandbox(Limits::default());
    let agent = sandbox.load(&guest.component()).unwrap();
    let mut seat = sandbox.seat(&agent, &Grants::default(), 7).unwrap();
    seat.begin(&brief(Role::Buyer, 7)).unwrap();
    let reply = seat.act(&[opponent_offers(1_500, "Hello")]).unwrap();
    assert_eq!(reply.action, Move::Offer(Price(8_000 - 1_500)));
}

#[test]
fn three_runs_are_equal_in_replies_fuel_and_notes_on_one_sandbox_and_on_three() {
    let guest = Guest {
        imports: r#"(import "arena:negotiation/trace@0.1.0" "note" (func $note (param i32 i32)))"#,
        act: "(call $note (local.get 0) (i32.const 12))
              (i32.store (i32.const 1028) (i32.load offset=12 (local.get 0)))
              (i32.const 1024)",
        ..Guest::default()
    }
    .component();
    let one = sandbox(Limits::default());
    let agent = one.load(&guest).unwrap();
    let first = play(&one, &agent, &Grants::default(), 5);
    assert_eq!(first.error, None);
    assert_eq!(first.usage.fuel_per_act.len(), 5);
    assert!(first.usage.fuel_per_act.iter().all(|fuel| *fuel > 1_000), "{first:?}");
    for _ in 0..2 {
        assert_eq!(play(&one, &agent, &Grants::default(), 5), first);
        assert_eq!(load_and_play(Limits::default(), &guest, 5), first);
    }
}

/// Returns 1 as the offered price if any byte from 8192 on is not zero, then dirties them all.
const LOOK_AND_SPOIL: &str = "
    (local.set $i (i32.const 8192))
    (i32.store (i32.const 1028) (i32.const 0))
    (block $end (loop $next
      (br_if $end (i32.ge_u (local.get $i) (i32.const 65536)))
      (if (i64.ne (i64.load (local.get $i)) (i64.const 0))
        (then (i32.store (i32.const 1028) (i32.const 1))))
      (i64.store (local.get $i) (i64.const -1))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br $next)))
    (i32.const 1024)";

#[test]
fn a_fresh_seat_finds_zeroed_memory_where_another_seat_has_written() {
    let sandbox = sandbox(Limits::default());
    let agent =
        sandbox.load(&Guest { act: LOOK_AND_SPOIL, ..Guest::default() }.component()).unwrap();
    for _ in 0..12 {
        let mut seats: Vec<_> =
            (0..4).map(|_| sandbox.seat(&agent, &Grants::default(), 7).unwrap()).collect();
        for seat in &mut seats {
            assert_eq!(seat.act(&[]).unwrap().action, Move::Offer(Price(0)));
            assert_eq!(seat.act(&[]).unwrap().action, Move::Offer(Price(1)), "the same seat");
        }
    }
}

#[test]
fn a_seat_beyond_the_slots_is_nobodys_fault_and_a_dropped_seat_makes_room() {
    let sandbox = sandbox(Limits::default());
    let agent = sandbox.load(&Guest::default().component()).unwrap();
    let seat = |seed| sandbox.seat(&agent, &Grants::default(), seed);
    let mut seats: Vec<_> = (0..4).map(|seed| seat(seed).unwrap()).collect();
    let full = seat(4).err().unwrap();
    assert!(matches!(full, SeatError::Void { reason: VoidReason::Host, .. }), "{full:?}");
    // A component can be tried while every seat is taken.
    sandbox.load(&Guest::default().component()).unwrap();
    seats.pop();
    assert!(seat(5).is_ok());
}

#[test]
fn the_fingerprint_does_not_depend_on_slots_or_limits() {
    let small = Limits { memory_bytes_max: 1 << 20, fuel_turn_max: 5, ..Limits::default() };
    let mut settings = harness::settings(small);
    settings.slots = 9;
    let other = Sandbox::new(&settings).unwrap().fingerprint();
    assert_eq!(sandbox(Limits::default()).fingerprint(), other);
    for line in other.lines() {
        assert!(
            line.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
        );
    }
    assert!(other.contains("engine=wasmtime 48.0.8\n"), "{other}");
}

#[test]
fn the_fingerprint_names_the_engine_that_is_locked() {
    let lock = include_str!("../../../Cargo.lock");
    assert!(lock.contains("name = \"wasmtime\"\nversion = \"48.0.8\"\n"));
}

#[test]
fn an_agent_is_known_by_the_hash_of_its_component() {
    use sha2::{Digest, Sha256};
    let component = Guest::default().component();
    let agent = sandbox(Limits::default()).load(&component).unwrap();
    assert_eq!(agent.sha256().as_slice(), Sha256::digest(&component).as_slice());
}

#[test]
fn threads_share_a_sandbox_and_play_the_same() {
    let guest = Guest { act: LOOK_AND_SPOIL, ..Guest::default() }.component();
    let sandbox = sandbox(Limits::default());
    let agent = sandbox.load(&guest).unwrap();
    let first = play(&sandbox, &agent, &Grants::default(), 3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    assert_eq!(play(&sandbox, &agent, &Grants::default(), 3), first);
                }
            });
        }
    });
}
