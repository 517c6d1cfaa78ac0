//! The files of a policy: what training begins with, what comes of it, and what answers with it.
//!
//! A policy is a folder: a whole model, or an adapter as PEFT writes it.
//!
//! Not here: training it (`arena_train::trainer`).

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_core::config::models::{Device, WeightsConfig, WeightsSource};
use arena_core::scenario::Role;
use arena_core::seed::{Root, Stream};
use arena_llm::model::{Completion, LanguageModel, ModelError, ModelInfo};
use arena_llm::request::Request;
use arena_model::cpu::learner::{CpuLearner, LearnerOptions, Start};
use arena_model::engine::{Engine, identity};
use arena_model::learner::{Learner, Parameter};
use arena_train::compact;
use arena_train::experiment::{Experiment, POLICY, PolicySource};
use arena_train::run_folder::{FolderError, RunFolder};
use arena_train::steps::PolicyFacts;
use arena_train::teacher::{Language, TeacherModel, TeacherOptions};
use arena_weights::adapter::Adapter;
use arena_weights::error::WeightsError;
use arena_weights::tensor::Tensor;
use arena_weights::weights::Weights;
use arena_weights::write::{self, AdapterSettings};

use crate::engines::{self, Answering, Computing};
use crate::error::{CliError, Complaint};
use crate::model_files;

/// The folder of a new model within a run.
const INITIAL: &str = "initial";
/// The file of a model's tensors.
const TENSORS: &str = "model.safetensors";

/// What training begins with.
pub struct Policy<'a> {
    experiment: &'a Experiment,
    path: PathBuf,
    weights: Weights,
    base_sha256: [u8; 32],
    threads: NonZeroUsize,
    /// Runs the weights beside which adapters are swapped.
    engine: Option<Arc<Engine>>,
}

