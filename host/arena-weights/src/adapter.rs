//! Low-rank adapters (LoRA, arXiv 2106.09685) as PEFT writes them.
//!
//! Only what the plain formula covers is read: `y += (alpha / r) B (A x)`, one rank for all
//! layers. Variants that compute something else are refused by name.
//!
//! Not here: applying it (`arena-model`).

use std::collections::BTreeMap;
use std::path::Path;

use arena_kernels::format::dequantise;
use serde_json::{Map, Value};

use crate::config::ModelConfig;
use crate::error::{WeightsError, shown};
use crate::files::ModelFile;
use crate::layout;
use crate::manifest::Manifest;
use crate::safetensors::{self, Entry};

/// The widest bottleneck.
pub const RANK_MAX: usize = 1024;
/// The longest `adapter_config.json`.
pub const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// What an adapter's files are called.
pub const CONFIG_NAME: &str = "adapter_config.json";
/// Likewise.
pub const WEIGHTS_NAME: &str = "adapter_model.safetensors";

/// Settings that must have this value or be absent, since another changes the formula.
/// Source: PEFT, `LoraConfig`.
const FIXED: [(&str, Fixed); 21] = [
    ("peft_type", Fixed::Text("LORA")),
    ("bias", Fixed::Text("none")),
    ("use_rslora", Fixed::False),
    ("use_dora", Fixed::False),
    ("use_qalora", Fixed::False),
    ("lora_bias", Fixed::False),
    ("fan_in_fan_out", Fixed::False),
    ("rank_pattern", Fixed::Empty),
    ("alpha_pattern", Fixed::Empty),
    ("modules_to_save", Fixed::Empty),
    ("layer_replication", Fixed::Empty),
    ("target_parameters", Fixed::Empty),
    ("trainable_token_indices", Fixed::Empty),
    ("layers_to_transform", Fixed::Empty),
    ("layers_pattern", Fixed::Empty),
    ("exclude_modules", Fixed::Empty),
    ("corda_config", Fixed::Empty),
    ("megatron_config", Fixed::Empty),
    ("arrow_config", Fixed::Empty),
    ("alora_invocation_tokens", Fixed::Empty),
    ("init_lora_weights", Fixed::Initial),
];

/// What a setting must be.
enum Fixed {
    Text(&'static str),
    False,
    /// `null`, or nothing in it.
    Empty,
    /// Any way to begin that leaves the model's own weights as they are.
    Initial,
}

/// An adapter: for some linear layers, `y += scale * B (A x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapter {
    /// Width of the bottleneck.
    pub rank: usize,
    /// `lora_alpha / r`.
    pub scale: f32,
    /// By the name of the weight that is adapted, such as
    /// `model.layers.0.self_attn.q_proj.weight`; each expert has weights of its own, such as
    /// `model.layers.0.mlp.experts.7.up_proj.weight`.
    pub layers: BTreeMap<String, AdapterLayer>,
    /// What names it.
    pub manifest: Manifest,
}

/// The two factors of one linear layer's change.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterLayer {
    /// Inputs of the layer.
    pub columns: usize,
    /// Outputs of the layer.
    pub rows: usize,
    /// `[rank, columns]`, row-major.
    pub a: Vec<f32>,
    /// `[rows, rank]`, row-major.
    pub b: Vec<f32>,
}

