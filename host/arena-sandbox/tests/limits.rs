//! Every limit bites, with the fault that is written down for it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;
mod kit;

use std::time::{Duration, Instant};

use arena_core::config::Limits;
use arena_core::fault::{Fault, SeatError, VoidReason};
use arena_sandbox::{Grants, Sandbox, watchdog_for};
use harness::{check_fault, load_and_play, play, sandbox, settings};
use kit::{Guest, NEGOTIATOR};

const LOOP: &str = "(loop $l (br $l))";
const REPLY: &str = "(i32.const 1024)";

/// Little of everything, so that tests are quick.
fn small() -> Limits {
    Limits {
        fuel_start_max: 100_000,
        fuel_turn_max: 100_000,
        fuel_match_max: 250_000,
        memory_bytes_max: 4 << 20,
        table_elements_max: 100,
        host_calls_max: 50,
        handles_max: 8,
        lifted_bytes_max: 8 << 10,
        trace_bytes_max: 100,
        ..Limits::default()
    }
}

fn check(name: &str, guest: Guest<'_>, fault: Fault) {
    check_fault(name, small(), &guest.component(), 5, fault);
}

/// Writes a reply at 2048 with this talk.
fn talking(pointer: u32, length: u32) -> String {
    format!(
        "(i32.store (i32.const 2060) (i32.const {pointer}))
         (i32.store (i32.const 2064) (i32.const {length}))
         (i32.const 2048)"
    )
}

#[test]
fn endless_loops_run_out_of_fuel_wherever_they_are() {
    let in_act = format!("{LOOP} {REPLY}");
    let post = format!(r#"(func (export "cabi_post_{NEGOTIATOR}#act") (param i32) {LOOP})"#);
    let cases = [
        ("begin", Guest { begin: LOOP, ..Guest::default() }),
        ("act", Guest { act: &in_act, ..Guest::default() }),
        ("cabi_realloc", Guest { realloc: "(loop $l (br $l)) (i32.const 0)", ..Guest::default() }),
        ("post-return", Guest { fields: &post, ..Guest::default() }),
    ];
    for (name, guest) in cases {
        check(name, guest, Fault::Fuel);
    }
}

/// Takes some 90,000 fuel.
const BUSY: &str = "
    (local.set $i (i32.const 15000))
    (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (i32.const 1024)";

#[test]
fn turns_within_the_turn_budget_still_exhaust_the_match_budget() {
    let guest = Guest { act: BUSY, ..Guest::default() }.component();
    let played = load_and_play(small(), &guest, 5);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Fuel)));
    let fuel = &played.usage.fuel_per_act;
    // The call that did not return is not written down: the engine's counter is stale.
    assert!((2..=4).contains(&fuel.len()), "{fuel:?}");
    assert!(fuel.iter().all(|fuel| (50_000..=100_000).contains(fuel)), "{fuel:?}");
}

#[test]
fn the_verdict_on_fuel_flips_once_at_the_same_budget() {
    let guest = Guest { act: BUSY, ..Guest::default() }.component();
    let used = load_and_play(Limits::default(), &guest, 1).usage.fuel_per_act[0];
    let sweep = || -> Vec<bool> {
        let verdict = |budget| {
            let limits = Limits { fuel_turn_max: budget, ..Limits::default() };
            match load_and_play(limits, &guest, 1).error {
                None => true,
                Some(SeatError::Fault(Fault::Fuel)) => false,
                Some(other) => panic!("budget {budget}: {other:?}"),
            }
        };
        // The engine checks at loops and calls, so the last operations may be on credit.
        (used - 16..=used).map(verdict).collect()
    };
    let first = sweep();
    assert!(!first[0] && first[16], "{first:?}");
    assert!(first.is_sorted(), "{first:?}");
    assert_eq!(sweep(), first);
}

