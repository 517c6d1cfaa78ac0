//! Checkpoints: what a run needs to go on as if it had not stopped.
//!
//! A checkpoint is a folder that appears at once: `policy/` (a model or an adapter, written by
//! whoever knows its format), `state.safetensors` (every parameter's value and both moments of
//! AdamW), `state.json` (the step, the policy's hash, AdamW's count) and `line.json`, the line
//! that `steps.jsonl` has of the step.
//!
//! A checkpoint is read as if a stranger had written it.
//!
//! Not here: formats of policies (`arena-weights`), the folder (`run_folder`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use arena_core::hexadecimal::{hex, unhex};
use arena_core::ledger::STEPS_MAX;
use arena_model::learner::Parameter;
use arena_weights::safetensors;
use arena_weights::tensor::Tensor;
use arena_weights::write;
use serde::{Deserialize, Serialize};

use crate::optimiser::Moments;
use crate::run_folder::{FolderError, RunFolder, io_error, read_text, remove_folder};
use crate::trainer::TrainerState;

/// Longest file of a state, in bytes: a billion parameters.
pub const STATE_BYTES_MAX: u64 = 16 << 30;
/// Longest line of a step, in bytes.
pub const LINE_BYTES_MAX: u64 = 1 << 20;

const FOLDER: &str = "checkpoints";
const STATE: &str = "state.safetensors";
const SUMMARY: &str = "state.json";
const LINE: &str = "line.json";
const POLICY: &str = "policy";
/// Checkpoints that are kept besides those of round numbers.
const NEWEST_KEPT: usize = 2;

/// What a run goes on from.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Steps that are done; 0 is what the first step begins with.
    pub step: u32,
    /// Names the policy.
    pub policy_sha256: [u8; 32],
    /// Values and moments.
    pub state: TrainerState,
    /// What `steps.jsonl` says of the step; empty before the first.
    pub line: String,
}

/// `state.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Summary {
    step: u32,
    policy_sha256: String,
    updates: u64,
}

impl RunFolder {
    /// Returns the folder of a checkpoint's policy.
    pub fn policy(&self, step: u32) -> PathBuf {
        self.path().join(folder(step)).join(POLICY)
    }

    /// Writes a checkpoint. `write_policy` fills a new folder with the policy and returns the hash
    /// that names it, as this does.
    ///
    /// # Errors
    /// `write_policy` failed, or the disk.
    pub fn write_checkpoint(
        &self,
        step: u32,
        line: &str,
        state: &TrainerState,
        parameters: &[Parameter],
        write_policy: &mut dyn FnMut(&Path) -> Result<[u8; 32], FolderError>,
    ) -> Result<[u8; 32], FolderError> {
        let mut policy_sha256 = [0; 32];
        self.fill_folder(&folder(step), &mut |path| {
            let policy = path.join(POLICY);
            fs::create_dir(&policy).map_err(io_error("create", &policy))?;
            policy_sha256 = write_policy(&policy)?;
            let summary =
                Summary { step, policy_sha256: hex(&policy_sha256), updates: state.moments.step };
            write_state(path, &summary, line, state, parameters)
        })?;
        self.link(POLICY, &format!("{}/{POLICY}", folder(step)))?;
        Ok(policy_sha256)
    }

