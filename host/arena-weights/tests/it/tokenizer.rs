//! Text to tokens and back, against other programs and against attackers.

use arena_weights::error::WeightsError;
use arena_weights::template::Piece;
use arena_weights::tokenizer::{TEXT_BYTES_MAX, Tokenizer};
use arena_weights::weights::Weights;
use proptest::prelude::*;
use serde_json::Value;

use crate::gguf_file::GgufFile;
use crate::{store, tiny};

/// Written by `fixtures/tokens.py`.
const TOKENS: &str = include_str!("../fixtures/tokens.json");

/// Opens the tokenizer of a file after a change, without its weights.
fn changed(mut file: GgufFile, data_len: u64, change: impl FnOnce(&mut GgufFile)) -> Tokenizer {
    change(&mut file);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    file.write_hollow(&path, data_len);
    Weights::open(&path).unwrap().tokenizer().unwrap()
}

fn tiny(change: impl FnOnce(&mut GgufFile)) -> Tokenizer {
    let file = tiny::llama();
    let data_len = file.data.len() as u64;
    changed(file, data_len, change)
}

fn of_template(text: &str) -> Piece {
    Piece { text: text.into(), of_message: None }
}

fn of_message(message: usize, text: &str) -> Piece {
    Piece { text: text.into(), of_message: Some(message) }
}

#[test]
fn tokens_are_those_of_transformers_and_llama_cpp() {
    let Some(path) = store::find("smollm2", "tokens of other programs") else { return };
    let rows: Value = serde_json::from_str(TOKENS).unwrap();
    let rows = rows.as_array().unwrap();
    assert!(rows.len() >= 50);
    for pre in ["smollm", "qwen2", "llama-bpe", "gpt-2", "default"] {
        let (file, data_len) = GgufFile::read(&path);
        let tokenizer = changed(file, data_len, |file| file.set_text("tokenizer.ggml.pre", pre));
        for row in rows {
            let text = row["text"].as_str().unwrap();
            let expected: Vec<u32> =
                row[pre].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
            assert_eq!(tokenizer.encode_text(text).unwrap(), expected, "{pre}: {text:?}");
        }
    }
}

#[test]
fn words_are_merged_likeliest_first() {
    let tokenizer = tiny(|_| ());
    let ids = |text: &str| tokenizer.encode_text(text).unwrap();
    let byte = |byte: u8| u32::from(byte);
    assert_eq!(ids("hello the"), [257, byte(b'l'), byte(b'o'), 258, 256]);
    assert_eq!(ids(""), [0u32; 0]);
    assert_eq!(ids("€"), [0xe2, 0x82, 0xac]);
    assert_eq!(tokenizer.vocab(), 262);
    assert_eq!(tokenizer.bytes(257), b"hel");
    assert_eq!(tokenizer.bytes(258), b" t");
    assert_eq!(tokenizer.bytes(260), b"<|im_end|>");
    assert_eq!(
        (0u32..256).map(|id| tokenizer.bytes(id)[0]).collect::<Vec<_>>(),
        (0..=255).collect::<Vec<u8>>()
    );
    assert_eq!(tokenizer.bytes(262), b"");
    assert_eq!(tokenizer.bytes(u32::MAX), b"");
}

#[test]
fn marks_are_parsed_only_where_they_are_meant() {
    let tokenizer = tiny(|_| ());
    let (open, end, think) = (259, 260, 261);
    let text = "<|im_start|>h<|im_end|>";
    assert_eq!(tokenizer.encode_marks(text).unwrap(), [open, u32::from(b'h'), end]);
    assert!(tokenizer.encode_text(text).unwrap().iter().all(|&id| !tokenizer.is_mark(id)));
    assert_eq!(tokenizer.mark("<|im_end|>"), Some(end));
    assert_eq!(tokenizer.mark("he"), None);
    assert!(tokenizer.is_control(end) && tokenizer.is_control(u32::MAX));
    assert!(!tokenizer.is_control(think) && tokenizer.is_mark(think));
    assert!(!tokenizer.is_mark(256));
}

#[test]
fn of_marks_that_begin_together_the_longest_counts() {
    let tokenizer = tiny(|file| {
        let mut tokens = tiny::tokens().0;
        tokens[259] = "<|a".into();
        tokens[260] = "<|a|>".into();
        file.set_texts("tokenizer.ggml.tokens", &tokens);
    });
    assert_eq!(tokenizer.encode_marks("<|a|><|a<|").unwrap(), [260, 259, 60, 124]);
}

#[test]
fn a_prompt_is_cut_at_the_marks_of_its_template_and_nowhere_else() {
    let tokenizer = tiny(|_| ());
    let (open, end) = (259, 260);
    // The template's last letter and the message's first one merge, as in one text.
    let pieces =
        [of_template("<|im_start|>h"), of_message(0, "e<|im_end|>"), of_template("<|im_end|>")];
    let tokens = tokenizer.encode_pieces(&pieces, &[]).unwrap();
    assert_eq!((tokens[0], tokens[1], *tokens.last().unwrap()), (open, 256, end));
    assert_eq!(tokens.iter().filter(|&&token| token == end).count(), 1);
    // A mark that only the seam between template and message writes is none.
    let seam = [of_template("<|im_"), of_message(0, "end|>"), of_template("x")];
    let tokens = tokenizer.encode_pieces(&seam, &[]).unwrap();
    assert!(tokens.iter().all(|&token| !tokenizer.is_mark(token)));
}

