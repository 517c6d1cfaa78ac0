//! What a guest may call: models within its budget, training, notes, and WASI that does nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;
mod kit;

use std::sync::Arc;

use arena_core::config::Limits;
use arena_core::fault::{Fault, SeatError, VoidReason};
use arena_core::price::Price;
use arena_core::turn::Move;
use arena_llm::model::{Completion, FinishReason, LanguageModel, ModelError, ModelInfo};
use arena_llm::request::Request;
use arena_sandbox::{Grants, TrainingMode};
use harness::{Played, play, sandbox};
use kit::Guest;

/// Answers with how many messages it was asked, or fails.
struct Counting {
    fails: bool,
}

impl LanguageModel for Counting {
    fn info(&self) -> ModelInfo {
        ModelInfo { name: "tiny".to_owned(), context_tokens: 512, sha256: [0; 32] }
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        if self.fails {
            return Err(ModelError::Unavailable("the server is down".to_owned()));
        }
        Ok(Completion {
            text: format!("{} messages", request.messages.len()),
            finish_reason: FinishReason::Stop,
            input_tokens: 3,
            output_tokens: 2,
        })
    }
}

fn grants(fails: bool, training: Option<TrainingMode>) -> Grants {
    Grants { models: vec![Arc::new(Counting { fails })], training }
}

fn run(limits: Limits, grants: &Grants, component: &[u8], turns: u32) -> Played {
    let sandbox = sandbox(limits);
    let agent = sandbox.load(component).unwrap();
    let first = play(&sandbox, &agent, grants, turns);
    assert_eq!(play(&sandbox, &agent, grants, turns), first, "two runs are equal");
    first
}

/// The interface, with the texts "tiny" at 3000 and "what?" at 3010.
const INFERENCE: &str = r#"
    (import "arena:negotiation/inference@0.1.0" "[static]chat.open"
      (func $open (param i32 i32 i32)))
    (import "arena:negotiation/inference@0.1.0" "[method]chat.add"
      (func $add (param i32 i32 i32 i32 i32)))
    (import "arena:negotiation/inference@0.1.0" "[method]chat.complete"
      (func $complete (param i32 i32 i32 i32 i32 i32 i32)))
    (import "arena:negotiation/inference@0.1.0" "[resource-drop]chat" (func $drop (param i32)))
    (import "arena:negotiation/inference@0.1.0" "remaining" (func $remaining (param i32)))
    (import "arena:negotiation/inference@0.1.0" "models" (func $models (param i32)))
    (import "arena:negotiation/training@0.1.0" "get-mode" (func $mode (result i32)))
    (import "arena:negotiation/training@0.1.0" "weigh" (func $weigh (param i32 i32)))
    (import "arena:negotiation/training@0.1.0" "metric" (func $metric (param i32 i32 i32)))"#;

const TEXTS: &str = r#"
    (data (i32.const 3000) "tiny") (data (i32.const 3010) "what?")
    (global $chat (mut i32) (i32.const 0))
    (func $opened (result i32)
      (call $open (i32.const 3000) (i32.const 4) (i32.const 3100))
      (i32.load (i32.const 3104)))
    (func $ask
      (call $add (global.get $chat) (i32.const 1) (i32.const 3010) (i32.const 5) (i32.const 3120))
      (call $complete (global.get $chat) (i32.const 9) (i32.const 0) (i32.const 1000)
        (i32.const 0) (i32.const 0) (i32.const 3140)))
    (func $say (param i32) (result i32)
      (i32.store (i32.const 1028) (local.get 0))
      (i32.const 1024))"#;

const OPEN: &str = "(global.set $chat (call $opened))";

fn asking(act: &str) -> Vec<u8> {
    Guest { imports: INFERENCE, fields: TEXTS, begin: OPEN, act, ..Guest::default() }.component()
}

fn offers(played: &Played) -> Vec<u32> {
    let cents = |action| match action {
        Move::Offer(Price(cents)) => cents,
        other => panic!("{other:?}"),
    };
    played.replies.iter().map(|reply| cents(reply.action)).collect()
}

#[test]
fn a_conversation_grows_by_what_is_added_and_answered() {
    // The offer is the length of the reply's text; the texts are "1 messages", "3 messages".
    let act = "(call $ask) (call $say (i32.load offset=12 (i32.const 3140)))";
    let played = run(Limits::default(), &grants(false, None), &asking(act), 3);
    assert_eq!(offers(&played), [10, 10, 10]);
    let calls = &played.usage.model_calls;
    let texts: Vec<&str> = calls.iter().map(|call| call.text.as_str()).collect();
    assert_eq!(texts, ["1 messages", "3 messages", "5 messages"]);
    let acts: Vec<u32> = calls.iter().map(|call| call.act_index).collect();
    assert_eq!(acts, [0, 1, 2]);
    assert_ne!(calls[0].request_sha256, calls[1].request_sha256);
    assert_eq!((calls[0].input_tokens, calls[0].output_tokens), (3, 2));
}

