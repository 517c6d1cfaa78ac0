//! Folders as Hugging Face lays them out, written by the test.

use std::path::{Path, PathBuf};

use arena_kernels::format::Format;
use arena_weights::config::{Architecture, Moe};
use arena_weights::tensor::Tensor;
use arena_weights::weights::Weights;
use arena_weights::write;
use serde_json::{Value, json};

use crate::tiny;

/// A folder of a tiny model, to be changed before it is opened.
pub struct ModelFolder {
    pub folder: tempfile::TempDir,
    pub config: Value,
    pub tokenizer: Value,
    pub tensors: Vec<Tensor>,
}

impl ModelFolder {
    /// Makes a model of one layer of an architecture that `transformers` calls so.
    pub fn new(model_type: &str) -> ModelFolder {
        let mut config = json!({
            "_name_or_path": "tiny",
            "architectures": ["AnyForCausalLM"],
            "model_type": model_type,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "vocab_size": 264,
            "max_position_embeddings": 64,
            "rope_theta": 10000.0,
            "rope_scaling": null,
            "rms_norm_eps": 1e-6,
            "hidden_act": "silu",
            "tie_word_embeddings": false,
            "bos_token_id": 259,
            "eos_token_id": 260,
            "use_cache": true,
            "torch_dtype": "float32",
        });
        if model_type == "qwen3_moe" {
            for (key, value) in [
                ("num_experts", json!(3)),
                ("num_experts_per_tok", json!(2)),
                ("moe_intermediate_size", json!(24)),
                ("norm_topk_prob", json!(true)),
                ("decoder_sparse_step", json!(1)),
                ("mlp_only_layers", json!([])),
            ] {
                config[key] = value;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        ModelFolder { folder, config, tokenizer: tokenizer_json(), tensors: tensors(model_type) }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn text(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    /// Writes everything but the weights.
    fn write_settings(&self) {
        self.text("config.json", &self.config.to_string());
        self.text("tokenizer.json", &self.tokenizer.to_string());
        self.text("tokenizer_config.json", &json!({"chat_template": tiny::TEMPLATE}).to_string());
    }

    pub fn write(&self) {
        self.write_settings();
        write::safetensors(&self.tensors, &self.path().join("model.safetensors")).unwrap();
    }

    pub fn open(&self) -> Result<Weights, String> {
        self.write();
        open(self.path())
    }
}

fn open(path: &Path) -> Result<Weights, String> {
    let weights = Weights::open(path).map_err(|error| error.to_string())?;
    weights.tokenizer().map_err(|error| error.to_string())?;
    Ok(weights)
}

/// Changes a model and says why it is refused then.
fn check(model_type: &str, change: impl FnOnce(&mut ModelFolder), said: &[&str]) {
    let mut model = ModelFolder::new(model_type);
    change(&mut model);
    let Err(error) = model.open() else { panic!("it was opened, not refused: {said:?}") };
    for part in said {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
}

/// Returns the tiny tokenizer as `tokenizers` writes it.
fn tokenizer_json() -> Value {
    let (tokens, kinds) = tiny::tokens();
    let is_text = |id: usize| kinds[id] == 1;
    let vocab: serde_json::Map<String, Value> = tokens
        .iter()
        .enumerate()
        .filter(|(id, _)| is_text(*id))
        .map(|(id, token)| (token.clone(), json!(id)))
        .collect();
    let added: Vec<Value> = tokens
        .iter()
        .enumerate()
        .filter(|(id, _)| !is_text(*id))
        .map(|(id, token)| {
            json!({"id": id, "content": token, "single_word": false, "lstrip": false,
                   "rstrip": false, "normalized": false, "special": kinds[id] == 3})
        })
        .collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                            "use_regex": true});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": true}, byte_level]},
        "post_processor": null, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null,
            "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
            "byte_fallback": false, "ignore_merges": false, "vocab": vocab,
            "merges": tiny::merges()},
    })
}

