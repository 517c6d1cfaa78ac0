//! Guests written by hand in WebAssembly text, for tests of the sandbox.
//!
//! [`Guest`] fills in a core module that follows the contract; a test replaces the part that
//! misbehaves. [`component`] turns any core module into a component. Other crates' tests may
//! include this file by path.
//!
//! Layout of a reply in memory, by the canonical ABI: move at 0 (0 offer, 1 accept, 2 reject,
//! 3 walk), price of an offer at 4, option of an accept at 4 and its price at 8, talk's pointer
//! at 12 and length at 16, option of a belief at 20, its reserve at 24 and spread at 28.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test guest that does not build is a broken test")]

use std::path::{Path, PathBuf};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve};

/// The prefix of the exports of a core module.
pub const NEGOTIATOR: &str = "arena:negotiation/negotiator@0.1.0";

/// A core module, in the parts that differ from guest to guest.
#[derive(Clone, Copy, Debug)]
pub struct Guest<'a> {
    /// Imports, before anything else.
    pub imports: &'a str,
    /// Pages of memory at the start.
    pub pages: u32,
    /// More fields: data, globals, functions, exports.
    pub fields: &'a str,
    /// Body of `begin`. Local 0 points to the brief.
    pub begin: &'a str,
    /// Body of `act`, which leaves the address of the reply. Locals 0 and 1 are the news, local
    /// `$i` is free.
    pub act: &'a str,
    /// Body of `finish`. Locals 0 to 2 are the end.
    pub finish: &'a str,
    /// Body of `cabi_realloc`, which leaves an address.
    pub realloc: &'a str,
}

/// Address of the reply that [`Guest::default`] returns: an offer of 50.00 dollars, no talk.
pub const REPLY: u32 = 1024;

/// First address that the default `cabi_realloc` hands out; it never takes anything back.
pub const HEAP: u32 = 4096;

/// A `cabi_realloc` that only moves on, eight bytes aligned.
pub const BUMP: &str = "
    (local $at i32)
    (local.set $at (global.get $heap))
    (global.set $heap
      (i32.and
        (i32.add (i32.add (global.get $heap) (local.get 3)) (i32.const 7))
        (i32.const -8)))
    (local.get $at)";

impl Default for Guest<'_> {
    fn default() -> Self {
        Guest {
            imports: "",
            pages: 1,
            fields: "",
            begin: "",
            act: "(i32.const 1024)",
            finish: "",
            realloc: BUMP,
        }
    }
}

impl Guest<'_> {
    /// Returns the text of the core module.
    pub fn text(&self) -> String {
        let Guest { imports, pages, fields, begin, act, finish, realloc } = self;
        format!(
            r#"(module
  {imports}
  (memory (export "memory") {pages})
  (global $heap (mut i32) (i32.const {HEAP}))
  (data (i32.const 1028) "\88\13")
  {fields}
  (func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {realloc})
  (func $begin (export "{NEGOTIATOR}#begin") (param i32) (local $i i32) {begin})
  (func $act (export "{NEGOTIATOR}#act") (param i32 i32) (result i32) (local $i i32) {act})
  (func $finish (export "{NEGOTIATOR}#finish") (param i32 i32 i32) (local $i i32) {finish})
)"#
        )
    }

    /// Returns the component.
    pub fn component(&self) -> Vec<u8> {
        component(&self.text())
    }

    /// Returns the component, built against interfaces beyond the contract. See
    /// [`component_with`].
    pub fn component_with(&self, packages: &[&str], imports: &[&str]) -> Vec<u8> {
        component_with(&self.text(), packages, imports)
    }
}

/// Wraps a core module in text form as a component of the world `agent`.
pub fn component(core: &str) -> Vec<u8> {
    component_with(core, &[], &[])
}

/// Wraps a core module as a component of the world `agent` with more imports: `packages` are
/// WIT texts, `imports` name interfaces of them.
pub fn component_with(core: &str, packages: &[&str], imports: &[&str]) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_file(wit_path()).unwrap();
    for (index, package) in packages.iter().enumerate() {
        resolve.push_str(format!("package{index}.wit"), package).unwrap();
    }
    let lines: String = imports.iter().map(|name| format!("import {name};\n")).collect();
    let world = format!(
        "package test:guest;\nworld guest {{ include arena:negotiation/agent@0.1.0;\n{lines}}}"
    );
    let package = resolve.push_str("guest.wit", &world).unwrap();
    encode(core, &resolve, package, "guest")
}

/// Wraps a core module as a component of the world `agent` of another contract, given as WIT.
pub fn component_of(core: &str, contract: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("contract.wit", contract).unwrap();
    encode(core, &resolve, package, "agent")
}

fn encode(core: &str, resolve: &Resolve, package: PackageId, world: &str) -> Vec<u8> {
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = wat::parse_str(core).unwrap_or_else(|error| panic!("{error}\n{core}"));
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .validate(false)
        .encode()
        .unwrap_or_else(|error| panic!("{error:?}\n{core}"))
}

fn wit_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find_map(find_wit).unwrap()
}

fn find_wit(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("guest-sdk/wit/arena.wit");
    path.is_file().then_some(path)
}
