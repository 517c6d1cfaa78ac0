//! Looks at a submitted component before anything interprets it.
//!
//! One pass over the bytes counts what makes compilers slow and pools full, and reads the
//! names of what it imports. It allocates in proportion to the bytes and does not recurse,
//! so it is safe to run on anything. The ceilings leave room above the largest honest
//! components that were measured (CPython, StarlingMonkey, Go).
//!
//! Not here: types, instructions and links, which the compile child and the linker check.

use arena_core::config::Limits;
use wasmparser::{
    BinaryReaderError, ComponentExportSectionReader, ComponentImportSectionReader, Encoding,
    FunctionBody, Operator, Parser, Payload,
};

use crate::refusal::Refusal;

/// Bytes of a component. CPython with its library has 18.4 million.
pub const COMPONENT_BYTES_MAX: u64 = 24 << 20;
/// Core modules of a component, nested ones included. CPython: 38.
pub const MODULES_MAX: u32 = 64;
/// Components inside components, all levels together.
pub const COMPONENTS_MAX: u32 = 64;
/// Levels of components and modules inside each other.
pub const NESTING_MAX: u32 = 8;
/// Functions of all modules. CPython: 13,480.
pub const FUNCTIONS_MAX: u32 = 20_000;
/// Bytes of one function's body. CPython: 427,000.
pub const BODY_BYTES_MAX: u64 = 512 << 10;
/// Blocks inside each other in one function. CPython: 781.
pub const BLOCK_DEPTH_MAX: u32 = 1_024;
/// Locals of one function. CPython: 271.
pub const FUNCTION_LOCALS_MAX: u32 = 1_000;
/// Locals of all functions. CPython: 47,720.
pub const LOCALS_MAX: u32 = 100_000;
/// Targets of one `br_table`. CPython: 3,203.
pub const BR_TABLE_TARGETS_MAX: u32 = 8_192;
/// Data segments of all modules. Go: 21,046.
pub const DATA_SEGMENTS_MAX: u32 = 32_000;
/// Element segments of all modules.
pub const ELEMENT_SEGMENTS_MAX: u32 = 10_000;
/// Globals of all modules, imported ones not counted.
pub const GLOBALS_MAX: u32 = 50_000;
/// Core imports and exports of all modules.
pub const CORE_NAMES_MAX: u32 = 100_000;
/// Core types of all modules.
pub const CORE_TYPES_MAX: u32 = 20_000;
/// Tables of all modules. Honest components have up to two.
pub const TABLES_MAX: u32 = 8;
/// Linear memories of all modules. Honest components have up to two.
pub const MEMORIES_MAX: u32 = 4;
/// Bytes of type definitions outside core modules.
pub const COMPONENT_TYPE_BYTES_MAX: u64 = 1 << 20;
/// Instances, aliases, lifts and lowerings outside core modules.
pub const COMPONENT_ITEMS_MAX: u32 = 50_000;
/// Bytes of names, debugging data and other custom sections.
pub const CUSTOM_BYTES_MAX: u64 = 8 << 20;
/// Foreign imports that a refusal names.
pub const NAMED_IMPORTS_MAX: usize = 16;

/// The export that makes a component an agent.
pub const NEGOTIATOR: &str = "arena:negotiation/negotiator@0.1.0";

/// The import of an agent that may ask language models.
pub const INFERENCE: &str = "arena:negotiation/inference@0.1.0";

/// The interfaces of arena that an agent may import.
const ARENA_INTERFACES: [&str; 4] = ["inference", "trace", "training", "types"];

/// The WASI interfaces that an agent may import, of any version 0.2.x: what compilers' runtimes
/// link without using it, and nothing that reaches out of the sandbox.
const WASI_INTERFACES: [&str; 18] = [
    "cli/environment",
    "cli/exit",
    "cli/stderr",
    "cli/stdin",
    "cli/stdout",
    "cli/terminal-input",
    "cli/terminal-output",
    "cli/terminal-stderr",
    "cli/terminal-stdin",
    "cli/terminal-stdout",
    "clocks/monotonic-clock",
    "clocks/wall-clock",
    "io/error",
    "io/poll",
    "io/streams",
    "random/insecure",
    "random/insecure-seed",
    "random/random",
];

/// Returns the interfaces that a component imports, or why it is refused.
///
/// # Errors
/// The first rule that the bytes break.
pub fn check(bytes: &[u8], limits: &Limits) -> Result<Vec<String>, Refusal> {
    at_most("bytes", bytes.len() as u64, COMPONENT_BYTES_MAX)?;
    check_kind(bytes)?;
    let mut census = Census::new(limits);
    for payload in Parser::new(0).parse_all(bytes) {
        census.count(payload?)?;
    }
    census.finish()
}

