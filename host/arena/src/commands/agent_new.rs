//! `arena agent new`: writes a crate with a small agent that builds as it is.
//!
//! The crate needs this program's guest SDK, which is not on crates.io, so the SDK is written
//! beside it: the folder can be moved anywhere.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::NewArgs;
use crate::error::{CliError, Complaint};
use crate::screen;

/// The guest SDK: file name and text.
const GUEST_SDK: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/guest_sdk.rs"));

/// The toolchain that this program's own agents are built with.
const TOOLCHAIN: &str = include_str!("../../../../rust-toolchain.toml");

const AGENT: &str = include_str!("../../template/agent.rs.txt");
const MANIFEST: &str = include_str!("../../template/Cargo.toml.txt");
const CARGO_CONFIG: &str = include_str!("../../template/config.toml.txt");
const README: &str = include_str!("../../template/README.md.txt");

/// Longest name of an agent's crate.
const NAME_BYTES_MAX: usize = 64;

/// Names that a library cannot have: keywords, and crates that it would hide.
const NAMES_TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "arena-guest",
    "arena_guest",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "wit-bindgen",
    "wit_bindgen",
    "yield",
];

/// Writes the crate.
///
/// # Errors
/// A name that cargo would refuse, a folder that exists, a disk that fails.
pub fn run(args: &NewArgs) -> Result<(), CliError> {
    let folder = PathBuf::from(&args.name);
    let name = checked_name(&folder)?;
    let failed = || format!("cannot create `{}`", folder.display());
    if folder.exists() {
        let complaint = Complaint::new(failed(), "it exists already").hint("choose another name");
        return Err(CliError::Config(complaint));
    }
    for (path, text) in files(&name) {
        write(&folder.join(path), &text)
            .map_err(|error| CliError::Infrastructure(Complaint::new(failed(), error)))?;
    }
    screen::results(&farewell(&folder, &name))
}

fn farewell(folder: &Path, name: &str) -> String {
    let component = component_path(name);
    format!(
        "created the agent `{name}` in `{folder}`\n\
         next: cd {folder} && cargo build --release && arena agent check {component}\n",
        folder = folder.display(),
    )
}

/// Where cargo puts the built component.
fn component_path(name: &str) -> String {
    format!("target/wasm32-wasip2/release/{}.wasm", name.replace('-', "_"))
}

fn files(name: &str) -> Vec<(PathBuf, String)> {
    let fill = |text: &str| {
        text.replace("@NAME@", name)
            .replace("@TYPE@", &type_name(name))
            .replace("@COMPONENT@", &component_path(name))
    };
    let own = [
        ("Cargo.toml", fill(MANIFEST)),
        (".cargo/config.toml", fill(CARGO_CONFIG)),
        (".gitignore", "/target\n".to_owned()),
        ("README.md", fill(README)),
        ("rust-toolchain.toml", TOOLCHAIN.to_owned()),
        ("src/lib.rs", fill(AGENT)),
    ];
    let own = own.into_iter().map(|(path, text)| (PathBuf::from(path), text));
    let sdk = GUEST_SDK.iter();
    let sdk = sdk.map(|(path, text)| (Path::new("arena-guest").join(path), (*text).to_owned()));
    own.chain(sdk).collect()
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let parent = path.parent().expect("every file lies in the crate's folder");
    fs::create_dir_all(parent)?;
    fs::write(path, text)
}

fn checked_name(folder: &Path) -> Result<String, CliError> {
    let refuse = |fact: &str| {
        let failed = format!("cannot name an agent `{}`", folder.display());
        let complaint = Complaint::new(failed, fact).hint("try a name such as `haggler-2`");
        Err(CliError::Config(complaint))
    };
    let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
        return refuse("it has no readable last part");
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.bytes().all(legal) {
        return refuse("needs a letter, then letters, digits, `-` and `_`");
    }
    if name.len() > NAME_BYTES_MAX {
        return refuse("is longer than 64 letters");
    }
    if NAMES_TAKEN.contains(&name.to_ascii_lowercase().as_str()) {
        return refuse("cargo or the language has taken this name");
    }
    Ok(name.to_owned())
}

/// Turns `haggler-2` into `Haggler2`.
fn type_name(name: &str) -> String {
    let words = name.split(['-', '_']).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cargo_refuses_are_refused_first() {
        for name in ["", "..", "9lives", "a b", "match", "Self", "arena-guest", "ż", "a/.."] {
            assert!(checked_name(Path::new(name)).is_err(), "{name}");
        }
        assert!(checked_name(&PathBuf::from("x".repeat(65))).is_err());
        assert_eq!(checked_name(Path::new("some/where/haggler-2")).ok(), Some("haggler-2".into()));
    }

    #[test]
    fn a_crate_name_becomes_a_type_name() {
        assert_eq!(type_name("haggler-2"), "Haggler2");
        assert_eq!(type_name("very_long-name"), "VeryLongName");
    }

    #[test]
    fn the_sdk_inherits_nothing_from_this_workspace() {
        let manifest = GUEST_SDK.iter().find(|(path, _)| *path == "Cargo.toml");
        let (_, text) = manifest.expect("the SDK has a manifest");
        for foreign in ["workspace", "dev-dependencies", "example"] {
            assert!(!text.contains(foreign), "{text}");
        }
        assert!(text.contains("wit-bindgen = {"), "{text}");
    }
}