/// Returns f32 weights of which each says where it is.
fn tensor(name: &str, shape: &[usize], first: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let weights = (first..first + count).map(|weight| weight as f32);
    Tensor {
        name: name.into(),
        format: Format::F32,
        shape: shape.into(),
        bytes: weights.flat_map(|weight| weight.to_le_bytes()).collect(),
    }
}

fn tensors(model_type: &str) -> Vec<Tensor> {
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("model.embed_tokens".into(), vec![264, 32]),
        ("lm_head".into(), vec![264, 32]),
        ("model.norm".into(), vec![32]),
    ];
    let mut layer = |name: &str, shape: &[usize]| {
        shapes.push((format!("model.layers.0.{name}"), shape.into()));
    };
    layer("input_layernorm", &[32]);
    layer("self_attn.q_proj", &[64, 32]);
    layer("self_attn.k_proj", &[32, 32]);
    layer("self_attn.v_proj", &[32, 32]);
    layer("self_attn.o_proj", &[32, 64]);
    layer("post_attention_layernorm", &[32]);
    if model_type != "llama" {
        layer("self_attn.q_norm", &[16]);
        layer("self_attn.k_norm", &[16]);
    }
    if model_type == "qwen3_moe" {
        layer("mlp.gate", &[3, 32]);
        for expert in 0..3 {
            layer(&format!("mlp.experts.{expert}.gate_proj"), &[24, 32]);
            layer(&format!("mlp.experts.{expert}.up_proj"), &[24, 32]);
            layer(&format!("mlp.experts.{expert}.down_proj"), &[32, 24]);
        }
    } else {
        layer("mlp.gate_proj", &[48, 32]);
        layer("mlp.up_proj", &[48, 32]);
        layer("mlp.down_proj", &[32, 48]);
    }
    let numbered = shapes.iter().enumerate();
    numbered
        .map(|(index, (name, shape))| tensor(&format!("{name}.weight"), shape, index * 10_000))
        .collect()
}

#[test]
fn all_three_architectures_are_read() {
    for (model_type, architecture) in [
        ("llama", Architecture::Llama),
        ("qwen3", Architecture::Qwen3),
        ("qwen3_moe", Architecture::Qwen3Moe),
    ] {
        let weights = ModelFolder::new(model_type).open().unwrap();
        let config = weights.config();
        assert_eq!(config.architecture, architecture);
        assert_eq!((config.head_dim, config.vocab, config.tied_embeddings), (16, 264, false));
        assert_eq!((config.bos, config.eos.as_slice()), (Some(259), &[260][..]));
        // Rows are in the order of halves already.
        let q = weights.tensor("model.layers.0.self_attn.q_proj.weight").unwrap().to_f32();
        assert_eq!((q[0], q[32]), (40_000.0, 40_032.0));
        assert_eq!(weights.tokenizer().unwrap().encode_text("he").unwrap(), [256]);
        assert_eq!(weights.tokenizer().unwrap().vocab(), 262);
        assert!(weights.chat_template().is_ok());
    }
}

#[test]
fn experts_are_stacked() {
    let weights = ModelFolder::new("qwen3_moe").open().unwrap();
    let moe = Moe { experts: 3, experts_per_token: 2, ffn: 24, normalise: true };
    assert_eq!((weights.config().moe, weights.config().ffn), (Some(moe), 0));
    let up = weights.tensor("model.layers.0.mlp.experts.up_proj.weight").unwrap();
    assert_eq!(up.shape, [3, 24, 32]);
    let firsts: Vec<f32> = up.to_f32().chunks(24 * 32).map(|expert| expert[0]).collect();
    assert_eq!(firsts, [130_000.0, 160_000.0, 190_000.0]);
}

