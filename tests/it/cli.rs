//! The command line, as a person meets it: each file of `tests/cli` is a session with what it
//! prints and how it exits; a folder `NAME.in` holds the files that it starts with. The sessions
//! of the README are held to the same.
//!
//! `TRYCMD=overwrite cargo test` writes the expected output anew.

use std::path::Path;

#[test]
fn the_command_line_answers_as_the_sessions_say() {
    let sessions = crate::kit::root().join("tests/cli/*.md");
    let readme = crate::kit::root().join("README.md");
    trycmd::TestCases::new()
        .register_bin("arena", Path::new(crate::kit::ARENA))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        // A session has the models that it brings.
        .env("ARENA_MODELS", "models")
        .case(sessions)
        .case(readme);
}
