//! A Llama so small that a test can look at every weight: two layers, 262 tokens.

use crate::gguf_file::GgufFile;

pub const HIDDEN: u64 = 32;
pub const FFN: u64 = 48;
pub const HEADS: u64 = 4;
pub const KV_HEADS: u64 = 2;
pub const HEAD_DIM: u64 = 8;
/// Every byte, two merges, one token for another to overlap, two control tokens and an added one.
pub const TOKENS: u64 = 262;
pub const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\
    <|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Returns the letter that stands for a byte. Source: GPT-2, `encoder.py`.
pub fn letter(byte: u8) -> char {
    let itself = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if itself(byte) {
        return char::from(byte);
    }
    let others = (0..byte).filter(|&other| !itself(other)).count() as u32;
    char::from_u32(256 + others).unwrap()
}

/// Returns the tokens and their kinds, as GGUF numbers them.
pub fn tokens() -> (Vec<String>, Vec<i32>) {
    let mut tokens: Vec<String> = (0..=255).map(|byte| letter(byte).to_string()).collect();
    tokens.extend(["he", "hel", "Ġt"].map(String::from));
    let mut kinds = vec![1; tokens.len()];
    tokens.extend(["<|im_start|>", "<|im_end|>", "<think>"].map(String::from));
    kinds.extend([3, 3, 4]);
    (tokens, kinds)
}

pub fn merges() -> Vec<String> {
    ["h e", "he l", "Ġ t"].map(String::from).into()
}

/// Returns a weight that says where it is: distinct for up to 2^24 places.
fn weights(count: u64, tensor: u64) -> Vec<f32> {
    (0..count).map(|index| (tensor * 20_000 + index) as f32).collect()
}

/// Returns the model. Weight `i` of tensor `n` of the file is `20000 n + i`.
pub fn llama() -> GgufFile {
    let mut file = GgufFile::new();
    file.set_text("general.architecture", "llama");
    file.set_text("general.name", "tiny");
    for (key, number) in [
        ("block_count", 2),
        ("context_length", 64),
        ("embedding_length", HIDDEN as u32),
        ("feed_forward_length", FFN as u32),
        ("attention.head_count", HEADS as u32),
        ("attention.head_count_kv", KV_HEADS as u32),
        ("rope.dimension_count", HEAD_DIM as u32),
        ("vocab_size", TOKENS as u32),
    ] {
        file.set_number(&format!("llama.{key}"), number);
    }
    file.set_float("llama.rope.freq_base", 10_000.0);
    file.set_float("llama.attention.layer_norm_rms_epsilon", 1e-5);
    let (tokens, kinds) = tokens();
    file.set_text("tokenizer.ggml.model", "gpt2");
    file.set_text("tokenizer.ggml.pre", "smollm");
    file.set_texts("tokenizer.ggml.tokens", &tokens);
    file.set_integers("tokenizer.ggml.token_type", &kinds);
    file.set_texts("tokenizer.ggml.merges", &merges());
    file.set_number("tokenizer.ggml.bos_token_id", 259);
    file.set_number("tokenizer.ggml.eos_token_id", 260);
    file.set_text("tokenizer.chat_template", TEMPLATE);
    push_tensors(&mut file);
    file
}

fn push_tensors(file: &mut GgufFile) {
    let mut tensors = vec![
        ("token_embd.weight".to_string(), vec![HIDDEN, TOKENS]),
        ("output_norm.weight".to_string(), vec![HIDDEN]),
    ];
    for layer in 0..2 {
        tensors.extend(
            [
                ("attn_norm", vec![HIDDEN]),
                ("attn_q", vec![HIDDEN, HEADS * HEAD_DIM]),
                ("attn_k", vec![HIDDEN, KV_HEADS * HEAD_DIM]),
                ("attn_v", vec![HIDDEN, KV_HEADS * HEAD_DIM]),
                ("attn_output", vec![HEADS * HEAD_DIM, HIDDEN]),
                ("ffn_norm", vec![HIDDEN]),
                ("ffn_gate", vec![HIDDEN, FFN]),
                ("ffn_up", vec![HIDDEN, FFN]),
                ("ffn_down", vec![FFN, HIDDEN]),
            ]
            .map(|(name, dimensions)| (format!("blk.{layer}.{name}.weight"), dimensions)),
        );
    }
    for (index, (name, dimensions)) in tensors.into_iter().enumerate() {
        let count = dimensions.iter().product();
        file.push_f32(&name, &dimensions, &weights(count, index as u64));
    }
}
