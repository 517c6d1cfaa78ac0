//! Components that attack whoever reads, compiles or links them: every one is refused, with
//! its reason, before a match. Generated here because they are large or not even WAT.

use arena_sandbox::LoadError;
use wasm_encoder::{
    BlockType, CodeSection, Component, ConstExpr, CustomSection, DataSection, Function,
    FunctionSection, GlobalSection, GlobalType, InstructionSink, MemorySection, MemoryType, Module,
    ModuleSection, TypeSection, ValType,
};

use crate::hostile::small_sandbox;
use crate::kit;

/// Asserts that a component is refused and that the refusal names what it should.
fn refused(what: &str, bytes: &[u8], names: &str) {
    let sandbox = small_sandbox();
    match sandbox.load(bytes) {
        Err(LoadError::Refused(refusal)) => {
            let said = refusal.to_string();
            assert!(said.contains(names), "{what}: said `{said}`, which does not name `{names}`");
        }
        Err(other) => panic!("{what}: {other}"),
        Ok(_) => panic!("{what}: was loaded"),
    }
    let honest = kit::component("");
    sandbox.load(&honest).unwrap_or_else(|error| panic!("after {what}: {error}"));
}

fn wrap(module: &Module) -> Vec<u8> {
    let mut component = Component::new();
    component.section(&ModuleSection(module));
    component.finish()
}

/// A module whose functions, all of type `() -> ()`, are written by `body`.
fn functions(count: u32, locals: u32, body: impl Fn(&mut InstructionSink<'_>)) -> Module {
    let mut types = TypeSection::new();
    types.ty().function([], []);
    let mut declared = FunctionSection::new();
    let mut code = CodeSection::new();
    for _ in 0..count {
        declared.function(0);
        let mut function = Function::new([(locals, ValType::I64)]);
        let mut sink = function.instructions();
        body(&mut sink);
        sink.end();
        code.function(&function);
    }
    let mut module = Module::new();
    module.section(&types).section(&declared).section(&code);
    module
}

fn nested(depth: u32, open: impl Fn(&mut InstructionSink<'_>)) -> Module {
    functions(1, 0, |sink| {
        for _ in 0..depth {
            open(sink);
        }
        for _ in 0..depth {
            sink.end();
        }
    })
}

#[test]
fn what_is_no_component_is_refused() {
    let component = kit::component("");
    refused("nothing", b"", "component");
    refused("text", b"(component)", "component");
    refused("a core module", &Module::new().finish(), "component");
    refused("an ELF file", &[&b"\x7fELF\x02\x01\x01"[..], &[0; 64]].concat(), "component");
    refused("noise", &[0xa5; 4096], "component");
    for length in [4, 7, 8, 9, 40, component.len() / 2, component.len() - 1] {
        let sandbox = small_sandbox();
        assert!(sandbox.load(&component[..length]).is_err(), "cut at byte {length}");
    }
}

#[test]
fn every_flipped_byte_of_a_component_is_survived() {
    let component = kit::component("");
    let sandbox = small_sandbox();
    let step = if std::env::var_os("SLOW_TESTS").is_some() { 7 } else { 61 };
    for at in (8..component.len()).step_by(step) {
        let mut mutant = component.clone();
        mutant[at] ^= 1 << (at % 8);
        // Whether the mutant is still valid does not matter; that the host answers does.
        drop(sandbox.load(&mutant));
    }
    sandbox.load(&component).expect("the honest component still loads");
}

#[test]
fn foreign_imports_are_refused_by_name() {
    for name in [
        "wasi:sockets/tcp@0.2.0",
        "wasi:filesystem/types@0.2.6",
        "wasi:http/outgoing-handler@0.2.0",
        "evil:backdoor/host@1.0.0",
        "arena:negotiation/inference@0.2.0",
        "arena:negotiation/judge@0.1.0",
        "wasi:cli/run@0.2.0",
    ] {
        let text = format!("(component (import \"{name}\" (instance)))");
        refused(name, &kit::raw(&text), name);
    }
}

#[test]
fn exports_that_are_missing_or_of_another_type_are_refused() {
    refused("no export", &kit::raw("(component)"), "negotiator");
    let wrong = r#"(component
      (core module $m (func (export "f")))
      (core instance $i (instantiate $m))
      (func $f (canon lift (core func $i "f")))
      (instance $n (export "begin" (func $f)) (export "act" (func $f)) (export "finish" (func $f)))
      (export "arena:negotiation/negotiator@0.1.0" (instance $n)))"#;
    refused("functions of another type", &kit::raw(wrong), "");
}

#[test]
fn proposals_that_are_switched_off_are_refused() {
    for (what, module) in [
        ("threads", "(memory 1 1 shared)"),
        ("memory64", "(memory i64 1)"),
        ("simd", "(func (result v128) (v128.const i64x2 0 0))"),
        (
            "relaxed simd",
            "(func (param v128 v128) (result v128) \
            (i8x16.relaxed_swizzle (local.get 0) (local.get 1)))",
        ),
        ("exceptions", "(tag $e) (func (throw $e))"),
        ("gc", "(type (struct (field i32)))"),
        ("tail calls", "(func $f (return_call $f))"),
        ("multi memory", "(memory 1) (memory 1)"),
        (
            "wide arithmetic",
            "(func (param i64 i64 i64 i64) (result i64 i64) \
            (i64.add128 (local.get 0) (local.get 1) (local.get 2) (local.get 3)))",
        ),
        (
            "function references",
            "(type $f (func)) (func (param (ref $f)) (call_ref $f (local.get 0)))",
        ),
    ] {
        let component = kit::raw(&format!("(component (core module {module}))"));
        refused(what, &component, "");
    }
}

#[test]
fn compile_bombs_are_refused_before_they_are_compiled() {
    let sandbox_says = |what: &str, module: &Module| refused(what, &wrap(module), "");
    sandbox_says("fifty million locals", &functions(1_000, 50_000, |_| {}));
    sandbox_says("200,000 functions", &functions(200_000, 0, |_| {}));
    sandbox_says(
        "30,000 nested loops",
        &nested(30_000, |sink| {
            sink.loop_(BlockType::Empty);
        }),
    );
    sandbox_says(
        "30,000 nested ifs",
        &nested(30_000, |sink| {
            sink.i32_const(1).if_(BlockType::Empty);
        }),
    );
    sandbox_says(
        "a branch table of 60,000",
        &functions(1, 0, |sink| {
            sink.i32_const(0).br_table(std::iter::repeat_n(0, 60_000), 0).unreachable();
        }),
    );
    sandbox_says(
        "a function of eight megabytes",
        &functions(1, 0, |sink| {
            for _ in 0..4_000_000 {
                sink.nop().nop();
            }
        }),
    );
}

#[test]
fn components_beyond_a_static_limit_are_refused() {
    let mut globals = GlobalSection::new();
    let kind = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
    for _ in 0..500_000 {
        globals.global(kind, &ConstExpr::i32_const(0));
    }
    let mut module = Module::new();
    module.section(&globals);
    refused("500,000 globals", &wrap(&module), "globals");

    let memory = MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    };
    let mut memories = MemorySection::new();
    memories.memory(memory);
    let mut data = DataSection::new();
    for _ in 0..90_000 {
        data.active(0, &ConstExpr::i32_const(0), [0u8]);
    }
    let mut module = Module::new();
    module.section(&memories).section(&data);
    refused("90,000 data segments", &wrap(&module), "data");

    let modules = "(core module)".repeat(1_000);
    refused("1,000 modules", &kit::raw(&format!("(component {modules})")), "modules");
    let tables = "(table 1 funcref)".repeat(100);
    refused("100 tables", &kit::raw(&format!("(component (core module {tables}))")), "tables");
}