#[test]
fn shards_are_read_through_their_index() {
    let model = ModelFolder::new("qwen3");
    model.write_settings();
    let shard = |index: usize| format!("model-0000{}-of-00002.safetensors", index + 1);
    let mut map = serde_json::Map::new();
    for (index, tensors) in model.tensors.chunks(7).enumerate() {
        write::safetensors(tensors, &model.path().join(shard(index))).unwrap();
        map.extend(tensors.iter().map(|tensor| (tensor.name.clone(), json!(shard(index)))));
    }
    let index = |map: &serde_json::Map<String, Value>| {
        let text = json!({"metadata": {"total_size": 0}, "weight_map": map}).to_string();
        model.text("model.safetensors.index.json", &text);
    };
    index(&map);
    let weights = open(model.path()).unwrap();
    let norm = weights.tensor("model.norm.weight").unwrap().to_f32();
    assert_eq!(norm[0], 20_000.0);
    let names: Vec<String> =
        weights.manifest(&mut |_, _| ()).unwrap().files.into_iter().map(|file| file.name).collect();
    assert_eq!(
        names,
        [
            "config.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "tokenizer.json",
            "tokenizer_config.json",
        ]
    );
    for (shard, said) in [
        ("../model.safetensors", "is not the name of a safetensors file"),
        ("/etc/passwd", "is not the name of a safetensors file"),
        ("model-00002-of-00002.safetensors", "is not in shard"),
        ("missing.safetensors", "cannot read"),
    ] {
        let mut lying = map.clone();
        lying["model.embed_tokens.weight"] = json!(shard);
        index(&lying);
        let error = open(model.path()).unwrap_err();
        assert!(error.contains(said), "{shard}: {error}");
    }
}

#[test]
fn settings_that_change_the_arithmetic_are_refused_by_name() {
    let set =
        |key: &'static str, value: Value| move |model: &mut ModelFolder| model.config[key] = value;
    for (key, value) in [
        ("model_type", json!("mistral")),
        ("rope_scaling", json!({"rope_type": "llama3", "factor": 8.0})),
        ("rope_parameters", json!({"rope_theta": 1e4, "rope_type": "yarn"})),
        ("rope_parameters", json!({"rope_theta": 1e4, "partial_rotary_factor": 0.5})),
        ("attention_bias", json!(true)),
        ("hidden_act", json!("gelu")),
        ("sliding_window", json!(4096)),
        ("use_sliding_window", json!(true)),
        ("layer_types", json!(["sliding_attention"])),
        ("quantization_config", json!({"bits": 4})),
        ("some_new_thing", json!(1)),
    ] {
        check("qwen3", set(key, value), &[key, "not supported"]);
    }
    check("qwen3_moe", set("mlp_only_layers", json!([0])), &["mlp_only_layers"]);
    check("qwen3_moe", set("decoder_sparse_step", json!(2)), &["decoder_sparse_step"]);
    check("llama", set("hidden_size", json!(-1)), &["hidden_size", "what belongs there"]);
    check("llama", set("vocab_size", json!(1u64 << 40)), &["vocab_size"]);
    check("llama", set("num_hidden_layers", json!(2000)), &["number of layers", "1024"]);
    check("llama", set("num_hidden_layers", json!(2)), &["layers.1.input_layernorm.weight"]);
    check("llama", set("eos_token_id", json!(264)), &["264 is not one of 264"]);
}

#[test]
fn both_ways_of_writing_the_base_of_positions_are_read() {
    let mut model = ModelFolder::new("llama");
    model.config["rope_theta"] = Value::Null;
    model.config["rope_parameters"] = json!({"rope_theta": 500000.0, "rope_type": "default"});
    assert_eq!(model.open().unwrap().config().rope_theta, 500_000.0);
}

