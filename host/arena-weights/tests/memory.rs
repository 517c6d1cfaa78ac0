//! What a model file can make its reader allocate: no more than its own size and named maxima.
//!
//! One test in a program of its own, since it counts everything that the program allocates.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use arena_weights::weights::Weights;
use peak_alloc::PeakAlloc;

#[path = "it/gguf_file.rs"]
#[allow(dead_code)]
mod gguf_file;
#[path = "it/tiny.rs"]
#[allow(dead_code)]
mod tiny;

use gguf_file::{GgufFile, list_bytes};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Beyond the file itself: chunks that are read at a time, and what errors say.
const SMALL: usize = 256 << 10;

/// Opens a file and returns what it took at most.
fn peak(path: &Path) -> usize {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let opened = Weights::open(path);
    let peak = ALLOCATED.peak_usage() - before;
    assert!(opened.is_err(), "the file should be refused");
    peak
}

fn check(what: &str, change: impl FnOnce(&mut GgufFile)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut file = tiny::llama();
    change(&mut file);
    let bytes = file.bytes();
    std::fs::write(&path, &bytes).unwrap();
    let (size, _) = (bytes.len(), drop(bytes));
    let peak = peak(&path);
    assert!(peak < size + SMALL, "{what}: {peak} bytes for a file of {size}");
}

#[test]
fn a_lying_file_makes_its_reader_allocate_no_more_than_its_size() {
    for huge in [1u64 << 20, 1 << 31, 1 << 40, 1 << 62, 1 << 63, u64::MAX] {
        check("tensors", |file| file.tensor_count = Some(huge));
        check("keys", |file| file.key_count = Some(huge));
        check("dimension", |file| file.tensors[3].dimensions = vec![huge]);
        check("dimensions", |file| file.tensors[3].dimensions = vec![huge; 4]);
        check("offset", |file| file.tensors[3].offset = huge);
        check("text", |file| file.set("general.x", 8, huge.to_le_bytes().into()));
        for element in [0, 4, 7, 8, 9, 12] {
            check("list", |file| {
                file.set("general.x", 9, list_bytes(element, huge, vec![0; 8]));
            });
        }
        check("layers", |file| file.set("llama.block_count", 10, huge.to_le_bytes().into()));
    }
    check("numbers", |file| file.set_number("llama.block_count", u32::MAX));
    check("heads", |file| file.set_number("llama.attention.head_count", u32::MAX));
    check("experts", |file| file.set_number("llama.expert_count", u32::MAX));

    // A shard that announces a header or a tensor that it does not have.
    let folder = tempfile::tempdir().unwrap();
    let config = r#"{"model_type":"llama","hidden_size":8,"num_attention_heads":1,
        "num_hidden_layers":1,"vocab_size":8,"max_position_embeddings":8}"#;
    let tokenizer = r#"{"version":"1.0","pre_tokenizer":{"type":"ByteLevel",
        "add_prefix_space":false},"post_processor":null,"decoder":null,
        "model":{"vocab":{},"merges":[]}}"#;
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
    let tensor = r#"{"x":{"dtype":"F32","shape":[1099511627776],
        "data_offsets":[0,4398046511104]}}"#;
    for (len, header) in [(1u64 << 63, ""), (1 << 24, ""), (tensor.len() as u64, tensor)] {
        let mut bytes = len.to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        std::fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
        let peak = peak(folder.path());
        assert!(peak < SMALL, "{peak} bytes for a header of {len}");
    }

    // A list that would be sixteen times as long in memory.
    let list = format!("[{}0]", "0,".repeat(1 << 20));
    for key in ["truncation", "padding", "normalizer", "pre_tokenizer"] {
        let bomb = tokenizer.replacen('{', &format!("{{\"{key}\":{list},"), 1);
        std::fs::write(folder.path().join("tokenizer.json"), &bomb).unwrap();
        let peak = peak(folder.path());
        assert!(peak < bomb.len() + SMALL, "{peak} bytes for `{key}` of {}", bomb.len());
    }
}
