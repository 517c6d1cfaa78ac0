//! Collects the guest SDK, so that `arena agent new` can write it beside a new agent and the
//! agent builds anywhere.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Most files that the SDK may have.
const FILES_MAX: usize = 64;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("host/arena");
    let sdk = root.join("guest-sdk");
    let mut files = vec![("Cargo.toml".to_owned(), manifest(root, &sdk))];
    for folder in ["src", "wit"] {
        collect(&sdk, &sdk.join(folder), &mut files);
    }
    files.sort();
    assert!(files.len() <= FILES_MAX, "the SDK has {} files", files.len());
    let mut code = String::from("&[\n");
    for (name, text) in &files {
        writeln!(code, "    ({name:?}, {text:?}),").expect("writing to a string cannot fail");
    }
    code.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(PathBuf::from(out).join("guest_sdk.rs"), code).expect("OUT_DIR is writable");
}

fn collect(sdk: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).expect("the SDK has this folder") {
        let path = entry.expect("the SDK's folder is readable").path();
        if path.is_dir() {
            collect(sdk, &path, files);
            continue;
        }
        let text = fs::read_to_string(&path).expect("the SDK's files are text");
        let name = path.strip_prefix(sdk).expect("the file lies in the SDK").to_string_lossy();
        files.push((name.replace('\\', "/"), text));
    }
}

/// Writes the SDK's manifest for a life outside this workspace: what it inherits is written
/// out; lints, tests and examples, which belong to this workspace, are left away.
fn manifest(root: &Path, sdk: &Path) -> String {
    let read = |path: PathBuf| {
        println!("cargo::rerun-if-changed={}", path.display());
        fs::read_to_string(path).expect("the manifest is readable")
    };
    let workspace = read(root.join("Cargo.toml"));
    let own = read(sdk.join("Cargo.toml"));
    let mut text = String::new();
    let mut section = "";
    for line in own.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let kept = ["[package]", "[lib]", "[dependencies]"].contains(&section);
        if !kept && !section.starts_with("[target.") {
            continue;
        }
        let resolved = match line.split_once(".workspace = true") {
            Some((name, _)) if section == "[package]" => {
                inherited(&workspace, "[workspace.package]", name)
            }
            Some((name, _)) => inherited(&workspace, "[workspace.dependencies]", name),
            None => line,
        };
        text.push_str(resolved);
        text.push('\n');
    }
    text
}

fn inherited<'a>(workspace: &'a str, section: &str, name: &str) -> &'a str {
    let (_, after) = workspace.split_once(section).expect("the workspace has this section");
    let wanted = format!("{name} = ");
    let found = after.lines().find(|line| line.starts_with(&wanted));
    found.expect("the workspace names what the SDK inherits, one a line")
}
