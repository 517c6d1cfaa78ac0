//! The numbers of a model from `config.json`.
//!
//! Every key is understood, or known to say nothing about the arithmetic, or it is an error that
//! names it.
//!
//! Not here: the range of the numbers (`config`).

use std::path::Path;

use serde_json::{Map, Value};

use crate::config::{Architecture, ModelConfig, Moe};
use crate::error::{WeightsError, shown};
use crate::folder::vocabulary::Extras;
use crate::vocabulary::Vocabulary;

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// Base of the position angles where the file does not say.
/// Source: `transformers`, `LlamaConfig` and `Qwen3Config`.
const ROPE_THETA: f64 = 10_000.0;
/// Likewise of the norms.
const RMS_EPS: f64 = 1e-6;

/// Keys that say how a model was made, is trained, or is loaded elsewhere.
const IGNORED: [&str; 22] = [
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "chunk_size_feed_forward",
    "dtype",
    "id2label",
    "initializer_range",
    "is_encoder_decoder",
    "is_llama_config",
    "label2id",
    "max_window_layers",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "problem_type",
    "return_dict",
    "router_aux_loss_coef",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "use_cache",
];

/// Reads `config.json`, which is at `path`, and the end tokens of `generation_config.json`.
/// Returns the model's name, too.
pub(crate) fn read(
    path: &Path,
    object: Object,
    generation: Option<Object>,
) -> Result<(ModelConfig, String), WeightsError> {
    let name = object.get("_name_or_path").and_then(Value::as_str).unwrap_or_default().to_string();
    let mut keys = Keys { path, object };
    let architecture = match keys.text("model_type")?.as_deref() {
        Some("llama") => Architecture::Llama,
        Some("qwen3") => Architecture::Qwen3,
        Some("qwen3_moe") => Architecture::Qwen3Moe,
        other => return Err(keys.unsupported("model_type", other.unwrap_or_default())),
    };
    let hidden = keys.needed("hidden_size")?;
    let heads = keys.needed("num_attention_heads")?;
    let moe = keys.moe(architecture)?;
    let ffn = keys.number("intermediate_size")?;
    let mut config = ModelConfig {
        architecture,
        hidden,
        layers: keys.needed("num_hidden_layers")?,
        heads,
        kv_heads: keys.number("num_key_value_heads")?.unwrap_or(heads),
        head_dim: match keys.number("head_dim")? {
            Some(width) => width,
            None => hidden.checked_div(heads).unwrap_or(0),
        },
        ffn: if moe.is_some() { 0 } else { ffn.unwrap_or(0) },
        vocab: keys.needed("vocab_size")?,
        context_tokens: keys.needed("max_position_embeddings")?,
        rope_theta: keys.rope_theta()? as f32,
        rms_eps: keys.float("rms_norm_eps")?.unwrap_or(RMS_EPS) as f32,
        tied_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or(false),
        moe,
        bos: keys.ids("bos_token_id")?.first().copied(),
        eos: Vec::new(),
    };
    let own_eos = keys.ids("eos_token_id")?;
    if let Some(generation) = generation {
        let path = path.with_file_name("generation_config.json");
        config.eos = Keys { path: &path, object: generation }.ids("eos_token_id")?;
    }
    config.eos.extend(own_eos);
    keys.finish(&config)?;
    Ok((config, name))
}

/// Settles first and end tokens between the model's numbers and its tokenizer.
pub(crate) fn ends(config: &mut ModelConfig, vocabulary: &mut Vocabulary, extras: &Extras) {
    let named = |written: &Option<String>| {
        let written = written.as_deref()?;
        vocabulary.marks().find(|(_, mark)| *mark == written).map(|(id, _)| id)
    };
    config.bos = named(&extras.bos).or(config.bos);
    config.eos.extend(named(&extras.eos));
    let mut seen = Vec::new();
    config.eos.retain(|id| {
        let first = !seen.contains(id);
        seen.push(*id);
        first
    });
    vocabulary.bos = config.bos;
    vocabulary.eos = config.eos.clone();
}

/// Keys that were not understood yet.
struct Keys<'a> {
    path: &'a Path,
    object: Object,
}