    /// Reads the newest checkpoint, if there is one.
    ///
    /// # Errors
    /// It is damaged, of other parameters, or cannot be read.
    pub fn newest_checkpoint(
        &self,
        parameters: &[Parameter],
    ) -> Result<Option<Checkpoint>, FolderError> {
        let newest = self.checkpoint_steps()?.last().copied();
        newest.map(|step| self.checkpoint(step, parameters)).transpose()
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// It is missing, damaged, of other parameters, or cannot be read.
    pub fn checkpoint(
        &self,
        step: u32,
        parameters: &[Parameter],
    ) -> Result<Checkpoint, FolderError> {
        let path = self.path().join(folder(step));
        let (policy_sha256, updates) = read_summary(&path, step)?;
        let [values, first, second] = read_state(&path.join(STATE), parameters)?;
        let moments = Moments { step: updates, first, second };
        let line = read_text(&path.join(LINE), LINE_BYTES_MAX)?;
        Ok(Checkpoint { step, policy_sha256, state: TrainerState { values, moments }, line })
    }

    /// Removes what is neither the first, nor of a multiple of `every`, nor among the newest.
    ///
    /// # Errors
    /// The disk failed.
    pub fn prune_checkpoints(&self, every: u32) -> Result<(), FolderError> {
        let steps = self.checkpoint_steps()?;
        for step in &steps[..steps.len().saturating_sub(NEWEST_KEPT)] {
            if !step.is_multiple_of(every) {
                remove_folder(&self.path().join(folder(*step)))?;
            }
        }
        Ok(())
    }

    /// Returns the steps of all checkpoints, ascending.
    ///
    /// # Errors
    /// The disk failed.
    pub fn checkpoint_steps(&self) -> Result<Vec<u32>, FolderError> {
        steps_in(self.path())
    }
}

/// Returns the step of a run's newest checkpoint and the hash that names its policy, as the
/// checkpoint says them; `None` where there is no checkpoint yet. Another process may be writing
/// to the run.
///
/// # Errors
/// The checkpoint is damaged, or the disk failed.
pub fn newest_policy(run: &Path) -> Result<Option<(u32, [u8; 32])>, FolderError> {
    let newest = steps_in(run)?.last().copied();
    newest.map(|step| Ok((step, read_summary(&run.join(folder(step)), step)?.0))).transpose()
}

fn steps_in(run: &Path) -> Result<Vec<u32>, FolderError> {
    let path = run.join(FOLDER);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for item in fs::read_dir(&path).map_err(io_error("read", &path))? {
        let name = item.map_err(io_error("read", &path))?.file_name();
        let name = name.to_string_lossy();
        let number = name.parse().ok().filter(|step| *step <= STEPS_MAX);
        // What was being written when a run was killed has another name.
        steps.extend(number.filter(|step| folder(*step).ends_with(&*name)));
    }
    steps.sort_unstable();
    Ok(steps)
}

/// Returns the hash of a checkpoint's policy, and AdamW's count.
fn read_summary(checkpoint: &Path, step: u32) -> Result<([u8; 32], u64), FolderError> {
    let file = checkpoint.join(SUMMARY);
    let text = read_text(&file, LINE_BYTES_MAX)?;
    let summary: Summary = serde_json::from_str(&text).map_err(|error| damaged(&file, &error))?;
    let policy_sha256 = unhex(&summary.policy_sha256)
        .ok_or_else(|| damaged(&file, &"`policy_sha256` is no SHA-256"))?;
    if summary.step != step {
        let detail = format!("step is `{}`, its folder says `{step}`", summary.step);
        return Err(damaged(&file, &detail));
    }
    Ok((policy_sha256, summary.updates))
}

fn folder(step: u32) -> String {
    format!("{FOLDER}/{step:06}")
}

fn write_state(
    path: &Path,
    summary: &Summary,
    line: &str,
    state: &TrainerState,
    parameters: &[Parameter],
) -> Result<(), FolderError> {
    let TrainerState { values, moments } = state;
    let mut tensors = Vec::new();
    for (kind, lists) in KINDS.into_iter().zip([values, &moments.first, &moments.second]) {
        for (parameter, list) in parameters.iter().zip(lists) {
            let name = format!("{kind}.{}", parameter.name);
            tensors.push(Tensor::of_f32(&name, &parameter.shape, list));
        }
    }
    let file = path.join(STATE);
    write::safetensors(&tensors, &file).map_err(|error| damaged(&file, &error))?;
    let summary = serde_json::to_string(summary).expect("numbers and text become JSON");
    for (name, text) in [(SUMMARY, summary.as_str()), (LINE, line)] {
        let file = path.join(name);
        fs::write(&file, text).map_err(io_error("write", &file))?;
    }
    Ok(())
}

/// What is kept of each parameter, in this order.
const KINDS: [&str; 3] = ["value", "first", "second"];

fn read_state(path: &Path, parameters: &[Parameter]) -> Result<[Vec<Vec<f32>>; 3], FolderError> {
    let mut tensors =
        safetensors::tensors(path, STATE_BYTES_MAX).map_err(|error| damaged(path, &error))?;
    let mut take = |kind: &str| take_lists(path, &mut tensors, kind, parameters);
    let lists = [take(KINDS[0])?, take(KINDS[1])?, take(KINDS[2])?];
    match tensors.keys().next() {
        Some(name) => Err(damaged(path, &format!("tensor `{name}` is no parameter's"))),
        None => Ok(lists),
    }
}

fn take_lists(
    path: &Path,
    tensors: &mut BTreeMap<String, Tensor>,
    kind: &str,
    parameters: &[Parameter],
) -> Result<Vec<Vec<f32>>, FolderError> {
    let take = |parameter: &Parameter| {
        let name = format!("{kind}.{}", parameter.name);
        let missing = || damaged(path, &format!("no tensor `{name}`"));
        let tensor = tensors.remove(&name).ok_or_else(missing)?;
        if tensor.format.name() != "F32" || tensor.shape != parameter.shape {
            let (found, wanted) = (&tensor.shape, &parameter.shape);
            let detail = format!("tensor `{name}` has shape {found:?}, the model's {wanted:?}");
            return Err(damaged(path, &detail));
        }
        let values = tensor.to_f32();
        match values.iter().all(|value| value.is_finite()) {
            true => Ok(values),
            false => Err(damaged(path, &format!("tensor `{name}` holds what is no number"))),
        }
    };
    parameters.iter().map(take).collect()
}

fn damaged(path: &Path, detail: &dyn std::fmt::Display) -> FolderError {
    FolderError::Damaged { path: path.to_owned(), detail: detail.to_string() }
}