impl Adapter {
    /// Reads an adapter from a folder with `adapter_config.json` and
    /// `adapter_model.safetensors`, or from the latter's path, and checks it against a model.
    ///
    /// # Errors
    /// [`WeightsError`] names the file and the tensor or key.
    pub fn open(path: &Path, config: &ModelConfig) -> Result<Adapter, WeightsError> {
        let weights = if path.is_dir() { path.join(WEIGHTS_NAME) } else { path.into() };
        let settings = weights.with_file_name(CONFIG_NAME);
        let (settings_file, json) = ModelFile::open_and_read(&settings, CONFIG_BYTES_MAX)?;
        let (rank, scale, targets) = read_settings(&settings, &json)?;
        let file = ModelFile::open(&weights)?;
        let mut entries = safetensors::read(&file)?;
        let mut layers = BTreeMap::new();
        for (slot, shape) in layout::parts(config) {
            // PEFT wraps the model, and every layer that it adapts.
            let module = slot.trim_end_matches(".weight");
            let name = |factor: &str| format!("base_model.model.{module}.lora_{factor}.weight");
            let (a, b) = (entries.remove(&name("A")), entries.remove(&name("B")));
            let (Some(a), Some(b)) = (&a, &b) else {
                if a.is_none() && b.is_none() {
                    continue;
                }
                let tensor = name(if a.is_none() { "A" } else { "B" });
                return Err(WeightsError::MissingTensor { path: weights, tensor });
            };
            let [rows, columns] = shape[..] else {
                return Err(WeightsError::unsupported(&weights, module, "adapting no matrix"));
            };
            if module == "model.embed_tokens" {
                return Err(WeightsError::unsupported(&weights, module, "adapting an embedding"));
            }
            if !targets.iter().any(|target| is_target(module, target)) {
                let detail = format!("is not among `target_modules` of {CONFIG_NAME}");
                return Err(WeightsError::malformed(&weights, format!("layer `{module}`"), detail));
            }
            let a = factor(&file, &name("A"), a, [rank, columns])?;
            let b = factor(&file, &name("B"), b, [rows, rank])?;
            layers.insert(slot.clone(), AdapterLayer { columns, rows, a, b });
        }
        if let Some(name) = entries.keys().next() {
            let place = format!("tensor `{}`", shown(name));
            return Err(WeightsError::unsupported(&weights, place, "no layer of this model"));
        }
        if layers.is_empty() {
            return Err(WeightsError::malformed(&weights, "file", "adapts no layer"));
        }
        let files = [(CONFIG_NAME.to_string(), settings_file), (WEIGHTS_NAME.into(), file)];
        let manifest = Manifest::of(&files, &mut |_, _| ())?;
        Ok(Adapter { rank, scale, layers, manifest })
    }
}

/// Reads `(rank, scale, targets)`.
fn read_settings(path: &Path, json: &[u8]) -> Result<(usize, f32, Vec<String>), WeightsError> {
    let settings: Map<String, Value> = serde_json::from_slice(json)
        .map_err(|error| WeightsError::malformed(path, "file", error.to_string()))?;
    let malformed =
        |key: &str, detail| WeightsError::malformed(path, format!("key `{key}`"), detail);
    for (key, fixed) in &FIXED {
        let Some(value) = settings.get(*key).filter(|value| !value.is_null()) else { continue };
        let sound = match fixed {
            Fixed::Text(text) => value == text,
            Fixed::False => *value == false,
            Fixed::Empty => {
                value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(Map::is_empty)
            }
            Fixed::Initial => value.is_boolean() || *value == "gaussian",
        };
        if !sound {
            let value = shown(&value.to_string());
            return Err(WeightsError::unsupported(path, format!("key `{key}`"), value));
        }
    }
    let rank = settings.get("r").and_then(Value::as_u64).filter(|&rank| rank > 0);
    let rank = rank.ok_or_else(|| malformed("r", "is no rank"))?;
    if rank > RANK_MAX as u64 {
        let (path, place) = (path.into(), "key `r`".to_string());
        return Err(WeightsError::Limit { path, place, value: rank, most: RANK_MAX as u64 });
    }
    let alpha = settings.get("lora_alpha").and_then(Value::as_f64);
    let alpha = alpha.filter(|alpha| alpha.is_finite() && alpha.abs() <= f64::from(f32::MAX));
    let alpha = alpha.ok_or_else(|| malformed("lora_alpha", "is no number"))?;
    let targets = match settings.get("target_modules") {
        Some(Value::Array(targets)) => {
            targets.iter().map(|target| target.as_str().map(str::to_string)).collect()
        }
        Some(Value::String(all)) if all == "all-linear" => Some(vec![String::new()]),
        _ => None,
    };
    let targets = targets.ok_or_else(|| malformed("target_modules", "is no list of layers"))?;
    let scale = (alpha / rank as f64) as f32;
    Ok((usize::try_from(rank).expect("at most RANK_MAX"), scale, targets))
}

/// Says whether a module is named by a target: whole, or by its last parts; the empty target
/// names all.
fn is_target(module: &str, target: &str) -> bool {
    let Some(before) = module.strip_suffix(target) else { return false };
    before.is_empty() || target.is_empty() || before.ends_with('.')
}

fn factor(
    file: &ModelFile,
    name: &str,
    entry: &Entry,
    shape: [usize; 2],
) -> Result<Vec<f32>, WeightsError> {
    if entry.shape != shape {
        return Err(WeightsError::Shape {
            path: file.path.clone(),
            tensor: name.into(),
            expected: shape.into(),
            found: entry.shape.clone(),
        });
    }
    let bytes = file.read(entry.offset, entry.len, &format!("tensor `{name}`"))?;
    let mut weights = vec![0.0; shape[0] * shape[1]];
    dequantise(entry.format, &bytes, &mut weights);
    Ok(weights)
}