impl Keys<'_> {
    fn moe(&mut self, architecture: Architecture) -> Result<Option<Moe>, WeightsError> {
        if architecture != Architecture::Qwen3Moe {
            return Ok(None);
        }
        self.only("decoder_sparse_step", &Value::from(1))?;
        self.only("mlp_only_layers", &Value::Array(Vec::new()))?;
        Ok(Some(Moe {
            // `transformers` writes the first name since version 5.
            experts: match self.number("num_local_experts")? {
                Some(experts) => experts,
                None => self.needed("num_experts")?,
            },
            experts_per_token: self.needed("num_experts_per_tok")?,
            ffn: self.needed("moe_intermediate_size")?,
            // Source: `transformers`, `Qwen3MoeConfig`.
            normalise: self.flag("norm_topk_prob")?.unwrap_or(false),
        }))
    }

    /// Reads the base of positions, and refuses any scaling of them.
    fn rope_theta(&mut self) -> Result<f64, WeightsError> {
        let mut theta = self.float("rope_theta")?;
        for key in ["rope_scaling", "rope_parameters"] {
            let Some(value) = self.take(key) else { continue };
            let Value::Object(mut object) = value else {
                return Err(self.unsupported(key, &value.to_string()));
            };
            if let Some(value) = object.remove("rope_theta") {
                theta = Some(value.as_f64().ok_or_else(|| self.wrong_kind(key, &value))?);
            }
            for kind in ["rope_type", "type"] {
                match object.remove(kind) {
                    None => {}
                    Some(Value::String(kind)) if kind == "default" => {}
                    Some(other) => {
                        return Err(self.unsupported(&format!("{key}.{kind}"), &other.to_string()));
                    }
                }
            }
            if let Some((inner, value)) = object.iter().next() {
                return Err(self.unsupported(&format!("{key}.{inner}"), &value.to_string()));
            }
        }
        Ok(theta.unwrap_or(ROPE_THETA))
    }

    /// Checks the keys that have one value here, and that none is left.
    fn finish(mut self, config: &ModelConfig) -> Result<(), WeightsError> {
        self.only("hidden_act", &Value::from("silu"))?;
        self.only("pretraining_tp", &Value::from(1))?;
        for key in ["attention_bias", "mlp_bias", "rope_interleaved", "use_sliding_window"] {
            self.only(key, &Value::from(false))?;
        }
        self.only("sliding_window", &Value::Null)?;
        let full = vec![Value::from("full_attention"); config.layers.min(4096)];
        self.only("layer_types", &Value::Array(full))?;
        for key in IGNORED {
            self.object.remove(key);
        }
        match self.object.iter().next() {
            None => Ok(()),
            Some((key, value)) => Err(self.unsupported(key, &value.to_string())),
        }
    }

    fn only(&mut self, key: &str, only: &Value) -> Result<(), WeightsError> {
        match self.take(key) {
            Some(value) if value != *only => Err(self.unsupported(key, &value.to_string())),
            _ => Ok(()),
        }
    }

    /// Takes a value. `null` is none.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.object.remove(key).filter(|value| !value.is_null())
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, WeightsError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_kind(key, &other)),
        }
    }

    fn flag(&mut self, key: &str) -> Result<Option<bool>, WeightsError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong_kind(key, &other)),
        }
    }

    fn float(&mut self, key: &str) -> Result<Option<f64>, WeightsError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.wrong_kind(key, &value))
    }

    fn number(&mut self, key: &str) -> Result<Option<usize>, WeightsError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.map(|number| Some(number as usize)).ok_or_else(|| self.wrong_kind(key, &value))
    }

    fn needed(&mut self, key: &str) -> Result<usize, WeightsError> {
        let number = self.number(key)?;
        number
            .ok_or_else(|| WeightsError::malformed(self.path, format!("key `{key}`"), "is missing"))
    }

    /// Takes one token or a list of tokens.
    fn ids(&mut self, key: &str) -> Result<Vec<u32>, WeightsError> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let values = match &value {
            Value::Array(values) => values.as_slice(),
            _ => std::slice::from_ref(&value),
        };
        let ids = values.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()));
        ids.collect::<Option<_>>().ok_or_else(|| self.wrong_kind(key, &value))
    }

    fn wrong_kind(&self, key: &str, value: &Value) -> WeightsError {
        let detail = format!("`{}` is not what belongs there", shown(&value.to_string()));
        WeightsError::malformed(self.path, format!("key `{}`", shown(key)), detail)
    }

    fn unsupported(&self, key: &str, value: &str) -> WeightsError {
        WeightsError::unsupported(self.path, format!("key `{}`", shown(key)), shown(value))
    }
}
