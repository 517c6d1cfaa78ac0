//! GGUF files that the tests write: a sound one, and everything that can be wrong with one.

use std::path::Path;

use arena_weights::weights::Weights;

use crate::gguf_file::{GgufFile, list_bytes, text_bytes};
use crate::store;
use crate::tiny::{self, HEAD_DIM, HIDDEN, TOKENS};

/// Opens bytes as a file, and everything in it that opens.
fn open(bytes: &[u8], folder: &Path) -> Result<Weights, String> {
    let path = folder.join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    let weights = Weights::open(&path).map_err(|error| error.to_string())?;
    for info in weights.tensors() {
        let tensor = weights.tensor(&info.name).map_err(|error| error.to_string())?;
        assert_eq!(tensor.to_f32().len(), info.element_count());
    }
    weights.tokenizer().map_err(|error| error.to_string())?;
    weights.chat_template().map_err(|error| error.to_string())?;
    Ok(weights)
}

/// Changes the tiny model and says why it is refused then.
fn check(change: impl FnOnce(&mut GgufFile), said: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let mut file = tiny::llama();
    change(&mut file);
    let Err(error) = open(&file.bytes(), folder.path()) else {
        panic!("it was opened, though it should be refused: {said:?}")
    };
    for part in said {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
}

#[test]
fn a_sound_file_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let weights = open(&tiny::llama().bytes(), folder.path()).unwrap();
    let config = weights.config();
    assert_eq!((config.hidden, config.layers, config.head_dim), (32, 2, 8));
    assert_eq!((config.vocab, config.bos, config.eos.as_slice()), (262, Some(259), &[260][..]));
    assert!(config.tied_embeddings);
    assert_eq!(weights.name(), "tiny");
    assert_eq!(weights.tensors().len(), 20);
    let down = weights.tensor("model.layers.1.mlp.down_proj.weight").unwrap();
    assert_eq!(down.shape, [32, 48]);
    assert_eq!(down.to_f32()[..2], [380_000.0, 380_001.0]);
}

#[test]
fn rows_of_queries_and_keys_are_put_in_the_order_of_halves() {
    let folder = tempfile::tempdir().unwrap();
    let weights = open(&tiny::llama().bytes(), folder.path()).unwrap();
    let half = HEAD_DIM / 2;
    // Tensor 3 of the file; a weight says where in the file it was.
    let q = weights.tensor("model.layers.0.self_attn.q_proj.weight").unwrap().to_f32();
    for (row, weights) in q.chunks(HIDDEN as usize).enumerate() {
        let (head, within) = (row as u64 / HEAD_DIM, row as u64 % HEAD_DIM);
        let was = head * HEAD_DIM + 2 * (within % half) + within / half;
        assert_eq!(weights[0], (60_000 + was * HIDDEN) as f32, "row {row}");
    }
    let v = weights.tensor("model.layers.0.self_attn.v_proj.weight").unwrap().to_f32();
    assert_eq!(v[HIDDEN as usize], (100_000 + HIDDEN) as f32);
}

#[test]
fn other_versions_and_byte_orders_are_refused_by_name() {
    check(|file| file.magic = *b"GGML", &["header", "does not start with `GGUF`"]);
    check(|file| file.version = 1, &["GGUF: `version 1`"]);
    check(|file| file.version = 2, &["GGUF: `version 2`"]);
    check(|file| file.version = 4, &["GGUF: `version 4`"]);
    check(|file| file.version = 3u32.swap_bytes(), &["`version 3, big-endian`"]);
}

