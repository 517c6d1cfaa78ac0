//! Keeps the style executable: crate edges, sizes of lines, functions and agents, and what
//! may be named where. The file list comes from git, so that nothing untracked matters.

use std::collections::BTreeMap;
use std::process::Command;

use crate::kit::root;

/// Longest line, in characters.
const LINE_CHARS_MAX: usize = 100;
/// Longest function, in lines.
const FUNCTION_LINES_MAX: usize = 70;
/// Longest agent, in lines: an agent is read whole by those who meet it.
const AGENT_LINES_MAX: usize = 150;

/// Which of our crates each crate may use. An edge that is not here is a mistake or a
/// decision that belongs into `host/decisions`.
const EDGES: &[(&str, &[&str])] = &[
    ("arena-core", &[]),
    ("arena-log", &[]),
    ("arena-llm", &["arena-core"]),
    ("arena-kernels", &[]),
    ("arena-weights", &["arena-kernels"]),
    ("arena-model", &["arena-core", "arena-kernels", "arena-llm", "arena-weights"]),
    ("arena-burn", &["arena-core", "arena-kernels", "arena-model", "arena-weights"]),
    ("arena-remote", &["arena-core", "arena-llm"]),
    ("arena-sandbox", &["arena-core", "arena-llm"]),
    ("arena-runner", &["arena-core", "arena-log"]),
    ("arena-audit", &["arena-core", "arena-log"]),
    ("arena-train", &["arena-core", "arena-llm", "arena-model", "arena-weights"]),
    (
        "arena",
        &[
            "arena-agents",
            "arena-audit",
            "arena-burn",
            "arena-core",
            "arena-llm",
            "arena-log",
            "arena-model",
            "arena-remote",
            "arena-runner",
            "arena-sandbox",
            "arena-train",
            "arena-weights",
        ],
    ),
    ("arena-guest", &[]),
];

/// What may be named only in some places: pattern, the places, why. Patterns are split so that
/// this file does not find itself.
const ONLY_IN: &[(&str, &[&str], &str)] = &[
    (
        concat!("wasm", "time::"),
        &["host/arena-sandbox/", "tests/"],
        "only the sandbox knows the engine",
    ),
    (concat!("use bu", "rn::"), &["host/arena-burn/"], "only one crate knows burn"),
    (concat!("tok", "io::"), &["host/arena-remote/"], "only servers are asked by async code"),
    (
        concat!("thread::", "Builder"),
        &[
            "host/arena-runner/src/",
            "host/arena-sandbox/src/",
            "host/arena-kernels/src/context.rs",
            "host/arena-model/src/engine.rs",
            // Strangers' texts are read on stacks of a known size.
            "host/arena-model/src/grammar.rs",
            "host/arena-weights/tests/",
            "host/arena/src/progress.rs",
            "host/arena/src/rescoring/pass.rs",
        ],
        "threads have few places",
    ),
    (
        concat!("print", "ln!"),
        &[
            "host/arena/",
            "agents/build.rs",
            "tests/",
            "host/arena-core/tests/",
            // Measurements are read by people.
            "host/arena-kernels/benches/",
            "host/arena-model/examples/",
            "host/arena-train/examples/",
            // A test that cannot be made on a machine says so.
            "host/arena-kernels/src/isa.rs",
            "host/arena-kernels/tests/",
            "host/arena-weights/tests/",
            "host/arena-model/tests/",
            "host/arena-burn/tests/",
            "host/arena-remote/tests/",
        ],
        "only the binary prints",
    ),
    (
        concat!("uns", "afe {"),
        &["host/arena-sandbox/src/sandbox.rs", "host/arena-kernels/"],
        "SIMD, a pool of threads, and one block that loads our own compiled code",
    ),
    (
        concat!("allow(uns", "afe_code"),
        &["host/arena-sandbox/src/sandbox.rs", "host/arena-kernels/"],
        "where else would it be needed",
    ),
];

/// What the pure crates may not name: results must not depend on it.
const NOT_IN_CORE: &[&str] =
    &["HashMap", "HashSet", "SystemTime", "Instant::now", "std::fs", "std::thread", "std::net"];

/// Functions of floats whose last digits the pure core may not take from the platform: published
/// tables would differ. `libm` has them written in what IEEE 754 fixes.
const OF_THE_PLATFORM: &[&str] = &[
    "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "powi", "powf", "cbrt",
    "hypot", "sin", "cos", "sin_cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh",
];

/// What nobody may leave behind. Split so that this file does not find itself.
const NOWHERE: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("db", "g!("),
    concat!("FIX", "ME"),
    concat!("/wo", "rk/"),
];

fn tracked(suffixes: &[&str]) -> Vec<(String, String)> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    assert!(listing.status.success(), "git ls-files failed; the tests run in a checkout");
    let names = String::from_utf8(listing.stdout).expect("file names are UTF-8");
    names
        .split('\0')
        .filter(|name| suffixes.iter().any(|suffix| name.ends_with(suffix)))
        .filter_map(|name| {
            Some((name.to_owned(), std::fs::read_to_string(root().join(name)).ok()?))
        })
        .collect()
}

fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn crates_use_each_other_only_along_the_drawn_edges() {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let mut findings = Vec::new();
    for (name, text) in tracked(&["Cargo.toml"]) {
        let manifest: toml::Table = toml::from_str(&text).expect("a manifest is TOML");
        let Some(package) = manifest.get("package") else {
            continue;
        };
        let crate_name = package["name"].as_str().expect("a package has a name");
        let uses = ["dependencies", "build-dependencies"]
            .iter()
            .filter_map(|table| manifest.get(*table)?.as_table())
            .flat_map(|table| table.keys())
            .filter(|used| used.starts_with("arena"));
        let is_agent = name.starts_with("agents/");
        for used in uses {
            let fine = match allowed.get(crate_name) {
                Some(edges) => edges.contains(&used.as_str()),
                None if is_agent => used == "arena-guest",
                None => crate_name == "arena-tests",
            };
            if !fine {
                findings.push(format!("{name}: `{crate_name}` must not use `{used}`"));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn lines_and_functions_fit_on_a_screen() {
    let mut findings = Vec::new();
    for (name, text) in tracked(&[".rs"]) {
        for (index, line) in text.lines().enumerate() {
            // Words that are said in one go are not broken for the sake of a column.
            let is_text = line.trim_start().starts_with('"');
            if line.chars().count() > LINE_CHARS_MAX && !is_text {
                findings.push(format!("{name}:{}: {} characters", index + 1, line.chars().count()));
            }
        }
        findings.extend(long_functions(&name, &text));
    }
    assert_none(&findings);
}

/// Finds functions by rustfmt's layout: `fn` opens at some indent, a brace at the same indent
/// closes it.
fn long_functions(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim_start();
        let starts =
            ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "const fn ", "pub const fn "]
                .iter()
                .any(|prefix| code.starts_with(prefix));
        if starts && !code.ends_with(';') && !code.ends_with('}') {
            open.push((indent, index));
        }
        if code == "}"
            && let Some(&(opened_at, first)) = open.last()
            && opened_at == indent
        {
            open.pop();
            let lines = index - first + 1;
            if lines > FUNCTION_LINES_MAX {
                findings.push(format!("{name}:{}: a function of {lines} lines", first + 1));
            }
        }
    }
    findings
}

#[test]
fn nothing_is_named_outside_its_place() {
    let mut findings = Vec::new();
    for (name, text) in tracked(&[".rs"]) {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        for (index, line) in code.enumerate() {
            for (pattern, places, why) in ONLY_IN {
                if line.contains(pattern) && !places.iter().any(|place| name.starts_with(place)) {
                    findings.push(format!("{name}:{}: `{pattern}`: {why}", index + 1));
                }
            }
            let is_core = name.starts_with("host/arena-core/src/");
            for pattern in NOT_IN_CORE.iter().filter(|_| is_core) {
                if line.contains(pattern) {
                    findings.push(format!("{name}:{}: `{pattern}` in the pure core", index + 1));
                }
            }
            let named = |function: &&&str| {
                [format!(".{function}("), format!("f64::{function}")]
                    .iter()
                    .any(|pattern| line.contains(pattern))
            };
            for function in OF_THE_PLATFORM.iter().filter(|_| is_core).filter(named) {
                findings.push(format!("{name}:{}: `{function}` of the platform", index + 1));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn nothing_unfinished_is_left_behind() {
    let mut findings = Vec::new();
    for (name, text) in tracked(&[".rs", ".md", ".toml", ".wit", ".py", ".sh"]) {
        let ignored = concat!("#[ign", "ore");
        if name.ends_with(".rs") && text.contains(ignored) {
            findings.push(format!("{name}: a test is switched off for good"));
        }
        for (index, line) in text.lines().enumerate() {
            for pattern in NOWHERE.iter().filter(|pattern| line.contains(**pattern)) {
                findings.push(format!("{name}:{}: `{pattern}`", index + 1));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn every_agent_is_short_and_opens_with_its_strategy_and_source() {
    let mut findings = Vec::new();
    let mut agents = 0;
    for (name, text) in tracked(&["src/lib.rs"]) {
        if !name.starts_with("agents/") || name == "agents/src/lib.rs" {
            continue;
        }
        agents += 1;
        let lines = text.lines().count();
        if lines >= AGENT_LINES_MAX {
            findings.push(format!("{name}: {lines} lines, at most {}", AGENT_LINES_MAX - 1));
        }
        if !text.starts_with("//! ") {
            findings.push(format!("{name}: the first line does not name the strategy"));
        }
    }
    assert!(agents >= 17, "only {agents} agents found");
    assert_none(&findings);
}

#[test]
fn the_top_level_holds_what_it_should() {
    const TOP: &[&str] = &[
        "Cargo.toml",
        "Cargo.lock",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "agents",
        "guest-sdk",
        "host",
        "rust-toolchain.toml",
        "shaders",
        "tests",
        "tournaments",
    ];
    let mut findings = Vec::new();
    for (name, _) in tracked(&[""]) {
        let top = name.split('/').next().unwrap_or_default();
        if !top.starts_with('.') && !TOP.contains(&top) {
            findings.push(format!("`{top}` is not part of the fixed top level"));
        }
    }
    findings.dedup();
    assert_none(&findings);
}

#[test]
fn every_shipped_tournament_file_parses() {
    let mut files = 0;
    for (name, text) in tracked(&[".toml"]) {
        if !name.starts_with("tournaments/") {
            continue;
        }
        assert!(text.starts_with('#'), "{name}: the first line says what the file is for");
        // `arena-train` reads these.
        if name.starts_with("tournaments/experiments/") {
            continue;
        }
        // The models that a tournament file names lie beside it.
        if name.ends_with(".script.toml") {
            let script = arena_llm::scripted::ScriptedModel::parse(&name, &text);
            script.unwrap_or_else(|error| panic!("{name}: {error}"));
        } else {
            files += 1;
            let config = arena_core::config::TournamentConfig::parse(&text);
            config.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    assert!(files >= 3, "only {files} tournament files found");
}