/// Tells what the bytes are from how they begin.
fn check_kind(bytes: &[u8]) -> Result<(), Refusal> {
    let found = match bytes {
        [0x00, b'a', b's', b'm', 0x0d, 0x00, 0x01, 0x00, ..] => return Ok(()),
        [] => "nothing",
        [0x00, b'a', b's', b'm', 0x01, 0x00, 0x00, 0x00, ..] => "a core module",
        [0x00, b'a', b's', b'm', ..] => "WebAssembly of another version, or cut short",
        [0x7f, b'E', b'L', b'F', ..] => "an ELF file",
        [b'P', b'K', 3, 4, ..] | [0x1f, 0x8b, ..] => "a compressed archive",
        _ if bytes.trim_ascii_start().starts_with(b"(") => "WebAssembly text",
        _ => "something else",
    };
    Err(Refusal::NotAComponent { found })
}

/// What has been seen of a component so far.
struct Census<'a> {
    limits: &'a Limits,
    depth: u32,
    counts: Counts,
    imports: Vec<String>,
    has_negotiator: bool,
}

#[derive(Default)]
struct Counts {
    modules: u32,
    components: u32,
    functions: u32,
    locals: u32,
    data_segments: u32,
    element_segments: u32,
    globals: u32,
    core_names: u32,
    core_types: u32,
    tables: u32,
    memories: u32,
    type_bytes: u64,
    items: u32,
    custom_bytes: u64,
}

impl<'a> Census<'a> {
    fn new(limits: &'a Limits) -> Census<'a> {
        Census {
            limits,
            depth: 0,
            counts: Counts::default(),
            imports: Vec::new(),
            has_negotiator: false,
        }
    }

    fn count(&mut self, payload: Payload<'_>) -> Result<(), Refusal> {
        match payload {
            Payload::ModuleSection { .. } => {
                self.enter()?;
                add("core modules", &mut self.counts.modules, 1, MODULES_MAX)
            }
            Payload::ComponentSection { .. } => {
                self.enter()?;
                add("nested components", &mut self.counts.components, 1, COMPONENTS_MAX)
            }
            Payload::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(())
            }
            Payload::Version { encoding: Encoding::Module, .. } if self.depth == 0 => {
                Err(Refusal::NotAComponent { found: "a core module" })
            }
            Payload::CodeSectionEntry(body) => self.count_body(&body),
            Payload::CustomSection(section) => {
                let bytes = section.data().len() as u64;
                self.counts.custom_bytes = self.counts.custom_bytes.saturating_add(bytes);
                at_most("bytes of custom sections", self.counts.custom_bytes, CUSTOM_BYTES_MAX)
            }
            payload => match self.count_core_section(payload)? {
                Some(payload) => self.count_component_section(payload),
                None => Ok(()),
            },
        }
    }

    fn enter(&mut self) -> Result<(), Refusal> {
        self.depth += 1;
        at_most("levels of nesting", u64::from(self.depth), u64::from(NESTING_MAX))
    }