#[test]
fn counts_that_lie_are_refused_before_anything_is_allocated() {
    check(|file| file.tensor_count = Some(u64::MAX), &["number of tensors", "at most 65536"]);
    check(|file| file.key_count = Some(1 << 63), &["number of keys", "at most 4096"]);
    check(|file| file.tensor_count = Some(21), &["tensor"]);
    check(|file| file.key_count = Some(4000), &["key"]);
    let endless = |element, count: u64| {
        move |file: &mut GgufFile| {
            file.set("tokenizer.ggml.tokens", 9, list_bytes(element, count, vec![0; 64]));
        }
    };
    check(endless(8, 1 << 61), &["key `tokenizer.ggml.tokens`", "truncated"]);
    check(endless(4, u64::MAX), &["key `tokenizer.ggml.tokens`", "truncated"]);
    check(endless(10, 1 << 40), &["key `tokenizer.ggml.tokens`", "truncated"]);
    let long_text = |file: &mut GgufFile| {
        file.set("general.name", 8, (1u64 << 63).to_le_bytes().into());
    };
    check(long_text, &["key `general.name`", "length of a text", "at most 1048576"]);
    let long_key = |file: &mut GgufFile| file.keys[0].name = vec![b'k'; 70_000];
    check(long_key, &["length of a text", "at most 65535"]);
    let long_name = |file: &mut GgufFile| file.tensors[0].name = vec![b'n'; 65];
    check(long_name, &["tensor 0", "at most 64"]);
}

#[test]
fn dimensions_that_lie_are_refused_by_the_name_of_the_tensor() {
    let dimensions = |dimensions: &'static [u64]| {
        move |file: &mut GgufFile| {
            file.tensor("blk.1.attn_v.weight").dimensions = dimensions.into();
        }
    };
    let tensor = "tensor `blk.1.attn_v.weight`";
    check(dimensions(&[]), &[tensor, "has 0 dimensions"]);
    check(dimensions(&[1, 1, 1, 1, 1]), &[tensor, "has 5 dimensions"]);
    check(dimensions(&[32, 0]), &[tensor, "dimension out of range"]);
    check(dimensions(&[1 << 63, 1 << 63]), &[tensor, "larger than any file"]);
    check(dimensions(&[1 << 32, 1 << 32, 1 << 32]), &[tensor, "larger than any file"]);
    check(dimensions(&[1 << 40, 1]), &[tensor, "truncated", "4398046511104"]);
    check(dimensions(&[16, 32]), &[tensor, "is [32, 16]", "make it [16, 32]"]);
    check(dimensions(&[512]), &[tensor, "is [512]", "make it [16, 32]"]);
}

#[test]
fn tensors_outside_the_file_or_over_each_other_are_refused_by_name() {
    let offset =
        |offset: u64| move |file: &mut GgufFile| file.tensor("blk.0.ffn_up.weight").offset = offset;
    let tensor = "tensor `blk.0.ffn_up.weight`";
    check(offset(u64::MAX - 31), &[tensor, "truncated"]);
    check(offset(1 << 40), &[tensor, "truncated", "0 are left"]);
    check(offset(33), &[tensor, "offset 33 is not a multiple of 32"]);
    check(offset(0), &["overlaps tensor"]);
    check(offset(64), &[tensor, "overlaps tensor `token_embd.weight`"]);
    check(|file| file.data.truncate(file.data.len() - 1), &["blk.1.ffn_down.weight", "truncated"]);
}

#[test]
fn tensors_that_are_unknown_missing_or_there_twice_are_refused_by_name() {
    let kind =
        |kind: u32| move |file: &mut GgufFile| file.tensor("blk.0.attn_k.weight").kind = kind;
    check(kind(13), &["tensor `blk.0.attn_k.weight`: `Q5_K` is not supported"]);
    check(kind(999), &["tensor `blk.0.attn_k.weight`: `type 999` is not supported"]);
    check(
        |file| {
            let norm = file.tensor("blk.0.attn_norm.weight");
            (norm.kind, norm.dimensions) = (3, vec![33]);
        },
        &["tensor `blk.0.attn_norm.weight`", "rows of 33 are no whole Q4_1 blocks"],
    );
    let rename = |name: &'static str| {
        move |file: &mut GgufFile| file.tensor("blk.0.attn_q.weight").name = name.into()
    };
    check(rename("blk.0.attn_q.bias"), &["tensor `blk.0.attn_q.weight` is missing"]);
    check(rename("blk.0.attn_k.weight"), &["tensor `blk.0.attn_k.weight`: is there twice"]);
    check(
        |file| file.push_f32("rope_freqs.weight", &[4], &[1.0; 4]),
        &["tensor `rope_freqs.weight`", "does not have"],
    );
    check(|file| file.set_number("llama.block_count", 3), &["`blk.2.attn_norm.weight` is missing"]);
    check(|file| file.set_number("llama.block_count", 1), &["tensor `blk.1.attn_k.weight`"]);
}

