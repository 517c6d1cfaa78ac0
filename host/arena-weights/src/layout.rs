//! The tensors of an architecture: what each is called, and its shape.
//!
//! Not here: where they lie (`gguf`, `folder`).

use crate::config::ModelConfig;

/// A tensor that a model must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Canonical name, which is Hugging Face's.
    pub name: String,
    /// What GGUF files call it.
    pub gguf: String,
    /// Outermost first. Experts come first, where there are any.
    pub shape: Vec<usize>,
    /// Heads of a projection whose rows are rotated by position.
    pub rotated_heads: Option<usize>,
}

/// Returns every tensor of a model. Source: the modules of `transformers`, and the table
/// `TENSOR_NAMES` of llama.cpp's `gguf-py`.
pub(crate) fn slots(config: &ModelConfig) -> Vec<Slot> {
    let ModelConfig { hidden, vocab, .. } = *config;
    let mut slots = vec![
        slot("model.embed_tokens.weight", "token_embd.weight", &[vocab, hidden]),
        slot("model.norm.weight", "output_norm.weight", &[hidden]),
    ];
    if !config.tied_embeddings {
        slots.push(slot("lm_head.weight", "output.weight", &[vocab, hidden]));
    }
    for layer in 0..config.layers {
        slots.extend(layer_parts(config).into_iter().map(|part| Slot {
            name: format!("model.layers.{layer}.{}.weight", part.name),
            gguf: format!("blk.{layer}.{}.weight", part.gguf),
            ..part
        }));
    }
    slots
}

/// Returns every tensor of a model as folders of safetensors have it: name, and shape, outermost
/// first. Experts are tensors of their own.
pub(crate) fn parts(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let mut parts = Vec::new();
    for Slot { name, shape, .. } in slots(config) {
        match (expert_name(&name, 0), &shape[..]) {
            (Some(_), &[experts, ref shape @ ..]) => {
                let named = (0..experts).filter_map(|expert| expert_name(&name, expert));
                parts.extend(named.map(|name| (name, shape.to_vec())));
            }
            _ => parts.push((name, shape)),
        }
    }
    parts
}

/// Returns the name under which a folder of safetensors has one expert's part of a stack.
pub(crate) fn expert_name(stack: &str, expert: usize) -> Option<String> {
    let (before, after) = stack.split_once(".mlp.experts.")?;
    Some(format!("{before}.mlp.experts.{expert}.{after}"))
}

fn layer_parts(config: &ModelConfig) -> Vec<Slot> {
    let ModelConfig { hidden, heads, kv_heads, head_dim, ffn, .. } = *config;
    let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
    let rotated = |heads, slot| Slot { rotated_heads: Some(heads), ..slot };
    let mut parts = vec![
        slot("input_layernorm", "attn_norm", &[hidden]),
        rotated(heads, slot("self_attn.q_proj", "attn_q", &[queries, hidden])),
        rotated(kv_heads, slot("self_attn.k_proj", "attn_k", &[keys, hidden])),
        slot("self_attn.v_proj", "attn_v", &[keys, hidden]),
        slot("self_attn.o_proj", "attn_output", &[hidden, queries]),
        slot("post_attention_layernorm", "ffn_norm", &[hidden]),
    ];
    if config.architecture.has_head_norms() {
        parts.push(slot("self_attn.q_norm", "attn_q_norm", &[head_dim]));
        parts.push(slot("self_attn.k_norm", "attn_k_norm", &[head_dim]));
    }
    match config.moe {
        None => parts.extend([
            slot("mlp.gate_proj", "ffn_gate", &[ffn, hidden]),
            slot("mlp.up_proj", "ffn_up", &[ffn, hidden]),
            slot("mlp.down_proj", "ffn_down", &[hidden, ffn]),
        ]),
        Some(moe) => parts.extend([
            slot("mlp.gate", "ffn_gate_inp", &[moe.experts, hidden]),
            slot("mlp.experts.gate_proj", "ffn_gate_exps", &[moe.experts, moe.ffn, hidden]),
            slot("mlp.experts.up_proj", "ffn_up_exps", &[moe.experts, moe.ffn, hidden]),
            slot("mlp.experts.down_proj", "ffn_down_exps", &[moe.experts, hidden, moe.ffn]),
        ]),
    }
    parts
}

fn slot(name: &str, gguf: &str, shape: &[usize]) -> Slot {
    Slot { name: name.into(), gguf: gguf.into(), shape: shape.into(), rotated_heads: None }
}
