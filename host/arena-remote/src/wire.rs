//! What a server is sent.

use arena_core::config::models::ServerKind;
use arena_llm::model::ModelError;
use arena_llm::request::{CallKey, Message, Request};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use arena_core::seat::TOP_TOKENS_MAX;

/// Most stop texts that OpenAI's protocol allows.
const OPENAI_STOPS_MAX: usize = 4;

/// Returns the body of a chat completion.
///
/// # Errors
/// [`ModelError::InvalidInput`] for what a server of this kind has no field for: nothing that a
/// request asks is left out.
pub(crate) fn body(
    request: &Request,
    server: ServerKind,
    remote_model: &str,
) -> Result<Value, ModelError> {
    let sampling = &request.sampling;
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    put("model", json!(remote_model));
    put("messages", messages(&request.messages));
    put("max_tokens", json!(request.max_tokens));
    put("temperature", json!(thousandths(sampling.temperature_milli)));
    put("top_p", json!(thousandths(sampling.top_p_milli)));
    put("seed", json!(seed(request.key)));
    put("stream", json!(false));
    if !request.stop.is_empty() {
        put("stop", json!(request.stop));
    }
    if server == ServerKind::OpenAi {
        refuse_extras(request)?;
        return Ok(Value::Object(body));
    }
    put("top_k", json!(sampling.top_k));
    put("min_p", json!(thousandths(sampling.min_p_milli)));
    put("logprobs", json!(true));
    put("top_logprobs", json!(TOP_TOKENS_MAX));
    match server {
        ServerKind::OpenAi => unreachable!("returned above"),
        ServerKind::Vllm => {
            // Else a model's generation_config.json may set it.
            put("repetition_penalty", json!(1.0));
            put("return_token_ids", json!(true));
            // Tokens of log-probabilities are given as `token_id:N` then.
            put("return_tokens_as_token_ids", json!(true));
            if let Some(grammar) = &request.grammar {
                put("structured_outputs", json!({ "grammar": grammar }));
            }
        }
        ServerKind::LlamaServer => {
            if let Some(grammar) = &request.grammar {
                // The first line tells it from llama.cpp's own notation.
                put("grammar", json!(format!("%llguidance {{}}\n{grammar}")));
            }
        }
    }
    Ok(Value::Object(body))
}

/// Returns the messages as the protocol has them.
pub(crate) fn messages(messages: &[Message]) -> Value {
    let messages = messages
        .iter()
        .map(|message| json!({ "role": message.role.name(), "content": message.text }));
    Value::Array(messages.collect())
}

fn refuse_extras(request: &Request) -> Result<(), ModelError> {
    let extras = [
        ("top-k", request.sampling.top_k != 0),
        ("min-p-milli", request.sampling.min_p_milli != 0),
        ("grammar", request.grammar.is_some()),
    ];
    if let Some((name, _)) = extras.into_iter().find(|(_, is_asked)| *is_asked) {
        let detail = format!("`{name}` is not part of OpenAI's protocol, which the server speaks");
        return Err(ModelError::InvalidInput(detail));
    }
    if request.stop.len() > OPENAI_STOPS_MAX {
        let found = request.stop.len();
        let detail = format!("`stop` is {found} texts, the server takes {OPENAI_STOPS_MAX}");
        return Err(ModelError::InvalidInput(detail));
    }
    Ok(())
}

fn thousandths(milli: u32) -> f64 {
    f64::from(milli) / 1_000.0
}

/// Returns the seed of a call's draws: 31 bits, because servers read it as a signed number of 32
/// or 64 bits and give the largest unsigned ones meanings of their own.
fn seed(key: CallKey) -> u32 {
    let mut hash = Sha256::new();
    hash.update(b"arena/remote-seed/v1\0");
    hash.update(key.seat_seed.to_be_bytes());
    hash.update(key.call_index.to_be_bytes());
    let digest = hash.finalize();
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) >> 1
}
