//! Builds every agent beside this file to a component and writes the table of them.
//!
//! The agents are ordinary crates of the workspace, built by a nested cargo for
//! `wasm32-wasip2` with the profile `guest` into a target folder of their own. Nothing of the
//! outer build reaches them (flags, wrappers, profile overrides, paths), so the same sources and
//! toolchain give the same components.

use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

const TARGET: &str = "wasm32-wasip2";

/// What the nested cargo may see of the environment's `CARGO` and `RUST` variables: where things
/// are and how to reach the network, nothing that changes code.
const KEPT: [&str; 10] = [
    "CARGO",
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_REGISTR",
    "CARGO_TERM_COLOR",
    "RUSTUP_",
    "RUST_MIN_STACK",
    "RUST_BACKTRACE",
];

fn main() {
    let agents = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = agents.parent().expect("the agents have a workspace above them").to_owned();
    let out = PathBuf::from(variable("OUT_DIR"));
    for path in ["agents", "guest-sdk", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    println!("cargo::rerun-if-env-changed=CARGO_HOME");
    let names = agent_names(&agents);
    let target_dir = nested_target_dir(&out);
    build(&root, &target_dir, &names);
    write_table(&agents, &target_dir.join(TARGET).join("guest"), &out, &names);
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| fail(&format!("cargo did not set `{name}`"), ""))
}

/// Returns the folders here that hold a crate, sorted; folder name = crate name.
fn agent_names(agents: &Path) -> Vec<String> {
    let entries = fs::read_dir(agents).expect("the folder of this script can be read");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the folder of this script can be read"))
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().into_string().expect("agents have plain names"))
        .collect();
    names.sort();
    names
}

/// Returns `guests` inside the outer target folder, so that it is cached and cleaned with it.
fn nested_target_dir(out: &Path) -> PathBuf {
    let is_target_dir = |path: &&Path| path.join("CACHEDIR.TAG").is_file();
    out.ancestors().find(is_target_dir).unwrap_or(out).join("guests")
}

fn build(root: &Path, target_dir: &Path, names: &[String]) {
    let mut command = Command::new(variable("CARGO"));
    for (key, _) in env::vars_os() {
        let name = key.to_string_lossy();
        let foreign = ["CARGO", "RUST"].iter().any(|prefix| name.starts_with(prefix));
        if foreign && !KEPT.iter().any(|kept| name.starts_with(kept) && name_ends(&name, kept)) {
            command.env_remove(&key);
        }
    }
    command
        .current_dir(root)
        .env("CARGO_ENCODED_RUSTFLAGS", remapping(root).join("\x1f"))
        .args(["build", "--locked", "--profile", "guest", "--target", TARGET])
        .arg("--target-dir")
        .arg(target_dir);
    for name in names {
        command.args(["--package", name]);
    }
    let output = command.output();
    let output = output.unwrap_or_else(|error| fail(&format!("cannot run cargo: {error}"), ""));
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        let missing = told.contains("can't find crate for `core`")
            || told.contains("can't find crate for `std`")
            || told.contains("target may not be installed");
        let hint = if missing { "run `rustup target add wasm32-wasip2`" } else { "" };
        fail(&format!("cannot build the built-in agents\n{told}"), hint);
    }
}

/// Returns whether `name` is `kept` itself, or `kept` is a prefix by design.
fn name_ends(name: &str, kept: &str) -> bool {
    name == kept || !["CARGO", "CARGO_HOME"].contains(&kept)
}

/// Returns the flags that keep this machine's paths out of the components.
fn remapping(root: &Path) -> Vec<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let homes = home.iter().map(|home| format!("--remap-path-prefix={}=/cargo", home.display()));
    let own = format!("--remap-path-prefix={}=/arena", root.display());
    homes.chain([own]).collect()
}

fn write_table(agents: &Path, built: &Path, out: &Path, names: &[String]) {
    let mut table = String::from("&[\n");
    for name in names {
        let file = format!("{}.wasm", name.replace('-', "_"));
        let copy = out.join(&file);
        if let Err(error) = fs::copy(built.join(&file), &copy) {
            fail(&format!("no component `{}`: {error}", built.join(&file).display()), "");
        }
        let about = first_doc_paragraph(&agents.join(name).join("src").join("lib.rs"));
        writeln!(
            table,
            "    Builtin {{ name: {name:?}, about: {about:?}, \
             component: include_bytes!({copy:?}) }},"
        )
        .expect("a string takes every write");
    }
    table.push_str("]\n");
    fs::write(out.join("builtins.rs"), table).expect("the output folder can be written");
}

/// The first paragraph of a crate's own documentation, in one line.
fn first_doc_paragraph(source: &Path) -> String {
    let text = fs::read_to_string(source).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//! ")).collect();
    if lines.is_empty() {
        fail(&format!("`{}` does not open with a `//!` line", source.display()), "");
    }
    lines.join(" ")
}

fn fail(what: &str, hint: &str) -> ! {
    for line in what.lines() {
        println!("cargo::error={line}");
    }
    if !hint.is_empty() {
        println!("cargo::error=hint: {hint}");
    }
    exit(1);
}
