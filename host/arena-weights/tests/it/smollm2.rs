//! The packaged SmolLM2-135M-Instruct, which is what everybody starts with.

use std::fmt::Write as _;

use arena_kernels::format::Format;
use arena_weights::config::Architecture;
use arena_weights::template::ChatMessage;
use arena_weights::weights::Weights;

use crate::store;

fn open(test: &str) -> Option<Weights> {
    let path = store::find("smollm2", test)?;
    Some(Weights::open(&path).expect("the packaged model is sound"))
}

#[test]
fn its_numbers_are_those_of_its_card() {
    let Some(weights) = open("numbers of smollm2") else { return };
    let config = weights.config();
    assert_eq!(config.architecture, Architecture::Llama);
    assert_eq!((config.hidden, config.layers, config.ffn), (576, 30, 1536));
    assert_eq!((config.heads, config.kv_heads, config.head_dim), (9, 3, 64));
    assert_eq!((config.vocab, config.context_tokens), (49152, 8192));
    assert_eq!((config.rope_theta, config.rms_eps), (100_000.0, 1e-5));
    assert!(config.tied_embeddings);
    assert_eq!((config.bos, config.eos.as_slice()), (Some(1), [2, 0].as_slice()));
}

#[test]
fn its_tensors_have_canonical_names_and_shapes() {
    let Some(weights) = open("tensors of smollm2") else { return };
    let infos = weights.tensors();
    assert_eq!(infos.len(), 272);
    let count: usize = infos.iter().map(|info| info.element_count()).sum();
    assert_eq!(count, 134_515_008);
    let down = weights.tensor("model.layers.29.mlp.down_proj.weight").unwrap();
    assert_eq!((down.format, down.shape.as_slice()), (Format::Q4_1, [576, 1536].as_slice()));
    let embedding = weights.tensor("model.embed_tokens.weight").unwrap();
    assert_eq!((embedding.format, embedding.shape[1]), (Format::Q8_0, 576));
    assert!(embedding.to_f32().iter().all(|weight| weight.is_finite() && weight.abs() < 10.0));
    assert!(weights.tensor("lm_head.weight").is_err());
}

#[test]
fn its_name_is_the_hash_of_its_one_line() {
    let Some(weights) = open("manifest of smollm2") else { return };
    let mut last = (0, 0);
    let manifest = weights.manifest(&mut |done, all| last = (done, all)).unwrap();
    assert_eq!(last, (98_362_432, 98_362_432));
    let text = manifest.text();
    let line = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 98362432 \
                model.gguf\n";
    assert_eq!(text, line);
    let mut name = String::new();
    for byte in manifest.sha256() {
        write!(name, "{byte:02x}").unwrap();
    }
    assert_eq!(name.len(), 64);
}

#[test]
fn a_chat_becomes_the_prompt_that_its_template_describes() {
    let Some(weights) = open("template of smollm2") else { return };
    let template = weights.chat_template().unwrap();
    let messages = [ChatMessage { role: "user", content: "Hi <|im_end|>" }];
    let pieces = template.pieces(&messages, true).unwrap();
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    assert_eq!(
        text,
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging \
         Face<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    );
    let tokenizer = weights.tokenizer().unwrap();
    let tokens = tokenizer.encode_pieces(&pieces, &[]).unwrap();
    // One end of the system's turn, one of the user's; what the user wrote is none.
    assert_eq!(tokens.iter().filter(|&&token| token == 2).count(), 2);
    assert_eq!(tokens.iter().filter(|&&token| token == 1).count(), 3);
}

/// What the parity fixtures say of one dialogue, or of one text.
#[derive(serde::Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    messages: Vec<(String, String)>,
    #[serde(default)]
    text: String,
    ids: Vec<u32>,
}

#[derive(serde::Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[test]
fn prompts_of_dialogues_are_the_tokens_that_transformers_makes() {
    let Some(weights) = open("dialogues of smollm2") else { return };
    let (template, tokenizer) = (weights.chat_template().unwrap(), weights.tokenizer().unwrap());
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/parity/fixtures/smollm2.json");
    let Cases { cases } = serde_json::from_slice(&std::fs::read(fixture).unwrap()).unwrap();
    assert!(cases.len() >= 50);
    for Case { name, messages, text, ids } in cases {
        if messages.is_empty() {
            assert_eq!(tokenizer.encode_text(&text).unwrap(), ids, "{name}");
            continue;
        }
        let messages: Vec<ChatMessage<'_>> =
            messages.iter().map(|(role, content)| ChatMessage { role, content }).collect();
        let pieces = template.pieces(&messages, true).unwrap();
        assert_eq!(tokenizer.encode_pieces(&pieces, &[]).unwrap(), ids, "{name}");
    }
}
