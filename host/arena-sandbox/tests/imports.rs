//! What a guest may call besides models: notes, and WASI that does nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;
mod kit;

use arena_core::config::Limits;
use arena_core::fault::{Fault, SeatError};
use arena_core::price::Price;
use arena_core::turn::Move;
use arena_sandbox::Grants;
use harness::{Played, play, sandbox};
use kit::Guest;

fn run(limits: Limits, grants: &Grants, component: &[u8], turns: u32) -> Played {
    let sandbox = sandbox(limits);
    let agent = sandbox.load(component).unwrap();
    let first = play(&sandbox, &agent, grants, turns);
    assert_eq!(play(&sandbox, &agent, grants, turns), first, "two runs are equal");
    first
}

fn offers(played: &Played) -> Vec<u32> {
    let cents = |action| match action {
        Move::Offer(Price(cents)) => cents,
        other => panic!("{other:?}"),
    };
    played.replies.iter().map(|reply| cents(reply.action)).collect()
}

const WASI_RANDOM: &str = "package wasi:random@0.2.6;
    interface random {
      get-random-bytes: func(len: u64) -> list<u8>;
      get-random-u64: func() -> u64;
    }
    interface insecure-seed { insecure-seed: func() -> tuple<u64, u64>; }";
const WASI_CLOCKS: &str = "package wasi:clocks@0.2.0;
    interface monotonic-clock {
      use wasi:io/poll@0.2.3.{pollable};
      now: func() -> u64;
      subscribe-duration: func(when: u64) -> pollable;
    }
    interface wall-clock {
      record datetime { seconds: u64, nanoseconds: u32 }
      now: func() -> datetime;
    }";
const WASI_IO: &str = "package wasi:io@0.2.3;
    interface error { resource error; }
    interface poll {
      resource pollable { ready: func() -> bool; block: func(); }
      poll: func(in: list<borrow<pollable>>) -> list<u32>;
    }
    interface streams {
      use error.{error};
      variant stream-error { last-operation-failed(error), closed }
      resource output-stream {
        blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
        write-zeroes: func(len: u64) -> result<_, stream-error>;
      }
      resource input-stream { read: func(len: u64) -> result<list<u8>, stream-error>; }
    }";
const WASI_CLI: &str = "package wasi:cli@0.2.9;
    interface exit { exit: func(status: result); }
    interface environment {
      get-environment: func() -> list<tuple<string, string>>;
      get-arguments: func() -> list<string>;
    }
    interface stdout {
      use wasi:io/streams@0.2.3.{output-stream};
      get-stdout: func() -> output-stream;
    }
    interface stdin {
      use wasi:io/streams@0.2.3.{input-stream};
      get-stdin: func() -> input-stream;
    }";

fn with_wasi(imports: &str, fields: &str, act: &str) -> Vec<u8> {
    let packages = [WASI_RANDOM, WASI_IO, WASI_CLOCKS, WASI_CLI];
    let interfaces = [
        "wasi:random/random@0.2.6",
        "wasi:random/insecure-seed@0.2.6",
        "wasi:clocks/monotonic-clock@0.2.0",
        "wasi:clocks/wall-clock@0.2.0",
        "wasi:io/poll@0.2.3",
        "wasi:io/streams@0.2.3",
        "wasi:cli/exit@0.2.9",
        "wasi:cli/environment@0.2.9",
        "wasi:cli/stdout@0.2.9",
        "wasi:cli/stdin@0.2.9",
    ];
    let guest = Guest { imports, fields, act, ..Guest::default() };
    guest.component_with(&packages, &interfaces)
}

fn run_wasi(imports: &str, act: &str, turns: u32) -> Played {
    let fields = "(func $say (param i32) (result i32)
        (i32.store (i32.const 1028) (local.get 0)) (i32.const 1024))";
    run(Limits::default(), &Grants::default(), &with_wasi(imports, fields, act), turns)
}

#[test]
fn random_numbers_come_from_the_seats_seed_alone() {
    let imports = r#"(import "wasi:random/random@0.2.6" "get-random-u64" (func $r (result i64)))"#;
    let fields = "(func $say (param i32) (result i32)
        (i32.store (i32.const 1028) (local.get 0)) (i32.const 1024))";
    let component = with_wasi(imports, fields, "(call $say (i32.wrap_i64 (call $r)))");
    let sandbox = sandbox(Limits::default());
    let agent = sandbox.load(&component).unwrap();
    let draw = |seed| {
        use arena_core::seat::Seat;
        let mut seat = sandbox.seat(&agent, &Grants::default(), seed).unwrap();
        [seat.act(&[]).unwrap().action, seat.act(&[]).unwrap().action]
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_ne!(draw(1)[0], draw(1)[1]);
}