    /// Counts a section of a core module; hands anything else back.
    fn count_core_section<'b>(
        &mut self,
        payload: Payload<'b>,
    ) -> Result<Option<Payload<'b>>, Refusal> {
        let counts = &mut self.counts;
        match payload {
            Payload::TypeSection(section) => {
                add("core types", &mut counts.core_types, section.count(), CORE_TYPES_MAX)?;
            }
            Payload::ImportSection(section) => {
                add("core names", &mut counts.core_names, section.count(), CORE_NAMES_MAX)?;
            }
            Payload::ExportSection(section) => {
                add("core names", &mut counts.core_names, section.count(), CORE_NAMES_MAX)?;
            }
            Payload::FunctionSection(section) => {
                add("functions", &mut counts.functions, section.count(), FUNCTIONS_MAX)?;
            }
            Payload::TableSection(section) => {
                add("tables", &mut counts.tables, section.count(), TABLES_MAX)?;
                for table in section {
                    let elements = table?.ty.initial;
                    let limit = u64::from(self.limits.table_elements_max);
                    at_most("elements of a table at the start", elements, limit)?;
                }
            }
            Payload::MemorySection(section) => {
                add("memories", &mut counts.memories, section.count(), MEMORIES_MAX)?;
                for memory in section {
                    let bytes = memory?.initial.saturating_mul(64 << 10);
                    let limit = self.limits.memory_bytes_max;
                    at_most("bytes of a memory at the start", bytes, limit)?;
                }
            }
            Payload::GlobalSection(section) => {
                add("globals", &mut counts.globals, section.count(), GLOBALS_MAX)?;
            }
            Payload::ElementSection(section) => {
                let segments = &mut counts.element_segments;
                add("element segments", segments, section.count(), ELEMENT_SEGMENTS_MAX)?;
            }
            Payload::DataSection(section) => {
                let segments = &mut counts.data_segments;
                add("data segments", segments, section.count(), DATA_SEGMENTS_MAX)?;
            }
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    fn count_component_section(&mut self, payload: Payload<'_>) -> Result<(), Refusal> {
        let items = match payload {
            Payload::ComponentImportSection(section) => {
                let items = section.count();
                self.read_imports(section)?;
                items
            }
            Payload::ComponentExportSection(section) => {
                let items = section.count();
                self.read_exports(section)?;
                items
            }
            Payload::ComponentTypeSection(section) => {
                let range = section.range();
                let bytes = range.end.saturating_sub(range.start) as u64;
                self.counts.type_bytes = self.counts.type_bytes.saturating_add(bytes);
                let name = "bytes of component types";
                at_most(name, self.counts.type_bytes, COMPONENT_TYPE_BYTES_MAX)?;
                section.count()
            }
            Payload::CoreTypeSection(section) => section.count(),
            Payload::InstanceSection(section) => section.count(),
            Payload::ComponentInstanceSection(section) => section.count(),
            Payload::ComponentAliasSection(section) => section.count(),
            Payload::ComponentCanonicalSection(section) => section.count(),
            _ => 0,
        };
        add("component items", &mut self.counts.items, items, COMPONENT_ITEMS_MAX)
    }

    fn count_body(&mut self, body: &FunctionBody<'_>) -> Result<(), Refusal> {
        let range = body.range();
        let bytes = range.end.saturating_sub(range.start) as u64;
        at_most("bytes of a function", bytes, BODY_BYTES_MAX)?;
        let mut locals = 0;
        for group in body.get_locals_reader()? {
            let (count, _) = group?;
            add("locals of a function", &mut locals, count, FUNCTION_LOCALS_MAX)?;
        }
        add("locals", &mut self.counts.locals, locals, LOCALS_MAX)?;
        check_operators(body)
    }

    /// Reads the names of what the whole component imports; inner components are fed by it.
    fn read_imports(&mut self, section: ComponentImportSectionReader<'_>) -> Result<(), Refusal> {
        if self.depth > 0 {
            return Ok(());
        }
        for import in section {
            self.imports.push(import?.name.name.to_owned());
        }
        Ok(())
    }

    fn read_exports(&mut self, section: ComponentExportSectionReader<'_>) -> Result<(), Refusal> {
        if self.depth > 0 {
            return Ok(());
        }
        for export in section {
            self.has_negotiator |= export?.name.name == NEGOTIATOR;
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<String>, Refusal> {
        let (allowed, foreign): (Vec<String>, Vec<String>) =
            self.imports.into_iter().partition(|name| is_allowed(name));
        if !foreign.is_empty() {
            let count = foreign.len();
            let names = foreign.into_iter().take(NAMED_IMPORTS_MAX).collect();
            return Err(Refusal::ForeignImports { names, count });
        }
        if !self.has_negotiator {
            return Err(Refusal::MissingExport { name: NEGOTIATOR });
        }
        Ok(allowed)
    }
}

/// Walks one function for the two things that make compilers slow far beyond its size.
fn check_operators(body: &FunctionBody<'_>) -> Result<(), Refusal> {
    let mut depth: u32 = 0;
    let mut reader = body.get_operators_reader()?;
    while !reader.eof() {
        match reader.read()? {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                depth = depth.saturating_add(1);
                at_most("nested blocks", u64::from(depth), u64::from(BLOCK_DEPTH_MAX))?;
            }
            Operator::End => depth = depth.saturating_sub(1),
            Operator::BrTable { targets } => {
                let limit = u64::from(BR_TABLE_TARGETS_MAX);
                at_most("targets of a `br_table`", u64::from(targets.len()), limit)?;
            }
            _ => (),
        }
    }
    Ok(())
}

fn is_allowed(name: &str) -> bool {
    if let Some(rest) = name.strip_prefix("arena:negotiation/") {
        return rest.strip_suffix("@0.1.0").is_some_and(|name| ARENA_INTERFACES.contains(&name));
    }
    let Some((interface, version)) =
        name.strip_prefix("wasi:").and_then(|rest| rest.split_once("@0.2."))
    else {
        return false;
    };
    let is_number = (1..=3).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_digit());
    is_number && WASI_INTERFACES.contains(&interface)
}

fn add(what: &'static str, total: &mut u32, more: u32, limit: u32) -> Result<(), Refusal> {
    *total = total.saturating_add(more);
    at_most(what, u64::from(*total), u64::from(limit))
}

fn at_most(what: &'static str, value: u64, limit: u64) -> Result<(), Refusal> {
    if value > limit { Err(Refusal::TooMuch { what, value, limit }) } else { Ok(()) }
}

impl From<BinaryReaderError> for Refusal {
    fn from(error: BinaryReaderError) -> Refusal {
        Refusal::Malformed { offset: error.offset() as u64, detail: error.message().to_owned() }
    }
}
