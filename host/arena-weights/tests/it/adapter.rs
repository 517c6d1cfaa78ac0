//! Adapters as PEFT writes them, and those that ask for what is not done.

use std::path::Path;

use arena_kernels::format::Format;
use arena_weights::adapter::Adapter;
use arena_weights::config::ModelConfig;
use arena_weights::tensor::Tensor;
use arena_weights::write;
use serde_json::{Value, json};

use crate::folder::ModelFolder;

const Q_PROJ: &str = "model.layers.0.self_attn.q_proj";

fn config() -> ModelConfig {
    ModelFolder::new("qwen3").open().unwrap().config().clone()
}

fn settings() -> Value {
    json!({
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 8,
        "target_modules": ["q_proj", "mlp.down_proj"], "bias": "none", "use_rslora": false,
        "use_dora": false, "lora_dropout": 0.0, "modules_to_save": null, "rank_pattern": {},
        "init_lora_weights": true, "fan_in_fan_out": false,
    })
}

fn tensor(module: &str, factor: &str, shape: [usize; 2]) -> Tensor {
    let weights = (0..shape[0] * shape[1]).map(|weight| weight as f32);
    Tensor {
        name: format!("base_model.model.{module}.lora_{factor}.weight"),
        format: Format::F32,
        shape: shape.into(),
        bytes: weights.flat_map(|weight| weight.to_le_bytes()).collect(),
    }
}

fn tensors() -> Vec<Tensor> {
    vec![
        tensor(Q_PROJ, "A", [4, 32]),
        tensor(Q_PROJ, "B", [64, 4]),
        tensor("model.layers.0.mlp.down_proj", "A", [4, 48]),
        tensor("model.layers.0.mlp.down_proj", "B", [32, 4]),
    ]
}

fn write(folder: &Path, settings: &Value, tensors: &[Tensor]) {
    std::fs::write(folder.join("adapter_config.json"), settings.to_string()).unwrap();
    write::safetensors(tensors, &folder.join("adapter_model.safetensors")).unwrap();
}

fn check(settings: &Value, tensors: &[Tensor], said: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), settings, tensors);
    let error = Adapter::open(folder.path(), &config()).expect_err("it is refused").to_string();
    for part in said {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
}

#[test]
fn an_adapter_is_read_by_canonical_names() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &settings(), &tensors());
    let adapter = Adapter::open(folder.path(), &config()).unwrap();
    assert_eq!((adapter.rank, adapter.scale, adapter.layers.len()), (4, 2.0, 2));
    let layer = &adapter.layers["model.layers.0.self_attn.q_proj.weight"];
    assert_eq!((layer.rows, layer.columns), (64, 32));
    assert_eq!((layer.a.len(), layer.b.len(), layer.b[5]), (4 * 32, 64 * 4, 5.0));
    let names: Vec<&str> = adapter.manifest.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["adapter_config.json", "adapter_model.safetensors"]);
    let by_file = Adapter::open(&folder.path().join("adapter_model.safetensors"), &config());
    assert_eq!(by_file.unwrap(), adapter);
}

#[test]
fn variants_that_compute_something_else_are_refused_by_name() {
    for (key, value) in [
        ("use_rslora", json!(true)),
        ("use_dora", json!(true)),
        ("bias", json!("all")),
        ("lora_bias", json!(true)),
        ("peft_type", json!("LOHA")),
        ("fan_in_fan_out", json!(true)),
        ("rank_pattern", json!({"q_proj": 8})),
        ("modules_to_save", json!(["lm_head"])),
        ("init_lora_weights", json!("pissa")),
        ("alora_invocation_tokens", json!([1])),
    ] {
        let mut settings = settings();
        settings[key] = value;
        check(&settings, &tensors(), &[&format!("key `{key}`"), "not supported"]);
    }
}

#[test]
fn numbers_out_of_range_are_refused_by_name() {
    for (key, value) in [
        ("r", json!(0)),
        ("r", json!(-1)),
        ("r", json!(5000)),
        ("lora_alpha", json!("8")),
        ("lora_alpha", json!(1e300)),
        ("target_modules", json!(3)),
    ] {
        let mut settings = settings();
        settings[key] = value;
        check(&settings, &tensors(), &[&format!("key `{key}`")]);
    }
}