#[test]
fn a_component_larger_than_the_limit_is_refused() {
    let mut component = Component::new();
    let filler = vec![0u8; 30 << 20];
    component.section(&CustomSection { name: "filler".into(), data: filler.as_slice().into() });
    refused("thirty mebibytes", &component.finish(), "bytes");
}

#[test]
fn types_nested_without_end_are_refused() {
    let mut text = String::from("(component (type $t0 u8)");
    for depth in 1..2_000 {
        text.push_str(&format!("(type $t{depth} (list $t{}))", depth - 1));
    }
    text.push_str("(import \"arena:negotiation/types@0.1.0\" (instance)))");
    refused("lists of lists", &kit::raw(&text), "");

    let mut text = String::from("(component (type $t0 (tuple u8 u8))");
    for depth in 1..60 {
        let below = depth - 1;
        text.push_str(&format!("(type $t{depth} (tuple $t{below} $t{below} $t{below}))"));
    }
    text.push(')');
    refused("tuples of tuples", &kit::raw(&text), "");
}

/// A component that exports what an agent must, of other types, after some fields of its own.
fn exporting(fields: &str) -> Vec<u8> {
    kit::raw(&format!(
        r#"(component {fields}
      (core module $n (func (export "f")))
      (core instance $i (instantiate $n))
      (func $f (canon lift (core func $i "f")))
      (instance $x (export "begin" (func $f)) (export "act" (func $f)) (export "finish" (func $f)))
      (export "arena:negotiation/negotiator@0.1.0" (instance $x)))"#
    ))
}

#[test]
fn modules_instantiated_again_and_again_are_refused_and_not_the_hosts_failure() {
    let again = |what: &str| format!("(core module $m {what})");
    let instances = "(core instance (instantiate $m))".repeat(100);
    refused("100 instances", &exporting(&(again("") + &instances)), "instances");
    let instances = "(core instance (instantiate $m))".repeat(10);
    refused("10 memories", &exporting(&(again("(memory 1)") + &instances)), "memories");
    refused("10 tables", &exporting(&(again("(table 1 funcref)") + &instances)), "tables");
    // Each component makes ten of the one before: a hundred thousand out of half a kilobyte.
    let mut text = format!("(component $c0 {} (core instance (instantiate $m)))", again(""));
    for level in 1..=5 {
        let ten = "(instance (instantiate $q))".repeat(10);
        let below = level - 1;
        text += &format!("(component $c{level} (alias outer 1 $c{below} (component $q)) {ten})");
    }
    text += "(instance (instantiate $c5))";
    refused("instances of instances", &exporting(&text), "instances");
}

#[test]
fn names_that_are_terminal_commands_are_refused_in_plain_letters() {
    for name in ["\\1b[31mred", "\\e2\\80\\ae", "\\0a  forged: line"] {
        let component = kit::raw(&format!("(component (import \"{name}\" (instance)))"));
        let Err(error) = small_sandbox().load(&component) else { panic!("{name} was loaded") };
        let said = error.to_string();
        assert!(!said.chars().any(|c| c.is_control() || c == '\u{202e}'), "{said:?}");
    }
}