#[test]
fn keys_that_change_the_arithmetic_are_refused_by_name() {
    check(|file| file.set_text("general.architecture", "gemma3"), &["`gemma3` is not supported"]);
    check(|file| file.set_text("general.type", "adapter"), &["key `general.type`: `adapter`"]);
    let refused = |change: fn(&mut GgufFile), key: &str| check(change, &[key, "not supported"]);
    refused(|file| file.set_text("llama.rope.scaling.type", "yarn"), "`llama.rope.scaling.type`");
    refused(|file| file.set_float("llama.rope.scaling.factor", 8.0), "`llama.rope.scaling.factor`");
    refused(|file| file.set_number("llama.expert_count", 8), "`llama.expert_count`");
    refused(|file| file.set_number("llama.rope.dimension_count", 4), "rope.dimension_count");
    refused(|file| file.set_number("llama.attention.sliding_window", 4), "sliding_window");
    refused(|file| file.set_flag("llama.attention.causal", false), "`llama.attention.causal`");
    refused(|file| file.set_number("split.count", 2), "`split.count`");
    refused(|file| file.set_float("llama.logit_scale", 2.0), "`llama.logit_scale`");
    refused(|file| file.set_number("qwen3.block_count", 2), "`qwen3.block_count`");
    check(|file| file.remove("llama.context_length"), &["`llama.context_length`", "is missing"]);
    check(|file| file.set_number("llama.embedding_length", 0), &["width", "is 0"]);
    check(|file| file.set_number("llama.block_count", 1 << 30), &["number of layers", "1024"]);
    check(|file| file.set_number("llama.attention.head_count_kv", 3), &["no multiple of 3"]);
    check(|file| file.set_float("llama.rope.freq_base", f32::NAN), &["base of positions"]);
    check(|file| file.set_text("llama.block_count", "two"), &["`llama.block_count`", "is two"]);
    check(|file| file.set_number("general.alignment", 24), &["`general.alignment`"]);
    check(|file| file.set_number("general.alignment", 1 << 30), &["`general.alignment`"]);
}

#[test]
fn keys_that_are_malformed_are_refused_by_name() {
    check(
        |file| {
            let key = tiny::llama().keys.remove(1);
            file.keys.push(key);
        },
        &["key `general.name`", "is there twice"],
    );
    check(|file| file.set("general.flag", 7, vec![2]), &["`general.flag`", "neither true nor"]);
    check(|file| file.set("general.x", 13, vec![0; 8]), &["`general.x`: `type 13`"]);
    let nested = list_bytes(9, 1, list_bytes(4, 1, vec![0; 4]));
    check(|file| file.set("general.x", 9, nested), &["`general.x`: `list of lists`"]);
    check(|file| file.set("general.x", 8, text_bytes(&[0xff])), &["`general.x`", "not UTF-8"]);
}

