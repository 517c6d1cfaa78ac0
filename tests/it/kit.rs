//! Builds small components for tests: the fields of a core module in WAT become a component
//! of the world `agent`, with an honest default for every export that the fields leave out.
//!
//! Names inside a guest file: the exports `begin`, `act`, `finish`, `cabi_post_act`,
//! `cabi_realloc` and `memory` stand for the real ones, and the functions `$reject`,
//! `$offer` and `$accept` write a reply at byte 1024 and return its address.

use std::path::{Path, PathBuf};

use arena_core::config::Limits;
use arena_sandbox::{CompileWorker, Sandbox, SandboxSettings};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The program under test.
pub const ARENA: &str = env!("CARGO_BIN_EXE_arena");

/// Returns the checkout's root.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("host/arena lies two folders down").to_owned()
}

/// Returns a sandbox with these limits that compiles with the program under test and keeps
/// nothing on disk.
pub fn sandbox(limits: Limits) -> Sandbox {
    let worker = CompileWorker { program: ARENA.into(), args: vec!["compile-worker".to_owned()] };
    let settings = SandboxSettings::new(limits, 64, worker);
    Sandbox::new(&settings).unwrap_or_else(|error| panic!("{error}"))
}

/// Layout of `reply` in memory (canonical ABI): move tag 0, payload 4 (8 for the price of
/// `accept`), talk 12 and 16, belief tag 20.
const PRELUDE: &str = r#"
(func $reject (result i32)
  (i32.store8 (i32.const 1024) (i32.const 2))
  (i64.store (i32.const 1036) (i64.const 0))
  (i32.store8 (i32.const 1044) (i32.const 0))
  (i32.const 1024))
(func $offer (param $cents i32) (result i32)
  (drop (call $reject))
  (i32.store8 (i32.const 1024) (i32.const 0))
  (i32.store (i32.const 1028) (local.get $cents))
  (i32.const 1024))
(func $accept (param $named i32) (param $cents i32) (result i32)
  (drop (call $reject))
  (i32.store8 (i32.const 1024) (i32.const 1))
  (i32.store8 (i32.const 1028) (local.get $named))
  (i32.store (i32.const 1032) (local.get $cents))
  (i32.const 1024))
"#;

/// What a guest file does not have to spell out. The allocator starts anew at every call, which
/// is enough for guests that read nothing twice.
const DEFAULTS: &[(&str, &str)] = &[
    ("memory", r#"(memory (export "memory") 4)"#),
    ("begin", r#"(func (export "begin") (param i32))"#),
    ("act", r#"(func (export "act") (param i32 i32) (result i32) (call $reject))"#),
    ("finish", r#"(func (export "finish") (param i32 i32 i32))"#),
    (
        "cabi_realloc",
        r#"(global $free (mut i32) (i32.const 65536))
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (if (i32.gt_u (global.get $free) (i32.const 160000))
    (then (global.set $free (i32.const 65536))))
  (global.set $free (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
  (global.get $free)
  (global.set $free (i32.add (global.get $free) (local.get 3))))"#,
    ),
];

const INTERFACE: &str = "arena:negotiation/negotiator@0.1.0";

/// Returns the component that the fields of a core module make.
///
/// # Panics
/// If the fields are not WAT, or do not fit the world.
pub fn component(fields: &str) -> Vec<u8> {
    let mut text = String::from("(module\n");
    let (imports, rest) = split_imports(fields);
    text.push_str(&imports);
    for (export, default) in DEFAULTS {
        if !fields.contains(&format!("(export \"{export}\")")) {
            text.push_str(default);
        }
    }
    text.push_str(PRELUDE);
    text.push_str(&rest);
    text.push(')');
    for name in ["begin", "act", "finish"] {
        text = text
            .replace(&format!("(export \"{name}\")"), &format!("(export \"{INTERFACE}#{name}\")"));
    }
    text = text
        .replace("(export \"cabi_post_act\")", &format!("(export \"cabi_post_{INTERFACE}#act\")"));
    let module = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    encode(module)
}

/// Returns the bytes of the component that a component in WAT makes.
///
/// # Panics
/// If the text is not WAT.
pub fn raw(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn encode(mut module: Vec<u8>) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let wit = root().join("guest-sdk/wit/arena.wit");
    let package = resolve.push_file(&wit).expect("the contract parses");
    let world = resolve.select_world(&[package], Some("agent")).expect("the world exists");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("metadata can be embedded");
    ComponentEncoder::default()
        .module(&module)
        .expect("the module fits the world")
        .encode()
        .expect("the module becomes a component")
}

/// Imports come first in a module, so they are taken out of the fields.
fn split_imports(fields: &str) -> (String, String) {
    let mut imports = String::new();
    let mut rest = String::new();
    let mut depth = 0i64;
    let mut in_import = false;
    for line in fields.lines() {
        if line.trim_start().starts_with(";;") {
            continue;
        }
        if depth == 0 {
            in_import = line.starts_with("(import");
        }
        let opens = line.matches('(').count() as i64;
        depth += opens - line.matches(')').count() as i64;
        let target = if in_import { &mut imports } else { &mut rest };
        target.push_str(line);
        target.push('\n');
    }
    (imports, rest)
}