#[test]
fn end_tokens_are_gathered_from_all_files() {
    let model = ModelFolder::new("llama");
    model.write();
    model.text("generation_config.json", &json!({"eos_token_id": [261, 260]}).to_string());
    let tokens = json!({"eos_token": {"content": "<|im_start|>"}, "bos_token": "<|im_end|>"});
    model.text("tokenizer_config.json", &tokens.to_string());
    let weights = open(model.path()).unwrap();
    assert_eq!(weights.config().eos, [261, 260, 259]);
    assert_eq!(weights.config().bos, Some(260));
    let error = weights.chat_template().unwrap_err().to_string();
    assert!(error.contains("the model has none"), "{error}");
    model.text("chat_template.jinja", "{{ messages[0].content }}{{ eos_token }}");
    let template = open(model.path()).unwrap().chat_template().unwrap();
    let message = arena_weights::template::ChatMessage { role: "user", content: "x" };
    assert_eq!(template.pieces(&[message], true).unwrap()[1].text, "<think>");
}

#[test]
fn tensors_that_are_not_what_they_must_be_are_refused_by_name() {
    let name = "model.layers.0.self_attn.k_proj.weight";
    let change = |change: fn(&mut Tensor)| {
        move |model: &mut ModelFolder| {
            let tensor = model.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap();
            change(tensor);
        }
    };
    let rename = |tensor: &mut Tensor| tensor.name = "model.layers.0.self_attn.k_proj.bias".into();
    check("qwen3", change(rename), &[name, "is missing"]);
    check("qwen3", change(|tensor| tensor.shape = vec![16, 64]), &[name, "make it [32, 32]"]);
    let extra = |model: &mut ModelFolder| {
        model.tensors.push(tensor("model.layers.0.self_attn.k_proj.bias", &[32], 0));
    };
    check("qwen3", extra, &["k_proj.bias", "does not have"]);
    let mixed = |model: &mut ModelFolder| {
        let name = "model.layers.0.mlp.experts.1.up_proj.weight";
        let tensor = model.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap();
        (tensor.format, tensor.bytes) = (Format::Bf16, vec![0; 24 * 32 * 2]);
    };
    check("qwen3_moe", mixed, &["experts.1.up_proj.weight", "another format"]);
}

