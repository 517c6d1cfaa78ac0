//! Tournament files that are refused, each with the error that it gives.
//!
//! A case is a file whose comment lines at the top hold the expected error, and the hint if
//! there is one: `# error: ...`, `# hint: ...`. With `ARENA_UPDATE_CASES=1` the lines are
//! rewritten instead of compared; read the difference before keeping it.

use std::fs;
use std::path::{Path, PathBuf};

use arena_core::config::TournamentConfig;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/config");
    let files = fs::read_dir(folder).expect("the cases are there");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a case").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths
}

fn head_length(text: &str) -> usize {
    let is_head = |line: &&str| line.starts_with("# error: ") || line.starts_with("# hint: ");
    text.split_inclusive('\n').take_while(is_head).map(str::len).sum()
}

#[test]
fn every_refused_file_says_where_and_why() {
    let update = std::env::var_os("ARENA_UPDATE_CASES").is_some();
    let paths = cases();
    assert!(paths.len() >= 100, "{} cases were found", paths.len());
    let mut wrong = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("the case is readable");
        let (expected, _) = text.split_at(head_length(&text));
        let found = match TournamentConfig::parse(&text) {
            Ok(_) => "# error: none\n".to_owned(),
            Err(error) => format!("# error: {error}\n").replace("\n  hint:", "\n# hint:"),
        };
        if found != expected {
            wrong.push(format!("{}\n  expected {expected}  found    {found}", path.display()));
            if update {
                let moved = text.split_at(expected.len()).1;
                fs::write(&path, format!("{found}{moved}")).expect("the case is writable");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