#[test]
fn traps_are_traps() {
    let bodies = [
        ("unreachable", "(unreachable)"),
        ("division by zero", "(i32.div_s (i32.const 1) (i32.load (i32.const 0)))"),
        ("load out of bounds", "(i32.load (i32.const -8))"),
        ("undefined table element", "(call_indirect (type $none) (i32.const 3)) (i32.const 0)"),
    ];
    for (name, act) in bodies {
        let fields = "(type $none (func)) (table 4 funcref)";
        check(name, Guest { act, fields, ..Guest::default() }, Fault::Trap);
    }
}

#[test]
fn endless_recursion_is_a_trap_when_fuel_allows_it_and_fuel_otherwise() {
    let fields = "(func $down (param i64 i64) (result i64)
        (i64.add (call $down (local.get 1) (local.get 0)) (local.get 0)))";
    let act = "(drop (call $down (i64.const 1) (i64.const 2))) (i32.const 1024)";
    let guest = Guest { fields, act, ..Guest::default() };
    check_fault("deep", Limits::default(), &guest.component(), 1, Fault::Trap);
    let little = Limits { fuel_turn_max: 5_000, ..Limits::default() };
    check_fault("poor", little, &guest.component(), 1, Fault::Fuel);
}

#[test]
fn a_reply_that_breaks_the_contract_is_a_protocol_fault() {
    let far = talking(0x7fff_0000, 4);
    let wrapping = talking(0xffff_fff0, 0x20);
    let huge = talking(0, 0x4000_0000);
    let invalid_text = talking(3000, 2);
    let cases = [
        ("talk out of bounds", far.as_str()),
        ("talk that wraps around", &wrapping),
        ("talk of a gibibyte", &huge),
        ("talk in no encoding", &invalid_text),
        ("reply out of bounds", "(i32.const -32)"),
        ("reply not aligned", "(i32.const 1025)"),
        ("unknown move", "(i32.store8 (i32.const 1024) (i32.const 9)) (i32.const 1024)"),
        ("unknown option", "(i32.store8 (i32.const 1044) (i32.const 7)) (i32.const 1024)"),
    ];
    for (name, act) in cases {
        let fields = r#"(data (i32.const 3000) "\ff\fe")"#;
        check(name, Guest { act, fields, ..Guest::default() }, Fault::Protocol);
    }
}

#[test]
fn talk_is_limited_by_the_rules_and_before_that_by_what_a_result_may_carry() {
    for (length, fault) in [
        (1_024, None),
        (1_025, Some(Fault::TalkTooLong)),
        (8_000, Some(Fault::TalkTooLong)),
        (9_000, Some(Fault::Protocol)),
    ] {
        let act = talking(16_384, length);
        let played =
            load_and_play(small(), &Guest { act: &act, ..Guest::default() }.component(), 1);
        assert_eq!(played.error, fault.map(SeatError::Fault), "{length} bytes");
    }
}

#[test]
fn a_broken_allocator_is_its_owners_fault() {
    for (name, realloc, fault) in [
        ("null", "(i32.const 0)", None),
        ("out of range", "(i32.const -16)", Some(Fault::Protocol)),
        ("unaligned", "(i32.const 4097)", Some(Fault::Protocol)),
        ("trapping", "(unreachable)", Some(Fault::Trap)),
    ] {
        let guest = Guest { realloc, ..Guest::default() }.component();
        let played = load_and_play(small(), &guest, 1);
        assert_eq!(played.error, fault.map(SeatError::Fault), "{name}");
    }
}

