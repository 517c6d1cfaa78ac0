//! The embedded components: which there are, what they import, how large they are.

use arena_agents::{BUILTINS, find};
use wasmparser::{Parser, Payload};

use crate::kit::ALL;

/// Largest component, in bytes. A new dependency that doubles a size should be noticed.
const COMPONENT_BYTES_MAX: usize = 160 << 10;

#[test]
fn every_strategy_is_embedded_under_its_name() {
    let embedded: Vec<&str> = BUILTINS.iter().map(|builtin| builtin.name).collect();
    let known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(embedded, known);
    assert!(known.is_sorted());
    assert!(BUILTINS.iter().all(|builtin| find(builtin.name).is_some()));
    assert!(find("no-such-agent").is_none());
}

#[test]
fn the_about_line_names_a_strategy() {
    for builtin in BUILTINS {
        assert!(builtin.about.contains(": ") && builtin.about.ends_with("."), "{}", builtin.about);
    }
}

#[test]
fn components_import_nothing_but_the_contract_and_inert_wasi() {
    for builtin in BUILTINS {
        let imports = imports(builtin.component);
        assert!(!imports.is_empty(), "{}", builtin.name);
        for import in imports {
            let known = ["arena:negotiation/", "wasi:cli/", "wasi:io/"];
            let allowed = known.iter().any(|prefix| import.starts_with(prefix));
            assert!(allowed, "{} imports `{import}`", builtin.name);
        }
    }
}

fn imports(component: &[u8]) -> Vec<String> {
    let mut imports = Vec::new();
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                imports
                    .extend(section.into_iter().map(|import| import.unwrap().name.name.to_owned()));
            }
            _ => {}
        }
    }
    imports
}

#[test]
fn components_are_small_and_know_no_path_of_this_machine() {
    let root = env!("CARGO_MANIFEST_DIR").trim_end_matches("agents");
    for builtin in BUILTINS {
        let size = builtin.component.len();
        assert!(size <= COMPONENT_BYTES_MAX, "{} has {size} bytes", builtin.name);
        let text = String::from_utf8_lossy(builtin.component);
        assert!(!text.contains(root), "{} contains `{root}`", builtin.name);
    }
}
