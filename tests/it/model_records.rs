//! A tournament whose model has tokens: they are in the log, and all that reads logs reads them,
//! with no model at hand.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use arena_core::dialogue;
use arena_llm::model::LanguageModel;

use crate::audit::{complaint, line, printed};
use crate::kit::{ARENA, root};
use crate::logs;
use crate::model_failures::{ORIGIN, Stage};
use crate::models::{Spelling, scripted};

const SCRIPT: &str = "default = \"Talk: Not for that.\\nAction: [REJECT]\"";

fn run(program: &str, args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("NO_COLOR", "1");
    command.output().unwrap_or_else(|error| panic!("`{program}`: {error}"))
}

#[test]
fn a_log_with_tokens_is_read_audited_and_executed_again_with_no_model() {
    let model: Arc<dyn LanguageModel> = Arc::new(Spelling { inner: scripted(SCRIPT) });
    let stage = Stage::new(&*model);
    let folder = tempfile::tempdir().expect("a temporary folder");
    stage.run(&folder.path().join("log"), model).expect("a run");

    let log = logs::read(&folder.path().join("log"));
    assert_eq!(log.announcement.models[0].engine, "engine=spelling\n");
    let mut reused = 0;
    for usage in log.records.iter().flat_map(|record| &record.usage) {
        for (number, call) in usage.model_calls.iter().enumerate() {
            let prompt = dialogue::prompt(&usage.model_calls, number).expect("a whole prompt");
            assert_eq!(prompt.len(), call.input_tokens as usize);
            reused += call.tokens.as_ref().expect("tokens").reused;
        }
    }
    assert!(reused > 10_000, "only {reused} tokens were not written down again");

    let vkey = logs::key().vkey(ORIGIN).expect("a sound name").to_string();
    let ended = run(ARENA, &["audit", "log", "--key", &vkey, "--reexecute"], folder.path());
    let said = printed(&ended);
    for step in ["usage", "re-execution"] {
        assert!(line(&said, step).starts_with("  verified "), "{said}{}", complaint(&ended));
    }
    let shown = run(ARENA, &["log", "show", "log", "--entry", "1", "--json"], folder.path());
    let (shown, said) = (printed(&shown), complaint(&shown));
    assert!(shown.contains("\"sampled_logprob_micro\""), "{shown}{said}");
    let reader = root().join("tests/second_reader.py");
    let reader = reader.to_str().expect("the checkout's path is text");
    let ended = run("python3", &[reader, "log", &vkey], folder.path());
    assert_eq!(ended.status.code(), Some(0), "{}", complaint(&ended));
}