#[test]
fn memory_grows_to_the_limit_and_then_says_no() {
    // Offers, as a price, how many pages it got.
    let act = "
        (loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        (i32.store (i32.const 1028) (memory.size))
        (i32.const 1024)";
    let played = load_and_play(small(), &Guest { act, ..Guest::default() }.component(), 1);
    assert_eq!(played.error, None);
    let offer = arena_core::turn::Move::Offer(arena_core::price::Price(64));
    assert_eq!(played.replies[0].action, offer, "4 MiB are 64 pages");
}

#[test]
fn giving_up_after_denied_growth_is_a_memory_fault_and_ignoring_it_burns_fuel() {
    let give_up = "
        (if (i32.eq (memory.grow (i32.const 100)) (i32.const -1)) (then (unreachable)))
        (i32.const 1024)";
    check("gives up", Guest { act: give_up, ..Guest::default() }, Fault::Memory);
    let insist = "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) (i32.const 1024)";
    check("insists", Guest { act: insist, ..Guest::default() }, Fault::Fuel);
}

#[test]
fn growing_memory_costs_fuel_by_the_page() {
    let fuel = |pages: u32| {
        let act = format!("(drop (memory.grow (i32.const {pages}))) (i32.const 1024)");
        let guest = Guest { act: &act, ..Guest::default() }.component();
        load_and_play(small(), &guest, 1).usage.fuel_per_act[0]
    };
    assert_eq!(fuel(11) - fuel(1), 2_550);
}

#[test]
fn a_table_grows_to_the_limit_and_then_says_no() {
    // One table of 60 of 100 elements; growing it by 60 is denied, by 40 it is not.
    for (more, size) in [(60, 60), (40, 100)] {
        let act = format!(
            "(drop (table.grow $t (ref.null func) (i32.const {more})))
             (i32.store (i32.const 1028) (table.size $t))
             (i32.const 1024)"
        );
        let fields = "(table $t 60 funcref)";
        let guest = Guest { act: &act, fields, ..Guest::default() }.component();
        let played = load_and_play(small(), &guest, 1);
        let offer = arena_core::turn::Move::Offer(arena_core::price::Price(size));
        assert_eq!(played.replies[0].action, offer);
    }
}

const NOTE: &str =
    r#"(import "arena:negotiation/trace@0.1.0" "note" (func $note (param i32 i32)))"#;

#[test]
fn host_calls_are_counted_over_the_match() {
    let act = "(call $note (i32.const 0) (i32.const 0)) (i32.const 1024)";
    let guest = Guest { imports: NOTE, act, ..Guest::default() }.component();
    let played = load_and_play(small(), &guest, 60);
    assert_eq!(played.replies.len(), 50);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Protocol)));
}

#[test]
fn host_calls_are_paid_for_by_the_call_and_by_the_byte() {
    let fuel = |length: u32| {
        let act = format!("(call $note (i32.const 8192) (i32.const {length})) (i32.const 1024)");
        let guest = Guest { imports: NOTE, act: &act, ..Guest::default() }.component();
        load_and_play(small(), &guest, 1).usage.fuel_per_act[0]
    };
    let idle = load_and_play(small(), &Guest::default().component(), 1).usage.fuel_per_act[0];
    assert!((1_000..1_050).contains(&(fuel(0) - idle)), "{} {idle}", fuel(0));
    assert_eq!(fuel(5_000) - fuel(0), 5_000);
    let act = "(loop $l (call $note (i32.const 8192) (i32.const 8000)) (br $l)) (i32.const 1024)";
    check("flood", Guest { imports: NOTE, act, ..Guest::default() }, Fault::Fuel);
}

#[test]
fn a_host_call_with_more_than_it_may_carry_is_a_protocol_fault() {
    let act = "(call $note (i32.const 8192) (i32.const 9000)) (i32.const 1024)";
    check("long note", Guest { imports: NOTE, act, ..Guest::default() }, Fault::Protocol);
}

#[test]
fn notes_are_kept_up_to_the_limit_and_then_dropped_and_marked() {
    let fields = r#"(data (i32.const 3000) "0123456789012345678901234567890123456789")"#;
    let act = "(call $note (i32.const 3000) (i32.const 40)) (i32.const 1024)";
    let guest = Guest { imports: NOTE, fields, act, ..Guest::default() }.component();
    let usage = load_and_play(small(), &guest, 4).usage;
    let lengths: Vec<usize> = usage.trace.iter().map(String::len).collect();
    assert_eq!((lengths, usage.trace_cut), (vec![40, 40, 20], true));
    let within = load_and_play(small(), &guest, 2).usage;
    assert_eq!((within.trace.len(), within.trace_cut), (2, false));
}

