//! Files that the crate writes, read again.

use std::path::Path;

use arena_kernels::format::Format;
use arena_weights::safetensors;
use arena_weights::tensor::Tensor;
use arena_weights::weights::Weights;
use arena_weights::write;

use crate::folder::ModelFolder;
use crate::{store, tiny};

/// Writes a model as GGUF of f32 and compares it with what it was.
fn check(weights: &Weights, folder: &Path) {
    let path = folder.join("written.gguf");
    write::gguf_f32(weights, &path).unwrap();
    let again = Weights::open(&path).unwrap();
    assert_eq!(again.config(), weights.config());
    assert_eq!(again.name(), weights.name());
    for (info, before) in again.tensors().iter().zip(weights.tensors()) {
        assert_eq!((&info.name, &info.shape), (&before.name, &before.shape));
        assert_eq!(info.format, Format::F32);
        let (now, before) = (again.tensor(&info.name), weights.tensor(&info.name));
        assert!(now.unwrap().to_f32() == before.unwrap().to_f32(), "{}", info.name);
    }
    let (now, before) = (again.tokenizer().unwrap(), weights.tokenizer().unwrap());
    for text in ["hello the 123", "<|im_start|>user\nhe<|im_end|>", "été 你好"] {
        assert_eq!(now.encode_marks(text).unwrap(), before.encode_marks(text).unwrap());
    }
    let message = arena_weights::template::ChatMessage { role: "user", content: "x" };
    let pieces = |weights: &Weights| weights.chat_template().unwrap().pieces(&[message], true);
    assert_eq!(pieces(&again).unwrap(), pieces(weights).unwrap());
    let error = write::gguf_f32(weights, &path).unwrap_err().to_string();
    assert!(error.contains("cannot create"), "{error}");
}

#[test]
fn a_written_model_is_the_same_model() {
    for model_type in ["llama", "qwen3", "qwen3_moe"] {
        let model = ModelFolder::new(model_type);
        check(&model.open().unwrap(), model.path());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, tiny::llama().bytes()).unwrap();
    check(&Weights::open(&path).unwrap(), folder.path());
}

#[test]
fn smollm2_is_the_same_model_in_f32() {
    if !store::slow() {
        store::skipped("smollm2 in f32: half a gibibyte; set SLOW_TESTS=1");
        return;
    }
    let Some(path) = store::find("smollm2", "smollm2 in f32") else { return };
    let folder = tempfile::tempdir().unwrap();
    check(&Weights::open(&path).unwrap(), folder.path());
}

#[test]
fn a_new_tokenizer_that_gguf_has_no_name_for_is_refused() {
    let mut model = ModelFolder::new("llama");
    model.tokenizer["normalizer"] = serde_json::json!({"type": "NFC"});
    let weights = model.open().unwrap();
    let error = write::gguf_f32(&weights, &model.path().join("x.gguf")).unwrap_err().to_string();
    assert!(error.contains("tokenizer.ggml.pre") && error.contains("nfc true"), "{error}");
}

#[test]
fn safetensors_take_whole_numbers_of_bytes_a_weight_only() {
    let folder = tempfile::tempdir().unwrap();
    let tensor =
        Tensor { name: "x".into(), format: Format::Q8_0, shape: vec![1, 32], bytes: vec![0; 34] };
    let path = folder.path().join("x.safetensors");
    let error = write::safetensors(&[tensor], &path).unwrap_err().to_string();
    assert!(error.contains("tensor `x`: `Q8_0` is not supported"), "{error}");
    assert!(!path.exists());
}

#[test]
fn written_safetensors_are_read_again_within_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let bytes = [1.5f32, -0.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = Tensor { name: "x".into(), format: Format::F32, shape: vec![2], bytes };
    write::safetensors(std::slice::from_ref(&tensor), &path).unwrap();
    let read = safetensors::tensors(&path, 1_000).unwrap();
    assert_eq!(read.len(), 1);
    assert!(read["x"].bytes == tensor.bytes && read["x"].shape == tensor.shape);
    let error = safetensors::tensors(&path, 10).unwrap_err().to_string();
    assert!(error.contains("length in bytes"), "{error}");
}
