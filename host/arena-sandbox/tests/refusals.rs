//! What is refused before it can play, by which rule, and that the host does not notice.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;
mod kit;

use std::time::{Duration, Instant};

use arena_core::config::Limits;
use arena_core::fault::Fault;
use arena_sandbox::precheck::COMPONENT_BYTES_MAX;
use arena_sandbox::{LoadError, Refusal, Sandbox};
use harness::{sandbox, settings};
use kit::{Guest, component, component_of};

fn refusal(sandbox: &Sandbox, bytes: &[u8]) -> Refusal {
    match sandbox.load(bytes) {
        Err(LoadError::Refused(refusal)) => refusal,
        Err(LoadError::Host(error)) => panic!("{error}"),
        Ok(_) => panic!("was loaded"),
    }
}

/// Returns a component of one module and nothing else.
fn with_module(fields: &str) -> Vec<u8> {
    wat::parse_str(format!("(component (core module {fields}))")).unwrap()
}

#[test]
fn bytes_that_are_no_component_are_named_for_what_they_are() {
    let sandbox = sandbox(Limits::default());
    let cases: [(&[u8], &str); 7] = [
        (b"", "nothing"),
        (b"\0asm\x01\0\0\0", "a core module"),
        (b"\0asm\x0d\0", "WebAssembly of another version, or cut short"),
        (b"\x7fELF\x02\x01\x01\0", "an ELF file"),
        (b"  (component)", "WebAssembly text"),
        (b"PK\x03\x04rest", "a compressed archive"),
        (b"hello", "something else"),
    ];
    for (bytes, found) in cases {
        assert_eq!(refusal(&sandbox, bytes), Refusal::NotAComponent { found });
    }
}

#[test]
fn a_component_cut_anywhere_is_refused() {
    let sandbox = sandbox(Limits::default());
    let whole = Guest::default().component();
    for end in (0..whole.len()).step_by(7) {
        let rule = refusal(&sandbox, &whole[..end]).rule();
        let fits = ["not-a-component", "malformed", "missing-export"].contains(&rule);
        assert!(fits, "{end} of {} bytes: {rule}", whole.len());
    }
}

#[test]
fn a_component_is_not_loaded_from_machine_code() {
    let sandbox = sandbox(Limits::default());
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(Limits::default());
    let cache = folder.path().join("cache");
    settings.cache_dir = Some(cache.clone());
    Sandbox::new(&settings).unwrap().load(&Guest::default().component()).unwrap();
    let file = std::fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(file).unwrap();
    assert_eq!(refusal(&sandbox, &bytes).rule(), "not-a-component");
    assert_eq!(refusal(&sandbox, &bytes[40..]), Refusal::NotAComponent { found: "an ELF file" });
}

