//! Verifiers of transparency logs that others wrote, set on a log that arena wrote.
//!
//! They live in `tests/verifiers`, a workspace of its own.

#![allow(clippy::print_stderr)]

use std::process::Command;

use crate::kit::root;

#[test]
fn existing_verifiers_accept_a_log_of_ours_and_refuse_it_with_a_bit_flipped() {
    if std::env::var_os("SLOW_TESTS").is_none() {
        eprintln!("skipped: set SLOW_TESTS=1 to build the verifiers of others and run them");
        return;
    }
    let ended = Command::new(env!("CARGO"))
        .args(["test", "--locked", "--manifest-path"])
        .arg(root().join("tests/verifiers/Cargo.toml"))
        .env("CARGO_TARGET_DIR", root().join("target/verifiers"))
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&ended.stdout);
    let complaint = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}\n{complaint}");
    assert!(said.contains("3 passed"), "not all of the verifiers ran:\n{said}");
}