#[test]
fn tokenizers_that_are_unknown_or_malformed_are_refused_by_name() {
    check(
        |file| file.set_text("tokenizer.ggml.model", "llama"),
        &["tokenizer.ggml.model", "llama"],
    );
    check(|file| file.set_text("tokenizer.ggml.pre", "tekken"), &["tokenizer.ggml.pre", "tekken"]);
    check(|file| file.remove("tokenizer.ggml.pre"), &["`tokenizer.ggml.pre`", "is missing"]);
    check(|file| file.remove("tokenizer.ggml.token_type"), &["token_type`", "is missing"]);
    check(|file| file.remove("tokenizer.ggml.tokens"), &["tokenizer.ggml.tokens", "is missing"]);
    check(|file| file.set_flag("tokenizer.ggml.add_eos_token", true), &["add_eos_token"]);
    check(|file| file.set_text("tokenizer.ggml.normalizer", "x"), &["tokenizer.ggml.normalizer"]);
    check(|file| file.set_number("tokenizer.ggml.eos_token_id", 262), &["262 is not one of 262"]);
    check(|file| file.set_integers("tokenizer.ggml.token_type", &[1]), &["1 entries for 262"]);
    let merge = |merge: &'static str| {
        move |file: &mut GgufFile| file.set_texts("tokenizer.ggml.merges", &[merge.into()])
    };
    check(merge("h"), &["merge `h`", "is not two tokens"]);
    check(merge("h e l"), &["merge `h e l`", "is not two tokens"]);
    check(merge("q z"), &["merge `q z`", "`qz` is no token of text"]);
    let token = |id: usize, written: &'static str| {
        move |file: &mut GgufFile| {
            let mut tokens = tiny::tokens().0;
            tokens[id] = written.into();
            file.set_texts("tokenizer.ggml.tokens", &tokens);
        }
    };
    check(token(258, "he"), &["token 258, `he`", "is token 256, too"]);
    check(token(258, "a b"), &["token 258, `a b`", "byte alphabet"]);
    check(token(261, "<|im_end|>"), &["token 261", "is token 260, too"]);
    check(token(258, ""), &["token 258", "is empty"]);
    let more = |file: &mut GgufFile| {
        let (mut tokens, mut kinds) = tiny::tokens();
        tokens.push("<more>".into());
        kinds.push(3);
        file.set_texts("tokenizer.ggml.tokens", &tokens);
        file.set_integers("tokenizer.ggml.token_type", &kinds);
    };
    check(more, &["number of the tokenizer's tokens is 263, at most 262"]);
}

#[test]
fn a_merge_that_would_write_a_control_token_is_refused() {
    check(
        |file| {
            let mut tokens = tiny::tokens().0;
            (tokens[256], tokens[260]) = ("<|".into(), "<|i".into());
            file.set_texts("tokenizer.ggml.tokens", &tokens);
            let merges = ["< |", "<| i"].map(String::from);
            file.set_texts("tokenizer.ggml.merges", &merges);
        },
        &["merge `<| i`", "`<|i` is no token of text"],
    );
}

#[test]
fn a_file_that_ends_anywhere_is_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let file = tiny::llama();
    let (header, bytes) = (file.header().len(), file.bytes());
    let step = if store::slow() { 1 } else { 13 };
    let ends = (0..header).step_by(step).chain((header..bytes.len()).step_by(9973));
    for end in ends {
        let error = open(&bytes[..end], folder.path()).expect_err("a part is no model");
        assert!(error.contains("truncated"), "{end}: {error}");
    }
}

#[test]
fn a_flipped_bit_in_the_header_is_an_error_or_another_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = tiny::llama();
    let (header, mut bytes) = (file.header().len(), file.bytes());
    let step = if store::slow() { 1 } else { 7 };
    let mut refused = 0;
    for at in (0..header).step_by(step) {
        // Every byte, another bit from one to the next.
        let bit = 1 << (at * 5 % 8);
        bytes[at] ^= bit;
        refused += usize::from(open(&bytes, folder.path()).is_err());
        bytes[at] ^= bit;
    }
    assert!(refused > header / step / 4, "{refused} of {} were refused", header / step);
    assert!(TOKENS > 0 && open(&bytes, folder.path()).is_ok());
}