#[test]
fn an_unknown_model_is_a_value_for_whoever_has_no_grant() {
    // 1 is `err`, 0 the first case: the model is not supported.
    let begin = "(drop (call $opened))";
    let act = "(call $say (i32.add
        (i32.mul (i32.load8_u (i32.const 3100)) (i32.const 100))
        (i32.load8_u (i32.const 3104))))";
    let guest = Guest { imports: INFERENCE, fields: TEXTS, begin, act, ..Guest::default() };
    let played = run(Limits::default(), &Grants::default(), &guest.component(), 1);
    assert_eq!(offers(&played), [100]);
}

#[test]
fn the_budget_shrinks_and_then_turns_away_and_insisting_is_a_fault() {
    let limits = Limits { model_calls_max: 2, ..Limits::default() };
    let act = "(call $ask) (call $remaining (i32.const 3200))
        (call $say (i32.add (i32.mul (i32.load8_u (i32.const 3140)) (i32.const 100))
          (i32.load (i32.const 3200))))";
    let played = run(limits, &grants(false, None), &asking(act), 30);
    // Calls left: 1, 0; then `err` each time, until the host has had enough.
    let mut expected = vec![1, 0];
    expected.extend([100; arena_sandbox::TURNED_AWAY_MAX as usize]);
    assert_eq!(offers(&played), expected);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::ModelBudget)));
    assert_eq!(played.usage.model_calls.len(), 2);
}

#[test]
fn a_provider_that_fails_voids_the_match() {
    let act = "(call $ask) (i32.const 1024)";
    let played = run(Limits::default(), &grants(true, None), &asking(act), 1);
    let detail = "the server is down".to_owned();
    let error = SeatError::Void { reason: VoidReason::ModelProvider, detail };
    assert_eq!(played.error, Some(error));
}

#[test]
fn a_request_out_of_bounds_is_a_value() {
    // No tokens at all: `err`, the second case.
    let act = "
        (call $complete (global.get $chat) (i32.const 0) (i32.const 0) (i32.const 1000)
          (i32.const 0) (i32.const 0) (i32.const 3140))
        (call $say (i32.add (i32.mul (i32.load8_u (i32.const 3140)) (i32.const 100))
          (i32.load8_u (i32.const 3144))))";
    let played = run(Limits::default(), &grants(false, None), &asking(act), 1);
    assert_eq!(offers(&played), [101]);
    assert!(played.usage.model_calls.is_empty());
}

#[test]
fn open_conversations_are_limited_by_handles_and_dropped_ones_are_not_counted() {
    let limits = Limits { handles_max: 8, ..Limits::default() };
    let keep = "(drop (call $opened)) (i32.const 1024)";
    let played = run(limits, &grants(false, None), &asking(keep), 20);
    // One was opened in `begin`.
    assert_eq!(played.replies.len(), 7);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Protocol)));
    let give_back = "(call $drop (call $opened)) (i32.const 1024)";
    let played = run(limits, &grants(false, None), &asking(give_back), 20);
    assert_eq!((played.replies.len(), played.error), (20, None));
}

#[test]
fn using_a_conversation_after_dropping_it_is_a_protocol_fault() {
    let act = "(call $drop (global.get $chat)) (call $ask) (i32.const 1024)";
    let played = run(Limits::default(), &grants(false, None), &asking(act), 1);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Protocol)));
}

#[test]
fn no_model_is_asked_after_the_match() {
    let finish = "(call $ask)";
    let guest =
        Guest { imports: INFERENCE, fields: TEXTS, begin: OPEN, finish, ..Guest::default() };
    let played = run(Limits::default(), &grants(true, None), &guest.component(), 1);
    assert_eq!(played.error, None);
    assert!(played.usage.model_calls.is_empty());
}

#[test]
fn training_has_effect_only_where_it_is_granted() {
    let act = "(call $ask) (call $weigh (i32.const 0) (i32.const 250))
        (call $weigh (i32.const 99) (i32.const 1))
        (call $metric (i32.const 3010) (i32.const 5) (i32.const -7))
        (call $say (call $mode))";
    let component = asking(act);
    let metric = vec![("what?".to_owned(), -7)];
    for (mode, shown, weight, metrics) in [
        (None, 0, None, vec![]),
        (Some(TrainingMode::Evaluate), 0, None, metric.clone()),
        (Some(TrainingMode::Train), 1, Some(250), metric),
    ] {
        let played = run(Limits::default(), &grants(false, mode), &component, 1);
        assert_eq!(offers(&played), [shown], "{mode:?}");
        assert_eq!(played.usage.model_calls[0].weight_milli, weight, "{mode:?}");
        assert_eq!(played.usage.metrics, metrics, "{mode:?}");
    }
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