#[test]
fn foreign_imports_are_refused_by_name() {
    let sandbox = sandbox(Limits::default());
    for name in [
        "wasi:filesystem/types@0.2.6",
        "wasi:sockets/tcp@0.2.0",
        "wasi:http/outgoing-handler@0.2.6",
        "wasi:clocks/timezone@0.2.6",
        "wasi:cli/stdin@0.3.0",
        "wasi:cli/stdin@0.2.",
        "wasi:cli/stdin@0.2.0-rc-2024",
        "arena:negotiation/inference@0.2.0",
        "arena:negotiation/negotiator@0.1.0",
        "arena:other/trace@0.1.0",
        "somebody:else/thing",
        "plain-name",
    ] {
        let text = format!(r#"(component (import "{name}" (instance)))"#);
        let bytes = wat::parse_str(&text).unwrap();
        let expected = Refusal::ForeignImports { names: vec![name.to_owned()], count: 1 };
        assert_eq!(refusal(&sandbox, &bytes), expected);
    }
}

#[test]
fn a_refusal_names_a_bounded_number_of_imports() {
    let imports: String = (0..40).map(|n| format!(r#"(import "a:b/c{n}" (instance))"#)).collect();
    let bytes = wat::parse_str(format!("(component {imports})")).unwrap();
    let refusal = refusal(&sandbox(Limits::default()), &bytes);
    let text = refusal.to_string();
    assert!(text.starts_with("imports `a:b/c0`, `a:b/c1`"), "{text}");
    assert!(text.ends_with("and 24 more, which the sandbox does not offer"), "{text}");
}

#[test]
fn the_contract_is_checked_to_the_last_type() {
    let sandbox = sandbox(Limits::default());
    let empty = wat::parse_str("(component)").unwrap();
    assert_eq!(refusal(&sandbox, &empty).rule(), "missing-export");

    let wit = include_str!("../../../guest-sdk/wit/arena.wit");
    let more = wit.replace("note: func(text: string);", "note: func(text: string); shout: func();");
    assert_ne!(more, wit);
    let core = Guest {
        imports: r#"(import "arena:negotiation/trace@0.1.0" "shout" (func))"#,
        ..Guest::default()
    }
    .text();
    let refused = refusal(&sandbox, &component_of(&core, &more));
    assert_eq!(refused.rule(), "interface");
    assert!(refused.to_string().contains("shout"), "{refused}");

    let other = wit.replace("record belief { reserve: u32,", "record belief { reserve: s32,");
    assert_ne!(other, wit);
    let refused = refusal(&sandbox, &component_of(&Guest::default().text(), &other));
    assert_eq!(refused.rule(), "interface", "{refused}");
}

#[test]
fn webassembly_beyond_the_permitted_set_is_refused() {
    let sandbox = sandbox(Limits::default());
    let fields = [
        ("simd", "(func (drop (i8x16.splat (i32.const 0))))"),
        (
            "relaxed simd",
            "(func (param v128) (drop (i8x16.relaxed_swizzle (local.get 0) (local.get 0))))",
        ),
        ("atomics", "(func (drop (i32.atomic.load (i32.const 0))))"),
        ("tail call", "(func $f (return_call $f))"),
        ("exceptions", "(tag)"),
        ("garbage collection", "(type (struct))"),
        ("typed references", "(func (param (ref func)))"),
        ("extern references", "(func (param externref))"),
        ("multiple memories", "(memory 1)"),
        ("wide arithmetic", "(func (drop (drop (i64.mul_wide_u (i64.const 1) (i64.const 1)))))"),
    ];
    for (name, fields) in fields {
        let found = refusal(&sandbox, &component(&Guest { fields, ..Guest::default() }.text()));
        assert_eq!(found.rule(), "invalid", "{name}: {found}");
    }
    let text = Guest::default().text();
    for (name, from, to) in [
        ("64-bit memory", "(memory (export \"memory\") 1)", "(memory (export \"memory\") i64 1)"),
        (
            "shared memory",
            "(memory (export \"memory\") 1)",
            "(memory (export \"memory\") 1 2 shared)",
        ),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let module =
            with_module(changed.trim().trim_start_matches("(module").trim_end_matches(')'));
        let rule = refusal(&sandbox, &agent_around(&module)).rule();
        assert_eq!(rule, "invalid", "{name}");
    }
}

/// Returns a component that exports the negotiator by name, so that the census passes, and
/// holds another component.
fn agent_around(inner: &[u8]) -> Vec<u8> {
    let name = arena_sandbox::precheck::NEGOTIATOR;
    let outer = wat::parse_str(format!(
        r#"(component (component) (instance $i) (export "{name}" (instance $i)))"#
    ))
    .unwrap();
    let marker = b"\x04\x08\0asm\x0d\0\x01\0";
    let at = outer.windows(marker.len()).position(|window| window == marker).unwrap();
    let mut bytes = outer[..at].to_vec();
    bytes.push(0x04);
    let mut length = inner.len();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(inner);
    bytes.extend_from_slice(&outer[at + marker.len()..]);
    bytes
}

fn check_too_much(what: &str, fields: &str) {
    let started = Instant::now();
    match refusal(&sandbox(Limits::default()), &with_module(fields)) {
        Refusal::TooMuch { what: found, value, limit } => {
            assert_eq!(found, what);
            assert!(value > limit, "{value} {what} of {limit}");
        }
        other => panic!("{what}: {other}"),
    }
    assert!(started.elapsed() < Duration::from_secs(20), "counting is quick");
}

#[test]
fn structures_that_make_compilers_slow_are_refused_before_one_sees_them() {
    let many = |count: usize, field: &str| field.repeat(count);
    let locals = |count: usize| format!("(func (local {}))", "i64 ".repeat(count));
    let blocks = format!("(func {} {})", "block ".repeat(1_100), "end ".repeat(1_100));
    let ifs = format!("(func {} {})", "i32.const 0 if ".repeat(30_000), "end ".repeat(30_000));
    let table = format!("(func block i32.const 0 br_table {} end)", "0 ".repeat(9_000));
    let long = format!("(func {})", "(drop (i64.const -9000000000000000000))".repeat(60_000));
    check_too_much("locals of a function", &locals(1_001));
    check_too_much("locals", &locals(900).repeat(120));
    check_too_much("functions", &many(20_001, "(func)"));
    check_too_much("nested blocks", &blocks);
    check_too_much("nested blocks", &ifs);
    check_too_much("targets of a `br_table`", &table);
    check_too_much("bytes of a function", &long);
    check_too_much("globals", &many(50_001, "(global i32 (i32.const 0))"));
    check_too_much("tables", &many(9, "(table 1 funcref)"));
    check_too_much("memories", &many(5, "(memory 1)"));
    check_too_much("data segments", &format!("(memory 1) {}", many(32_001, "(data \"\")")));
    check_too_much("element segments", &many(10_001, "(elem func)"));
    check_too_much("core types", &many(20_001, "(type (func))"));
    check_too_much("core names", &many(100_001, "(import \"\" \"\" (global i32))"));
    check_too_much("bytes of a memory at the start", "(memory 65536)");
    check_too_much("elements of a table at the start", "(table 10000000 funcref)");
    let custom = format!("(@custom \"x\" \"{}\")", "x".repeat(9 << 20));
    check_too_much("bytes of custom sections", &custom);
}

#[test]
fn locals_are_counted_by_what_they_declare_not_by_their_bytes() {
    // Two groups of one local each; in the same bytes, one group of two million.
    let whole = wat::parse_str("(component (core module (func (local i32 i64))))").unwrap();
    let body = [0x06, 0x02, 0x01, 0x7f, 0x01, 0x7e, 0x0b];
    let at = whole.windows(body.len()).position(|window| window == body).unwrap();
    let mut bomb = whole.clone();
    bomb[at + 1..at + 6].copy_from_slice(&[0x01, 0xff, 0xff, 0x7f, 0x7e]);
    let sandbox = sandbox(Limits::default());
    assert_eq!(refusal(&sandbox, &whole).rule(), "missing-export");
    let (value, limit) = (2_097_151, 1_000);
    let what = "locals of a function";
    assert_eq!(refusal(&sandbox, &bomb), Refusal::TooMuch { what, value, limit });
}

#[test]
fn too_many_modules_components_and_levels_are_refused() {
    let sandbox = sandbox(Limits::default());
    let modules = format!("(component {})", "(core module)".repeat(65));
    let components = format!("(component {})", "(component)".repeat(65));
    let levels = format!("{}{}", "(component ".repeat(12), ")".repeat(12));
    for (text, what) in [
        (modules, "core modules"),
        (components, "nested components"),
        (levels, "levels of nesting"),
    ] {
        let found = refusal(&sandbox, &wat::parse_str(&text).unwrap());
        assert!(matches!(found, Refusal::TooMuch { what: name, .. } if name == what), "{found}");
    }
}

#[test]
fn a_component_that_is_too_large_is_refused_by_its_size_alone() {
    let bytes = vec![0; COMPONENT_BYTES_MAX as usize + 1];
    let limit = COMPONENT_BYTES_MAX;
    let expected = Refusal::TooMuch { what: "bytes", value: limit + 1, limit };
    assert_eq!(refusal(&sandbox(Limits::default()), &bytes), expected);
}

#[test]
fn an_agent_that_cannot_start_is_refused_with_its_fault() {
    let sandbox = sandbox(Limits::default());
    for (body, fault) in [
        ("(loop $l (br $l))", Fault::Fuel),
        ("(unreachable)", Fault::Trap),
        (
            "(if (i32.eq (memory.grow (i32.const 2000)) (i32.const -1)) (then (unreachable)))",
            Fault::Memory,
        ),
    ] {
        let fields = format!("(func $start {body}) (start $start)");
        let bytes = Guest { fields: &fields, ..Guest::default() }.component();
        assert_eq!(refusal(&sandbox, &bytes), Refusal::Start { fault }, "{body}");
    }
}