#[test]
fn factors_that_do_not_fit_the_model_are_refused_by_name() {
    let with = |index: usize, tensor: Tensor| {
        let mut tensors = tensors();
        tensors[index] = tensor;
        tensors
    };
    let a = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
    let wide = with(0, tensor(Q_PROJ, "A", [4, 33]));
    check(&settings(), &wide, &[a, "make it [4, 32]"]);
    let thick = with(0, tensor(Q_PROJ, "A", [8, 32]));
    check(&settings(), &thick, &[a, "is [8, 32]"]);
    check(&settings(), &tensors()[1..], &[a, "is missing"]);
    let other = with(0, tensor("model.layers.7.self_attn.q_proj", "A", [4, 32]));
    check(&settings(), &other, &[a, "is missing"]);
    let mut more = tensors();
    more.push(tensor("model.layers.7.self_attn.q_proj", "A", [4, 32]));
    check(&settings(), &more, &["layers.7.self_attn.q_proj", "no layer of this model"]);
    let mut untold = tensors();
    untold.push(tensor("model.layers.0.self_attn.v_proj", "A", [4, 32]));
    untold.push(tensor("model.layers.0.self_attn.v_proj", "B", [32, 4]));
    check(&settings(), &untold, &["v_proj", "is not among `target_modules`"]);
    check(&settings(), &[], &["adapts no layer"]);
}

#[test]
fn a_written_adapter_is_the_same_adapter() {
    let config = ModelConfig { layers: 2, ..config() };
    let settings = write::AdapterSettings { rank: 4, alpha: 10.0, base_model: "tiny" };
    let folder = tempfile::tempdir().unwrap();
    write::adapter(settings, &tensors(), &config, folder.path()).unwrap();
    let adapter = Adapter::open(folder.path(), &config).unwrap();
    assert_eq!((adapter.rank, adapter.scale), (4, 2.5));
    let names: Vec<&String> = adapter.layers.keys().collect();
    assert_eq!(names.len(), 2);
    let layer = &adapter.layers[&format!("{Q_PROJ}.weight")];
    assert_eq!((layer.rows, layer.columns), (64, 32));
    assert!(layer.b.iter().enumerate().all(|(at, weight)| *weight == at as f32));
    let written = std::fs::read_to_string(folder.path().join("adapter_config.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    // Other layers have such modules, too, which are not adapted.
    let targets = json!(["model.layers.0.mlp.down_proj", "model.layers.0.self_attn.q_proj"]);
    assert_eq!(written["target_modules"], targets);
    let error = write::adapter(settings, &tensors(), &config, folder.path()).unwrap_err();
    assert!(error.to_string().contains("cannot create"), "{error}");
}

#[test]
fn experts_are_adapted_one_by_one() {
    let config = ModelFolder::new("qwen3_moe").open().unwrap().config().clone();
    let experts = config.moe.unwrap().experts;
    let of_expert = |expert: usize| {
        let module = format!("model.layers.0.mlp.experts.{expert}.up_proj");
        [tensor(&module, "A", [4, 32]), tensor(&module, "B", [24, 4])]
    };
    let tensors: Vec<Tensor> = (0..experts).flat_map(of_expert).collect();
    let settings = write::AdapterSettings { rank: 4, alpha: 4.0, base_model: "tiny" };
    let folder = tempfile::tempdir().unwrap();
    write::adapter(settings, &tensors, &config, folder.path()).unwrap();
    let written = std::fs::read_to_string(folder.path().join("adapter_config.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    let adapter = Adapter::open(folder.path(), &config).unwrap();
    assert_eq!(adapter.layers.len(), experts);
    let layer = &adapter.layers["model.layers.0.mlp.experts.2.up_proj.weight"];
    assert_eq!((layer.rows, layer.columns), (24, 32));
    assert_eq!(written["target_modules"], json!(["up_proj"]));
}

#[test]
fn modules_that_are_adapted_in_every_layer_are_named_by_their_last_part() {
    let config = ModelConfig { layers: 2, ..config() };
    let of_layer = |layer: usize| {
        let module = format!("model.layers.{layer}.self_attn.q_proj");
        [tensor(&module, "A", [4, 32]), tensor(&module, "B", [64, 4])]
    };
    let tensors: Vec<Tensor> = (0..config.layers).flat_map(of_layer).collect();
    let settings = write::AdapterSettings { rank: 4, alpha: 4.0, base_model: "tiny" };
    let folder = tempfile::tempdir().unwrap();
    write::adapter(settings, &tensors, &config, folder.path()).unwrap();
    let written = std::fs::read_to_string(folder.path().join("adapter_config.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["target_modules"], json!(["q_proj"]));
    assert_eq!(Adapter::open(folder.path(), &config).unwrap().layers.len(), config.layers);
}

#[test]
fn a_tensor_that_is_no_factor_is_not_written() {
    let settings = write::AdapterSettings { rank: 4, alpha: 4.0, base_model: "tiny" };
    let folder = tempfile::tempdir().unwrap();
    let mut tensors = tensors();
    tensors[0].name = "model.norm.weight".into();
    let error = write::adapter(settings, &tensors, &config(), folder.path()).unwrap_err();
    assert!(error.to_string().contains("tensor `model.norm.weight`"), "{error}");
    assert!(!folder.path().join("adapter_config.json").exists());
}