#[test]
fn too_many_random_bytes_at_once_are_a_protocol_fault() {
    let imports = r#"(import "wasi:random/random@0.2.6" "get-random-bytes"
        (func $r (param i64 i32)))"#;
    let few = run_wasi(imports, "(call $r (i64.const 100) (i32.const 3000)) (i32.const 1024)", 1);
    assert_eq!(few.error, None);
    let act = "(call $r (i64.const 0x100000000) (i32.const 3000)) (i32.const 1024)";
    let many = run_wasi(imports, act, 1);
    assert_eq!(many.error, Some(SeatError::Fault(Fault::Protocol)));
}

#[test]
fn clocks_stand_still_and_sleeping_ends_at_once() {
    let imports = r#"
        (import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $now (result i64)))
        (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration"
          (func $sleep (param i64) (result i32)))
        (import "wasi:io/poll@0.2.3" "[method]pollable.block" (func $block (param i32)))
        (import "wasi:clocks/wall-clock@0.2.0" "now" (func $wall (param i32)))"#;
    let act = "
        (call $block (call $sleep (i64.const -1)))
        (call $wall (i32.const 3000))
        (call $say (i32.wrap_i64 (i64.add (call $now) (i64.load (i32.const 3000)))))";
    let started = std::time::Instant::now();
    let played = run_wasi(imports, act, 3);
    assert_eq!(offers(&played), [0, 0, 0]);
    assert!(started.elapsed() < std::time::Duration::from_secs(60), "nothing slept");
}

#[test]
fn output_is_swallowed_and_paid_for_and_input_is_closed() {
    let imports = r#"
        (import "wasi:cli/stdout@0.2.9" "get-stdout" (func $stdout (result i32)))
        (import "wasi:io/streams@0.2.3" "[method]output-stream.blocking-write-and-flush"
          (func $write (param i32 i32 i32 i32)))
        (import "wasi:io/streams@0.2.3" "[method]output-stream.write-zeroes"
          (func $zeroes (param i32 i64 i32)))
        (import "wasi:cli/stdin@0.2.9" "get-stdin" (func $stdin (result i32)))
        (import "wasi:io/streams@0.2.3" "[method]input-stream.read"
          (func $read (param i32 i64 i32)))"#;
    let write = |bytes: u32| {
        let act = format!(
            "(call $write (call $stdout) (i32.const 8192) (i32.const {bytes}) (i32.const 3000))
             (call $say (i32.load8_u (i32.const 3000)))"
        );
        run_wasi(imports, &act, 1)
    };
    assert_eq!(offers(&write(4_096)), [0], "0 is `ok`");
    let fuel = |played: Played| played.usage.fuel_per_act[0];
    assert_eq!(fuel(write(4_096)) - fuel(write(96)), 4_000);

    let zeroes = "(call $zeroes (call $stdout) (i64.const 0x10000000000) (i32.const 3000))
        (i32.const 1024)";
    let played = run_wasi(imports, zeroes, 1);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Fuel)));

    let read = "(call $read (call $stdin) (i64.const 100) (i32.const 3000))
        (call $say (i32.add (i32.mul (i32.load8_u (i32.const 3000)) (i32.const 100))
          (i32.load8_u (i32.const 3004))))";
    assert_eq!(offers(&run_wasi(imports, read, 1)), [101], "`err`, the second case: closed");
}

#[test]
fn there_is_no_environment_and_no_way_out() {
    let environment = r#"
        (import "wasi:cli/environment@0.2.9" "get-environment" (func $env (param i32)))
        (import "wasi:cli/environment@0.2.9" "get-arguments" (func $args (param i32)))"#;
    let act = "
        (call $env (i32.const 3000)) (call $args (i32.const 3008))
        (call $say (i32.add (i32.load (i32.const 3004)) (i32.load (i32.const 3012))))";
    assert_eq!(offers(&run_wasi(environment, act, 1)), [0]);
    let exit = r#"(import "wasi:cli/exit@0.2.9" "exit" (func $exit (param i32)))"#;
    for status in [0, 1] {
        let act = format!("(call $exit (i32.const {status})) (i32.const 1024)");
        let played = run_wasi(exit, &act, 1);
        assert_eq!(played.error, Some(SeatError::Fault(Fault::Trap)), "status {status}");
    }
}

