//! Folders of runs: what survives being stopped, and what is refused.

use std::fs;
use std::path::Path;

use arena_model::learner::Parameter;
use arena_train::optimiser::Moments;
use arena_train::run_folder::{FolderError, RunFolder};
use arena_train::trainer::TrainerState;

fn parameters() -> Vec<Parameter> {
    let parameter =
        |name: &str, shape: &[usize]| Parameter { name: name.to_owned(), shape: shape.to_vec() };
    vec![parameter("b.weight", &[2, 2]), parameter("a.weight", &[3])]
}

fn state(first: f32) -> TrainerState {
    let lists = |value: f32| vec![vec![value, -0.0, 1e-40, f32::MAX], vec![value; 3]];
    let moments = Moments { step: 7, first: lists(first + 1.0), second: lists(first + 2.0) };
    TrainerState { values: lists(first), moments }
}

/// Writes a checkpoint whose policy is one file.
fn write(folder: &RunFolder, step: u32) -> [u8; 32] {
    let mut policy = |path: &Path| {
        fs::write(path.join("model"), step.to_string()).expect("the disk is there");
        Ok([step as u8; 32])
    };
    let line = format!("{{\"step\":{step}}}");
    folder
        .write_checkpoint(step, &line, &state(step as f32), &parameters(), &mut policy)
        .expect("the disk is there")
}

fn begin(path: &Path) -> RunFolder {
    RunFolder::begin(path, "name = \"x\"\n").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_checkpoint_is_read_as_it_was_written() {
    let path = tempfile::tempdir().expect("a folder");
    let folder = begin(path.path());
    assert_eq!(folder.newest_checkpoint(&parameters()).expect("nothing is wrong"), None);
    assert_eq!(write(&folder, 3), [3; 32]);
    let read = folder.newest_checkpoint(&parameters()).expect("it is whole").expect("it is there");
    assert_eq!((read.step, read.policy_sha256), (3, [3; 32]));
    assert_eq!((read.state, &read.line[..]), (state(3.0), "{\"step\":3}"));
    assert_eq!(fs::read_to_string(path.path().join("policy/model")).expect("the link leads"), "3");
}

#[test]
fn what_was_being_written_when_a_run_was_killed_is_not_there() {
    let path = tempfile::tempdir().expect("a folder");
    let folder = begin(path.path());
    write(&folder, 1);
    let unfinished = path.path().join("checkpoints/000002.new");
    fs::create_dir_all(unfinished.join("policy")).expect("the disk is there");
    fs::write(unfinished.join("state.json"), "{").expect("the disk is there");
    assert_eq!(folder.checkpoint_steps().expect("the disk is there"), [1]);
    write(&folder, 2);
    assert_eq!(folder.checkpoint_steps().expect("the disk is there"), [1, 2]);
}

#[test]
fn the_first_the_round_and_the_newest_checkpoints_are_kept() {
    let path = tempfile::tempdir().expect("a folder");
    let folder = begin(path.path());
    for step in 0..=7 {
        write(&folder, step);
    }
    folder.prune_checkpoints(5).expect("the disk is there");
    assert_eq!(folder.checkpoint_steps().expect("the disk is there"), [0, 5, 6, 7]);
}

#[test]
fn lines_behind_a_checkpoint_are_cut_and_torn_ones_repaired() {
    let path = tempfile::tempdir().expect("a folder");
    let folder = begin(path.path());
    let lines = |text: &str| fs::write(path.path().join("steps.jsonl"), text).expect("a disk");
    let read = || folder.read_lines("steps.jsonl").expect("it is there");
    folder.write_line("steps.jsonl", 0, "one").expect("the first");
    folder.write_line("steps.jsonl", 1, "two").expect("the second");
    assert_eq!(read(), "one\ntwo\n");
    lines("one\ntwo\nthr");
    folder.write_line("steps.jsonl", 2, "three").expect("the third, which was torn");
    assert_eq!(read(), "one\ntwo\nthree\n");
    folder.write_line("steps.jsonl", 1, "TWO").expect("what is behind is another run's");
    assert_eq!(read(), "one\nTWO\n");
    let error = folder.write_line("steps.jsonl", 5, "six").expect_err("lines are missing");
    assert!(error.to_string().ends_with("fewer lines than `5`"), "{error}");
}

#[test]
fn two_processes_do_not_write_one_run() {
    let path = tempfile::tempdir().expect("a folder");
    let folder = begin(path.path());
    assert!(matches!(RunFolder::open(path.path()), Err(FolderError::Locked { .. })));
    drop(folder);
    assert!(RunFolder::open(path.path()).is_ok());
}

#[test]
fn a_run_belongs_to_one_experiment_and_no_other_folder_becomes_one() {
    let path = tempfile::tempdir().expect("a folder");
    drop(begin(path.path()));
    let other = RunFolder::begin(path.path(), "name = \"y\"\n");
    assert!(matches!(other, Err(FolderError::OtherExperiment { .. })));
    let foreign = tempfile::tempdir().expect("a folder");
    fs::write(foreign.path().join("thesis.tex"), "x").expect("the disk is there");
    let error = RunFolder::begin(foreign.path(), "name = \"x\"\n").expect_err("it is no run");
    assert!(error.to_string().ends_with("holds `thesis.tex` and is no run"), "{error}");
}

/// Damages a checkpoint and checks what is said.
#[track_caller]
fn damaged(file: &str, change: impl FnOnce(&Path), expected: &str) {
    let path = tempfile::tempdir().expect("a folder");
    let folder = begin(path.path());
    write(&folder, 4);
    change(&path.path().join("checkpoints/000004").join(file));
    let error = folder.newest_checkpoint(&parameters()).expect_err("it is damaged").to_string();
    assert!(error.contains(file) && error.contains(expected), "{error}");
}

#[test]
fn a_damaged_checkpoint_is_refused_with_the_file_and_the_place() {
    let write = |text: &'static str| move |path: &Path| fs::write(path, text).expect("a disk");
    damaged("state.json", write("{}"), "missing field `step`");
    let summary = r#"{"step":9,"policy_sha256":"00","updates":1}"#;
    damaged("state.json", write(summary), "`policy_sha256` is no SHA-256");
    let cut = |path: &Path| {
        let bytes = fs::read(path).expect("it is there");
        fs::write(path, &bytes[..bytes.len() - 1]).expect("a disk");
    };
    damaged("state.safetensors", cut, "tensor `");
    let infinite = |path: &Path| {
        let mut bytes = fs::read(path).expect("it is there");
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
        fs::write(path, bytes).expect("a disk");
    };
    damaged("state.safetensors", infinite, "holds what is no number");
}

#[test]
fn a_checkpoint_of_another_model_is_refused() {
    let path = tempfile::tempdir().expect("a folder");
    let folder = begin(path.path());
    write(&folder, 1);
    let mut others = parameters();
    others[1].shape = vec![1, 3];
    let error = folder.newest_checkpoint(&others).expect_err("it does not fit").to_string();
    let expected = "tensor `value.a.weight` has shape [3], the model's [1, 3]";
    assert!(error.ends_with(expected), "{error}");
    others.pop();
    let error = folder.newest_checkpoint(&others).expect_err("it does not fit").to_string();
    assert!(error.contains("is no parameter's"), "{error}");
}
