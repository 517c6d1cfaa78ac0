//! The prompt's tokens, from the routes that llama.cpp's server has besides OpenAI's.
//!
//! Its chat completions say the reply's tokens and not the prompt's. The server is asked to render
//! its template and to tokenise that, as it did for the completion itself.

use arena_llm::request::Message;
use async_openai::Client;
use async_openai::error::OpenAIError;
use async_openai::traits::RequestOptionsBuilder;
use serde::Deserialize;
use serde_json::json;

use crate::endpoint::Endpoint;
use crate::wire;

#[derive(Deserialize)]
struct Rendered {
    prompt: String,
}

#[derive(Deserialize)]
struct Tokenised {
    tokens: Vec<u32>,
}

/// Returns the tokens of a conversation's prompt. `client` is of the server's root.
pub(crate) async fn prompt_ids(
    client: &Client<Endpoint>,
    messages: &[Message],
) -> Result<Vec<u32>, OpenAIError> {
    let body = json!({ "messages": wire::messages(messages) });
    let chat = client.chat().path("/apply-template")?;
    let Rendered { prompt } = chat.create_byot(body).await?;
    let body = json!({ "content": prompt, "add_special": true, "parse_special": true });
    let Tokenised { tokens } = client.chat().path("/tokenize")?.create_byot(body).await?;
    Ok(tokens)
}