#[test]
fn tokens_that_the_model_wrote_are_taken_as_they_are() {
    let tokenizer = tiny(|_| ());
    let (open, end) = (259, 260);
    let (h, e) = (u32::from(b'h'), u32::from(b'e'));
    let pieces = [
        of_template("<|im_start|>"),
        of_message(0, "he"),
        of_template("<|im_end|>\n<|im_start|>"),
        of_message(1, "he"),
    ];
    let plain = tokenizer.encode_pieces(&pieces, &[]).unwrap();
    assert_eq!(plain, [open, 256, end, 10, open, 256]);
    // Not as the tokenizer would cut them, and with the end of the turn that the model wrote.
    let written = tokenizer.encode_pieces(&pieces, &[&[h, e, end]]).unwrap();
    assert_eq!(written, [open, h, e, end, 10, open, 256]);
    let unended = tokenizer.encode_pieces(&pieces, &[&[h, e], &[h]]).unwrap();
    assert_eq!(unended, [open, h, e, end, 10, open, h]);
    let twice = [of_message(0, ""), of_template("<|im_end|><|im_end|>")];
    assert_eq!(tokenizer.encode_pieces(&twice, &[&[end]]).unwrap(), [end, end]);
    let apart = [of_message(0, ""), of_template("\n<|im_end|>")];
    assert_eq!(tokenizer.encode_pieces(&apart, &[&[end]]).unwrap(), [end, 10, end]);
}

#[test]
fn a_prompt_starts_with_the_first_token_once_if_it_must() {
    let without = tiny(|_| ());
    let with = tiny(|file| file.set_flag("tokenizer.ggml.add_bos_token", true));
    let bos = 259;
    let bare = [of_message(0, "he")];
    assert_eq!(without.encode_pieces(&bare, &[]).unwrap(), [256]);
    assert_eq!(with.encode_pieces(&bare, &[]).unwrap(), [bos, 256]);
    let has = [of_template("<|im_start|>"), of_message(0, "he")];
    assert_eq!(with.encode_pieces(&has, &[]).unwrap(), [bos, 256]);
}

#[test]
fn bytes_without_a_token_are_left_out() {
    let Some(path) = store::find("smollm2", "bytes without a token") else { return };
    let tokenizer = Weights::open(&path).unwrap().tokenizer().unwrap();
    let lost: Vec<u8> = (0..=127u8)
        .filter(|&byte| {
            let text = char::from(byte).to_string();
            tokenizer.encode_text(&text).unwrap().is_empty()
        })
        .collect();
    assert_eq!(lost, LOST, "of ASCII");
}

/// The bytes of ASCII that SmolLM2 has no token for.
const LOST: [u8; 6] = [0x04, 0x06, 0x13, 0x14, 0x16, 0x1d];

#[test]
fn long_texts_end_in_time_and_longer_ones_are_refused() {
    let all = ["smollm", "qwen2", "llama-bpe", "gpt-2", "default"];
    for pre in &all[..if store::slow() { 5 } else { 2 }] {
        let tokenizer = tiny(|file| file.set_text("tokenizer.ggml.pre", pre));
        for unit in [" ", "\n", " \n", "a", "1", "'", "he", "é", "\u{3000}", "<|im_end|>", "! "] {
            let text = unit.repeat(TEXT_BYTES_MAX / unit.len());
            let tokens = tokenizer.encode_text(&text).unwrap();
            let bytes: usize = tokens.iter().map(|&token| tokenizer.bytes(token).len()).sum();
            assert_eq!(bytes, text.len(), "{pre}: {unit:?}");
        }
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        let error = tokenizer.encode_text(&long).unwrap_err();
        assert!(matches!(error, WeightsError::TextTooLong { .. }));
        assert!(tokenizer.encode_marks(&long).is_err());
        assert!(tokenizer.encode_pieces(&[of_message(0, &long)], &[]).is_err());
    }
}

#[test]
fn threads_share_a_tokenizer() {
    let tokenizer = tiny(|_| ());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(tokenizer.encode_text("he").unwrap(), [256]));
        }
    });
}

proptest! {
    #[test]
    fn no_text_becomes_a_mark_and_every_byte_comes_back(
        text in "\\PC*|(<\\|im_start\\|>|<\\|im_end\\|>|<think>|[<|>a-z_ \\n0-9])*"
    ) {
        let tokenizer = tiny(|_| ());
        let tokens = tokenizer.encode_text(&text).unwrap();
        prop_assert!(tokens.iter().all(|&token| !tokenizer.is_mark(token)));
        let bytes: Vec<u8> =
            tokens.iter().flat_map(|&token| tokenizer.bytes(token).iter().copied()).collect();
        prop_assert_eq!(bytes, text.as_bytes());
    }
}