const POLL: &str = r#"
    (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration"
      (func $sleep (param i64) (result i32)))
    (import "wasi:io/poll@0.2.3" "poll" (func $poll (param i32 i32 i32)))"#;

/// Polls a list that names one handle `count` times, and shows how many are ready.
fn poll(count: u32) -> Played {
    let act = format!(
        "(drop (memory.grow (i32.const 64)))
         (i32.store (i32.const 8192) (call $sleep (i64.const -1)))
         (local.set $i (i32.const 1))
         (loop $l
           (i32.store (i32.add (i32.const 8192) (i32.shl (local.get $i) (i32.const 2)))
             (i32.load (i32.const 8192)))
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (br_if $l (i32.lt_u (local.get $i) (i32.const {count}))))
         (call $poll (i32.const 8192) (i32.const {count}) (i32.const 3000))
         (call $say (i32.load (i32.const 3004)))"
    );
    run_wasi(POLL, &act, 1)
}

#[test]
fn polling_is_paid_for_by_the_place_and_a_list_beyond_the_handles_is_a_fault() {
    assert_eq!(offers(&poll(2)), [2]);
    // Eight units for each place, besides the guest's own loop and memory.
    let fuel = |count: u32| poll(count).usage.fuel_per_act[0];
    assert!(fuel(40) - fuel(2) > 38 * 8, "{} {}", fuel(40), fuel(2));
    for count in [1_000, 200_000] {
        assert_eq!(poll(count).error, Some(SeatError::Fault(Fault::Protocol)), "{count}");
    }
    let nothing = "(call $poll (i32.const 8192) (i32.const 0) (i32.const 3000)) (i32.const 1024)";
    assert_eq!(run_wasi(POLL, nothing, 1).error, Some(SeatError::Fault(Fault::Trap)));
}

#[test]
fn handles_that_are_never_dropped_end_the_guest_that_keeps_them() {
    let act = "(loop $l (drop (call $sleep (i64.const 1))) (br $l)) (i32.const 1024)";
    assert_eq!(run_wasi(POLL, act, 1).error, Some(SeatError::Fault(Fault::Protocol)));
}

#[test]
fn lengths_without_end_are_faults_and_nothing_is_allocated_for_them() {
    let imports = r#"
        (import "wasi:cli/stdout@0.2.9" "get-stdout" (func $stdout (result i32)))
        (import "wasi:cli/stdin@0.2.9" "get-stdin" (func $stdin (result i32)))
        (import "wasi:io/streams@0.2.3" "[method]output-stream.blocking-write-and-flush"
          (func $write (param i32 i32 i32 i32)))
        (import "wasi:io/streams@0.2.3" "[method]output-stream.write-zeroes"
          (func $zeroes (param i32 i64 i32)))
        (import "wasi:io/streams@0.2.3" "[method]input-stream.read"
          (func $read (param i32 i64 i32)))
        (import "wasi:random/random@0.2.6" "get-random-bytes" (func $random (param i64 i32)))"#;
    let ends = |call: &str| run_wasi(imports, &format!("{call} (i32.const 1024)"), 1).error;
    let fault = |fault| Some(SeatError::Fault(fault));
    let write = "(call $write (call $stdout) (i32.const 8192) (i32.const -1) (i32.const 3000))";
    assert_eq!(ends(write), fault(Fault::Protocol));
    let zeroes = "(call $zeroes (call $stdout) (i64.const -1) (i32.const 3000))";
    assert_eq!(ends(zeroes), fault(Fault::Fuel));
    let read = "(call $read (call $stdin) (i64.const -1) (i32.const 3000))";
    assert_eq!(ends(read), None, "input is closed, however much is asked for");
    let random = "(call $random (i64.const -1) (i32.const 3000))";
    assert_eq!(ends(random), fault(Fault::Protocol));
}

#[test]
fn random_bytes_are_paid_for_so_that_a_flood_ends() {
    let imports = r#"(import "wasi:random/random@0.2.6" "get-random-bytes"
        (func $r (param i64 i32)))"#;
    let fields = "(func $reset (global.set $heap (i32.const 4096)))";
    let act = "(drop (memory.grow (i32.const 2)))
        (loop $l (call $r (i64.const 65536) (i32.const 3000)) (call $reset) (br $l))
        (i32.const 1024)";
    let component = with_wasi(imports, fields, act);
    let played = run(Limits::default(), &Grants::default(), &component, 1);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Fuel)));
}
