//! Finds models on this machine, as `arena` does.

use std::io::Write;
use std::path::PathBuf;

/// Returns the file of a model in the store; says so loudly if there is none.
pub fn find(model: &str, test: &str) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    let store = set("ARENA_MODELS")
        .or_else(|| set("XDG_DATA_HOME").map(|data| data.join("arena/models")))
        .or_else(|| set("HOME").map(|home| home.join(".local/share/arena/models")))?;
    let file = store.join(model).join("model.gguf");
    if file.exists() {
        return Some(file);
    }
    skipped(&format!("{test}: no `{}`; run `arena model pull {model}`", file.display()));
    None
}

/// Says loudly that a test was not made.
pub fn skipped(what: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}").expect("standard error is open");
}

/// Says whether slow tests were asked for.
pub fn slow() -> bool {
    std::env::var_os("SLOW_TESTS").is_some_and(|set| set == "1")
}