impl<'a> Policy<'a> {
    /// Finds the weights that the experiment names, or makes new ones in the run's folder.
    ///
    /// # Errors
    /// They are missing or wrong, or the disk failed.
    pub fn find(
        experiment: &'a Experiment,
        run: &RunFolder,
        resolve: &dyn Fn(&str) -> PathBuf,
        threads: NonZeroUsize,
    ) -> Result<Policy<'a>, CliError> {
        let path = match &experiment.policy.source {
            PolicySource::Compact(shape) => initial(run, shape, experiment.seed)?,
            PolicySource::Weights(named) => match WeightsSource::parse(named) {
                WeightsSource::Path(path) => resolve(&path),
                named => model_files::find(&named)?.path,
            },
        };
        let weights = model_files::open(&path)?;
        let base_sha256 = model_files::manifest(&path, &weights)?.sha256();
        Ok(Policy { experiment, path, weights, base_sha256, threads, engine: None })
    }

    /// Returns what records are read by.
    pub fn facts(&self) -> PolicyFacts {
        let config = self.weights.config();
        PolicyFacts {
            context_tokens: config.context_tokens,
            vocabulary: u32::try_from(config.vocab).expect("vocabularies are bounded"),
        }
    }

    /// Loads what trains the policy.
    ///
    /// # Errors
    /// The files cannot be used, or the machine has no such device.
    pub fn learner(&self) -> Result<Box<dyn Learner>, CliError> {
        let start = match self.experiment.policy.adapter {
            None => Start::Full,
            Some(adapter) => Start::Drawn {
                rank: adapter.rank as usize,
                alpha: adapter.alpha,
                stream: Stream::derive(Root::Seed(self.experiment.seed), "train-adapter", &[]),
            },
        };
        if self.experiment.device != Device::Cpu {
            return self.burn_learner(start);
        }
        let learner = CpuLearner::load(&self.weights, start, LearnerOptions::new(self.threads));
        match learner {
            Ok(learner) => Ok(Box::new(learner)),
            Err(error) => Err(self.untrainable(&error)),
        }
    }

    #[cfg(feature = "autodiff")]
    fn burn_learner(&self, start: Start<'_>) -> Result<Box<dyn Learner>, CliError> {
        use arena_burn::device::BurnDevice;
        use arena_burn::learner::BurnLearner;
        use arena_burn::memory::Activations;

        let device = match self.experiment.device {
            Device::Cpu => unreachable!("it has a learner of its own"),
            Device::Flex => BurnDevice::Flex,
            Device::Wgpu => BurnDevice::Wgpu,
            Device::Cuda => BurnDevice::Cuda,
        };
        // What every layer keeps of a token does not fit on a device beside a large model; a new
        // one is small enough.
        let activations = match self.experiment.policy.source {
            PolicySource::Compact(_) => Activations::Kept,
            PolicySource::Weights(_) => Activations::Recomputed,
        };
        match BurnLearner::load(&self.weights, device, start, activations) {
            Ok(learner) => Ok(Box::new(learner)),
            Err(error) => Err(self.untrainable(&error)),
        }
    }

    #[cfg(not(feature = "autodiff"))]
    fn burn_learner(&self, _: Start<'_>) -> Result<Box<dyn Learner>, CliError> {
        let device = self.experiment.device.name();
        let failed = format!("cannot train on `{device}`");
        let complaint = Complaint::new(failed, "this build trains on `cpu` only");
        Err(CliError::Config(complaint.hint(format!(
            "build with it: cargo build --release --package arena --features {}",
            if device == "flex" { "autodiff" } else { device }
        ))))
    }

    fn untrainable(&self, error: &dyn std::fmt::Display) -> CliError {
        let failed = format!(
            "cannot train `{}` on `{}`",
            self.path.display(),
            self.experiment.device.name()
        );
        CliError::Input(Complaint::new(failed, error))
    }

    /// Writes a policy into an empty folder.
    ///
    /// # Errors
    /// The disk failed, or the weights are of a format whose tokenizer has no file of its own.
    pub fn write(
        &self,
        folder: &Path,
        parameters: &[Parameter],
        values: &[Vec<f32>],
    ) -> Result<(), FolderError> {
        let tensors: Vec<Tensor> = parameters
            .iter()
            .zip(values)
            .map(|(parameter, values)| Tensor::of_f32(&parameter.name, &parameter.shape, values))
            .collect();
        let damaged = |error: WeightsError| FolderError::Damaged {
            path: folder.to_owned(),
            detail: error.to_string(),
        };
        if let Some(adapter) = self.experiment.policy.adapter {
            let settings = AdapterSettings {
                rank: adapter.rank as usize,
                alpha: adapter.alpha,
                base_model: self.weights.name(),
            };
            let config = self.weights.config();
            return write::adapter(settings, &tensors, config, folder).map_err(damaged);
        }
        for name in self.companions()? {
            let (from, to) = (self.path.join(&name), folder.join(&name));
            fs::copy(&from, &to).map_err(|source| FolderError::Io {
                doing: "copy",
                path: from.clone(),
                source,
            })?;
        }
        write::safetensors(&tensors, &folder.join(TENSORS)).map_err(damaged)
    }

    /// Returns the names of the files of a model that are not its tensors.
    fn companions(&self) -> Result<Vec<String>, FolderError> {
        if !self.path.is_dir() {
            let detail = "it is no folder, so its tokenizer cannot be copied".to_owned();
            return Err(FolderError::Damaged { path: self.path.clone(), detail });
        }
        let manifest = self.weights.manifest(&mut |_, _| {});
        let manifest = manifest.map_err(|error| FolderError::Damaged {
            path: self.path.clone(),
            detail: error.to_string(),
        })?;
        let names = manifest.files.iter().map(|file| file.name.clone());
        Ok(names.filter(|name| !name.contains(".safetensors")).collect())
    }

    /// Returns the hash that names the policy in a folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn sha256(&self, folder: &Path) -> Result<[u8; 32], CliError> {
        match self.experiment.policy.adapter {
            None => Ok(model_files::manifest(folder, &model_files::open(folder)?)?.sha256()),
            Some(_) => Ok(identity(self.base_sha256, Some(&self.adapter(folder)?))),
        }
    }

    fn adapter(&self, folder: &Path) -> Result<Adapter, CliError> {
        Adapter::open(folder, self.weights.config())
            .map_err(|error| model_files::complain(folder, &error))
    }

    /// Makes the policy in a folder answer. With an adapter, the engine goes on with another one.
    ///
    /// # Errors
    /// The files are wrong, or the machine has no such device.
    pub fn answering(&mut self, folder: &Path) -> Result<Answering, CliError> {
        let adapter = self.experiment.policy.adapter.map(|_| self.adapter(folder)).transpose()?;
        let Some(adapter) = adapter else {
            return self.start(folder);
        };
        let sha256 = identity(self.base_sha256, Some(&adapter));
        let engine = match &self.engine {
            Some(engine) => Arc::clone(engine),
            None => {
                let started = self.start(&self.path)?;
                let engine = started.engine.expect("weights are computed by an engine");
                Arc::clone(self.engine.insert(engine))
            }
        };
        engine.swap_adapter(Some(adapter)).map_err(|error| {
            let failed = format!("cannot run the adapter `{}`", folder.display());
            CliError::Infrastructure(Complaint::new(failed, error))
        })?;
        let info = ModelInfo { sha256, ..engine.info() };
        let slots = self.experiment.policy.slots as usize;
        let model = Arc::new(Adapted { engine: Arc::clone(&engine), info });
        Ok(Answering { model, slots, engine: Some(engine) })
    }

    fn start(&self, folder: &Path) -> Result<Answering, CliError> {
        let policy = &self.experiment.policy;
        let config = WeightsConfig {
            weights: WeightsSource::Path(folder.to_string_lossy().into_owned()),
            device: self.experiment.device,
            adapter: None,
            context_tokens: policy.context_tokens,
            cache_mib: policy.cache_mib,
            slots: policy.slots,
            sha256: None,
        };
        let computing = Computing { device: None, threads: self.threads };
        engines::weights(POLICY, &config, &|path| PathBuf::from(path), &computing, None)
    }

    /// Returns what demonstrates, in the policy's own tokens.
    ///
    /// # Errors
    /// The policy has no teacher.
    pub fn teacher(&self) -> Result<Answering, CliError> {
        if self.experiment.learner.role == Role::Seller {
            let fact = "there is a teacher for buyers only";
            let complaint = Complaint::new("cannot make a warm start", fact);
            return Err(CliError::Config(complaint.hint("leave `[warm_start]` out")));
        }
        let (language, mut options) = match self.experiment.policy.source {
            PolicySource::Compact(_) => (Language::Compact, TeacherOptions::default()),
            PolicySource::Weights(_) => (Language::Talk, TeacherOptions::talking()),
        };
        if let Some(warm_start) = &self.experiment.warm_start {
            let TeacherOptions { argue_milli, explore_milli, .. } = options;
            options.argue_milli = warm_start.argue_milli.unwrap_or(argue_milli);
            options.explore_milli = warm_start.explore_milli.unwrap_or(explore_milli);
        }
        let teacher = TeacherModel::of(language, POLICY, &self.weights, options)
            .map_err(|error| model_files::complain(&self.path, &error))?;
        Ok(Answering { model: Arc::new(teacher), slots: 0, engine: None })
    }
}

fn initial(
    run: &RunFolder,
    shape: &arena_train::experiment::Shape,
    seed: u64,
) -> Result<PathBuf, CliError> {
    let path = run.path().join(INITIAL);
    if path.exists() {
        return Ok(path);
    }
    let fails = |error: &dyn std::fmt::Display| {
        let failed = format!("cannot make a new model in `{}`", run.path().display());
        CliError::Infrastructure(Complaint::new(failed, error))
    };
    let new = run.path().join(format!("{INITIAL}.new"));
    // What a run left when it was killed was never used.
    match fs::remove_dir_all(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fails(&error)),
        _ => {}
    }
    compact::initialise(&new, shape, seed).map_err(|error| fails(&error))?;
    fs::rename(&new, &path).map_err(|error| fails(&error))?;
    Ok(path)
}

/// An engine with an adapter, named by both.
struct Adapted {
    engine: Arc<Engine>,
    info: ModelInfo,
}

impl LanguageModel for Adapted {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        self.engine.count_prompt(request)
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        self.engine.complete(request)
    }
}
