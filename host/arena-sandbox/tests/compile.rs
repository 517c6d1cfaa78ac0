//! Compiling happens in a child that may exceed its limits, die or never answer.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;
mod kit;

use std::time::{Duration, Instant};

use arena_core::config::Limits;
use arena_core::fault::SeatError;
use arena_core::seed::{Root, Stream};
use arena_sandbox::{
    CompileBound, CompileLimits, CompileWorker, Grants, LoadError, Refusal, Sandbox, SandboxError,
};
use harness::{play, sandbox, settings};
use kit::Guest;

fn refusal(sandbox: &Sandbox, bytes: &[u8]) -> Refusal {
    match sandbox.load(bytes) {
        Err(LoadError::Refused(refusal)) => refusal,
        Err(LoadError::Host(error)) => panic!("{error}"),
        Ok(_) => panic!("was loaded"),
    }
}

fn compile_limits(cpu_seconds_max: u64, memory_bytes_max: u64, wall_ms: u64) -> CompileLimits {
    CompileLimits { memory_bytes_max, cpu_seconds_max, wall_max: Duration::from_millis(wall_ms) }
}

/// A component of half a megabyte, within every ceiling, that keeps a compiler busy for many
/// seconds: its work grows with the square of the depth of blocks.
fn slow_to_compile() -> Vec<u8> {
    let (open, close) = ("i32.const 0 if (result i32) ", "else i32.const 1 end ");
    let function =
        format!("(func (result i32) {} i32.const 2 {})", open.repeat(1_000), close.repeat(1_000));
    Guest { fields: &function.repeat(100), ..Guest::default() }.component()
}

/// A component with one long function, within the ceiling, for which a compiler takes 180 MB.
fn large_to_compile() -> Vec<u8> {
    let step = "(i64.store (i32.const 0) (call $f (i64.load (i32.const 0)) (local.get 0)))";
    let fields = format!(
        "(func $f (param i64 i64) (result i64) (i64.const 1)) (func (param i64) {})",
        step.repeat(33_000)
    );
    Guest { fields: &fields, ..Guest::default() }.component()
}

fn check_bomb(bomb: &[u8], limits: CompileLimits, is_expected: fn(CompileBound) -> bool) {
    let mut settings = settings(Limits::default());
    let honest = Sandbox::new(&settings).unwrap();
    let agent = honest.load(&Guest::default().component()).unwrap();
    let before = play(&honest, &agent, &Grants::default(), 2);
    settings.compile_limits = limits;
    match refusal(&Sandbox::new(&settings).unwrap(), bomb) {
        Refusal::CompileExceeded { bound } => assert!(is_expected(bound), "{bound:?}"),
        other => panic!("{other}"),
    }
    assert_eq!(before.error, None);
    assert_eq!(play(&honest, &agent, &Grants::default(), 2), before);
}

#[test]
fn a_compile_bomb_is_refused_by_what_it_exceeds_and_the_host_plays_on() {
    let gib = 1 << 30;
    check_bomb(&slow_to_compile(), compile_limits(1, gib, 600_000), |bound| {
        bound == CompileBound::Cpu { limit_s: 1 }
    });
    check_bomb(&slow_to_compile(), compile_limits(60, gib, 200), |bound| {
        bound == CompileBound::Wall { limit_ms: 200 }
    });
    check_bomb(&large_to_compile(), compile_limits(60, 96 << 20, 600_000), |bound| {
        matches!(bound, CompileBound::Died { memory_limit: 100_663_296, signal: Some(_) })
    });
}

#[test]
fn a_program_that_is_no_worker_is_the_hosts_error() {
    for (program, args) in [
        ("/no/such/program", vec![]),
        ("/bin/true", vec![]),
        ("/bin/cat", vec![]),
        ("/bin/echo", vec!["ARENACW1 and more than seventeen bytes".to_owned()]),
    ] {
        let mut settings = settings(Limits::default());
        settings.compile_worker = CompileWorker { program: program.into(), args };
        let error = Sandbox::new(&settings).unwrap().load(&Guest::default().component()).err();
        let is_worker = matches!(error, Some(LoadError::Host(SandboxError::Worker { .. })));
        assert!(is_worker, "{program}: {error:?}");
    }
}

#[test]
fn a_worker_that_never_answers_is_killed_and_reaped() {
    let mut settings = settings(Limits::default());
    let args = vec!["600".to_owned()];
    settings.compile_worker = CompileWorker { program: "/bin/sleep".into(), args };
    settings.compile_limits = compile_limits(60, 1 << 30, 200);
    let sandbox = Sandbox::new(&settings).unwrap();
    let started = Instant::now();
    let refused = refusal(&sandbox, &Guest::default().component());
    let bound = CompileBound::Wall { limit_ms: 200 };
    assert_eq!(refused, Refusal::CompileExceeded { bound });
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_worker_that_somebody_kills_says_nothing_about_the_component() {
    let mut settings = settings(Limits::default());
    let args = vec!["-c".to_owned(), "kill -KILL $$".to_owned()];
    settings.compile_worker = CompileWorker { program: "/bin/sh".into(), args };
    let error = Sandbox::new(&settings).unwrap().load(&Guest::default().component()).err();
    let is_host = matches!(error, Some(LoadError::Host(SandboxError::Worker { .. })));
    assert!(is_host, "{error:?}");
}

/// How many altered components are tried.
const MUTANTS: u64 = 150;

#[test]
fn altered_components_are_refused_or_play_and_never_hurt_the_host() {
    let sandbox = sandbox(Limits { fuel_turn_max: 1_000_000, ..Limits::default() });
    let honest = Guest::default().component();
    let mut loaded = 0;
    for seed in 0..MUTANTS {
        let mut draws = Stream::derive(Root::Seed(seed), "mutant", &[]);
        let mut bytes = honest.clone();
        for _ in 0..=draws.below(3) {
            let at = draws.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << draws.below(8);
        }
        let agent = match sandbox.load(&bytes) {
            Ok(agent) => agent,
            Err(LoadError::Refused(_)) => continue,
            Err(LoadError::Host(error)) => panic!("seed {seed}: {error}"),
        };
        loaded += 1;
        let played = play(&sandbox, &agent, &Grants::default(), 3);
        let is_void = matches!(played.error, Some(SeatError::Void { .. }));
        assert!(!is_void, "seed {seed}: {:?}", played.error);
    }
    assert!((1..MUTANTS).contains(&loaded), "{loaded} of {MUTANTS} were loaded");
    let agent = sandbox.load(&honest).unwrap();
    assert_eq!(play(&sandbox, &agent, &Grants::default(), 3).error, None);
}