#[test]
fn headers_of_safetensors_that_lie_are_refused() {
    let model = ModelFolder::new("llama");
    model.write();
    let path = model.path().join("model.safetensors");
    let sound = std::fs::read(&path).unwrap();
    let header_len = u64::from_le_bytes(sound[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(sound[8..8 + header_len].to_vec()).unwrap();
    let with_header = |header: &str| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(&sound[8 + header_len..]);
        bytes
    };
    let replaced = |from: &str, to: &str| {
        assert!(header.contains(from), "{header}");
        with_header(&header.replacen(from, to, 1))
    };
    let norm = r#""model.norm.weight""#;
    for (bytes, said) in [
        (u64::MAX.to_le_bytes().to_vec(), "length of the header"),
        ((1u64 << 20).to_le_bytes().to_vec(), "truncated"),
        (vec![1, 2, 3], "truncated"),
        (sound[..sound.len() - 4].to_vec(), "truncated"),
        (with_header("{"), "header"),
        (with_header(&"[".repeat(100_000)), "header"),
        (replaced(r#""F32""#, r#""F8_E4M3""#), "`F8_E4M3` is not supported"),
        (replaced(r#""shape":[264,32]"#, r#""shape":[264,33]"#), "has"),
        (replaced(r#""shape":[264,32]"#, r#""shape":[9223372036854775808,32]"#), "has"),
        (replaced(r#""shape":[264,32]"#, r#""shape":[-1,32]"#), "header"),
        (replaced(r#""shape":[264,32]"#, r#""shape":[]"#), "has shape []"),
        (replaced(r#""data_offsets":[0,"#, r#""data_offsets":[99999999,"#), "before it begins"),
        (replaced(r#""lm_head.weight""#, norm), "is there twice"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = open(model.path()).unwrap_err();
        assert!(error.contains(said), "`{error}` does not say `{said}`");
    }
    let twice = replaced(r#""data_offsets":[33792,67584]"#, r#""data_offsets":[33788,67580]"#);
    std::fs::write(&path, twice).unwrap();
    assert!(open(model.path()).unwrap_err().contains("overlaps tensor"));
}

#[test]
fn tokenizers_of_other_kinds_are_refused_by_name() {
    let set = |pointer: &'static str, value: Value| {
        move |model: &mut ModelFolder| {
            *model.tokenizer.pointer_mut(pointer).expect(pointer) = value;
        }
    };
    for (pointer, value, said) in [
        ("/normalizer", json!({"type": "Lowercase"}), "normalizer"),
        ("/truncation", json!({"max_length": 5}), "truncation"),
        ("/pre_tokenizer", json!({"type": "Whitespace"}), "pre_tokenizer"),
        ("/pre_tokenizer", Value::Null, "pre_tokenizer"),
        ("/pre_tokenizer/pretokenizers/1/add_prefix_space", json!(true), "pre_tokenizer"),
        (
            "/pre_tokenizer/pretokenizers/0",
            json!({"type": "Split", "pattern": {"Regex": "(a+)+$"},
            "behavior": "Isolated", "invert": false}),
            "pre_tokenizer",
        ),
        ("/model/type", json!("Unigram"), "Unigram"),
        ("/model/byte_fallback", json!(true), "byte_fallback"),
        ("/model/dropout", json!(0.5), "dropout"),
        ("/model/end_of_word_suffix", json!("</w>"), "prefixes or suffixes"),
        ("/model/merges", json!(["h e", "x"]), "merge `x`"),
        ("/model/merges", json!([["q", "z"]]), "`qz` is no token of text"),
        ("/model/vocab", json!({"a": 4_000_000}), "id of token `a`"),
        ("/model/vocab", json!({"a": 1, "b": 1}), "token 1"),
        ("/added_tokens/0/lstrip", json!(true), "lstrip"),
        ("/added_tokens/0/id", json!(3), "token 3"),
    ] {
        check("llama", set(pointer, value), &[said]);
    }
}

#[test]
fn merges_are_read_as_texts_and_as_pairs() {
    let mut model = ModelFolder::new("llama");
    model.tokenizer["model"]["merges"] = json!([["h", "e"], ["he", "l"], ["Ġ", "t"]]);
    let tokens = model.open().unwrap().tokenizer().unwrap().encode_text("hel t").unwrap();
    assert_eq!(tokens, [257, 258]);
}

#[test]
fn a_folder_without_a_model_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(error.contains("no `model.gguf` and no `config.json`"), "{error}");
    let model = ModelFolder::new("llama");
    model.write_settings();
    let error = open(model.path()).unwrap_err();
    assert!(error.contains("no `model.safetensors` and no index"), "{error}");
    let error = open(&PathBuf::from("no/such/model")).unwrap_err();
    assert!(error.contains("cannot read `no/such/model`"), "{error}");
}

/// What the parity fixtures say of one text.
#[derive(serde::Deserialize)]
struct Expected {
    text: String,
    ids: Vec<u32>,
}

#[test]
fn folders_that_transformers_wrote_are_read() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/fixtures");
    for name in ["tiny-llama", "tiny-qwen3", "tiny-qwen3-moe"] {
        let weights = open(&fixtures.join(name)).unwrap();
        let tokenizer = weights.tokenizer().unwrap();
        let expected = std::fs::read(fixtures.join(name).join("expected.json")).unwrap();
        let expected: Vec<Expected> = serde_json::from_slice(&expected).unwrap();
        for Expected { text, ids } in expected {
            assert_eq!(tokenizer.encode_marks(&text).unwrap(), ids, "{name}");
        }
        for info in weights.tensors() {
            assert!(weights.tensor(&info.name).unwrap().to_f32().iter().all(|w| w.is_finite()));
        }
    }
    let llama = open(&fixtures.join("tiny-llama")).unwrap();
    let adapter = fixtures.join("tiny-llama-adapter");
    let adapter = arena_weights::adapter::Adapter::open(&adapter, llama.config()).unwrap();
    assert!(!adapter.layers.is_empty());
}