#[test]
fn an_import_cannot_be_called_while_the_host_writes_arguments() {
    let realloc = "(call $note (i32.const 0) (i32.const 0)) (i32.const 4096)";
    check("realloc", Guest { imports: NOTE, realloc, ..Guest::default() }, Fault::Trap);
}

#[test]
fn the_watchdog_voids_and_never_scores() {
    let limits = Limits { fuel_turn_max: u64::MAX, fuel_match_max: u64::MAX, ..small() };
    let mut settings = settings(limits);
    settings.watchdog = Duration::from_millis(100);
    let sandbox = Sandbox::new(&settings).unwrap();
    let act = format!("{LOOP} {REPLY}");
    let agent = sandbox.load(&Guest { act: &act, ..Guest::default() }.component()).unwrap();
    let error = play(&sandbox, &agent, &Grants::default(), 1).error;
    let is_void = matches!(&error, Some(SeatError::Void { reason: VoidReason::Host, .. }));
    assert!(is_void, "{error:?}");
}

/// Links a quarter of a million cells of 256 bytes into one ring, in an order that no cache
/// foresees, then follows the links until its fuel is gone: one unit for each load from main
/// memory. The links lie beside what the host wrote for this call.
fn chase() -> Vec<u8> {
    let fill = "(drop (memory.grow (i32.const 1023)))
      (loop $l
        (i32.store offset=64 (i32.shl (local.get $i) (i32.const 8)) (i32.add (i32.const 64)
          (i32.shl (i32.and (i32.const 0x3ffff)
            (i32.add (i32.mul (local.get $i) (i32.const 1664525)) (i32.const 1013904223)))
            (i32.const 8))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $l (i32.lt_u (local.get $i) (i32.const 0x40000))))
      (local.set $i (i32.const 64))";
    let (loads, ends) = ("(i32.load ".repeat(400), ")".repeat(400));
    let act =
        format!("{fill} (loop $l (local.set $i {loads} (local.get $i) {ends}) (br $l)) {REPLY}");
    Guest { act: &act, ..Guest::default() }.component()
}

#[test]
fn no_guest_outlasts_the_watchdog_before_its_fuel_ends() {
    let fuel = 12_000_000;
    let limits = Limits { fuel_start_max: fuel, fuel_turn_max: fuel, ..Limits::default() };
    let sandbox = sandbox(limits);
    let agent = sandbox.load(&chase()).unwrap();
    let start = Instant::now();
    let played = play(&sandbox, &agent, &Grants::default(), 1);
    let elapsed = start.elapsed();
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Fuel)));
    let shown = format!("{} ns per unit of fuel", elapsed.as_nanos() / u128::from(fuel));
    assert!(elapsed > Duration::from_nanos(5 * fuel), "it does not miss the cache: {shown}");
    let beyond_the_least = watchdog_for(&limits, 4) - Duration::from_secs(30);
    assert!(elapsed * 4 < beyond_the_least, "{shown}");
}

#[test]
fn the_watchdog_waits_as_long_as_fuel_and_crowding_allow() {
    let waits = |fuel: u64, slots: u32| {
        let limits = Limits { fuel_start_max: 1, fuel_turn_max: fuel, ..Limits::default() };
        watchdog_for(&limits, slots)
    };
    assert!(waits(1, 2) >= Duration::from_secs(30));
    assert!(waits(1_000_000_000, 2) >= Duration::from_secs(10_000));
    assert!(waits(1_000_000_000, 100_000) > 10 * waits(1_000_000_000, 2));
    let start = Limits { fuel_start_max: 1_000_000_000, ..Limits::default() };
    assert!(watchdog_for(&start, 2) >= Duration::from_secs(10_000), "start-up counts too");
    assert!(waits(u64::MAX, u32::MAX) > Duration::from_secs(1_000), "and nothing overflows");
}

#[test]
fn a_guest_that_fails_in_finish_keeps_its_turns() {
    let guest = Guest { finish: "(unreachable)", ..Guest::default() }.component();
    let played = load_and_play(small(), &guest, 2);
    assert_eq!((played.replies.len(), played.error), (2, None));
    assert_eq!(played.usage.fuel_per_act.len(), 2);
}
